"""Text -> its content words, so that two sentences about the same thing have some in common."""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"[^\W_]+")
# `excludes` and `excluded` are one word: longer ones count by their first letters.
_STEM = 4
_SHORTEST = 3
_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "the and for with from that this these those are was were has have had not but all any its may can per you "
        "your our his her they them their will would should could than then there here into onto over under about what "
        "which when where who how why does did been being also only just such some more most very"
    )
)


def content_words(text: str) -> set[str]:
    """The words that say what a text is about, each cut to its beginning, and names with digits in them (`L204`)."""
    return set(count_words(text))


def count_words(text: str) -> Counter[str]:
    """How often each content word is in a text."""
    counts: Counter[str] = Counter()
    for word, times in Counter(_WORD.findall(text.casefold())).items():
        if not word.isalpha() and not word.isdigit():
            counts[word] += times
        elif word.isalpha() and len(word) >= _SHORTEST and word not in _FUNCTION_WORDS:
            counts[word[:_STEM]] += times
    return counts
