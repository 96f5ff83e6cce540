"""Answer + transcript -> which observation each number of the answer came from.

Sources are the question, the inputs of the prompt, and what tools returned. What the engine itself said about a mistake
is none, nor what the model wrote: a number that stood in the arguments of a call and nowhere before does not become
known because the tool repeats it. A date, time or code does: it names what was looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol

from .answer_forms import answer_form
from .claims import Claim, Code, Day, Part, Time, claims, facts
from .errors import Mistake
from .forms import Form
from .numbers import Known, Origin, Value
from .numbers import Number as Amount
from .spellings import spellings
from .trace import Trace

# What the engine says about a mistake is no source, but that it repeats a result, which another run may have got.
_NO_SOURCE = re.compile(r"mistake (?!repeat)|raised |timeout ")
_ENGINE = re.compile(r"\bstep [0-9]+\b")
_INPUTS = -1  # a place beside the numbers of the steps, 0 for the question
_MOST_SPELLINGS = 1000  # of a long transcript the newest: a server has to look through them at each character
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Source:
    """Where a number came from. `text` is the whole question (with its label, `Trace.task`), the inputs as JSON, or an
    observation; `start` and `end` are offsets in it, `step` is 0 but for an observation. `how` says what was done to
    the number: `same`, `rounded`, `percent of a ratio`, `ratio of a percentage`, also two of them, or `put together`
    from several."""

    where: Literal["question", "inputs", "observation"]
    step: int
    text: str
    start: int
    end: int
    how: str = "same"


@dataclass(frozen=True)
class Number:
    """A number, date, time or code of an answer, with its offsets there; None for a `source` that is not found."""

    text: str
    start: int
    end: int
    source: Source | None


@dataclass(frozen=True)
class Grounding:
    """The numbers of an `answer`, which is None when there is none."""

    answer: str | None
    numbers: tuple[Number, ...]

    @property
    def ungrounded(self) -> tuple[Number, ...]:
        """Those without a source."""
        return tuple(number for number in self.numbers if number.source is None)


def ground(trace: Trace) -> Grounding:
    """Where the numbers of a trace's answer came from."""
    answer = trace.answer
    if answer is None:
        return Grounding(None, ())
    sources = Sources(trace.task, trace.meta.get("inputs") or {})
    return Grounding(answer, sources.read(trace.steps).trace(answer))


class Taken(Protocol):
    """A step, of a run or of a trace."""

    @property
    def arguments(self) -> str | None: ...
    @property
    def observation(self) -> str | None: ...
    @property
    def came_to(self) -> str: ...


class Grounds:
    """What a run does about the numbers of its answer: `mode` is the prompt's `grounding`."""

    def __init__(self, mode: str, question: str, inputs: Mapping[str, Any] = {}) -> None:
        self.mode = mode
        self.ungrounded: tuple[Number, ...] = ()
        self._sources = Sources(question, inputs) if mode != "off" else Sources("")

    def checked(self, answer: str, steps: Sequence[Taken], *, last: bool) -> str:
        """The answer, with its `ungrounded` numbers noted. With `observe` and `decode` the model is told once, unless
        this was its `last` turn: raises Mistake."""
        if self.mode != "off":
            found = tuple(number for number in self._sources.read(steps).trace(answer) if number.source is None)
            told = last or any(step.came_to == "mistake ungrounded" for step in steps)
            if found and not told and self.mode != "report":
                numbers = list(dict.fromkeys(number.text for number in found))
                raise Mistake("ungrounded", fault="ungrounded", stop_reason="ungrounded", numbers=numbers)
            self.ungrounded = found
        return answer

    def answer_form(self, steps: Sequence[Taken]) -> Form | None:
        """The form of an answer that holds no other numbers than those seen, None where the prompt does not want it."""
        return answer_form(self._sources.read(steps).spellings()) if self.mode == "decode" else None


