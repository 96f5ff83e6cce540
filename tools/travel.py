"""Flights, hotels and activities from a small database of offers: the reference system for plans."""

import datetime
import sqlite3
from pathlib import Path
from typing import Annotated, Any

from react_text import Pattern, Range, tool

_DATABASE = Path(__file__).parent / "travel_data" / "travel.sqlite"
_MOST = 5  # offers shown by one search, the cheapest first

Airport = Annotated[str, Pattern(r"[A-Z]{3}", "an airport code of three capital letters")]
People = Annotated[int, Range(1, 9)]


@tool(pure=True)
def search_flights(
    origin: Airport,
    destination: Airport,
    depart: datetime.date,
    back: datetime.date,
    passengers: People = 1,
    max_price: float | None = None,
) -> str:
    """Return flights on these days, cheapest first; max_price is for one seat."""
    for code in (origin, destination):
        _check_airport(code)
    rows = _rows(
        "select id, airline, stops, depart, back, price_usd from flights where origin = ? and destination = ?"
        " and depart = ? and back = ? and price_usd <= ? order by price_usd limit ?",
        origin, destination, str(depart), str(back), max_price or 1e9, _MOST,
    )  # fmt: skip
    return _lines({**row, "total_usd": row["price_usd"] * passengers} for row in rows)


@tool(pure=True)
def search_hotels(
    city: str,
    check_in: datetime.date,
    check_out: datetime.date,
    guests: People = 2,
    max_price: float | None = None,
) -> str:
    """Hotels with a room for these guests, cheapest first; max_price is for one night."""
    nights = (check_out - check_in).days
    if nights < 1:
        raise ValueError(f"check_out {check_out} is not after check_in {check_in}")
    rows = _rows(
        "select id, name, area, rating, price_usd from hotels where city = ? collate nocase and guests >= ?"
        " and price_usd <= ? order by price_usd limit ?",
        city, guests, max_price or 1e9, _MOST,
    )  # fmt: skip
    return _lines({**row, "nights": nights, "total_usd": row["price_usd"] * nights} for row in rows)


@tool(pure=True)
def search_activities(city: str, interests: list[str], people: People = 1) -> str:
    """Things to do in a city, for one or more of: hiking, street food, temples, museums, music."""
    marks = ", ".join("?" * len(interests))
    rows = _rows(
        f"select id, interest, name, hours, price_usd from activities where city = ? collate nocase"
        f" and interest in ({marks}) order by interest, price_usd limit ?",
        city, *(each.strip().lower() for each in interests), 3 * _MOST,
    )  # fmt: skip
    return _lines({**row, "total_usd": row["price_usd"] * people} for row in rows)


@tool(pure=True)
def get_budget_breakdown(
    budget_usd: float, days: Annotated[int, Range(1, 60)], costs_usd: list[float]
) -> dict[str, float]:
    """What the parts of a trip cost together, what is left of the budget, and how much that is for each day."""
    spent = sum(costs_usd)
    left = budget_usd - spent
    return {"budget_usd": budget_usd, "spent_usd": spent, "left_usd": left, "left_per_day_usd": round(left / days, 2)}


def _check_airport(code: str) -> None:
    known = {row["code"]: row["city"] for row in _rows("select code, city from airports")}
    if code not in known:
        listed = ", ".join(f"{each} ({city})" for each, city in known.items())
        raise ValueError(f"there is no airport {code}. Known are {listed}")


def _rows(query: str, *values: object) -> list[dict[str, Any]]:
    # A connection for each search: tools run in threads, and a connection belongs to the one that has made it.
    database = sqlite3.connect(f"file:{_DATABASE}?mode=ro", uri=True)
    try:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query, values)]
    finally:
        database.close()


def _lines(rows: Any) -> str:
    """One offer a line; an empty list when there are none."""
    return "\n".join(map(str, rows)) or "[]"
