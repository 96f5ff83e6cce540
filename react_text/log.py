"""The event log of a run: JSON Lines, each event written out as it happens, so that a killed process loses at most the
step it was in. Volatile facts (times, tokens, durations) belong here and not in a trace."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import IO, Any


class RunLog:
    """Appends events to a file; None logs nothing."""

    def __init__(self, path: str | Path | None) -> None:
        self._started = time.monotonic()
        self._file: IO[str] | None = None
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = Path(path).open("a", encoding="utf-8", newline="\n")

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
        record = {"event": event, "at": at, "elapsed": round(time.monotonic() - self._started, 4), **facts}
        try:
            text = json.dumps(record, ensure_ascii=False, default=str)
            self._file.write(text.encode("utf-8", "replace").decode() + "\n")
            self._file.flush()
        except (OSError, ValueError):
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def default_log(name: str) -> Path:
    """Where the command line logs a run when it is not told: the user's state folder, of which the newest hundred
    logs are kept."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "react-text" / "runs"
    for old in sorted(folder.glob("*.jsonl"), key=lambda p: p.name)[:-99]:
        old.unlink(missing_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}.jsonl"
