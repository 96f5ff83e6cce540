"""The `plan:` key of a prompt's front matter, and plans that are given as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from .errors import AuthorError, did_you_mean
from .frontmatter import Head, read_yaml
from .settings import Limits, make_limits
from .subtasks import Subtask, subtask_of, wrong

STAGES = ("goal", "act", "interpret", "synthesise")
_KEYS = ("subtasks", "file", "limits", "budget", "interpret", "derived", "stages", "demo")
_BUDGET = ("total", "cost", "unit")
_MOST_STEPS = 25


@dataclass(frozen=True)
class Budget:
    """Money, or what else is spent: `total` is the field of the goal that holds it, `cost` the field of an option that
    counts against it."""

    total: str
    cost: str
    unit: str = ""


@dataclass(frozen=True)
class PlanSettings:
    """How a plan runs.

    subtasks   what its subtasks may call, how long they may take, what they always wait for
    file       a YAML plan, in place of one that the model makes
    limits     of all subtasks together
    budget     None where nothing is spent
    interpret  whether a completion of its own judges each result
    derived    fields of the goal that may hold more than what the request says
    stages     prompt files, by stage; the package's own otherwise
    demo       a recorded plan that is played when there is no model server
    """

    subtasks: tuple[Subtask, ...] = ()
    file: Path | None = None
    limits: Limits = field(default_factory=lambda: Limits(max_steps=_MOST_STEPS))
    budget: Budget | None = None
    interpret: bool = False
    derived: tuple[str, ...] = ()
    stages: Mapping[str, Path] | None = None
    demo: Path | None = None

    @classmethod
    def from_head(cls, head: Head) -> PlanSettings:
        """Raises AuthorError with the line of the key."""
        folder = Path(head.path or "").parent
        given = head.mapping("plan", _KEYS)
        try:
            stages = {str(name): folder / str(path) for name, path in dict(given.get("stages") or {}).items()}
            for name in stages:
                if name not in STAGES:
                    raise AuthorError(f"plan: unknown stage {name!r}{did_you_mean(name, STAGES)}")
            return cls(
                subtasks=tuple(subtask_of(name, value) for name, value in dict(given.get("subtasks") or {}).items()),
                file=folder / str(given["file"]) if given.get("file") else None,
                limits=make_limits({"max_steps": _MOST_STEPS, **dict(given.get("limits") or {})}),
                budget=_budget(given.get("budget")),
                interpret=_flag(given.get("interpret", False)),
                derived=tuple(given.get("derived") or ()),
                stages=stages,
                demo=folder / str(given["demo"]) if given.get("demo") else None,
            )
        except AuthorError as error:
            raise error if error.path else head.error("plan", error.message) from None
        except (TypeError, ValueError):
            raise head.error("plan", "plan: subtasks, limits and stages are mappings, derived is a list") from None

    def completed(self, subtasks: tuple[Subtask, ...]) -> tuple[Subtask, ...]:
        """Subtasks of a model's plan with what is declared for them. Where both together make a circle, what is
        declared holds."""
        known = {each.id for each in subtasks}
        found = tuple(self._with_declared(each, known) for each in subtasks)
        if wrong(found):
            found = tuple(self._with_declared(replace(each, after=(), needs=()), known) for each in subtasks)
        return found

    def _with_declared(self, own: Subtask, known: set[str]) -> Subtask:
        declared = next((each for each in self.subtasks if each.id == own.id), Subtask(own.id, ""))
        needs = [name for name in dict.fromkeys((*own.needs, *declared.needs)) if name in known]
        after = [name for name in dict.fromkeys((*own.after, *declared.after)) if name in known and name not in needs]
        return replace(declared, task=own.task or declared.task, needs=tuple(needs), after=tuple(after))


def load_plan(path: Path) -> tuple[dict[str, Any] | None, tuple[Subtask, ...]]:
    """The goal, if it is given, and the subtasks of a YAML file: keys `subtasks` and perhaps `goal`. Raises
    AuthorError."""
    root, data = read_yaml(path, lambda text: (yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)))
    if not isinstance(data, dict) or not isinstance(data.get("subtasks"), dict):
        raise AuthorError("a plan needs `subtasks:`, a mapping of names to tasks", path=path)
    lines = _lines(root)
    for key in data:
        if key not in ("goal", "subtasks"):
            raise AuthorError(
                f"unknown key {key!r}{did_you_mean(str(key), ('goal', 'subtasks'))}", path=path, line=lines.get(key)
            )
    subtasks: list[Subtask] = []
    for name, value in data["subtasks"].items():
        try:
            subtasks.append(subtask_of(str(name), value))
        except AuthorError as error:
            raise AuthorError(error.message, path=path, line=lines.get(f"subtasks.{name}")) from None
        if not subtasks[-1].task:
            raise AuthorError(f"subtask {name}: needs a task", path=path, line=lines.get(f"subtasks.{name}"))
    problem = wrong(subtasks)
    if problem:
        first = next((each.id for each in subtasks if each.id in problem.split()), "")
        raise AuthorError(problem, path=path, line=lines.get(f"subtasks.{first}", lines["subtasks"]))
    goal = data.get("goal")
    if goal is not None and not isinstance(goal, dict):
        raise AuthorError("goal must be a mapping of fields to values", path=path, line=lines.get("goal"))
    return goal, tuple(subtasks)


def _lines(root: Any) -> dict[str, int]:
    """The line of each key, and of the keys below `subtasks`."""
    lines: dict[str, int] = {}
    for key, node in root.value:
        lines[key.value] = key.start_mark.line + 1
        if key.value == "subtasks":
            lines |= {f"subtasks.{name.value}": name.start_mark.line + 1 for name, _ in node.value}
    return lines


def _budget(value: Any) -> Budget | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not {"total", "cost"} <= set(value) <= set(_BUDGET):
        raise AuthorError("plan: budget must be {total: FIELD OF THE GOAL, cost: FIELD OF AN OPTION, unit: WORD}")
    return Budget(**{key: str(text) for key, text in value.items()})


def _flag(value: Any) -> bool:
    if value not in (True, False):
        raise AuthorError(f"plan: interpret must be true or false, not {value!r}")
    return bool(value)
