"""What a tool returned -> the text of its observation, verbatim."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

_MOST_ITEMS = 10_000
_NOTHING = ("[]", "{}", "()", "set()", "None", "null")
_MOST_NOTHING = 1000  # characters; what is longer says something
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{6,}")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Strict servers refuse NUL and its neighbours with a 400. Tab, newline and CR are text; ESC begins terminal escapes,
# which stay as they are in the text.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


def settled(value: Any) -> Any:
    """The value behind an awaitable, which may give another one, and the items of an iterator of either kind;
    everything else as it is."""
    if isinstance(value, AsyncIterator):
        value = _gathered(value)
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    return list(islice(value, _MOST_ITEMS)) if isinstance(value, Iterator) else value


def text_of(value: Any) -> str:
    """A `str` as it is, bytes as UTF-8, None as "", anything else through `str()`.

    The text is the same in every process: sets are sorted and memory addresses left out. What cannot be sent (lone
    surrogates, control characters such as NUL, bytes that are no UTF-8) becomes U+FFFD here, as in a model's turn where
    it comes in, so that transcript, trace and request hold the same text.
    """
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray, memoryview)):
        text = bytes(value).decode("utf-8", "replace")
    elif isinstance(value, str):
        text = str(value)
    else:
        text = _ADDRESS.sub("", _stable(value))
    return sendable(text)


def sendable(text: str) -> str:
    """`text` with U+FFFD for every character that a server could not be sent."""
    return _CONTROL.sub("\ufffd", without_surrogates(text))


def is_nothing(text: str) -> bool:
    """Whether a tool's result says that nothing was found: no text, an empty list or object, or one that holds only
    empty lists and zeros."""
    text = text.strip()
    if not text or text in _NOTHING:
        return True
    if text[0] not in "[{(" or len(text) > _MOST_NOTHING:
        return False
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    if not isinstance(value, dict):
        return not value
    lists = [each for each in value.values() if isinstance(each, (list, tuple, dict))]
    return not any(lists) and (bool(lists) or value.get("count") == 0 or value.get("total") == 0)


def without_surrogates(text: str) -> str:
    """`text` with U+FFFD for lone surrogates, which no UTF-8 file or request can hold; a pair of them becomes the
    character that it stands for. What an author wrote is otherwise left alone."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _stable(value: Any, depth: int = 0) -> str:
    """`str(value)` with the members of sets in a fixed order."""
    kind = type(value)
    if depth > 100 or kind not in (dict, list, tuple, set, frozenset) or not value:
        return str(value) if depth == 0 else repr(value)
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {_stable(item, depth + 1)}" for key, item in value.items()) + "}"
    parts = [_stable(item, depth + 1) for item in value]
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind is tuple:
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    members = "{" + ", ".join(sorted(parts)) + "}"
    return members if kind is set else f"frozenset({members})"


async def _gathered(values: AsyncIterator[Any]) -> list[Any]:
    items: list[Any] = []
    async for value in values:
        items.append(value)
        if len(items) == _MOST_ITEMS:
            break
    return items


async def _awaited(value: Any) -> Any:
    while inspect.isawaitable(value):
        value = await value
    return value
