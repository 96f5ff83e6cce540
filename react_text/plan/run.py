"""`Planner`: a request on its way through the stages, each a run of the loop with a prompt of its own.

    request ─goal─► fields ─plan─► subtasks ─act, each─► selections ─synthesise─► answer

What fails is failed and said so: a subtask that finds nothing leaves a warning, and the others go on. Only a model
server that does not answer ends a plan early, and it can go on from the state that is left behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ..agent import Agent
from ..ask import Show
from ..errors import AuthorError, ServerError
from ..gateway import Calls, World
from ..loop import Run
from ..models import open_model
from ..models.base import Model
from ..plan_settings import STAGES, PlanSettings, load_plan
from ..prompt import Prompt
from ..result import Interrupted, Result, Step
from ..subtasks import Subtask, salvaged
from ..templates import BUILT_IN
from .goal import checked_goal
from .options import label, options_in, picked, summary
from .script import PlanScript
from .state import Part, PlanState, plain

_SERVER_FAILED = ("llm_error", "llm_timeout")
Save = Callable[[PlanState], None]
Worlds = Callable[[str], World | None]


class Planner:
    """Runs plans by a plan prompt, which makes the subtasks and has the key `plan:` in its front matter.

    prompt     a path, of the file or of a folder with a plan.j2; or a loaded Prompt
    model      a model, function or spec as for Agent, or a PlanScript
    tools      for the subtasks, in place of those of the prompt `act`
    jobs       how many subtasks may be worked on at the same time
    interpret  whether each result is judged by a completion of its own; what the prompt says when None
    settings   of every stage, as for Agent

    Raises AuthorError for what its author has to change.
    """

    def __init__(
        self,
        prompt: str | Path | Prompt,
        model: str | Model | PlanScript | Callable[..., Any],
        *,
        tools: Any = None,
        jobs: int = 1,
        interpret: bool | None = None,
        **settings: Any,
    ) -> None:
        self.prompt = prompt if isinstance(prompt, Prompt) else Prompt.load(plan_file(Path(prompt)))
        self.plan = self.prompt.plan or PlanSettings()
        self.stages = {name: self._stage_prompt(name) for name in STAGES}
        self.model = model if isinstance(model, PlanScript) else open_model(model)
        self.tools = tools
        self.jobs = jobs
        self.interpret = self.plan.interpret if interpret is None else interpret
        self.settings = settings
        self.subtasks = load_plan(self.plan.file) if self.plan.file else (None, ())

    def run(
        self,
        request: str | None = None,
        *,
        file: Path | None = None,
        past: PlanState | None = None,
        worlds: Worlds | None = None,
        save: Save | None = None,
        log: Path | None = None,
        on_stage: Callable[[str, Run], None] | None = None,
        on_step: Callable[[str, Step], None] | None = None,
        on_text: Show | None = None,
    ) -> PlanState:
        """Carry out a request (the prompt's default when None) and return the state it has come to.

        `file` is a YAML plan in place of the model's; `past` the state of a plan to go on with. `worlds`
        gives, for the key of a stage, what answers in place of its tools. `save` is given the state after each step;
        `log` is a file for JSON Lines events; `on_stage` gets each run of the loop as it begins, `on_step` its steps,
        `on_text` the model's text as it is written. Raises AuthorError, and KeyboardInterrupt on Ctrl-C.
        """
        request = request if past is None else past.request
        request = self.prompt.question if request is None else request
        if request is None:
            raise AuthorError("no request was given, and the prompt has no default `question`", path=self.prompt.path)
        limits, budget = self.plan.limits, self.plan.budget
        state = PlanState(request, self.prompt.project_path, self.interpret, limits.max_steps, budget)
        given = load_plan(file) if file else self.subtasks
        return _Work(self, state, given, past, worlds, save, log, on_stage, on_step, on_text).done()

    def _stage_prompt(self, name: str) -> Prompt:
        """The prompt of a stage: the one that is named, the one beside the plan prompt, or the package's own."""
        named = (self.plan.stages or {}).get(name)
        beside = self.prompt.path.parent / f"{name}.j2" if self.prompt.path else BUILT_IN
        return Prompt.load(named or (beside if beside.is_file() else BUILT_IN / "plan" / f"{name}.j2"))


class _Work:
    """One plan at work."""

    def __init__(
        self,
        planner: Planner,
        state: PlanState,
        given: tuple[Mapping[str, Any] | None, tuple[Subtask, ...]],
        past: PlanState | None,
        worlds: Worlds | None,
        save: Save | None,
        log: Path | None,
        on_stage: Callable[[str, Run], None] | None,
        on_step: Callable[[str, Step], None] | None,
        on_text: Show | None,
    ) -> None:
        self.planner, self.state, self.given, self.past = planner, state, given, past
        self.worlds = worlds
        self.save, self.log = save, log
        self.on_stage, self.on_step, self.on_text = on_stage, on_step, on_text
        self.limits = planner.plan.limits
        self.calls: Calls = {}
        self.reserved: dict[str, int] = {}
        self.started = time.monotonic()
        self.lock = threading.RLock()
        self.halted = False

    def done(self) -> PlanState:
        """The state at the end of all stages."""
        try:
            self._goal()
            self._plan()
            self._subtasks()
            self._synthesise()
        except ServerError as error:
            self.state.stop_reason = error.stop_reason
            self.state.warn(str(error))
        except KeyboardInterrupt:
            self.halted = True
            self.state.stop_reason = "interrupted"
            self._saved()
            raise
        self._saved()
        return self.state

    # -- goal and plan

    def _goal(self) -> None:
        if self.given[0] is not None:
            self.state.goal = plain(self.given[0])
            return
        result = self._run("goal", self.planner.stages["goal"], self.state.request, {})
        if not result.ok:
            self.state.warn(f"goal: {_why(result)}; nothing is known about it but the request")
        goal, left_open = checked_goal(result.values, self.state.request, self.planner.plan.derived)
        self.state.goal = plain(goal)
        for warning in left_open:
            self.state.warn(f"goal: {warning}")

    def _plan(self) -> None:
        subtasks = self.given[1]
        if not subtasks:
            result = self._run("plan", self.planner.prompt, self.state.request, {})
            found = next((value for value in result.values.values() if isinstance(value, tuple)), ())
            if not found:
                last = result.steps[-1].arguments if result.steps else None
                found = salvaged(last or "", [each.id for each in self.planner.plan.subtasks])
                used = "what could be read of it is used" if found else "the request is one subtask"
                self.state.warn(f"plan: {_why(result)}; {used}")
                found = found or (Subtask("request", self.state.request),)
            subtasks = self.planner.plan.completed(found)
        self.state.parts = {each.id: Part(each) for each in subtasks}
        self._saved()

    # -- subtasks

    def _subtasks(self) -> None:
        """Work on each subtask as soon as what it waits for has ended."""
        if self.planner.jobs == 1:
            while ready := self._ready():
                self._act(self.state.parts[ready[0]])
            return
        with ThreadPoolExecutor(self.planner.jobs) as pool:
            running: dict[Future[None], str] = {}
            try:
                while True:
                    for name in self._ready():
                        self.state.parts[name].status = "in_progress"
                        running[pool.submit(self._act, self.state.parts[name])] = name
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        future.result()
            except BaseException:
                self.halted = True
                raise

    def _ready(self) -> list[str]:
        """The subtasks that can begin now. Those that never can are skipped."""
        parts = self.state.parts
        while True:
            waiting = [part for part in parts.values() if part.status == "pending"]
            lost = [(part, name) for part in waiting for name in part.subtask.needs if _lost(parts[name])]
            for part, name in lost:
                if part.status == "pending":
                    self._end(part, "skipped", f"it needs {name}, which is not done")
            if not lost:
                return [p.subtask.id for p in waiting if all(parts[name].ended for name in p.subtask.waits_for)]

    def _act(self, part: Part) -> None:
        """One subtask: a run of the loop, whose prompts show the state as it is now."""
        name = part.subtask.id
        with self.lock:
            reason, limits = self._left(part.subtask)
            if reason:
                self._end(part, "failed", f"not begun: {reason}")
                return
            part.status = "in_progress"
            self.reserved[name] = limits["max_steps"]
        try:
            result = self._run(
                f"act {name}",
                self.planner.stages["act"],
                part.subtask.task,
                {"subtask": name, "state": self.state.view(name)},
                each=lambda run, step: self._after_step(part, run, step),
                limits=limits,
                allow=part.subtask.tools,
            )
        finally:
            self.reserved.pop(name, None)
        with self.lock:
            part.answer = result.answer
            part.selected = part.selected if result.answer is None else self._selected(part, result.answer)
            if result.ok:
                self._end(part, "done")
            else:
                self._end(part, "failed", self._over or _why(result))

    def _after_step(self, part: Part, run: Run, step: Step) -> None:
        """Take down what a step has brought, and show it in the next prompt."""
        with self.lock:
            part.steps = step.number
            part.calls = run.gateway.calls
            recorded = run.trace.steps[-1]
            if step.tool and step.observation is not None and step.error in ("", "empty_result", "repeat"):
                part.results.append(summary(recorded))
                part.options |= {str(option["id"]): option for option in options_in(step.observation)}
        if self.planner.interpret and part.results and step.ok and step.observation is not None:
            self._interpret(part, step)
        with self.lock:
            run.prompt.now(state=self.state.view(part.subtask.id))

    def _interpret(self, part: Part, step: Step) -> None:
        """A completion of its own on what a result is worth."""
        name = part.subtask.id
        seen = {"call": f"{step.tool}[{step.arguments}]", "result": step.observation, "state": self.state.view(name)}
        prompt = self.planner.stages["interpret"]
        result = self._run(f"interpret {name} {step.number}", prompt, part.subtask.task, seen)
        values = result.values
        with self.lock:
            if not result.ok:
                self.state.warn(f"{name}: a result was not judged: {_why(result)}")
                return
            choice = part.options.get(str(values.get("pick")))
            if choice is not None:
                part.selected = [choice]
            verdict = [f"picked {label(choice, None)}"] if choice else [] if values.get("useful") else ["of no use"]
            verdict += [str(values[key]) for key in ("why", "again") if values.get(key)]
            part.results[-1] += f" ({'; '.join(verdict)})"

    def _selected(self, part: Part, answer: str) -> list[Any]:
        return picked(answer, part.options.values()) or part.selected

    def _end(self, part: Part, status: Any, reason: str = "") -> None:
        part.status, part.reason = status, reason
        if status != "done":
            self.state.warn(f"{part.subtask.id}: {status}: {reason}")
        money = self.state.money
        if money and money["left"] < 0:
            self.state.warn(f"the selections cost {money['spent']} of {money['total']} {money['unit']}".rstrip())
        self._saved()

    # -- limits

    def _left(self, subtask: Subtask) -> tuple[str, dict[str, Any]]:
        """The limit that is used up, or "", and what a subtask may use at most."""
        own = self.planner.stages["act"].settings.override(**_limits_in(self.planner.settings)).limits
        steps = self.limits.max_steps - self.state.steps - sum(self._unused())
        if steps <= 0:
            return f"all {self.limits.max_steps} steps are used", {}
        limits: dict[str, Any] = {"max_steps": min(subtask.max_steps or own.max_steps, steps)}
        if self.limits.max_tool_calls is not None:
            calls = self.limits.max_tool_calls - self.state.metadata["tool_calls"]
            if calls <= 0:
                return f"all {self.limits.max_tool_calls} tool calls are used", {}
            limits["max_tool_calls"] = min(own.max_tool_calls or calls, calls)
        return self._over, limits

    def _unused(self) -> Iterator[int]:
        """The steps that other subtasks, which are at work now, may still take."""
        for name, most in self.reserved.items():
            yield max(0, most - self.state.parts[name].steps)

    @property
    def _over(self) -> str:
        """The limit on time or tokens that the whole plan has reached, or ""."""
        tokens = (self.state.usage.prompt_tokens or 0) + (self.state.usage.completion_tokens or 0)
        if self.limits.max_seconds is not None and time.monotonic() - self.started >= self.limits.max_seconds:
            return f"all {self.limits.max_seconds:g} seconds are used"
        if self.limits.max_tokens is not None and tokens >= self.limits.max_tokens:
            return f"all {self.limits.max_tokens} tokens are used"
        return ""

    # -- synthesis

    def _synthesise(self) -> None:
        """The answer, from nothing but the goal, what was selected, and what went wrong."""
        state = self.state
        found = {
            name: {"answer": part.answer or "", "selected": [dict(option) for option in part.selected]}
            for name, part in state.parts.items()
            if part.selected or part.answer
        }
        variables = {"selections": found, "warnings": list(state.warnings), "money": state.money}
        prompt = self.planner.stages["synthesise"]
        result = self._run("synthesise", prompt, prompt.question or state.request, variables)
        state.answer = result.answer
        if result.answer is None:
            state.warn(f"synthesise: {_why(result)}; this is what was found")
            state.answer = "\n".join(f"{name}: {_told(each)}" for name, each in found.items()) or None
        failed = [part for part in state.parts.values() if part.status != "done"]
        state.stop_reason = "success" if result.ok and not failed else "partial" if state.answer else "failed"

    # -- runs of the loop

    def _run(
        self,
        key: str,
        prompt: Prompt,
        question: str,
        variables: Mapping[str, Any],
        *,
        each: Callable[[Run, Step], None] | None = None,
        limits: Mapping[str, Any] | None = None,
        allow: Sequence[str] | None = None,
    ) -> Result:
        """One stage. Raises ServerError when the model server gives up."""
        planner = self.planner
        past = self.past.traces[key].steps if self.past and key in self.past.traces else []
        scripted = isinstance(planner.model, PlanScript)
        model = planner.model.stage(key, len(past) + 1) if isinstance(planner.model, PlanScript) else planner.model
        settings = {**planner.settings, **(limits or {}), **({} if allow is None else {"allow": list(allow)})}
        tools = planner.tools if key.startswith("act ") else None
        offered = {"goal": self.state.goal, **variables}
        run = Agent(prompt, tools, model, **settings).steps(
            question,
            variables={name: value for name, value in offered.items() if name in prompt.names},
            on_text=None if scripted or planner.jobs > 1 else self.on_text,
            log=self.log,
            world=self.worlds(key) if self.worlds else None,
            past=past,
            calls=self.calls if each else None,
            name=key.partition(" ")[2],
        )
        if self.on_stage:
            with self.lock:
                self.on_stage(key, run)
        try:
            for step in run:
                self._take(key, run, step, each)
                if self.halted or (each and self._over):
                    iter(run).close()
        except Interrupted:
            self.state.traces[key] = run.trace
            raise
        result = run.result
        with self.lock:
            self.state.usage += result.usage
            for warning in result.warnings:
                self.state.warn(f"{key}: {warning}")
        if result.stop_reason in _SERVER_FAILED:
            raise ServerError(result.message)
        if self.halted:
            raise KeyboardInterrupt
        return result

    def _take(self, key: str, run: Run, step: Step, each: Callable[[Run, Step], None] | None) -> None:
        if each:
            each(run, step)
        with self.lock:
            self.state.traces[key] = run.trace
            if self.on_step:
                self.on_step(key, step)
            self._saved()

    def _saved(self) -> None:
        if self.save:
            with self.lock:
                self.save(self.state)


def plan_file(path: Path) -> Path:
    """The plan prompt that a path names, which may be that of its folder."""
    return path / "plan.j2" if path.is_dir() else path


def _told(found: Mapping[str, Any]) -> str:
    """What came of a subtask, in one line."""
    return found["answer"] or "; ".join(label(option, None) for option in found["selected"])


def _lost(part: Part) -> bool:
    return part.ended and part.status != "done"


def _why(result: Result) -> str:
    return f"{result.stop_reason} ({result.message})" if result.message else result.stop_reason


def _limits_in(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key in ("limits", "max_steps", "max_tool_calls")}
