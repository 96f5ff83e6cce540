"""Answers of a real model whose numbers are those seen: `grounding: decode` on llama-server.

The model has 270 million parameters and is asked at temperature 1, where it makes up numbers of all kinds.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, Options, Result, Trace, load_tools
from react_text.answer_forms import answer_form
from react_text.grammar import Grammar, TurnConstraint
from react_text.grounding import Grounding, Sources, ground
from react_text.labels import PLAIN
from react_text.models.llamacpp import LlamaCpp
from react_text.models.local import shared_server

pytestmark = pytest.mark.live

FINISHES = 20

# Two steps are made already, and their budget is used up: what follows is the answer, and many numbers are wanted.
RUNS = (
    """\
Question: Compare the quarterly revenue and costs of Brightwater in 2025, with totals, margins and growth in percent.
Thought: I start with the revenue.
Action: revenue[2025]
Observation: {'q1': 41820, 'q2': 54219.6, 'q3': 47003, 'q4': 60950, 'currency': 'EUR'}
Thought: Now the costs.
Action: costs[2025]
Observation: {'q1': 39000, 'q2': 40125.25, 'share_of_wages': 0.0844, 'code': 'L269', 'closed': '2026-02-14'}
""",
    """\
Question: List three flights from Oslo to Rome on 12 July with times, prices in dollars and the total for 2 people.
Thought: I look for flights.
Action: flights[OSL, FCO]
Observation: SK4711 leaves 07:25, arrives 10:40, $850.00; DY1872 leaves 18:05, arrives 21:15, $1,120.50
Thought: What do two people pay?
Action: calculator[2 * 850]
Observation: 1700
""",
)


EXAMPLES = [Path(__file__).parents[2] / "traces" / "cloud_spend.trace"]


def revenue(year: str) -> str:
    """Revenue of a year."""
    return ""


def costs(year: str) -> str:
    """Costs of a year."""
    return ""


def flights(start: str, end: str) -> str:
    """Flights between two airports."""
    return ""


def calculator(expression: str) -> str:
    """Arithmetic."""
    return ""


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    return LlamaCpp(shared_server().url)


def finished(model: LlamaCpp, seed: int, settings: dict[str, Any]) -> Result:
    """The last words of a run whose steps are used up."""
    trace = Trace.load(RUNS[seed % len(RUNS)].encode())
    agent = Agent(
        None, [revenue, costs, flights, calculator], model, examples=EXAMPLES, max_steps=2, on_budget="finish",
        temperature=1.0, seed=seed, options={"max_tokens": 120}, **settings,
    )  # fmt: skip
    question = trace.task.removeprefix("Question: ").removesuffix("\n")
    run = agent.steps(question, past=trace.steps)
    assert len(list(run)) == 3
    return run.result


def finishes(model: LlamaCpp, **settings: Any) -> list[Grounding]:
    """The answers of so many runs that give one; how many of their numbers have a source is printed."""
    started = time.monotonic()
    results = (finished(model, seed, settings) for seed in range(3 * FINISHES))
    answered = (result for result in results if result.answer is not None)
    found = [ground(result.trace) for result in itertools.islice(answered, FINISHES)]
    assert len(found) == FINISHES, "too many completions are cut off"
    clean = sum(not grounding.ungrounded for grounding in found)
    numbers = sum(len(grounding.numbers) for grounding in found)
    without = [number.text for grounding in found for number in grounding.ungrounded]
    print(
        f"\n{settings}: {clean} of {FINISHES} finishes hold only numbers seen; {len(without)} of {numbers} have "
        f"no source ({', '.join(without[:12])}), {time.monotonic() - started:.0f} seconds"
    )
    return found


def test_answers_hold_only_numbers_seen(model: LlamaCpp) -> None:
    found = finishes(model, grounding="decode")
    assert [grounding for grounding in found if grounding.ungrounded] == []
    assert sum(len(grounding.numbers) for grounding in found) >= FINISHES


def test_without_it_they_do_not(model: LlamaCpp) -> None:
    found = finishes(model, grounding="report", constrain="auto")
    assert any(grounding.ungrounded for grounding in found), "then the restriction would be of no use"


def test_very_many_numbers_are_not_slow(model: LlamaCpp) -> None:
    """As many spellings as a grammar may hold, which the server has to read and to follow."""
    seen = [f"{number * 7919 % 90_000 + 1000}" for number in range(1500)]
    grammar = Grammar(load_tools([revenue]), PLAIN)
    constraint = grammar.after("Action: finish[", 1, answer=answer_form(Sources(" ".join(seen)).spellings()))
    assert constraint

    def seconds(constraint: TurnConstraint | None) -> float:
        started = time.monotonic()
        options = Options(max_tokens=60, temperature=1.0, seed=1)
        model.complete("Numbers: 12, 13,\nAction: finish[", stop=["\n\n"], options=options, constraint=constraint)
        return time.monotonic() - started

    free, restricted = seconds(None), seconds(constraint)
    print(
        f"\n60 tokens at most: {free:.1f} seconds free, {restricted:.1f} with {len(constraint.gbnf)} bytes of grammar"
    )
    assert restricted < free + 20


@pytest.mark.parametrize("settings", [{}, {"constrain": "lazy", "labels": "numbered"}], ids=["whole", "lazy, numbered"])
def test_whole_turns_are_written_with_it(model: LlamaCpp, settings: dict[str, Any]) -> None:
    agent = Agent(
        tools=[calculator], model=model, grounding="decode", max_steps=3, on_budget="finish", temperature=1.0, seed=4,
        options={"max_tokens": 80}, **settings,
    )  # fmt: skip
    result = agent.run("A crate weighs 41.5 kg. What do 12 crates weigh?")
    print(f"\n{result.trace}{result.stop_reason}: {result.answer!r}, {result.ungrounded}")
    assert result.stop_reason != "llm_error" and result.warnings == ()
    assert result.ungrounded == ()
