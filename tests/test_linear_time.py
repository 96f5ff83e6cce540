"""Hostile texts take time in proportion to their length: a web page in an observation can steer what a model writes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from react_text.arguments import ArgumentError, Parameter, read_arguments
from react_text.errors import ParseError
from react_text.parse import parse_turn, turn_end
from react_text.scan import closing_bracket

# The kind regex-backtracking of cases.yaml: quadratic-tool-pattern and truncated-repeats-hang.
REPORTED = {
    "labels without an action": lambda n: "Thought: a\nAction: " * (n // 19),
    "opening brackets": lambda n: "Action: search" + "[" * n,
    "closing brackets": lambda n: "Action: search[" + "]x" * (n // 2),
    "blanks behind a label": lambda n: "Thought:" + " " * n + "Actio",
    "newlines": lambda n: "\n" * n + "Action",
    "stars": lambda n: "*" * n,
    "many calls and one cut off": lambda n: (
        "Thought: t\nAction: lookup[x]\n" * (n // 29) + "Thought: t\nAction: lookup["
    ),
}

HOSTILE = {
    **REPORTED,
    "a fence and blanks": lambda n: "Action:\n```" + " " * n + "x y",
    "many fences": lambda n: "```\n" * (n // 4) + "Action: a",
    "fenced open calls": lambda n: "```\nAction: a[\n```\n" * (n // 19),
    "tildes": lambda n: "Action: a\n" + "~" * n,
    "ends of reasoning behind a call": lambda n: "x\n" * (n // 4) + "Action: a[" + "</think>" * (n // 16),
    "beginnings of reasoning": lambda n: "<think>" * (n // 7),
    "blocks of reasoning": lambda n: "<think></think>" * (n // 15) + "Action: a[b]",
    "open parentheses": lambda n: "Action: a(" * (n // 10),
    "open parentheses on lines": lambda n: "Action: a(\n" * (n // 11),
    "open calls in a line": lambda n: "x Action: a[ " * (n // 13),
    "open calls in lines": lambda n: "x Action: a[\n" * (n // 13),
    "calls in a line": lambda n: "x Action: a[b] " * (n // 15),
    "a long name": lambda n: "Action: " + "a" * n + "[",
    "a name and blanks": lambda n: "Action: a" + " " * n + "[",
    "quotes": lambda n: "Action: a[" + '"' * n,
    "quotes and commas": lambda n: "Action: a[" + '","' * (n // 3) + "]x",
    "quotes and blanks": lambda n: 'Action: a["' + ('"' + " " * 100) * (n // 101) + "]",
    "escaped quotes": lambda n: "Action: a[" + '"\\' * (n // 2) + "]",
    "quotes of all kinds": lambda n: "Action: a[" + ",\"“‘'" * (n // 5) + "]",
    "quotes before labels": lambda n: "Action: a[" + ',"\nThought:\n' * (n // 12) + "]",
    "JSON with escaped quotes": lambda n: 'Action: {"' + '\\"' * (n // 2) + "}",
    "braces": lambda n: "Action: " + "{" * (n // 2) + "}" * (n // 2),
    "halves of tokens": lambda n: "Action: a" + "<|" * (n // 2) + "[b]",
    "tokens": lambda n: "<|x|>" * (n // 5) + "\nAction: a[b]",
    "ends of the turn": lambda n: "<|im_end|>" * (n // 10),
    "answer labels": lambda n: "Answer:\n" * (n // 8),
    "bare open calls": lambda n: "a[\n" * (n // 3),
    "bare calls": lambda n: "a[b]\n" * (n // 5) + "x",
    "digits": lambda n: "1" * n + "\nAction: foo",
    "a label and digits": lambda n: "Action " + "1" * n,
    "labels and digits": lambda n: "Action 1 \n" * (n // 10),
    "lines of marks": lambda n: "* _ # > - `\n" * (n // 12) + "Action: foo",
    "input labels": lambda n: "Action: a\n" + "Action Input:\n" * (n // 14),
    "no tool and dots": lambda n: "Action: none" + "." * n + "x",
    "dashes": lambda n: "Action: " + "-" * n + "x",
    "a colon and blanks": lambda n: "Action: a:" + " " * n,
    "half a stop word": lambda n: "x\nObserv" + " " * n + "x",
    "empty actions": lambda n: "Action: \n\n" * (n // 10),
    "a bracket at the very end": lambda n: "Action: x\n" * (n // 10) + "[]",
    "names in brackets": lambda n: "Action: [" + "[a]" * (n // 3),
    "an answer by name, again and again": lambda n: "Action: finish(" + "answer=" * (n // 7) + ")",
    "an answer that looks like finish": lambda n: "Answer: finish" + "[" * n,
    "carriage returns": lambda n: "Action: a\r\n" * (n // 11),
    "a label without a colon, and blanks": lambda n: "Action" + " " * n + "x",
    "fences with a long word": lambda n: ("Action:\n```" + "w" * 50 + "\n") * (n // 62),
    "begin-of-text tokens": lambda n: "<s> " * (n // 4) + "x",
    "beginnings of other reasoning": lambda n: "<thinking>\n" * (n // 11),
    "near misses in fences": lambda n: "```\nAction: a(x)\n" * (n // 17),
    "names and brackets on two lines": lambda n: "Action: a\n[" * (n // 11),
    "an answer as an action": lambda n: "Action: Final Answer: x\n" * (n // 24),
    "the end of an answer tag behind blanks": lambda n: "<answer>x" + " " * n + "</answer",
    "calls behind other labels": lambda n: "Tool: a[b\n" * (n // 10),
    "calls in tags": lambda n: "<a>b[c]</a>\n" * (n // 12),
    "parentheses below labels": lambda n: "Action:\na(\n" * (n // 11),
    "beginnings of lists of objects": lambda n: "Action: " + "[\n{\n" * (n // 4),
    "triple quotes": lambda n: "Action: a[" + ',"""' * (n // 4) + "]",
    "triple quotes in JSON": lambda n: 'Action: {"a": """' + '\\"' * (n // 2) + "}",
    "ends of reasoning behind a block": lambda n: "<think>" + "a</think>" * (n // 9),
    "full-width marks": lambda n: "Thought：" * (n // 8) + "Action：a［b",
}


def seconds(work: Callable[[], object], tries: int = 3) -> float:
    """The best time of some tries, in seconds of this thread's own work: what else the machine does does not count."""
    times = []
    for _ in range(tries):
        started = time.thread_time()
        work()
        times.append(time.thread_time() - started)
    return min(times)


def parse(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse_turn(text)


def grows_linearly(work: Callable[[str], object], shape: Callable[[int], str], size: int = 10_000) -> bool:
    """Whether eight times the text takes about eight times the time, and by no means 64 times."""
    short, long = shape(size), shape(8 * size)
    return any(seconds(lambda: work(long), tries) < 24 * seconds(lambda: work(short), tries) for tries in (1, 3, 9))


@pytest.mark.parametrize("shape", REPORTED.values(), ids=[f"quadratic-tool-pattern-{name}" for name in REPORTED])
def test_a_megabyte_is_parsed_in_a_fifth_of_a_second(shape: Callable[[int], str]) -> None:
    text = shape(1_000_000)
    assert len(text) > 999_000
    assert seconds(lambda: parse(text)) < 0.2


def test_truncated_repeats_hang() -> None:
    assert str(parse_turn(REPORTED["many calls and one cut off"](150_000)).action) == "lookup[x]"


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_parsing_is_linear(shape: Callable[[int], str]) -> None:
    assert grows_linearly(parse, shape)


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_looking_for_the_end_of_a_stream_is_linear(shape: Callable[[int], str]) -> None:
    assert grows_linearly(turn_end, shape)


@pytest.mark.parametrize("shape", HOSTILE.values(), ids=HOSTILE)
def test_lenient_parsing_is_linear(shape: Callable[[int], str]) -> None:
    def work(text: str) -> None:
        with contextlib.suppress(ParseError):
            parse_turn(text, lenient=["a", "finish"])

    assert grows_linearly(work, shape)


BRACKETS = {
    "nested": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "side by side": lambda n: "[" + "[]" * (n // 2),
    "never closed": lambda n: "[" + "[]" * (n // 2) + "(",
    "quoted": lambda n: "[" + "'],'" * (n // 4) + "]",
    "quotes that stay open": lambda n: "[" + ',"],' * (n // 4),
    "backslashes": lambda n: '["' + "\\" * n + '"]',
    "blanks before quotes": lambda n: "[" + (" " * 50 + '"') * (n // 51) + "]",
}


@pytest.mark.parametrize("shape", BRACKETS.values(), ids=BRACKETS)
def test_finding_the_closing_bracket_is_linear(shape: Callable[[int], str]) -> None:
    assert grows_linearly(lambda text: closing_bracket(text, 0, len(text)), shape)


ARGUMENTS = {
    "commas": lambda n: "," * n,
    "parts": lambda n: "a, " * (n // 3),
    "names": lambda n: "x=" * (n // 2),
    "brackets": lambda n: "[" * n,
    "quotes": lambda n: '"' * n,
    "escaped quotes in an object": lambda n: '{"' + '\\"' * (n // 2) + "}",
    "single quotes in an object": lambda n: "{'" + "\\'" * (n // 2) + "}",
    "nested objects": lambda n: '{"a":' * (n // 5) + "}" * (n // 5),
    "digits": lambda n: "1" * n,
    "backslashes in quotes": lambda n: '"' + "\\" * n + '"',
}


@pytest.mark.parametrize("shape", ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("types", [(str,), (str, int), (list[int], float)], ids=["text", "two", "list"])
def test_reading_arguments_is_linear(shape: Callable[[int], str], types: tuple[type, ...]) -> None:
    parameters = [Parameter(name, annotation) for name, annotation in zip("xy", types, strict=False)]

    def work(text: str) -> None:
        with contextlib.suppress(ArgumentError):
            read_arguments(text, parameters)

    assert grows_linearly(work, shape)
