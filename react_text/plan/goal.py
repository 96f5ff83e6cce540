"""The fields of a goal against the request: what the request does not say is left open, not invented."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from ..numbers import find_numbers, number_words

_WORD = re.compile(r"[^\W_]+")


def checked_goal(
    values: Mapping[str, Any], request: str, derived: Collection[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The fields whose values stand in the request, None for the others; and what was left open so. Fields that are
    `derived` may say more than the request does."""
    words = set(_WORD.findall(request.casefold()))
    numbers = [*find_numbers(request), *number_words(request, months=False)]
    amounts = {value.amount for number in numbers for value in number.readings[0]}
    goal: dict[str, Any] = {}
    left_open: list[str] = []
    for name, value in values.items():
        said = name in derived or _is_said(value, words, amounts)
        goal[name] = value if said else None
        if not said:
            left_open.append(f"{name} {value!r} is not in the request and is left open")
    return goal, left_open


def _is_said(value: Any, words: set[str], amounts: set[Fraction]) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (list, tuple)):
        return all(_is_said(each, words, amounts) for each in value)
    if isinstance(value, (int, float)):
        return Fraction(str(value)) in amounts
    return all(
        word in words or (word.isdecimal() and Fraction(word) in amounts)
        for word in _WORD.findall(str(value).casefold())
    )
