"""Text -> how its numbers, dates and codes may be written elsewhere: as they stand there, with and without separators,
rounded, a ratio as a percentage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from .claims import Date, facts
from .numbers import Number

_WORD = re.compile(r"[\w./:@#+-]+")
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
        written = text[claim.start : claim.end]
        if len(written) <= _LONGEST and any(char in "0123456789" for char in written):
            yield written
        if isinstance(claim, Number):
            yield from _changed(claim)
        elif isinstance(claim, Date):
            yield from (
                f"{year}-{month:02}" + (f"-{day:02}" if day else "") for year, month, day in claim.options if year
            )


def _changed(number: Number) -> Iterator[str]:
    value = number.readings[0][0]
    amount = value.amount
    if len(number.readings[0]) > 1 or amount >= _LARGEST:
        return
    if amount.denominator == 1:
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
