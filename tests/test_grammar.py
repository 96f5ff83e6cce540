"""Grammars of turns: whatever they let through is read as it was meant, and its arguments convert."""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from react_text import (
    AuthorError,
    Labels,
    ParseError,
    Pattern,
    Prompt,
    Range,
    Trace,
    load_tools,
    parse_turn,
    tool,
)
from react_text.argument_forms import arguments_form
from react_text.arguments import Parameter, read_arguments
from react_text.forms import Form
from react_text.grammar import Grammar, TurnConstraint
from react_text.labels import NUMBERED, PLAIN, label_line
from react_text.nearmiss import FINISH
from react_text.notations import to_gbnf, to_regex
from react_text.scan import closing_bracket
from react_text.tools import Toolbox

from .gbnf import Gbnf
from .sentences import sentence
from .test_linear_time import HOSTILE, grows_linearly

ROOT = Path(__file__).parents[1]
OWN = Labels(thought="思考", action="行动", observation="观察", question="问题")
# Words that share letters, one the beginning of another, one that looks like what may stand before a label.
ODD = Labels(thought="Act", action="Act now", observation="1. obs", question="-q?")


class Colour(enum.Enum):
    RED = "red"
    DEEP = "deep blue"
    LISTED = "a, b"
    SAID = 'say "x"'


Month = Annotated[str, Pattern(r"\d{4}-(0[1-9]|1[0-2])")]
Words = Literal["a", "b, c", "x]y", 'say "hi"', 3, True, "", " pad ", "it's", "a=b", "{", "["]


def nothing() -> None: ...
def text(query: str) -> None: ...
def text_or_not(query: str = "x") -> None: ...
@tool(multiline=True)
def python(code: str) -> None: ...
@tool(multiline=True)
def write(path: str, content: str, mode: Literal["a", "w"] = "w") -> None: ...
def whole(n: int, most: Annotated[int, Range(1, 30)] = 3) -> None: ...
def decimal(x: Annotated[float, Range(-1.5, 90)], y: float = 1) -> None: ...
def share(x: Annotated[float, Range(0.25, 1)]) -> None: ...
def word(which: Words) -> None: ...
def words(which: Words, colour: Colour, other: Colour | None = None) -> None: ...
def dates(day: datetime.date, at: datetime.datetime) -> None: ...
def day_or_not(day: datetime.date | None) -> None: ...
def options(a: Optional[int], b: Union[int, float, None] = None) -> None: ...  # noqa: UP007, UP045
def tags(names: list) -> None: ...  # type: ignore[type-arg]
def lists(ns: list[Annotated[int, Range(1, 5)]], names: list[str], kinds: set[Literal["p", "q"]]) -> None: ...
def pair(t: tuple[int, int]) -> None: ...
def config(config: dict) -> None: ...  # type: ignore[type-arg]
def configs(config: dict, strict: bool = False) -> None: ...  # type: ignore[type-arg]
def counts(given: dict[str, int] | None, more: bool) -> None: ...
def nested(q: list[dict[str, list[float]]]) -> None: ...
def month(month: Month) -> None: ...
def codes(code: Annotated[str, Pattern(r"^[A-Z]{2,3}\s?\w+$")], rest: Annotated[str, Pattern(r"[^,]*")]) -> None: ...
def letter(x: Annotated[str | None, Pattern("a|b|")] = None) -> None: ...
def anything(x, y: Any) -> None: ...  # type: ignore[no-untyped-def]
def one(x: Any) -> None: ...
def flag(on: bool) -> None: ...
def late(a: int = 1, *, b: str) -> None: ...


NAMED: dict[str, Callable[..., Any]] = {
    'say "hi"': text, "get-weather": text, "查询": text_or_not, "back\\slash": whole, "two words": words, "a.b+": month,
}  # fmt: skip
TOOLS = load_tools(
    [nothing, text, text_or_not, python, write, whole, decimal, share, word, words, dates, day_or_not, options, tags,
     lists, pair, config, configs, counts, nested, month, codes, letter, anything, one, flag, late, NAMED]
)  # fmt: skip
every_label_set = pytest.mark.parametrize(
    "labels", [PLAIN, NUMBERED, OWN, ODD], ids=["plain", "numbered", "own", "odd"]
)


