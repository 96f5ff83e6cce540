"""The text between the brackets -> Python values for a tool's parameters, by their annotations.

One parameter takes the whole text; several take `a, b` or `name=value`; a JSON object whose keys are parameters, and
lines or parts that all have the form `name: value`, are the same as `name=value`, for a single one as well.
"""

from __future__ import annotations

import enum
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .conversion import Quoted, convert, is_choice, type_name, unquoted_text
from .errors import ReactTextError, did_you_mean
from .parse import same_name
from .scan import read_object, top_level_parts, unfenced, unquoted

REQUIRED = inspect.Parameter.empty
_COLON = re.compile(r":\s|：|[\"'”’]\s*[:=]")  # one that may name a value: not that of `berth:A`
_LINE, _PART = re.compile(r"([^:：]*)[:：](.*)", re.S), re.compile(r"([^:：=]*)[:：=](.*)", re.S)
_ABSENT = ("none", "null")


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
        value = unquoted_text(alone[1] if alone else text)
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
    choices = {p.name for p in parameters if is_choice(p.annotation)}  # of a single value, which its type shows
    names, values = list(types), dict[str, Any]()
    for part in filter(str.strip, parts):
        found = form.fullmatch(part)
        name, value = (_meant(unquoted_text(found[1].strip()), names), found[2]) if found else ("", "")
        if name not in types or name in values or value[:1] == "=":
            return None
        kind, equals, rest = value.partition("=")
        value = rest if equals and kind.strip() == types[name] else value
        values[name] = unquoted_text(value.strip())
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
        values[name] = unquoted_text(value)
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
            values[target] = unquoted_text(part)
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


def _converted(parameter: Parameter, value: Any) -> Any:
    try:
        return convert(value, parameter.annotation)
    except ValueError:
        got = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        expected = type_name(parameter.annotation, full=True)
        raise ArgumentError(
            f"{parameter.name} must be {expected}, not {_shortened(got)!r}", parameter.name, got, expected
        ) from None


def _plain(default: Any) -> str:
    value = default.value if isinstance(default, enum.Enum) else default
    return str(value) if value != "" else '""'


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
