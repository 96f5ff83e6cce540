"""The type of an answer -> the `finish` action that reads it.

A prompt says in `answer:` what its answer consists of, in the words of usage lines: `days: int from 1 to 30 or None`.
`finish[...]` is then an action like any other: its arguments convert, and a mistake comes back as an observation.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Union

from .arguments import REQUIRED, Parameter
from .conversion import Pattern, Range
from .errors import AuthorError, did_you_mean
from .subtasks import FORM, plan_type
from .tools import ANSWER, Tool

_TYPES: dict[str, Any] = {
    "str": str, "text": str, "int": int, "float": float, "bool": bool, "date": datetime.date,
    "datetime": datetime.datetime, "list": list, "dict": dict,
}  # fmt: skip
_RANGE = re.compile(r"(int|float) (?:from (?P<low>\S+) to (?P<high>\S+)|at least (?P<least>\S+)|at most (?P<most>\S+))")
_PLAN = re.compile(r"plan(?: of ([\w|]+))?")


def answer_tool(fields: Any) -> Tool:
    """`finish` with a parameter for each field of the answer: name -> type, as `read_type` reads it. A field that may
    be None need not be given. Raises AuthorError."""
    if not isinstance(fields, Mapping) or not fields:
        raise AuthorError("answer must be a mapping of names to types, such as {days: int or None}")
    parameters = []
    for name, text in fields.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise AuthorError(f"answer: {name!r} cannot be the name of a field")
        annotation = read_type(str(text), name)
        parameters.append(Parameter(name, annotation, None if str(text).endswith("or None") else REQUIRED))
    options = replace(ANSWER.options, multiline="text" in map(str, fields.values()))
    plan = any(_PLAN.fullmatch(str(text)) for text in fields.values())
    description = f"give the subtasks, each of the form {FORM}, and end" if plan else ANSWER.description
    return replace(ANSWER, parameters=tuple(parameters), description=description, options=options)


def read_type(text: str, name: str = "it") -> Any:
    """The annotation that a usage line writes as `text`: `int`, `float at least 0`, `a|b`, `list of str`, `str matching
    REGEX`, `date or None`, `plan of flights|hotel`, `text` for a str of several lines. Raises AuthorError."""
    if text.endswith(" or None"):
        return Union[read_type(text.removesuffix(" or None"), name), None]  # noqa: UP007
    if text.startswith("list of "):
        return list[read_type(text.removeprefix("list of "), name)]  # type: ignore[misc]
    if text.startswith("str matching "):
        try:
            return Annotated[str, Pattern(text.removeprefix("str matching "))]
        except re.error as error:
            raise AuthorError(f"answer: {name}: not a regular expression: {error}") from None
    if plan := _PLAN.fullmatch(text):
        return plan_type(plan[1].split("|") if plan[1] else ())
    if found := _RANGE.fullmatch(text):
        low, high = (_bound(name, found[a] or found[b]) for a, b in (("low", "least"), ("high", "most")))
        return Annotated[_TYPES[found[1]], Range(low, high)]
    if text in _TYPES:
        return _TYPES[text]
    if "|" in text:
        return Literal[tuple(each.strip() for each in text.split("|"))]
    raise AuthorError(f"answer: {name}: unknown type {text!r}{did_you_mean(text, [*_TYPES, 'plan'])}")


def _bound(name: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text) if "." in text else int(text)
    except ValueError:
        raise AuthorError(f"answer: {name}: {text!r} is not a number") from None
