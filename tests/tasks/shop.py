"""Prices, stock and discounts of a ship chandler, for measuring how well models use tools."""

_PRICES = {
    "lantern": (18.5, "piece"),
    "rope": (2.4, "metre"),
    "compass": (41, "piece"),
    "anchor": (129, "piece"),
    "chart": (9.9, "piece"),
    "buoy": (35, "piece"),
    "whistle": (4.5, "piece"),
}
_STOCK: dict[str, dict[str, object]] = {
    "lantern": {"in_stock": 12},
    "rope": {"in_stock": 300},
    "compass": {"in_stock": 4},
    "anchor": {"in_stock": 0, "note": "next delivery on 12 May"},
    "chart": {"in_stock": 55},
    "buoy": {"in_stock": 7},
    "whistle": {"in_stock": 90},
}
_DISCOUNTS = {"Ines": 10, "Tomas": 0, "Harbour School": 25, "Rowing Club": 20}


def price_of(item: str) -> dict[str, object]:
    """Price of an item, and for how much of it."""
    if item not in _PRICES:
        return {"error": f"{item} is not sold here"}
    price, unit = _PRICES[item]
    return {"item": item, "price": price, "per": unit}


def stock_of(item: str) -> dict[str, object]:
    """How much of an item is in stock."""
    return {"item": item, **_STOCK[item]} if item in _STOCK else {"error": f"{item} is not sold here"}


def discount_of(customer: str) -> dict[str, object]:
    """Discount of a customer in percent."""
    return {"customer": customer, "percent": _DISCOUNTS[customer]} if customer in _DISCOUNTS else {"error": "unknown"}
