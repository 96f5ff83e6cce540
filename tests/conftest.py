"""Settings that all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# The suite runs the same examples every time; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, max_examples=150, suppress_health_check=list(HealthCheck)
)
settings.register_profile("search", settings.get_profile("suite"), derandomize=False, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture(autouse=True)
def no_model_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REACT_TEXT_MODEL", raising=False)
