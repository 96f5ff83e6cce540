"""The tools of cases.yaml with their calls on record, and a plain function as a model that keeps its prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from react_text import Completion, Result, react

ANSWERS = {
    "calculator": "504",
    "search": "The pier is 240 m long.",
    "lookup": "high water 12:05",
    "get_budget": "4200",
    "get_weather": "rain",
}


class Harbour:
    """Five tools; `calls` holds (name, arguments) of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @property
    def tools(self) -> list[Callable[..., str]]:
        return [self.calculator, self.search, self.lookup, self.get_budget, self.get_weather]

    def calculator(self, expression: str) -> str:
        """Work out an arithmetic expression."""
        return self._called("calculator", expression=expression)

    def search(self, query: str) -> str:
        """Search the harbour archive."""
        return self._called("search", query=query)

    def lookup(self, keyword: str) -> str:
        """Look a keyword up in the register."""
        return self._called("lookup", keyword=keyword)

    def get_budget(self, team: str, month: str) -> str:
        """The budget of a team in a month."""
        return self._called("get_budget", team=team, month=month)

    def get_weather(self, city: str, days: int = 1) -> str:
        """The forecast for a city."""
        return self._called("get_weather", city=city, days=days)

    def _called(self, name: str, **arguments: Any) -> str:
        self.calls.append((name, arguments))
        return ANSWERS[name]


class Writer:
    """`llm(prompt, stop=[...])`: writes the given turns one after the other, and keeps what it was asked."""

    def __init__(self, *turns: str | Completion) -> None:
        self.prompts: list[str] = []
        self.stops: list[list[str]] = []
        self._turns = iter(turns)

    def __call__(self, prompt: str, stop: list[str]) -> str | Completion:
        self.prompts.append(prompt)
        self.stops.append(stop)
        return next(self._turns)


@dataclass
class Played:
    """A run that is over, with all that it touched."""

    result: Result
    calls: list[tuple[str, dict[str, Any]]]
    prompts: list[str]
    stops: list[list[str]]

    @property
    def transcript(self) -> str:
        """What the run has added behind its question."""
        return self.result.trace.body.partition("\n")[2]


def play(
    *turns: str | Completion, tools: Any = None, question: str = "How long is the pier?", **settings: Any
) -> Played:
    """A run of a model that writes `turns`, on the harbour's tools unless others are given."""
    harbour, writer = Harbour(), Writer(*turns)
    result = react(question, writer, harbour.tools if tools is None else tools, **settings)
    return Played(result, harbour.calls, writer.prompts, writer.stops)


def finish(answer: str = "end") -> str:
    """A turn that ends a run."""
    return f" That is all.\nAction: finish[{answer}]"


def act(action: str) -> str:
    """A turn with one action."""
    return f" Next.\nAction: {action}"
