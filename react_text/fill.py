"""A trace with thoughts and actions -> the same trace with the observations that the real tools give.

The engine itself makes each step, so that errors are worded as a model would read them. What was missing is written
into the file; where something else would change, the whole goes to a pending file, for review.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .agent import Agent
from .errors import AuthorError
from .files import write
from .gateway import PLACEHOLDER
from .golden import Case
from .labels import ARROW, Labels
from .layout import framed, needed_spans
from .loop import Run
from .models.scripted import ScriptedModel
from .prompt import Prompt
from .redact import redacted, redaction_rules, refuse_secrets
from .review import pending_path, updated
from .tools import Tool, Toolbox, load_tools
from .trace import Trace, TraceStep, is_finish

Confirm = Callable[[str], bool]
"""Gets a question for a person, before a tool that is marked unsafe is run."""


@dataclass(frozen=True)
class Turn:
    """A turn as the file has it. `behind` is all behind its text: a newline, then the lines of its observation."""

    text: str
    observation: str | None
    behind: str = "\n"

    @property
    def empty(self) -> bool:
        """Whether its observation is still to be written: that of a tool is never empty."""
        return not self.observation


@dataclass(frozen=True)
class Filled:
    """What filling a trace comes to.

    `draft` is the file with its missing observations in their places; `in_place` has those that were filled, None when
    none was; `pending` has every change, None when there are no others. `steps` were filled, `differ` says of others
    what is not as in the file; `notes` say what was left undone.
    """

    trace: Trace
    draft: Trace
    in_place: Trace | None = None
    pending: Trace | None = None
    steps: Sequence[int] = ()
    differ: Mapping[int, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def save(self) -> list[Path]:
        """Write the file, and the pending one beside it. Raises AuthorError, and writes nothing, when one of them would
        hold a secret."""
        assert self.trace.path is not None
        made = {self.trace.path: self.in_place, pending_path(self.trace.path): self.pending}
        rules = redaction_rules(self.trace.meta.get("redact"))
        files = {path: updated(self.trace, redacted(trace, rules)) for path, trace in made.items() if trace}
        for path, data in files.items():
            refuse_secrets(data, path)
        for path, data in files.items():
            write(path, data)
        return list(files)


def fill(
    path: str | Path,
    *,
    tools: Sequence[str | Path] | None = None,
    only: Collection[int] = (),
    everything: bool = False,
    confirm: Confirm = lambda question: False,
) -> Filled:
    """Run the tools that a trace calls, in order, up to its last missing observation; but no further than the first
    that answers otherwise than the file says, because the turns behind it were written for the old answer.

    `only` are steps whose tools alone are run, all others answer from the file; `everything` makes all observations
    anew. Steps under `hand:` in the front matter are never run, unless `only` names them. `tools` are modules to use
    instead of the prompt's. Raises AuthorError; writes nothing.
    """
    return _Filling(Case(path), tools, only, everything, confirm).filled()


def unfilled_turns(trace: Trace) -> list[Turn]:
    """The turns of a trace in which observations may be missing: where none stands between two turns, the thought or
    action behind an action begins the next one."""
    turns: list[Turn] = []
    for number, step in enumerate(trace.steps, 1):
        behind = trace.before(number + 1)[len(trace.before(number)) + len(step.text) :]
        parts = [step.text] if number in trace.spans.turns else list(_split(step.text, trace.labels))
        turns += [*(Turn(part, None) for part in parts[:-1]), Turn(parts[-1], step.observation, behind)]
    return turns


def steps_by_hand(trace: Trace) -> set[int]:
    """The steps whose observations no tool has given: `hand: [2]` in the front matter. Raises AuthorError."""
    given = trace.meta.get("hand") or ()
    numbers = [given] if isinstance(given, str) else list(given)
    for number in numbers:
        if not str(number).isdecimal():
            raise AuthorError(f"hand must list the numbers of steps, not {number!r}", path=trace.path)
    return set(map(int, numbers))


def _split(text: str, labels: Labels) -> Iterator[str]:
    number = " [0-9]+" if labels.numbered else ""
    thought, action = (re.compile(f"{re.escape(word)}{number}:") for word in (labels.thought, labels.action))
    part: list[str] = []
    acted = False
    for line in text.split("\n"):
        acts = action.match(line) is not None
        if acted and (acts or thought.match(line)):
            yield "\n".join(part)
            part, acted = [], False
        part.append(line)
        acted = acted or acts
    yield "\n".join(part)


def _ends(trace: Trace) -> bool:
    """Whether the last turn gives an answer, so that nothing is said to it. An empty one is none, and neither is the
    word that stands for one in the engine's own texts."""
    last = trace.steps[-1] if trace.steps else None
    return last is not None and is_finish(last) and (last.arguments or "").strip() not in ("", PLACEHOLDER)


class _NeedsConsent(BaseException):
    """Raised in place of an unsafe tool. Not an Exception: those become observations."""


