"""Golden + run -> changes: what is found, in which category, at which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from react_text import AuthorError, Trace, load_tools
from react_text.match import Change, check_expectations, compare
from react_text.matching import Matching, checked_rule

QUESTION = "Question: Who?\n"
Turns = Sequence[tuple[str, str | None]]


def trace(turns: Turns, question: str = QUESTION, **meta: Any) -> Trace:
    return Trace.record(question, turns, meta=meta)


def search(text: str, seen: str | None = "found", thought: str = "I look.") -> tuple[str, str | None]:
    return f"Thought: {thought}\nAction: search[{text}]", seen


def lookup(text: str, seen: str = "here") -> tuple[str, str | None]:
    return f"Thought: I look.\nAction: lookup[{text}]", seen


def finish(answer: str, thought: str = "Known.") -> tuple[str, str | None]:
    return f"Thought: {thought}\nAction: finish[{answer}]", None


def said(changes: Sequence[Change]) -> list[str]:
    return [str(change) for change in changes]


GOLDEN = [search("a"), search("b"), finish("Ann")]

EXACT: dict[str, tuple[Turns, list[str]]] = {
    "the same run": (GOLDEN, []),
    "another tool": (
        [search("a"), lookup("b"), finish("Ann")],
        ["path: step 2: calls lookup[b] instead of search[b]"],
    ),
    "other arguments": (
        [search("a"), search("c"), finish("Ann")],
        ["path: step 2: calls search[c] instead of search[b]"],
    ),
    "an extra step does not turn the rest red": (
        [search("a"), lookup("x"), search("b"), finish("Ann")],
        ["path: step 2: is an extra step: lookup[x]"],
    ),
    "a missing step": ([search("b"), finish("Ann")], ["path: step 1: is missing: search[a]"]),
    "another answer": (
        [search("a"), search("b"), finish("Bob")],
        ["answer: step 3: answers 'Bob' instead of 'Ann'"],
    ),
    "no answer": (
        [search("a"), search("b")],
        ["path: step 3: is missing: finish[Ann]", "answer: step 3: answers nothing instead of 'Ann'"],
    ),
    "another thought": (
        [search("a"), search("b", thought="Next."), finish("Ann")],
        ["thought: step 2: the thought differs"],
    ),
    "a tool that answers differently": (
        [search("a", "lost"), search("b"), finish("Ann")],
        ["tool: step 1: search answers differently"],
    ),
    "white space in an observation": (
        [search("a", "found "), search("b"), finish("Ann")],
        ["format: step 1: only white space differs in the observation"],
    ),
    "white space in a turn": (
        [search("a"), search("b", thought="I  look."), finish("Ann")],
        ["format: step 2: only white space differs in the turn"],
    ),
    "a carriage return": (
        [search("a", "fo\rund"), search("b"), finish("Ann")],
        ["format: step 1: only white space differs in the observation"],
    ),
    "an observation that is gone": (
        [search("a"), search("b", None)],
        [
            "tool: step 2: has no observation now",
            "path: step 3: is missing: finish[Ann]",
            "answer: step 3: answers nothing instead of 'Ann'",
        ],
    ),
    "a turn without an action": (
        [("Thought: I wonder.", "Error: no action"), search("b"), finish("Ann")],
        ["path: step 1: has no readable action instead of search[a]"],
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_mode_finds(name: str) -> None:
    turns, expected = EXACT[name]
    assert said(compare(trace(GOLDEN), trace(turns))) == expected


def test_a_missing_final_newline_is_found() -> None:
    golden = trace([search("a", "x")])
    cut = Trace(golden.body.removesuffix("\n"))
    assert said(compare(golden, cut)) == ["format: the text differs"]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({}, {1: "mistake unknown_tool"}, "wording: step 1: the engine answers this turn itself (unknown_tool)"),
        (
            {1: "mistake unknown_tool"},
            {1: "mistake unknown_tool"},
            "wording: step 1: the engine words this observation differently",
        ),
        ({1: "raised E: x"}, {1: "raised E: x"}, "wording: step 1: the engine words this observation differently"),
        ({1: "raised E: x"}, {1: "raised E: y"}, "tool: step 1: search answers differently"),
        ({1: "raised E: x"}, {}, "tool: step 1: search answers differently"),
        ({}, {1: "timeout 3"}, "tool: step 1: search answers differently"),
        ({}, {1: "empty"}, "tool: step 1: search answers differently"),
        (
            {1: "mistake parentheses"},
            {},
            "wording: step 1: the engine no longer refuses this turn (parentheses): the call is made",
        ),
    ],
)
def test_who_wrote_an_observation_decides_between_wording_and_tool(
    was: Mapping[int, str], now: Mapping[int, str], expected: str
) -> None:
    golden = trace([search("a", "old words"), finish("Ann")], outcomes=was)
    run = trace([search("a", "new words"), finish("Ann")], outcomes=now)
    assert said(compare(golden, run)) == [expected]


def test_a_mistake_that_is_none_any_more_is_found_although_the_text_is_the_same() -> None:
    golden = trace([search("a", "Error: ..."), finish("Ann")], outcomes={1: "mistake parentheses"})
    assert said(compare(golden, trace([search("a", "Error: ..."), finish("Ann")]))) == [
        "wording: step 1: the engine no longer refuses this turn (parentheses): the call is made"
    ]


@pytest.mark.parametrize(
    ("golden", "run", "expected"),
    [
        ({"answer": "Ann"}, {"answer": "Bob"}, ["answer: step 3: answers 'Bob' instead of 'Ann'"]),
        (
            {"answer": "Ann", "stop_reason": "success"},
            {"answer": "Ann", "stop_reason": "max_steps"},  # its last words
            ["answer: step 3: ends as max_steps instead of success"],
        ),
        (
            {"answer": "Ann", "stop_reason": "max_steps"},
            {},
            ["path: step 3: goes on where the golden ends as max_steps"],
        ),
        ({"tools": ["a"]}, {"tools": ["a", "b"]}, ["format: front matter: tools was ['a']"]),
        ({"options": {"seed": 1}}, {"options": {"seed": 2}}, ["format: front matter: options was {'seed': 1}"]),
        ({}, {"answer": "Ann", "stop_reason": "success", "tools": ["a"]}, []),
    ],
)
def test_facts_of_the_front_matter_count_where_the_golden_states_them(
    golden: Mapping[str, Any], run: Mapping[str, Any], expected: list[str]
) -> None:
    assert said(compare(trace(GOLDEN, **golden), trace(GOLDEN, **run))) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Question: Whom?\n", "prompt: the question line differs"),
        ("Question: Who? \n", "format: the question line differs"),
    ],
)
def test_the_question_line_is_compared(question: str, expected: str) -> None:
    assert said(compare(trace(GOLDEN), trace(GOLDEN, question))) == [expected]


OTHER_ORDER = [search("b", "x"), search("a", "y", "Why?"), finish("Ann")]
FEWER = [search("b"), finish("Ann")]
MORE = [search("a"), lookup("x"), search("b"), finish("Ann")]

MODES: list[tuple[str, Turns, list[str]]] = [
    ("actions", [search("a", "x", "Hm."), search("b", "y"), finish("Ann")], []),
    ("actions", OTHER_ORDER, ["path: step 1: is an extra step: search[b]", "path: step 2: is missing: search[b]"]),
    ("unordered", OTHER_ORDER, []),
    ("unordered", FEWER, ["path: step 1: is missing: search[a]"]),
    ("unordered", MORE, ["path: step 2: is an extra call: lookup[x]"]),
    ("subset", FEWER, []),
    ("subset", MORE, ["path: step 2: is an extra call: lookup[x]"]),
    ("superset", MORE, []),
    ("superset", FEWER, ["path: step 1: is missing: search[a]"]),
    ("answer", [lookup("z"), finish("Ann")], []),
    ("answer", [lookup("z"), finish("Bob")], ["answer: step 3: answers 'Bob' instead of 'Ann'"]),
    ("subset", [finish("Bob")], ["answer: step 3: answers 'Bob' instead of 'Ann'"]),
]


@pytest.mark.parametrize(("mode", "turns", "expected"), MODES)
def test_a_match_mode_lets_pass(mode: str, turns: Turns, expected: list[str]) -> None:
    assert said(compare(trace(GOLDEN, match=mode), trace(turns))) == expected


def test_each_call_of_the_golden_needs_a_call_of_its_own() -> None:
    golden = trace([search("a"), search("a"), finish("Ann")], match="superset")
    assert said(compare(golden, trace([search("a"), finish("Ann")]))) == ["path: step 2: is missing: search[a]"]


def pay(amount: float, to: str, note: str = "") -> str:
    """Pay."""
    return "paid"


RULES: list[tuple[Any, str, bool]] = [
    ("exact", "10, Ann", True),
    ("exact", "10, Bob", False),
    ("exact", "amount=10, to=Ann", True),
    ("exact", '{"to": "Ann", "amount": 10.0}', True),
    ("ignore", "99, Bob", True),
    ("re:1\\d, .*", "12, Bob", True),
    ("re:1\\d, .*", "22, Bob", False),
    (["to"], "99, Ann", True),
    (["to"], "10, Bob", False),
    (0.5, "10.5, Ann", True),
    (0.5, "10.6, Ann", False),
    (0.5, "10, Bob", False),
    ({"amount": 1, "to": "ignore"}, "11, Bob", True),
    ({"amount": 1, "note": "ignore"}, "11, Bob", False),
    ({"to": "re:[AB].*"}, "10, Bob", True),
    ({"to": "re:[AB].*"}, "10, Cleo", False),
]


@pytest.mark.parametrize(("rule", "arguments", "same"), RULES)
@pytest.mark.parametrize("by", ["step", "tool"])
def test_a_rule_for_arguments(rule: Any, arguments: str, same: bool, by: str) -> None:
    golden = trace([("Action: pay[10, Ann]", "paid"), finish("done")])
    run = trace([(f"Action: pay[{arguments}]", "paid"), finish("done")])
    tools = load_tools(pay)
    if by == "step":
        matching = Matching.of({"mode": "actions", "step 1": {"args": rule}}, {}, tools)
    else:
        matching = Matching.of("actions", {"pay": checked_rule(rule, "pay")}, tools)
    changes = compare(golden, run, matching=matching)
    assert said(changes) == ([] if same else [f"path: step 1: calls pay[{arguments}] instead of pay[10, Ann]"])


def test_exact_mode_compares_the_bytes_of_a_call_and_a_rule_lifts_that() -> None:
    golden = trace([("Thought: Pay.\nAction: pay[10, Ann]", "paid")])
    run = trace([("Thought: Pay.\nAction: pay[10,Ann]", "paid")])
    by_value = Matching(tools=load_tools(pay))
    assert said(compare(golden, run, matching=by_value)) == ["format: step 1: only white space differs in the turn"]
    assert said(compare(golden, run)) == ["path: step 1: calls pay[10,Ann] instead of pay[10, Ann]"]
    run = trace([("Thought: Pay.\nAction: pay[11, Ann]", "paid")])
    assert said(compare(golden, run, matching=Matching.of({"step 1": {"args": "ignore"}}))) == []
    other_step = Matching.of({"step 2": {"args": "ignore"}})
    assert said(compare(golden, run, matching=other_step)) == [
        "path: step 1: calls pay[11, Ann] instead of pay[10, Ann]"
    ]


def test_without_a_signature_arguments_are_texts() -> None:
    golden, run = trace([search("a b")], match="actions"), trace([search("  a b ")])
    assert compare(golden, run) == []


UNREADABLE: list[tuple[str, Any, str]] = [
    ("match", "exakt", "match: 'exakt' is none of exact, actions"),
    ("match", {"mode": "actions", "step x": {"args": "ignore"}}, "'step x' is not understood"),
    ("match", {"step 1": {"arg": "ignore"}}, "'step 1' is not understood"),
    ("match", {"step 1": {"args": "loose"}}, "'loose' is not understood; write exact, ignore"),
    ("match", {"step 1": {"args": "re:["}}, "unterminated character set"),
    ("redact", "uid", "'uid' is not built in (did you mean uuid?)"),
    ("redact", {"x y": "a"}, "'x y' must be a word"),
    ("redact", {"order": "("}, "redact: order: missing )"),
]


@pytest.mark.parametrize(("key", "value", "message"), UNREADABLE)
def test_a_rule_that_cannot_be_read_is_an_error(key: str, value: Any, message: str) -> None:
    with pytest.raises(AuthorError) as caught:
        compare(trace(GOLDEN, **{key: value}), trace([search("a")]))
    assert message in str(caught.value)


# -- expect:

EXPECT: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"max_steps": 3}, []),
    ({"max_steps": 2}, ["path: step 3: is one too many: expect says max_steps 2"]),
    ({"forbid": ["lookup"]}, []),
    ({"forbid": "Search"}, [f"path: step {n}: calls search, which expect forbids" for n in (1, 2)]),
    ({"require": ["search"]}, []),
    ({"require": ["lookup", "search"]}, ["path: never calls lookup, which expect requires"]),
    ({"no_repeat": 2}, []),
    ({"no_repeat": 1}, ["path: calls search[a] 2 times: expect says no_repeat 1"]),
    ({"max_prompt_chars": 500}, []),
    ({"max_prompt_chars": 499}, ["prompt: the longest prompt has 500 characters: expect says 499"]),
    ({"stop_reason": "success"}, []),
    ({"stop_reason": "max_steps"}, ["answer: ends as success: expect says max_steps"]),
    ({"answer": "4,?220"}, []),
    ({"answer": "^4"}, ["answer: answers 'It is 4,220.50 USD, 8 percent.': expect says ^4"]),
    ({"answer": 4220.5}, []),
    ({"answer": 4220}, ["answer: answers 'It is 4,220.50 USD, 8 percent.': expect says 4220"]),
    ({"answer": {"number": 4220, "within": 0.5}}, []),
    ({"answer": {"number": 7.9, "within": 0.1}}, []),
]


@pytest.mark.parametrize(("expect", "expected"), EXPECT)
def test_an_expectation(expect: dict[str, Any], expected: list[str]) -> None:
    answer = "It is 4,220.50 USD, 8 percent."
    run = trace([search("a"), search("a "), finish(answer)], answer=answer, stop_reason="success")
    assert said(check_expectations(run, expect, longest_prompt=500)) == expected


def test_a_run_without_an_answer_has_none_that_could_be_expected() -> None:
    assert said(check_expectations(trace([search("a")]), {"answer": ".*"})) == [
        "answer: answers nothing: expect says .*"
    ]


def test_the_answer_that_expect_describes_need_not_be_the_same_text_but_in_exact_mode() -> None:
    expect = {"answer": "A"}
    run = trace([*GOLDEN[:2], finish("Anna")])
    assert compare(trace(GOLDEN, match="actions", expect=expect), run) == []
    assert said(compare(trace(GOLDEN, expect=expect), run)) == ["answer: step 3: answers 'Anna' instead of 'Ann'"]


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ({"max_step": 3}, "unknown key 'max_step' (did you mean max_steps?)"),
        ({"max_steps": 0}, "max_steps must be a whole number above 0, not 0"),
        ({"max_steps": "many"}, "not 'many'"),
        ({"forbid": [1]}, "forbid must be a list of tools"),
        ({"answer": "("}, "expect: answer: missing )"),
        ({"answer": {"near": 3}}, "answer takes a pattern, a number, or {number: X, within: Y}"),
        ("max_steps", "expect must be a mapping"),
    ],
)
def test_an_expectation_that_cannot_be_read_is_an_error(expect: Any, message: str) -> None:
    with pytest.raises(AuthorError) as caught:
        check_expectations(trace(GOLDEN), expect)
    assert message in str(caught.value)