def turn_of(tools: Any, labels: Labels = PLAIN, step: int = 1) -> TurnConstraint:
    """The constraint of a whole turn."""
    found = Grammar(tools if isinstance(tools, Toolbox) else load_tools(tools), labels).after(
        labels.cue(labels.thought, step), step
    )
    assert found
    return found


def read_back(text: str, tools: Toolbox, labels: Labels) -> dict[str, Any]:
    """What the engine makes of a turn: all of it is the turn, the tool is one of `tools`, the arguments convert."""
    turn = parse_turn(text, labels=labels)
    assert turn.text == text.removesuffix("\n")
    if turn.action.tool == FINISH:
        return read_arguments(turn.action.arguments, [Parameter("answer")])
    return tools[turn.action.tool].read(turn.action.arguments)


# -- whatever has the form of a turn is read


@every_label_set
def test_random_turns_are_read_as_they_are_meant_and_convert(labels: Labels) -> None:
    constraint = turn_of(TOOLS, labels, step=7)
    gbnf, lazy, random = Gbnf(constraint.gbnf), Gbnf(constraint.lazy_gbnf), Random(labels.action)
    for number in range(1500):
        text = sentence(constraint.root, random)
        read_back(text, TOOLS, labels)
        assert constraint.accepts(text), text
        if number % 30 == 0:
            assert gbnf.accepts(text), text
            action = labels.cue(labels.action, 7)
            assert lazy.accepts(text[text.rindex(f"\n{action}") + 1 :]), text


@pytest.mark.parametrize("name", ["text", "anything", "python", "write"])
def test_quotes_and_brackets_are_seen_as_the_parser_sees_them(name: str) -> None:
    """A quoted string must not begin at one depth of brackets and end at another."""
    tools, random = TOOLS.offered([name]), Random(name)
    root = Grammar(tools, PLAIN).after("Action:", 1)
    assert root
    for _ in range(3000):
        turn = "\nAction:" + sentence(root.root, random, random.choice([0.5, 0.7, 0.8]), "\"'“‘”’[],=:: a\n]］\\")
        read_back(turn, TOOLS, PLAIN)


@settings(max_examples=50)
@given(st.from_regex(turn_of([text, dates]).regex, fullmatch=True))
def test_turns_that_match_the_regex_are_read(turn: str) -> None:
    read_back(turn, TOOLS, PLAIN)


@given(st.integers(0, 10**9))
def test_damaged_turns_are_let_through_by_all_notations_or_by_none(seed: int) -> None:
    random = Random(seed)
    tools = load_tools([text, write, whole, words, month])
    constraint = turn_of(tools)
    damaged = sentence(constraint.root, random)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(damaged) + 1)
        damaged = damaged[:at] + random.choice([*"[]\"'\n:,<", "", "Action: "]) + damaged[at + 1 :]
    accepted = constraint.accepts(damaged)
    assert Gbnf(constraint.gbnf).accepts(damaged) == accepted
    if accepted:
        read_back(damaged, tools, PLAIN)


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_checked_in_linear_time(shape: Callable[[int], str]) -> None:
    constraint = turn_of([text, python, write, config])
    assert not constraint.accepts(shape(1000))
    assert grows_linearly(constraint.accepts, shape)
    assert grows_linearly(constraint.accepts, lambda n: f" x\nAction: python[{shape(n)}")


@every_label_set
def test_no_line_of_a_thought_begins_with_a_label(labels: Labels) -> None:
    """Every character that the parser takes for a mark, a digit or a letter of a label, where it stands in a label."""
    constraint = turn_of([text], labels)
    line = label_line(labels.thought, labels.action, labels.observation, labels.question)
    end = f"\n{labels.cue(labels.action, 1)} text[x]"
    assert constraint.accepts(f" So:\n\nI look{end}")
    for char in map(chr, (*range(0x3100), *range(0xFF00, 0x10000))):
        word = labels.observation
        for begun in (f"{char}{word}:", f"{word}{char}:", f"1{char}{word}:", f"{word}{char} x", f"{char}{word[1:]}:"):
            if line.match(begun):
                assert not constraint.accepts(f"{begun} x{end}"), begun
                assert not constraint.accepts(f" x\n{begun} x{end}"), begun


