"""Steps of a trace -> the same with what the engine says to each today: a run whose tools answer as they did."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import AuthorError, Mistake, ParseError
from ..gateway import Gateway
from ..grounding import Grounds
from ..labels import Labels
from ..nearmiss import FINISH
from ..observe import Observer
from ..parse import Turn, parse_turn
from ..recorded import given
from ..settings import Settings
from ..tools import Tool, Toolbox, make_tool
from ..trace import Trace, TraceStep

_LONGEST_COMPARED = 500


@dataclass(frozen=True)
class View:
    """One step of a trace as the rules see it.

    `turn` is what the text of the body says, None when it holds no readable action; `verdict` what the engine would
    tell the model today, None when it takes the turn; `expected` the words for that. `answer` is the answer of a turn
    that finishes.
    """

    number: int
    step: TraceStep
    turn: Turn | None
    verdict: Mistake | None = None
    expected: str | None = None
    answer: str | None = None

    @property
    def finishes(self) -> bool:
        return self.answer is not None

    @cached_property
    def notice(self) -> bool:
        """Whether the observation is the engine's answer to a mistake, in today's words or in older ones."""
        observation = self.step.observation
        if self.verdict is None or observation is None:
            return self.step.outcome.startswith("mistake ")
        return self.step.outcome.startswith("mistake ") or _similar(observation, self.expected or "")

    @property
    def says(self) -> str:
        """What the model says in this turn beside calling a tool: its thought, and the answer it gives. A turn without
        a thought says it with its action."""
        if self.turn is None or not self.turn.thought:
            return self.step.text
        return f"{self.turn.thought} {self.turn.action.arguments}" if self.finishes else self.turn.thought


def views_of(trace: Trace, settings: Settings, tools: Toolbox, folder: Path | None) -> Iterator[View]:
    """The steps of a trace. `folder` may hold the wording of a project (`observe.j2`)."""

    def world(tool: Tool, arguments: Mapping[str, Any], step: int) -> str:
        return given(trace.steps[step - 1].outcome, trace.steps[step - 1].observation or "", tool.name)

    gateway = Gateway(tools, settings, world=world)
    observer = Observer(gateway.allowed, settings, folder, recorded=True)
    refused = any(step.outcome == "mistake ungrounded" for step in trace.steps)
    grounds = Grounds("observe" if refused else "off", trace.task)
    lenient = [*gateway.allowed, FINISH] if settings.lenient else ()
    for number, step in enumerate(trace.steps, 1):
        verdict: Mistake | None = None
        answer: str | None = None
        try:
            truncated = step.finish == "length"
            turn = parse_turn(step.completion, labels=trace.labels, truncated=truncated, lenient=lenient)
            if gateway.is_finish(turn.action):
                last = number == len(trace.steps)
                answer = grounds.checked(gateway.answer(turn.action), trace.steps[: number - 1], last=last)
            else:
                gateway.call(turn.action, number)
        except Mistake as mistake:
            verdict = mistake
        expected = observer.mistake(verdict) if verdict else None
        yield View(number, step, _turn(step.text, trace.labels), verdict, expected, answer)


def stand_ins(names: Sequence[str]) -> Toolbox:
    """Tools of which only the names are known. They take anything."""

    def anything(text: str = "") -> str:
        return text

    box: list[Tool] = []
    for name in dict.fromkeys(names):
        try:
            made = make_tool(anything, name)
            Toolbox([*box, made])
        except AuthorError:
            continue  # finish, or another spelling of a name that is there
        box.append(made)
    return Toolbox(box)


def _turn(text: str, labels: Labels) -> Turn | None:
    try:
        return parse_turn(text, labels=labels)
    except ParseError:
        return None


def _similar(observation: str, expected: str) -> bool:
    """Whether an observation is the engine's remark, be it in older words."""
    one, other = observation[:_LONGEST_COMPARED], expected[:_LONGEST_COMPARED]
    return one == other or difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() > 0.5
