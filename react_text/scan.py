"""Where a bracket closes, where a quoted string ends, where the top-level commas are: one linear scan each.

Shared by the parser, which looks for the end of an action, and by the argument reader, which splits what is inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

Span = tuple[int, int]
OPENING = re.compile(r"[\[［【]")
"""What may open the arguments of an action."""
CLOSERS = {"[": "]", "［": "］", "【": "】", "(": ")", "（": "）", "{": "}"}
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_TRIPLE = ('"""', "'''")

# A quote opens a string only where an argument starts, and closes it only where an argument ends: an apostrophe
# inside a word, or a quoted word inside a sentence, is plain text.
_BEFORE_STRING = frozenset("[［【({,，=:：")
_AFTER_STRING = re.compile(r"\s*(?:[,，=:：\]］】)}]|\Z)")
_DEEPEST = 100
_FENCED = re.compile(r"(```|~~~)[\w+-]*[ \t]*\r?\n(.*)\1", re.S)
_SPLITTERS = re.compile(r"[\[({\])},，\"'“‘]")


def closing_bracket(
    text: str, opening: int, end: int, limit_after: Callable[[int], int] | None = None, *, growing: bool = False
) -> int | None:
    """The offset of the bracket that closes the one at `opening`, before `end`; None when the scan does not balance.

    Brackets inside a quoted string do not count. `limit_after(position)` says how far a string that starts at
    `position` may reach (the parser lets none run over the next label line); it is asked for growing positions.
    `growing` says that more text may follow, which could still close a string that is open now: None then as well.
    """
    bracket, closer = text[opening], CLOSERS[text[opening]]
    if text.find(closer, opening, end) < 0:
        return None
    strings = _Strings(text, end, limit_after)
    pattern = _bracket_or_quote(bracket, closer)
    depth, position = 0, opening
    while match := pattern.search(text, position, end):
        run, position = match[0], match.end()
        if run[0] == bracket:
            depth += len(run)
        elif run[0] != closer:
            behind = strings.end_of(match.start())
            if behind is None and growing and strings.open_until == end:
                return None
            position = behind or position
        elif len(run) >= depth:
            return match.start() + depth - 1
        else:
            depth -= len(run)
    return None


def top_level_parts(text: str) -> list[str]:
    """`text` split at the commas outside strings and brackets; at all outside strings when brackets do not balance."""
    commas, balanced = _commas(text, nested=True)
    if not balanced:
        commas, _ = _commas(text, nested=False)
    edges = [-1, *commas, len(text)]
    return [text[a + 1 : b] for a, b in pairwise(edges)]


def unquoted(text: str) -> tuple[str, bool]:
    """`text` without one pair of outer quotes, single or triple, and whether there was one. The pair must be each
    other's partners: `"Kestrel" AND "Plover"` stays as it is, but an apostrophe inside a word is no quote. An escaped
    quote inside loses its backslash."""
    triple = text[:3]
    if triple in _TRIPLE and len(text) >= 6 and text.find(triple, 3) == len(text) - 3:
        return text[3:-3], True
    closer = QUOTES.get(text[:1])
    if closer is None or len(text) < 2 or text[-1] != closer:
        return text, False
    inner = text[1:-1]
    partner = rf"(?:(?<!\w){closer}|{closer}(?!\w))" if closer in "'’" else closer
    if re.search(r"(?<!\\)(?:\\\\)*" + partner, inner):
        return text, False
    return inner.replace("\\" + closer, closer), True


def unfenced(text: str) -> str:
    """`text` without the code fence that holds all of it."""
    fence = _FENCED.fullmatch(text)
    return fence[2].strip() if fence else text