@pytest.mark.parametrize(
    "thought",
    [
        " I start with the spend of July 2026.",
        "",
        " Note: 3 < 5, and a <= b.",
        " The rest [see above] is left: 12, so I divide.",
        " First line.\n\n- a point: this\n```\ncode\n```\n1. another",
        " The answer is known",
        "<think>Thought: what? <b>x</b\nAction: text[x]\nObservation: y </think> I look.",
        "<think></think>\n\n I look.",
        " 思考中：先查。",
    ],
)
def test_thoughts_that_can_be_written(thought: str) -> None:
    if "</b" in thought:  # inside of a reasoning block no tag is closed but its own
        assert not turn_of([text]).accepts(f"{thought}\nAction: text[x]")
        thought = thought.replace("</b", "")
    assert turn_of([text]).accepts(f"{thought}\nAction: text[x]")
    assert Gbnf(turn_of([text]).gbnf).accepts(f"{thought}\nAction: text[x]\n")


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(" I look.", id="no action"),
        pytest.param(" I look. Action: text[x]", id="not on a line of its own"),
        pytest.param(" I know. Action: text[x] Observation: y\nAction: text[x]", id="an invented observation"),
        pytest.param(" x\nObservation: y\nAction: text[x]", id="an observation before the action"),
        pytest.param(" x\n> **Action 2:** y\nAction: text[x]", id="a decorated label"),
        pytest.param(" so: [y]\nAction: text[x]", id="a bracket behind a colon"),
        pytest.param(" x\nAction: other[x]", id="an unknown tool"),
        pytest.param(" x\nAction: text(x)", id="parentheses"),
        pytest.param(" x\nAction: text[x]\nObservation: y", id="an invented observation behind the action"),
        pytest.param(" x\nAction: text[x] and", id="text behind the action"),
        pytest.param(" x\nAction: text[x", id="an open bracket"),
        pytest.param(" x\nAction: text[]", id="no argument"),
        pytest.param(" x\nAction: text[ ]", id="a blank argument"),
        pytest.param(" x\nAction: text[query= ]", id="a name without a value"),
        pytest.param("<think>x\nAction: text[x]", id="an open reasoning block"),
        pytest.param(" x<|im_end|>\nAction: text[x]", id="a control token"),
        pytest.param(" x\naction: text[x]", id="another case"),
        pytest.param(" x\nAction:text[x]", id="no blank behind the label"),
    ],
)
def test_turns_that_cannot_be_written(turn: str) -> None:
    constraint = turn_of([text])
    assert not constraint.accepts(turn)
    assert not Gbnf(constraint.gbnf).accepts(turn)


@pytest.mark.parametrize("path", sorted((ROOT / "prompts").glob("*.j2")), ids=lambda path: path.stem)
def test_few_shots_and_goldens_are_accepted_by_the_grammar_of_their_prompt(path: Path) -> None:
    prompt = Prompt.load(path)
    tools = load_tools(prompt.tools)
    gbnf = Gbnf(turn_of(tools).gbnf)
    seen = 0
    for file in [*prompt.examples, *(ROOT / "traces").glob(f"{path.stem}*.trace")]:
        for step in Trace.load(file).steps:
            if parse_turn(step.completion).action.tool in (*tools, FINISH):  # others are mistakes that are shown
                assert turn_of(tools).accepts(step.completion), step.completion
                assert gbnf.accepts(step.completion), step.completion
                seen += 1
    assert seen > 5


# -- arguments

