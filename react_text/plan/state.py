"""The state of a plan: one object, printable, and a file from which a plan that was killed goes on.

A `.plan` file is YAML. What a run needs to go on are the request and the traces in it, each a whole `.trace` file; the
rest is for people, and for the comparison with a golden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from ..errors import AuthorError
from ..files import write
from ..frontmatter import read_yaml
from ..models.base import Usage
from ..plan_settings import Budget
from ..subtasks import Subtask
from ..trace import Trace
from .options import Option, cost, label

Status = Literal["pending", "in_progress", "done", "failed", "skipped"]
_FORMAT = 1


@dataclass
class Part:
    """A subtask and what has come of it.

    reason    why it failed or was skipped
    results   one line on each call
    options   what the tools have offered, by id
    selected  the options that were picked, in full
    """

    subtask: Subtask
    status: Status = "pending"
    reason: str = ""
    answer: str | None = None
    steps: int = 0
    calls: int = 0
    results: list[str] = field(default_factory=list)
    options: dict[str, Option] = field(default_factory=dict)
    selected: list[Option] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.status in ("done", "failed", "skipped")


@dataclass
class PlanState:
    """A plan at work. `traces` holds the trace of each stage, by its key: `goal`, `plan`, `act flights`,
    `interpret flights 1`, `synthesise`."""

    request: str
    prompt: str | None = None
    interpret: bool = False
    max_steps: int = 0
    budget: Budget | None = None
    goal: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    answer: str | None = None
    stop_reason: str = ""
    usage: Usage = field(default_factory=Usage)

    def warn(self, warning: str) -> None:
        """Note what the result has to say, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    # -- what can be said about it

    @property
    def steps(self) -> int:
        return sum(part.steps for part in self.parts.values())

    @property
    def waiting(self) -> list[Part]:
        """The subtasks that have not begun."""
        return [part for part in self.parts.values() if part.status == "pending"]

    @property
    def selections(self) -> dict[str, list[Option]]:
        """The options that were picked, by subtask."""
        return {name: part.selected for name, part in self.parts.items() if part.selected}

    @property
    def total(self) -> float | None:
        """What may be spent; None where the request does not say."""
        value = self.goal.get(self.budget.total) if self.budget else None
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def spending(self) -> dict[str, float]:
        """What the selected options of each subtask cost; one that is selected twice counts once."""
        spent: dict[str, float] = {}
        seen: set[str] = set()
        for name, options in self.selections.items() if self.budget else ():
            own = {str(option["id"]): option for option in options if str(option["id"]) not in seen}
            seen |= own.keys()
            spent[name] = sum(cost(option, self.budget.cost) for option in own.values()) if self.budget else 0.0
        return {name: amount for name, amount in spent.items() if amount}

    @property
    def money(self) -> dict[str, Any] | None:
        """The budget: `total`, `spent`, `left`, and what each subtask has spent. None where there is none."""
        if self.budget is None or self.total is None:
            return None
        spent = sum(self.spending.values())
        amounts = {"total": self.total, "spent": spent, "left": self.total - spent}
        return plain({**amounts, "unit": self.budget.unit, "parts": self.spending})  # type: ignore[no-any-return]

    @property
    def metadata(self) -> dict[str, Any]:
        """Steps taken, subtasks by what has become of them, tool calls made."""
        statuses = [part.status for part in self.parts.values()]
        return {
            "steps": self.steps,
            "max_steps": self.max_steps,
            "subtasks": {word: statuses.count(word) for word in dict.fromkeys(statuses)},
            "tool_calls": sum(part.calls for part in self.parts.values()),
        }

    def view(self, name: str) -> dict[str, Any]:
        """What the prompts of a subtask show of the state."""
        field = self.budget.cost if self.budget else None
        part = self.parts[name]
        return {
            "steps_used": self.steps - part.steps,
            "max_steps": self.max_steps,
            "open": [each for each, other in self.parts.items() if not other.ended and each != name],
            "selected": {each: ", ".join(label(o, field) for o in found) for each, found in self.selections.items()},
            "answers": {each: other.answer for each, other in self.parts.items() if other.answer},
            "money": self.money,
            "results": list(part.results),
        }  # fmt: skip

    # -- as a file

    def as_dict(self) -> dict[str, Any]:
        """Everything about the plan, as YAML and JSON can hold it."""
        data: dict[str, Any] = {
            "format": _FORMAT,
            "prompt": self.prompt,
            "request": self.request,
            "interpret": self.interpret or None,
            "stop_reason": self.stop_reason or None,
            "answer": self.answer,
            "warnings": list(self.warnings),
            "money": self.money,
            "metadata": self.metadata,
            "goal": self.goal,
            "subtasks": {name: dict(_facts(part)) for name, part in self.parts.items()},
            "traces": {key: trace.dump().decode() for key, trace in self.traces.items()},
        }
        return plain({key: value for key, value in data.items() if value not in (None, [], {})})  # type: ignore[no-any-return]

    def dump(self) -> str:
        """The text of a `.plan` file. Nothing in it changes from one run to the next unless the run does."""
        return yaml.dump(self.as_dict(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write(path, self.dump().encode("utf-8", "surrogatepass"))

    @classmethod
    def load(cls, path: Path) -> PlanState:
        """The request and the traces of a file. Raises AuthorError."""
        data = read_yaml(path, lambda text: yaml.load(text, Loader=_LOADER))
        if not isinstance(data, dict) or data.get("format") != _FORMAT or "request" not in data:
            raise AuthorError("this is no recorded plan: it has no `format: 1` and `request`", path=path)
        traces = data.get("traces") or {}
        if not isinstance(traces, dict):
            raise AuthorError("traces must be a mapping of stages to traces", path=path)
        found = {str(key): _trace(text, path, str(key)) for key, text in traces.items()}
        return cls(str(data["request"]), data.get("prompt"), data.get("interpret") is True, traces=found)


def _facts(part: Part) -> Iterator[tuple[str, Any]]:
    task = part.subtask
    for key, value in {
        "task": task.task, "after": list(task.after), "needs": list(task.needs), "status": part.status,
        "reason": part.reason, "steps": part.steps, "calls": part.calls, "answer": part.answer,
        "results": part.results, "selected": [dict(option) for option in part.selected],
    }.items():  # fmt: skip
        if value not in (None, "", [], 0):
            yield key, value


def _trace(text: Any, path: Path, key: str) -> Trace:
    try:
        return Trace.load(str(text).encode())
    except AuthorError as error:
        raise AuthorError(f"the trace of {key!r}: {error.message}", path=path) from None


def plain(value: Any) -> Any:
    """Numbers without a needless `.0`; dates and the like as texts."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """YAML in which a text of several lines stays readable."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
