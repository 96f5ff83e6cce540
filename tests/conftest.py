"""Settings that all tests share."""

from __future__ import annotations

import os
import signal
import threading

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


# A job in the background, or one under nohup, starts with these signals ignored, and its child processes would ignore
# them too: the tests that send them would wait for ever.
if threading.current_thread() is threading.main_thread():
    for ignored, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(ignored) is signal.SIG_IGN:
            signal.signal(ignored, handler)
