"""Text -> what it claims in digits: numbers, dates, times of day, and codes, each with its place.

`2026-07` and `July 2026` are one date, not two numbers; `14:05` and `2:05 pm` one time; `L269` and `1.4.0` are codes,
which are the same or not. The numbering of a list claims nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .numbers import MONTHS, Number, Value, find_numbers, number_words

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?|{name[:3].upper()}(?:{name[3:].upper()})?" for name in MONTHS)
_NAME = rf"(?P<month>(?:{_MONTH}|Sept)\b)\.?"
_MONTHS = re.compile(rf"\b{_NAME}")
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12][0-9]{3})(?![0-9]|[.,][0-9])"
_DATES = [
    re.compile(rf"(?<![\w.,/-]){pattern}(?![0-9])")
    for pattern in (
        r"(?P<year>[12][0-9]{3})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})(?![-/.]?[0-9])",
        r"(?P<year>[12][0-9]{3})[-/](?P<month>[01]?[0-9])(?![-/.]?[0-9])",
        r"(?P<day>[0-9]{1,2})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<year>[12][0-9]{3})(?![-/.]?[0-9])",
        rf"{_DAY}(?: of)? {_NAME}(?:,? {_YEAR})?",
        rf"{_NAME} {_DAY}(?![\w:]| ?%|[.,][0-9])(?:,? {_YEAR})?",
        rf"{_NAME},? {_YEAR}",
    )
]
_TIME = re.compile(
    r"(?:(?<![\w.,:])|(?<=\0T))(?P<hour>[0-9]{1,2}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?(?![0-9]|:[0-9])"
    r"(?: ?(?P<half>[apAP])\.?[mM]\b\.?)?|(?<![\w.,:])(?P<full>[0-9]{1,2}) ?(?P<which>[apAP])\.?[mM]\b\.?"
)
_VERSION = re.compile(r"(?<![\w.])(?:[vV][0-9]+(?:\.[0-9]+)*|[0-9]+(?:\.[0-9]+){2,})(?!\w)")
_MILLIONS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+")
_COUNTED = re.compile(r"[vV]?(?P<digits>[0-9]{1,15})[^\W\d_]*")
_WORD = re.compile(r"\w+")
_CURRENCY = re.compile(r"\b(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|BRL|US|A|C)(?=\$?[0-9])")
_NUMBERING = re.compile(
    r"^[^\S\n]*(?:[-*#>]+[^\S\n]+)?(?:\*\*)?(?:(?:day|step|option|item|point|part|stage|leg)[^\S\n]+)?"
    r"\(?(?P<number>[0-9]{1,2})(?:[.):](?:\*\*)?(?=\s)|\*\*(?=[.): ])|[^\S\n]+[-–—](?=\s))",
    re.M | re.I,
)
_HIDDEN = "\0"
_SCALE = re.compile(r".?\0 ?(?:hundred|thousand|million|billion)", re.I | re.S)  # said with the number before it
# Words that count and are no figures, and those before a word that counts what was named already: `all three`.
ARTICLES = frozenset(["one", "both", "once", "twice", "double", "triple"])
_REFERRING = re.compile(r"\b(?:all|the|these|those|other|first|last|next)\s\Z", re.I)
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
_ORDINAL = re.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b", re.I)
_NOTHING = re.compile(r"\b(?:no|none|nothing|empty)\b|\[\]|\{\}", re.I)


Day = tuple[int | None, int, int | None]


@dataclass(frozen=True)
class Date:
    """A day, a month, or a day of some year: (year, month, day), None for what is not said. Of `12/07/2026` both ways
    to read it are in `options`."""

    text: str
    start: int
    end: int
    options: tuple[Day, ...]


@dataclass(frozen=True)
class Time:
    """A time of day: `minutes` since midnight, of `2:05` also those of the afternoon."""

    text: str
    start: int
    end: int
    minutes: frozenset[int]


@dataclass(frozen=True)
class Code:
    """A name with digits in it, or a version."""

    text: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """What makes it the same as another."""
        return self.text.casefold().removeprefix("v")

    @property
    def number(self) -> Number | None:
        """The number it stands for as well: of `v4` and `10miles`."""
        match = _COUNTED.fullmatch(self.text)
        return match and Number(self.text, self.start, self.end, _one(int(match["digits"])))


@dataclass(frozen=True)
class Part(Number):
    """A number of a date or a time, which is never rounded."""


Claim = Number | Date | Time | Code


def claims(text: str) -> list[Claim]:
    """What an answer claims, in the order in which it stands there."""
    return sorted(_claims(text, numbering=False), key=lambda claim: claim.start)


def facts(text: str) -> list[Claim]:
    """What a text can be the source of: all that it would claim, and the parts that claims may consist of."""
    found = _claims(text, numbering=True)
    for claim in list(found):
        found += _parts(text, claim)
    found += (_plain(match, _ORDINALS.index(match[0].lower()) + 1) for match in _ORDINAL.finditer(text))
    found += (_plain(match, 0) for match in _NOTHING.finditer(text))
    outside = _without(text, sorted((claim for claim in found if isinstance(claim, Date)), key=lambda date: date.start))
    found += (Date(match[0], *match.span(), ((None, _month(match[0]), None),)) for match in _MONTHS.finditer(outside))
    return sorted(found, key=lambda claim: claim.start)


def _claims(text: str, *, numbering: bool) -> list[Claim]:
    text = _hidden(_ascii_digits(text), _CURRENCY)
    if not numbering:
        text = _without_numbering(text)
    found: list[Claim] = []
    readers: tuple[Callable[[str], Iterable[Claim]], ...] = (_dates, _times, _versions, find_numbers, _codes)
    for take in readers:
        # What was read as one thing is not there for the next: the month of a date is no number.
        taken = list(take(text))
        found += taken
        text = _without(text, taken)
    words = (word for word in number_words(text, months=False) if not _SCALE.match(text, max(0, word.start - 2)))
    return [*found, *(word for word in words if numbering or not _is_language(text, word))]


def _dates(text: str) -> Iterator[Date]:
    end = 0
    every = (match for pattern in _DATES for match in pattern.finditer(text))
    for match in sorted(every, key=lambda match: (match.start(), -match.end())):
        options = _options(match)
        if options and match.start() >= end:
            end = match.end()
            yield Date(match[0], match.start(), end, options)


def _options(match: re.Match[str]) -> tuple[Day, ...]:
    given = match.groupdict()
    name, mark = given["month"], given.get("mark")
    month = _month(name) if name.isalpha() else int(name)
    year, day = (int(given[key]) if given.get(key) else None for key in ("year", "day"))
    options: list[Day] = [(year, month, day)]
    if mark == "/" and match[0].index(mark) < 3 and day is not None:  # the day first, or the month
        options.append((year, day, month))
    return tuple(each for each in options if 1 <= each[1] <= 12 and (each[2] is None or 1 <= each[2] <= 31))


def _month(name: str) -> int:
    return [month[:3] for month in MONTHS].index(name[:3].capitalize()) + 1


def _times(text: str) -> Iterator[Time]:
    for match in _TIME.finditer(text):
        hour, minute = int(match["hour"] or match["full"]), int(match["minute"] or 0)
        half = (match["half"] or match["which"] or "").lower()
        if hour < 24 and not (half and not 1 <= hour <= 12):
            hours = {hour % 12 + 12 * (half == "p")} if half else {hour, hour + 12} if hour <= 12 else {hour}
            yield Time(match[0], *match.span(), frozenset(each % 24 * 60 + minute for each in hours))


def _versions(text: str) -> Iterator[Code]:
    found = (match for match in _VERSION.finditer(text) if not _MILLIONS.fullmatch(match[0]))
    return (Code(match[0], *match.span()) for match in found)


def _codes(text: str) -> Iterator[Code]:
    words = (match for match in _WORD.finditer(text) if any(char in "0123456789" for char in match[0]))
    return (Code(match[0], *match.span()) for match in words)


def _parts(text: str, claim: Claim) -> Iterator[Number]:
    """The year and the day of a date, the numbers of a time, that of a code."""
    if isinstance(claim, Code):
        yield from filter(None, [claim.number])
    if not isinstance(claim, (Date, Time)):
        return
    for match in re.finditer("[0-9]+", _ascii_digits(text[claim.start : claim.end])):
        amount = int(match[0])
        if isinstance(claim, Time) or any(amount in (year, day) for year, _, day in claim.options):
            yield Part(match[0], match.start() + claim.start, match.end() + claim.start, _one(amount))


def _plain(match: re.Match[str], amount: int) -> Number:
    return Number(match[0], *match.span(), _one(amount))


def _one(amount: int) -> tuple[tuple[Value, ...], ...]:
    return ((Value(Fraction(amount)),),)


def _is_language(text: str, word: Number) -> bool:
    return word.text.lower() in ARTICLES or bool(_REFERRING.search(text, max(0, word.start - 8), word.start))


def _without_numbering(text: str) -> str:
    """The text without the numbers of a list, which run 1, 2, 3. A text may hold several lists."""
    found, last = list[Claim](), 0
    for match in _NUMBERING.finditer(text):
        if int(match["number"]) in (1, last + 1):
            last = int(match["number"])
            found.append(Code(match["number"], *match.span("number")))
    return _without(text, found)


def _without(text: str, found: Sequence[Claim]) -> str:
    pieces, end = list[str](), 0
    for claim in found:
        pieces += [text[end : claim.start], _HIDDEN * (claim.end - claim.start)]
        end = claim.end
    return "".join([*pieces, text[end:]])


def _hidden(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: _HIDDEN * len(match[0]), text)


def _ascii_digits(text: str) -> str:
    """The text with the digits of all scripts as those of ASCII, as long as it was."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
