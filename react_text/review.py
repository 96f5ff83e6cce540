"""What a check found -> a pending file beside the golden -> a person's verdict: accepted, rejected, or left for later.

Nothing overwrites a golden by itself. A run that differs is written to `NAME.trace.new`; accepting moves it over
`NAME.trace`, rejecting removes it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from .errors import AuthorError, did_you_mean, no_such_file
from .files import write
from .frontmatter import FENCE, Head, decoded, read_bytes, read_head, read_text, split_head, unix_lines
from .golden import Outcome
from .match import CATEGORIES, Change, compare
from .matching import Matching
from .plan.replay import SUFFIX as PLAN
from .plan.replay import PlanOutcome, changes_between, difference
from .redact import redacted, redaction_rules, refuse_secrets
from .trace import KEYS, Trace

SUFFIX = ".new"
# What a run says about itself; all else in a front matter belongs to the author. The second line is never added.
_OF_THE_RUN = (
    "prompt_hash", "labels", "answer", "stop_reason", "finish", "completions", "outcomes", "head", "turns",
    "spans", "eol",
    "tools", "options",
)  # fmt: skip
_ONLY_IF_PRESENT = ("tools", "options")


@dataclass(frozen=True)
class Pending:
    """A pending file and the golden that it would replace."""

    path: Path

    @property
    def golden(self) -> Path:
        return self.path.with_name(self.path.name.removesuffix(SUFFIX))

    @property
    def is_plan(self) -> bool:
        """Whether it is a recorded plan, and no trace."""
        return self.golden.suffix == PLAN

    @property
    def difference(self) -> list[str]:
        """The lines in which a recorded plan differs. Raises AuthorError."""
        return difference(read_text(self.golden), read_text(self.path))

    @cached_property
    def traces(self) -> tuple[Trace | None, Trace]:
        """The golden, None when there is none yet, and the pending trace. Raises AuthorError."""
        return Trace.load(self.golden) if self.golden.is_file() else None, Trace.load(self.path)

    @cached_property
    def changes(self) -> list[Change]:
        """All that accepting would change, whatever the golden's `match:` lets pass. Raises AuthorError."""
        if self.is_plan:
            return changes_between(self.golden, self.path)
        expected, actual = self.traces
        if expected is None:
            return [Change("new", 0, "there is no golden of this name yet")]
        changes = []
        if expected.meta.get("prompt_hash") not in (None, actual.meta.get("prompt_hash")):
            changes.append(Change("prompt", 0, "the rendered head is another text now"))
        changes += compare(expected, actual, matching=Matching())
        if not changes and read_bytes(self.golden) != read_bytes(self.path):
            changes.append(Change("format", 0, "the front matter differs"))
        return changes

    def accept(self) -> None:
        """Make it the golden. Raises AuthorError when it cannot be read."""
        _ = self.changes
        refuse_secrets(read_bytes(self.path), self.path)
        self.path.replace(self.golden)

    def reject(self) -> None:
        """Forget it."""
        self.path.unlink()


def pending_path(golden: Path) -> Path:
    return golden.with_name(golden.name + SUFFIX)


def write_pending(outcome: Outcome | PlanOutcome) -> Path:
    """Write what a run has become beside its golden. Raises AuthorError, and writes nothing, when it holds a secret."""
    if isinstance(outcome, PlanOutcome):
        path, data = pending_path(outcome.path), outcome.text.encode("utf-8", "surrogatepass")
        refuse_secrets(data, path)
        write(path, data)
        return path
    golden = outcome.golden
    assert golden.path is not None
    path = pending_path(golden.path)
    data = updated(golden, redacted(outcome.actual, redaction_rules(golden.meta.get("redact"))))
    refuse_secrets(data, path)
    write(path, data)
    return path


