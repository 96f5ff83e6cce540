"""Books and members of a small library, for measuring how well models use tools."""

_BOOKS: dict[str, dict[str, object]] = {
    "Tidal Charts": {"id": "L204", "author": "M. Orrin", "copies": 3},
    "Knots and Splices": {"id": "L077", "author": "I. Vance", "copies": 1},
    "Salt Roads": {"id": "L310", "author": "T. Amsel", "copies": 5},
    "The Lamp Keeper": {"id": "L145", "author": "R. Holm", "copies": 2, "note": "reading room only, not for loan"},
    "Winter Harbour": {"id": "L269", "author": "P. Quist", "copies": 4},
}
_SHELVES = {
    "L204": {"floor": 2, "shelf": "D7"},
    "L077": {"floor": 1, "shelf": "A2"},
    "L310": {"floor": 3, "shelf": "F1"},
    "L145": {"floor": 1, "shelf": "B5"},
    "L269": {"floor": 2, "shelf": "C3"},
}
_MEMBERS = {
    118: {"loans": ["L204", "L077"], "overdue": {"L077": 6}},
    231: {"loans": ["L310"], "overdue": {}},
    305: {"loans": ["L269"], "overdue": {"L269": 2}},
}
_CENTS_PER_DAY = 30


def find_book(title: str) -> dict[str, object]:
    """Id, author and number of copies of a book."""
    return {"title": title, **_BOOKS[title]} if title in _BOOKS else {"error": f"no book called {title}"}


def shelf_of(book_id: str) -> dict[str, object]:
    """Floor and shelf of a book, by its id such as L001."""
    return {"id": book_id, **_SHELVES[book_id]} if book_id in _SHELVES else {"error": f"no book with id {book_id}"}


def member_loans(number: int) -> dict[str, object]:
    """Ids of the books a member has, and the days by which some are overdue."""
    return {"member": number, **_MEMBERS[number]} if number in _MEMBERS else {"error": f"no member {number}"}


def overdue_fee(days: int) -> dict[str, object]:
    """The fee for a book that is overdue by a number of days."""
    return {"days": days, "fee": f"{days * _CENTS_PER_DAY / 100:.2f}"}
