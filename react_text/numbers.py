"""Text -> the numbers in it, with their places, and whether two are the same but for the way they are written.

`41820`, `41,820`, `$41 820` and `41.82k` are one number, `8.44 percent` is `0.0844`, and `54,000` may stand for
`54220`: separators, currency signs, scale, percent of a ratio and rounding do not count, nor does the sign, which texts
put into words. Digits that are part of a name (`refund-v3`, `B4`, `1.4.0`) are no number.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

# Longer runs of digits are identifiers; the bound also keeps the conversion of a hostile text cheap.
_RUN = r"[0-9]{1,30}"
_GROUPED = r"[0-9]{1,3}(?:[,'’ \u00a0\u202f][0-9]{3}){1,9}(?:\.[0-9]{1,15})?"
_DOTTED = r"[0-9]{1,3}(?:\.[0-9]{3}){1,9}(?:,[0-9]{1,15})?"
_PLAIN = rf"{_RUN}(?:[.,][0-9]{{1,15}})?(?:[eE][+-]?[0-9]{{1,2}})?|\.[0-9]{{1,15}}"
# The letters of a unit may follow at once (`10km`); more letters, or digits, make it a name.
_NUMBER = re.compile(
    rf"(?<!\w)(?<!\w\.)(?P<digits>{_GROUPED}|{_DOTTED}|{_PLAIN}|{_RUN})(?!\.?[0-9])"
    r"(?P<scale>[ \u00a0]?(?:thousand|million|billion|[kKmM]|bn|B)(?!\w))?(?:[^\W\d_]{1,3})?(?!\w)"
)
_PERCENT_BEHIND = re.compile(r"[ \u00a0]?(?:%|％|(?:percent|per cent|pct|percentage points?)\b)", re.I)
_PERCENT_BEFORE = re.compile(r"(?:percent\w{0,10}|pct)[\"']?\s{0,3}[:=]\s{0,3}[\"']?\Z", re.I)
_SCALES = {"k": 10**3, "t": 10**3, "m": 10**6, "b": 10**9}
# What was rounded by more than a tenth is another number.
_COARSEST = Fraction(1, 10)

UNITS = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WORDS = {
    **{word: number for number, word in enumerate(UNITS)},
    **{word: number * 10 for number, word in enumerate(_TENS, 2)},
    "dozen": 12, "once": 1, "both": 2, "twice": 2, "double": 2, "triple": 3,
}  # fmt: skip
_POWERS = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
COUNTING = (*_WORDS, *_POWERS)
_WORD = "|".join(COUNTING)
_PHRASE = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD}))*\b", re.I)
_MONTH = re.compile(rf"\b(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in MONTHS)})\b")


@dataclass(frozen=True)
class Value:
    """One amount, without its sign. `unit` is what its last digit counts: rounding moves it by at most half of that."""

    amount: Fraction
    unit: Fraction = Fraction(1)
    percent: bool = False


@dataclass(frozen=True)
class Number:
    """A number where it stands in a text. It can often be read in several ways (`1,200` is one number, or two of a
    list): each of `readings` is one way, with the amounts that are then there."""

    text: str
    start: int
    end: int
    readings: tuple[tuple[Value, ...], ...]


def find_numbers(text: str) -> list[Number]:
    """The numbers written in digits, in the order in which they stand in `text`."""
    return [
        Number(
            match["digits"],
            *match.span("digits"),
            _readings(match["digits"], (match["scale"] or "").strip(" \u00a0"), _is_percent(text, match)),
        )
        for match in _NUMBER.finditer(text)
    ]


def number_words(text: str, *, months: bool = True) -> list[Number]:
    """The numbers written in English words, and `months` as their number: what digits elsewhere may come from."""
    found = [(match, _spoken(match[0].lower())) for match in _PHRASE.finditer(text)]
    short = [name[:3] for name in MONTHS]
    if months:
        found += [(match, short.index(match[0][:3]) + 1) for match in _MONTH.finditer(text)]
    return [Number(match[0], *match.span(), ((Value(Fraction(amount)),),)) for match, amount in found]


@dataclass(frozen=True)
class Origin:
    """What a number was read as: a `number` at a `place`, and `how` it was changed since; nothing when it is the same
    amount."""

    number: Number
    place: Any
    how: tuple[str, ...] = ()


class Known:
    """The numbers that a text may use, because they were read before. `number in known` says whether it is one of them,
    in one of its readings; `find` says which, and where that was."""

    def __init__(self, numbers: Iterable[Number] = ()) -> None:
        self._values: dict[Value, Origin] = {}
        self._exact: dict[Fraction, Origin] = {}
        self._amounts: dict[bool, list[tuple[float, Fraction, Value]]] = {False: [], True: []}
        self._sorted = True
        self.add(numbers)

    def add(self, numbers: Iterable[Number], place: Any = None) -> None:
        """Further numbers; `place` tells what they stand in. Of equal ones the first counts."""
        for number in numbers:
            for value in dict.fromkeys(itertools.chain(*number.readings)):
                if value not in self._values:
                    origin = self._values[value] = Origin(number, place)
                    self._exact.setdefault(value.amount, origin)
                    self._amounts[value.percent].append((float(value.amount), value.amount, value))
                    self._sorted = False

    def holds(self, value: Value) -> bool:
        """Whether exactly this amount was read."""
        return value.amount in self._exact

    def find(self, number: Number) -> Origin | None:
        """Where a number comes from, None when it was not read before. Of its readings the one that was changed least;
        of several amounts the first."""
        found: list[Origin] = []
        for reading in number.readings:
            origins = [self._origin(value) for value in reading]
            if origins[0] and all(origins):
                found.append(origins[0])
        return min(found, key=_changed, default=None)

    def __contains__(self, number: Number) -> bool:
        return self.find(number) is not None

    def _origin(self, value: Value) -> Origin | None:
        if value.amount in self._exact:
            return self._exact[value.amount]
        found = []
        for factor, percent in _factors(value):
            for source in self._nearest(value.amount / factor, percent):
                how = _changes(value, source, factor)
                if how is not None:
                    found.append(replace(self._values[source], how=how))
        return min(found, key=_changed, default=None)

    def _nearest(self, amount: Fraction, percent: bool) -> list[Value]:
        """The two amounts that are closest to one. Where any amount is near enough, so is one of these."""
        if not self._sorted:
            for amounts in self._amounts.values():
                amounts.sort(key=_size)  # a Fraction is slow to compare: nearly all are told apart by their floats
            self._sorted = True
        amounts = self._amounts[percent]
        at = bisect.bisect(amounts, (float(amount), amount), key=_size)
        return [value for _, _, value in amounts[max(0, at - 1) : at + 1]]


def _size(entry: tuple[float, Fraction, Value]) -> tuple[float, Fraction]:
    return entry[:2]


def _changed(origin: Origin) -> int:
    return len(origin.how)


_RATIO, _SHARE, _ROUNDED = "percent of a ratio", "ratio of a percentage", "rounded"


def _factors(value: Value) -> list[tuple[int | Fraction, bool]]:
    """By how much a source may have been multiplied to give `value`, and whether such a source is a percentage."""
    if value.percent:
        return [(1, False), (1, True), (100, False)]
    return [(1, False), (1, True), (Fraction(1, 100), True)]


def _changes(value: Value, source: Value, factor: int | Fraction) -> tuple[str, ...] | None:
    """What was done to `source`, beside multiplying it, to write `value`; None when it is another number."""
    amount = source.amount * factor
    off = abs(value.amount - amount)
    if off > min(value.unit / 2, amount * _COARSEST):
        return None
    scaled = () if factor == 1 else (_RATIO,) if value.percent else (_SHARE,)
    return (*scaled, _ROUNDED) if off else scaled


def _is_percent(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 20) : match.start()]
    return bool(_PERCENT_BEHIND.match(text, match.end("digits")) or _PERCENT_BEFORE.search(before))


@lru_cache(maxsize=10_000)
def _readings(digits: str, scale: str, percent: bool) -> tuple[tuple[Value, ...], ...]:
    """The ways to read a run of digits. `5m` is five million or five metres."""
    plain = tuple(tuple(_value(part, percent) for part in parts) for parts in _spellings(digits))
    if not scale:
        return plain
    factor = _SCALES[scale[0].lower()]
    return tuple(tuple(Value(v.amount * factor, v.unit * factor) for v in reading) for reading in plain) + plain


def _spellings(digits: str) -> Iterator[list[str]]:
    """The decimals that a run of digits may be: its marks separate thousands, are a decimal mark, or stand between two
    numbers."""
    marks = set(digits) - set("0123456789eE+-")
    if digits[0] != "0" and re.fullmatch(_GROUPED, digits):
        yield [re.sub("[^0-9.]", "", digits)]
    # `1.234` is taken for a decimal: what would tell it from a whole number is further on.
    if digits[0] != "0" and re.fullmatch(_DOTTED, digits) and digits.count(".") + digits.count(",") > 1:
        yield [digits.replace(".", "").replace(",", ".")]
    if digits.count(".") + digits.count(",") <= 1 and marks <= {".", ","}:
        yield [digits.replace(",", ".")]
    if marks & {",", " "}:
        yield re.split("[, ]", digits)


def _value(decimal: str, percent: bool) -> Value:
    mantissa, _, exponent = decimal.lower().partition("e")
    _, point, decimals = mantissa.partition(".")
    # A whole number that ends in zeros may be rounded, but its first two digits are meant.
    zeros = len(mantissa) - len(mantissa.rstrip("0"))
    last = -len(decimals) if point else max(0, min(zeros, len(mantissa) - 2))
    return Value(Fraction(decimal), Fraction(10) ** (int(exponent or 0) + last), percent)


def _spoken(phrase: str) -> int:
    """`two thousand three hundred and four` -> 2304."""
    total = current = 0
    for word in re.findall("[a-z]+", phrase):
        if word in _WORDS:
            current += _WORDS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word != "and":
            total, current = total + max(current, 1) * _POWERS[word], 0
    return total + current
