"""A recorded plan -> the model half of its stages, and what its tools answered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..gateway import World
from ..models.scripted import ScriptedModel
from ..recorded import recorded_world
from ..tools import Tool
from .state import PlanState


class PlanScript:
    """Plays the turns of a recorded plan, stage by stage. `name` is what logs call it."""

    def __init__(self, state: PlanState, name: str = "scripted plan") -> None:
        self.state = state
        self.name = name

    @classmethod
    def load(cls, path: Path) -> PlanScript:
        """Raises AuthorError."""
        return cls(PlanState.load(path), f"scripted:{path.name}")

    def stage(self, key: str, first: int = 1) -> ScriptedModel:
        """The model of one stage, from step `first` on; one without turns where the plan has none."""
        trace = self.state.traces.get(key)
        return ScriptedModel.from_trace(trace, first) if trace else ScriptedModel([], self.name)

    def world(self, key: str) -> World | None:
        """The tools of one stage, as they answered then."""
        trace = self.state.traces.get(key)
        return recorded_world(trace.steps) if trace else None

    def timeouts(self, key: str) -> World | None:
        """The same for calls that timed out, which nothing can repeat; other tools are to be run."""
        trace = self.state.traces.get(key)
        slow = {step for step, outcome in trace.outcomes.items() if outcome.startswith("timeout")} if trace else set()
        if trace is None or not slow:
            return None
        recorded = recorded_world(trace.steps)

        def world(tool: Tool, arguments: Mapping[str, Any], step: int) -> str | None:
            return recorded(tool, arguments, step) if step in slow else None

        return world
