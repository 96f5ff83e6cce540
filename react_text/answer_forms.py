"""Numbers that were seen -> the form of an answer that holds no others.

Digits, the names of months and words that count stand there only as one of the given spellings, whole: nothing is
written close before or behind one that would make it another number. All else is free, as in any text between
brackets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from .claims import ARTICLES
from .forms import SPACE, Form, Rule, alt, any_of, but, many, optional, seq
from .numbers import COUNTING, MONTHS

_DIGITS = "0-9０-９٠-٩۰-۹०-९"
_LETTERS = "A-Za-z"
_BLANKS = " \t\u3000"  # others may separate thousands
# What may stand close before a number and close behind it. A point, comma, colon or hyphen before one could go on with
# the number before that; a letter on either side would make it a name.
_BEFORE = "($€£¥<>~≈+*#"
_BEHIND = "-,.;:!?%)°/–€£¥$*"


def answer_form(spellings: Iterable[str]) -> Form:
    """An answer in one line, without brackets and `=`, in which what counts is one of `spellings`."""
    word = Rule("plain", _other_than(_counting()))
    gap, mark = any_of(_BLANKS), but(SPACE, "=[]", _DIGITS, _LETTERS)
    seen = sorted(set(spellings))
    if not seen:
        return Rule("grounded", seq(many(alt(gap, seq(optional(word), mark))), alt(word, seq(optional(word), mark))))
    number = Rule("seen", _one_of(seen))
    numbers = seq(number, many(seq(gap, number)))
    before, behind = any_of(_BLANKS, _BEFORE), any_of(_BLANKS, _BEHIND)
    # Two words are never neighbours, they would be another word together; a number stands between marks or blanks.
    step = seq(optional(word), alt(gap, mark, seq(before, numbers, behind)))
    closed = seq(numbers, optional(any_of(_BEHIND)))
    last = alt(word, seq(optional(word), alt(mark, seq(before, closed))))
    return Rule("grounded", seq(many(gap), alt(closed, seq(optional(seq(numbers, behind)), many(step), last))))


@lru_cache(maxsize=1)
def _counting() -> frozenset[str]:
    """The words that count, as `claims` finds them."""
    months = {spelled for name in MONTHS for short in (name, name[:3]) for spelled in (short, short.upper())}
    words = {spelled for word in COUNTING if word not in ARTICLES for spelled in (word, word.capitalize())}
    return frozenset({*months, *words, "Sept"})


def _other_than(words: Collection[str]) -> Form:
    """Letters that are none of these words."""
    rest: dict[str, set[str]] = {}
    for word in filter(None, words):
        rest.setdefault(word[0], set()).add(word[1:])
    options = [seq(_letters_but(rest), many(any_of(_LETTERS)))]
    for head, tails in sorted(rest.items()):
        longer = _other_than(tails)
        options.append(seq(head, longer if "" in tails else optional(longer)))
    return alt(*options)


def _letters_but(letters: Collection[str]) -> Form:
    spans = []
    for first, last in ("AZ", "az"):
        for letter in sorted(each for each in letters if first <= each <= last):
            if first < letter:
                spans.append(f"{first}-{chr(ord(letter) - 1)}")
            first = chr(ord(letter) + 1)
        spans += [f"{first}-{last}"] if first <= last else []
    return any_of(*spans)


def _one_of(texts: list[str]) -> Form:
    """One of these texts; what several begin with is there once, so that a server has few ways to go on with."""
    rest: dict[str, list[str]] = {}
    for text in texts:
        rest.setdefault(text[:1], []).append(text[1:])
    ends = rest.pop("", None)
    options = alt(*(seq(head, _one_of(tails)) for head, tails in rest.items())) if rest else seq()
    return optional(options) if ends and rest else options
