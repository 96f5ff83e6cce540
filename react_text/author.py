"""A person plays the model of a prompt -> a trace: real parser, tools and wording, and turns that can be taken back.

Whatever changes a step that is over begins the run anew, with the steps that are left as its past.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .agent import Agent
from .ask import Watch
from .display import Display, printable
from .errors import AuthorError, ServerError, did_you_mean
from .files import write
from .labels import Labels
from .loop import Run
from .models.base import Model
from .models.human import Human, Left, ReadLine
from .nearmiss import FINISH
from .parse import turn_end
from .redact import refuse_secrets
from .result import Result
from .tools import Toolbox
from .trace import Trace, TraceStep

HELP = {
    "undo": "take the last turn back",
    "edit": "change the turn so far, or else the last one, in $EDITOR",
    "model": "let the model propose the turn, or the rest of it: keep, edit or refuse it",
    "obs": "write the last observation by hand: :obs TEXT, or lines up to one that is only a full stop",
    "prompt": "show the exact prompt",
    "lint": "check what there is so far",
    "save": "write the trace: :save FILE",
    "quit": "stop here",
    "help": "list these commands",
}


class _Again(Exception):
    """The run begins anew, with another past."""


class Session:
    """One trace in the making.

    `past` are the steps that are there already, `by_hand` the numbers of those whose observations no tool gave.
    `propose(step)` gives the model that `:model` asks, `edit` changes a text in an editor, `lint` gives what is to be
    said about a trace.
    """

    def __init__(
        self,
        agent: Agent,
        display: Display,
        read: ReadLine,
        *,
        question: str | None = None,
        variables: Mapping[str, Any] | None = None,
        past: Sequence[TraceStep] = (),
        by_hand: Collection[int] = (),
        propose: Callable[[int], Model] | None = None,
        edit: Callable[[str], str] | None = None,
        lint: Callable[[Trace], Sequence[str]] | None = None,
    ) -> None:
        self.agent, self.display, self.read = agent, display, read
        self.question, self.variables = question, variables
        self.past = list(past)
        self.propose, self.edit, self.lint = propose, edit, lint
        self.labels: Labels = agent.settings.labels
        self.by_hand = {number for number in by_hand if number <= len(past)}
        self.saved: dict[Path, bytes] = {}
        self.human = Human(self.labels, read, self.command)
        agent.model = self.human
        self.run = self._open()

    @property
    def trace(self) -> Trace:
        """What there is so far. A few-shot becomes a part of the head that its own hash would be about: it has none."""
        trace = self.run.trace
        return replace(trace, meta={**trace.meta, "prompt_hash": None, "hand": sorted(self.by_hand) or None})

    @property
    def unsaved(self) -> bool:
        return bool(self.run.steps) and self.trace.dump() not in self.saved.values()

    def play(self) -> Result:
        """The run, until it has ended and the person has nothing to add."""
        self.display.task(self.run.prompt.task)
        for step in self._caught_up():
            self.display.step(step)
        while True:
            try:
                for step in self.run:
                    self.past = list(self.run.trace.steps)
                    self.display.step(step)
                self.display.end(self.run.result)
                if self.run.stop_reason != Left.stop_reason:
                    self._afterwards()
                return self.run.result
            except _Again:
                self.run = self._open()
                self._caught_up()

    def command(self, line: str, turn: str, prompt: str) -> str | None:
        """One command, in the middle of a turn or, with no `prompt`, after the last one. Gives the turn when that is
        written now. Nothing that goes wrong in it ends the session."""
        try:
            return self._command(line, turn, prompt)
        except (AuthorError, ServerError) as error:
            if isinstance(error, Left):
                raise
            self.display.note(printable(str(error)))
            return None

    def _command(self, line: str, turn: str, prompt: str) -> str | None:
        name, _, argument = line.removeprefix(":").partition(" ")
        argument = argument.strip()
        if name == "undo":
            self._take_back("taken back")
        elif name == "edit":
            return self._edited(turn)
        elif name == "model":
            return self._proposed(turn, prompt)
        elif name == "obs":
            self._observe(argument)
        elif name == "prompt":
            self.display.task(f"{prompt}\n" if prompt else f"{self.run.prompt.head}{self.trace.body}")
        elif name == "lint":
            self._remark()
        elif name == "save":
            self.save(argument)
        elif name == "quit":
            raise Left("left by :quit")
        else:
            if name not in HELP:
                self.display.note(f"there is no :{name}{did_you_mean(name, HELP)}")
            for known, text in HELP.items():
                self.display.note(f":{known:<7}{text}")
        return None

    def save(self, name: str | Path) -> bool:
        """Write the trace; False, with a note, when that cannot be. A file that was there before is not overwritten."""
        path = Path(name)
        if not path.name:
            self.display.note(":save needs the name of a file")
            return False
        path = path if path.suffix == ".trace" else path.with_name(f"{path.name}.trace")
        if path.exists() and path not in self.saved:
            self.display.note(f"{path} exists already: nothing was written")
            return False
        data = self.trace.dump()
        try:
            refuse_secrets(data, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, data)
        except (AuthorError, OSError) as error:
            self.display.note(printable(str(error)))
            return False
        self.saved[path] = data
        self.display.note(f"saved {path}")
        return True

    # -- the run

    def _open(self) -> Run:
        self.display.number = len(self.past) + 1
        return self.agent.steps(self.question, variables=self.variables, past=self.past, on_text=self.display.text)

    def _caught_up(self) -> list[Any]:
        """The steps of the past, once the run has made them again."""
        steps = iter(self.run)
        return [step for _ in self.past if (step := next(steps, None))]

    def _afterwards(self) -> None:
        """The run is over: the commands that still make sense."""
        while (line := self.read(":save FILE, :undo or :quit> ")) is not None:
            if line.startswith(":"):
                try:
                    if self.command(line, "", "") is not None:
                        self.display.note("the run is over: :undo takes its last turn back")
                except Left:
                    return
            elif line.strip():
                self.display.note("the run is over: :undo takes its last turn back")

    # -- commands that change the past

    def _take_back(self, how: str) -> None:
        if not self.past:
            self.display.note("there is no turn yet")
            return
        number = len(self.past)
        self.by_hand.discard(number)
        self.past.pop()
        self.display.note(f"turn {number} {how}")
        raise _Again

    def _edited(self, turn: str) -> str | None:
        last = self.past[-1].completion.strip() if self.past and not turn else ""
        if self.edit is None:
            self.display.note("there is no editor here")
            return None
        text = self.edit(turn or last).strip("\n")
        if not text.strip() or text == last:
            self.display.note("nothing was changed")
            return None
        if last:
            self.human.written = text
            self._take_back("written anew")
        return text

    def _observe(self, text: str) -> None:
        if not self.past or self.past[-1].observation is None:
            self.display.note("there is no observation yet")
            return
        if not text:
            lines = []
            while (line := self.read("")) not in (None, "."):
                lines.append(line)
            text = "\n".join(map(str, lines))
        number = len(self.past)
        if self.past[-1].outcome.startswith("mistake"):
            self.display.note("the engine words this observation itself: a replay will not repeat what you write")
        self.past[-1] = replace(self.past[-1], observation=text, outcome="")
        self.by_hand.add(number)
        self.display.note(f"observation {number} is now: {printable(text)}")
        raise _Again

    # -- commands that do not

    def _proposed(self, turn: str, prompt: str) -> str | None:
        if self.propose is None or not prompt:
            self.display.note("there is no model to ask" if prompt else "the run is over")
            return None
        step = len(self.past) + 1
        asked = prompt + f" {turn}\n" if turn else prompt
        model = self.propose(step)
        watch = Watch(self.labels, f"{turn}\n" if turn else "")
        options = self.agent.settings.options
        found = model.complete(asked, stop=self.labels.stops(step), options=options, on_text=watch)
        text = f"{turn}\n{found.text}" if turn else found.text.lstrip()
        text = text[: turn_end(f"{text}\n", self.labels)].rstrip()
        self.display.note(f"{model.name} proposes:")
        self.display.task(f"{text}\n")
        answer = (self.read("keep, edit or refuse it [k/e/r]? ") or "r").strip().lower()[:1]
        if answer == "e" and self.edit is not None:
            return self.edit(text).strip("\n") or None
        return text if answer == "k" else None

    def _remark(self) -> None:
        if self.lint is None:
            self.display.note("there is no lint here")
            return
        for line in self.lint(self.trace) or ["lint has nothing to say"]:
            self.display.note(printable(line))


def completions(line: str, tools: Toolbox, labels: Labels, step: int) -> list[str]:
    """What a line that is being typed may become: a command, the label of an action, a tool's name."""
    if line.startswith(":"):
        return [f":{name}" for name in HELP if name.startswith(line[1:])]
    cue = labels.cue(labels.action, step) + " "
    if not line.startswith(cue):
        return [cue] if cue.startswith(line) else []
    return [f"{cue}{name}[" for name in (*tools, FINISH) if f"{name}[".startswith(line[len(cue) :])]


def usage_lines(line: str, tools: Toolbox, labels: Labels, step: int) -> list[str]:
    """The usage lines of the tools that an action may still mean."""
    name, bracket, _ = line.removeprefix(labels.cue(labels.action, step)).strip().partition("[")
    return [use for use in tools.usages() if use.startswith(f"{name}[" if bracket else name)]
