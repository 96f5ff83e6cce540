"""The body of a trace and its spans -> where the question, the turns and the observations begin.

Labels count at the very start of a line, exactly as the engine writes them. The question runs to the first turn, a turn
to its observation, an observation to the next turn. Where a text holds lines that look like labels, a span says how
many lines it has; what follows it must be a label again, so that a stale span cannot pass silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .errors import AuthorError
from .labels import ARROW, Labels
from .observe import frame

_CONFLICT = ("<<<<<<< ", "=======", ">>>>>>> ")


@dataclass(frozen=True)
class Spans:
    """How many lines the question, single turns and single observations (both counted from 1) have, where that has to
    be said."""

    task: int | None = None
    turns: Mapping[int, int] = field(default_factory=dict)
    observations: Mapping[int, int] = field(default_factory=dict)


NO_SPANS = Spans()


@dataclass(frozen=True)
class Row:
    """One turn: the lines (from 0) where it, its observation and what follows begin. `observation` is its number among
    the observations, 0 when it has none."""

    start: int
    result: int
    end: int
    observation: int


def lines_of(body: str) -> list[str]:
    """The lines of a body; only a newline ends one."""
    lines = body.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def find_rows(lines: Sequence[str], labels: Labels, spans: Spans) -> list[Row]:
    """The turns of a body. Raises AuthorError, whose line counts from 1 in the body."""
    starts, ends = _marks(lines, labels)

    def following(found: Sequence[bool], position: int) -> int:
        return next((i for i in range(position, len(lines)) if found[i]), len(lines))

    def behind(position: int, count: int, what: str, also: Sequence[bool] = ()) -> int:
        end = position + count
        if end > len(lines) or (end < len(lines) and not starts[end] and not (also and also[end])):
            raise AuthorError(f"{what} does not end before a label after {count} lines", line=position + 1)
        return end

    position = following(starts, 0) if spans.task is None else behind(0, spans.task, "head: the question")
    rows: list[Row] = []
    seen = 0
    while position < len(lines):
        start, turn = position, len(rows) + 1
        count = spans.turns.get(turn)
        result = following(ends, start + 1) if count is None else behind(start, count, f"turns: turn {turn}", ends)
        position, number = result, 0
        if result < len(lines) and not starts[result]:
            number = seen = seen + 1
            count = spans.observations.get(seen)
            what = f"spans: observation {seen}"
            position = following(starts, result + 1) if count is None else behind(result, count, what)
        rows.append(Row(start, result, position, number))
    for key, what, given, last in (
        ("turns", "turn", spans.turns, len(rows)),
        ("spans", "observation", spans.observations, seen),
    ):
        if given and max(given) > last:
            raise AuthorError(f"{key}: there is no {what} {max(given)}", line=1)
    return rows


def find_conflict(lines: Sequence[str], rows: Sequence[Row], spans: Spans) -> int | None:
    """The line (from 0) where the markers of a git conflict begin. Parts whose extent is declared may hold some."""
    if not any(line.startswith(_CONFLICT[0]) for line in lines):
        return None
    declared: set[int] = set(range(spans.task or 0))
    for turn, row in enumerate(rows, 1):
        if turn in spans.turns:
            declared.update(range(row.start, row.result))
        if row.observation in spans.observations:
            declared.update(range(row.result, row.end))
    begins, marker = None, 0
    for number, line in enumerate(lines):
        if number not in declared and (line == _CONFLICT[1] if marker == 1 else line.startswith(_CONFLICT[marker])):
            begins = number if begins is None else begins
            marker += 1
            if marker == len(_CONFLICT):
                return begins
    return None


def needed_spans(task: str, turns: Sequence[tuple[str, str | None]], labels: Labels, body: str) -> Spans:
    """The spans without which `body` would not be read as these parts. Raises AuthorError for parts that no spans can
    tell apart."""
    turn_spans: dict[int, int] = {}
    observation_spans: dict[int, int] = {}
    spans = Spans(task.count("\n") if any(_marks(lines_of(task), labels)[0]) else None, turn_spans, observation_spans)
    observations = 0
    for turn, (text, observation) in enumerate(turns, 1):
        lines = text.split("\n")
        starts, ends = _marks(lines, labels)
        if not starts[0]:
            raise AuthorError(f"turn {turn} does not begin with a label: {lines[0]!r}")
        runs_on = observation is None and turn < len(turns) and labels != ARROW
        if runs_on or any(ends[1:]):
            turn_spans[turn] = len(lines)
        if observation is not None:
            observations += 1
            lines = observation.split("\n")
            starts, _ = _marks(lines, labels)
            if starts[0] and labels == ARROW:
                raise AuthorError(f"observation {observations} begins like a turn: {lines[0]!r}")
            if any(starts[1:]):
                observation_spans[observations] = len(lines)
    lines = lines_of(body)
    rows = find_rows(lines, labels, spans) if _CONFLICT[0] in body else []
    while (line := find_conflict(lines, rows, spans)) is not None:
        turn, row = next(((n, row) for n, row in enumerate(rows, 1) if line < row.end), (0, None))
        if row is None or line < rows[0].start:
            spans = Spans(rows[0].start if rows else len(lines), turn_spans, observation_spans)
        elif line < row.result:
            turn_spans[turn] = row.result - row.start
        else:
            observation_spans[row.observation] = row.end - row.result
    return spans


def framed(observation: str, labels: Labels, step: int) -> str:
    """The lines of an observation in a body."""
    return f"{observation}\n" if labels == ARROW else frame(observation, labels.cue(labels.observation, step))


def unframed(text: str, labels: Labels) -> str:
    """The observation in its lines: behind the label one blank is the frame's, the rest its own."""
    found = _observation(labels).match(text)
    return text[found.end() :].removeprefix(" ") if found else text


def behind_cue(text: str, labels: Labels) -> str:
    """What the model wrote of a turn: the text behind the cue that the prompt ended in, all of it when the turn begins
    with its action."""
    cue = _thought(labels).match(text)
    return text[cue.end() :] if cue else text


def _marks(lines: Sequence[str], labels: Labels) -> tuple[list[bool], list[bool]]:
    """For each line: whether a turn can start there, and whether it ends the turn before it."""
    starts = [_turn(labels).match(line) is not None for line in lines]
    if labels == ARROW:  # a command is one line
        return starts, [True] * len(lines)
    result = _observation(labels)
    return starts, [not start and result.match(line) is not None for start, line in zip(starts, lines, strict=True)]


def _label(word: str, labels: Labels) -> str:
    return f"{re.escape(word)}{'(?: [0-9]+)?' if labels.numbered else ''}:"


@lru_cache(maxsize=64)
def _turn(labels: Labels) -> re.Pattern[str]:
    if labels == ARROW:
        return re.compile(re.escape(labels.action))
    return re.compile(f"{_label(labels.thought, labels)}|{_label(labels.action, labels)}")


@lru_cache(maxsize=64)
def _thought(labels: Labels) -> re.Pattern[str]:
    return re.compile(_label(labels.thought, labels))


@lru_cache(maxsize=64)
def _observation(labels: Labels) -> re.Pattern[str]:
    return re.compile("(?!)" if labels == ARROW else _label(labels.observation, labels))
