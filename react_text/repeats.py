"""Arguments of a call -> a hash by which a repeat of the call, or a near repeat, is known."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from .settings import Repeats


def stable_hash(arguments: Mapping[str, Any], repeats: Repeats | None = None) -> str:
    """A short SHA-256 of a call's arguments in which the order of keys does not matter. With soft `repeats`, near
    repeats have the same hash."""
    values: Any = dict(arguments)
    if repeats and repeats.mode == "soft":
        values = _softened(values, repeats.round)
    text = json.dumps(values, sort_keys=True, default=_hashable)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _softened(value: Any, nearest: float | None) -> Any:
    if isinstance(value, str):
        text = " ".join(value.split()).casefold()
        if nearest and re.fullmatch(r"[+-]?\d{1,15}(?:\.\d{1,15})?", text):
            return _softened(float(text), nearest)
        return text
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return round(value / nearest) if nearest else float(value)
        except (OverflowError, ValueError):  # infinity, NaN, and what is too large for a float
            return repr(value)
    if isinstance(value, dict):
        return {key: _softened(item, nearest) for key, item in value.items()}
    return [_softened(item, nearest) for item in value] if isinstance(value, (list, tuple, set)) else value


def _hashable(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else repr(value)
