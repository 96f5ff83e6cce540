"""A golden trace -> its outcome: the run that its turns lead to today, and what has changed since it was recorded.

A trace has two halves, the model's turns and the world's observations. `replay` takes both from the file and needs no
network; `tools` takes the turns from the file and runs the real tools. In both, whatever the engine itself writes is
made anew: the prompt, what is kept of a turn, error texts, budgets, the stop reason.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .agent import Agent
from .errors import SERVER_FAILED, AuthorError, ServerError, did_you_mean
from .library import Library, refuse_network
from .loop import Run
from .match import Change, check_expectations, compare, expectations
from .matching import Matching
from .models.base import Completion, Constraint, OnText, Options
from .models.scripted import ScriptedModel
from .offline import Offline, offline
from .plan.replay import SUFFIX as PLAN
from .plan.replay import PlanCase
from .prompt import Prompt
from .recorded import given
from .redact import redaction_rules
from .templates import BUILT_IN
from .tools import Tool, Toolbox
from .trace import Trace

# Why a run ended that a replay cannot find out by itself: the server, the clock, the meter, the user.
_FROM_OUTSIDE = (
    *SERVER_FAILED, "context_overflow", "interrupted", "max_seconds", "max_tokens", "max_cost",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a check of a golden came to. `head` is the prompt before the question line."""

    case: Case
    check: str
    changes: tuple[Change, ...]
    actual: Trace
    matching: Matching
    head: str = ""

    @property
    def golden(self) -> Trace:
        return self.case.golden

    @property
    def ok(self) -> bool:
        return not self.changes


