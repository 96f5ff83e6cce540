"""Cloud cost figures of one team, in memory: the reference system for a figure that carries a caveat."""

_SPEND = {"2026-07": {"total_usd": 41820, "note": "excludes reserved instances"}}
_RESERVED = {"2026-07": {"reserved_usd": 12400}}
_BUDGET_USD = 50000


def query_spend(month: str) -> dict[str, object]:
    """Cloud compute spend of a month (YYYY-MM) in USD."""
    if month not in _SPEND:
        return {"error": f"no spend data for {month}"}
    return {"month": month, **_SPEND[month]}


def query_reserved(month: str) -> dict[str, object]:
    """Cost of reserved instances in a month (YYYY-MM) in USD."""
    if month not in _RESERVED:
        return {"error": f"no reserved instance data for {month}"}
    return {"month": month, **_RESERVED[month]}


def get_budget(team: str, month: str) -> dict[str, object]:
    """Budget of a team for a month (YYYY-MM) in USD."""
    return {"team": team, "month": month, "budget_usd": _BUDGET_USD}
