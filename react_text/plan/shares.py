"""Limits of a whole plan -> what each of its subtasks may use."""

from __future__ import annotations

import time
from typing import Any

from ..settings import Limits
from .state import PlanState


class Shares:
    """What is left of the `limits` of all subtasks together. Of several that are at work, each has its share to itself:
    no step is given away twice."""

    def __init__(self, limits: Limits, state: PlanState) -> None:
        self.limits, self.state = limits, state
        self._taken: dict[str, int] = {}
        self._started = time.monotonic()

    def take(self, name: str, most: int, calls: int | None) -> tuple[str, dict[str, Any]]:
        """The limits of a subtask that on its own may take `most` steps and make so many `calls`; or what is used up,
        in words, and nothing."""
        steps = self.limits.max_steps - self.state.steps - sum(map(self._unused, self._taken))
        if steps <= 0:
            return f"all {self.limits.max_steps} steps are used", {}
        share: dict[str, Any] = {"max_steps": min(most, steps)}
        if self.limits.max_tool_calls is not None:
            left = self.limits.max_tool_calls - self.state.metadata["tool_calls"]
            if left <= 0:
                return f"all {self.limits.max_tool_calls} tool calls are used", {}
            share["max_tool_calls"] = min(calls or left, left)
        if self.over:
            return self.over, {}
        self._taken[name] = share["max_steps"]
        return "", share

    def give_back(self, name: str) -> None:
        """A subtask has ended; what it has not used is for the others."""
        self._taken.pop(name, None)

    @property
    def over(self) -> str:
        """The limit on time or tokens that is reached, in words, or ""."""
        usage, limits = self.state.usage, self.limits
        if limits.max_seconds is not None and time.monotonic() - self._started >= limits.max_seconds:
            return f"all {limits.max_seconds:g} seconds are used"
        if (
            limits.max_tokens is not None
            and (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) >= limits.max_tokens
        ):
            return f"all {limits.max_tokens} tokens are used"
        return ""

    def _unused(self, name: str) -> int:
        """The steps that a subtask at work may still take."""
        return max(0, self._taken[name] - self.state.parts[name].steps)
