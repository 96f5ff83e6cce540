"""Numbers that were seen -> the form of an answer that holds no others.

Digits stand there only as one of the given spellings, whole: nothing is written close before or behind one that would
make it another number. All else is free, as in any text between brackets.
"""

from __future__ import annotations

from collections.abc import Iterable

from .forms import SPACE, Form, Rule, alt, any_of, but, many, optional, seq, some

_DIGITS = "0-9０-９٠-٩۰-۹०-९"
# What may stand close before a number and close behind it. A point, comma, colon or hyphen before one could go on with
# the number before that; a letter on either side would make it a name.
_BLANKS = " \t\u3000"  # others may separate thousands
_BEFORE = "($€£¥<>~≈+*#"
_BEHIND = "-,.;:!?%)°/–€£¥$*"


def answer_form(spellings: Iterable[str]) -> Form:
    """An answer in one line, without brackets, whose digits are those of `spellings`. A small model with numbers at
    hand repeats them; it needs no other way to write one."""
    free = Rule("free", but(SPACE, "=[]", _DIGITS))
    gap = any_of(_BLANKS, "=")
    word: Form = some(free)
    if seen := sorted(set(spellings)):
        number = Rule("seen", _one_of(seen))
        behind = optional(seq(any_of(_BEHIND), many(free)))
        word = alt(seq(optional(seq(many(free), any_of(_BEFORE))), number, behind), word)
    word = Rule("word", word)
    return Rule("grounded", seq(many(any_of(_BLANKS)), word, many(seq(some(gap), word))))


def _one_of(texts: list[str]) -> Form:
    """One of these texts; what several begin with is there once, so that a server has few ways to go on with."""
    rest: dict[str, list[str]] = {}
    for text in texts:
        rest.setdefault(text[:1], []).append(text[1:])
    ends = rest.pop("", None)
    options = alt(*(seq(head, _one_of(tails)) for head, tails in rest.items())) if rest else seq()
    return optional(options) if ends and rest else options
