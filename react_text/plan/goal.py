"""The fields of a goal against the request: what the request does not say is left open, not invented."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ..numbers import Known, find_numbers, number_words

_WORD = re.compile(r"[^\W_]+")


def checked_goal(
    values: Mapping[str, Any], request: str, derived: Collection[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The fields whose values stand in the request, None for the others; and what was left open so. Fields that are
    `derived` may say more than the request does."""
    words = set(_WORD.findall(request.casefold()))
    known = Known([*find_numbers(request), *number_words(request)])
    goal: dict[str, Any] = {}
    left_open: list[str] = []
    for name, value in values.items():
        said = name in derived or _is_said(value, words, known)
        goal[name] = value if said else None
        if not said:
            left_open.append(f"{name} {value!r} is not in the request and is left open")
    return goal, left_open


def _is_said(value: Any, words: set[str], known: Known) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (list, tuple)):
        return all(_is_said(each, words, known) for each in value)
    if isinstance(value, (int, float)):
        return all(number in known for number in find_numbers(f"{value:g}" if value < 1e6 else str(value)))
    return all(word in words or _is_said_number(word, known) for word in _WORD.findall(str(value).casefold()))


def _is_said_number(word: str, known: Known) -> bool:
    return bool(find_numbers(word)) and all(number in known for number in find_numbers(word))
