"""A stage of a plan -> a run of the loop: with its prompt, from where it was cut short, kept after each step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..agent import Agent
from ..ask import Show
from ..errors import SERVER_FAILED, ServerError
from ..gateway import Calls, World
from ..loop import Run
from ..models.base import Model
from ..prompt import Prompt
from ..result import Interrupted, Result, Step
from .script import PlanScript
from .state import PlanState


@dataclass(frozen=True)
class Outside:
    """What a plan has to do with the world around it.

    past      the state of a plan to go on with
    worlds    gives, for the key of a stage, what answers in place of its tools
    save      is given the state after each step
    log       a file for JSON Lines events
    on_stage  gets each run of the loop as it begins, by the key of its stage
    on_step   gets its steps
    on_text   gets the model's text as it is written
    """

    past: PlanState | None = None
    worlds: Callable[[str], World | None] | None = None
    save: Callable[[PlanState], None] | None = None
    log: Path | None = None
    on_stage: Callable[[str, Run], None] | None = None
    on_step: Callable[[str, Step], None] | None = None
    on_text: Show | None = None


class Stages:
    """Runs the stages of one plan. Several may run at the same time; `halted` stops all of them after their step."""

    def __init__(
        self, state: PlanState, model: Model | PlanScript, settings: Mapping[str, Any], outside: Outside
    ) -> None:
        self.state, self.model, self.settings, self.outside = state, model, settings, outside
        self.lock = threading.RLock()
        self.halted = False

    def run(
        self,
        key: str,
        prompt: Prompt,
        question: str,
        variables: Mapping[str, Any],
        *,
        tools: Any = None,
        each: Callable[[Run, Step], bool] | None = None,
        calls: Calls | None = None,
        **settings: Any,
    ) -> Result:
        """One stage. The prompt is given the goal and those of the `variables` that it uses; `each` gets every step and
        says whether the stage is to stop there. Raises ServerError when the model server gives up."""
        outside = self.outside
        past = outside.past.traces[key].steps if outside.past and key in outside.past.traces else []
        offered = {"goal": self.state.goal, **variables}
        run = Agent(prompt, tools, self._model(key, len(past) + 1), **{**self.settings, **settings}).steps(
            question,
            variables={name: value for name, value in offered.items() if name in prompt.names},
            on_text=outside.on_text,
            log=outside.log,
            world=outside.worlds(key) if outside.worlds else None,
            past=past,
            calls=calls,
            name=key.partition(" ")[2],
        )
        with self.lock:
            if outside.on_stage:
                outside.on_stage(key, run)
        try:
            for step in run:
                over = each is not None and each(run, step)
                self._keep(key, run, step)
                if over or self.halted:
                    iter(run).close()
        except Interrupted:
            self.state.traces[key] = run.trace
            raise
        return self._ended(key, run.result)

    def save(self) -> None:
        """Hand the state on, to be kept."""
        if self.outside.save:
            with self.lock:
                self.outside.save(self.state)

    def _model(self, key: str, first: int) -> Model:
        return self.model.stage(key, first) if isinstance(self.model, PlanScript) else self.model

    def _keep(self, key: str, run: Run, step: Step) -> None:
        with self.lock:
            self.state.traces[key] = run.trace
            if self.outside.on_step:
                self.outside.on_step(key, step)
            self.save()

    def _ended(self, key: str, result: Result) -> Result:
        with self.lock:
            self.state.usage += result.usage
            for warning in result.warnings:
                self.state.warn(f"{key}: {warning}")
            if result.ungrounded:
                self.state.warn(f"{key}: these numbers have no source: {', '.join(result.ungrounded)}")
        if result.stop_reason in SERVER_FAILED:
            error = ServerError(result.message)
            error.stop_reason = result.stop_reason
            raise error
        if self.halted:
            raise KeyboardInterrupt
        return result
