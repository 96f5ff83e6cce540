"""Random texts of a form, with a liking for characters that mean something to the parser."""

from __future__ import annotations

from functools import lru_cache
from random import Random

from react_text.forms import Alt, Chars, Form, Repeat, Seq, Text

LIKED = "abctoqThAO .,:;=[]{}()\"'“”‘’`*_#>-<|/\\0123９٣：，,［］ſı\t\u3000\xa0\u2003\r\x1c\n+~&é查😀"


def sentence(form: Form, random: Random, going_on: float = 0.6, liked: str = LIKED) -> str:
    """One text of this form; `going_on` is how likely a repetition is to be repeated once more."""
    if isinstance(form, Text):
        return form.text
    if isinstance(form, Chars):
        return _char(form, random, liked)
    if isinstance(form, Seq):
        return "".join(sentence(part, random, going_on, liked) for part in form.parts)
    if isinstance(form, Alt):
        return sentence(random.choice(form.options), random, going_on, liked)
    if isinstance(form, Repeat):
        count = form.low
        while (form.high is None or count < form.high) and random.random() < going_on:
            count += 1
        return "".join(sentence(form.form, random, going_on, liked) for _ in range(count))
    return sentence(form.form, random, going_on, liked)


def _char(form: Chars, random: Random, liked: str) -> str:
    if form.negated or random.random() < 0.5:
        possible = _possible(form, liked)
        if possible:
            return random.choice(possible)
    low, high = random.choice(form.ranges)
    return chr(random.randint(ord(low), ord(high)))


@lru_cache(maxsize=1000)
def _possible(form: Chars, liked: str) -> str:
    return "".join(char for char in liked if char in form)
