"""A reader of GBNF, the grammar language of llama.cpp, as strict as its own: whether a grammar is valid, and which
texts it lets through.

    Gbnf('root ::= "a" b*\nb ::= [0-9]').accepts("a12")
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9-]+")
_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_HEX = {"x": 2, "u": 4, "U": 8}
_MOST_REPEATS = 2000


class GbnfError(ValueError):
    """The grammar is not valid; a server may refuse it or die of it."""


@dataclass
class Node:
    """`text`, `class` (ranges, negated), `seq`, `alt`, `repeat` (node, low, high) or `ref` (rule name)."""

    kind: str
    value: Any
    ends: dict[int, frozenset[int]] = field(default_factory=dict, repr=False)


class Gbnf:
    """A grammar. Raises GbnfError for one that is not valid."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.rules: dict[str, Node] = {}
        self._skip(lines=True)
        while self.position < len(source):
            name = self._name()
            self._take("::=")
            if name in self.rules:
                raise self._error(f"rule {name} is given twice")
            self.rules[name] = self._alternatives(nested=False)
            if self.position < len(source) and source[self.position] != "\n":
                raise self._error("a rule ends with its line")
            self._skip(lines=True)
        if "root" not in self.rules:
            raise GbnfError("no root rule")
        self._check()

    def accepts(self, text: str) -> bool:
        """Whether the whole of `text` is one of its sentences."""
        for node in self._nodes():
            node.ends.clear()
        return len(text) in self._ends(self.rules["root"], text, 0)

    # -- reading

    def _alternatives(self, nested: bool) -> Node:
        options = [self._sequence(nested)]
        while self._peek() == "|":
            self.position += 1
            self._skip(lines=True)
            options.append(self._sequence(nested))
        return options[0] if len(options) == 1 else Node("alt", options)

    def _sequence(self, nested: bool) -> Node:
        parts: list[Node] = []
        while (sign := self._peek()) and sign not in "|)\n":
            if sign == '"':
                part = self._literal()
            elif sign == "[":
                part = self._class()
            elif sign == "(":
                self.position += 1
                self._skip(lines=True)
                part = self._alternatives(nested=True)
                self._take(")", lines=nested)
            elif _NAME.match(sign):
                part = Node("ref", self._name(lines=nested))
            else:
                raise self._error(f"did not expect {sign!r}")
            parts.append(self._repeated(part))
            self._skip(lines=nested)
        return parts[0] if len(parts) == 1 else Node("seq", parts)

    def _repeated(self, part: Node) -> Node:
        sign = self._peek()
        if sign and sign in "*+?":
            self.position += 1
            return Node("repeat", (part, int(sign == "+"), 1 if sign == "?" else None))
        count = _REPEAT.match(self.source, self.position)
        if not count:
            return part
        self.position = count.end()
        low = int(count[1])
        high = None if count[2] and not count[3] else int(count[3] or low)
        if max(low, high or 0) > _MOST_REPEATS or (high is not None and high < low):
            raise self._error(f"repeat count {count[0]}")
        return Node("repeat", (part, low, high))

    def _literal(self) -> Node:
        self.position += 1
        text = ""
        while self._peek() != '"':
            text += self._char()
        self.position += 1
        return Node("text", text)

    def _class(self) -> Node:
        self.position += 1
        negated = self._peek() == "^"
        self.position += negated
        ranges = []
        while self._peek() != "]":
            low = high = self._char()
            if self._peek() == "-" and self.source[self.position + 1 : self.position + 2] != "]":
                self.position += 1
                high = self._char()
            if high < low:
                raise self._error(f"range {low!r} to {high!r}")
            ranges.append((low, high))
        self.position += 1
        if not ranges:
            raise self._error("an empty class")
        return Node("class", (tuple(ranges), negated))

    def _char(self) -> str:
        sign = self._peek()
        if sign == "" or sign == "\n":
            raise self._error("a literal or class is not closed on its line")
        self.position += 1
        if sign != "\\":
            return sign
        escape = self._peek()
        self.position += 1
        if escape in _HEX:
            digits = self.source[self.position : self.position + _HEX[escape]]
            if not re.fullmatch(f"[0-9a-fA-F]{{{_HEX[escape]}}}", digits):
                raise self._error(f"escape \\{escape}{digits}")
            self.position += len(digits)
            return chr(int(digits, 16))
        if escape not in _ESCAPES:
            raise self._error(f"unknown escape \\{escape}")
        return _ESCAPES[escape]

    def _name(self, lines: bool = False) -> str:
        match = _NAME.match(self.source, self.position)
        if not match:
            raise self._error("expected a name")
        self.position = match.end()
        self._skip(lines=lines)
        return match[0]

    def _take(self, sign: str, lines: bool = True) -> None:
        if not self.source.startswith(sign, self.position):
            raise self._error(f"expected {sign!r}")
        self.position += len(sign)
        self._skip(lines=lines and sign == "::=")

    def _peek(self) -> str:
        return self.source[self.position : self.position + 1]

    def _skip(self, lines: bool) -> None:
        blank = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*" if lines else r"[ \t]*(?:#[^\n]*)?")
        self.position = blank.match(self.source, self.position).end()  # type: ignore[union-attr]

    def _error(self, message: str) -> GbnfError:
        line = self.source.count("\n", 0, self.position) + 1
        return GbnfError(f"line {line}: {message} before {self.source[self.position : self.position + 30]!r}")

    # -- checking

    def _nodes(self) -> list[Node]:
        found, waiting = [], list(self.rules.values())
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += _inside(node)
        return found

    def _check(self) -> None:
        """Every rule exists and is used, none begins with itself, and no loop can turn without a character."""
        used = {node.value for node in self._nodes() if node.kind == "ref"}
        if missing := used - self.rules.keys():
            raise GbnfError(f"undefined rules: {', '.join(sorted(missing))}")
        if unused := self.rules.keys() - used - {"root"}:
            raise GbnfError(f"unused rules: {', '.join(sorted(unused))}")
        for name in self.rules:
            if name in self._begins(self.rules[name], set()):
                raise GbnfError(f"rule {name} begins with itself")
        for node in self._nodes():
            if node.kind == "repeat" and node.value[2] is None and self._nullable(node.value[0]):
                raise GbnfError(f"a repeat of what may be empty: {node.value[0]}")

    def _nullable(self, node: Node, above: tuple[str, ...] = ()) -> bool:
        if node.kind == "ref":
            name = node.value
            return name not in above and self._nullable(self.rules[name], (*above, name))
        if node.kind == "repeat":
            return node.value[1] == 0 or self._nullable(node.value[0], above)
        if node.kind in ("seq", "alt"):
            return (all if node.kind == "seq" else any)(self._nullable(part, above) for part in node.value)
        return node.kind == "text" and not node.value

    def _begins(self, node: Node, seen: set[str]) -> set[str]:
        if node.kind == "ref" and node.value not in seen:
            seen.add(node.value)
            self._begins(self.rules[node.value], seen)
        elif node.kind == "seq":
            for part in node.value:
                self._begins(part, seen)
                if not self._nullable(part):
                    break
        else:
            for part in _inside(node):
                self._begins(part, seen)
        return seen

    # -- matching

    def _ends(self, node: Node, text: str, start: int) -> frozenset[int]:
        """Where a match of `node` that begins at `start` can end."""
        if start not in node.ends:
            node.ends[start] = frozenset(self._find(node, text, start))
        return node.ends[start]

    def _find(self, node: Node, text: str, start: int) -> set[int]:
        if node.kind == "text":
            return {start + len(node.value)} if text.startswith(node.value, start) else set()
        if node.kind == "class":
            ranges, negated = node.value
            fits = start < len(text) and any(low <= text[start] <= high for low, high in ranges) != negated
            return {start + 1} if fits else set()
        if node.kind == "ref":
            return set(self._ends(self.rules[node.value], text, start))
        if node.kind == "alt":
            return {end for option in node.value for end in self._ends(option, text, start)}
        if node.kind == "seq":
            ends = {start}
            for part in node.value:
                ends = {end for begin in ends for end in self._ends(part, text, begin)}
            return ends
        inner, low, high = node.value
        found, ends, count = ({start} if low == 0 else set()), {start}, 0
        while ends and (high is None or count < high):
            count += 1
            ends = {end for begin in ends for end in self._ends(inner, text, begin)}
            if high is None and count > low:
                ends -= found
            if count >= low:
                found |= ends
        return found


def _inside(node: Node) -> list[Node]:
    if node.kind in ("seq", "alt"):
        return list(node.value)
    return [node.value[0]] if node.kind == "repeat" else []
