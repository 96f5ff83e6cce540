"""An author's regular expression -> a form whose texts all match it, where the expression is plain enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .forms import SPACE, Chars, Form, alt, any_of, but, seq, times

try:  # the parser of the standard library, which has moved
    from re import _constants, _parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as _constants
    import sre_parse as _parser

_OTHERS = '"\\\x00-\x1f'
"""What "any other character" does not mean: what cannot stand in quotes."""
_MOST = 250  # repetitions; a server unrolls them
# Ranges of what Python takes for a digit, a letter or a blank, which are many more, are not what an author has in mind.
_CATEGORIES = {"CATEGORY_DIGIT": "0-9", "CATEGORY_WORD": "0-9A-Za-z_", "CATEGORY_SPACE": " "}


def pattern_form(pattern: re.Pattern[str]) -> Form | None:
    """The form of texts that the whole of `pattern` matches; None for an expression with look-arounds, references,
    flags or anchors in its middle."""
    if pattern.flags & (re.IGNORECASE | re.VERBOSE | re.MULTILINE):
        return None
    items = list(_parser.parse(pattern.pattern, pattern.flags))
    if items and _is_anchor(items[0], "AT_BEGINNING", "AT_BEGINNING_STRING"):
        items = items[1:]
    if items and _is_anchor(items[-1], "AT_END", "AT_END_STRING"):
        items = items[:-1]
    try:
        return _sequence(items)
    except _NotPlain:
        return None


class _NotPlain(Exception):
    """The expression holds something that a form cannot say."""


def _is_anchor(item: Any, *names: str) -> bool:
    operator, argument = item
    return operator is _constants.AT and str(argument) in names


def _sequence(items: Sequence[Any]) -> Form:
    return seq(*(_item(str(operator), argument) for operator, argument in items))


def _item(operator: str, argument: Any) -> Form:
    if operator == "LITERAL":
        return seq(chr(argument))
    if operator == "NOT_LITERAL":
        return but(chr(argument), _OTHERS)
    if operator == "ANY":
        return but(_OTHERS)
    if operator == "IN":
        return _class(argument)
    if operator == "BRANCH":
        return alt(*map(_sequence, argument[1]))
    if operator == "SUBPATTERN" and not argument[1] and not argument[2]:  # no flags of its own
        return _sequence(argument[3])
    if operator in ("MAX_REPEAT", "MIN_REPEAT"):
        low, high, items = argument
        if low <= _MOST:
            return times(_sequence(items), low, None if high is _constants.MAXREPEAT else min(high, _MOST))
    raise _NotPlain


def _class(items: Sequence[Any]) -> Form:
    ranges: list[tuple[str, str]] = []
    negated = False
    for operator, argument in items:
        name = str(operator)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            ranges.append((chr(argument), chr(argument)))
        elif name == "RANGE":
            ranges.append((chr(argument[0]), chr(argument[1])))
        elif str(argument) == "CATEGORY_NOT_SPACE" and len(items) == 1:
            return but(SPACE, _OTHERS)
        elif str(argument) == "CATEGORY_SPACE" and negated:
            ranges += any_of(SPACE).ranges
        elif str(argument) in _CATEGORIES and not negated:
            ranges += any_of(_CATEGORIES[str(argument)]).ranges
        else:
            raise _NotPlain
    others = any_of(_OTHERS).ranges if negated else ()
    return Chars(tuple(dict.fromkeys([*ranges, *others])), negated)
