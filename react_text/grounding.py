"""Answer + transcript -> which observation each number of the answer came from.

Sources are the question and what tools returned. What the engine itself said about a mistake is none, nor what the
model wrote: a number that stood in the arguments of a call and nowhere before does not become known because the tool
repeats it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .arguments import ArgumentError, Parameter, read_arguments
from .claims import Claim, Code, Date, Day, Time, claims, facts
from .claims import Claim as _Claim
from .errors import Mistake
from .nearmiss import FINISH
from .numbers import Known, Value
from .numbers import Number as _Amount
from .trace import Trace


@dataclass(frozen=True)
class Source:
    """Where a number came from. `text` is the whole question (with its label, `Trace.task`) or observation, `start` and
    `end` are offsets in it, `step` is 0 for the question. `how` says what was done to the number: `same`, `rounded`,
    `percent of a ratio`, `ratio of a percentage`, also two of them, `put together` from several."""

    where: Literal["question", "observation"]
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
    answer = _answer(trace)
    if answer is None:
        return Grounding(None, ())
    sources = Sources(trace.task)
    sources.read(trace.steps)
    return Grounding(answer, sources.trace(answer))
