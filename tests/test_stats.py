"""Intervals and p-values against published figures and against their definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from react_text.stats import mcnemar, wilson


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # these four: Newcombe, Statistics in Medicine 17 (1998), method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (8, 10, 0.4902, 0.9433),
        (10, 10, 0.7225, 1.0000),
        (1, 1, 0.2065, 1.0000),
        (0, 0, 0.0000, 1.0000),
    ],
)
def test_the_wilson_interval(passed: int, of: int, low: float, high: float) -> None:
    assert wilson(passed, of) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("passed", "of"), [(n, of) for of in (1, 2, 5, 20, 400) for n in range(0, of + 1, 1 + of // 9)]
)
def test_the_bounds_are_where_the_rate_is_just_plausible(passed: int, of: int) -> None:
    """The definition: the rates that are 1.96 of their own standard errors away from the observed one."""
    low, high = wilson(passed, of)
    assert 0 <= low <= passed / of <= high <= 1
    for bound in (low, high):
        error = math.sqrt(bound * (1 - bound) / of)
        assert abs(passed / of - bound) == pytest.approx(1.959964 * error, abs=1e-5)


@pytest.mark.parametrize(
    ("fixed", "broken", "p"),
    [
        (0, 0, 1),
        (1, 0, 1),
        (3, 0, 0.25),
        (0, 5, 0.0625),
        (5, 5, 1),
        (9, 1, 0.021484),
        (6, 16, 0.052479),
        (10, 25, 0.016674),
    ],
)
def test_the_exact_p_value(fixed: int, broken: int, p: float) -> None:
    assert mcnemar(fixed, broken) == pytest.approx(p, abs=1e-6)
    assert mcnemar(fixed, broken) == mcnemar(broken, fixed)


@pytest.mark.parametrize(("fixed", "broken"), [(f, b) for f in range(8) for b in range(8)])
def test_the_p_value_is_the_share_of_splits_that_are_as_uneven(fixed: int, broken: int) -> None:
    pairs = fixed + broken
    uneven = sum(abs(split.bit_count() * 2 - pairs) >= abs(fixed - broken) for split in range(2**pairs))
    assert mcnemar(fixed, broken) == pytest.approx(float(Fraction(uneven, 2**pairs)))
