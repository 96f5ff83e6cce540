"""Action -> the tool's result, inside the policy: the one place between what a model wants and what is done.

A `Gateway` belongs to one run. It knows the allowlist, the budgets, what was called before, and how each kind of
fault is to be answered; it raises `Mistake` for what the model should be told.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from .arguments import ArgumentError
from .errors import Mistake, did_you_mean
from .models.base import Usage
from .nearmiss import FINISH, named_tool
from .nearmiss import action as written_action
from .output import is_nothing, settled, text_of
from .parse import Action
from .repeats import stable_hash
from .settings import Limits, Settings
from .tools import ANSWER, Tool, Toolbox
from .worker import Worker

# What the engine's own texts put between the brackets of finish; a model that copies it has not answered.
PLACEHOLDER = "answer"
_MODEL_FAULTS = frozenset(["invalid_action", "tool_denied", "tool_missing", "tool_bad_args"])
_NOTICES = 3
BUDGETS = ("max_steps", "max_tool_calls", "max_seconds", "max_tokens", "max_cost")


World = Callable[[Tool, Mapping[str, Any], int], str | None]
"""Gives the result of a tool, its arguments and the number of the step from a record; None when it has none, and the
tool is to be run. Raises Mistake when the tool failed."""


@dataclass(frozen=True)
class Earlier:
    """A call that was made: by which run, in which of its steps, and what came of it."""

    run: str
    step: int
    arguments: Mapping[str, Any]
    result: str


Calls = MutableMapping[tuple[str, str], Earlier]
"""Calls that were made, by tool and hash of the arguments. Runs that share them do not repeat one another's."""


