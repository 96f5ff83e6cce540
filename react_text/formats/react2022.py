"""The prompt files of the original ReAct paper, JSON objects of few-shot texts <-> traces and a prompt, byte for byte.

A value holds an instruction and examples one after the other, with numbered labels (`Thought 1:`), plain ones, or, for
text games, commands behind `>`. The examples become traces; what stands around them becomes a prompt file, whose text
up to the question is the value again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import AuthorError, did_you_mean
from ..formats import Imported, file_name, numbered
from ..frontmatter import read_text
from ..labels import ARROW, NUMBERED, PLAIN, Labels
from ..prompt import Prompt
from ..tools import load_tools
from ..trace import Trace, is_finish

_TURNS = ((NUMBERED, r"^(?:Thought|Action) ([0-9]+):"), (PLAIN, r"^(?:Thought|Action)():"), (ARROW, r"^>()"))
_TASK = re.compile(r"^([A-Za-z][\w ]{0,40}):", re.M)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUESTION = "{{ labels.question }}: {{ question }}\n{{ transcript }}{{ cue }}"


@dataclass(frozen=True)
class _Example:
    body: str
    behind: str
    """The empty lines up to the next example."""


def read(path: Path, key: str | None = None) -> Imported:
    """The examples under a key of such a file; the key may be left out when there is only one. Raises AuthorError."""
    values = _values(path)
    if key is None and len(values) == 1:
        key = next(iter(values))
    if key not in values:
        what = "which key? --key NAME" if key is None else f"there is no key {key!r}{did_you_mean(key, values)}"
        raise AuthorError(f"{what}; there are {', '.join(values)}", path=path)
    try:
        return split(values[key], key)
    except AuthorError as error:
        raise AuthorError(f"{key}: {error.message}", path=path) from None


def split(value: str, key: str) -> Imported:
    """One value as traces, and as the prompt around them. Raises AuthorError for a text that has no turns."""
    labels, pattern = next(((ls, re.compile(p, re.M)) for ls, p in _TURNS if re.search(p, value, re.M)), (None, None))
    if labels is None or pattern is None:
        raise AuthorError("no line of it begins like a turn: `Thought 1:`, `Thought:`, or `>`")
    if labels == ARROW:
        return Imported({key: _trace(value, ARROW)})
    head, word, examples = _examples(value, pattern)
    labels = replace(labels, question=word or labels.question)
    traces = numbered(key, [_trace(example.body, labels) for example in examples])
    if head + "".join(example.body + example.behind for example in examples) != value:
        raise AuthorError("it cannot be taken apart and put together again")
    return Imported(traces, key, _prompt(head, examples, list(traces), labels))


def joined(paths: Sequence[Path]) -> str:
    """The value that traces and prompts make: the bodies of traces, the text of prompts up to the question. Raises
    AuthorError."""
    return "".join(_head(path) if path.suffix == ".j2" else Trace.load(path).body for path in paths)


def written(value: str, key: str, into: Path | None = None) -> str:
    """The JSON file; `into` is one of which every other byte is kept. Raises AuthorError."""
    if into is None:
        return json.dumps({key: value}, indent=2, ensure_ascii=False) + "\n"
    _values(into)
    text = read_text(into)
    literals = list(_STRING.finditer(text))  # keys and values by turns: there is nothing else in it
    for name, own in zip(reversed(literals[::2]), reversed(literals[1::2]), strict=True):
        if json.loads(name[0]) == key:
            literal = own[0] if json.loads(own[0]) == value else json.dumps(value)
            return text[: own.start()] + literal + text[own.end() :]
    end = literals[-1].end()
    return f"{text[:end]}, {json.dumps(key)}: {json.dumps(value)}{text[end:]}"


def _values(path: Path) -> dict[str, str]:
    try:
        values = json.loads(read_text(path))
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise AuthorError(f"this is not JSON: {getattr(error, 'msg', error)}", path=path, line=line) from None
    except RecursionError:
        raise AuthorError("this JSON is nested too deeply", path=path) from None
    if not isinstance(values, dict) or not values or not all(isinstance(value, str) for value in values.values()):
        raise AuthorError("this is not a JSON object of texts", path=path)
    return values


def _examples(value: str, pattern: re.Pattern[str]) -> tuple[str, str, list[_Example]]:
    """(what stands before the examples, the word before their tasks, the examples). The word is that of the last line
    above the first turn that begins with one; without it there is one example, with all that stands above."""
    first = pattern.search(value)
    assert first is not None
    task = next(reversed([*_TASK.finditer(value, 0, first.start())]), None)
    starts = [task.start() if task else 0]
    if task:
        starts += [start for start in _starts(value, task[1], pattern) if start > first.start()]
    ends = [*starts[1:], len(value)]
    examples = []
    for start, end in zip(starts, ends, strict=True):
        text = value[start:end].rstrip("\n")
        body = text + value[start + len(text) : end][:1]
        examples.append(_Example(body, value[start + len(body) : end]))
    return value[: starts[0]], task[1] if task else "", examples


def _starts(value: str, word: str, pattern: re.Pattern[str]) -> Iterator[int]:
    """Where the examples begin: at lines with the task's word behind which a first turn comes before another such line.
    Lines of an observation may begin with that word as well."""
    tasks = [found.start() for found in re.finditer(rf"^{re.escape(word)}:", value, re.M)]
    for start, end in zip(tasks, [*tasks[1:], len(value)], strict=True):
        turn = pattern.search(value, start, end)
        if turn and turn[1] in ("", "1"):
            yield start


def _trace(body: str, labels: Labels) -> Trace:
    trace = Trace(body, labels)
    last = trace.steps[-1] if trace.steps else None
    answer = last.arguments if last and is_finish(last) else None
    return Trace(body, labels, {"answer": answer, "test": "false"})


def _prompt(head: str, examples: Sequence[_Example], names: Sequence[str], labels: Labels) -> str:
    """A prompt file whose text up to the question is the value."""
    if "\r" in head:
        raise AuthorError("a template cannot hold the carriage returns before its first example")
    own = [f"question: {labels.question}"] if labels.question != PLAIN.question else []
    own += ["numbered: true"] if labels.numbered else []
    words = "numbered" if own == ["numbered: true"] else f"{{{', '.join(own)}}}"
    setting = f"labels: {words}\n" if own else ""
    listed = ", ".join(f"{file_name(name)}.trace" for name in names)
    text = [f"---\nexamples: [{listed}]\n{setting}---\n", _as_template(head)]
    for number, example in enumerate(examples):
        # An example always brings a newline; the value may end without one.
        cut = "" if example.body.endswith("\n") else "[:-1]"
        text.append(f"{{{{ examples[{number}]{cut} }}}}{example.behind}")
    gap = "" if examples[-1].body.endswith("\n") else "\n"
    return "".join([*text, "{{ trace_begins }}", gap, _QUESTION])


def _as_template(text: str) -> str:
    if not re.search(r"\{[{%#]", text):
        return text
    if re.search(r"\{%-?\+?\s*endraw", text):
        raise AuthorError("the text before its first example holds `{% endraw %}`")
    return f"{{% raw %}}{text}{{% endraw %}}"


def _head(path: Path) -> str:
    prompt = Prompt.load(path)
    return prompt.open(prompt.question or "?", load_tools(prompt.tools)).head
