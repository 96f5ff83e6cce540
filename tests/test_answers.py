"""Typed answers: `answer:` in a prompt makes `finish[...]` an action whose arguments convert."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, ScriptedModel
from react_text.answers import answer_tool, read_type
from react_text.conversion import convert
from react_text.grammar import Grammar
from react_text.labels import PLAIN
from react_text.tools import Toolbox

FIELDS = {"city": "str", "days": "int from 1 to 30 or None", "tags": "list of str or None", "when": "date or None"}


def run(*turns: str, answer: Any = FIELDS, **settings: Any) -> Any:
    return Agent(model=ScriptedModel(turns), answer=answer, **settings).run("Where to?")


def test_the_fields_of_an_answer_are_converted() -> None:
    result = run(" I know.\nAction: finish[city=Bergen, days=3, tags=[rain, fish], when=2026-10-03]")
    assert result.ok
    assert result.answer == "city=Bergen, days=3, tags=[rain, fish], when=2026-10-03"
    assert result.values == {
        "city": "Bergen",
        "days": 3,
        "tags": ["rain", "fish"],
        "when": datetime.date(2026, 10, 3),
    }


def test_a_field_that_may_be_none_need_not_be_given() -> None:
    assert run(" I know.\nAction: finish[city=Bergen]").values == {
        "city": "Bergen", "days": None, "tags": None, "when": None,
    }  # fmt: skip


def test_lines_are_fields_too() -> None:
    assert run(" I know.\nAction: finish[\ncity: Bergen\ndays: null\n]").values["days"] is None


def test_a_field_that_does_not_fit_is_an_observation() -> None:
    result = run(" a\nAction: finish[city=Bergen, days=99]", " b\nAction: finish[city=Bergen, days=9]")
    assert result.ok and result.values["days"] == 9
    assert "days must be int (a whole number) from 1 to 30 or None, not '99'" in result.steps[0].observation
    assert "Usage: finish[city: str, days: int from 1 to 30 or None" in result.steps[0].observation


def test_the_tool_list_of_the_prompt_and_of_errors_shows_the_fields() -> None:
    result = run(" a\nAction: search[x]", " b\nAction: finish[city=Bergen]")
    assert "finish[city: str, days: int from 1 to 30 or None = None" in result.steps[0].observation


def test_a_plain_answer_has_no_fields() -> None:
    result = Agent(model=ScriptedModel([" a\nAction: finish[42]"])).run("?")
    assert (result.answer, result.values) == ("42", {})


def test_the_grammar_lets_only_such_answers_through() -> None:
    grammar = Grammar(Toolbox().offered(None, answer_tool(FIELDS)), PLAIN)
    turn = grammar.after("Thought:", 1)
    assert turn is not None
    assert turn.accepts(" I know.\nAction: finish[city=Bergen, days=3]")
    assert not turn.accepts(" I know.\nAction: finish[city=Bergen, days=31]")
    assert not turn.accepts(" I know.\nAction: finish[]")


@pytest.mark.parametrize(
    ("text", "written", "value"),
    [
        ("int at least 2", "2", 2),
        ("float at most 1.5", "1.5", 1.5),
        ("a|b c", "b c", "b c"),
        (r"str matching [A-Z]{3}", "OSL", "OSL"),
        ("date or None", "none", None),
        ("list of int", "[1, 2]", [1, 2]),
    ],
)
def test_types_are_written_as_in_usage_lines(text: str, written: str, value: Any) -> None:
    assert convert(written, read_type(text)) == value


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("{days: integer}", "answer: days: unknown type 'integer' (did you mean int?)"),
        ("{days: int from 1 to many}", "answer: days: 'many' is not a number"),
        ("{a b: int}", "answer: 'a b' cannot be the name of a field"),
        ("{code: 'str matching ['}", "answer: code: not a regular expression"),
        ("int", "answer must be a mapping of names to values"),
    ],
)
def test_a_type_that_is_none_is_the_authors_error(tmp_path: Path, answer: str, message: str) -> None:
    path = tmp_path / "p.j2"
    path.write_text(f'---\nquestion: "?"\nanswer: {answer}\n---\n{{% extends "react.j2" %}}\n', encoding="utf-8")
    with pytest.raises(AuthorError) as caught:
        Agent(path, model=ScriptedModel([]))
    assert str(caught.value).startswith(f"{path}:3: {message}")
