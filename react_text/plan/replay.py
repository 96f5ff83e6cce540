"""A recorded plan as a golden: the same turns, and what they lead to today, stage by stage."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..errors import AuthorError
from ..frontmatter import read_text
from ..match import Change, compare
from ..matching import Matching
from .run import Planner
from .script import PlanScript
from .state import PlanState

SUFFIX = ".plan"


@dataclass(frozen=True)
class PlanOutcome:
    """What a check of a recorded plan came to: the file, what has changed, and the text that it would have today."""

    path: Path
    check: str
    changes: tuple[Change, ...]
    text: str

    @property
    def ok(self) -> bool:
        return not self.changes

    @property
    def report(self) -> list[str]:
        """The changes, and the lines in which file and text differ."""
        lines = [f"{self.path} ({self.check})", *(f"  {change.message} [{change.category}]" for change in self.changes)]
        return lines + [f"    {line}" for line in difference(read_text(self.path), self.text)]


@dataclass(frozen=True)
class PlanCase:
    """A `.plan` file as a test."""

    path: Path
    is_test: bool = field(default=True, init=False)

    @cached_property
    def recorded(self) -> PlanState:
        """Raises AuthorError."""
        return PlanState.load(self.path)

    @cached_property
    def prompt(self) -> Path:
        """The plan's prompt, from the nearest folder above that has it. Raises AuthorError."""
        name = self.recorded.prompt
        if not name:
            raise AuthorError("this plan names no prompt", path=self.path)
        found = next((p / name for p in self.path.resolve().parents if (p / name).is_file()), None)
        if found is None:
            raise AuthorError(f"prompt {name!r} is not found in a folder above", path=self.path)
        return found

    @property
    def files(self) -> tuple[Path, ...]:
        """What the plan depends on: itself, the prompts of its stages, their templates, tools and few-shots. Raises
        AuthorError."""
        planner = Planner(self.prompt, PlanScript(self.recorded))
        prompts = [planner.prompt, *planner.prompts.values()]
        found = {self.path: None} | dict.fromkeys(filter(None, [planner.plan.file]))
        for prompt in prompts:
            found |= dict.fromkeys([*(Path(path) for path, _ in prompt.trees), *prompt.tools, *prompt.examples])
        return tuple(found)

    def replay(self) -> PlanOutcome:
        """The check without a network. Raises AuthorError."""
        return self.check("replay")

    def check(self, check: str) -> PlanOutcome:
        """Play the plan: `replay` takes the tools' results from the file, `tools` runs them. Raises AuthorError."""
        script = PlanScript(self.recorded, f"scripted:{self.path.name}")
        planner = Planner(self.prompt, script, interpret=self.recorded.interpret)
        worlds = script.world if check == "replay" else script.timeouts
        actual = planner.run(self.recorded.request, worlds=worlds)
        text = actual.dump()
        return PlanOutcome(self.path, check, tuple(changes(self.recorded, actual, read_text(self.path) != text)), text)


def changes(expected: PlanState, actual: PlanState, differ: bool) -> Iterator[Change]:
    """What has changed between two states of a plan, stage by stage; `format` where it is nothing but their files."""
    found = False
    for key in dict.fromkeys((*expected.traces, *actual.traces)):
        for change in _of_stage(key, expected, actual):
            found = True
            yield replace(change, message=f"{key}: {change.message}")
    if differ and not found:
        yield Change("format", 0, "the files differ in what they say about the plan")


def changes_between(golden: Path, other: Path) -> list[Change]:
    """The same for two files. Raises AuthorError."""
    differ = read_text(golden) != read_text(other)
    return list(changes(PlanState.load(golden), PlanState.load(other), differ))


def difference(before: str, now: str) -> list[str]:
    """The lines in which two texts differ, each with those around it."""
    lines = before.split("\n"), now.split("\n")
    return list(difflib.unified_diff(*lines, "recorded", "now", lineterm="", n=1))


def _of_stage(key: str, expected: PlanState, actual: PlanState) -> Iterator[Change]:
    one, other = expected.traces.get(key), actual.traces.get(key)
    if one is None or other is None:
        yield Change(
            "path", 0, "is new" if one is None else "is not reached any more", "run" if one is None else "golden"
        )
        return
    if one.meta.get("prompt_hash") != other.meta.get("prompt_hash"):
        yield Change("prompt", 0, "the rendered head is another text now")
    yield from compare(one, other, matching=Matching())
