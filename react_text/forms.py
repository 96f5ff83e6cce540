"""The form of a text as a small tree, and what can be asked of one.

A form is a regular language: it has no recursion and no look-ahead, so that every engine for constrained decoding can
take it (see `notations`). Parts that are used more than once are a `Rule`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character of these ranges; of all others when `negated`."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __contains__(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True)
class Seq:
    """One after the other."""

    parts: tuple[Form, ...]


@dataclass(frozen=True)
class Alt:
    """One of these."""

    options: tuple[Form, ...]


@dataclass(frozen=True)
class Repeat:
    """`form` from `low` to `high` times; without an upper limit when `high` is None."""

    form: Form
    low: int
    high: int | None


@dataclass(frozen=True)
class Rule:
    """`form` under a name of lower-case letters and hyphens; one name stands for one form."""

    name: str
    form: Form


Form = Text | Chars | Seq | Alt | Repeat | Rule

# What `str.isspace` says yes to, and with it `str.strip`.
SPACE = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


# -- making trees


def seq(*parts: Form | str) -> Form:
    """One after the other; neighbouring texts become one."""
    flat: list[Form] = []
    for part in parts:
        form = Text(part) if isinstance(part, str) else part
        for each in form.parts if isinstance(form, Seq) else [form]:
            if isinstance(each, Text) and flat and isinstance(flat[-1], Text):
                flat[-1] = Text(flat[-1].text + each.text)
            elif each != Text(""):
                flat.append(each)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat)) if flat else Text("")


def alt(*options: Form | str) -> Form:
    """One of these, each once."""
    flat: dict[Form, None] = {}
    for option in options:
        form = Text(option) if isinstance(option, str) else option
        flat.update(dict.fromkeys(form.options if isinstance(form, Alt) else [form]))
    return next(iter(flat)) if len(flat) == 1 else Alt(tuple(flat))


def times(form: Form | str, low: int, high: int | None) -> Form:
    """`form`, repeated."""
    form = Text(form) if isinstance(form, str) else form
    return form if low == high == 1 else Text("") if high == 0 else Repeat(form, low, high)


def optional(form: Form | str) -> Form:
    return times(form, 0, 1)


def many(form: Form | str) -> Form:
    """Any number of times, none among them."""
    return times(form, 0, None)


def some(form: Form | str) -> Form:
    """Once or more."""
    return times(form, 1, None)


def any_of(*specs: str) -> Chars:
    """One character of what is listed: `a-z0-9_`. A hyphen at either end of a spec stands for itself."""
    return Chars(tuple(dict.fromkeys(itertools.chain(*map(_ranges, specs)))))


def but(*specs: str) -> Chars:
    """One character that is not listed."""
    return Chars(any_of(*specs).ranges, negated=True)


def _ranges(spec: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(spec):
        if spec[position + 1 : position + 2] == "-" and position + 2 < len(spec):
            yield spec[position], spec[position + 2]
            position += 3
        else:
            yield spec[position], spec[position]
            position += 1


# -- asking trees


def may_be_empty(form: Form) -> bool:
    """Whether the empty text has this form."""
    if isinstance(form, Text):
        return not form.text
    if isinstance(form, Seq):
        return all(map(may_be_empty, form.parts))
    if isinstance(form, Alt):
        return any(map(may_be_empty, form.options))
    if isinstance(form, Repeat):
        return form.low == 0 or may_be_empty(form.form)
    return isinstance(form, Rule) and may_be_empty(form.form)


def may_hold(form: Form, chars: Iterable[str], *, edge: int | None = None) -> bool:
    """Whether one of `chars` can stand in a text of this form; with `edge` 0 or -1, as its first or last character."""
    if isinstance(form, Text):
        return any(char in (form.text if edge is None else form.text[edge:][:1]) for char in chars)
    if isinstance(form, Chars):
        return any(char in form for char in chars)
    if isinstance(form, Alt):
        return any(may_hold(option, chars, edge=edge) for option in form.options)
    if isinstance(form, Seq):
        for part in form.parts if edge != -1 else reversed(form.parts):
            if may_hold(part, chars, edge=edge):
                return True
            if edge is not None and not may_be_empty(part):
                return False
        return False
    return may_hold(form.form, chars, edge=edge)


def sentences(form: Form, most: int) -> list[str] | None:
    """All texts of this form, or None when there are more than `most`."""
    found: list[str] | None
    if isinstance(form, Text):
        found = [form.text]
    elif isinstance(form, Chars):
        sizes = sum(ord(high) - ord(low) + 1 for low, high in form.ranges)
        if form.negated or sizes > most:
            return None
        found = [chr(code) for low, high in form.ranges for code in range(ord(low), ord(high) + 1)]
    elif isinstance(form, Alt):
        found = _joined([sentences(option, most) for option in form.options], most)
    elif isinstance(form, Seq):
        found = _products([sentences(part, most) for part in form.parts], most)
    elif isinstance(form, Repeat):
        if form.high is None or form.high > most:
            return None
        once = sentences(form.form, most)
        counts = range(form.low, form.high + 1)
        found = _joined([_products([once] * count, most) for count in counts], most)
    else:
        found = sentences(form.form, most)
    return found if found is None or len(found) <= most else None


def _joined(lists: list[list[str] | None], most: int) -> list[str] | None:
    known = [each for each in lists if each is not None]
    return list(dict.fromkeys(itertools.chain(*known))) if len(known) == len(lists) else None


def _products(lists: list[list[str] | None], most: int) -> list[str] | None:
    found = [""]
    for each in lists:
        if each is None or len(found) * len(each) > most:
            return None
        found = [before + text for before in found for text in each]
    return found
