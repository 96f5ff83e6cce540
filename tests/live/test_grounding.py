"""Answers of a real model whose numbers are those seen: `grounding: decode` on llama-server.

The model has 270 million parameters and is asked at temperature 1, where it makes up numbers of all kinds.
"""

from __future__ import annotations

import time

import pytest

from react_text import Agent, Result, Trace
from react_text.grounding import ground
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


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    return LlamaCpp(shared_server().url)


def finished(model: LlamaCpp, seed: int, **settings: object) -> Result:
    """The last words of a run whose steps are used up."""
    trace = Trace.load(RUNS[seed % len(RUNS)].encode())

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

    agent = Agent(
        None, [revenue, costs, flights, calculator], model, max_steps=2, on_budget="finish",
        temperature=1.0, seed=seed, options={"max_tokens": 120}, **settings,
    )  # fmt: skip
    question = trace.task.removeprefix("Question: ").removesuffix("\n")
    run = agent.steps(question, past=trace.steps)
    assert len(list(run)) == 3
    return run.result


def rate(model: LlamaCpp, **settings: object) -> list[Result]:
    """So many finishes; how many of their numbers have a source is printed."""
    started = time.monotonic()
    results = [finished(model, seed, **settings) for seed in range(FINISHES)]
    found = [ground(result.trace) for result in results if result.answer is not None]
    clean = [grounding for grounding in found if not grounding.ungrounded]
    numbers = sum(len(grounding.numbers) for grounding in found)
    without = [number.text for grounding in found for number in grounding.ungrounded]
    print(
        f"\n{settings}: {len(found)} of {FINISHES} finish, {len(clean)} with only numbers seen; {len(without)} of "
        f"{numbers} numbers have no source ({', '.join(without[:12])}), {time.monotonic() - started:.0f} seconds"
    )
    return results


def test_answers_hold_only_numbers_seen(model: LlamaCpp) -> None:
    for result in rate(model, grounding="decode"):
        assert result.stop_reason == "max_steps"
        print(repr(result.answer), result.ungrounded)


def test_without_it_they_do_not(model: LlamaCpp) -> None:
    results = rate(model, grounding="report", constrain="auto")
    assert any(result.ungrounded for result in results), "then the restriction would be of no use"