def lacking(outcome: Outcome | PlanOutcome) -> list[str]:
    """Facts of the run that the front matter of a golden which is reproduced does not have yet: `prompt_hash`, say."""
    if isinstance(outcome, PlanOutcome) or outcome.changes or outcome.actual.body != outcome.golden.body:
        return []
    have = set(outcome.golden.meta)
    return [key for key in ("prompt_hash", "outcomes") if outcome.actual.meta.get(key) and key not in have]


def find_pending(paths: Iterable[str | Path]) -> list[Pending]:
    """The pending files that are named, by their own names or those of their goldens, and those in the folders that
    are. Raises AuthorError for a name with nothing pending."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            found.update(dict.fromkeys(sorted([*path.rglob(f"*.trace{SUFFIX}"), *path.rglob(f"*{PLAN}{SUFFIX}")])))
            continue
        own = path if path.name.endswith(SUFFIX) else pending_path(path)
        if not own.is_file():
            raise AuthorError("nothing is pending here", path=path) if path.is_file() else no_such_file(path)
        found[own] = None
    return [Pending(path) for path in found]


def only_categories(text: str) -> list[str]:
    """The categories of `--only wording,tool`. Raises AuthorError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in CATEGORIES:
            raise AuthorError(f"--only: there is no category {name!r}{did_you_mean(name, CATEGORIES)}")
    return names


def within(changes: Iterable[Change], names: Collection[str]) -> bool:
    """Whether all changes are of these categories."""
    return all(change.category in names for change in changes)


def refuse_in_ci(what: str) -> None:
    """Raises AuthorError where the environment variable CI says that no person is watching."""
    if os.environ.get("CI", "") not in ("", "0", "false"):
        raise AuthorError(f"{what} changes files, which is refused where CI is set")


def updated(golden: Trace, actual: Trace) -> bytes:
    """The golden's file with the body and the facts of another run. The author's keys, their order and their comments
    stay as they are."""
    fresh, body, _ = split_head(actual.dump().decode("utf-8"))
    written, _, _ = split_head(unix_lines(decoded(golden.dump(), golden.path)))
    if written is None or fresh is None:
        return actual.dump()
    head, new = read_head(written, KEYS, golden.path), read_head(fresh, KEYS)
    lines, facts = written.split("\n")[:-1], fresh.split("\n")
    parts: list[tuple[str, list[str]]] = []  # a key and its lines, with what stands above them
    position = 0
    for key in sorted(head.lines, key=lambda key: head.lines[key]):
        start, end = _extent(key, head, lines)
        own = lines[start:end]
        if key in _OF_THE_RUN and not _same(key, head, new):
            own = [facts[new.lines[key] - 2]] if key in new else []
        parts.append((key, [*lines[position:start], *own]))
        position = end
    for key in KEYS:
        if key in new and key not in head and key in _OF_THE_RUN and key not in _ONLY_IF_PRESENT:
            # Behind the key that usually comes before it.
            before = [place for place, (name, _) in enumerate(parts) if KEYS.index(name) < KEYS.index(key)]
            place = max(before, key=lambda place: KEYS.index(parts[place][0]), default=-1)
            parts.insert(place + 1, (key, [facts[new.lines[key] - 2]]))
    kept = [line for _, own in parts for line in own]
    return "\n".join([FENCE, *kept, *lines[position:], FENCE, body]).encode("utf-8")


def _same(key: str, one: Head, other: Head) -> bool:
    if key not in other:
        return False
    a, b = one.nodes[key], other.nodes[key]
    if isinstance(a, yaml.ScalarNode) and isinstance(b, yaml.ScalarNode):
        return bool(a.value == b.value)
    return bool(one.value(key) == other.value(key))


def _extent(key: str, head: Head, lines: list[str]) -> tuple[int, int]:
    """The lines of the head that a key and its value take, without comments behind them."""
    start, mark = head.lines[key] - 2, head.nodes[key].end_mark
    end = max(mark.line + (mark.column > 0), start + 1)
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return start, end
