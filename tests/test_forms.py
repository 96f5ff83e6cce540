"""Forms of text: what they say of themselves, how they are written, and the forms of numbers, dates and patterns."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text.conversion import convert
from react_text.forms import (
    SPACE,
    Form,
    Rule,
    alt,
    any_of,
    but,
    many,
    may_be_empty,
    may_hold,
    optional,
    sentences,
    seq,
    some,
    times,
)
from react_text.notations import to_gbnf, to_lark, to_regex
from react_text.number_forms import DATE, DATETIME, number, whole_number
from react_text.pattern_forms import pattern_form

from .gbnf import Gbnf, GbnfError
from .sentences import sentence


def fits(form: Form, text: str) -> bool:
    return re.fullmatch(to_regex(form), text) is not None


def those_of(form: Form, values: range) -> list[int]:
    """The values whose texts have this form."""
    pattern = re.compile(to_regex(form))
    return [value for value in values if pattern.fullmatch(str(value))]


# -- the reader of GBNF that the other tests rest on


@pytest.mark.parametrize(
    "grammar",
    [
        pytest.param('start ::= "a"', id="no root"),
        pytest.param("root ::= b", id="an undefined rule"),
        pytest.param('root ::= "a"\nb ::= "b"', id="a rule that nothing uses"),
        pytest.param('root ::= "a"\nroot ::= "b"', id="a rule given twice"),
        pytest.param('root ::= "say "hi""', id="a quote inside a literal"),
        pytest.param('root ::= "a', id="an open literal"),
        pytest.param('root ::= "\\d"', id="an escape that is not known"),
        pytest.param("root ::= [\\-]", id="an escaped hyphen"),
        pytest.param("root ::= []", id="an empty class"),
        pytest.param("root ::= [z-a]", id="a range backwards"),
        pytest.param("root ::= [a", id="an open class"),
        pytest.param('root ::= ("a"', id="an open group"),
        pytest.param('root ::= "a")', id="a group closed twice"),
        pytest.param('root ::= "a"{3,2}', id="a count backwards"),
        pytest.param('root ::= "a"{9999}', id="a count that is too high"),
        pytest.param('root ::= root "a" | "b"', id="a rule that begins with itself"),
        pytest.param('root ::= b? root "a" | "c"\nb ::= "b"', id="a rule that begins with itself behind nothing"),
        pytest.param('root ::= ("a"*)*', id="an empty loop"),
        pytest.param('ro_ot ::= "a"', id="an underscore in a name"),
        pytest.param("root ::= 查", id="a name that is none"),
    ],
)
def test_what_is_no_grammar(grammar: str) -> None:
    with pytest.raises(GbnfError):
        Gbnf(grammar)


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('root ::= "a" b* # comment\nb ::= [0-9]', ["a", "a12"], ["", "b", "a1b"]),
        ('root ::= ("a" | "b")+ "c"?', ["a", "abac"], ["c", "acc"]),
        ('root ::= "a"{2,3}', ["aa", "aaa"], ["a", "aaaa"]),
        ('root ::= "a"{2,} | "b"{2}', ["aa", "aaaaa", "bb"], ["a", "b", "bbb"]),
        ('root ::= [^a\\n\\]]+ "\\"\\\\"', ['b"\\', '[["\\'], ['a"\\', ']"\\', '\n"\\']),
        ('root ::= "\\x41\\u00e9\\U0001f600" [\\x2d\\x5e]', ["Aé😀-", "Aé😀^"], ["Aé😀"]),
        ('root ::= "(" root? ")"', ["()", "((()))"], ["(()"]),
    ],
)
def test_texts_of_a_grammar(grammar: str, good: list[str], bad: list[str]) -> None:
    read = Gbnf(grammar)
    assert [text for text in good if not read.accepts(text)] == []
    assert [text for text in bad if read.accepts(text)] == []


# -- notations


@pytest.mark.parametrize(
    ("form", "gbnf", "regex", "lark"),
    [
        (seq("a", any_of("0-9"), "b"), '"a" [0-9] "b"', "a[0-9]b", '"a" /[0-9]/ "b"'),
        (alt("a", "b", "a"), '"a" | "b"', "a|b", '"a" | "b"'),
        (seq("x", alt("a", "b")), '"x" ("a" | "b")', "x(?:a|b)", '"x" ("a" | "b")'),
        (some("ab"), '"ab"+', "(?:ab)+", '"ab"+'),
        (many(seq("a", any_of("b"))), '("a" [b])*', "(?:a[b])*", '("a" /[b]/)*'),
        (optional(many("a")), '("a"*)?', "(?:a*)?", '("a"*)?'),
        (times("a", 2, 2), '"a"{2}', "a{2}", '"a"{2}'),
        (times("a", 2, None), '"a"{2,}', "a{2,}", '"a"{2,}'),
        (times("a", 0, 3), '"a"{0,3}', "a{0,3}", '"a"{0,3}'),
        (seq('"\\\n'), '"\\"\\\\\\n"', '"\\\\\\n', '"\\"\\\\\\n"'),
        (seq("a.b*[c]"), '"a.b*[c]"', "a\\.b\\*\\[c\\]", '"a.b*[c]"'),
        (any_of("-^]\\["), "[\\x2d\\x5e\\]\\\\\\[]", "[\\-\\^\\]\\\\\\[]", "/[\\-\\^\\]\\\\\\[]/"),
        (any_of("&", "~", "/"), "[&~/]", "[\\x26\\x7e/]", "/[\\x26\\x7e\\/]/"),
        (but("\x00-\x1f", "\u2028"), "[^\\x00-\\x1f\\u2028]", "[^\\x00-\\x1f\\u2028]", "/[^\\x00-\\x1f\\u2028]/"),
        (any_of("a-b", "😀-😂"), "[ab😀-😂]", "[ab😀-😂]", "/[ab😀-😂]/"),
    ],
)
def test_a_form_in_three_notations(form: Form, gbnf: str, regex: str, lark: str) -> None:
    assert to_gbnf(form) == f"root ::= {gbnf}\n"
    assert to_regex(form) == regex
    assert to_lark(form) == f"%llguidance {{}}\nstart: TURN\nTURN: {lark}\n"


def test_rules_have_names_in_gbnf_and_lark_and_are_shown_in_place_in_a_regex() -> None:
    digit = Rule("one-digit", any_of("0-9"))
    form = seq(Rule("pair", seq(digit, digit)), optional(digit))
    assert to_gbnf(form) == "root ::= pair one-digit?\npair ::= one-digit one-digit\none-digit ::= [0-9]\n"
    assert to_lark(form).split("\n")[2:] == [
        "TURN: PAIR ONE_DIGIT?",
        "PAIR: ONE_DIGIT ONE_DIGIT",
        "ONE_DIGIT: /[0-9]/",
        "",
    ]
    assert to_regex(form) == "[0-9][0-9][0-9]?"


def test_white_space_is_what_str_strip_removes() -> None:
    every = map(chr, range(0x3100))
    assert [char for char in every if (char in any_of(SPACE)) != char.isspace()] == []
    assert to_regex(but(SPACE, "=")) == "[^\\s=]"
    assert "\\s" not in to_gbnf(but(SPACE))


# -- what forms say of themselves


FORM = seq("a", optional("b"), many(any_of("c-e")), alt("f", seq("g", "h")))


def test_what_a_form_may_hold() -> None:
    assert [char for char in "abcdefghi" if may_hold(FORM, char)] == list("abcdefgh")
    assert [char for char in "abcdefghi" if may_hold(FORM, char, edge=0)] == ["a"]
    assert [char for char in "abcdefghi" if may_hold(FORM, char, edge=-1)] == ["f", "h"]
    assert [char for char in "abc" if may_hold(seq(optional("a"), "b", optional("c")), char, edge=0)] == ["a", "b"]
    assert may_hold(but("a"), "b") and not may_hold(but("a"), "a")


def test_what_may_be_empty() -> None:
    assert [may_be_empty(each) for each in (seq(), optional("a"), many("a"), Rule("r", alt("a", seq())))] == [True] * 4
    assert [may_be_empty(each) for each in (FORM, some("a"), any_of("a"), seq(optional("a"), "b"))] == [False] * 4


def test_all_sentences_of_a_small_form() -> None:
    assert sentences(seq(alt("a", "b"), optional("c"), any_of("0-1")), 8) == [
        "a0", "a1", "ac0", "ac1", "b0", "b1", "bc0", "bc1",
    ]  # fmt: skip
    assert sentences(seq(alt("a", "b"), optional("c"), any_of("0-1")), 7) is None
    assert sentences(times("a", 1, 3), 9) == ["a", "aa", "aaa"]
    assert sentences(Rule("r", seq()), 1) == [""]
    assert [sentences(each, 99) for each in (many("a"), but("a"), any_of("a-\uffff"), seq("a", some("b")))] == [
        None
    ] * 4


# -- numbers


@given(st.integers(-250, 250), st.integers(-250, 250))
def test_the_whole_numbers_of_a_range_are_exactly_those(one: int, other: int) -> None:
    low, high = sorted((one, other))
    some_values = range(-1100, 1100)
    assert those_of(whole_number(low, high), some_values) == list(range(low, high + 1))
    assert those_of(whole_number(low), some_values) == list(range(low, 1100))
    assert those_of(whole_number(None, high), some_values) == list(range(-1100, high + 1))


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.integers(-(10**9), 10**9))
def test_the_ends_of_a_large_range(low: int, more: int, other: int) -> None:
    form = whole_number(low, low + more)
    for n in (low - 1, low, low + more, low + more + 1, other):
        assert fits(form, str(n)) == (low <= n <= low + more)


def test_whole_numbers_as_people_write_them() -> None:
    assert [t for t in ("0", "7", "-7", "120", "999999999999999") if not fits(whole_number(), t)] == []
    assert [t for t in ("", "-", "007", "1.0", "1e3", "+1", " 1") if fits(whole_number(), t)] == []
    assert fits(whole_number(5, 3), "4"), "no number is in the range: any will do"
    assert to_regex(whole_number(1, 30)) == "[1-9]|[12][0-9]|30"


@given(
    st.decimals("-30", "30", places=2),
    st.decimals("-30", "30", places=2),
    st.decimals("-31", "31", places=2),
    st.integers(0, 3),
)
def test_the_decimals_of_a_range_are_exactly_those(one: Decimal, other: Decimal, middle: Decimal, digits: int) -> None:
    low, high = sorted((one, other))
    form = number(float(low), float(high))
    for value in (low, high, middle, low - Decimal("0.01"), high + Decimal("0.01"), low + Decimal("0.001")):
        inside = low <= value <= high
        assert fits(form, f"{value:.3f}") == inside or value in (low, high)
        assert not fits(form, f"{value:.{digits}f}") or float(low) <= float(f"{value:.{digits}f}") <= float(high)


def test_numbers_as_people_write_them() -> None:
    assert [t for t in ("0", "-7", "3.25", "0.5", "1e9", "-1.5E-3") if not fits(number(), t)] == []
    assert [t for t in ("", ".5", "1.", "0x1", "1,5", "nan", "inf") if fits(number(), t)] == []
    assert [t for t in ("0", "1", "0.0", "0.123456789", "1.0") if not fits(number(0, 1), t)] == []
    assert [t for t in ("-0.1", "1.01", "2", "1e1") if fits(number(0, 1), t)] == []


# -- dates


def test_dates_are_exactly_those_that_exist() -> None:
    for year in (1000, 1900, 2000, 2023, 2024, 2100, 2400, 2999):
        for month in range(14):
            for day in range(33):
                text = f"{year}-{month:02}-{day:02}"
                try:
                    exists = bool(datetime.date.fromisoformat(text))
                except ValueError:
                    exists = False
                assert fits(DATE, text) == exists, text


@given(st.integers(0, 10**9))
def test_times_are_read(seed: int) -> None:
    text = sentence(DATETIME, Random(seed))
    assert isinstance(convert(text, datetime.datetime), datetime.datetime)


# -- patterns


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d{4}-(0[1-9]|1[0-2])",
        r"^[A-Z]{2,3}\s?\w+$",
        r"(?:red|green|blue)?!",
        r"[^,;]+",
        r"a.c",
        r"\S+@\S+\.[a-z]{2,}",
        r"[^\s@]+@[^\s@]+",
        r"[\d.]+?x*?",
        r"(?P<year>\d\d)\Z",
        r"[^\x00-\x7f]+",
        r"x{0,9999}",
        r"",
    ],
)
def test_all_texts_of_a_translated_pattern_match_it(pattern: str) -> None:
    form = pattern_form(re.compile(pattern))
    assert form is not None
    random = Random(pattern)
    texts = {sentence(form, random) for _ in range(300)}
    assert [text for text in texts if not re.fullmatch(pattern, text)] == []
    assert Gbnf(to_gbnf(form)).accepts(texts.pop())


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"(?=a)a", id="look-ahead"),
        pytest.param(r"(?<!a)b", id="look-behind"),
        pytest.param(r"(a)\1", id="reference"),
        pytest.param(r"\bword\b", id="word border"),
        pytest.param(r"a^b", id="anchor in the middle"),
        pytest.param(r"(?i)a", id="flags"),
        pytest.param(r"(?i:a)b", id="flags of a group"),
        pytest.param(r"(a)?(?(1)b|c)", id="condition"),
        pytest.param(r"\D+", id="whatever is no digit"),
        pytest.param(r"[^\w]", id="whatever is no letter"),
        pytest.param(r"x{300}", id="more repetitions than a server unrolls"),
    ],
)
def test_patterns_that_are_not_plain(pattern: str) -> None:
    assert pattern_form(re.compile(pattern)) is None
