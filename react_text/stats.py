"""Counts -> what they are worth: an interval for a pass rate, a p-value for two paired ones."""

from __future__ import annotations

import math

_Z = 1.959963984540054  # the standard normal quantile of 97.5 percent


def wilson(passed: int, of: int) -> tuple[float, float]:
    """The 95 percent Wilson interval of a rate, which also holds for few runs and for rates near 0 and 1."""
    if of == 0:
        return 0.0, 1.0
    rate, z2 = passed / of, _Z * _Z
    centre = (rate + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * math.sqrt(rate * (1 - rate) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return round(max(0.0, centre - half), 12), round(min(1.0, centre + half), 12)


def mcnemar(fixed: int, broken: int) -> float:
    """The exact two-sided p-value of McNemar's test: how likely so uneven a split of the pairs that changed is when a
    change either way is as likely."""
    changed = fixed + broken
    tail = sum(math.comb(changed, k) for k in range(min(fixed, broken) + 1))
    return min(1.0, 2 * tail / (1 << changed))