def read_object(text: str) -> dict[str, Any] | None:
    """A JSON object, or one that is nearly JSON (Python's literals, single or typographic quotes, texts of several
    lines, a comma too many), or None."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    for write in (str, _python_as_json):
        try:
            value = read_json(write(text))
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def read_json(text: str) -> Any:
    """A JSON value. Raises ValueError, also for one that is nested so deeply that whoever walks it would overflow."""
    if text.count("[") + text.count("{") > _DEEPEST:
        levels = accumulate(1 if mark in "[{" else -1 for mark in re.findall(r"[\[{\]}]", text))
        if max(levels) > _DEEPEST:
            raise ValueError("nested too deeply")
    return json.loads(text, strict=False)


# A string that is never closed reaches to the end: tried anew at each escaped quote, it would take quadratic time.
_PYTHON_LITERAL = re.compile(
    r"\"\"\"((?:[^\"\\]|\\.|\"(?!\"\"))*)(?:\"\"\"|\Z)|"
    r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|(?:'((?:[^'\\]|\\.)*)(?:'|\Z)|“([^”]*)(?:”|\Z))|\b(True|False|None)\b|(,)(?=\s*[}\]])",
    re.S,
)


def _python_as_json(text: str) -> str:
    return _PYTHON_LITERAL.sub(_as_json, text) if len(text) < 100_000 else text


def _as_json(literal: re.Match[str]) -> str:
    triple, single, typographic, word, comma = literal.groups()
    if triple is not None:
        return '"' + re.sub(r'(?<!\\)"', '\\"', triple) + '"'
    if word or comma:
        return {"True": "true", "False": "false", "None": "null", ",": ""}[word or comma]
    if typographic is not None:
        return json.dumps(typographic)
    return literal[0] if single is None else '"' + single.replace("\\'", "'").replace('"', '\\"') + '"'


class _Strings:
    """Finds the ends of quoted strings; what was searched in vain is not searched again."""

    def __init__(self, text: str, end: int, limit_after: Callable[[int], int] | None) -> None:
        self.text = text
        self.end = end
        self.limit_after = limit_after
        self.no_end_before: dict[str, int] = {}
        self.open_until = -1

    def end_of(self, start: int) -> int | None:
        """The offset behind the string whose opening quote is at `start`, or None when that quote is plain text;
        `open_until` is then how far its end was looked for."""
        self.open_until = -1
        if not self._at_argument_start(start):
            return None
        quote, triple = self.text[start], self.text[start : start + 3]
        limit = self.end if self.limit_after is None else min(self.limit_after(start), self.end)
        found = self._closed(start, triple, triple, limit) if triple in _TRIPLE else None
        return found or self._closed(start, quote, QUOTES[quote], limit)

    def _closed(self, start: int, quote: str, closer: str, limit: int) -> int | None:
        if start < self.no_end_before.get(quote, 0):
            return None
        position = start + len(quote)
        while (position := self.text.find(closer, position, limit)) >= 0:
            position += len(closer)
            if not self._escaped(position - len(closer), start) and _AFTER_STRING.match(self.text, position, self.end):
                return position
        self.no_end_before[quote] = self.open_until = limit
        return None

    def _at_argument_start(self, position: int) -> bool:
        position -= 1
        while position >= 0 and self.text[position].isspace():
            position -= 1
        return position < 0 or self.text[position] in _BEFORE_STRING

    def _escaped(self, position: int, start: int) -> bool:
        backslashes = position - 1
        while backslashes > start and self.text[backslashes] == "\\":
            backslashes -= 1
        return (position - 1 - backslashes) % 2 == 1


@lru_cache(maxsize=8)
def _bracket_or_quote(bracket: str, closer: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(bracket)}+|{re.escape(closer)}+|[\"'“‘]")


def _commas(text: str, nested: bool) -> tuple[list[int], bool]:
    strings = _Strings(text, len(text), None)
    found: list[int] = []
    depth = position = 0
    while match := _SPLITTERS.search(text, position):
        position = match.end()
        mark = match[0]
        if mark in QUOTES:
            position = strings.end_of(match.start()) or position
        elif mark in ",，":
            if depth == 0:
                found.append(match.start())
        elif nested:
            depth += 1 if mark in "[({" else -1
            if depth < 0:
                return found, False
    return found, depth == 0
