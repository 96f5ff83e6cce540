"""A trace file -> the same file in its usual form: the keys of its head in order, spans only where they are needed.

The body is never touched, values stay as they are written, and no comment is lost: a comment belongs to the key below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import yaml

from .errors import AuthorError
from .frontmatter import FENCE, Head, decoded, read_head, split_head, unix_lines
from .layout import needed_spans
from .trace import KEYS, Trace

# What follows from the body: where it says something else, the author's line is replaced.
_STRUCTURE = ("head", "turns", "spans", "eol")
_COMMENT = re.compile(r"(?:^|\s)(#.*)$")


@dataclass(frozen=True)
class _Entry:
    """A key of the head: its lines, the comments and empty lines above them, the comments within them."""

    above: list[str]
    lines: list[str]
    comments: list[str]


def formatted(trace: Trace) -> bytes:
    """The file of `trace` in its usual form. Raises AuthorError for a head that cannot be put in order."""
    own, _, _ = split_head(unix_lines(decoded(trace.dump(), trace.path)))
    usual, body, _ = split_head(with_needed_spans(trace).dump().decode("utf-8"))
    assert usual is not None
    head, fresh = read_head(own, KEYS, trace.path), read_head(usual, KEYS)
    facts = {key: usual.split("\n")[line - 2] for key, line in fresh.lines.items()}
    top, entries, below = _entries(own or "", trace)
    lines = top
    for key in KEYS:
        entry = entries.get(key)
        if entry is None:
            lines += [facts[key]] if key in facts else []
        elif key not in _STRUCTURE or _same(key, head, fresh):
            lines += [*entry.above, *entry.lines]
        else:
            lines += [*entry.above, *entry.comments, *([facts[key]] if key in facts else [])]
    data = "\n".join([FENCE, *lines, *below, FENCE, body]).encode("utf-8")
    _check(data, trace)
    return data


def with_needed_spans(trace: Trace) -> Trace:
    """The trace with those spans only without which its body would be read differently."""
    turns = [(step.text, step.observation) for step in trace.steps]
    needed = replace(trace, spans=needed_spans(trace.task, turns, trace.labels, trace.body))
    same = (needed.task, needed.steps) == (trace.task, trace.steps)
    return needed if same else replace(trace)


def _entries(head: str, trace: Trace) -> tuple[list[str], dict[str, _Entry], list[str]]:
    """The lines of a head: what stands at its top, its keys, and what stands below the last one."""
    root = yaml.compose(head, Loader=yaml.SafeLoader)
    lines = head.split("\n")[:-1]
    entries: dict[str, _Entry] = {}
    top: list[str] = []
    waiting: list[str] = []
    position = 0
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    for number, (key, node) in enumerate(pairs):
        start, end = key.start_mark.line, max(_end(node), key.start_mark.line + 1)
        if start < position or (isinstance(root, yaml.MappingNode) and root.flow_style):
            raise AuthorError("each key of the front matter needs a line of its own", path=trace.path, line=start + 2)
        waiting += lines[position:start]
        if not entries:
            top, waiting = _title(waiting)
        following = pairs[number + 1][0].start_mark.line if number + 1 < len(pairs) else len(lines)
        while end < following and lines[end][:1].isspace() and lines[end].strip():  # a comment within the value
            end += 1
        own = lines[start:end]
        entries[str(key.value)] = _Entry(waiting, own, _comments(node, own))
        waiting, position = [], end
    return top, entries, waiting + lines[position:]


def _title(lines: list[str]) -> tuple[list[str], list[str]]:
    """A comment at the top of the file that an empty line separates from the first key, and the rest."""
    behind = max((number for number, line in enumerate(lines, 1) if not line.strip()), default=0)
    return lines[:behind], lines[behind:]


def _end(node: yaml.Node) -> int:
    """The line behind a value. A block collection is said to end where the next key begins, so its last item counts."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    mark = node.end_mark
    return int(mark.line + (mark.column > 0))


def _comments(node: yaml.Node, lines: list[str]) -> list[str]:
    """The comments in the lines of a value; in the text of a value on one line a `#` is none."""
    if len(lines) == 1:
        behind = lines[0][node.end_mark.column :].lstrip()
        return [behind] if behind.startswith("#") else []
    return [found[1] for line in lines if (found := _COMMENT.search(line))]


def _same(key: str, one: Head, other: Head) -> bool:
    return key in one and key in other and str(one.value(key)) == str(other.value(key))


def _check(data: bytes, trace: Trace) -> None:
    """The promise, kept for every file: what is read from it is what was read before."""
    again = Trace.load(data)
    if (again.body, again.labels, again.meta, again.steps) != (trace.body, trace.labels, trace.meta, trace.steps):
        raise AuthorError("this front matter cannot be put in order without changing it", path=trace.path, line=1)
