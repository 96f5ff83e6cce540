"""Ferries to a few islands. Each public function of such a module is a tool; the model reads its docstring."""

from typing import Annotated

from react_text import Pattern

_DEPARTURES = {"skerry": "06:40, 12:15, 17:50", "holm": "07:10, 19:05"}
_MINUTES = {"skerry": 35, "holm": 80}


def departures(island: str) -> str | dict[str, str]:
    """The times at which ferries leave for an island."""
    return _DEPARTURES.get(island.lower()) or _unknown(island)


def crossing(island: str) -> str | dict[str, str]:
    """How long the ferry to an island takes."""
    minutes = _MINUTES.get(island.lower())
    return f"{minutes} minutes" if minutes else _unknown(island)


def add_minutes(time: Annotated[str, Pattern(r"\d{2}:\d{2}")], minutes: int) -> str:
    """The time (HH:MM) some minutes later."""
    hours, rest = map(int, time.split(":"))
    total = (hours * 60 + rest + minutes) % (24 * 60)
    return f"{total // 60:02}:{total % 60:02}"


def _unknown(island: str) -> dict[str, str]:
    return {"error": f"no ferry goes to {island}; the islands are {', '.join(name.title() for name in _DEPARTURES)}"}
