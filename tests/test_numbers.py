"""Numbers in texts: what is one, and which are the same."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from react_text.numbers import Known, find_numbers, number_words


def amounts(text: str) -> list[str]:
    """The first reading of each number."""
    return [" ".join(str(float(value.amount)) for value in number.readings[0]) for number in find_numbers(text)]


FOUND = {
    "plain": ("41820 and 7", ["41820.0", "7.0"]),
    "decimals": ("0.0844, then .5", ["0.0844", "0.5"]),
    "separators of thousands": ("54,220 54'220 54\u202f220", ["54220.0", "54220.0", "54220.0"]),
    "millions with separators": ("1,234,567.5 or 1.234.567", ["1234567.5", "1234567.0"]),
    "a decimal comma": ("8,44 and 54.220,50", ["8.44", "54220.5"]),
    "an exponent": ("1.5e-3 and 2E6", ["0.0015", "2000000.0"]),
    "currency signs": ("$49.00, €12 and £3", ["49.0", "12.0", "3.0"]),
    "units written close": ("10km, 5%, 3rd", ["10.0", "5.0", "3.0"]),
    "a scale in words": ("1.3 million and 54k", ["1300000.0", "54000.0"]),
    "a comparison": (">=20", ["20.0"]),
    "a date": ("2026-07", ["2026.0", "7.0"]),
    "a time": ("12:05", ["12.0", "5.0"]),
    "Python and JSON": ("{'total_usd': 41820, \"n\":3}", ["41820.0", "3.0"]),
    "the end of a sentence": ("It is 12.", ["12.0"]),
    "a sign is left out": ("-8180", ["8180.0"]),
    "names with digits are none": ("refund-v3 B4 L204 sha256 3fa85f64 x_2", []),
    "versions and addresses are none": ("1.4.0 and 192.168.0.1", []),
    "too many digits are a name": ("1" * 31, []),
}


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND)
def test_numbers_are_found(text: str, expected: list[str]) -> None:
    assert amounts(text) == expected


@pytest.mark.parametrize("text", ["costs 54,220 USD", "a  0.5b", "[100,200]"])
def test_a_number_knows_its_place(text: str) -> None:
    for number in find_numbers(text):
        assert text[number.start : number.end] == number.text


SAME = {
    "itself": ("41820", "41820"),
    "with separators": ("54,220", "54220"),
    "without them": ("54220", "54,220"),
    "with a currency sign": ("$54,220.00", "54220"),
    "with a scale": ("41.82k", "41820"),
    "a scale on both sides": ("1.3 million", "{'millions': 1.3}"),
    "percent of a ratio": ("8.44 percent", "0.0844"),
    "percent with a sign": ("24.8%", "0.248"),
    "a ratio of a percentage": ("0.2", "20 %"),
    "a ratio of a field in percent": ("0.2", "{'percent': 20}"),
    "percent of percent": ("20 percent", "'discount_percent': 20"),
    "a percentage that came as such": ("8.44 percent", "8.44"),
    "rounded decimals": ("8.4 percent", "0.0844"),
    "rounded to a whole": ("4220", "4219.7"),
    "rounded to thousands": ("54,000", "54220"),
    "trailing zeros": ("49.00", "49"),
    "another sign": ("8180 under", "-8180"),
    "one of a list": ("200", "[100,200,300]"),
    "a list as it was": ("100,200", "[100,200,300]"),
    "a leading zero": ("2026-7", "2026-07"),
    "words": ("3 days", "three days"),
    "larger words": ("2304", "two thousand three hundred and four"),
    "a month": ("2026-08", "August 2026"),
    "a short month": ("05-12", "12 May"),
    "metres, not millions": ("62m", "{'length': 62}"),
}
OTHER = {
    "one digit off": ("54221", "54220"),
    "not rounded but cut": ("8.5 percent", "0.0844"),
    "rounded too far": ("0.1", "0.0844"),
    "rounded away": ("0", "0.0844"),
    "rounded up to one": ("1", "0.6"),
    "worked out": ("4220", "54220 and 50000"),
    "the rest to a hundred percent": ("80", "20 %"),
    "a percentage without its sign": ("8.44", "0.0844"),
    "a thousand times as much": ("41820", "41.82"),
    "a decimal that looks like thousands": ("41.820", "41820"),
    "a part of a longer one": ("418", "41820"),
    "digits of a name": ("3", "refund-v3"),
    "may is not May": ("5", "it may be"),
}


def known(number: str, source: str) -> bool:
    sources = Known([*find_numbers(source), *number_words(source)])
    return all(found in sources for found in find_numbers(number))


@pytest.mark.parametrize(("number", "source"), SAME.values(), ids=SAME)
def test_the_same_number(number: str, source: str) -> None:
    assert find_numbers(number)
    assert known(number, source)


@pytest.mark.parametrize(("number", "source"), OTHER.values(), ids=OTHER)
def test_another_number(number: str, source: str) -> None:
    assert find_numbers(number)
    assert not known(number, source)


def test_words_have_their_place_and_amount() -> None:
    text = "In May twenty-five or two hundred and four."
    found = {text[n.start : n.end]: n.readings[0][0].amount for n in number_words(text)}
    assert found == {"May": 5, "twenty-five": 25, "two hundred and four": Fraction(204)}


def test_nothing_is_known_at_first() -> None:
    assert find_numbers("0")[0] not in Known()


def test_the_origin_of_a_number_is_the_first_and_least_changed() -> None:
    known = Known()
    for place, text in enumerate(["54219.6", "54220 and 0.0844", "54220"]):
        known.add(find_numbers(text), place)
    found = {text: known.find(find_numbers(text)[0]) for text in ("54,220", "54219.60", "8.4 %", "54,200", "54,221")}
    assert {text: origin and (origin.place, origin.how) for text, origin in found.items()} == {
        "54,220": (1, ()),
        "54219.60": (0, ()),
        "8.4 %": (1, ("percent of a ratio", "rounded")),
        "54,200": (0, ("rounded",)),
        "54,221": None,
    }


def test_looking_numbers_up_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        known = Known(find_numbers(" ".join(f"{number}.{number % 3}1" for number in range(count))))
        asked = find_numbers(" ".join(f"{number}.7 %" for number in range(count)))
        started = time.process_time()
        assert not any(number in known for number in asked)
        return time.process_time() - started

    seconds(100)
    assert seconds(8000) < 10 * seconds(2000) + 0.1


@pytest.mark.parametrize("piece", ["1", "1,", "1,000", "1.1", "1 000 ", "twenty ", "12e", "one and ", "percent: 1"])
def test_a_large_text_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        started = time.perf_counter()
        find_numbers(text)
        number_words(text)
        return time.perf_counter() - started

    seconds(1000)
    assert seconds(200_000) < 12 * seconds(40_000) + 0.1
