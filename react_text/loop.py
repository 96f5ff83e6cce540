"""The loop: prompt, complete, parse, call, observe, append - until finish or a stop reason.

A `Run` holds everything that belongs to one question. Nothing raises out of it: what the model did wrong becomes an
observation, what the server did wrong a stop reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from .ask import Asked, Show, ask
from .errors import Mistake, ParseError, ServerError
from .gateway import BUDGETS, Gateway
from .labels import Labels, label_line
from .log import RunLog
from .models.base import Model, Usage
from .nearmiss import FINISH
from .observe import Observer, frame, label_like
from .parse import Turn, parse_turn
from .prompt import OpenPrompt
from .result import Interrupted, Result, Step, explain
from .settings import Settings
from .trace import Trace

# How long the completion of `on_budget: finish` may take when the run's own time is over, in seconds.
_GRACE = 60.0


class Run:
    """One question on its way to an answer. Iterating makes the steps; `result` is what they came to so far."""

    def __init__(
        self,
        model: Model,
        prompt: OpenPrompt,
        gateway: Gateway,
        observer: Observer,
        log: RunLog,
        overrides: Mapping[str, Any],
        on_text: Show | None = None,
    ) -> None:
        self.model: Model = model.session() if hasattr(model, "session") else model
        self.prompt, self.gateway, self.observer, self.log, self.on_text = prompt, gateway, observer, log, on_text
        self.settings: Settings = gateway.settings
        self.labels: Labels = self.settings.labels
        self.overrides = overrides
        self.steps: list[Step] = []
        self.transcript = ""
        self.usage = Usage()
        self.answer: str | None = None
        self.stop_reason, self.message = "", ""
        self.warnings: list[str] = []
        self._started = time.monotonic()
        self._iterator = self._run()

    def __iter__(self) -> Iterator[Step]:
        return self._iterator

    # -- the loop

    def _run(self) -> Iterator[Step]:
        self._log_start()
        try:
            while not self.stop_reason:
                self.stop_reason = self.gateway.spent_budget(len(self.steps), self.usage)
                if not self.stop_reason:
                    yield self._act(self._complete())
            if self.stop_reason in BUDGETS and self.settings.on_budget == "finish":
                yield self._last_words()
        except ServerError as error:
            self.message = str(error)
            self.stop_reason = self.stop_reason or error.stop_reason
        except KeyboardInterrupt:
            self.stop_reason = "interrupted"
            raise Interrupted(self.result) from None
        finally:
            self.stop_reason = self.stop_reason or "interrupted"
            self.gateway.close()
            self._log_end()

    def _complete(self, cue: str | None = None) -> Asked:
        """Prompt, complete: one turn of text from the model."""
        number = len(self.steps) + 1
        asked = ask(
            self.model,
            lambda cue: self._prompt(number, cue),
            step=number,
            labels=self.labels,
            options=self.settings.options,
            stop=self.settings.stop,
            deadline=time.monotonic() + _GRACE if cue else self.gateway.deadline,
            show=self.on_text,
            cue=cue,
        )
        self.usage += asked.usage
        self.warnings += [warning for warning in asked.warnings if warning not in self.warnings]
        return asked

    def _act(self, asked: Asked) -> Step:
        """Parse, call, observe, append: what comes of a turn."""
        turn: Turn | None = None
        observation: str | None = None
        kept = error = outcome = ""
        started = time.monotonic()
        try:
            turn = self._parse(asked)
            kept = turn.clean
            if self.gateway.is_finish(turn.action):
                self.answer = self.gateway.answer(turn.action)
                self.stop_reason = "success"
            else:
                result = self.gateway.call(turn.action, len(self.steps) + 1)
                observation, outcome = self.observer.result(result), "" if result else "empty"
        except Mistake as mistake:
            kept = mistake.text if isinstance(mistake, ParseError) else kept
            error, observation = mistake.message, self.observer.mistake(mistake)
            outcome = mistake.outcome
            self.stop_reason = self.gateway.verdict(mistake)
        return self._append(asked, turn, kept, observation, error, outcome, time.monotonic() - started)

    def _last_words(self) -> Step:
        """A budget is used up and the prompt wants an answer all the same: one completion that can only finish."""
        reason = self.stop_reason
        step = self._act(self._complete(f"{self.labels.cue(self.labels.action, len(self.steps) + 1)} {FINISH}["))
        self.stop_reason = reason
        return step

    # -- text

    def _prompt(self, number: int, cue: str) -> str:
        remaining = self.gateway.remaining(number - 1)
        return self.prompt.text(self.transcript, cue, step=number, remaining=remaining)

    def _parse(self, asked: Asked) -> Turn:
        lenient = [*self.gateway.allowed, FINISH] if self.settings.lenient else ()
        return parse_turn(asked.text, labels=self.labels, truncated=asked.finish == "length", lenient=lenient)

    def _append(
        self,
        asked: Asked,
        turn: Turn | None,
        kept: str,
        observation: str | None,
        error: str,
        outcome: str,
        seconds: float,
    ) -> Step:
        number = len(self.steps) + 1
        text = turn_line(kept, self.labels, number)
        self.transcript += text + "\n"
        if observation is not None:
            self.transcript += frame(observation, self.labels.cue(self.labels.observation, number))
        step = Step(
            number=number,
            text=text,
            thought=turn.thought if turn else kept,
            tool=turn.action.tool if turn else None,
            arguments=turn.action.arguments if turn else None,
            observation=observation,
            error=error,
            outcome=outcome,
            args_hash=self.gateway.args_hash if turn else None,
            completion=asked.text,
            finish=asked.finish,
            usage=asked.usage,
            model_seconds=asked.seconds,
            tool_seconds=seconds,
        )
        self.steps.append(step)
        self._log_step(step, asked)
        return step

    # -- records

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
            warnings=tuple(self.warnings),
        )

    @property
    def trace(self) -> Trace:
        """The run as a trace: nothing in it changes from one run to the next unless the run itself does."""
        meta = {
            "prompt": self.prompt.path,
            "prompt_hash": self.prompt.hash,
            "inputs": self.prompt.variables or None,
            "settings": {key: value for key, value in self.overrides.items() if value is not None} or None,
            "tools": [*self.gateway.allowed, FINISH],
            "options": self.settings.options.as_dict(),
            "answer": self.answer,
            "stop_reason": self.stop_reason or None,
            "finish": {step.number: step.finish for step in self.steps if step.finish not in ("stop", "cut")} or None,
            "outcomes": {step.number: step.outcome for step in self.steps if step.outcome} or None,
        }
        turns = [(step.text, step.observation) for step in self.steps]
        return Trace.record(self.prompt.task, turns, self.labels, meta)

    def _log_start(self) -> None:
        self.log.write(
            "start",
            prompt=self.prompt.path,
            prompt_hash=self.prompt.hash,
            task=self.prompt.task,
            inputs=self.prompt.variables,
            tools=[*self.gateway.allowed, FINISH],
            labels=asdict(self.labels),
            model=self.model.name,
            options=self.settings.options.as_dict(),
            limits=asdict(self.settings.limits),
        )

    def _log_step(self, step: Step, asked: Asked) -> None:
        if not self.log.active:
            return
        facts = asdict(step) | {"step": step.number, "ok": step.ok, "args": step.arguments, "reasked": asked.reasked}
        if step.observation is not None and not step.error and label_like(step.observation, self.labels):
            facts["label_like"] = True
        if self.prompt.lost:
            facts["prefix_bytes_lost"] = self.prompt.lost
        del facts["number"], facts["arguments"]
        self.log.write("step", stop_reason=self.stop_reason or None, **facts)

    def _log_end(self) -> None:
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
        )
        self.log.close()


def turn_line(kept: str, labels: Labels, number: int) -> str:
    """What is kept of a turn, as a clean line of the protocol: the cue, one blank, the text. A turn without a thought
    begins with its action; an empty one is the bare cue."""
    cue = labels.cue(labels.thought, number)
    own = label_line(labels.action).match(kept)
    if own:
        cue, kept = labels.cue(labels.action, number), kept[own.end() :].lstrip()
    return f"{cue} {kept}" if kept else cue
