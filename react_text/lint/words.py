"""Text -> its content words, so that two sentences about the same thing have some in common."""

from __future__ import annotations

import re

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
    words = set(_WORD.findall(text.casefold()))
    plain = {word for word in words if word.isalpha() and len(word) >= _SHORTEST} - _FUNCTION_WORDS
    return {word[:_STEM] for word in plain} | {word for word in words if not word.isalpha() and not word.isdigit()}
