"""A trace -> the same run, live from one of its steps on; the steps before it are those of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .agent import Agent
from .ask import Show
from .errors import AuthorError
from .golden import Case
from .loop import Run
from .models import open_model
from .models.base import Model
from .models.scripted import ScriptedModel
from .trace import Trace, is_finish


class Resumption:
    """A recorded run that can go on. Raises AuthorError for a trace from which no run can go on.

    `step` is the first step that is made anew (the one behind the last complete step when None); the model and the
    tools are those of the run from there on. `settings` are those of Agent, laid over the ones the run had.
    """

    def __init__(self, trace: str | Path, *, step: int | None = None) -> None:
        self.case = Case(trace)
        self.trace: Trace = self.case.golden
        steps = self.trace.steps
        complete = next((n for n, each in enumerate(steps) if each.observation is None), len(steps))
        if step is None and complete < len(steps) and is_finish(steps[complete]):
            raise self._error(f"this run has finished; --step 1 to --step {complete + 1} says from where to go on")
        self.step = complete + 1 if step is None else step
        if not 1 <= self.step <= complete + 1:
            raise self._error(f"there are {complete} complete steps: --step must be from 1 to {complete + 1}")

    def agent(self, model: str | Model | Callable[..., Any], **settings: Any) -> Agent:
        """The prompt and tools of the run, with a model. The turns of a `scripted:` trace are taken from the same step
        on. Raises AuthorError."""
        if isinstance(model, str) and model.startswith("scripted:"):
            model = ScriptedModel.from_trace(model.removeprefix("scripted:"), first=self.step)
        recorded: Mapping[str, Any] = self.trace.meta.get("settings") or {}
        prompt = self.case.prompt
        try:
            agent = Agent(prompt, model=open_model(model), **{**recorded, **settings})
        except AuthorError as error:
            raise error if error.path else self.case.error("settings", error.message) from None
        if agent.settings.labels != self.trace.labels:
            raise self._error("the labels of the trace are not those of its prompt")
        return agent

    def run(self, agent: Agent, *, log: str | Path | None = None, on_text: Show | None = None) -> Run:
        """The run, at its first new step: its `steps` so far are those of the file. Raises AuthorError."""
        inputs = self.trace.meta.get("inputs") or {}
        past = self.trace.steps[: self.step - 1]
        question = self.case.question(agent, inputs)
        run = agent.steps(question, variables=inputs, log=log, on_text=on_text, past=past)
        iterator = iter(run)
        for _ in past:
            next(iterator, None)
        ended = run.stop_reason or run.gateway.spent_budget(len(run.steps), run.usage)
        if ended:
            iterator.close()
            where = f"in step {len(run.steps)}" if run.steps else "before its first step"
            advice = "--max-steps gives it more" if ended == "max_steps" else "an earlier --step goes on before that"
            raise self._error(f"the run ends again {where} as {ended}; {advice}")
        if self.trace.meta.get("prompt_hash") not in (None, run.prompt.hash):
            run.warnings.append("the prompt is another one than when this trace was recorded")
        return run

    def _error(self, message: str) -> AuthorError:
        return AuthorError(message, path=self.case.path)
