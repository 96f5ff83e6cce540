"""The loop: prompt, complete, parse, call, observe, append - until finish or a stop reason.

A `Run` holds everything that belongs to one question. Nothing raises out of it: what the model did wrong becomes an
observation, what the server did wrong a stop reason.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .ask import Asked, Show, ask
from .errors import Mistake, ParseError, ServerError, ServerTimeout
from .gateway import BUDGETS, Gateway
from .grammar import Grammar
from .labels import Labels, label_line
from .layout import behind_cue
from .log import RunLog
from .models.base import Constraint, Model, PromptText, Usage
from .models.chat_template import ChatTemplate, find_template
from .nearmiss import FINISH
from .observe import Observer, frame
from .parse import Turn, parse_turn, reasoning
from .prompt import OpenPrompt
from .recorded import outcome_of
from .records import Records
from .result import Interrupted, Step
from .scratchpad import NOTE, note_text
from .trace import TraceStep

# How long the completion of `on_budget: finish` may take when the run's own time is over, in seconds.
_GRACE = 60.0


@dataclass
class _Came:
    """What has come of a turn. `kept` is what the transcript keeps of it, `repeated` the earlier result that is quoted
    to a repeated call."""

    turn: Turn | None = None
    kept: str = ""
    observation: str | None = None
    error: str = ""
    outcome: str = ""
    repeated: str = ""
    seconds: float = 0.0


class Run(Records):
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
        past: Sequence[TraceStep] = (),
    ) -> None:
        super().__init__(model, prompt, gateway, observer, log, overrides)
        self.on_text, self.past = on_text, past
        self.grammar: Grammar | None = None
        if self.settings.decoding != "off":
            self.grammar = Grammar(gateway.allowed, self.labels, lazy=self.settings.decoding == "lazy")
        self.template: ChatTemplate | None = None
        # A script or a person writes whole turns.
        self.prefill = "" if getattr(model, "takes_raw", False) else prompt.prefill
        self._iterator = self._run()

    def __iter__(self) -> Generator[Step, None, None]:
        return self._iterator

    # -- the loop

    def _run(self) -> Generator[Step, None, None]:
        self.log_start()
        try:
            self.template = find_template(self.settings.chat_template, self.model)
            while not self.stop_reason:
                self.stop_reason = self.gateway.spent_budget(len(self.steps), self.usage)
                if not self.stop_reason:
                    yield self._act(self._complete())
            if self.stop_reason in BUDGETS and self.settings.on_budget == "finish":
                yield self._last_words()
        except ServerError as error:
            self.message = str(error)
            timed_out = isinstance(error, ServerTimeout) and self.gateway.out_of_time
            self.stop_reason = self.stop_reason or ("max_seconds" if timed_out else error.stop_reason)
        except KeyboardInterrupt:
            self.stop_reason = "interrupted"
            raise Interrupted(self.result) from None
        finally:
            self.stop_reason = self.stop_reason or "interrupted"
            self.gateway.close()
            self.log_end()

    def _complete(self, cue: str | None = None) -> Asked:
        """Prompt, complete: one turn of text from the model, or from the past of a run that is resumed."""
        number = len(self.steps) + 1
        if number <= len(self.past):
            return Asked(self.past[number - 1].completion, self.past[number - 1].finish, Usage())
        asked = self.context.ask(
            lambda: ask(
                self.model,
                lambda cue: self._prompt(number, cue),
                step=number,
                labels=self.labels,
                options=self.settings.options,
                stop=(*(self.template.stop if self.template else ()), *self.settings.stop),
                deadline=time.monotonic() + _GRACE if cue else self.gateway.deadline,
                show=self.on_text,
                cue=cue,
                prefill=self.prefill,
                constrain=self._constraint,
            )
        )
        self.usage += asked.usage
        self.warnings += [warning for warning in asked.warnings if warning not in self.warnings]
        return asked

    def _act(self, asked: Asked) -> Step:
        """Parse, call, observe, append: what comes of a turn."""
        came, started = _Came(), time.monotonic()
        try:
            came.turn = turn = self._parse(asked)
            came.kept = turn.clean
            if self.gateway.is_finish(turn.action):
                self.answer = self.grounds.checked(self.gateway.answer(turn.action), self.steps, last=self._is_last)
                self.stop_reason = "success"
            else:
                result = self.gateway.call(turn.action, len(self.steps) + 1)
                came.observation, came.outcome = self.observer.result(result), "" if result else "empty"
        except Mistake as mistake:
            came.kept = mistake.text if isinstance(mistake, ParseError) else came.kept
            came.error, came.observation = mistake.message, self.observer.mistake(mistake)
            came.outcome, came.repeated = outcome_of(mistake), mistake.fields.get("result") or ""
            self.stop_reason = self.gateway.verdict(mistake)
        came.seconds = time.monotonic() - started
        if self.settings.think == "keep" and (thinking := reasoning(asked.text, self.labels)):
            came.kept = f"{thinking}\n{came.kept}" if came.kept else thinking
        return self._append(asked, came)

    def _last_words(self) -> Step:
        """A budget is used up and the prompt wants an answer all the same: one completion that can only finish."""
        reason = self.gateway.over = self.stop_reason
        step = self._act(self._complete(f"{self.labels.cue(self.labels.action, len(self.steps) + 1)} {FINISH}["))
        self.stop_reason = reason
        return step

    @property
    def _is_last(self) -> bool:
        """Whether no turn can follow the present one."""
        return bool(self.gateway.over or self.gateway.spent_budget(len(self.steps) + 1, self.usage))

    # -- text

    def _prompt(self, number: int, cue: str) -> PromptText:
        """The exact text that goes to the model. Trace and hash know the raw prompt only: the same run with another
        model's template is the same trace."""
        remaining = self.gateway.remaining(number - 1)
        context, notes = self.context, self.notes
        text = self.prompt.text(
            context.transcript, cue, step=number, remaining=remaining, notes=notes, elided=context.elided
        )
        return self.template.wrap(text) if self.template else text

    def _constraint(self, cue: str) -> Constraint | None:
        """What may follow `cue`: only tools that are allowed, and no call that would be refused as a repeat."""
        if self.grammar is None:
            return None
        answer = self.grounds.answer_form(self.steps)
        return self.grammar.after(cue, len(self.steps) + 1, self.gateway.is_repeat, answer)

    def _parse(self, asked: Asked) -> Turn:
        lenient = [*self.gateway.allowed, FINISH] if self.settings.lenient else ()
        return parse_turn(asked.text, labels=self.labels, truncated=asked.finish == "length", lenient=lenient)

    def _append(self, asked: Asked, came: _Came) -> Step:
        number = len(self.steps) + 1
        turn, observation = came.turn, came.observation
        text = turn_line(came.kept, self.labels, number)
        lossy = self._lossy(asked, text)
        if number <= len(self.past):  # what the model saw then, however the engine would word it today
            text, observation = self.past[number - 1].text, self.past[number - 1].observation
        self.context.add(f"{text}\n")
        cue = self.labels.cue(self.labels.observation, number)
        if observation is not None and came.error and not came.repeated:
            self.context.add(frame(observation, cue))
        elif observation is not None:
            self.context.add_result(number, observation, cue, came.repeated or observation)
            if turn and not came.error and self._is_note(turn):
                self.notes.append(note_text(turn.action.arguments))
        step = Step(
            number=number,
            text=text,
            thought=turn.thought if turn else came.kept,
            tool=turn.action.tool if turn else None,
            arguments=turn.action.arguments if turn else None,
            observation=observation,
            error=came.error,
            outcome=came.outcome,
            args_hash=self.gateway.args_hash if turn else None,
            completion=asked.text,
            finish=asked.finish,
            lossy=lossy,
            usage=asked.usage,
            model_seconds=asked.seconds,
            tool_seconds=came.seconds,
        )
        self.steps.append(step)
        self.log_step(step, asked)
        return step

    def _is_note(self, turn: Turn) -> bool:
        return self.settings.scratchpad and self.gateway.tools.resolve(turn.action.tool) == NOTE

    def _lossy(self, asked: Asked, text: str) -> bool:
        """Whether a turn, as the transcript keeps it, would be read as another one than what the model wrote: reasoning
        and invented observations are not kept."""
        kept = behind_cue(text, self.labels)
        return kept != asked.text and self._reading(asked) != self._reading(replace(asked, text=kept))

    def _reading(self, asked: Asked) -> tuple[str, str, str]:
        try:
            turn = self._parse(asked)
        except ParseError as error:
            return error.kind, error.text, self.observer.mistake(error)
        return turn.thought, str(turn.action), turn.clean


def turn_line(kept: str, labels: Labels, number: int) -> str:
    """What is kept of a turn, as a clean line of the protocol: the cue, one blank, the text. A turn without a thought
    begins with its action; an empty one is the bare cue."""
    cue = labels.cue(labels.thought, number)
    own = label_line(labels.action).match(kept)
    if own:
        cue, kept = labels.cue(labels.action, number), kept[own.end() :].lstrip()
    return f"{cue} {kept}" if kept else cue
