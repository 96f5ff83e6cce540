"""Steps of a trace -> a world in which the tools answer as they did then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import Mistake
from .gateway import World, tool_failed
from .tools import Tool
from .trace import TraceStep


def recorded_world(steps: Sequence[TraceStep]) -> World:
    """A world that answers as it did: results as they stand in the observations, failures as failures. None for a step
    that is not recorded."""

    def world(tool: Tool, arguments: Mapping[str, Any], step: int) -> str | None:
        if step > len(steps) or steps[step - 1].observation is None:
            return None
        return given(steps[step - 1].outcome, steps[step - 1].observation or "", tool.name)

    return world


def given(outcome: str, observation: str, tool: str) -> str:
    """What a tool gave, by the outcome and the observation of its step. Raises Mistake when it failed."""
    failure = failed(outcome, tool)
    if failure is not None:
        raise failure
    nothing = outcome.startswith("nothing")
    return "" if outcome == "empty" else outcome.removeprefix("nothing").lstrip(" ") if nothing else observation


def failed(outcome: str, tool: str) -> Mistake | None:
    """The failure of a tool that an outcome records (`raised TYPE: TEXT`, `timeout SECONDS`), or None."""
    how, _, what = outcome.partition(" ")
    if how == "raised":
        kind, _, text = what.partition(": ")
        return tool_failed("tool_raised", tool, type=kind, text=text)
    return tool_failed("tool_timeout", tool, seconds=what) if how == "timeout" else None
