"""Golden + run -> a difference that a person understands at a glance: aligned by step, with visible white space."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TextIO

from .display import printable, wants_colour
from .errors import AuthorError
from .golden import Outcome
from .match import Change, aligned, only_space_differs
from .matching import Matching
from .plan.replay import PlanOutcome
from .redact import redacted, redaction_rules
from .trace import Trace

_TAIL = 4  # lines of the prompt shown before the first difference
_AROUND = 3  # unchanged lines shown beside a change within a step
_LONGEST = 160  # characters of a line
_MOST_LINES = 2000  # lines that are compared one by one: difflib takes quadratic time
_WIDEST_MARK = 40  # characters that are marked: a mark under a whole line says nothing
_MOST_CHANGES = 10
_MARGIN = "    "
_COLOURS = {"-": "31", "+": "32", "^": "33", "@": "36"}


def story(changes: Sequence[Change]) -> str:
    """What happened, in one line: `step 2: calls lookup[...] instead of search[...]; 1 extra step; same answer`."""
    if not changes:
        return "as recorded"
    first, others = changes[0], changes[1:]
    parts = [f"step {first.step}: {first.message}" if first.step else first.message]
    for side, word in (("run", "extra"), ("golden", "missing")):
        count = sum(change.only_in == side for change in others)
        if count:
            parts.append(f"{count} {'more ' if first.only_in == side else ''}{word} step{'s' * (count > 1)}")
    counted = [c for c in others if not c.only_in and c.category != "answer"]
    if counted:
        parts.append(f"{len(counted)} more change{'s' * (len(counted) > 1)}")
    kinds = {change.category for change in changes}
    if not kinds & {"path", "new"}:
        parts.append("same path")
    if first.category != "answer" and "new" not in kinds:
        parts.append("another answer" if "answer" in kinds else "same answer")
    return "; ".join(parts)


def categories(changes: Sequence[Change]) -> list[str]:
    """The categories of changes, each once, in the order in which they come up."""
    return list(dict.fromkeys(change.category for change in changes))


def report(outcome: Outcome | PlanOutcome, *, whole: bool = False) -> list[str]:
    """What a failed check has to say: the story behind the place where it begins, then the first difference, or the
    `whole` of them."""
    if isinstance(outcome, PlanOutcome):
        return outcome.report
    golden, changes = outcome.golden, outcome.changes
    lines = [f"{_place(golden, changes)}: {story(changes)} [{', '.join(categories(changes))}]"]
    if len(changes) > 1:
        lines += [f"  {change}" for change in changes[:_MOST_CHANGES]]
        lines += [f"  ... {len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
    if changes[0].category == "prompt" and golden.path:
        lines += file_history(outcome.case.head_files, golden.path)
    if whole:
        return [*lines, *step_diff(golden, outcome.actual, changes, outcome.matching)]
    return [*lines, *first_divergence(golden, outcome.actual, changes, outcome.matching, outcome.head)]


def step_diff(
    expected: Trace,
    actual: Trace,
    changes: Sequence[Change],
    matching: Matching | None = None,
    names: tuple[str, str] = ("the golden", "the run"),
) -> list[str]:
    """The whole difference, step by step; steps without a change are only counted. `names` are what the two sides are
    called."""
    expected, actual, matching = _comparable(expected, actual, matching)
    lines = ["@ question", *_changed_lines(expected.task, actual.task)] if expected.task != actual.task else []
    same = 0
    for number, own in aligned(expected, actual, matching):
        one, other = _step(expected, number), _step(actual, own)
        if one == other or not _concerned(changes, number, own):
            same += 1
            continue
        lines += [*_count(same), f"@ {headline(number, own, names)}", *_changed_lines(one, other)]
        same = 0
    return _indented([*lines, *(_count(same) if lines else [])])


def first_divergence(
    expected: Trace, actual: Trace, changes: Sequence[Change], matching: Matching | None = None, head: str = ""
) -> list[str]:
    """The first step with a change and nothing after it: the end of what the model saw, then both continuations."""
    expected, actual, matching = _comparable(expected, actual, matching)
    if expected.task != actual.task:
        return _indented(_changed_lines(expected.task, actual.task))
    for number, own in aligned(expected, actual, matching):
        one, other = _step(expected, number), _step(actual, own)
        if one != other and _concerned(changes, number, own):
            seen = head + (actual.before(own) if own else expected.before(number or 1))
            tail = _same_lines("\n".join(seen.removesuffix("\n").split("\n")[-_TAIL:]).lstrip("\n").split("\n"))
            return _indented([f"@ {headline(number, own)}", *tail, *_changed_lines(one, other)])
    return []


def visible(line: str, *, everywhere: bool = False) -> str:
    """A line as it can be shown: blanks and tabs at its end (or `everywhere`) and what cannot be printed are marked."""
    kept = "" if everywhere else line.rstrip(" \t\r")
    marked = line[len(kept) :].replace(" ", "·").replace("\t", "→")
    text = printable(kept.replace("\t", "    ") + marked)
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def headline(number: int | None, own: int | None, names: tuple[str, str] = ("the golden", "the run")) -> str:
    """What a pair of aligned steps is called; None where one side has none."""
    if number is None:
        return f"step {own} of {names[1]}: {names[0]} has none here"
    if own is None:
        return f"step {number}: {names[1]} has none here"
    return f"step {number}" if own == number else f"step {number}, step {own} of {names[1]}"


def line_changes(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """The opcodes (as difflib has them) that make the lines of `one` those of `other`; in linear time when they are
    many."""
    if len(one) + len(other) > _MOST_LINES:
        return _outer(one, other)
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def likely_cause(expected: str, actual: str) -> str:
    """What usually makes two texts differ in white space alone, or ""."""
    if expected.replace("\r", "") == actual.replace("\r", ""):
        return "line ends were converted; `*.trace -text` in .gitattributes keeps git from it"
    ends, own_ends = (re.sub(r"[ \t]+$", "", text, flags=re.M) for text in (expected, actual))
    if ends == own_ends and len(expected) < len(actual):
        return (
            "an editor has trimmed line ends; `trim_trailing_whitespace = false` in .editorconfig keeps it from *.trace"
        )
    if expected.rstrip("\n") == actual.rstrip("\n"):
        return "an editor or a commit hook has changed the end of the file"
    if expected.expandtabs() == actual.expandtabs() or expected.replace("\t", " ") == actual.replace("\t", " "):
        return "tabs have become blanks, or blanks tabs"
    return ""


def file_history(files: Sequence[Path], golden: Path) -> list[str]:
    """What git says has changed in `files` since the golden was committed; [] where there is no git to ask."""
    folder = golden.resolve().parent
    commit = _git(folder, "log", "-1", "--format=%H", "--", golden.name).strip() or "HEAD"
    text = _git(folder, "diff", "--no-ext-diff", "--no-color", "-U1", commit, "--", *map(str, files))
    shown = [line for line in text.split("\n") if line[:1] in ("-", "+", " ", "@") and not line.startswith("--- ")]
    return [_MARGIN + line.removeprefix("++").replace("+ b/", "@ ", 1) for line in shown]


def coloured(lines: Sequence[str], out: TextIO) -> Iterator[str]:
    """The lines of a difference, in colour where `out` is a terminal that wants it."""
    colour = wants_colour(out)
    for line in lines:
        style = _COLOURS.get(line[len(_MARGIN) : len(_MARGIN) + 1]) if line.startswith(_MARGIN) else None
        yield f"\x1b[{style}m{line}\x1b[0m" if colour and style else line


def external_diff(golden: Path, pending: Path) -> bool:
    """Show two files with the program that the environment variable RT_DIFF names; False when it names none."""
    command = shlex.split(os.environ.get("RT_DIFF", ""))
    if not command:
        return False
    try:
        subprocess.run([*command, str(golden), str(pending)], check=False)
    except OSError as error:
        raise AuthorError(f"RT_DIFF: {command[0]}: {error.strerror}") from None
    return True


def _indented(lines: Sequence[str]) -> list[str]:
    return [(_MARGIN + line).rstrip() for line in lines]


def _comparable(expected: Trace, actual: Trace, matching: Matching | None) -> tuple[Trace, Trace, Matching]:
    rules = redaction_rules(expected.meta.get("redact"))
    return redacted(expected, rules), redacted(actual, rules), matching or Matching()


def _place(golden: Trace, changes: Sequence[Change]) -> str:
    """Where in the golden's file the first change is."""
    step = changes[0].step
    if not 0 < step <= len(golden.observations) or changes[0].only_in == "run":
        return str(golden.path)
    here = changes[0].category in ("tool", "wording") and golden.observations[step - 1] is not None
    return f"{golden.path}:{golden.line_of(step, observation=here)}"


