"""Ships and berths of a small harbour, for measuring how well models use tools."""

_SHIPS = {
    "Kestrel": {"berth": "B4", "length_m": 62, "flag": "NO"},
    "Plover": {"berth": "A1", "length_m": 38, "flag": "DK"},
    "Heron": {"berth": "C2", "length_m": 104, "flag": "SE"},
    "Dunlin": {"berth": "A3", "length_m": 27, "flag": "NO"},
    "Curlew": {"berth": "C1", "length_m": 88, "flag": "DE"},
    "Avocet": {"berth": "B1", "length_m": 45, "flag": "PL"},
}
_BERTHS: dict[str, dict[str, object]] = {
    "A1": {"depth_m": 4.2, "fee_per_day": 60},
    "A3": {"depth_m": 3.9, "fee_per_day": 55},
    "B1": {"depth_m": 6.8, "fee_per_day": 120},
    "B4": {"depth_m": 7.5, "fee_per_day": 140},
    "C1": {"depth_m": 9.0, "fee_per_day": 210, "note": "closed for repairs until May"},
    "C2": {"depth_m": 11.5, "fee_per_day": 260},
}


def find_ship(name: str) -> dict[str, object]:
    """Berth, length and flag of a ship."""
    return {"ship": name, **_SHIPS[name]} if name in _SHIPS else {"error": f"no ship called {name}"}


def berth_info(berth: str) -> dict[str, object]:
    """Depth and fee of a berth such as A1."""
    return {"berth": berth, **_BERTHS[berth]} if berth in _BERTHS else {"error": f"no berth called {berth}"}