class Sources:
    """What a run has been given so far: its question and inputs, and what its tools returned."""

    def __init__(self, question: str, inputs: Mapping[str, Any] = {}) -> None:
        self._texts = {0: question, _INPUTS: json.dumps(inputs, ensure_ascii=False, default=str) if inputs else ""}
        self._steps = 0
        self._spellings: dict[str, None] = {}
        self._spelled: set[int] = set()
        self._read = _Read()
        for place, text in self._texts.items():
            self._read.add(place, facts(text))

    def read(self, steps: Sequence[Taken]) -> Sources:
        """Take in the steps of the run, those that are new."""
        for number, step in enumerate(steps[self._steps :], self._steps + 1):
            self._texts[number] = step.observation or ""
            if step.observation is not None and not _NO_SOURCE.match(step.came_to):
                repeat = step.came_to.startswith("mistake ")
                said = _ENGINE.sub(_blank, step.observation) if repeat else step.observation
                self._read.add(number, self._without_echoes(facts(said), step.arguments or ""))
        self._steps = len(steps)
        return self

    def trace(self, answer: str) -> tuple[Number, ...]:
        """The numbers of an answer, with their sources."""
        found = []
        for claim in claims(answer):
            origin = self._read.find(claim)
            source = self._source(origin) if origin else None
            found.append(Number(answer[claim.start : claim.end], claim.start, claim.end, source))
        return tuple(found)

    def spellings(self) -> list[str]:
        """How an answer may write what was read, the newest last: as it stood there, and changed as far as `trace`
        still finds it."""
        for place in self._texts.keys() - self._spelled:
            found = {each: self.trace(each) for each in spellings(self._texts[place]) if each not in self._spellings}
            grounded = (each for each, numbers in found.items() if all(number.source for number in numbers))
            self._spellings.update(dict.fromkeys(grounded))
            self._spelled.add(place)
        return list(self._spellings)[-_MOST_SPELLINGS:]

    def _source(self, origin: Origin) -> Source:
        number, step = origin.number, origin.place
        how = ", ".join(origin.how) or "same"
        place: Literal["question", "inputs", "observation"] = "observation"
        if step <= 0:
            place = "inputs" if step == _INPUTS else "question"
        return Source(place, max(0, step), self._texts[step], number.start, number.end, how)

    def _without_echoes(self, found: Iterable[Claim], arguments: str) -> Iterable[Claim]:
        written = _Read()
        written.add(0, facts(arguments))
        for claim in found:
            if not isinstance(claim, Amount):
                yield claim
                continue
            readings = [
                each
                for each in claim.readings
                if not any(written.has(value) and not self._read.has(value) for value in each)
            ]
            if readings:
                yield replace(claim, readings=tuple(readings))


class _Read:
    """What was read, by what makes it the same as something else. The places of origins are the numbers of steps."""

    def __init__(self) -> None:
        self._numbers = Known()
        self._exact = Known()  # those that are not rounded
        self._dates: dict[Day, Origin] = {}  # also those that say less
        self._parts: dict[Day, Origin] = {}  # only as they were said
        self._times: dict[int, Origin] = {}
        self._codes: dict[str, Origin] = {}

    def add(self, step: int, found: Iterable[Claim]) -> None:
        for claim in found:
            if isinstance(claim, Amount):
                (self._exact if isinstance(claim, Part) else self._numbers).add([claim], step)
                continue
            origin = Origin(Amount(claim.text, claim.start, claim.end, ()), step)
            if isinstance(claim, Code):
                self._codes.setdefault(claim.key, origin)
            elif isinstance(claim, Time):
                for minute in claim.minutes:
                    self._times.setdefault(minute, origin)
            else:
                for year, month, day in claim.options:
                    self._parts.setdefault((year, month, day), origin)
                    if day is None:
                        self._parts.setdefault((None, month, None), origin)
                    for less in ((year, month, day), (None, month, day), (year, month, None), (None, month, None)):
                        self._dates.setdefault(less, origin)

    def has(self, value: Value) -> bool:
        """Whether exactly this number was read."""
        return self._numbers.holds(value) or self._exact.holds(value)

    def find(self, claim: Claim) -> Origin | None:
        """Where a claim comes from, None when it was not read."""
        if isinstance(claim, Amount):
            whole = _GROUPED.fullmatch(claim.text)  # no list: `12,400` is not 12 and 400
            readings = tuple(each for each in claim.readings if len(each) == 1 or not whole)
            return self._number(replace(claim, readings=readings))
        if isinstance(claim, Code):
            return self._codes.get(claim.key) or (self._number(claim.number) if claim.number else None)
        if isinstance(claim, Time):
            said = filter(None, map(self._times.get, sorted(claim.minutes)))
            return next(said, None) or self._together([int(digits) for digits in re.findall("[0-9]+", claim.text)])
        return next(filter(None, (self._date(*option) for option in claim.options)), None)

    def _number(self, number: Amount) -> Origin | None:
        origin = self._numbers.find(number)
        if origin is None or origin.how:
            part = self._exact.find(number)
            return part if part and not part.how else origin
        return origin

    def _date(self, year: int | None, month: int, day: int | None) -> Origin | None:
        """The origin of a date: one that says it all, or one that says a part of it and numbers for the rest."""
        if origin := self._dates.get((year, month, day)):
            return origin
        for part in ((year, month, None), (None, month, day), (None, month, None)):
            rest = [n for n, said in ((year, part[0]), (day, part[2])) if n is not None and said is None]
            if rest and part in self._parts and self._together(rest):
                return replace(self._parts[part], how=_TOGETHER)
        return self._together([n for n in (month, day, year) if n is not None])

    def _together(self, amounts: Sequence[int]) -> Origin | None:
        """The origin of the first of these numbers, if all were read on their own."""
        values = [Value(Fraction(amount)) for amount in amounts]
        found = [self._number(Amount("", 0, 0, ((value,),))) for value in values if self.has(value)]
        return replace(found[0], how=_TOGETHER) if found and found[0] and len(found) == len(values) else None


_TOGETHER = ("put together",)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
