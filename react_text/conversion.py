"""Text or JSON value -> the Python value that an annotation asks for; and how types are called, for people and models.

The annotation alone decides: `0042` stays text for a `str`, whatever it looks like.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .scan import closing_bracket, read_json, read_object, top_level_parts, unquoted


class Pattern:
    """For `Annotated[str, Pattern(r"\\d{4}-\\d{2}")]`: the whole text must match. `meaning` says it in words (`a month,
    YYYY-MM`), for errors."""

    def __init__(self, pattern: str, meaning: str = "") -> None:
        self.pattern = pattern
        self.meaning = meaning
        self.compiled = re.compile(pattern)

    def __repr__(self) -> str:
        return f"Pattern({self.pattern!r})"


class Shape(Pattern):
    """For texts that are read by a check of their own: what a constrained model may write. The reader is not bound to
    it."""


@dataclass(frozen=True)
class Range:
    """For `Annotated[int, Range(1, 30)]`: both ends belong to it; None leaves an end open."""

    low: float | None = None
    high: float | None = None

    def __contains__(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        if self.low is None:
            return f"at most {self.high}"
        return f"at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"


class Quoted(str):
    """A text that stood in quotes: it is meant as it is, even when it is empty or says None."""

    __slots__ = ()


def unquoted_text(text: str) -> str:
    """`text` without its outer quotes, as Quoted when it had some."""
    inner, quoted = unquoted(text)
    return Quoted(inner) if quoted else text


def convert(value: Any, annotation: Any) -> Any:
    """`value`, a text or a value read from JSON, as `annotation` asks for. Raises ValueError when it cannot be."""
    origin, options = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _checked(convert(value, options[0]), options[1:])
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(value, options)
    if origin is typing.Literal:
        return _one_of(value, {str(option): option for option in options})
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _one_of(value, {**{m.name: m for m in annotation}, **{str(m.value): m for m in annotation}})
    if (origin or annotation) in (list, set, tuple):
        return (origin or annotation)(convert(item, options[0] if options else str) for item in _items(value))
    reader = _READERS.get(origin or annotation)
    return reader(value) if reader else value


def _text(value: Any) -> str:
    if value is None:
        raise ValueError
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    return json.dumps(value, ensure_ascii=False)


def _int(value: Any) -> int:
    if _is_number(value) and value == int(value):
        return int(value)
    text = _ascii_minus(value)
    if isinstance(text, str) and re.fullmatch(r"[+-]?\d{1,300}(?:\.0{1,20})?", text):
        return int(text.partition(".")[0])
    raise ValueError


def _float(value: Any) -> float:
    number = _ascii_minus(value)
    if isinstance(number, str) and re.fullmatch(
        r"[+-]?(?:\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE][+-]?\d{1,3})?", number
    ):
        number = float(number)
    if not _is_number(number):
        raise ValueError
    return float(number)


def _ascii_minus(value: Any) -> Any:
    return value.replace("\u2212", "-") if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    """A JSON number that both int and float can hold: `1e999` is read as infinity."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _bool(value: Any) -> bool:
    word = str(value).casefold()
    if word in ("true", "yes", "1"):
        return True
    if word in ("false", "no", "0"):
        return False
    raise ValueError


def _none(value: Any) -> None:
    if value is not None and (isinstance(value, Quoted) or str(value).casefold() not in ("none", "null", "")):
        raise ValueError


def _dict(value: Any) -> dict[str, Any]:
    found = value if isinstance(value, dict) else read_object(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return found


def _date(value: Any) -> datetime.date:
    return datetime.date.fromisoformat(_text(value))


def _datetime(value: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_text(value).replace("Z", "+00:00"))


_READERS: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    int: _int,
    float: _float,
    bool: _bool,
    None: _none,
    type(None): _none,
    dict: _dict,
    datetime.date: _date,
    datetime.datetime: _datetime,
}


def _checked(value: Any, rules: Sequence[Any]) -> Any:
    for rule in rules if value is not None else ():  # the None of an Optional is not a text or number to check
        if type(rule) is Pattern and not rule.compiled.fullmatch(str(value)):
            raise ValueError
        if isinstance(rule, Range) and isinstance(value, (int, float)) and value not in rule:
            raise ValueError
        if callable(rule) and not isinstance(rule, type):
            value = rule(value)
    return value


def _first_that_fits(value: Any, options: Sequence[Any]) -> Any:
    # None first, text last: every text fits `str`, so that the narrower types would never be tried behind it.
    for option in sorted(options, key=lambda o: (o is not type(None), o is str)):
        try:
            return convert(value, option)
        except ValueError:
            continue
    raise ValueError


def is_choice(annotation: Any) -> bool:
    """Whether an annotation is an Enum or a Literal."""
    enumerated = isinstance(annotation, type) and issubclass(annotation, enum.Enum)
    return enumerated or typing.get_origin(annotation) is typing.Literal


def _one_of(value: Any, options: dict[str, Any]) -> Any:
    text = _text(value)
    if text in options:
        return options[text]
    folded = {key.casefold(): option for key, option in options.items()}
    if len(folded) == len(options) and text.casefold() in folded:
        return folded[text.casefold()]
    raise ValueError


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    text = _text(value).strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            items = read_json(text)
        except ValueError:
            items = None
        if isinstance(items, list):
            return items
        text = text[1:-1]
    elif text.startswith("(") and closing_bracket(text, 0, len(text)) == len(text) - 1:
        text = text[1:-1]
    return [unquoted_text(part.strip()) for part in top_level_parts(text)] if text.strip() else []


# -- how types are called in usage lines and errors


def type_name(annotation: Any, *, full: bool = False) -> str:
    """`int`, `fast|slow`, `int from 1 to 30`: short for a usage line; `full` spells a pattern out, for an error."""
    origin, options = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        name = type_name(options[0], full=full)
        for rule in options[1:]:
            if isinstance(rule, Range):
                name += f" {rule}"
            if type(rule) is Pattern and full:
                name = rule.meaning or f"{name} matching {rule.pattern}"
        return name
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(option, full=full) for option in options)
    if origin is typing.Literal:
        return "|".join(map(str, options))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return "|".join(str(member.value) for member in annotation)
    if annotation is type(None):
        return "None"
    if options:
        return f"{_bare(origin)} of {', '.join(type_name(option, full=full) for option in options)}"
    if full and annotation in _EXPECTED:
        return _EXPECTED[annotation]
    return _bare(annotation)


_EXPECTED = {
    int: "int (a whole number)",
    float: "float (a number)",
    bool: "bool (true or false)",
    datetime.date: "date (YYYY-MM-DD)",
    datetime.datetime: "datetime (YYYY-MM-DDTHH:MM:SS)",
    dict: "dict (a JSON object)",
}


def _bare(annotation: Any) -> str:
    return "any" if annotation is typing.Any else str(getattr(annotation, "__name__", annotation))
