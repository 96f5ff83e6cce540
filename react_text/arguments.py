"""The text between the brackets -> Python values for a tool's parameters, by their annotations.

One parameter takes the whole text; several take `a, b` or `name=value`; a JSON object whose keys are parameters, and
lines or parts that all have the form `name: value`, are the same as `name=value`, for a single one as well. The
annotation alone decides the type: `0042` stays text for a `str`, whatever it looks like.
"""

from __future__ import annotations

import datetime
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ReactTextError, did_you_mean
from .parse import same_name
from .scan import closing_bracket, read_json, read_object, top_level_parts, unfenced, unquoted

REQUIRED = inspect.Parameter.empty
_COLON = re.compile(r":\s|：|[\"'”’]\s*[:=]")  # one that may name a value: not that of `berth:A`
_LINE, _PART = re.compile(r"([^:：]*)[:：](.*)", re.S), re.compile(r"([^:：=]*)[:：=](.*)", re.S)
_ABSENT = ("none", "null")


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


@dataclass(frozen=True)
class Parameter:
    """One parameter of a tool. `default` is REQUIRED when there is none."""

    name: str
    annotation: Any = str
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def __str__(self) -> str:
        text = f"{self.name}: {type_name(self.annotation)}"
        return text if self.required else f"{text} = {_plain(self.default)}"