class Case:
    """One golden trace. Raises AuthorError, from here and from its checks, for what its author has to change."""

    def __init__(self, path: str | Path, library: Library | None = None) -> None:
        self.path = Path(path)
        self.library = library or Library()
        self.golden = Trace.load(self.path)

    @cached_property
    def is_test(self) -> bool:
        """Whether the trace is a golden, and not only an example for prompts (`test: false`)."""
        word = self.golden.meta.get("test", "true")
        if word not in ("true", "false"):
            raise self.error("test", f"test must be true or false, not {word!r}")
        return bool(word == "true")

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt that the trace was recorded with."""
        path = self.prompt_path
        if not self.library.has(path):
            names = (str(p.relative_to(self.root)) for p in path.parent.glob("*.j2"))
            near = did_you_mean(str(self.golden.meta["prompt"]), names)
            raise self.error("prompt", f"there is no prompt {self.golden.meta['prompt']}{near}")
        return self.library.prompt(path)

    @property
    def prompt_path(self) -> Path:
        name = self.golden.meta.get("prompt")
        if not name:
            raise self.error("format", "a golden needs `prompt:`; a trace that is only an example says `test: false`")
        return self.root / str(name)

    @cached_property
    def head_files(self) -> tuple[Path, ...]:
        """The project's files that the rendered head is made from: prompt, templates, tools, few-shots."""
        templates = [Path(path) for path, _ in self.prompt.trees if not Path(path).is_relative_to(BUILT_IN)]
        return tuple(dict.fromkeys([*templates, *self.prompt.tools, *self.prompt.examples]))

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """All files that a replay depends on."""
        return (*self.head_files, self.prompt_path.parent / "observe.j2", self.path)

    @cached_property
    def root(self) -> Path:
        """The project's folder, from which paths in traces start."""
        return self.library.root(self.path.parent, str(self.golden.meta.get("prompt", "")))

    def check(self, check: str) -> Outcome:
        """`replay` or `tools`."""
        return self.replay() if check == "replay" else self.run_tools()

    def replay(self) -> Outcome:
        """Both halves from the file, without a network."""
        with offline("the prompt") as stretch:
            try:
                return self._checked("replay", stretch)
            finally:  # whether code that was refused the network went on without it, or not
                step = re.match(r"step (\d+) ", stretch.attempts[0]) if stretch.attempts else None
                known = step is not None and int(step[1]) <= len(self.golden.observations)
                refuse_network(stretch, self.path, self.golden.line_of(int(step[1])) if step and known else None)

    def run_tools(self) -> Outcome:
        """The turns from the file, the real tools; those marked `unsafe` are not run and answer from the file."""
        return self._checked("tools", Offline())

    def error(self, key: str, message: str) -> AuthorError:
        """An error at the line of a front-matter key."""
        head = self.path.read_text(encoding="utf-8", errors="replace").split("\n")[: self.golden.first_line - 1]
        line = next((n for n, text in enumerate(head, 1) if text.startswith(f"{key}:")), 1)
        return AuthorError(message, path=self.path, line=line)

    # -- the run

    def _checked(self, check: str, stretch: Offline) -> Outcome:
        tools = self.library.tools(self.prompt, check)
        matching = self.matching(tools)
        model = _ModelHalf(self.golden)
        runs: list[Run] = []
        if check == "tools":
            tools = Toolbox(self._unless_unsafe(tool, runs) for tool in tools.values())
        meta = self.golden.meta
        try:
            agent = Agent(self.prompt, tools, model, **(meta.get("settings") or {}))
            inputs = meta.get("inputs") or {}
            run = agent.steps(
                self.question(agent, inputs), variables=inputs, world=self._world if check == "replay" else None
            )
            runs.append(run)
            stretch.where = "step 1"
            for step in run:
                stretch.where = f"step {step.number + 1}"
        except AuthorError as error:
            raise error if error.path else self.error("settings", error.message) from None
        except SystemExit as error:  # it would end the check of all other goldens, and perhaps as a success
            message = f"{stretch.where}: a tool ended the process (SystemExit: {error.code})"
            raise AuthorError(message, path=self.path) from None
        actual = self._ended(run, model)
        changes = [
            *self._prompt_changes(run),
            *compare(self.golden, actual, matching=matching),
            *check_expectations(actual, meta.get("expect"), longest_prompt=model.longest),
        ]
        return Outcome(self, check, tuple(changes), actual, matching, run.prompt.head)

    def _ended(self, run: Run, model: _ModelHalf) -> Trace:
        """The run as a trace, with an end that can be compared with the recorded one."""
        actual, recorded = run.result.trace, self.golden.meta.get("stop_reason")
        if model.asked_for_more:
            return dataclasses.replace(actual, meta={**actual.meta, "stop_reason": None})
        if run.settings.on_budget == "finish" and recorded in _FROM_OUTSIDE and run.stop_reason == "success":
            # The last words of a run whose time or money was over; here neither is.
            return dataclasses.replace(actual, meta={**actual.meta, "stop_reason": recorded})
        return actual

    def matching(self, tools: Toolbox, default: str = "exact") -> Matching:
        """The rules of comparison; what cannot be read in them is reported at its line. `default` is the mode when the
        golden names none."""
        meta = self.golden.meta
        for key, read in (("redact", redaction_rules), ("expect", expectations)):
            try:
                read(meta.get(key))
            except AuthorError as error:
                raise self.error(key, error.message) from None
        try:
            return Matching.of(meta.get("match") or default, self.library.project(self.root).match, tools)
        except AuthorError as error:
            raise error if error.path else self.error("match", error.message) from None

    def question(self, agent: Agent, inputs: Mapping[str, Any]) -> str | None:
        """The question within the task: what stands where the prompt puts it. A task that the prompt frames otherwise
        today is taken without its label, and the comparison of the tasks tells."""
        task = self.golden.task
        if not task:
            return None
        before, behind = self.library.frame(agent, inputs)
        if len(task) >= len(before) + len(behind) and task.startswith(before) and task.endswith(behind):
            return task[len(before) : len(task) - len(behind)]
        return re.sub(r"\A[^\n:：]{1,40}[:：] ?", "", task).removesuffix("\n")

    def _prompt_changes(self, run: Run) -> Iterator[Change]:
        recorded = self.golden.meta.get("prompt_hash")
        if recorded and recorded != run.prompt.hash:
            yield Change("prompt", 0, f"the rendered head is another text now (hash {run.prompt.hash}, not {recorded})")

    def _world(self, tool: Tool, arguments: Mapping[str, Any], step: int) -> str:
        """The world half of the file. What a tool did instead of answering it does again, and the engine words it."""
        return given(self.golden.outcomes.get(step, ""), self._recorded(step), tool.name)

    def _recorded(self, step: int) -> str:
        observations = self.golden.observations
        return (observations[step - 1] or "") if step <= len(observations) else ""

    def _unless_unsafe(self, tool: Tool, runs: Sequence[Run]) -> Tool:
        if not tool.options.unsafe:
            return tool
        return dataclasses.replace(tool, function=lambda **_: self._recorded(len(runs[0].steps) + 1))


class _ModelHalf(ScriptedModel):
    """The turns of a golden, for one run. It notes how long the prompts are that it is sent."""

    def __init__(self, golden: Trace) -> None:
        script = ScriptedModel.from_trace(golden)
        super().__init__(script.turns, script.name)
        self.longest = 0
        self.asked_for_more = False
        self._stop_reason = str(golden.meta.get("stop_reason"))

    def session(self) -> _ModelHalf:
        return self

    def complete(
        self,
        prompt: str,
        *,
        stop: Sequence[str],
        options: Options,
        on_text: OnText | None = None,
        deadline: float | None = None,
        constraint: Constraint | None = None,
    ) -> Completion:
        self.longest = max(self.longest, len(prompt))
        if self._next >= len(self.turns):
            ended = ServerError("the golden has no further turn")
            if self._stop_reason in _FROM_OUTSIDE:
                ended.stop_reason = self._stop_reason
            else:
                self.asked_for_more = True
            raise ended
        return super().complete(prompt, stop=stop, options=options, on_text=on_text, deadline=deadline)


def open_case(path: Path, library: Library) -> Case | PlanCase:
    """The golden at a path: a trace, or a recorded plan."""
    return PlanCase(path) if path.suffix == PLAN else Case(path, library)
