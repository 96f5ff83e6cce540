"""Text -> the numbers in it, with their places, and whether two are the same but for the way they are written.

`41820`, `41,820`, `$41 820` and `41.82k` are one number, `8.44 percent` is `0.0844`, and `54,000` may stand for
`54220`: separators, currency signs, scale, percent of a ratio and rounding do not count, nor does the sign, which texts
put into words. Digits that are part of a name (`refund-v3`, `B4`, `1.4.0`) are no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

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

_UNITS = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WORDS = {
    **{word: number for number, word in enumerate(_UNITS)},
    **{word: number * 10 for number, word in enumerate(_TENS, 2)},
    "dozen": 12, "once": 1, "both": 2, "twice": 2, "double": 2, "triple": 3,
}  # fmt: skip
_POWERS = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_WORD = "|".join([*_WORDS, *_POWERS])
_PHRASE = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD}))*\b", re.I)
_MONTH = re.compile(rf"\b(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)})\b")


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


def number_words(text: str) -> list[Number]:
    """The numbers written in English words, and months as their number: what digits elsewhere may come from."""
    found = [(match, _spoken(match[0].lower())) for match in _PHRASE.finditer(text)]
    short = [name[:3] for name in _MONTHS]
    found += [(match, short.index(match[0][:3]) + 1) for match in _MONTH.finditer(text)]
    return [Number(match[0], *match.span(), ((Value(Fraction(amount)),),)) for match, amount in found]


class Known:
    """The numbers that a text may use, because they were read before. `number in known` says whether it is one of them,
    in one of its readings."""

    def __init__(self, numbers: Iterable[Number] = ()) -> None:
        self._values: dict[Value, None] = {}
        self._amounts: set[Fraction] = set()
        self.add(numbers)

    def add(self, numbers: Iterable[Number]) -> None:
        for number in numbers:
            for reading in number.readings:
                self._values.update(dict.fromkeys(reading))
                self._amounts.update(value.amount for value in reading)

    def __contains__(self, number: Number) -> bool:
        return any(all(self._holds(value) for value in reading) for reading in number.readings)

    def _holds(self, value: Value) -> bool:
        return value.amount in self._amounts or any(_same(value, source) for source in self._values)


def _same(value: Value, source: Value) -> bool:
    """Whether `value` is `source`, perhaps rounded, perhaps as a percentage of it."""
    amounts = [source.amount]
    if value.percent and not source.percent:
        amounts.append(source.amount * 100)
    if source.percent and not value.percent:
        amounts.append(source.amount / 100)
    offs = ((abs(value.amount - amount), amount) for amount in amounts)
    return any(off == 0 or (off <= value.unit / 2 and off <= amount * _COARSEST) for off, amount in offs)


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
    if digits[0] != "0" and re.fullmatch(_DOTTED, digits):
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
