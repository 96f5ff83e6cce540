"""Functions -> tools: names, usage lines, options, modules by path, and errors that the author reads."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

from react_text import AuthorError, Pattern, Range, load_tools, tool

from .harbour import act, finish, play


def search(query: str) -> str:
    """Search the archive
    of the harbour.

    Not part of the description.
    """
    return query


def get_weather(city: str, days: Annotated[int, Range(1, 14)] = 1) -> str:
    return city


def now() -> str:
    """The time."""
    return "12:05"


def plain(anything, number=3):  # type: ignore[no-untyped-def]
    return anything


class Box:
    """A box."""

    def method(self, month: Annotated[str, Pattern("x")]) -> str:
        """A method."""
        return month

    def __call__(self, key: str, size: int) -> str:
        """Look into the box."""
        return key


USAGES = {
    "search[query]": search,
    "get_weather[city: str, days: int from 1 to 14 = 1]": get_weather,
    "now[]": now,
    "plain[anything: str, number: str = 3]": plain,
    "method[month: str]": Box().method,
    "Box[key: str, size: int]": Box(),
    "get_weather[days: int from 1 to 14 = 1]": functools.partial(get_weather, "Vigo"),
    "day[at]": {"day": lambda at: at},
}


@pytest.mark.parametrize(("usage", "source"), USAGES.items(), ids=USAGES)
def test_usage_lines(usage: str, source: Any) -> None:
    assert load_tools(source).usages() == [usage, "finish[answer]"]


def test_describe() -> None:
    assert load_tools([search, [get_weather], {"clock": now}]).describe() == (
        "search[query] - Search the archive of the harbour.\n"
        "get_weather[city: str, days: int from 1 to 14 = 1]\n"
        "clock[] - The time.\n"
        "finish[answer] - give the final answer and end"
    )


def test_options() -> None:
    @tool(name="poll", pure=True, repeatable=True, timeout=2.5, multiline=True, unsafe=True)
    def function(a: str) -> str:
        return a * 2

    assert function("x") == "xx"
    (made,) = load_tools([function]).values()
    options = made.options
    assert made.name == options.name == "poll"
    assert (options.pure, options.repeatable, options.multiline, options.unsafe) == (True,) * 4
    assert options.timeout == 2.5


def test_options_default_and_unknown() -> None:
    @tool
    def function(a: str) -> str:
        return a

    options = load_tools([function])["function"].options
    assert not (options.pure or options.repeatable or options.multiline or options.unsafe or options.timeout)
    with pytest.raises(TypeError, match="repeat"):
        tool(repeat=True)(function)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["get_x", "get-x"], "'get_x' and 'get-x' differ only in case"),
        (["search", "Search"], "'search' and 'Search' differ only in case"),
        (["Finish"], r"finish\[answer\] ends the run"),
        (["a[b"], "one line without brackets"),
        (["a\nb"], "one line without brackets"),
        ([" "], "one line without brackets"),
    ],
)
def test_names_that_cannot_be(names: list[str], message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        load_tools(dict.fromkeys(names, search))


@pytest.mark.parametrize(
    ("written", "name"),
    [("get_x", "get_x"), ("Get-X", "get_x"), ("GETX", "get_x"), ("FINISH", "finish"), ("get_y", None), ("get x", None)],
)
def test_a_name_may_differ_in_case_dash_and_underscore(written: str, name: str | None) -> None:
    assert load_tools({"get_x": search}).resolve(written) == name


def test_signatures_that_no_text_can_fill() -> None:
    def positional(a: str, /) -> str:
        return a

    def unknown(a: Missing) -> str:  # type: ignore[name-defined] # noqa: F821
        return a

    for function, message in ((positional, "positional-only"), (unknown, "annotations cannot be read"), (iter, "read")):
        with pytest.raises(AuthorError, match=message):
            load_tools([function])


def test_starred_parameters_are_left_out() -> None:
    def function(a: str, *rest: str, b: int = 2, **more: str) -> str:
        return f"{a}{rest}{b}{more}"

    assert load_tools([function]).usages()[0] == "function[a: str, b: int = 2]"
    assert play(act("function[x, b=3]"), finish(), tools=[function]).result.steps[0].observation == "x()3{}"


async def later(a: str) -> str:
    await asyncio.sleep(0)
    return f"{a} later"


class Later:
    async def __call__(self, a: str) -> str:
        return f"{a} later"


@pytest.mark.parametrize(
    "function", [later, Later(), functools.partial(later, a="x")], ids=["async", "object", "partial"]
)
def test_async_tools(function: Any) -> None:
    played = play(act("later[a=x]"), finish(), tools={"later": function})
    assert played.result.steps[0].observation == "x later"


# -- modules

MODULE = '''
"""Tools."""
from dataclasses import dataclass
from os.path import join
from react_text import tool

@dataclass
class Row:
    name: str

def search(query: str) -> str:
    """Search."""
    return Row(query).name

def _private(a: str) -> str:
    return a

@tool(name="clock")
def now() -> str:
    return "12:05"
'''


def module(tmp_path: Path, text: str, name: str = "harbour.py") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_a_module_offers_its_own_public_functions(tmp_path: Path) -> None:
    path = module(tmp_path, MODULE)
    assert load_tools(path).usages() == ["search[query]", "clock[]", "finish[answer]"]
    assert load_tools([str(path), get_weather]).usages()[2].startswith("get_weather[")


def test_a_module_with_all_offers_just_that(tmp_path: Path) -> None:
    path = module(tmp_path, MODULE + '__all__ = ["join", "_private"]\n')
    assert set(load_tools(path)) == {"join", "_private"}


def test_a_module_is_never_imported_as_a_package_named_tools(tmp_path: Path) -> None:
    load_tools(module(tmp_path, MODULE, "tools.py"))
    assert getattr(sys.modules.get("tools"), "search", None) is None


def test_two_modules_of_one_name_stay_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        module(tmp_path / name, f"def {name}(x: str) -> str:\n    return '{name}'\n")
    tools = load_tools([tmp_path / "a" / "harbour.py", tmp_path / "b" / "harbour.py"])
    assert [tools[name].function("") for name in ("a", "b")] == ["a", "b"]


BROKEN = {
    "syntax error": ("def f(:\n    pass\n", 1, "syntax error: "),
    "runtime error": ("x = 1\ny = 1 / 0\n", 2, "raised ZeroDivisionError: division by zero"),
    "runtime error in a function": ("def f():\n    raise KeyError('k')\n\nf()\n", 2, "raised KeyError: 'k'"),
    "import error": ("\n\nimport no_such_module_here\n", 3, "raised ModuleNotFoundError"),
    "exit": ("raise SystemExit(3)\n", 1, "raised SystemExit: 3"),
    "no tools": ("x = 1\n", None, "offers no tools"),
}


@pytest.mark.parametrize(("text", "line", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_module(text: str, line: int | None, message: str, tmp_path: Path) -> None:
    path = module(tmp_path, text)
    with pytest.raises(AuthorError) as caught:
        load_tools(path)
    place = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(place)
    assert message in caught.value.message


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    module(tmp_path, MODULE)
    with pytest.raises(AuthorError, match=r"harbor\.py: no such tools module \(did you mean harbour\.py\?\)"):
        load_tools(tmp_path / "harbor.py")
    module(tmp_path, "x", "notes.txt")
    with pytest.raises(AuthorError, match=r"notes\.txt: a tools module is a \.py file"):
        load_tools(tmp_path / "notes.txt")


def test_a_parameter_whose_annotation_is_wrong_names_the_line(tmp_path: Path) -> None:
    path = module(tmp_path, "\n\ndef f(a: 'Nothing') -> str:\n    return a\n")
    with pytest.raises(AuthorError, match=rf"^{os.fspath(path)}:3: tool f: its annotations cannot be read"):
        load_tools(path)
