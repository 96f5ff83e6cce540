"""The subtasks of a plan: what a model writes, what a YAML mapping says, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from react_text import Agent, AuthorError, ScriptedModel
from react_text.answers import answer_tool, read_type
from react_text.arguments import ArgumentError
from react_text.conversion import convert
from react_text.grammar import Grammar
from react_text.labels import PLAIN
from react_text.subtasks import Subtask, salvaged, subtask_of, wrong
from react_text.tools import Toolbox

TRIP = "flights: Find flights; hotel: Find a hotel (after flights); days: Put the days together (needs hotel, flights)"


def read(text: str, kind: str = "plan") -> tuple[Subtask, ...]:
    return convert(text, read_type(kind))  # type: ignore[no-any-return]


def test_subtasks_and_what_they_wait_for() -> None:
    assert read(TRIP) == (
        Subtask("flights", "Find flights"),
        Subtask("hotel", "Find a hotel", after=("flights",)),
        Subtask("days", "Put the days together", needs=("hotel", "flights")),
    )
    assert "; ".join(map(str, read(TRIP))) == TRIP


@pytest.mark.parametrize(
    "text",
    [
        "- a: One thing.\n- b: Another (after a)\n",
        "1. a: One thing\n\n2. b: Another (after a).",
        "a: One thing; b: Another (After a)",
    ],
)
def test_lists_of_lines_are_read_as_well(text: str) -> None:
    assert read(text) == (Subtask("a", "One thing"), Subtask("b", "Another", ("a",)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("find flights", "'find flights' is not of the form `id: what to do"),
        ("a: x; a: y", "subtask 'a' is given twice"),
        ("a: x (after b)", "a waits for 'b', which is not in the plan"),
        ("a: x (after b); b: y (needs c); c: z (after a)", "these subtasks wait for one another: "),
        ("a: x (after a)", "these subtasks wait for one another: a -> a"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(text: str, problem: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(text)
    assert caught.value.problem.startswith(problem)


def test_only_the_known_subtasks_where_they_are_given() -> None:
    assert read(TRIP, "plan of flights|hotel|days") == read(TRIP)
    with pytest.raises(ArgumentError, match=r"there is no subtask 'hotels' \(did you mean hotel\?\)"):
        read("hotels: Find one", "plan of flights|hotel|days")


def test_a_wrong_plan_goes_back_to_the_model() -> None:
    turns = [" a\nAction: finish[a: x (after b)]", " b\nAction: finish[a: x; b: y (after a)]"]
    result = Agent(model=ScriptedModel(turns), answer={"subtasks": "plan"}).run("Plan it.")
    assert "a waits for 'b', which is not in the plan" in (result.steps[0].observation or "")
    assert [each.id for each in result.values["subtasks"]] == ["a", "b"]


def test_a_grammar_of_plans() -> None:
    finish = answer_tool({"subtasks": "plan of flights|hotel"})
    turn = Grammar(Toolbox().offered(None, finish), PLAIN).after("Action:", 1)
    assert turn is not None
    assert turn.accepts(" finish[flights: Find flights; hotel: Find a hotel (after flights)]")
    assert not turn.accepts(" finish[cars: Rent a car]")
    assert not turn.accepts(" finish[flights]")


@pytest.mark.parametrize(
    ("value", "subtask"),
    [
        ("Find a hotel", Subtask("hotel", "Find a hotel")),
        ({"task": "x", "after": "a", "needs": ["b"], "tools": ["t"], "max_steps": 3},
         Subtask("hotel", "x", ("a",), ("b",), ("t",), 3)),
    ],
)  # fmt: skip
def test_a_subtask_in_yaml(value: Any, subtask: Subtask) -> None:
    assert subtask_of("hotel", value) == subtask


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["x"], "subtask hotel: needs a task"),
        ({"tasks": "x"}, "subtask hotel: unknown key 'tasks' (did you mean task?)"),
        ({"max_steps": 0}, "subtask hotel: max_steps must be a whole number above 0"),
        ({"after": [1]}, "subtask hotel: after must be a list of names"),
    ],
)
def test_a_wrong_subtask_in_yaml(value: Any, message: str) -> None:
    with pytest.raises(AuthorError) as caught:
        subtask_of("hotel", value)
    assert str(caught.value).startswith(message)


def test_a_plan_without_fault() -> None:
    assert wrong(read(TRIP)) == ""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a: One thing (after a, b, z); b: Another (needs a)", "a: One thing; b: Another"),
        ("a: One thing; find it; c: More (after a, z); a: Again", "a: One thing; c: More (after a)"),
        ("nothing of the kind", ""),
    ],
)
def test_what_can_be_used_of_a_wrong_plan(text: str, kept: str) -> None:
    assert "; ".join(map(str, salvaged(text))) == kept


def test_only_known_subtasks_are_used_of_a_wrong_plan() -> None:
    assert [each.id for each in salvaged("a: One thing; x: Another", ["a", "b"])] == ["a"]
