"""An observation -> the shorter one that the prompt of a long run shows: remarks stay, payload goes.

What is kept is every line or clause with a flag, a warning, a count, a note or an error in it, and what belongs to it:
the object it is a field of, the list or text it is the key of, the block below its heading, the cells below it in a
table. It is better to keep too much: nobody reads again what was left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

_SHORT = 160  # characters of a line, object or quoted text that is kept as a whole
_LEAST = 60  # characters: to leave out fewer is not worth the mark
_BLOCK = 40  # lines below a heading that belong to it

_SAID = (
    "notes?|noted|notice|nb|caveats?|disclaimers?|limitations?|remarks?|important|attention|caution|"
    "warn|warns|warned|warnings?|deprecated|obsolete|flags?|flagged|truncated|partial|partially|incomplete|estimate[sd]?|"
    "stale|outdated|approximate|approximately|approx|provisional|preliminary|unverified|unavailable|"
    "errors?|fails?|failed|failing|failures?|exceptions?|traceback|fatal|critical|severe|invalid|denied|refused|timeout"
)
_COUNTED = (
    "counts?|counted|(?:sub)?totals?|omitted|omits?|skipped|skips?|missing|excludes?|excluded|excluding|dropped|"
    "remaining|remainder|left out|not shown|not included|not counted|timed out"
)
# A word of its own, a part of `row_count` or `totalRows`, or a number of things.
_REMARK = re.compile(
    rf"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z]))(?i:{_SAID}|{_COUNTED})(?:(?![^\W\d_])|(?=[A-Z]))"
    r"|\b\d[\d,.]{0,20} (?i:of \d|(?:\w{1,20} )?(?:more|further|others?|results?|rows?|records?|match(?:es)?|entries|"
    r"items|hits|pages|files|lines|errors|warnings)\b)"
)
_COLUMN = re.compile(rf"(?:\w{{1,30}}[_ ])?(?:{_SAID})(?:[_ ]\w{{1,30}})?", re.I)
_NOTHING = re.compile(r"|none|null|nil|false|no|off|ok|0(?:\.0*)?|n/?a|[-–—:]+", re.I)
_DELIMITERS = tuple(map(re.compile, (r"\|", r"\t", ",", ";", " {2,}")))
# Where a clause may end. The commas are those before another field or item: in a sentence they stay, and a sentence
# ends before a capital, not behind `excl.`.
_CLAUSE_END = r"\n|[.!?]\)?[ \t]+(?=[^\sa-z])|[。！？；][ \t]*|;[ \t]+|,[ \t]*(?=[\"'{\[(]|\w{1,40}[ \t]?[=:])"
_TOKEN = re.compile(
    r"(?<!\w)(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|\\.|(?P<open>[\[{])|(?P<close>[\]}])|"
    rf"(?P<end>{_CLAUSE_END})"
)
_END_IN_TEXT = re.compile(rf"{_CLAUSE_END}|\\n")
_OPENING = {"]": "[", "}": "{"}

Mark = Callable[[int], str]
"""Words the note that so many characters are left out."""


def elided(text: str, mark: Mark) -> str:
    """`text` with a mark for each stretch without a remark. The same text gives the same result."""
    kept: list[str] = []
    end = 0
    for start, stop in [*_merged(_remarks(text)), (len(text), len(text))]:
        kept += [_left_out(text[end:start], mark), text[start:stop]]
        end = stop
    return "".join(kept)


def _left_out(stretch: str, mark: Mark) -> str:
    """The mark in place of a stretch, which leaves line ends where they are."""
    if len(stretch.strip()) < _LEAST:
        return stretch
    last = stretch[-1] if stretch[-1].isspace() else ""
    return mark(len(stretch) - len(last)) + last


def _merged(spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same in order and without overlaps."""
    start = stop = 0
    for begin, end in sorted(spans):
        if begin > stop:
            yield start, stop
            start = begin
        stop = max(stop, end)
    yield start, stop


def _remarks(text: str) -> Iterator[tuple[int, int]]:
    """The spans that stay; they may overlap."""
    clauses, lines = _Clauses.of(text), _Lines(text)
    done = 0
    for match in _REMARK.finditer(text):
        if match.start() < done:
            continue
        place = clauses.at(match.start())
        begin, done = clauses.span(place)
        yield begin, done
        yield from clauses.belonging(place)
        yield from lines.belonging(match.start(), done)


