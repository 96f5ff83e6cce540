"""Text -> how its numbers, dates and codes may be written elsewhere: as they stand there, with and without separators,
rounded, a ratio as a percentage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from .claims import Date, facts
from .numbers import MONTHS, UNITS, Number

_WORD = re.compile(r"[\w./:@#+-]+")
_STRUCTURE = re.compile(r"[\[\]=\n]")  # what ends an argument, or names it
_LONGEST = 60
_LARGEST = 10**15  # above, a float is not exact


def spellings(text: str) -> Iterator[str]:
    """What an answer may be allowed to write, some of it more than once. Whether the answer then says the same is for
    `grounding.Sources.trace` to tell."""
    for match in _WORD.finditer(text):
        word = match[0].strip("./:@#+-")
        if len(word) <= _LONGEST and any(char in "0123456789" for char in word):
            yield word
    for claim in facts(text):
        if len(written := text[claim.start : claim.end]) <= _LONGEST and not _STRUCTURE.search(written):
            yield written
        if isinstance(claim, Number):
            yield from _changed(claim)
        elif isinstance(claim, Date):
            yield from _dated(*claim.options[0])


def _dated(year: int | None, month: int, day: int | None) -> Iterator[str]:
    name = MONTHS[month - 1]
    if year:
        yield f"{year}-{month:02}-{day:02}" if day else f"{year}-{month:02}"
    if day is None:
        yield name
    else:
        yield from (f"{name} {day}", f"{day} {name}")


def _changed(number: Number) -> Iterator[str]:
    value = number.readings[0][0]
    amount = value.amount
    if len(number.readings[0]) > 1 or amount >= _LARGEST:
        return
    if amount.denominator == 1:
        yield from UNITS[int(amount) : int(amount) + 1]
        yield from (str(amount), f"{int(amount):,}")
        yield from (f"{round(int(amount), digits - len(str(amount))):,}" for digits in (3, 2) if amount >= 1000)
        return
    for places in (2, 1, 0):
        yield from (_decimal(amount, places), _decimal(amount, places, ","))
        if not value.percent and amount < 10:
            share = _decimal(amount * 100, places)
            yield from (f"{share}%", f"{share} %", f"{share} percent")


def _decimal(amount: Fraction, places: int, separator: str = "") -> str:
    return f"{float(amount):{separator}.{places}f}"
