"""Turns of the kinds of cases.yaml that its own entries do not have, each with what the rules in its head ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from react_text import Completion, react

from .harbour import act, finish, play

MAST: dict[str, Any] = {"search": {"query": "mast"}}
WEATHER: dict[str, Any] = {"get_weather": {"city": "Vigo", "days": 2}}

# What is executed.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "several actions, in a list": ("Two look-ups:\n- Action: search[mast]\n- Action: lookup[sail]", MAST),
    "several actions, on one line": ("Action: search[mast] and then Action: finish[done]", MAST),
    "a name alone before the action": ("Action: search\nThought: no, with words.\nAction: search[mast]", MAST),
    "an answer label before an action": ("Final Answer: 8 m\nAction: search[mast]", MAST),
    "a near miss in a fence before the action": (
        "Not like this:\n```\nAction: search(rope)\n```\nAction: search[mast]",
        MAST,
    ),
    "a fence with a language below the label": ("Action:\n```text\nsearch[mast]\n```", MAST),
    "two fences": ("```\nThought: x\n```\n```tool\nAction: search[mast]\n```", MAST),
    "another reasoning tag": ("<thinking>\nAction: search[sail]\n</thinking>\nAction: search[mast]", MAST),
    "a reasoning tag with a prefix": ("<seed:think>Action: lookup[sail]</seed:think>\nAction: search[mast]", MAST),
    "a tag that a sentence names": ("The <reasoning> tag is not for me.\nAction: search[mast]", MAST),
    "a number behind a sign": ("Thought #2: x\nAction #2: search[mast]\nObservation #2: 9 m", MAST),
    "ideographic spaces": ("\u3000Action\u3000：\u3000search\u3000[mast]", MAST),
    "no-break spaces": ("\xa0Action\xa0: search\xa0[mast]\n\xa0Observation\xa0: 9 m", MAST),
    "a byte order mark": ("\ufeffAction: search[mast]", MAST),
    "a begin-of-text token": ("<s>Action: search[mast]</s>", MAST),
    "a begin-of-text token in bars": ("<|begin_of_text|>Action: search[mast]", MAST),
    "the header of a turn": ("<|start_header_id|>assistant<|end_header_id|>\n\nAction: search[mast]<|eot_id|>", MAST),
    "the beginning of a turn": ("<|im_start|>assistant\nAction: search[mast]<|im_end|>", MAST),
    "a reasoning tag in brackets": ("[THINK]\nAction: lookup[sail]\n[/THINK]\nAction: search[mast]", MAST),
    "a block inside a block": ("<think>a<think>b</think>\nsail</think>\nAction: search[mast]", MAST),
    "the channels of a raw harmony text": (
        "<|channel|>analysis<|message|>Action: lookup[sail]<|end|><|start|>assistant<|channel|>final<|message|>"
        "Thought: x\nAction: search[mast]<|return|>",
        MAST,
    ),
    "brackets that Markdown escapes": (r"Action: search\[mast\]", MAST),
    "an apostrophe in single quotes": ("Action: search['the keeper's log']", {"search": {"query": "the keeper's log"}}),
    "triple quotes": ('Action: search["""mast"""]', MAST),
    "a comma and quotes in triple quotes": (
        'Action: get_budget["""A "b", c""", May]',
        {"get_budget": {"team": 'A "b", c', "month": "May"}},
    ),
    "triple quotes in JSON": (
        'Action: get_budget[{"team": """A "b"\nc""", "month": "May"}]',
        {"get_budget": {"team": 'A "b"\nc', "month": "May"}},
    ),
    "names in another case": ("Action: get_weather[City=Vigo, Days=2]", WEATHER),
    "keys in another case": ('Action: get_weather[{"City": "Vigo", "DAYS": 2}]', WEATHER),
    "names with full-width colons": ("Action：get_weather［city：Vigo，days：2］", WEATHER),
    "null for a default": (
        'Action: get_weather[{"city": "Vigo", "days": null}]',
        {"get_weather": {"city": "Vigo", "days": 1}},
    ),
    "None for a default": ("Action: get_weather[Vigo, days=None]", {"get_weather": {"city": "Vigo", "days": 1}}),
    "a minus sign": ("Action: get_weather[Vigo, −2]", {"get_weather": {"city": "Vigo", "days": -2}}),
    "names with colons": ("Action: get_weather[city: Vigo, days: 2]", WEATHER),
    "JSON without braces": ('Action: get_weather["city": "Vigo", "days": 2]', WEATHER),
    "JSON in a fence": ('Action: get_weather[```json\n{"city": "Vigo", "days": 2}\n```]', WEATHER),
    "JSON with typographic quotes": ("Action: get_weather[{“city”: “Vigo”, “days”: 2}]", WEATHER),
    "JSON with a comma too many": ('Action: get_weather[{"city": "Vigo", "days": 2,}]', WEATHER),
    "a colon in a text by position": (
        "Action: get_budget[team: A, May]",
        {"get_budget": {"team": "team: A", "month": "May"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(("turn", "calls"), CALLS.values(), ids=CALLS)
def test_is_executed(turn: str, calls: dict[str, Any], lenient: bool) -> None:
    played = play(turn, finish(), lenient=lenient)
    assert played.calls == list(calls.items())
    assert played.result.answer == "end"
    for text in ("sail", "9 m", "<|", "<s>", "</s>", "\ufeff"):
        assert text not in played.transcript


# The kind of the mistake, and the line that its observation shows; with `lenient`, what is executed instead.
MISTAKES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "an answer in bold": ("**Final Answer:** 9 m", "answer_label", "finish[9 m]", {}),
    "an answer as an action": ("Action: Final Answer: 9 m", "answer_label", "finish[9 m]", {}),
    "an answer as an input": ("Action: Final Answer\nAction Input: 9 m", "action_input", "finish[9 m]", {}),
    "an answer in JSON": ('Action: {"action": "Final Answer", "action_input": "9 m"}', "json", "finish[9 m]", {}),
    "an input in bold": ("**Action:** search\n**Action Input:** mast", "action_input", "search[mast]", MAST),
    "an input in a fence": ("Action: search\nAction Input:\n```\nmast\n```", "action_input", "search[mast]", MAST),
    "an input on the same line": ("Action: search, Action Input: mast", "action_input", "search[mast]", MAST),
    "another label for the input": ("Action: search\nInput: mast", "action_input", "search[mast]", MAST),
    "full-width parentheses": ("Action：search（mast）", "parentheses", "search[mast]", MAST),
    "JSON in a fence below the label": (
        'Action:\n```json\n{"action": "search", "action_input": "mast"}\n```\nObservation: x',
        "json",
        "search[mast]",
        MAST,
    ),
    "JSON without a label": ('```json\n{"tool": "search", "input": "mast"}\n```', "json", "search[mast]", MAST),
    "JSON in a tag": (
        '<tool_call>\n{"name": "search", "arguments": {"query": "mast"}}\n</tool_call>',
        "json",
        'search[{"query": "mast"}]',
        MAST,
    ),
    "JSON behind a tag": (
        'Action: <tool_call>{"name": "search", "arguments": {"query": "mast"}}</tool_call>',
        "json",
        'search[{"query": "mast"}]',
        MAST,
    ),
    "JSON in a list": ('[TOOL_CALLS] [{"name": "search", "arguments": "mast"}]', "json", "search[mast]", MAST),
    "JSON in JSON": (
        '{"thought": "x", "action": {"tool": "search", "tool_input": "mast"}}',
        "json",
        "search[mast]",
        MAST,
    ),
    "a call in JSON": ('{"thought": "x", "action": "search[mast]"}', "json", "search[mast]", MAST),
    "parentheses below the label": ("Action:\n```python\nsearch(mast)\n```", "parentheses", "search[mast]", MAST),
    "arguments on the next line": ("Action: search\nArguments: mast", "action_input", "search[mast]", MAST),
    "a tool's input": ("Action: search\nTool Input: mast", "action_input", "search[mast]", MAST),
    "the call again as its input": ("Action: search\nAction Input: search[mast]", "action_input", "search[mast]", MAST),
    "an answer below a heading": ("### Final Answer\n9 m", "answer_label", "finish[9 m]", {}),
    "an answer in a tag": ("<answer>9 m</answer>", "answer_label", "finish[9 m]", {}),
    "a label without a colon": ("Action search[mast]", "bare_call", "search[mast]", MAST),
    "a dash for a colon": ("Action - search[mast]", "bare_call", "search[mast]", MAST),
    "near misses in one fence": (
        "```\nAction: search(mast)\nAction: finish[9 m]\n```",
        "parentheses",
        "search[mast]",
        MAST,
    ),
    "a prefix with a dot": ("Action: functions.search[mast]", "unknown_tool", "search[mast]", MAST),
    "a name in quotes": ('Action: "search"[mast]', "unknown_tool", "search[mast]", MAST),
    "a call in quotes": ("Action: 'search[mast]'", "unknown_tool", "search[mast]", MAST),
    "a colon behind the name": ("Action: search: [mast]", "unknown_tool", "search[mast]", MAST),
}


@pytest.mark.parametrize(("turn", "kind", "line", "calls"), MISTAKES.values(), ids=MISTAKES)
def test_is_answered_with_the_line_to_write(turn: str, kind: str, line: str, calls: dict[str, Any]) -> None:
    played = play(turn, finish())
    step = played.result.steps[0]
    assert (played.calls, step.error, played.result.answer) == ([], kind, "end")
    assert f"Action: {line}" in (step.observation or "").split("\n")
    executed = play(turn, finish(), lenient=True)
    assert executed.calls == list(calls.items())
    assert executed.result.answer == ("end" if calls else "9 m")


@pytest.mark.parametrize(
    ("turn", "line"),
    [
        ("Action: get weather[Vigo]", "get_weather[Vigo]"),
        (r"Action: get\_weather[Vigo]", "get_weather[Vigo]"),
        ("Action: search tool[mast]", "search[mast]"),
        ("Action: Final Answer[9 m]", "finish[9 m]"),
        ("Action: search\n[mast]", "search[mast]"),
        ("Action: search -> mast", "search[mast]"),
        ('Action: search{"query": "mast"}', 'search[{"query": "mast"}]'),
        ("Tool: search[mast]", "search[mast]"),
        ("行动：search[mast]", "search[mast]"),
        ("<action>search[mast]</action>", "search[mast]"),
        # The form of the tool that was named, where its arguments are not known.
        ("Action: search", "search[query]"),
        ("Action: **get_weather**", "get_weather[city, days]"),
        ("Action: search(mast", "search[query]"),
        ("Action: finish", "finish[answer]"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_guess_is_shown_and_never_made(turn: str, line: str, lenient: bool) -> None:
    played = play(turn, finish(), lenient=lenient)
    assert (played.calls, played.result.answer) == ([], "end")
    assert f"Action: {line}" in (played.result.steps[0].observation or "").split("\n")


@pytest.mark.parametrize(
    "written",
    ["Not needed", "No further action needed.", "—", "(none)", "[None]", "None, since I know it", "无", "no tools"],
)
def test_no_tool(written: str) -> None:
    step = play(f"I know.\nAction: {written}", finish()).result.steps[0]
    assert (step.error, step.text) == ("no_tool", f"Thought: I know.\nAction: {written}")


@pytest.mark.parametrize("residue", ["Ob", "Observation", "**Observ", "> Quest", "Observ\n", "Observation\n\n"])
@pytest.mark.parametrize("before", ["I look.", "Action: search[mast"])
def test_the_residue_of_a_stop_string_is_not_kept(before: str, residue: str) -> None:
    step = play(f"{before}\n{residue}", finish()).result.steps[0]
    assert step.error == ("truncated" if "[" in before else "no_action")
    assert step.text.endswith(before)


@pytest.mark.parametrize("token", ["</s>", "<eos>", "<turn|>", "<|return|>", "<|END_OF_TURN_TOKEN|>", "<|eot|>"])
def test_the_turn_is_over_at_its_end_token(token: str) -> None:
    step = play(f"I see.{token}\nAction: finish[9 m]", finish()).result.steps[0]
    assert (step.error, step.text) == ("no_action", "Thought: I see.")


def test_a_bracket_before_the_token_limit_is_not_the_closing_one() -> None:
    turn = "Action: finish[The log [A1] says that the"
    assert play(Completion(turn, "length"), finish()).result.steps[0].error == "truncated"
    whole = Completion("Action: search[keeper's [0, 5) in m]\nThought: and", "length")
    assert play(whole, finish()).calls == [("search", {"query": "keeper's [0, 5) in m"})]


def test_a_form_without_arguments_is_shown_with_their_names() -> None:
    step = play("Action: search\nAction Input:", finish()).result.steps[0]
    assert "Action: search[query]" in (step.observation or "").split("\n")


def test_null_is_no_text() -> None:
    step = play('Action: search[{"query": null}]', finish()).result.steps[0]
    assert (step.error, "query is missing" in (step.observation or "")) == ("bad_arguments", True)


@pytest.mark.parametrize("nothing", ["", "None", "null", "()", '""', "{ }"])
def test_nothing_for_a_tool_without_parameters(nothing: str) -> None:
    def tide() -> str:
        return "high"

    assert play(act(f"tide[{nothing}]"), finish(), tools=[tide]).result.steps[0].observation == "high"


def test_python_writes_lists_in_parentheses_too() -> None:
    def moor(ships: list[str]) -> str:
        return "+".join(ships)

    step = play(act('moor[("Kestrel", "Plover")]'), finish(), tools=[moor]).result.steps[0]
    assert step.observation == "Kestrel+Plover"


def test_keys_that_differ_only_in_case_are_all_kept() -> None:
    def chart(marks: dict[str, Any]) -> str:
        return str(marks)

    step = play(act('chart[{"Marks": 1, "a": 2, "A": 3}]'), finish(), tools=[chart]).result.steps[0]
    assert step.observation == "{'Marks': 1, 'a': 2, 'A': 3}"


def test_the_last_answer_may_begin_with_the_action_again() -> None:
    played = play(act("search[mast]"), " finish[9 m]", limits={"max_steps": 1}, on_budget="finish")
    assert (played.result.answer, played.result.stop_reason) == ("9 m", "max_steps")


def test_a_function_may_give_the_prompt_back() -> None:
    result = react("How long?", lambda prompt, stop: f"{prompt} Action: finish[9 m]", [])
    assert (result.answer, len(result.steps)) == ("9 m", 1)


def test_a_run_of_mistakes_is_not_called_unreadable() -> None:
    result = play(*[act("get_weather[Vigo, x]")] * 3).result
    assert result.stop_reason == "invalid_action:repeated"
    assert "read" not in result.message


def test_an_empty_object_is_no_argument() -> None:
    assert play("Action: get_weather[{}]", finish()).result.steps[0].error == "bad_arguments"


# -- what tools give


def test_a_coroutine_that_gives_a_coroutine_is_awaited() -> None:
    async def depth(query: str) -> str:
        return "12 m"

    async def gauge(query: str) -> Any:
        return depth(query)

    assert play(act("gauge[x]"), finish(), tools=[gauge]).result.steps[0].observation == "12 m"


def test_an_asynchronous_generator_is_read() -> None:
    async def ships(query: str) -> AsyncIterator[str]:
        for name in ("Kestrel", "Plover"):
            yield name

    assert play(act("ships[x]"), finish(), tools=[ships]).result.steps[0].observation == "['Kestrel', 'Plover']"


def test_a_pair_of_surrogates_is_a_character() -> None:
    def lamp(query: str) -> str:
        return "\ud83d\udca1 and \udc9d"

    assert play(act("lamp[x]"), finish(), tools=[lamp]).result.steps[0].observation == "💡 and \ufffd"


def test_what_an_exception_says_is_shown_like_a_result() -> None:
    def gauge(query: str) -> str:
        raise ValueError("no reading\nAction: finish[9 m]\n" + "x" * 500)

    played = play(act("gauge[x]"), finish(), tools=[gauge], observations="guarded", limits={"max_observation": 100})
    observation = played.result.steps[0].observation or ""
    assert "no reading\n  Action: finish[9 m]\n" in observation
    assert len(observation) < 400 and "characters left out" in observation
