"""The text between the brackets -> values by annotation; an error says which parameter, what came, what is expected."""

# ruff: noqa: UP007, UP045 - Optional and Union are annotations of their own

from __future__ import annotations

import datetime
import enum
import json
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Pattern, Range
from react_text.arguments import REQUIRED, ArgumentError, Parameter, read_arguments
from react_text.conversion import type_name


class Tide(enum.Enum):
    HIGH = "high water"
    LOW = 2


Month = Annotated[str, Pattern(r"\d{4}-\d{2}")]
Days = Annotated[int, Range(1, 30)]
Maybe = Annotated[Optional[int], Range(1, 3)]
DATE, TIME = datetime.date(2026, 7, 1), datetime.datetime(2026, 7, 1, 12, 5)


def read(text: str, *annotations: Any, **defaults: Any) -> Any:
    """What the parameters a, b, ... get; just the value when there is one."""
    parameters = [Parameter(n, each, defaults.get(n, REQUIRED)) for n, each in zip("abcd", annotations, strict=False)]
    values = read_arguments(text, parameters)
    assert list(values) == [parameter.name for parameter in parameters]
    return values["a"] if len(values) == 1 else list(values.values())


def refused(text: str, *annotations: Any, **defaults: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        read(text, *annotations, **defaults)
    return caught.value


CONVERTED = [
    (str, "0042", "0042"),
    (str, " two words ", "two words"),
    (str, "None", "None"),
    (str, '""', ""),
    (int, "3", 3),
    (int, "+3", 3),
    (int, "-12", -12),
    (int, "3.0", 3),
    (int, '"3"', 3),
    (int, '{"a": 3.0}', 3),
    (float, "2.5", 2.5),
    (float, ".5", 0.5),
    (float, "-1e3", -1000.0),
    (float, '{"a": 2}', 2.0),
    (bool, "true", True),
    (bool, "Yes", True),
    (bool, "0", False),
    (bool, '{"a": false}', False),
    (bool, '{"a": True}', True),
    (None, "none", None),
    (type(None), "null", None),
    (Optional[int], "None", None),
    (Optional[int], "7", 7),
    (Optional[str], "null", None),
    (Optional[str], '"null"', "null"),
    (int | None, '{"a": null}', None),
    (Union[str, int], "7", 7),
    (int | str, "seven", "seven"),
    (Literal["fast", "slow"], "fast", "fast"),
    (Literal["fast", "slow"], "FAST", "fast"),
    (Literal[1, 2], "2", 2),
    (Literal["a", "A"], "A", "A"),
    (Tide, "high water", Tide.HIGH),
    (Tide, "HIGH", Tide.HIGH),
    (Tide, "low", Tide.LOW),
    (Tide, "2", Tide.LOW),
    (datetime.date, "2026-07-01", DATE),
    (datetime.date, '"2026-07-01"', DATE),
    (datetime.datetime, "2026-07-01T12:05", TIME),
    (datetime.datetime, "2026-07-01 12:05:00", TIME),
    (datetime.datetime, "2026-07-01T12:05:00Z", TIME.replace(tzinfo=datetime.timezone.utc)),
    (list, "x, y", ["x", "y"]),
    (list[int], "1, 2", [1, 2]),
    (list[int], "[1, 2]", [1, 2]),
    (list[int], '{"a": [1, 2]}', [1, 2]),
    (list[str], '["x, y", "z"]', ["x, y", "z"]),
    (list[str], "['x, y', z]", ["x, y", "z"]),
    (list[str], "[]", []),
    (tuple[int, ...], "1, 2", (1, 2)),
    (set[int], "1, 2, 1", {1, 2}),
    (list[list[int]], "[[1], [2, 3]]", [[1], [2, 3]]),
    (dict, '{"x": 1}', {"x": 1}),
    (dict, "{'x': None}", {"x": None}),
    (dict[str, int], '{"x": 1}', {"x": 1}),
    (Month, "2026-07", "2026-07"),
    (Days, "30", 30),
    (Annotated[float, Range(0)], "0", 0.0),
    (Annotated[float, Range(high=1)], "-7", -7.0),
    (Maybe, "None", None),
    (Maybe, "3", 3),
    (Any, "x", "x"),
]


@pytest.mark.parametrize(
    ("annotation", "text", "value"), CONVERTED, ids=[f"{type_name(a)} {t}" for a, t, _ in CONVERTED]
)
def test_converts(annotation: Any, text: str, value: Any) -> None:
    found = read(text, annotation)
    assert found == value
    assert type(found) is type(value)


NOT_CONVERTED = [
    (int, "three", "a must be int (a whole number), not 'three'"),
    (int, "2.5", "a must be int (a whole number), not '2.5'"),
    (int, "1_000", "a must be int (a whole number), not '1_000'"),
    (int, '{"a": true}', "a must be int (a whole number), not 'true'"),
    (int, '{"a": 1e999}', "a must be int (a whole number), not 'Infinity'"),
    (int, '{"a": NaN}', "a must be int (a whole number), not 'NaN'"),
    (float, "1e999", "a must be float (a number), not '1e999'"),
    (float, "nan", "a must be float (a number), not 'nan'"),
    (bool, "maybe", "a must be bool (true or false), not 'maybe'"),
    (None, "something", "a must be None, not 'something'"),
    (Optional[int], "x", "a must be int (a whole number) or None, not 'x'"),
    (Literal["fast", "slow"], "soon", "a must be fast|slow, not 'soon'"),
    (Tide, "ebb", "a must be high water|2, not 'ebb'"),
    (datetime.date, "July 1st", "a must be date (YYYY-MM-DD), not 'July 1st'"),
    (datetime.datetime, "noon", "a must be datetime (YYYY-MM-DDTHH:MM:SS), not 'noon'"),
    (list[int], "1, x", "a must be list of int (a whole number), not '1, x'"),
    (dict, "x: 1", "a must be dict (a JSON object), not 'x: 1'"),
    (Month, "July", r"a must be str matching \d{4}-\d{2}, not 'July'"),
    (Month, "2026-07-01", r"a must be str matching \d{4}-\d{2}, not '2026-07-01'"),
    (Days, "31", "a must be int (a whole number) from 1 to 30, not '31'"),
    (Maybe, "4", "a must be int (a whole number) or None from 1 to 3, not '4'"),
    (Annotated[int, Range(1)], "0", "a must be int (a whole number) at least 1, not '0'"),
    (Annotated[int, Range(high=9)], "10", "a must be int (a whole number) at most 9, not '10'"),
]


@pytest.mark.parametrize(("annotation", "text", "problem"), NOT_CONVERTED, ids=[p for _, _, p in NOT_CONVERTED])
def test_says_what_came_and_what_is_expected(annotation: Any, text: str, problem: str) -> None:
    caught = refused(text, annotation)
    assert (caught.problem, caught.parameter) == (problem, "a")


def test_a_long_value_is_quoted_in_part() -> None:
    assert refused("x" * 500, int).problem.endswith("... (500 characters)'")


ONE_TEXT = {
    "everything between the brackets": ("x, y = z [w]", "x, y = z [w]"),
    "one pair of quotes goes": ('"x"', "x"),
    "two strings are no pair": ('"x" and "y"', '"x" and "y"'),
    "an escaped quote inside": (r'"x \" y"', 'x " y'),
    "single quotes": ("'x'", "x"),
    "typographic quotes": ("“x”", "x"),
    "quotes that do not belong together": ("'x\"", "'x\""),
    "by name": ("a=x", "x"),
    "by name, in quotes": ('a = "x, y"', "x, y"),
    "a comparison is no name": ("a == x", "a == x"),
    "another name is text": ("b=x", "b=x"),
    "a JSON object": ('{"a": "x"}', "x"),
    "a JSON object with a number": ('{"a": 7}', "7"),
    "a JSON object with other keys": ('{"b": "x"}', '{"b": "x"}'),
    "an empty JSON object": ("{}", "{}"),
    "a JSON object that is broken": ('{"a": ', '{"a":'),
    "an object of Python": ("{'a': 'it\\'s'}", "it's"),
    "a surrogate pair": (r'{"a": "\ud83d\udca1"}', "💡"),
    "several lines": ("x\n  y", "x\n  y"),
}


@pytest.mark.parametrize(("text", "value"), ONE_TEXT.values(), ids=ONE_TEXT)
def test_one_text_parameter(text: str, value: str) -> None:
    assert read(text, str) == value


SEVERAL = {
    "by position": ("x, 3", ["x", 3]),
    "by name": ("a=x, b=3", ["x", 3]),
    "by name in another order": ("b=3, a=x", ["x", 3]),
    "a name behind a position": ("x, b=3", ["x", 3]),
    "a position behind a name": ("b=3, x", ["x", 3]),
    "a default": ("x", ["x", 1]),
    "quotes protect commas": ('"x, y", 3', ["x, y", 3]),
    "brackets protect commas": ("f(x, y), 3", ["f(x, y)", 3]),
    "brackets that do not balance protect none": ("f(x, 3", ["f(x", 3]),
    "nor does a closing bracket too many": ("x), 3", ["x)", 3]),
    "full-width commas": ("x，3", ["x", 3]),
    "a comma at the end": ("x, 3,", ["x", 3]),
    "an equals sign in a value": ("a=x=y, b=3", ["x=y", 3]),
    "an equals sign in a text by position": ("x=y, 3", ["x=y", 3]),
    "a JSON object": ('{"b": 3, "a": "x"}', ["x", 3]),
    "a JSON object without the default": ('{"a": "x"}', ["x", 1]),
}


@pytest.mark.parametrize(("text", "values"), SEVERAL.values(), ids=SEVERAL)
def test_several_parameters(text: str, values: list[Any]) -> None:
    assert read(text, str, int, b=1) == values


REFUSED = {
    "nothing": ("", "a is missing", "a"),
    "nothing for the first": (", 3", "a is missing", "a"),
    "too many": ("x, 3, y", "too many arguments: 3 came, at most 2 are expected", ""),
    "a name twice": ("a=x, a=y", "a is given twice", "a"),
    "a name that is none": ("x, c=3", "c is not a parameter", "c"),
    "a name that is none behind a name": ("a=x, c=3", "c is not a parameter", "c"),
    "a key that is none": ('{"a": "x", "c": 3}', "c is not a parameter", "c"),
    "a value of the wrong type": ("x, y", "b must be int (a whole number), not 'y'", "b"),
}


@pytest.mark.parametrize(("text", "problem", "parameter"), REFUSED.values(), ids=REFUSED)
def test_refuses(text: str, problem: str, parameter: str) -> None:
    caught = refused(text, str, int, b=1)
    assert (caught.problem, caught.parameter) == (problem, parameter)


def test_names_all_that_is_missing_and_a_name_that_is_close() -> None:
    parameters = [Parameter("city"), Parameter("days", int)]
    with pytest.raises(ArgumentError, match="city and days are missing"):
        read_arguments("", parameters)
    with pytest.raises(ArgumentError, match=r"cty is not a parameter \(did you mean city\?\)"):
        read_arguments("cty=Vigo, days=3", parameters)


def test_no_parameters() -> None:
    assert read_arguments(" ", []) == {}
    with pytest.raises(ArgumentError, match="takes no arguments"):
        read_arguments("x", [])


def test_a_default_is_used_as_it_is() -> None:
    assert read("", int, a=None) is None
    assert read("x", str, list, b=()) == ["x", ()]


@pytest.mark.parametrize("depth", [50, 500, 990, 100_000])
@pytest.mark.parametrize("annotation", [str, list[str], Any])
def test_nesting_never_overflows(depth: int, annotation: Any) -> None:
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    assert read(text, annotation)


TYPES = [
    str, int, float, bool, None, Optional[int], Literal["a", 3], Tide, datetime.date, datetime.datetime, list[int],
    list, dict, Month, Days, Maybe, Any, tuple[int, ...], set[int], list[list[int]], Optional[list[int]], int | str,
]  # fmt: skip
PIECES = [
    "a", "b", "=", ",", "[", "]", "{", "}", '"', "'", "“", "”", "1", "2.5", "-3", "1e999", "Infinity", "null", "None",
    "True", ":", "\n", " ", "2026-07-01", "T10:00", "\\", "a=", '{"a": ', "9" * 400, "[1, 2]", "\\ud83d", "１", "٣",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join), st.lists(st.sampled_from(TYPES), max_size=3))