class Gateway:
    """One run's policy at work. `tools` are all that exist, `allowed` those the model may call, `world` answers for
    them when they are not to be run. Runs that share `calls` each have a `name`."""

    def __init__(
        self,
        tools: Toolbox,
        settings: Settings,
        *,
        world: World | None = None,
        calls: Calls | None = None,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tools = tools
        self.allowed = tools.offered(settings.allow, settings.answer)
        self.settings = settings
        self.limits: Limits = settings.limits
        self.clock = clock
        self.started = clock()
        self.calls = 0
        self.args_hash: str | None = None
        self.values: dict[str, Any] = {}
        self.over = ""  # the budget that is used up, once nothing but finish is carried out
        self.warnings: list[str] = []
        self.name = name
        self._earlier: Calls = {} if calls is None else calls
        self._notices: Counter[tuple[str, str]] = Counter()
        self._empty: Counter[str] = Counter()
        self._errors: list[Mistake] = []
        self._world = world
        self._worker: Worker | None = None

    # -- budgets

    @property
    def deadline(self) -> float | None:
        """When `max_seconds` is over, as a `time.monotonic()` value."""
        return None if self.limits.max_seconds is None else self.started + self.limits.max_seconds

    @property
    def out_of_time(self) -> bool:
        return self.deadline is not None and self.clock() >= self.deadline

    def spent_budget(self, steps: int, usage: Usage) -> str:
        """The budget that forbids a further step after `steps` steps that used `usage`, or ""."""
        limits = self.limits
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        if steps >= limits.max_steps:
            return "max_steps"
        if self.out_of_time:
            return "max_seconds"
        if limits.max_tokens is not None and tokens >= limits.max_tokens:
            return "max_tokens"
        if limits.max_cost is not None and self.cost(usage) >= limits.max_cost:
            return "max_cost"
        return ""

    def cost(self, usage: Usage) -> float:
        """What `usage` costs by the prompt's `prices`, which are per million tokens."""
        prices = self.settings.prices
        prompt = (usage.prompt_tokens or 0) * prices.get("prompt", 0.0)
        return (prompt + (usage.completion_tokens or 0) * prices.get("completion", 0.0)) / 1_000_000

    def remaining(self, steps: int) -> dict[str, Any]:
        """What is left of the budgets before step `steps + 1`, for prompts that show it."""
        left: dict[str, Any] = {"steps": self.limits.max_steps - steps}
        if self.limits.max_tool_calls is not None:
            left["tool_calls"] = self.limits.max_tool_calls - self.calls
        if self.deadline is not None:
            left["seconds"] = max(0.0, self.deadline - self.clock())
        return left

    # -- what to do about a mistake

    def verdict(self, mistake: Mistake) -> str:
        """The stop reason when the run ends over this mistake, or "" when the model is told and goes on."""
        if mistake.fault in _MODEL_FAULTS:
            self._errors.append(mistake)
        else:
            self._errors.clear()
        if mistake.fault == "budget" or self._policy(mistake.fault) == "stop" or mistake.fields.get("last"):
            return mistake.stop_reason
        if mistake.fault == "loop_detected" and mistake.fields["notices"] >= _NOTICES:
            return mistake.stop_reason
        if self.limits.max_errors is not None and len(self._errors) >= self.limits.max_errors:
            empty = all(error.message == "empty" for error in self._errors)
            return "invalid_action:empty" if empty else "invalid_action:repeated"
        return ""

    def _policy(self, fault: str) -> str:
        faults = self.settings.faults
        default = faults.get("tool_error", "observe") if fault == "tool_timeout" else "observe"
        return faults.get(fault, default)

    # -- actions

    def is_finish(self, action: Action) -> bool:
        return self.tools.resolve(action.tool) == FINISH

    def answer(self, action: Action) -> str:
        """The answer of a finish action; `values` are its fields where the prompt says what it consists of. Raises
        Mistake when there is none."""
        self.args_hash = None
        finish, written = self.allowed.finish, action.arguments.strip()
        try:
            values = finish.read(written)
        except ArgumentError as error:
            if finish is ANSWER or not written:
                raise self._bad_arguments("empty_answer", FINISH) from None
            raise self._unfit(finish, error) from None
        if finish is not ANSWER and written:
            self.values = values
            return written
        answer = str(values.get("answer", ""))
        if not answer.strip():
            raise self._bad_arguments("empty_answer", FINISH)
        if answer == PLACEHOLDER:
            raise self._bad_arguments("placeholder_answer", FINISH, answer=answer)
        return answer

    def call(self, action: Action, step: int) -> str:
        """Run the tool and return its result as text. Raises Mistake."""
        self.args_hash = None
        if self.over:
            raise Mistake("no_calls_left", fault="budget", stop_reason=self.over, calls=self.calls)
        tool = self._permitted(action)
        try:
            arguments = tool.read(action.arguments)
        except ArgumentError as error:
            raise self._unfit(tool, error) from None
        self.args_hash = stable_hash(arguments)
        key = self._key(tool, arguments, self.args_hash)
        self._refuse_repeat(tool, arguments, key)
        if self.limits.max_tool_calls is not None and self.calls >= self.limits.max_tool_calls:
            raise Mistake("no_calls_left", fault="budget", stop_reason="max_tool_calls", calls=self.calls)
        self.calls += 1
        result = self._tried(tool, arguments, step)
        self._errors.clear()
        self._earlier[key] = Earlier(self.name, step, arguments, result)
        self._refuse_nothing(tool, result)
        return result

    def _permitted(self, action: Action) -> Tool:
        name = self.tools.resolve(action.tool)
        if name is not None and name in self.allowed:
            return self.allowed[name]
        if name is not None:
            raise _refused("denied_tool", "tool_denied", name)
        if action.tool in (self.settings.allow or ()):
            raise _refused("missing_tool", "tool_missing", action.tool)
        callable_names = (*self.allowed, FINISH)
        meant = self.tools.resolve(named_tool(action.tool, lambda word: self.tools.resolve(word) in callable_names))
        near = did_you_mean(action.tool, [*self.allowed, FINISH]).removeprefix(" (did you mean ").removesuffix("?)")
        correction = written_action(meant, action.arguments) if meant else ""
        raise _refused("unknown_tool", "tool_missing", action.tool, near=near, correction=correction)

    def _unfit(self, tool: Tool, error: ArgumentError) -> Mistake:
        fields = {"problem": error.problem, "usage": tool.usage, "hint": error.expected}
        return self._bad_arguments("bad_arguments", tool.name, **fields)

    def _bad_arguments(self, message: str, tool: str, **fields: Any) -> Mistake:
        return Mistake(message, fault="tool_bad_args", stop_reason=f"tool_bad_args:{tool}", tool=tool, **fields)

    # -- repeats

    def is_repeat(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether a call would be refused because this run has made it before. One that another run has made is
        answered with what came of it there."""
        earlier = self._repeated(tool, self._key(tool, arguments))
        return earlier is not None and earlier.run == self.name

    def _repeated(self, tool: Tool, key: tuple[str, str]) -> Earlier | None:
        if tool.options.repeatable or self.settings.repeats.mode == "off":
            return None
        return self._earlier.get(key)

    def _key(self, tool: Tool, arguments: Mapping[str, Any], exact: str = "") -> tuple[str, str]:
        """What calls that repeat one another have in common. `exact` is the hash of the arguments, if it is known."""
        soft = self.settings.repeats.mode == "soft"
        return tool.name, stable_hash(arguments, self.settings.repeats) if soft else exact or stable_hash(arguments)

    def _refuse_repeat(self, tool: Tool, arguments: Mapping[str, Any], key: tuple[str, str]) -> None:
        earlier = self._repeated(tool, key)
        if earlier is None:
            return
        elsewhere = earlier.run != self.name
        # The result may not be above, or only shortened.
        repeated = tool.options.pure or elsewhere or self.settings.context == "elide"
        self._notices[key] += 1
        raise Mistake(
            "repeat",
            fault="loop_detected",
            stop_reason="loop_detected",
            tool=tool.name,
            step=earlier.step,
            run=earlier.run if elsewhere else "",
            notices=self._notices[key],
            similar=earlier.arguments != arguments,
            result=earlier.result if repeated else None,
            others=[name for name in self.allowed if name != tool.name],
        )

    # -- running a tool

    def _tried(self, tool: Tool, arguments: Mapping[str, Any], step: int) -> str:
        """The result of a call. One that gives none in time is made once more where the prompt wants that."""
        try:
            return self._once(tool, arguments, step)
        except Mistake as mistake:
            if mistake.fault != "tool_timeout" or self._policy("tool_timeout") != "retry" or self.out_of_time:
                raise
        self.warnings.append(f"{tool.name} gave no result in time and was called once more")
        try:
            return self._once(tool, arguments, step)
        except Mistake as mistake:
            mistake.fields["last"] = mistake.fault == "tool_timeout"
            raise

    def _once(self, tool: Tool, arguments: Mapping[str, Any], step: int) -> str:
        result = self._world(tool, arguments, step) if self._world else None
        return self._run(tool, arguments) if result is None else result

    def _refuse_nothing(self, tool: Tool, result: str) -> None:
        """An empty result is a mistake where the prompt has a policy for it."""
        if not is_nothing(result):
            del self._empty[tool.name]
        elif (policy := self._policy("empty_result")) != "observe":
            self._empty[tool.name] += 1
            last = policy == "adjust" and self._empty[tool.name] > 1
            reason = f"empty_result:{tool.name}"
            raise Mistake(
                "empty_result", fault="empty_result", stop_reason=reason, tool=tool.name, result=result, last=last
            )

    def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        seconds = tool.options.timeout or self.limits.tool_timeout
        allowed = seconds
        if self.deadline is not None:
            left = max(0.0, self.deadline - self.clock())
            allowed = left if seconds is None else min(seconds, left)
        worker, self._worker = self._worker or Worker.take(), None
        try:
            result, error = worker.run(lambda: text_of(settled(tool.function(**arguments))), allowed)
        except TimeoutError:
            # The thread is left to itself; a result that comes later has nowhere to go.
            raise tool_failed("tool_timeout", tool.name, seconds=f"{allowed:g}") from None
        self._worker = worker
        if error is None:
            return str(result)
        if not isinstance(error, Exception):
            raise error  # KeyboardInterrupt and SystemExit are for the caller
        raise tool_failed("tool_raised", tool.name, type=type(error).__name__, text=text_of(_message(error)))

    def close(self) -> None:
        """Give the worker thread back."""
        if self._worker is not None:
            self._worker.give_back()
            self._worker = None


def _refused(message: str, fault: str, tool: str, **fields: Any) -> Mistake:
    return Mistake(message, fault=fault, stop_reason=f"{fault}:{tool}", tool=tool, **fields)


def tool_failed(message: str, tool: str, **fields: Any) -> Mistake:
    """A tool that raised (`tool_raised`: `type`, `text`) or gave no result in time (`tool_timeout`: `seconds`)."""
    fault = "tool_timeout" if message == "tool_timeout" else "tool_error"
    return Mistake(message, fault=fault, stop_reason=f"tool_error:{tool}", tool=tool, **fields)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception whose own __str__ fails still has to be reported
        return "(no message)"
