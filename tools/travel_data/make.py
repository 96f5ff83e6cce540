"""Writes travel.sqlite, the offers that tools/travel.py searches: `python tools/travel_data/make.py`.

All of it is made up, and the same every time. A few offers are set by hand, so that a trip of two from San Francisco to
Kyoto adds up: 850 USD a seat leaves 1,300 of 3,000, and 200 USD a night for five nights would leave 300.
"""

from __future__ import annotations

import datetime
import random
import sqlite3
import sys
from pathlib import Path

AIRPORTS = [
    ("SFO", "San Francisco", "United States"), ("LAX", "Los Angeles", "United States"),
    ("JFK", "New York", "United States"), ("LIS", "Lisbon", "Portugal"), ("KEF", "Reykjavik", "Iceland"),
    ("KIX", "Osaka", "Japan"), ("HND", "Tokyo", "Japan"), ("CTS", "Sapporo", "Japan"),
]  # fmt: skip
AIRLINES = ["Gull Air", "Northern Arc", "Pacific Crane", "Meridian", "Blue Petrel"]
CITIES = ["Kyoto", "Osaka", "Tokyo", "Sapporo", "Lisbon", "Reykjavik"]
HOUSES = ["Lantern", "Maple", "Harbour", "Cedar", "Station", "Garden", "Riverside", "Old Post", "Weaver", "Stone Gate"]
KINDS = ["Inn", "House", "Hotel", "Guesthouse"]
AREAS = ["centre", "station", "riverside", "old town", "hillside"]
ACTIVITIES = {
    "hiking": [
        ("Ridge walk with a guide", 6, 45),
        ("Forest trail to the waterfall", 4, 0),
        ("Summit at sunrise", 8, 70),
    ],
    "street food": [("Market tasting walk", 3, 38), ("Evening stalls tour", 3, 42), ("Noodle alley lunch", 2, 18)],
    "temples": [
        ("Hillside temple and garden", 2, 8),
        ("Three shrines by bicycle", 5, 30),
        ("Morning meditation", 2, 15),
    ],
    "museums": [("Craft museum", 2, 12), ("Maritime museum", 3, 14), ("Museum of paper", 2, 9)],
    "music": [("Drum workshop", 2, 35), ("Concert in the old hall", 2, 55)],
}
SCHEMA = """
create table airports (code text primary key, city text, country text);
create table flights (id text primary key, origin text, destination text, depart text, back text, airline text,
                      stops integer, price_usd integer);
create table hotels (id text primary key, city text, name text, area text, price_usd integer, guests integer,
                     rating real);
create table activities (id text primary key, city text, interest text, name text, hours integer, price_usd integer);
"""
# Set by hand; what is generated stays away from these places and days.
FLIGHTS = [
    ("F101", "SFO", "KIX", "2026-10-12", "2026-10-17", "Pacific Crane", 0, 850),
    ("F102", "SFO", "KIX", "2026-10-12", "2026-10-17", "Meridian", 1, 910),
    ("F103", "SFO", "KIX", "2026-10-12", "2026-10-17", "Northern Arc", 0, 1120),
]
HOTELS = [
    ("H201", "Kyoto", "Cedar Gate House", "old town", 200, 2, 4.6),
    ("H202", "Kyoto", "Riverside Lantern Inn", "riverside", 145, 2, 4.1),
    ("H203", "Kyoto", "Maple Court Hotel", "station", 260, 3, 4.7),
]


def make(path: Path) -> None:
    """Write the database anew."""
    path.unlink(missing_ok=True)
    chance = random.Random(2026)
    with sqlite3.connect(path) as database:
        database.executescript(SCHEMA)
        database.executemany("insert into airports values (?, ?, ?)", AIRPORTS)
        database.executemany(
            "insert into flights values (?, ?, ?, ?, ?, ?, ?, ?)", [*FLIGHTS, *_usual(chance), *_flights(chance)]
        )
        database.executemany("insert into hotels values (?, ?, ?, ?, ?, ?, ?)", [*HOTELS, *_hotels(chance)])
        database.executemany("insert into activities values (?, ?, ?, ?, ?, ?)", _activities(chance))
    database.close()


def _flights(chance: random.Random) -> list[tuple[object, ...]]:
    """Return flights of three to ten days in October and November 2026."""
    rows: list[tuple[object, ...]] = []
    for number in range(200):
        origin, destination = chance.sample([code for code, _, _ in AIRPORTS], 2)
        depart = datetime.date(2026, 10, 1) + datetime.timedelta(days=chance.randrange(55))
        back = depart + datetime.timedelta(days=chance.randrange(3, 11))
        row = (origin, destination, str(depart), str(back))
        if row != FLIGHTS[0][1:5]:
            rows.append(
                (f"F{300 + number}", *row, chance.choice(AIRLINES), chance.randrange(3), chance.randrange(18, 95) * 20)
            )
    return rows


def _usual(chance: random.Random) -> list[tuple[object, ...]]:
    """Offers on well-travelled ways, for every third day of October and two lengths of stay."""
    rows: list[tuple[object, ...]] = []
    for origin, destination in [("SFO", "KIX"), ("SFO", "HND"), ("JFK", "LIS"), ("LAX", "KEF")]:
        for day in range(0, 30, 3):
            for nights in (3, 5):
                depart = datetime.date(2026, 10, 1) + datetime.timedelta(days=day)
                row = (origin, destination, str(depart), str(depart + datetime.timedelta(days=nights)))
                price = chance.randrange(45, 75) * 20
                rows.append((f"F{600 + len(rows)}", *row, chance.choice(AIRLINES), chance.randrange(2), price))
    return rows


def _hotels(chance: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for city in CITIES[1:]:
        for house in HOUSES:
            name, area = f"{house} {chance.choice(KINDS)}", chance.choice(AREAS)
            price, guests, rating = (
                chance.randrange(14, 80) * 5,
                chance.choice([2, 2, 3, 4]),
                chance.randrange(30, 50) / 10,
            )
            rows.append((f"H{300 + len(rows)}", city, name, area, price, guests, rating))
    return rows


def _activities(chance: random.Random) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for city in CITIES:
        for interest, offers in ACTIVITIES.items():
            for name, hours, price in offers:
                if city == "Kyoto" or chance.random() < 0.8:
                    rows.append((f"A{400 + len(rows)}", city, interest, name, hours, price))
    return rows


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "travel.sqlite")