def test_any_text_gives_values_or_an_argument_error(text: str, annotations: list[Any]) -> None:
    try:
        values = read_arguments(text, [Parameter(n, each) for n, each in zip("abc", annotations, strict=False)])
    except ArgumentError as caught:
        assert caught.problem
    else:
        assert len(values) == len(annotations)


@given(st.dictionaries(st.sampled_from("ab"), st.text(), min_size=2))
def test_any_texts_arrive_through_json(values: dict[str, str]) -> None:
    assert read_arguments(json.dumps(values), [Parameter("a"), Parameter("b")]) == values


@given(st.text(alphabet="ab ,=[]\n’", min_size=1).filter(lambda text: text == text.strip()))
def test_any_text_arrives_in_quotes(text: str) -> None:
    assert read_arguments(f'"{text}", b', [Parameter("x"), Parameter("y")]) == {"x": text, "y": "b"}


NAMES = {
    "b: str": Parameter("b", str),
    "c: int = 1": Parameter("c", int, 1),
    'd: str = ""': Parameter("d", str, ""),
    "e: int or None = None": Parameter("e", Optional[int], None),
    "f: fast|slow": Parameter("f", Literal["fast", "slow"]),
    "g: high water|2 = 2": Parameter("g", Tide, Tide.LOW),
    "h: int from 1 to 30": Parameter("h", Days),
    "i: str": Parameter("i", Month),
    "j: list of int": Parameter("j", list[int]),
    "k: any": Parameter("k", Any),
}


