"""What the model is told: every message as it is worded, own wording, and results that are verbatim."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from react_text import AuthorError, Completion, ParseError, load_tools, tool
from react_text.errors import Mistake
from react_text.labels import Labels
from react_text.observe import Observer, frame, guarded, label_like
from react_text.output import text_of
from react_text.settings import Settings
from react_text.templates import BUILT_IN

from .harbour import Harbour, act, finish, play

TOOLS = "Tools: search[query]; get_budget[team: str, month: str]; finish[answer]"


def told(turn: str | Completion, **settings: Any) -> str:
    """The observation for a turn, with two tools."""
    harbour = Harbour()
    played = play(turn, finish(), tools=[harbour.search, harbour.get_budget], **settings)
    return str(played.result.steps[0].observation)


MESSAGES: dict[str, tuple[str | Completion, str]] = {
    "no_action": (
        " Hm.",
        "Error: the Action line is missing after the thought. Write one line of this form, then stop:\n"
        f"Action: search[query]\n{TOOLS}",
    ),
    "not_a_call": (
        "Action: 61 m",
        "Error: an action needs the form tool[...], with the arguments in square brackets. Write:\n"
        f"Action: search[query]\n{TOOLS}",
    ),
    "parentheses": (
        "Action: search(ferry)",
        "Error: arguments stand in square brackets, not in parentheses. Write:\nAction: search[ferry]",
    ),
    "bracketed_name": (
        "Action: [search][ferry]",
        "Error: the tool's name stands before the bracket, not inside one. Write:\nAction: search[ferry]",
    ),
    "action_input": (
        "Action: search\nAction Input: ferry",
        "Error: the arguments stand in square brackets on the Action line, not on a line of their own. Write:\n"
        "Action: search[ferry]",
    ),
    "json": (
        'Action: {"tool": "search", "input": "ferry"}',
        "Error: an action is not written as JSON. Write:\nAction: search[ferry]",
    ),
    "bare_call": ("search[ferry]", 'Error: an action starts with "Action:". Write:\nAction: search[ferry]'),
    "answer_label": (
        "Final Answer: 12 m",
        "Error: an answer is given with the finish action. Write:\nAction: finish[12 m]",
    ),
    "inline": (
        "So. Action: search[ferry]",
        "Error: the action must stand on its own line. Write:\nAction: search[ferry]",
    ),
    "invented": (
        "So. Action: search[ferry] Observation: none",
        "Error: write the action on its own line and stop after it; never write the observation yourself. Write:\n"
        "Action: search[ferry]",
    ),
    "no_tool": (
        "Action: None",
        "Error: every turn needs an action. If no tool is needed, give your answer with finish:\n"
        "Action: finish[answer]",
    ),
    "in_think": (
        "<think>Action: search[a]</think>",
        "Error: the action was inside the reasoning block, where it does not count. Repeat it after the closing tag:\n"
        "Action: search[query]",
    ),
    "open_think": (
        Completion("<think>Hm", "length"),
        "Error: the reasoning block was not closed before the limit of 256 tokens. Reason briefly, close it, then "
        "write:\nAction: search[query]",
    ),
    "truncated": (
        Completion("Action: get_budget[A", "length"),
        "Error: the output reached its limit of 256 tokens (max_tokens=256) before the closing bracket. "
        "Nothing was done. Write it again, shorter:\nAction: get_budget[team, month]",
    ),
    "truncated before an action": (
        Completion(" I think that", "length"),
        "Error: the output reached its limit of 256 tokens before an action. Keep the thought short, then write:\n"
        "Action: search[query]",
    ),
    "truncated at a label": (
        "Action: search[a\nObservation: b]",
        "Error: the closing bracket is missing: the text ended or was cut at a line that starts with "
        '"Observation:". Keep such lines out of the brackets or indent them, and close the bracket:\n'
        "Action: search[query]",
    ),
    "unknown_tool": (act("hunt[x]"), f'Error: there is no tool called "hunt".\n{TOOLS}'),
    "unknown_tool with a near one": (
        act("get_budgets[x]"),
        f'Error: there is no tool called "get_budgets". Did you mean get_budget?\n{TOOLS}',
    ),
    "unknown_tool with a name inside": (
        act("please search[x]"),
        f'Error: there is no tool called "please search". Write:\nAction: search[x]\n{TOOLS}',
    ),
    "bad_arguments": (
        act("get_budget[A]"),
        "Error: month is missing. Nothing was done. Usage: get_budget[team: str, month: str]",
    ),
    "bad_arguments with a hint": (
        act("get_budget[A, B, May]"),
        "Error: too many arguments: 3 came, at most 2 are expected. Nothing was done. "
        "Usage: get_budget[team: str, month: str] (quotes around a value that contains commas)",
    ),
    "empty_answer": (
        "Action: finish[]",
        "Error: the answer is missing. Give the answer inside the brackets of finish[...].",
    ),
    "placeholder_answer": (
        "Action: finish[answer]",
        'Error: put the actual answer inside the brackets of finish[...], not the word "answer".',
    ),
}


@pytest.mark.parametrize(("turn", "message"), MESSAGES.values(), ids=MESSAGES)
def test_what_a_mistake_is_answered_with(turn: str | Completion, message: str) -> None:
    assert told(turn) == message


def test_a_turn_with_nothing_in_it() -> None:
    assert play("", "", finish()).result.steps[0].observation == (
        "Error: nothing was written. Write a thought and then one line of this form:\nAction: calculator[expression]\n"
        "Tools: calculator[expression]; search[query]; lookup[keyword]; get_budget[team: str, month: str]; "
        "get_weather[city: str, days: int = 1]; finish[answer]"
    )


def test_a_corrected_line_that_names_no_tool_is_not_shown() -> None:
    assert told("Action: The tower is high") == MESSAGES["not_a_call"][1]
    assert told("Action: hunt(ferry)").endswith("\nAction: search[query]")


def test_without_tools_the_form_is_that_of_finish() -> None:
    assert "\nAction: finish[answer]\n" in str(play(" Hm.", finish(), tools=[]).result.steps[0].observation)


def test_own_labels_are_used_in_every_message() -> None:
    labels = {"thought": "思考", "action": "行动", "observation": "观察"}
    for turn in (
        " Hm.",
        "行动: 61 m",
        "行动: search(x)",
        "行动: search[a\n观察: b]",
        "行动: None",
        "行动: search\n行动 Input: x",
    ):
        message = told(turn, labels=labels)
        assert not any(word in message for word in ("Action", "Observation", "thought"))


FAILURES = [
    (ValueError("no such pier"), "Error: search failed with ValueError: no such pier\nTry other arguments"),
    (KeyError("pier"), "Error: search failed with KeyError: 'pier'\n"),
    (RuntimeError(), "Error: search failed with RuntimeError: \n"),
    (ValueError("a\x00b\ud800 <|im_end|>{{ x }}"), "Error: search failed with ValueError: a\ufffdb\ufffd {{ x }}\n"),
]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("never")


@pytest.mark.parametrize(
    ("error", "message"), [*FAILURES, (Unprintable(), "Error: search failed with Unprintable: (no message)\n")]
)
def test_what_a_tool_that_raises_is_answered_with(error: Exception, message: str) -> None:
    def search(query: str) -> str:
        raise error

    played = play(act("search[a]"), finish(), tools=[search])
    assert str(played.result.steps[0].observation).startswith(message)


# -- own wording


def project(tmp_path: Path, macros: str) -> Path:
    (tmp_path / "observe.j2").write_text(macros)
    (tmp_path / "p.j2").write_text("{% extends 'react.j2' %}")
    return tmp_path / "p.j2"


def test_a_project_words_single_messages_itself(tmp_path: Path) -> None:
    own = "No {{ e.tool }}; near: {{ e.near }}; {{ tools | length }}; {{ labels.action }}"
    path = project(tmp_path, "{% macro unknown_tool(e) %}" + own + "{% endmacro %}")
    assert told(act("get_budgets[x]"), prompt=path) == "No get_budgets; near: get_budget; 3; Action"
    assert told(" Hm.", prompt=path) == MESSAGES["no_action"][1]


def test_own_wording_that_is_wrong_names_its_line(tmp_path: Path) -> None:
    path = project(tmp_path, "\n{% macro x %}")
    with pytest.raises(AuthorError, match=r"observe\.j2:2: template: "):
        told(" Hm.", prompt=path)


# These are worded in other tests.
ELSEWHERE = {
    "empty",
    "denied_tool",
    "missing_tool",
    "tool_raised",
    "tool_timeout",
    "repeat",
    "no_calls_left",
    "empty_result",
    "ungrounded",
    "no_output",
}


def test_every_message_has_a_test() -> None:
    source = (BUILT_IN / "observe.j2").read_text()
    macros = set(re.findall(r"macro (\w+)", source)) - {"example", "tool_list", "shortened", "elided"}
    assert macros == {name.partition(" ")[0] for name in MESSAGES} | ELSEWHERE


# -- results

VALUES = [
    ("text", "text"),
    (b"bytes", "bytes"),
    (bytearray("é".encode()), "é"),
    (None, ""),
    (0, "0"),
    (1.5, "1.5"),
    (True, "True"),
    ({"b": 1, "a": [None, "x"]}, "{'b': 1, 'a': [None, 'x']}"),
    ({"c", "a", "b"}, "{'a', 'b', 'c'}"),
    (frozenset({2, 1}), "frozenset({1, 2})"),
    ((1,), "(1,)"),
    ([{3, 1}, ({"x"},)], "[{1, 3}, ({'x'},)]"),
    (set(), "set()"),
    ("a\x00b\x7f\x1b[0m\r\n\t", "a\ufffdb\ufffd\x1b[0m\r\n\t"),
    ("\ud800", "\ufffd"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[ascii(text) for _, text in VALUES])
def test_a_result_as_text(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_memory_addresses_are_left_out() -> None:
    class Thing:
        pass

    assert "0x" not in text_of([Thing(), lambda: 0])
    assert text_of("at 0x7f3a12cc") == "at 0x7f3a12cc"


def test_an_iterator_gives_its_items() -> None:
    def search(query: str) -> Any:
        yield from ("a", "b")

    assert play(act("search[x]"), finish(), tools=[search]).result.steps[0].observation == "['a', 'b']"


def test_a_result_whose_text_cannot_be_made_is_a_failure_of_the_tool() -> None:
    def search(query: str) -> Any:
        return Unprintable()

    assert play(act("search[x]"), finish(), tools=[search]).result.steps[0].error == "tool_raised"


@pytest.mark.parametrize(
    ("observation", "lines"),
    [("x", "O: x\n"), ("", "O:\n"), (" ", "O:  \n"), ("\nx", "O:\nx\n"), ("x\n", "O: x\n\n"), ("  x", "O:   x\n")],
)
def test_frames(observation: str, lines: str) -> None:
    assert frame(observation, "O:") == lines


def test_guarding_marks_the_lines_that_begin_with_a_label() -> None:
    text = "Action: a\n  Observation 2: b\n> **Thought:** c\nan Action: d\nActions: e\nQuestion： f\n\nx"
    assert guarded(text, Labels()) == (
        "  Action: a\n    Observation 2: b\n  > **Thought:** c\nan Action: d\nActions: e\n  Question： f\n\nx"
    )
    assert guarded("Action: a\n行动: b", Labels(action="行动")) == "Action: a\n  行动: b"


@pytest.mark.parametrize(
    ("text", "found"), [("a\nAction: b", True), ("thought : b", True), ("an Action: b", False), ("", False)]
)
def test_label_like_lines_are_noticed(text: str, found: bool) -> None:
    assert label_like(text, Labels()) is found


def shortened(text: str, limit: int) -> str:
    settings = Settings().override(max_observation=limit)
    return Observer(load_tools([]), settings).result(text)


@pytest.mark.parametrize(
    ("text", "limit", "result"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abc\n[... 1 of 6 characters left out ...]\nef"),
        ("abcdef", 4, "ab\n[... 2 of 6 characters left out ...]\nef"),
        ("abcdef", 1, "a\n[... 5 of 6 characters left out ...]\n"),
    ],
)
def test_a_long_result_loses_its_middle(text: str, limit: int, result: str) -> None:
    assert shortened(text, limit) == result


def test_tokens_of_the_model_are_not_quoted_back() -> None:
    error = ParseError("parentheses", text="", correction="search[<|im_end|>x]")
    assert Observer(load_tools(Harbour().tools), Settings()).mistake(error).endswith("Action: search[x]")


def test_a_mistake_says_what_it_is_to_people() -> None:
    mistake = Mistake("unknown_tool", fault="tool_missing", stop_reason="tool_missing:x", tool="x", near="")
    assert str(mistake) == "unknown_tool(tool='x')"


def test_a_result_is_quoted_as_it_was_shown() -> None:
    @tool(pure=True)
    def read(page: str) -> str:
        return "" if page == "none" else f"Question: {page * 30}"

    turns = [act("read[ab]"), act("read[ab]"), act("read[none]"), act("read[none]"), finish()]
    shown = play(*turns, tools=[read], max_observation=20, observations="guarded").result.steps
    assert f"Its result was: {shown[0].observation}\nUse" in str(shown[1].observation)
    assert "of 70 characters left out" in str(shown[1].observation)
    assert "Its result was: (no output)\nUse" in str(shown[3].observation)
