"""Tests of the tools; the traces are tests as well, and pytest collects them by itself."""

from pathlib import Path

from react_text import load_tools

TOOLS = load_tools(Path(__file__).parents[1] / "tools" / "ferries.py")


def test_an_unknown_island_is_answered_with_the_known_ones() -> None:
    assert TOOLS["departures"].function("Atlantis") == {
        "error": "no ferry goes to Atlantis; the islands are Skerry, Holm"
    }


def test_minutes_go_past_midnight() -> None:
    assert TOOLS["add_minutes"].function("23:50", 15) == "00:05"