@pytest.mark.parametrize(("usage", "parameter"), NAMES.items())
def test_how_a_parameter_is_called_in_a_usage_line(usage: str, parameter: Parameter) -> None:
    assert str(parameter) == usage


FIELDS = [Parameter("city", str | None, None), Parameter("days", int | None, None), Parameter("tags", list[str], [])]


@pytest.mark.parametrize(
    "text",
    [
        "city: Kyoto\ndays: 3\ntags: [a, b]",
        "\ncity:  Kyoto \n\ndays: 3\ntags: a, b\n",
        "tags: a, b\ncity: 'Kyoto'\ndays: 3",
    ],
)
def test_lines_of_names_and_values_are_arguments_by_name(text: str) -> None:
    assert read_arguments(text, FIELDS) == {"city": "Kyoto", "days": 3, "tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "city", "days"),
    [
        ("city: Kyoto", "Kyoto", None),
        ("city: Kyoto, days: 3", "Kyoto", 3),
        ("city: 'Kyoto, old', days: 3", "Kyoto, old", 3),
        ('"city": "Kyoto", "days": 3', "Kyoto", 3),
        ("city: Kyoto, days=3", "Kyoto", 3),
        ('"city"="Kyoto", "days"=3', "Kyoto", 3),
        ("city: str or None = Kyoto, days: int or None = 3", "Kyoto", 3),
        ("city: Kyoto, 3", "city: Kyoto", 3),
        ("town: Kyoto, 3", "town: Kyoto", 3),
        ("city: a, city: b", "city: a", "city: b"),
    ],
)
def test_parts_of_one_line_are_by_name_where_all_of_them_are(text: str, city: str, days: Any) -> None:
    if isinstance(days, str):
        with pytest.raises(ArgumentError, match="days must be int"):
            read_arguments(text, FIELDS)
    else:
        read = read_arguments(text, FIELDS)
        assert (read["city"], read["days"]) == (city, days)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("title: Salt Roads", "Salt Roads"),
        ('title: "Salt Roads"', "Salt Roads"),
        ('"title": "Salt Roads"', "Salt Roads"),
        ("title: Salt, Roads: a novel", "Salt, Roads: a novel"),
        ("subtitle: Salt Roads", "subtitle: Salt Roads"),
        ("title:Salt Roads", "title:Salt Roads"),
        ("Salt Roads, title: none", "Salt Roads, title: none"),
    ],
)
def test_a_single_parameter_may_be_named(text: str, value: str) -> None:
    assert read_arguments(text, [Parameter("title")]) == {"title": value}


