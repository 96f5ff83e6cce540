"""parse_turn on single turns: what is read, what is kept, what is told to the model; and what holds for any text."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from react_text import AuthorError, ParseError, parse_turn
from react_text.ask import Watch
from react_text.labels import NUMBERED, PLAIN, Labels
from react_text.parse import turn_end

CHINESE = Labels.of({"thought": "思考", "action": "行动：", "observation": "观察", "question": "问题"})


def error(text: str, **settings: Any) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_turn(text, **settings)
    return caught.value


READ = {
    "text before the label is the thought": (" It is due.\nAction: a[b]", "It is due.", "a", "b"),
    "a repeated thought label is no thought": ("Thought: It is due.\nAction: a[b]", "It is due.", "a", "b"),
    "no thought at all": ("Action: a[b]", "", "a", "b"),
    "the action stands on the line below its label": ("Action:\na[b]", "", "a", "b"),
    "blank lines and a fence below the label": ("Action:\n\n```\na[b]\n```", "", "a", "b"),
    "a call in backticks": ("Action: `a[b]`", "", "a", "b"),
    "backticks inside the brackets": ("Action: a[`b`]", "", "a", "`b`"),
    "no blank behind the label": ("Action:a[b]", "", "a", "b"),
    "a number glued to the label": ("Action12: a[b]", "", "a", "b"),
    "a numbered list": ("1. Action: a[b]", "", "a", "b"),
    "a quoted block": ("> Action: a[b]", "", "a", "b"),
    "an underlined label": ("_Action_: a[b]", "", "a", "b"),
    "brackets in brackets": ("Action: a[[b] [c]]", "", "a", "[b] [c]"),
    "an opening bracket too many": ("Action: a[b [c]", "", "a", "b [c"),
    "a closing bracket too many": ("Action: a[b]c]", "", "a", "b"),
    "a bracket in a quoted argument": ('Action: a["b]"]', "", "a", '"b]"'),
    "a quote that is never closed": ('Action: a["b]', "", "a", '"b'),
    "an apostrophe": ("Action: a[don't] [b]", "", "a", "don't"),
    "an apostrophe before a quoted word": ("Action: a[it's b] c['d']", "", "a", "it's b"),
    "an escaped quote": (r'Action: a["b \"]\" c"]', "", "a", r'"b \"]\" c"'),
    "a label inside the brackets": ("Action: a[b\nThought: c]", "", "a", "b\nThought: c"),
    "blank arguments": ("Action: a[ ]", "", "a", " "),
    "a name with a dot and a dash": ("Action: a.b-c[d]", "", "a.b-c", "d"),
    "mixed brackets do not close each other": ("Action: a［b] c］", "", "a", "b] c"),
    "an unclosed fence": ("```\nAction: a[b]", "", "a", "b"),
    "tildes as a fence": ("~~~react\nThought: c\nAction: a[b]\n~~~", "c", "a", "b"),
    "a closed fence before the action": ("```\nx\n```\nAction: a[b]", "```\nx\n```", "a", "b"),
    "a reasoning block": ("<think>Action: x[y]</think>\nAction: a[b]", "", "a", "b"),
    "two reasoning blocks": ("<think>x</think>c<think>y</think>\nAction: a[b]", "c", "a", "b"),
    "a label right behind a reasoning block": ("<THINK>x</THINK>Action: a[b]", "", "a", "b"),
    "a reasoning block that the prompt has opened": ("x\n</think>\nAction: a[b]", "", "a", "b"),
    "a reasoning tag inside the brackets": ("Action: a[<think>b</think>]", "", "a", "<think>b</think>"),
    "a reasoning tag behind the action": ("Action: a[b]</think><think>", "", "a", "b"),
    "an observation label inside a reasoning block": ("<think>\nObservation: x</think>\nAction: a[b]", "", "a", "b"),
    "an unusual line end is no line end": ("x\u2028Action: y[z]\nAction: a[b]", "x\u2028Action: y[z]", "a", "b"),
    "tokens of a chat template": ("<|im_start|>Go.\nAction: a[b]<|im_end|>", "Go.", "a", "b"),
}


@pytest.mark.parametrize(("text", "thought", "tool", "arguments"), READ.values(), ids=READ)
def test_reads(text: str, thought: str, tool: str, arguments: str) -> None:
    turn = parse_turn(text)
    assert (turn.thought, turn.action.tool, turn.action.arguments) == (thought, tool, arguments)
    assert str(turn.action) == f"{tool}[{arguments}]"
    assert text[slice(*turn.action.tool_span)] == tool
    assert text[slice(*turn.action.arguments_span)] == arguments


KEPT = {
    "up to the closing bracket": ("Go.\nAction: a[b] and more\n\nAction: c[d]", "Go.\nAction: a[b]"),
    "up to the closing bracket, whatever touches it": ("Action: a[b]c[d]", "Action: a[b]"),
    "without white space at its ends": ("\n  Go.  \nAction: a[b]  \n", "Go.  \nAction: a[b]"),
    "without the repeated label": ("Thought: Go.\nAction: a[b]", "Go.\nAction: a[b]"),
    "without reasoning": ("<think>x</think>\nGo.\nAction: a[b]", "Go.\nAction: a[b]"),
    "without an outer fence": ("```text\nGo.\nAction: a[b]\n```", "Go.\nAction: a[b]"),
    "without tokens up to the bracket": ("<|x|>Go.\nAction: a<|y|>z[b]", "Go.\nAction: a[b]"),
    "with the case of the label": ("go.\nACTION: a[b]", "go.\nACTION: a[b]"),
}


@pytest.mark.parametrize(("text", "clean"), KEPT.values(), ids=KEPT)
def test_keeps(text: str, clean: str) -> None:
    turn = parse_turn(text)
    assert turn.clean == clean
    assert text.startswith(turn.text)
    assert turn.text.endswith("]")


FAILED = {
    "nothing": ("", "empty", ""),
    "only a reasoning block": ("<think>x</think>", "empty", ""),
    "only a cue": ("Thought: ", "empty", ""),
    "prose": ("I will look.", "no_action", ""),
    "an empty action": ("I look.\nAction:", "no_action", ""),
    "a label that is none": ("Actions: search[x]", "no_action", "search[x]"),
    "the turn was over before": ("I see.<|im_end|>\nAction: search[x]", "no_action", ""),
    "prose as an action": ("Action: 61 m is the height.", "not_a_call", ""),
    "a name and words": ("Action: search ferry prices", "not_a_call", "search[ferry prices]"),
    "a name and a colon": ("Action: finish: 42", "not_a_call", "finish[42]"),
    "a name too long to be one": (f"Action: {'x' * 90}[y]", "not_a_call", ""),
    "parentheses": ("Action: search(ferry)", "parentheses", "search[ferry]"),
    "parentheses in a quoted argument": ('Action: search("a (b)")', "parentheses", 'search["a (b)"]'),
    "parentheses before a real action": ("Action: search(a)\nAction: lookup[b]", "parentheses", "search[a]"),
    "an answer in parentheses": ("Action: finish('It is 42')", "parentheses", "finish[It is 42]"),
    "a name in brackets": ("Action: [search](ferry)", "bracketed_name", "search[ferry]"),
    "a call in brackets": ("Action: [search[ferry]]", "bracketed_name", "search[ferry]"),
    "an input line": ("Action: search\nAction Input: ferry", "action_input", "search[ferry]"),
    "an input of JSON": ('Action: search\nAction Input: {"query": "a"}', "action_input", 'search[{"query": "a"}]'),
    "an action of JSON": ('Action: {"action": "search", "action_input": "a"}', "json", "search[a]"),
    "an action of JSON with arguments": ('Action: {"tool": "f", "args": {"b": 1}}', "json", 'f[{"b": 1}]'),
    "a call without its label": ("I look.\nsearch[ferry]", "bare_call", "search[ferry]"),
    "an answer label": ("Done.\nFinal Answer: 42", "answer_label", "finish[42]"),
    "an answer label before finish": ("Answer: finish[42]", "answer_label", "finish[42]"),
    "an action inside a line": ("I look. Action: search[ferry]", "inline", "search[ferry]"),
    "an action and its result inside a line": ("I look. Action: a[b] Observation: c", "invented", "a[b]"),
    "no tool": ("Action: None needed.", "no_tool", ""),
    "no tool, in brackets": ("Action: N/A[]", "no_tool", ""),
    "reasoning that does not end": ("<think>Action: a[b]", "open_think", ""),
    "an action in the reasoning": ("<think>Action: a[b]</think>", "in_think", ""),
    "an open bracket": ("Action: search[a\nThought: b", "truncated", ""),
    "an open bracket before an observation": ("Action: search[a\nObservation: b]", "truncated", ""),
    "an observation": ("> **Observation 2**: x\nAction: a[b]", "empty", ""),
    "a question": ("Question: x?\nAction: a[b]", "empty", ""),
}


@pytest.mark.parametrize(("text", "kind", "correction"), FAILED.values(), ids=FAILED)
def test_does_not_read(text: str, kind: str, correction: str) -> None:
    caught = error(text)
    assert (caught.kind, caught.correction) == (kind, correction)
    assert caught.stop_reason == f"invalid_action:{kind}"


def test_an_unreadable_turn_is_kept_without_reasoning_tokens_and_what_was_cut() -> None:
    caught = error("Thought: <think>x</think>I <|y|>look.\nObservation: z")
    assert caught.text == "I look."


@pytest.mark.parametrize(
    ("text", "why", "tool"),
    [
        ("Action: search[a", "length", "search"),
        ("I think that", "length", ""),
        ("Action: search[a\nObservation: b", "length", "search"),
    ],
)
def test_a_turn_cut_by_max_tokens_is_called_truncated(text: str, why: str, tool: str) -> None:
    caught = error(text, truncated=True)
    assert (caught.kind, caught.fields["why"], caught.fields["tool"]) == ("truncated", why, tool)


def test_a_near_miss_cut_by_max_tokens_keeps_its_own_message() -> None:
    assert error("Action: search(a) and then", truncated=True).kind == "parentheses"


def test_a_complete_action_is_read_although_max_tokens_cut_the_turn() -> None:
    assert parse_turn("Action: a[b]\nThought: then", truncated=True).action.arguments == "b"


LENIENT = {
    "parentheses": ("Go.\nAction: search(ferry)\nmore", "Go.\nAction: search[ferry]"),
    "an input line": ("Action: search\nAction Input: ferry", "Action: search[ferry]"),
    "JSON": ('Action: {"action": "search", "input": "a"}', "Action: search[a]"),
    "a name in brackets": ("Action: [search][ferry]", "Action: search[ferry]"),
    "no label": ("Go.\nsearch[ferry]", "Go.\nAction: search[ferry]"),
    "inside a line": ("Go. Action: search[ferry] now", "Go.\nAction: search[ferry]"),
    "an answer label": ("Go.\nAnswer: 42", "Go.\nAction: finish[42]"),
    "a verb before the name": ("Go.\nAction: Use search[ferry]", "Go.\nAction: search[ferry]"),
    "another case": ("Action: SEARCH(ferry)", "Action: SEARCH[ferry]"),
}


@pytest.mark.parametrize(("text", "clean"), LENIENT.values(), ids=LENIENT)
def test_lenient_reads_a_near_miss_and_keeps_the_canonical_line(text: str, clean: str) -> None:
    turn = parse_turn(text, lenient=["search", "finish"])
    assert turn.clean == clean
    assert clean.endswith(f"Action: {turn.action}")


@pytest.mark.parametrize(
    "text",
    [
        "Action: hunt(ferry)",
        "I look. Action: search[b] Observation: c",
        "Action: search ferry prices",
        "Action: search(ferry",
        "Action: none",
        "<think>Action: search(x)</think>",
        "Action: search[a",
    ],
)
def test_lenient_does_not_guess(text: str) -> None:
    error(text, lenient=["search", "finish"])


# -- labels


@pytest.mark.parametrize(
    ("text", "labels", "action"),
    [
        ("Action 2: a[b]\nObservation 2: c]", NUMBERED, "a[b]"),
        ("Action: a[b]\nObservation: c", NUMBERED, "a[b]"),
        ("要查水位。\n行动：a［水位］\n观察：c", CHINESE, "a[水位]"),
        ("思考: 查。\n行动: a[b\n思考: c]", CHINESE, "a[b\n思考: c]"),
    ],
)
def test_label_sets(text: str, labels: Labels, action: str) -> None:
    assert str(parse_turn(text, labels=labels).action) == action


@pytest.mark.parametrize(("text", "labels"), [("Action: a[b]", CHINESE), ("行动: a[b]", PLAIN)])
def test_only_its_own_labels_count(text: str, labels: Labels) -> None:
    assert error(text, labels=labels).kind == "no_action"


def test_own_labels_cut_the_turn() -> None:
    assert error("行动：a[b\n观察：c]", labels=CHINESE).kind == "truncated"
    assert parse_turn("行动：a[b\nObservation: c]", labels=CHINESE).action.arguments == "b\nObservation: c"


def test_cues_and_stops() -> None:
    assert NUMBERED.cue("Thought", 3) == "Thought 3:"
    assert NUMBERED.stops(3) == ["\nObservation 3:", "\nObservation:", "\nQuestion:"]
    assert CHINESE.stops(3) == ["\n观察:", "\n问题:"]
    assert Labels.of({"question": "Claim", "numbered": True}).cue("Claim", 1) == "Claim 1:"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fancy", "plain, numbered or a mapping"),
        (["Thought"], "plain, numbered or a mapping"),
        ({"thougth": "x"}, "did you mean thought"),
        ({"thought": ""}, "must be a word"),
        ({"thought": " : "}, "must be a word"),
        ({"thought": "a\nb"}, "must be a word"),
        ({"thought": True}, "must be a word"),
    ],
)
def test_labels_that_are_none(setting: Any, message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        Labels.of(setting)


# -- any text

PIECES = [
    "Thought:", "Action:", "Observation:", "Question:", "Action Input:", "Final Answer:", "Answer: ", "Action 2:",
    "Observation 2:", "action：", "观察：", "行动", "Action", "Observ", "search", "lookup", "finish", "None", "[", "]",
    "［", "］", "【", "】", "(", ")", "{", "}", '"', "'", "“", "”", ",", "，", "=", ":", "：", "\n", "\r\n", " ", "  ",
    "\t", "```", "```json", "~~~", "<think>", "</think>", "<|im_end|>", "<|x|>", "</s>", "*", "**", "#", "- ", "`",
    "> ", "1. ", "x", "\\", "\u2028", '{"query": "a"}',
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
label_sets = st.sampled_from([PLAIN, NUMBERED, CHINESE])


def outcome(text: str, labels: Labels) -> tuple[str, ...]:
    try:
        turn = parse_turn(text, labels=labels)
    except ParseError as caught:
        return caught.kind, caught.text, caught.correction
    return "read", turn.thought, turn.clean, turn.action.tool, turn.action.arguments


@given(texts, label_sets, st.booleans(), st.booleans())
def test_any_text_is_a_turn_or_a_parse_error(text: str, labels: Labels, truncated: bool, lenient: bool) -> None:
    try:
        turn = parse_turn(text, labels=labels, truncated=truncated, lenient=["search", "finish"] if lenient else ())
    except ParseError as caught:
        assert caught.text == caught.text.strip()
        return
    assert text.startswith(turn.text)
    assert turn.clean == turn.clean.strip()
    if turn.action.tool_span != (0, 0):  # a near miss that was read has none
        assert text[slice(*turn.action.tool_span)] == turn.action.tool
        assert text[slice(*turn.action.arguments_span)] == turn.action.arguments
        assert len(turn.text) == turn.action.arguments_span[1] + 1


@given(texts, label_sets)
def test_any_corrected_line_can_be_copied(text: str, labels: Labels) -> None:
    try:
        parse_turn(text, labels=labels)
    except ParseError as caught:
        if caught.correction:
            copied = parse_turn(f"{labels.action}: {caught.correction}", labels=labels)
            assert caught.correction.startswith(copied.action.tool + "[")


@given(st.lists(texts.map(lambda text: text[:12]), max_size=12), label_sets)
@example(["Observation:", "<think>\nAction:"], PLAIN)
@example(["Action: a[", "b]", "\nObservation: c"], PLAIN)
@example(["x<|im_end|>\nObservation:", "Action:"], PLAIN)
@example(['Action: a["b]', ' c"]'], PLAIN)
def test_any_way_of_streaming_a_text_has_the_same_outcome(pieces: list[str], labels: Labels) -> None:
    watch = Watch(labels)
    for piece in pieces:
        if watch(piece):
            break
    assert outcome(watch.text, labels) == outcome("".join(pieces), labels)


@given(texts, label_sets)
def test_what_follows_the_end_of_a_turn_changes_nothing(text: str, labels: Labels) -> None:
    end = turn_end(text, labels)
    if end is not None:
        assert outcome(f"{text[:end]}\n{labels.observation}: x\n{labels.action}: y[z]", labels) == outcome(
            text[:end], labels
        )


REALISTIC = st.sampled_from(
    [
        "Look.\nAction: lookup[tide]\nObservation: 12",
        "I see.\n\nFinal",
        "Action: finish[Obs\nObsolete]",
        "a\nObserv",
        "x\n\ny: z\n",
    ]
)


@given(REALISTIC, st.lists(st.integers(0, 40), max_size=8))
def test_any_way_of_streaming_a_text_shows_the_same(text: str, cuts: list[int]) -> None:
    def shown(pieces: list[str]) -> str:
        display: list[str] = []
        watch = Watch(PLAIN, "", display.append)
        for piece in pieces:
            if watch(piece):
                break
        watch.finish(watch.text)
        return "".join(display)

    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    assert shown([text[a:b] for a, b in pairwise(edges)]) == shown([text])


@pytest.mark.parametrize("before", ["\ufeff", "\u200b", "\u2060 ", "\u200b**"])
def test_what_cannot_be_seen_may_stand_before_a_label(before: str) -> None:
    turn = parse_turn(f" I look.\n{before}Action: search[mast]\n{before}Observation: invented")
    assert (str(turn.action), turn.text) == ("search[mast]", f" I look.\n{before}Action: search[mast]")
