"""Numbers that were seen -> the form of an answer that holds no others.

Digits, the names of months and words that count stand there only as one of the given spellings, whole: nothing is
written close before or behind one that would make it another number. All else is free, as in any text between
brackets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from .claims import ARTICLES
from .forms import SPACE, Form, Rule, alt, any_of, but, many, optional, seq, some
from .numbers import COUNTING, MONTHS

_DIGITS = "0-9０-９٠-٩۰-۹०-९"
_LETTERS = "A-Za-z"
_BLANKS = " \t\u3000"  # others may separate thousands
# What may stand close before a number and close behind it. A point, comma, colon or hyphen before one could go on with
# the number before that; a letter on either side would make it a name.
_BEFORE = "($€£¥<>~≈+*#"
_BEHIND = "-,.;:!?%)°/–€£¥$*"


def answer_form(spellings: Iterable[str]) -> Form:
    """An answer in one line, without brackets, in which what counts is one of `spellings`."""
    mark = Rule("mark", but(SPACE, "=[]", _DIGITS, _LETTERS))
    plain = Rule("plain", _other_than(_counting()))
    marks = many(alt(mark, seq(plain, mark)))
    word: Form = alt(seq(marks, plain), seq(marks, optional(plain), mark))
    if seen := sorted(set(spellings)):
        before = optional(seq(marks, optional(plain), any_of(_BEFORE)))
        behind = optional(seq(any_of(_BEHIND), marks, optional(plain)))
        word = alt(seq(before, Rule("seen", _one_of(seen)), behind), word)
    word = Rule("word", word)
    gap = any_of(_BLANKS, "=")
    return Rule("grounded", seq(many(any_of(_BLANKS)), word, many(seq(some(gap), word))))


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
    letters = "".join(map(chr, (*range(65, 91), *range(97, 123))))
    others = "".join(letter for letter in letters if letter not in rest)
    options = [seq(any_of(others), many(any_of(_LETTERS)))]
    for head, tails in sorted(rest.items()):
        longer = _other_than(tails)
        options.append(seq(head, longer if "" in tails else optional(longer)))
    return alt(*options)


def _one_of(texts: list[str]) -> Form:
    """One of these texts; what several begin with is there once, so that a server has few ways to go on with."""
    rest: dict[str, list[str]] = {}
    for text in texts:
        rest.setdefault(text[:1], []).append(text[1:])
    ends = rest.pop("", None)
    options = alt(*(seq(head, _one_of(tails)) for head, tails in rest.items())) if rest else seq()
    return optional(options) if ends and rest else options
