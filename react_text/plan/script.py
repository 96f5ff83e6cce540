"""A recorded plan -> the model half of its stages, and what its tools answered."""

from __future__ import annotations

from pathlib import Path

from ..gateway import World
from ..models.scripted import ScriptedModel
from ..recorded import recorded_world
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

    def stage(self, key: str) -> ScriptedModel:
        """The model of one stage; one without turns where the plan has none."""
        trace = self.state.traces.get(key)
        return ScriptedModel.from_trace(trace) if trace else ScriptedModel([], self.name)

    def world(self, key: str) -> World | None:
        """The tools of one stage, as they answered then."""
        trace = self.state.traces.get(key)
        return recorded_world(trace.steps) if trace else None
