"""A small library of sources on one town's ferries: the second system for plans, without engine code of its own."""

import re

from react_text import tool

_SOURCES = {
    "S1": ("Ferry statistics of Vikhamn", 2024, "The two ferries of Vikhamn make 38 crossings a day, each of 4.2 km. "
           "Together they burn 610,000 litres of diesel a year. Note: the figures leave out the reserve ferry."),
    "S2": ("Battery ferries in the north, a survey", 2025, "In 11 of 14 towns surveyed, a battery ferry cost less to "
           "run than the diesel ferry that it replaced. The saving was 55 percent of the energy cost on average."),
    "S3": ("Offer of the Solvik yard", 2026, "Conversion of one ferry to batteries: 7.4 million. A charging tower for "
           "each quay: 1.9 million. Delivery 14 months after the order."),
    "S4": ("Grid report for Vikhamn quay", 2025, "The quay has 1.2 MW to spare. Two charging towers need 2.6 MW at the "
           "same time, or 1.3 MW when the ferries charge in turn. An extension of the grid takes 3 years."),
    "S5": ("Letter of the crossing's users", 2025, "Users fear cancelled crossings in winter: in 2 of the 14 towns of "
           "the survey the batteries lost a fifth of their range below minus 15 degrees."),
    "S6": ("Budget of the town, ferries", 2026, "Diesel for the two ferries costs 1.1 million a year. The town has set "
           "aside 9 million for a first conversion."),
}  # fmt: skip


@tool(pure=True)
def search_sources(query: str) -> str:
    """The sources that share most words with a query, one a line; read_source gives their text."""
    words = _words(query)
    shared = {name: len(words & _words(f"{title} {text}")) for name, (title, _, text) in _SOURCES.items()}
    best = sorted((name for name in shared if shared[name]), key=lambda name: -shared[name])[:3]
    lines = [{"id": name, "title": _SOURCES[name][0], "year": _SOURCES[name][1]} for name in best]
    return "\n".join(map(str, lines)) or "[]"


@tool(pure=True)
def read_source(id: str) -> str:
    """The text of one source."""
    if id not in _SOURCES:
        raise ValueError(f"there is no source {id}. There are {', '.join(_SOURCES)}")
    _, year, text = _SOURCES[id]
    return f"{id} ({year}): {text}"


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower())} - {"the", "and", "for", "what", "how"}
