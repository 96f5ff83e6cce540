"""What a tool did instead of giving a result <-> its outcome in a trace; and a world in which the tools do it again."""

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


def outcome_of(mistake: Mistake) -> str:
    """What a tool did instead of giving a result that could be used; "" for mistakes of the model."""
    fields = mistake.fields
    if mistake.message == "tool_raised":
        return f"raised {fields['type']}: {fields['text']}"
    if mistake.message == "empty_result":
        return f"nothing {fields['result']}"
    return f"timeout {fields['seconds']}" if mistake.message == "tool_timeout" else ""


def given(outcome: str, observation: str, tool: str) -> str:
    """What a tool gave, by the outcome and the observation of its step. Raises Mistake when it failed."""
    how, _, what = outcome.partition(" ")
    if how == "raised":
        kind, _, text = what.partition(": ")
        raise tool_failed("tool_raised", tool, type=kind, text=text)
    if how == "timeout":
        raise tool_failed("tool_timeout", tool, seconds=what)
    return {"empty": "", "nothing": what.lstrip(" ")}.get(how, observation)
