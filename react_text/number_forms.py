"""Numbers within a range, and dates that exist -> the form of their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from .forms import Form, Rule, alt, any_of, optional, seq, times

_DIGIT = any_of("0-9")
_LONGEST = 15  # digits of a number before the point, and behind it
_DECIMALS = 4  # digits behind the point to which the ends of a range are exact


def whole_number(low: float | None = None, high: float | None = None) -> Form:
    """A whole number from `low` to `high`, without leading zeros."""
    if low is None and high is None:
        return seq(optional("-"), alt("0", seq(any_of("1-9"), times(_DIGIT, 0, _LONGEST - 1))))
    forms = []
    for sign, least, most in _magnitudes(low, high):
        forms += _signed(sign, _digits(max(math.ceil(least), len(sign)), None if most is None else math.floor(most)))
    return alt(*forms) if forms else whole_number()  # no number is in the range


def number(low: float | None = None, high: float | None = None) -> Form:
    """A number from `low` to `high`. An end with many decimals is rounded to the inside."""
    if low is None and high is None:
        fraction = optional(seq(".", times(_DIGIT, 1, _LONGEST)))
        exponent = optional(seq(any_of("eE"), optional(any_of("+-")), times(_DIGIT, 1, 2)))
        return Rule("number", seq(whole_number(), fraction, exponent))
    ends = [Fraction(repr(end)) for end in (low, high) if end is not None and math.isfinite(end)]
    point = next((n for n in range(1, _DECIMALS) if all(end * 10**n % 1 == 0 for end in ends)), _DECIMALS)
    more = times(_DIGIT, 0, _LONGEST - point)
    forms = []
    for sign, least, most in _magnitudes(low, high):
        for places in range(point + 1):
            first = math.ceil(least * 10**places)
            last = None if most is None else math.floor(most * 10**places)
            if places < point:
                forms += _signed(sign, _digits(first, last, places))
            else:  # whatever follows, it is still below the end, unless this is the end itself
                below = _digits(first, None if last is None else last - 1, places)
                forms += _signed(sign, [seq(each, more) for each in below])
                forms += _signed(sign, _digits(last, last, places)) if last is not None and first <= last else []
    return alt(*forms) if forms else number()


def _magnitudes(low: float | None, high: float | None) -> Iterable[tuple[str, Fraction, Fraction | None]]:
    """The range as (sign, least, most) without signs."""
    bottom, top = (None if end is None or not math.isfinite(end) else Fraction(repr(end)) for end in (low, high))
    if top is None or top >= 0:
        yield "", max(bottom or Fraction(0), Fraction(0)), top
    if bottom is None or bottom < 0:
        yield "-", max(-(top or Fraction(0)), Fraction(0)), None if bottom is None else -bottom


def _signed(sign: str, forms: Sequence[Form]) -> list[Form]:
    return [seq(sign, alt(*forms))] if forms else []


def _digits(low: int, high: int | None, point: int = 0) -> list[Form]:
    """The numbers from `low` to `high` as digits, by their length, with a point before the last `point` ones."""
    forms: list[Form] = []
    length = max(len(str(low)), point + 1)
    while high is None or (high >= low and len(str(high).zfill(point + 1)) >= length):
        least, most = 0 if length == point + 1 else 10 ** (length - 1), 10**length - 1
        if high is None and low <= least and length > point + 1:
            before = times(_DIGIT, length - point - 1, max(_LONGEST - 1, length - point - 1))
            behind = seq(".", times(_DIGIT, point, point)) if point else seq()
            return [*forms, seq(any_of("1-9"), before, behind)]
        least, most = max(low, least), most if high is None else min(high, most)
        forms.append(_between(str(least).zfill(length), str(most).zfill(length), point))
        length += 1
    return forms


def _between(low: str, high: str, point: int) -> Form:
    """The numbers with as many digits as both ends have, from one to the other."""
    length = len(low)
    if not length:
        return seq()
    if length == point:
        return seq(".", _between(low, high, 0))
    if not low.strip("0") and not high.strip("9"):
        whole, behind = times(_DIGIT, length - point, length - point), times(_DIGIT, point, point)
        return seq(whole, ".", behind) if point else whole
    first, last = int(low[0]), int(high[0])
    nines, zeros = "9" * (length - 1), "0" * (length - 1)
    if first == last:
        return seq(low[0], _between(low[1:], high[1:], point))
    forms: list[Form] = []
    if low[1:] != zeros:
        forms.append(seq(low[0], _between(low[1:], nines, point)))
        first += 1
    if high[1:] != nines:
        last -= 1
    if first <= last:
        forms.append(seq(any_of(f"{first}-{last}" if first < last else str(first)), _between(zeros, nines, point)))
    if high[1:] != nines:
        forms.append(seq(high[0], _between(zeros, high[1:], point)))
    return alt(*forms)


def _date() -> Form:
    """A date that exists, in the years from 1000 to 2999."""
    year = seq(any_of("12"), times(_DIGIT, 3, 3))
    day = alt(seq("0", any_of("1-9")), seq(any_of("12"), _DIGIT))
    february = alt(seq("0", any_of("1-9")), seq("1", _DIGIT), seq("2", any_of("0-8")))
    fourth = alt(seq("0", any_of("48")), seq(any_of("2468"), any_of("048")), seq(any_of("13579"), any_of("26")))
    leap = alt(seq(any_of("12"), _DIGIT, fourth), seq(alt("12", "16", "20", "24", "28"), "00"))
    months = [
        seq(alt(seq("0", any_of("13-9")), seq("1", any_of("0-2"))), "-", day),
        seq(alt(seq("0", any_of("13-9")), seq("1", any_of("0-2"))), "-30"),
        seq(alt(seq("0", any_of("13578")), "10", "12"), "-31"),
        seq("02-", february),
    ]
    return alt(seq(year, "-", alt(*months)), seq(leap, "-02-29"))


DATE = Rule("date", _date())
_SIXTY = seq(any_of("0-5"), _DIGIT)
_TIME = seq(alt(seq(any_of("01"), _DIGIT), seq("2", any_of("0-3"))), ":", _SIXTY, optional(seq(":", _SIXTY)))
DATETIME = Rule("datetime", seq(DATE, optional(seq(any_of("T "), _TIME))))
