"""`Planner`: a request on its way through the stages, each a run of the loop with a prompt of its own.

    request ─goal─► fields ─plan─► subtasks ─act, each─► selections ─synthesise─► answer

What fails is failed and said so: a subtask that finds nothing leaves a warning, and the others go on. Only a model
server that does not answer ends a plan early, and it can go on from the state that is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ..errors import AuthorError, ServerError
from ..gateway import Calls
from ..loop import Run
from ..models import open_model
from ..models.base import Model
from ..plan_settings import STAGES, PlanSettings, load_plan
from ..prompt import Prompt
from ..result import Result, Step
from ..subtasks import Subtask, salvaged
from ..templates import BUILT_IN
from .goal import checked_goal
from .options import label, options_in, picked, summary
from .script import PlanScript
from .shares import Shares
from .stages import Outside, Stages
from .state import Part, PlanState, Status, plain

Given = tuple[Mapping[str, Any] | None, tuple[Subtask, ...]]


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
        self.prompts = {name: self._stage_prompt(name) for name in STAGES}
        self.model = model if isinstance(model, PlanScript) else open_model(model)
        self.tools = tools
        self.jobs = jobs
        self.interpret = self.plan.interpret if interpret is None else interpret
        self.settings = settings
        self.given: Given = load_plan(self.plan.file) if self.plan.file else (None, ())

    def run(self, request: str | None = None, *, file: Path | None = None, **outside: Any) -> PlanState:
        """Carry out a request (the prompt's default when None) and return the state it has come to.

        `file` is a YAML plan in place of the model's; the other keywords are those of `Outside`. Raises AuthorError,
        and KeyboardInterrupt on Ctrl-C.
        """
        around = Outside(**outside)
        request = around.past.request if around.past else self.prompt.question if request is None else request
        if request is None:
            raise AuthorError("no request was given, and the prompt has no default `question`", path=self.prompt.path)
        limits, budget = self.plan.limits, self.plan.budget
        state = PlanState(request, self.prompt.project_path, self.interpret, limits.max_steps, budget)
        return _Work(self, state, load_plan(file) if file else self.given, around).done()

    def _stage_prompt(self, name: str) -> Prompt:
        """The prompt of a stage: the one that is named, the one beside the plan prompt, or the package's own."""
        named = (self.plan.stages or {}).get(name)
        beside = self.prompt.path.parent / f"{name}.j2" if self.prompt.path else BUILT_IN
        return Prompt.load(named or (beside if beside.is_file() else BUILT_IN / "plan" / f"{name}.j2"))


def plan_file(path: Path) -> Path:
    """The plan prompt that a path names, which may be that of its folder."""
    return path / "plan.j2" if path.is_dir() else path


class _Work:
    """One plan at work."""

    def __init__(self, planner: Planner, state: PlanState, given: Given, outside: Outside) -> None:
        self.planner, self.state, self.given = planner, state, given
        self.stages = Stages(state, planner.model, planner.settings, outside)
        self.shares = Shares(planner.plan.limits, state)
        self.lock = self.stages.lock
        self.calls: Calls = {}

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
            self.stages.halted = True
            self.state.stop_reason = "interrupted"
            raise
        finally:
            self.stages.save()
        return self.state

    # -- goal and plan

    def _goal(self) -> None:
        goal, request = self.given[0], self.state.request
        if goal is None:
            result = self.stages.run("goal", self.planner.prompts["goal"], request, {})
            if not result.ok:
                self.state.warn(f"goal: {_why(result)}; nothing is known about it but the request")
            goal, left_open = checked_goal(result.values, request, self.planner.plan.derived)
            for warning in left_open:
                self.state.warn(f"goal: {warning}")
        self.state.goal = plain(goal)

    def _plan(self) -> None:
        subtasks = self.given[1]
        if not subtasks:
            result = self.stages.run("plan", self.planner.prompt, self.state.request, {})
            found = next((value for value in result.values.values() if isinstance(value, tuple)), ())
            subtasks = self.planner.plan.completed(found or self._salvaged(result))
        self.state.parts = {each.id: Part(each) for each in subtasks}
        self.stages.save()

    def _salvaged(self, result: Result) -> tuple[Subtask, ...]:
        """The subtasks when the model has made no plan that is right."""
        last = result.steps[-1].arguments if result.steps else None
        found = salvaged(last or "", [each.id for each in self.planner.plan.subtasks])
        used = "what could be read of it is used" if found else "the request is one subtask"
        self.state.warn(f"plan: {_why(result)}; {used}")
        return found or (Subtask("request", self.state.request),)

    # -- subtasks

    def _subtasks(self) -> None:
        """Work on each subtask as soon as what it waits for has ended."""
        if self.planner.jobs == 1:
            while ready := self._ready():
                self._act(ready[0])
            return
        with ThreadPoolExecutor(self.planner.jobs) as pool:
            running: set[Future[None]] = set()
            try:
                while True:
                    for part in self._ready():
                        part.status = "in_progress"
                        running.add(pool.submit(self._act, part))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
            except BaseException:
                self.stages.halted = True
                raise

    def _ready(self) -> list[Part]:
        """The subtasks that can begin now. Those that never can are skipped."""
        parts = self.state.parts
        for part in self.state.waiting:
            lost = next((name for name in part.subtask.needs if parts[name].status in ("failed", "skipped")), None)
            if lost is not None:
                self._end(part, "skipped", f"it needs {lost}, which is not done")
                return self._ready()  # others may need this one
        return [part for part in self.state.waiting if all(parts[name].ended for name in part.subtask.waits_for)]

    def _act(self, part: Part) -> None:
        """One subtask: a run of the loop, whose prompts show the state as it is now."""
        subtask, prompt = part.subtask, self.planner.prompts["act"]
        own = prompt.settings.override(**self.planner.settings).limits
        with self.lock:
            used_up, share = self.shares.take(subtask.id, subtask.max_steps or own.max_steps, own.max_tool_calls)
            if used_up:
                self._end(part, "failed", f"not begun: {used_up}")
                return
            part.status = "in_progress"
        try:
            result = self.stages.run(
                f"act {subtask.id}",
                prompt,
                subtask.task,
                {"subtask": subtask.id, "state": self.state.view(subtask.id)},
                tools=self.planner.tools,
                each=lambda run, step: self._after_step(part, run, step),
                calls=self.calls,
                **share,
                **({} if subtask.tools is None else {"allow": list(subtask.tools)}),
            )
        finally:
            self.shares.give_back(subtask.id)
        with self.lock:
            part.answer = result.answer
            part.selected = picked(result.answer or "", part.options.values()) or part.selected
            self._end(part, "done" if result.ok else "failed", "" if result.ok else self.shares.over or _why(result))

    def _after_step(self, part: Part, run: Run, step: Step) -> bool:
        """Take down what a step has brought, and show it in the next prompt. Whether the time for all is over."""
        with self.lock:
            part.steps, part.calls = step.number, run.gateway.calls
            called = step.observation is not None and step.error in ("", "empty_result", "repeat")
            if called:
                part.results.append(summary(step))
                part.options |= {str(option["id"]): option for option in options_in(step.observation or "")}
        if called and step.ok and self.planner.interpret:
            self._interpret(part, step)
        with self.lock:
            run.prompt.now(state=self.state.view(part.subtask.id))
        return bool(self.shares.over)

    def _interpret(self, part: Part, step: Step) -> None:
        """A completion of its own on what a result is worth."""
        name, prompt = part.subtask.id, self.planner.prompts["interpret"]
        seen = {"call": f"{step.tool}[{step.arguments}]", "result": step.observation, "state": self.state.view(name)}
        result = self.stages.run(f"interpret {name} {step.number}", prompt, part.subtask.task, seen)
        with self.lock:
            if not result.ok:
                self.state.warn(f"{name}: a result was not judged: {_why(result)}")
                return
            choice = part.options.get(str(result.values.get("pick")))
            part.selected = part.selected if choice is None else [choice]
            verdict = [f"picked {label(choice)}"] if choice else [] if result.values.get("useful") else ["of no use"]
            verdict += [str(result.values[key]) for key in ("why", "again") if result.values.get(key)]
            part.results[-1] += f" ({'; '.join(verdict)})"

    def _end(self, part: Part, status: Status, reason: str = "") -> None:
        part.status, part.reason = status, reason
        if status != "done":
            self.state.warn(f"{part.subtask.id}: {status}: {reason}")
        money = self.state.money
        if money and money["left"] < 0:
            self.state.warn(f"the selections cost {money['spent']} of {money['total']} {money['unit']}".rstrip())
        self.stages.save()

    # -- synthesis

    def _synthesise(self) -> None:
        """The answer, from nothing but the goal, what was selected, and what went wrong."""
        state, prompt = self.state, self.planner.prompts["synthesise"]
        found = {
            name: {"answer": part.answer or "", "selected": [dict(option) for option in part.selected]}
            for name, part in state.parts.items()
            if part.selected or part.answer
        }
        variables = {"selections": found, "warnings": list(state.warnings), "money": state.money}
        result = self.stages.run("synthesise", prompt, prompt.question or state.request, variables)
        state.answer = result.answer
        if result.answer is None:
            state.warn(f"synthesise: {_why(result)}; this is what was found")
            state.answer = "\n".join(f"{name}: {_told(part)}" for name, part in state.parts.items() if name in found)
        well = result.ok and all(part.status == "done" for part in state.parts.values())
        state.stop_reason = "success" if well else "partial" if state.answer else "failed"


def _told(part: Part) -> str:
    """What came of a subtask, in one line."""
    return part.answer or "; ".join(map(label, part.selected))


def _why(result: Result) -> str:
    return f"{result.stop_reason} ({result.message})" if result.message else result.stop_reason
