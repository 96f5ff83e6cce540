"""A form -> GBNF, a regular expression, or Lark: what servers take to constrain decoding.

GBNF and Lark show each `Rule` under its name, a regular expression shows it in place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from .forms import SPACE, Alt, Chars, Form, Rule, Seq, Text, any_of

_SPACE = frozenset(any_of(SPACE).ranges)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_gbnf(root: Form) -> str:
    """The grammar language of llama.cpp."""
    writer = _Gbnf()
    first = f"root ::= {writer.write(root)}"
    return "\n".join([first, *(f"{name} ::= {rule}" for name, rule in writer.rules.items()), ""])


def to_regex(root: Form) -> str:
    """A regular expression that Python, RE2 and Rust read alike."""
    return _Regex().write(root)


def to_lark(root: Form) -> str:
    """The Lark dialect of llguidance. All rules are terminals, so that the whole is one automaton."""
    writer = _Lark()
    first = ["%llguidance {}", "start: TURN", f"TURN: {writer.write(root)}"]
    return "\n".join([*first, *(f"{name}: {rule}" for name, rule in writer.rules.items()), ""])


class _Writer:
    """One notation. `write` is given the place where a form is to stand: 0 among alternatives, 1 in a sequence, 2
    before the count of a repetition."""

    between = " "
    opening = "("
    hidden: ClassVar[Mapping[str, str]] = {"\\": "\\\\", "]": "\\]", "[": "\\[", "^": "\\^", "-": "\\-"}
    """How characters with a meaning of their own are written inside a class."""

    def __init__(self) -> None:
        self.rules: dict[str, str] = {}

    def write(self, form: Form, place: int = 0) -> str:
        if isinstance(form, Text):
            return self.text(form.text, place)
        if isinstance(form, Chars):
            return self.chars(form)
        if isinstance(form, Rule):
            return self.rule(form, place)
        if isinstance(form, Alt):
            either = f"{self.between}|{self.between}"
            return self.grouped(either.join(self.write(option) for option in form.options), place > 0)
        if isinstance(form, Seq):
            return self.grouped(self.between.join(self.write(part, 1) for part in form.parts), place > 1)
        signs = {(0, 1): "?", (0, None): "*", (1, None): "+", (form.low, form.low): f"{{{form.low}}}"}
        span = f"{{{form.low},{'' if form.high is None else form.high}}}"
        return self.grouped(self.write(form.form, 2) + signs.get((form.low, form.high), span), place > 1)

    def grouped(self, written: str, needed: bool) -> str:
        return f"{self.opening}{written})" if needed else written

    def text(self, text: str, place: int) -> str:
        raise NotImplementedError

    def chars(self, form: Chars) -> str:
        return f"[{'^' * form.negated}{''.join(self.range(low, high) for low, high in form.ranges)}]"

    def range(self, low: str, high: str) -> str:
        first, last = (self.hidden.get(char) or _visible(char) for char in (low, high))
        return first if low == high else f"{first}{'-' * (ord(high) > ord(low) + 1)}{last}"

    def rule(self, form: Rule, place: int) -> str:
        if form.name not in self.rules:
            self.rules[form.name] = ""  # keeps its place, before the rules that it uses
            self.rules[form.name] = self.write(form.form)
        return form.name


class _Gbnf(_Writer):
    hidden: ClassVar[Mapping[str, str]] = {**_Writer.hidden, "^": "\\x5e", "-": "\\x2d"}

    def text(self, text: str, place: int) -> str:
        return '"' + "".join({'"': '\\"', "\\": "\\\\"}.get(char) or _visible(char) for char in text) + '"'


class _Regex(_Writer):
    between = ""
    opening = "(?:"
    # `&&` and `~~` are set operations in some engines.
    hidden: ClassVar[Mapping[str, str]] = {**_Writer.hidden, "&": "\\x26", "~": "\\x7e"}

    def text(self, text: str, place: int) -> str:
        written = "".join("\\" + char if char in ".^$*+?{}[]\\|()" else _visible(char) for char in text)
        return self.grouped(written, place > 1 and len(text) != 1)

    def chars(self, form: Chars) -> str:
        if not set(form.ranges) >= _SPACE:
            return super().chars(form)
        others = "".join(self.range(low, high) for low, high in form.ranges if (low, high) not in _SPACE)
        return f"[{'^' * form.negated}\\s{others}]"

    def rule(self, form: Rule, place: int) -> str:
        return self.write(form.form, place)


class _Lark(_Regex):
    between = " "
    opening = "("
    hidden: ClassVar[Mapping[str, str]] = {**_Regex.hidden, "/": "\\/"}

    def text(self, text: str, place: int) -> str:
        return json.dumps(text, ensure_ascii=False)

    def chars(self, form: Chars) -> str:
        return f"/{super().chars(form)}/"

    def rule(self, form: Rule, place: int) -> str:
        return _Writer.rule(self, Rule(form.name.upper().replace("-", "_"), form.form), place)


def _visible(char: str) -> str:
    """A character as it is, or as an escape when it cannot be seen."""
    if char.isprintable():
        return char
    code = ord(char)
    digits = f"x{code:02x}" if code < 0x100 else f"u{code:04x}" if code < 0x10000 else f"U{code:08x}"
    return _NAMED.get(char) or f"\\{digits}"