ARGUMENTS: dict[str, tuple[list[Parameter], list[str], list[str]]] = {
    "nothing": ([], [""], [" ", "x"]),
    "a text": (
        [Parameter("q")],
        ["x", " x", "a, b", "it's", 'the "Kestrel" lamp', '"a" AND "b"', "f(x[1][2]) = 3", "x == y", "d['k'] + 1",
         'print("a", d[\'k\'])', '["a", "b"]', "[[1, 2], [3]]", "[]", "東京　タワー", "a\xa0b", '"', "<b>", "q=x"],
        ["", " ", "a]", "[a", "a\nb", "q=", "x =", "[[[[1]]]]", "x "],
    ),
    "a text with a default": ([Parameter("q", str, "x")], ["", "y"], [" "]),
    "a whole number": ([Parameter("n", int)], ["0", "-12", "42"], ["", "4.5", "x", "007", "1,000", " 1"]),
    "a number": ([Parameter("x", float)], ["0", "-1.5", "2e3"], ["", ".5", "x", "1,5"]),
    "a range": ([Parameter("n", Annotated[int, Range(1, 30)])], ["1", "9", "10", "30"], ["0", "31", "300", "-1"]),
    "an open range": ([Parameter("n", Annotated[int, Range(10)])], ["10", "99", "12345"], ["9", "-10"]),
    "a range of decimals": (
        [Parameter("x", Annotated[float, Range(0, 1)])], ["0", "1", "0.25", "1.0"], ["1.01", "-0.5", "2"],
    ),
    "a range, or nothing": ([Parameter("n", Annotated[int | None, Range(1, 3)])], ["1", "3", "None"], ["0", "4"]),
    "yes or no": ([Parameter("b", bool)], ["true", "false"], ["yes", "True", "1", ""]),
    "a date": ([Parameter("d", datetime.date)], ["2024-02-29", "2026-12-31"], ["2026-02-29", "2026-13-01", "26-1-1"]),
    "a time": (
        [Parameter("t", datetime.datetime)], ["2026-07-01", "2026-07-01T10:30", "2026-07-01 10:30:59"], ["10:30"],
    ),
    "words": ([Parameter("w", Literal["fast", "slow", 3])], ["fast", "slow", "3"], ["Fast", "slower", "", '"fast"']),
    "an enum": ([Parameter("c", Colour)], ["red", "deep blue", "a, b", 'say "x"'], ["RED", "blue"]),
    "a month": ([Parameter("m", Month)], ["2026-07"], ["2026-13", "July", "2026-7", '"2026-07"']),
    "a pattern with blanks at its edges": (
        [Parameter("p", Annotated[str, Pattern(r"a? ?b? ?")])], ['"a b "', '""', '" "'], ["a b", ""],
    ),
    "a pattern that cannot be told": (
        [Parameter("p", Annotated[str, Pattern(r"(?!x)\w+")])], ["word", "not one word"], [""],
    ),
    "a JSON list": (
        [Parameter("names", list)], ["[]", '["a"]', '["a]b", "c, d"]', '["say \\"hi\\""]'], ["a", "[a]", "['a']", "[1"],
    ),
    "a list of numbers": ([Parameter("ns", list[int])], ["[]", "[1, 2]", "[-3,4]"], ['["1"]', "[1.5]", "1, 2"]),
    "a list of words": ([Parameter("ws", list[Literal["p", "q"]])], ['["p"]', '["q", "p"]'], ["[p]", '["r"]']),
    "a JSON object": (
        [Parameter("config", dict)],
        ["{}", '{"a": 1}', '{"a": [1, "x"], "b": {"c": null}}', '{"configs": true}', '{"conf": 1}', '{"": 1}'],
        ['{"config": 1}', "{a: 1}", "{'a': 1}", "[]", '{"a": 01}', '{"a": {"b": {"c": {"d": 1}}}}'],
    ),
    "an object of numbers": (
        [Parameter("given", dict[str, int])], ['{"a": 1, "b": 2}'], ['{"a": "1"}', '{"a": 1.5}'],
    ),
    "two texts": (
        [Parameter("team"), Parameter("month")],
        ["compute, 2026-07", "a,b", '"a, b", c', '"a \\" b", "c]"', "team=compute, month=2026-07", "a, month=b",
         "O'Neil, at 10:30", "http://x/y, dogs' bone"],
        ["a", "a, b, c", "a,", ", b", "a(b), c", "'a', b", '"a" b, c', "month=a, team=b", "a=b, c", "a[1], b",
         "team: str, month: str"],
    ),
    "a text and a default": ([Parameter("city"), Parameter("days", int, 1)], ["x", "x, 3", "x, days=3"], ["", "x, y"]),
    "two defaults": ([Parameter("a", int, 1), Parameter("b", int, 2)], ["", "1", "1, 2"], [", 2", "x"]),
    "a default before what is required": ([Parameter("a", int, 1), Parameter("b")], ["1, x"], ["x", "1"]),
    "an object that could be left alone": (
        [Parameter("config", dict), Parameter("strict", bool, False)], ['{"a": 1}, true', "config={}, false"], ["{}"],
    ),
    "words that could name another": (
        [Parameter("c", Literal["b: x", "z"]), Parameter("b")], ['"b: x", y', "z, y"], ["b: x, y"],
    ),
    "words among others": (
        [Parameter("c", Colour), Parameter("w", Literal["x]y", "z"])],
        ["red, z", '"a, b", "x]y"', 'say "x", z'],
        ["a, b, z", "red, x]y"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_by_annotation(kind: str) -> None:
    parameters, good, bad = ARGUMENTS[kind]
    form = arguments_form(parameters)
    gbnf, regex = Gbnf(to_gbnf(form)), re.compile(to_regex(form))
    for each in good:
        assert gbnf.accepts(each) and regex.fullmatch(each), each
        bracketed = f"[{each}]"
        assert closing_bracket(bracketed, 0, len(bracketed)) == len(bracketed) - 1
        if kind != "a pattern that cannot be told":
            read_arguments(each, parameters)
    for each in bad:
        assert not gbnf.accepts(each) and not regex.fullmatch(each), each


def test_values_arrive_as_they_were_meant() -> None:
    assert TOOLS["words"].read('"x]y", "a, b"') == {"which": "x]y", "colour": Colour.LISTED, "other": None}
    assert TOOLS["codes"].read('"AB cd", "1 + \' ]"') == {"code": "AB cd", "rest": "1 + ' ]"}
    forms = {each: arguments_form([Parameter("w", Literal[each])]) for each in (" pad ", "", "a\nb")}
    assert to_regex(forms[" pad "]) == '" pad "'
    assert to_regex(forms[""]) == '""'
    assert Gbnf(to_gbnf(forms["a\nb"])).accepts("anything"), "a word that cannot be written in one line: any text"


def line_free() -> Form:
    """What a tool for code takes."""
    return Grammar(load_tools([python, write]), PLAIN)._arguments["python"]


@pytest.mark.parametrize(
    ("code", "possible"),
    [
        ("import math\nprint(math.pi)", True),
        ("\nx = [1, 2]\nfor i in x:\n    print(i)\n", True),
        ("d = {'a': 1}\n\nd[\"a\"] += 1", True),
        ("total = 5\na = 1\nobs = 2\nquery = 'q: x'\nversion: 3", True),
        ("try:\n    pass\nexcept E:\n    raise", True),
        ("x = [\n  1]", False),
        ("x\nThought: y", False),
        ("x\n  action : y", False),
        ("\n\n", False),
        ("\ncode=", False),
    ],
)
def test_texts_of_several_lines(code: str, possible: bool) -> None:
    assert bool(re.fullmatch(to_regex(line_free()), code)) == possible
    assert Gbnf(to_gbnf(line_free())).accepts(code) == possible
    assert not turn_of([text]).accepts(f" x\nAction: text[{code}]")
    if possible:
        turn = f" x\nAction: python[{code}]\n"
        assert turn_of([python]).accepts(turn)
        assert read_back(turn, load_tools([python]), PLAIN) == {"code": code.strip()}


def test_a_listed_text_may_have_lines_in_its_quotes() -> None:
    turn = ' x\nAction: write[a.md, "# Title\n\nsaid \\"so\\"", w]'
    assert turn_of([write]).accepts(turn)
    assert read_back(turn, load_tools([write]), PLAIN)["content"] == '# Title\n\nsaid "so"'
    assert not turn_of([write]).accepts(turn.replace("# Title", "x\nObservation: y"))


# -- names


@pytest.mark.parametrize("name", NAMED)
def test_bad_grammar_kills_server(name: str) -> None:
    constraint = turn_of({name: text, "other": whole})
    turn = f" x\nAction: {name}[a]"
    for grammar in (constraint.gbnf, constraint.lazy_gbnf):
        assert Gbnf(grammar).accepts(turn[3:] if grammar == constraint.lazy_gbnf else turn)
    assert constraint.accepts(turn)
    assert not constraint.accepts(f" x\nAction: {name[:-1]}[a]")
    assert read_back(turn, load_tools({name: text}), PLAIN) == {"query": "a"}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[]［］【】\n"), min_size=1, max_size=20))
def test_every_name_that_can_be_registered_gives_a_valid_grammar(name: str) -> None:
    try:
        tools = load_tools({name: nothing})
    except AuthorError:
        return
    constraint = turn_of(tools)
    turn = f"\nAction: {name}[]"
    try:
        readable = parse_turn(turn).action.tool == name
    except ParseError:
        readable = False
    assert Gbnf(constraint.gbnf).accepts(turn) == constraint.accepts(turn) == readable


# -- parts of a turn, and calls that were made


def test_what_may_follow_each_cue() -> None:
    grammar = Grammar(load_tools([text]), NUMBERED)
    action, answer = grammar.after("Action 3:", 3), grammar.after("Action 3: finish[", 3)
    assert action and answer
    assert [action.accepts(t) for t in (" text[x]", " finish[x]\n", "text[x]", " I think", " other[x]")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert [answer.accepts(t) for t in ("42]", "42]\n", "42", "]", "a [b] c]")] == [True, True, False, False, True]
    assert Gbnf(action.gbnf).accepts(" text[x]") and Gbnf(answer.gbnf).accepts("42]\n")
    assert grammar.after("Action 2:", 3) is None
    whole_turn = grammar.after("Thought 3:", 3)
    assert whole_turn and whole_turn.accepts(" x\nAction 3: text[x]") and not whole_turn.accepts(" x\nAction: text[x]")


def refusing(*calls: tuple[str, dict[str, Any]]) -> Callable[[Any, Any], bool]:
    return lambda tool, arguments: (tool.name, dict(arguments)) in calls


def test_calls_that_were_made_are_left_out_where_a_tool_has_few() -> None:
    def level(n: Annotated[int, Range(1, 3)], deep: bool = False) -> None: ...

    grammar = Grammar(load_tools([nothing, level, text]), PLAIN)
    made = refusing(("nothing", {}), ("level", {"n": 2, "deep": False}), ("text", {"query": "x"}))
    left = grammar.after("Action:", 2, made)
    assert left
    possible = [" level[1]", " level[2,true]", " level[n=3, deep=false]", " text[x]", " finish[x]"]
    assert [each for each in possible if not left.accepts(each)] == []
    assert [each for each in (" nothing[]", " level[2]", " level[2, false]", " level[n=2]") if left.accepts(each)] == []
    assert Gbnf(left.gbnf).accepts(" level[3]") and not Gbnf(left.gbnf).accepts(" nothing[]")
    fresh = grammar.after("Action:", 2, refusing())
    assert fresh and fresh.gbnf == Grammar(load_tools([nothing, level, text]), PLAIN).after("Action:", 2).gbnf  # type: ignore[union-attr]


def test_a_lazy_grammar_leaves_the_thought_alone() -> None:
    grammar = Grammar(load_tools([text]), NUMBERED, lazy=True)
    constraint = grammar.after("Thought 2:", 2)
    assert constraint and constraint.lazy
    assert constraint.trigger == "\n(Action(?: [0-9]+)?:)", "the number may be left out"
    assert Gbnf(constraint.lazy_gbnf).accepts("Action 2: text[x]\n")
    assert Gbnf(constraint.lazy_gbnf).accepts("Action: text[x]")
    part = grammar.after("Action 2:", 2)
    assert part and not part.lazy, "there is no thought to leave alone"
    assert constraint.accepts(" <b> [x]: Observation\nAction 2: text[x]")
    assert constraint.accepts(" never triggered")
    assert not constraint.accepts(" x\nAction 2: other[x]")
    assert not constraint.accepts(" x\nAction 2: text[x] more")
