"""Two runs -> their steps beside each other, line by line, with what differs within a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from .diff import headline, line_changes, visible
from .match import Change, aligned, call, only_space_differs
from .matching import Matching
from .pieces import shown
from .trace import Trace

_AROUND = 3  # unchanged lines that are shown beside a change
_FEWEST = 8  # unchanged lines that are worth leaving out


@dataclass(frozen=True)
class Cell:
    """A line of one side; `changed` is the part of it that the other side has not."""

    before: str
    changed: str = ""
    after: str = ""


@dataclass(frozen=True)
class Row:
    """A line of each side, None where one has none; `left_out` lines that are the same stand here when it is not 0."""

    left: Cell | None = None
    right: Cell | None = None
    same: bool = False
    left_out: int = 0


@dataclass(frozen=True)
class Pair:
    """Two steps that stand beside each other, or the questions. `changes` are what the comparison says of them."""

    title: str
    rows: Sequence[Row]
    changes: Sequence[str] = ()
    same: bool = True


def side_by_side(one: Trace, other: Trace, changes: Sequence[Change], names: tuple[str, str]) -> list[Pair]:
    """The questions and the steps of two runs, aligned as `diff` aligns them."""
    pairs = [Pair("question", rows(one.task, other.task), same=one.task == other.task)]
    for number, own in aligned(one, other, Matching()):
        left, right = _lines(one, number), _lines(other, own)
        concerned = [c.message for c in changes if c.step and c.step == (own if c.only_in == "run" else number)]
        step = one.steps[number - 1] if number else other.steps[(own or 1) - 1]
        title = headline(number, own, names)
        title = title if number is None or own is None else f"{title}: {call(step)}"
        pairs.append(Pair(shown(title), rows(left, right), [shown(text) for text in concerned], left == right))
    return pairs


def rows(left: str, right: str) -> list[Row]:
    """Two texts line by line."""
    one, other = _split(left), _split(right)
    found: list[Row] = []
    for tag, i, i_end, j, j_end in line_changes(one, other):
        if tag == "equal":
            found += _equal(one[i:i_end])
        else:
            found += (_changed(a, b) for a, b in zip_longest(one[i:i_end], other[j:j_end]))
    return found


def _equal(lines: Sequence[str]) -> Iterator[Row]:
    left_out = len(lines) - 2 * _AROUND if len(lines) >= 2 * _AROUND + _FEWEST else 0
    for place, line in enumerate(lines):
        if left_out and place == _AROUND:
            yield Row(same=True, left_out=left_out)
        if not left_out or not _AROUND <= place < len(lines) - _AROUND:
            yield Row(Cell(shown(line)), Cell(shown(line)), same=True)


def _changed(one: str | None, other: str | None) -> Row:
    if one is None or other is None:
        return Row(_whole(one), _whole(other))
    everywhere = only_space_differs(one, other)
    shorter = min(len(one), len(other))
    begin = next((n for n in range(shorter) if one[n] != other[n]), shorter)
    end = next((n for n in range(shorter - begin) if one[-1 - n] != other[-1 - n]), shorter - begin)
    if 4 * (begin + end) < max(len(one), len(other)):  # a mark on nearly everything would say nothing
        return Row(_whole(one), _whole(other))
    left, right = (_parts(line, begin, len(line) - end, everywhere=everywhere) for line in (one, other))
    return Row(left, right)


def _parts(line: str, start: int, end: int, *, everywhere: bool) -> Cell:
    """A line in three parts. Only its own end is the end of a line, where blanks become visible."""
    before, changed = (visible(part + "\0", everywhere=everywhere)[:-1] for part in (line[:start], line[start:end]))
    return Cell(before, changed, visible(line[end:], everywhere=everywhere))


def _whole(line: str | None) -> Cell | None:
    return None if line is None else Cell(visible(line))


def _split(text: str) -> list[str]:
    return text.split("\n") if text else []


def _lines(trace: Trace, number: int | None) -> str:
    if number is None:
        return ""
    return "\n".join(filter(None, trace.shown(number)))