def _concerned(changes: Sequence[Change], number: int | None, own: int | None) -> bool:
    """Whether a change is about this step of the golden, or of the run."""
    return any(change.step == (own if change.only_in == "run" else number) for change in changes)


def _step(trace: Trace, number: int | None) -> str:
    """A step's lines in the body, "" when there is none."""
    return "" if number is None else trace.before(number + 1)[len(trace.before(number)) :]


def _count(same: int) -> list[str]:
    return [f"@ {same} step{'s' * (same > 1)} the same"] if same else []


def _changed_lines(expected: str, actual: str) -> list[str]:
    """Two texts as lines with `-`, `+` or a blank before them; unchanged stretches are shortened."""
    one, other = _lines(expected), _lines(actual)
    lines: list[str] = []
    codes = line_changes(one, other)
    for place, (tag, i, i_end, j, j_end) in enumerate(codes):
        if tag == "equal":
            lines += _shortened(one[i:i_end], first=place == 0, last=place == len(codes) - 1)
        elif i_end - i == j_end - j == 1:
            lines += _pair(one[i], other[j])
        else:
            lines += [f"- {visible(_cut(line))}" for line in _few(one[i:i_end])]
            lines += [f"+ {visible(_cut(line))}" for line in _few(other[j:j_end])]
    if only_space_differs(expected, actual):
        cause = likely_cause(expected, actual)
        lines.append(f"^ only white space differs{': ' + cause if cause else ''}")
    return lines