class _Filling:
    """One trace on its way. Each step is a run of its own, whose past are the steps before it: so any of them can be
    taken from the file instead."""

    def __init__(
        self,
        case: Case,
        tools: Sequence[str | Path] | None,
        only: Collection[int],
        everything: bool,
        confirm: Confirm,
    ) -> None:
        self.case, self.trace = case, case.golden
        self.only, self.everything, self.confirm = only, everything, confirm
        if self.trace.labels == ARROW:
            raise self._error("the trace of a text game calls no tools")
        if tools is None and "prompt" not in self.trace.meta:
            raise self._error("it names no prompt: add `prompt: FILE` to its front matter, or give --tools MODULE")
        self.prompt = case.prompt if "prompt" in self.trace.meta else Prompt.base()
        loaded = load_tools(self.prompt.tools if tools is None else tools)
        self.tools = Toolbox(self._guarded(tool) for tool in loaded.values())
        self.turns = unfilled_turns(self.trace)
        for step in only:
            if not 1 <= step <= len(self.turns):
                raise self._error(f"there is no step {step}: this trace has {len(self.turns)}")
        pairs = [(turn.text, turn.observation) for turn in self.turns]
        self.draft = Trace.record(self.trace.task, pairs, self.trace.labels, self.trace.meta)
        self.by_hand = steps_by_hand(self.trace) - set(only)
        self.consent: set[int] = set()
        self.number = 0
        self.past: list[TraceStep] = []
        self.steps: list[int] = []
        self.differ: dict[int, str] = {}
        self.notes: list[str] = []

    def filled(self) -> Filled:
        finish = len(self.turns) if _ends(self.draft) else 0
        missing = [number for number, turn in enumerate(self.turns, 1) if turn.empty and number != finish]
        last = len(self.turns) if self.everything else max(self.only or missing, default=0)
        while self.number < last and self._step():
            pass
        in_place, pending = self._trace(every=False), self._trace(every=True)
        return Filled(
            self.trace,
            self.draft,
            in_place if self.steps else None,
            pending if pending.body != in_place.body else None,
            self.steps,
            self.differ,
            self.notes,
        )

    # -- making one step

    def _step(self) -> bool:
        """Make the next step; False when those behind it cannot be made."""
        self.number += 1
        turn, recorded = self.turns[self.number - 1], self.draft.steps[self.number - 1]
        if self.number in self.by_hand or (self.only and self.number not in self.only):
            if turn.empty:
                return self._stop("has no observation yet: nothing behind it was filled")
            self.past.append(recorded)
            return True
        try:
            run = self._run()
        except _NeedsConsent:
            call = f"{recorded.tool}[{recorded.arguments}]"
            if self.confirm(f"step {self.number} calls {call}, which is marked unsafe. Run it?"):
                self.consent.add(self.number)
                self.number -= 1
                return self._step()
            if turn.empty:
                return self._stop("was not run (unsafe): nothing behind it was filled")
            self.notes.append(f"step {self.number} was not run (unsafe): it stays as it is")
            self.past.append(recorded)
            return True
        if len(run.steps) < self.number:
            return self._stop(f"was not made: the run has ended before it as {run.stop_reason}")
        self.past.append(run.trace.steps[-1])
        return self._compare(turn, run.steps[-1].text, run.steps[-1].observation)

    def _compare(self, turn: Turn, text: str, observation: str | None) -> bool:
        more = self.number < len(self.turns)
        if text != turn.text:
            self.differ[self.number] = "the engine keeps another text of this turn"
        if observation is None:
            return not more or self._stop("ends the run: nothing behind it was made")
        if turn.empty:
            self.steps.append(self.number)
        elif observation != turn.observation:
            self.differ[self.number] = "the observation is another one now"
            if more and not self.everything:
                return self._stop("answers differently: the turns behind it were written for the old answer")
        return True

    def _stop(self, what: str) -> bool:
        self.notes.append(f"step {self.number} {what}")
        return False

    def _run(self) -> Run:
        """The run up to this step, which alone is made anew."""
        script = ScriptedModel.from_trace(self.draft, first=self.number)
        # Time that a person takes to answer, and tools that are run once, are not what the run's limit is about.
        settings: dict[str, Any] = {**(self.trace.meta.get("settings") or {}), "max_seconds": None}
        inputs = self.trace.meta.get("inputs") or {}
        try:
            agent = Agent(self.prompt, self.tools, script, **settings)
            question = self.case.question(agent, inputs)
            run = agent.steps(question, variables=inputs, past=self.past)
        except AuthorError as error:
            raise error if error.path else self.case.error("settings", error.message) from None
        if agent.settings.labels != self.trace.labels:
            raise self._error("the labels of the trace are not those of its prompt")
        for step in run:
            if step.number == self.number:
                break
        return run

    def _guarded(self, tool: Tool) -> Tool:
        """The tool, but for an unsafe one: that waits for consent to the step that calls it."""

        def guarded(**arguments: Any) -> Any:
            if self.number not in self.consent:
                raise _NeedsConsent
            return tool.function(**arguments)

        return replace(tool, function=guarded) if tool.options.unsafe else tool

    # -- what it comes to

    def _trace(self, *, every: bool) -> Trace:
        """The file with the observations that were missing, and with `every` other change in the steps that were made.
        All other bytes of the body stay."""
        body, pairs = [self.trace.task], []
        for number, turn in enumerate(self.turns, 1):
            text, observation, behind = turn.text, turn.observation, turn.behind
            if number <= len(self.past) and (every or number in self.steps):
                made = self.past[number - 1]
                text = made.text if every else text
                if made.observation is not None and made.observation != observation:
                    observation = made.observation
                    behind = "\n" + framed(observation, self.trace.labels, number)
            body += [text, behind]
            pairs.append((text, observation))
        joined = "".join(body)
        spans = needed_spans(self.trace.task, pairs, self.trace.labels, joined)
        return Trace(joined, self.trace.labels, self._meta(every=every), spans)

    def _meta(self, *, every: bool) -> dict[str, Any]:
        """The front matter, with what came of the steps that were made."""
        meta = dict(self.trace.meta)
        numbers = range(1, len(self.past) + 1) if every else self.steps
        outcomes = dict(self.trace.outcomes)
        for number in numbers:
            outcomes[number] = self.past[number - 1].outcome
        meta["outcomes"] = {number: outcomes[number] for number in sorted(outcomes) if outcomes[number]} or None
        return meta

    def _error(self, message: str) -> AuthorError:
        return AuthorError(message, path=self.case.path)
