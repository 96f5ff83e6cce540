"""The event log of a run: JSON Lines, each event written out as it happens, so that a killed process loses at most the
step it was in. Volatile facts (times, tokens, durations) belong here and not in a trace.

A file may hold the events of several runs, also of runs at the same time: `run` tells them apart.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

_NUMBERS = itertools.count(1)


class RunLog:
    """Appends events to a file; None logs nothing."""

    def __init__(self, path: str | Path | None) -> None:
        self._started = time.monotonic()
        self._file: io.FileIO | None = None
        if path is not None:
            self._run = f"{os.getpid()}-{next(_NUMBERS)}"
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: an event is one write, and those of other processes stand before or behind it.
            self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - open as long as the run
            if _ends_in_half_a_line(Path(path)):
                self._file.write(b"\n")

    @property
    def active(self) -> bool:
        """Whether events go anywhere."""
        return self._file is not None

    def write(self, event: str, **facts: Any) -> None:
        """One event. `at` is UTC, `elapsed` seconds since the run began. What JSON cannot hold is written as text, and
        a log that cannot be written never ends a run."""
        if self._file is None:
            return
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        elapsed = round(time.monotonic() - self._started, 4)
        record = {"event": event, "run": self._run, "at": at, "elapsed": elapsed, **facts}
        try:
            text = json.dumps(record, ensure_ascii=False, default=str)
            # A lone surrogate has no UTF-8, but the same escape in Python and in JSON.
            self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        except (OSError, ValueError):
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _ends_in_half_a_line(path: Path) -> bool:
    """Whether the process that wrote to the file before was killed in the middle of an event."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def default_log(name: str, suffix: str = ".jsonl") -> Path:
    """Where the command line logs a run when it is not told: the user's state folder, of which the newest hundred
    logs are kept."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "react-text" / "runs"
    for old in sorted(folder.glob(f"*{suffix}"), key=lambda p: p.name)[:-99]:
        old.unlink(missing_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}{suffix}"
