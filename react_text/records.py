"""What a run has come to -> what it leaves behind: its result, its trace, the events of its log."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .ask import Asked
from .context import Context
from .gateway import Gateway
from .grounding import Grounds
from .labels import Labels
from .log import RunLog
from .models.base import Model, Usage
from .nearmiss import FINISH
from .observe import Observer, label_like
from .prompt import OpenPrompt
from .result import Result, Step, explain, trace_of
from .settings import Settings, plain_values
from .trace import Trace


class Records:
    """One run as far as it has come. `overrides` are the keywords of its Agent."""

    def __init__(
        self,
        model: Model,
        prompt: OpenPrompt,
        gateway: Gateway,
        observer: Observer,
        log: RunLog,
        overrides: Mapping[str, Any],
    ) -> None:
        self.model: Model = model.session() if hasattr(model, "session") else model
        self.prompt, self.gateway, self.observer, self.log = prompt, gateway, observer, log
        self.settings: Settings = gateway.settings
        self.labels: Labels = self.settings.labels
        self.overrides = overrides
        self.context = Context(self.model, observer, prompt.head + prompt.task)
        self.grounds = Grounds(self.settings.grounding, prompt.task, prompt.variables)
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.usage = Usage()
        self.answer: str | None = None
        self.stop_reason, self.message = "", ""
        self.warnings: list[str] = []
        self._started = time.monotonic()

    @property
    def result(self) -> Result:
        """What the run has come to so far."""
        return Result(
            answer=self.answer,
            stop_reason=self.stop_reason,
            steps=tuple(self.steps),
            trace=self.trace,
            usage=self.usage,
            message=self.message or explain(self.stop_reason, self.labels.stops(len(self.steps))),
            cost=self.gateway.cost(self.usage),
            seconds=time.monotonic() - self._started,
            warnings=(*self.warnings, *self.gateway.warnings),
            values=self.gateway.values if self.answer is not None else {},
            ungrounded=tuple(number.text for number in self.grounds.ungrounded),
            notes=tuple(self.notes),
        )

    @property
    def trace(self) -> Trace:
        """The run as a trace: nothing in it changes from one run to the next unless the run itself does."""
        return trace_of(self.prompt.task, self.steps, self.labels, self._facts, self.answer, self.stop_reason)

    @property
    def _facts(self) -> dict[str, Any]:
        """The front matter of the run's trace that is known before its first step."""
        return {
            "prompt": self.prompt.path,
            "prompt_hash": self.prompt.hash,
            "inputs": self.prompt.variables or None,
            "settings": plain_values(self.overrides) or None,
            "tools": [*self.gateway.allowed, FINISH],
            "options": self.settings.options.as_dict(),
        }

    def log_start(self) -> None:
        """The event before the first step."""
        self.log.write(
            "start",
            task=self.prompt.task,
            labels=asdict(self.labels),
            model=self.model.name,
            limits=asdict(self.settings.limits),
            **self._facts,
        )

    def log_step(self, step: Step, asked: Asked) -> None:
        """The event of one step, and what it cost."""
        if not self.log.active:
            return
        facts = asdict(step) | {"step": step.number, "ok": step.ok, "args": step.arguments, "reasked": asked.reasked}
        if step.observation is not None and not step.error and label_like(step.observation, self.labels):
            facts["label_like"] = True
        if self.answer is not None:
            facts["answer"] = self.answer
        if self.prompt.lost:
            facts["prefix_bytes_lost"] = self.prompt.lost
        if self.context.shortened:
            facts["elided"] = self.context.shortened
        del facts["number"], facts["arguments"]
        self.log.write("step", stop_reason=self.stop_reason or None, **facts)

    def log_end(self) -> None:
        """The last event."""
        self.log.write(
            "end",
            answer=self.answer,
            stop_reason=self.stop_reason,
            message=self.message,
            steps=len(self.steps),
            tool_calls=self.gateway.calls,
            usage=asdict(self.usage),
            cost=self.gateway.cost(self.usage),
            warnings=self.warnings,
            ungrounded=[number.text for number in self.grounds.ungrounded],
        )
        self.log.close()