class ArgumentError(ReactTextError):
    """Why the arguments do not fit: the parameter, what came, and what is expected, in words for the model."""

    def __init__(self, problem: str, parameter: str = "", got: str = "", expected: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.parameter = parameter
        self.got = got
        self.expected = expected


def read_arguments(text: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Values for `parameters`, defaults included. Raises ArgumentError."""
    text = text.strip()
    values: dict[str, Any] = {}
    for name, value in _assigned(text, parameters).items():
        parameter = next(p for p in parameters if p.name == name)
        if not _is_left_out(parameter, value):
            values[name] = _converted(parameter, value)
    missing = [p.name for p in parameters if p.required and p.name not in values]
    if missing:
        raise ArgumentError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing", missing[0])
    return {p.name: values.get(p.name, p.default) for p in parameters}


# -- which text belongs to which parameter


class Quoted(str):
    """A text that stood in quotes: it is meant as it is, even when it is empty or says None."""

    __slots__ = ()


def _assigned(text: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    names = [p.name for p in parameters]
    given = read_object(unfenced(text))
    if not names:
        if given != {} and unquoted(text)[0].casefold() not in ("", "()", *_ABSENT):
            raise ArgumentError("this tool takes no arguments", got=text, expected="nothing between the brackets")
        return {}
    if given is not None:
        meant = {_meant(key, names): value for key, value in given.items()}
        given = meant if len(names) > 1 and len(meant) == len(given) else given
        unknown = [key for key in given if key not in names]
        if not unknown and (given or len(names) > 1):
            return given
        if unknown and len(names) > 1:
            raise ArgumentError(f"{unknown[0]} is not a parameter{did_you_mean(unknown[0], names)}", unknown[0])
    if len(names) == 1:
        named = _all_named([text], _LINE, parameters) if _COLON.search(text) else None
        if named is not None:
            return named
        alone = _split_name(text, names)
        value = _unquote(alone[1] if alone else text)
        return {names[0]: value} if value or isinstance(value, Quoted) else {}
    if given is None and re.match(r"\{\s*[\"'“]", text) and text.endswith("}") and len(top_level_parts(text)) == 1:
        raise ArgumentError("this is no JSON object that can be read", got=text, expected="or write name=value")
    named = _all_named(text.split("\n"), _LINE, parameters)
    if named is not None and len(named) == 1 and re.search("[,，]", text):
        named = None  # one line of several arguments
    if named is None and _COLON.search(text):
        named = _all_named(top_level_parts(text), _PART, parameters)
    return _by_position_or_name(text, names, parameters) if named is None else named


def _all_named(parts: Sequence[str], form: re.Pattern[str], parameters: Sequence[Parameter]) -> dict[str, Any] | None:
    """The values of parts that all are a name and a value, as in YAML or JSON; None for others. Raises ArgumentError
    for the usage of a tool, which small models copy: `name: str`."""
    types = {p.name: type_name(p.annotation) for p in parameters}
    choices = {p.name for p in parameters if _is_choice(p.annotation)}  # of a single value, which its type shows
    names, values = list(types), dict[str, Any]()
    for part in filter(str.strip, parts):
        found = form.fullmatch(part)
        name, value = (_meant(_unquote(found[1].strip()), names), found[2]) if found else ("", "")
        if name not in types or name in values or value[:1] == "=":
            return None
        kind, equals, rest = value.partition("=")
        value = rest if equals and kind.strip() == types[name] else value
        values[name] = _unquote(value.strip())
    for name, value in values.items():
        if value == types[name] and name not in choices:
            raise ArgumentError(f"{name} has its type for a value", name, value, "a value")
    return values or None


def _by_position_or_name(text: str, names: list[str], parameters: Sequence[Parameter]) -> dict[str, Any]:
    parts = [part.strip() for part in top_level_parts(text)] if text else []
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    named = [_split_name(part, names) for part in parts]
    values = {}
    for name, value in filter(None, named):
        if name in values:
            raise ArgumentError(f"{name} is given twice", name, value)
        values[name] = _unquote(value)
    open_names = iter([name for name in names if name not in values])
    for part, name_value in zip(parts, named, strict=True):
        if name_value:
            continue
        keyword = re.match(r"([^\W\d]\w*)[ \t]*=(?!=)", part)
        target = next(open_names, None)
        text_wanted = any(p.name == target and p.annotation is str for p in parameters)
        if keyword and (values.keys() & {n[0] for n in named if n} or not text_wanted):
            raise ArgumentError(f"{keyword[1]} is not a parameter{did_you_mean(keyword[1], names)}", keyword[1])
        if target is None:
            raise ArgumentError(
                f"too many arguments: {len(parts)} came, at most {len(names)} are expected",
                got=text,
                expected="quotes around a value that contains commas",
            )
        if part:
            values[target] = _unquote(part)
    return values


def _split_name(part: str, names: Sequence[str]) -> tuple[str, str] | None:
    written, equals, value = part.partition("=")
    name = _meant(written.strip(), names)
    return (name, value.strip()) if equals and name in names and not value.startswith("=") else None


def _meant(written: str, names: Sequence[str]) -> str:
    """The parameter that a name stands for: exact, or the one that differs only in case, `-` or `_`, as for tools."""
    same = [name for name in names if same_name(name) == same_name(written)]
    return same[0] if len(same) == 1 and written not in names else written


def _is_left_out(parameter: Parameter, value: Any) -> bool:
    """Whether a value says that there is none to a parameter that cannot be None: JSON's `null`, and a bare None that
    means the default."""
    bare = type(value) is str and value.casefold() in _ABSENT and not parameter.required
    if value is not None and not bare:
        return False
    try:
        convert(value, parameter.annotation)
    except ValueError:
        return True
    return False


def _unquote(text: str) -> str:
    inner, quoted = unquoted(text)
    return Quoted(inner) if quoted else text


# -- text or JSON value -> the annotated type


def _converted(parameter: Parameter, value: Any) -> Any:
    try:
        return convert(value, parameter.annotation)
    except ValueError:
        got = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        expected = type_name(parameter.annotation, full=True)
        raise ArgumentError(
            f"{parameter.name} must be {expected}, not {_shortened(got)!r}", parameter.name, got, expected
        ) from None


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


def _is_choice(annotation: Any) -> bool:
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
    return [_unquote(part.strip()) for part in top_level_parts(text)] if text.strip() else []


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


def _plain(default: Any) -> str:
    value = default.value if isinstance(default, enum.Enum) else default
    return str(value) if value != "" else '""'


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
