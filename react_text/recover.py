"""Event log -> the traces of its runs: of a run that was killed, all steps that it had completed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import AuthorError
from .frontmatter import read_bytes
from .labels import Labels
from .result import Step, trace_of
from .trace import Trace

_FACTS = ("prompt", "prompt_hash", "inputs", "settings", "tools", "options")


@dataclass
class LoggedRun:
    """What a log says about one run. `end` is None when the process died before the run was over."""

    start: Mapping[str, Any]
    steps: list[Mapping[str, Any]] = field(default_factory=list)
    end: Mapping[str, Any] | None = None
    path: str | Path | None = None

    @property
    def stop_reason(self) -> str:
        """How the run ended; a killed one was interrupted, unless its last step was its last anyway."""
        last = self.end or (self.steps[-1] if self.steps else {})
        return str(last.get("stop_reason") or "interrupted")

    @property
    def trace(self) -> Trace:
        """The run as a trace, the same as if it had been stopped after its last logged step. Raises AuthorError."""
        try:
            return self._trace()
        except (KeyError, TypeError, AttributeError) as error:
            message = f"this is not a log of react-text: {type(error).__name__} {error}"
            raise AuthorError(message, path=self.path) from None

    def _trace(self) -> Trace:
        steps = [
            Step(
                number=step["step"],
                text=step["text"],
                thought=step["thought"],
                tool=step["tool"],
                arguments=step["args"],
                observation=step["observation"],
                error=step["error"],
                outcome=step["outcome"],
                completion=step["completion"],
                finish=step["finish"],
                lossy=step["lossy"],
            )
            for step in self.steps
        ]
        facts = {key: self.start[key] for key in _FACTS}
        answer = next((step["answer"] for step in self.steps if "answer" in step), None)
        return trace_of(self.start["task"], steps, Labels(**self.start["labels"]), facts, answer, self.stop_reason)


@dataclass
class Log:
    """The runs of a log in the order in which they began, and remarks for people about what could not be read."""

    runs: list[LoggedRun] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Log:
        """Read a log. Lines that are not complete are left out with a notice. Raises AuthorError."""
        log = cls()
        running: dict[str, LoggedRun] = {}
        for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
            try:
                event = json.loads(line)
                kind, run = event["event"], event["run"]
            except (ValueError, TypeError, KeyError, RecursionError):
                if line:
                    log.notices.append(f"{path}:{number}: not a complete event, left out")
                continue
            if kind == "start":
                running[run] = LoggedRun(event, path=path)
                log.runs.append(running[run])
            elif run not in running:
                log.notices.append(f"{path}:{number}: its run has no readable beginning, left out")
            elif kind == "end":
                running[run].end = event
            elif event.get("step") == len(running[run].steps) + 1:
                running[run].steps.append(event)
            else:
                log.notices.append(f"{path}:{number}: an earlier step of its run is missing, left out")
        if not log.runs:
            raise AuthorError("this log holds no run", path=path)
        return log


def recover(path: str | Path, run: int | None = None) -> tuple[Trace, list[str]]:
    """The trace of a logged run (from 1; the last one when None), and notices. Raises AuthorError."""
    log = Log.load(path)
    if run is not None and not 1 <= run <= len(log.runs):
        raise AuthorError(f"there is no run {run}: this log holds {len(log.runs)}", path=path)
    return log.runs[-1 if run is None else run - 1].trace, log.notices
