"""A small library, for the examples of lint rules."""

from react_text import tool

_BOOKS = {"Salt Roads": 310, "Tidal Charts": 204}


def book(title: str) -> dict[str, object]:
    """The number of a book."""
    return {"title": title, "number": _BOOKS[title]} if title in _BOOKS else {"error": f"no book called {title}"}


def shelf(number: int) -> dict[str, object]:
    """The shelf of a book, by its number."""
    return {"number": number, "shelf": "F1"}


@tool(pure=True)
def total(expression: str) -> str:
    """Work out a sum."""
    return str(sum(map(int, expression.split("+"))))