@dataclass
class _Clauses:
    """A text in clauses. `ends` says where they end, `inside` the object each begins in (-1: none), `closed` where what
    opens at the end of a clause - a bracket, a long quoted text - is over."""

    ends: list[int] = field(default_factory=list)
    inside: list[int] = field(default_factory=list)
    closed: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> _Clauses:
        found = cls()
        open_at: dict[str, list[int]] = {"[": [], "{": []}

        def end(position: int) -> None:
            found.ends.append(position)
            found.inside.append(open_at["{"][-1] if open_at["{"] else -1)

        found.inside.append(-1)
        for token in _TOKEN.finditer(text):
            if token["open"]:
                open_at[token["open"]].append(token.end())
                end(token.end())
            elif token["close"] and open_at[_OPENING[token["close"]]]:
                found.closed[open_at[_OPENING[token["close"]]].pop()] = token.end()
            elif token["end"]:
                end(token.end())
            elif token["text"] and len(token["text"]) > _SHORT:
                found.closed[token.start() + 1] = token.end()
                end(token.start() + 1)
                for inner in _END_IN_TEXT.finditer(text, token.start() + 1, token.end() - 1):
                    end(inner.end())
        found.ends.append(len(text))
        return found

    def at(self, position: int) -> int:
        """The clause in which a position is."""
        return bisect_right(self.ends, position)

    def span(self, place: int) -> tuple[int, int]:
        return (self.ends[place - 1] if place else 0), self.ends[place]

    def belonging(self, place: int) -> Iterator[tuple[int, int]]:
        """What goes with a clause: the value of which it is the key, and the object it stands in, if that is short."""
        end = self.ends[place]
        if end in self.closed:
            yield end, self.closed[end]
        whole = self.inside[place]
        if whole in self.closed and self.closed[whole] - whole <= _SHORT:
            yield whole - 1, self.closed[whole]


class _Lines:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.end = len(text)
        self._table = 0  # the line at which the last table ends

    def belonging(self, position: int, clause_end: int) -> Iterator[tuple[int, int]]:
        """What goes with a remark at `position`: its line, if that is short, and the lines below that it announces."""
        number = bisect_right(self.starts, position) - 1
        line = self.lines[number]
        if len(line) <= _SHORT:
            yield self._span(number, number + 1)
        if clause_end >= min(self.starts[number + 1], self.end):
            yield self._span(number + 1, self._block(number))
        if number >= self._table and len(line) <= 4 * _SHORT:
            yield from self._rows(number)

    def _span(self, first: int, behind: int) -> tuple[int, int]:
        return self.starts[first], min(self.starts[max(first, behind)], self.end)

    def _block(self, number: int) -> int:
        """The line at which a block ends that line `number` begins: what is indented below it, else below a
        heading everything up to an empty line."""
        head = self.lines[number]
        heading = head.lstrip().startswith("#") or head.rstrip(" *_").endswith(":") or _COLUMN.fullmatch(head.strip())
        first = number + 1
        if heading and first < len(self.lines) and not self.lines[first].strip():
            first += 1
        nested = not heading or (first < len(self.lines) and _indent(self.lines[first]) > _indent(head))
        for place in range(first, min(len(self.lines), number + 1 + _BLOCK)):
            line = self.lines[place]
            if not line.strip() or (nested and _indent(line) <= _indent(head)):
                return place
        return min(len(self.lines), number + 1 + _BLOCK)

    def _rows(self, number: int) -> Iterator[tuple[int, int]]:
        """The rows of a table with something in a column of remarks, if line `number` is its header."""
        for delimiter in _DELIMITERS:
            header = _cells(delimiter, self.lines[number])
            columns = [place for place, cell in enumerate(header) if _COLUMN.fullmatch(cell)]
            if len(header) < 2 or not columns:
                continue
            for row in range(number + 1, len(self.lines)):
                self._table = row
                cells = _cells(delimiter, self.lines[row])
                if len(cells) != len(header):
                    return
                if not all(_NOTHING.fullmatch(cells[place]) for place in columns):
                    yield self._span(row, row + 1)
            return


def _cells(delimiter: re.Pattern[str], line: str) -> list[str]:
    return [cell.strip(" \t*\"'") for cell in delimiter.split(line)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