def _lines(text: str) -> list[str]:
    if not text:
        return []
    return text[:-1].split("\n") if text.endswith("\n") else [*text.split("\n")[:-1], f"{text.split(chr(10))[-1]}␄"]


def _outer(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """The opcodes of a comparison that only looks for a common beginning and a common end."""
    shorter = min(len(one), len(other))
    begin = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - begin) if one[-1 - n] != other[-1 - n]), shorter - begin)
    i, j = len(one) - end, len(other) - end
    codes = [("equal", 0, begin, 0, begin), ("replace", begin, i, begin, j), ("equal", i, len(one), j, len(other))]
    return [code for code in codes if code[1] < code[2] or code[3] < code[4]]


def _shortened(lines: Sequence[str], *, first: bool, last: bool) -> list[str]:
    """Unchanged lines beside a change: a few of each end."""
    begin, end = (1 if first else _AROUND), (0 if last else _AROUND)
    left_out = len(lines) - begin - end
    if left_out <= 1:
        return _same_lines(lines)
    return [*_same_lines(lines[:begin]), f"  ... {left_out} lines the same", *_same_lines(lines[len(lines) - end :])]


def _same_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {visible(_cut(line))}".rstrip() for line in lines]


def _few(lines: Sequence[str]) -> Sequence[str]:
    return lines if len(lines) <= 20 else [*lines[:10], f"... {len(lines) - 20} more lines", *lines[-10:]]


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ... ({len(line)} characters)"


def _pair(one: str, other: str) -> list[str]:
    """One line that became another: both, and a mark under what differs."""
    everywhere = only_space_differs(one, other)
    shorter = min(len(one), len(other))
    begin = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - begin) if one[-1 - n] != other[-1 - n]), shorter - begin)
    before, after = one[:begin], one[len(one) - end :]
    if len(before) + len(after) > _LONGEST:  # the same on both sides: a few characters of it will do
        before, after = _last(before), _first(after)
    middle, own_middle = one[begin : len(one) - end], other[begin : len(other) - end]
    shown = visible(before + "\0", everywhere=everywhere)[:-1]
    lines = [f"- {visible(_cut(before + middle + after), everywhere=everywhere)}"]
    lines.append(f"+ {visible(_cut(before + own_middle + after), everywhere=everywhere)}")
    width = max(len(visible(own_middle, everywhere=True)), 1)
    return [*lines, f"^ {' ' * len(shown)}{'^' * width}"] if (shown or after) and width <= _WIDEST_MARK else lines


def _last(text: str) -> str:
    return text if len(text) <= 60 else "... " + text[-56:]


def _first(text: str) -> str:
    return text if len(text) <= 60 else text[:56] + " ..."


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-c", "core.quotepath=false", *arguments],
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