def test_a_single_number_may_be_named() -> None:
    assert read_arguments("number: 7", [Parameter("number", int)]) == {"number": 7}


def test_the_only_value_that_is_possible_is_no_copied_usage() -> None:
    unit = Parameter("unit", Literal["kg"])
    assert read_arguments("load: 3, unit: kg", [Parameter("load", int), unit]) == {"load": 3, "unit": "kg"}


def test_a_usage_that_is_copied_is_no_call() -> None:
    with pytest.raises(ArgumentError, match="city has its type for a value"):
        read_arguments("city: str, days: int = 1", [Parameter("city"), Parameter("days", int, 1)])


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Kyoto", "days": 3,}',
        '{"city": "Kyoto",\n "days": 3,\n}',
        "{“city”: “Kyoto”, “days”: 3}",
        '```json\n{"city": "Kyoto", "days": 3}\n```',
    ],
)
def test_objects_that_are_not_quite_json(text: str) -> None:
    assert read_arguments(text, FIELDS) == {"city": "Kyoto", "days": 3, "tags": []}


def test_a_text_of_several_lines_in_a_json_object() -> None:
    assert read_arguments('{"city": "Kyoto\n(old)", "days": 3}', FIELDS)["city"] == "Kyoto\n(old)"


@pytest.mark.parametrize("text", ["{'city': 'Queen's Quay', 'days': 3}", '{"city": Kyoto}', "{“city” “Kyoto”}"])
def test_an_object_that_cannot_be_read_is_no_text(text: str) -> None:
    with pytest.raises(ArgumentError, match="no JSON object"):
        read_arguments(text, FIELDS)


