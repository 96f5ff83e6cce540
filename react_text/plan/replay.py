"""A recorded plan as a golden: the same turns, and what they lead to today."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from ..errors import AuthorError
from .run import Planner
from .script import PlanScript
from .state import PlanState


@dataclass(frozen=True)
class PlanOutcome:
    """What a replay came to: the file, and its text as it would be written today."""

    path: Path
    expected: str
    actual: str

    @property
    def ok(self) -> bool:
        return self.expected == self.actual

    @property
    def diff(self) -> list[str]:
        """The lines in which the two differ, as a unified diff."""
        before, now = self.expected.splitlines(), self.actual.splitlines()
        return list(difflib.unified_diff(before, now, str(self.path), f"{self.path}.new", lineterm=""))


def replay(path: Path, *, tools: bool = False) -> PlanOutcome:
    """Play a `.plan` file. The tools answer from the file, unless `tools` wants the real ones. Raises AuthorError."""
    recorded = PlanState.load(path)
    script = PlanScript(recorded, f"scripted:{path.name}")
    planner = Planner(_prompt_of(recorded, path), script, interpret=recorded.interpret)
    return PlanOutcome(path, path.read_text(encoding="utf-8"), planner.run(recorded.request, recorded=not tools).dump())


def _prompt_of(state: PlanState, path: Path) -> Path:
    if not state.prompt:
        raise AuthorError("this plan names no prompt", path=path)
    found = next((p / state.prompt for p in path.resolve().parents if (p / state.prompt).is_file()), None)
    if found is None:
        raise AuthorError(f"prompt {state.prompt!r} is not found in a folder above", path=path)
    return found