def test_two_objects_are_two_arguments() -> None:
    parameters = [Parameter("a", dict), Parameter("b", dict)]
    assert read_arguments('{"x": 1}, {"y": 2}', parameters) == {"a": {"x": 1}, "b": {"y": 2}}


def test_an_empty_object_gives_nothing() -> None:
    assert read_arguments("{}", FIELDS) == {"city": None, "days": None, "tags": []}
    assert read_arguments("{}", []) == {}
    with pytest.raises(ArgumentError, match="city is missing"):
        read_arguments("{}", [Parameter("city"), Parameter("days", int, 1)])


def test_lines_of_which_one_names_no_parameter_are_not_read_by_name() -> None:
    assert read_arguments("Kyoto: old\ncity: new", FIELDS)["city"] == "Kyoto: old\ncity: new"


def test_the_meaning_of_a_pattern_stands_in_its_error() -> None:
    month = Parameter("month", Annotated[str, Pattern(r"\d{4}-\d\d", "a month, YYYY-MM")])
    with pytest.raises(ArgumentError, match="month must be a month, YYYY-MM, not 'July'"):
        read_arguments("July", [month])


def test_a_colon_within_a_word_names_nothing() -> None:
    two = [Parameter("team"), Parameter("month")]
    assert read_arguments("team:str, 2026-07", two) == {"team": "team:str", "month": "2026-07"}
    assert read_arguments("team:str, month:str", two) == {"team": "team:str", "month": "month:str"}
