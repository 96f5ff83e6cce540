"""The subtasks of a plan: read from a line that a model writes or from a YAML mapping, and checked.

A model writes them in one text, `flights: Find return flights; hotel: Find a hotel (after flights)`; line breaks do for
semicolons. `after` waits for a subtask to end, however; `needs` wants it to have been done, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from .arguments import ArgumentError
from .conversion import Shape
from .errors import AuthorError, did_you_mean

_KEYS = ("task", "after", "needs", "tools", "max_steps")
_ID = r"[A-Za-z_][A-Za-z0-9_]{0,30}"
_WAITS = re.compile(rf"\s*\((after|needs) ({_ID}(?:, ?{_ID})*)\)\s*$", re.I)
_LINE = re.compile(rf"(?:[-*]|\d+[.)])?\s*({_ID})\s*:\s*(\S.*)", re.S)
FORM = "`id: what to do (after id, id)`, with a semicolon between two subtasks"


@dataclass(frozen=True)
class Subtask:
    """One part of a plan.

    id, task   its name, and what is to be done, in words
    after      begins when these have ended, done or not
    needs      begins when these are done, and is skipped when one of them is not
    tools      the tools that it may call; None for all of the prompt's
    max_steps  turns of the model; None for the prompt's own limit
    """

    id: str
    task: str
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    max_steps: int | None = None

    @property
    def waits_for(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.needs, *self.after)))

    def __str__(self) -> str:
        """The subtask as a model writes it."""
        waits = [f" ({word} {', '.join(ids)})" for word, ids in (("needs", self.needs), ("after", self.after)) if ids]
        return f"{self.id}: {self.task}{''.join(waits)}"


def plan_type(ids: Sequence[str] = ()) -> Any:
    """The annotation of an argument that holds subtasks; with `ids`, no others are taken. Its values are tuples of
    Subtask."""
    name = "|".join(ids) or _ID
    waits = rf"( \((after|needs) ({name})(, ({name})){{0,9}}\))?"
    one = rf"({name}): [A-Za-z0-9][A-Za-z0-9 ,./-]{{1,120}}[A-Za-z0-9]{waits}"
    return Annotated[str, Shape(rf"{one}(; {one}){{0,9}}"), Reader(tuple(ids))]


@dataclass(frozen=True)
class Reader:
    """Text -> subtasks. Raises ArgumentError in words for the model."""

    ids: tuple[str, ...] = ()

    def __call__(self, text: str) -> tuple[Subtask, ...]:
        subtasks = tuple(map(self.one, _parts(text)))
        problem = wrong(subtasks, self.ids) if subtasks else "there are no subtasks"
        if problem:
            raise ArgumentError(problem, "subtasks", text, FORM)
        return subtasks

    def one(self, text: str) -> Subtask:
        """A single subtask."""
        waits: dict[str, tuple[str, ...]] = {"after": (), "needs": ()}
        rest = text.rstrip(" .")
        while found := _WAITS.search(rest):
            waits[found[1].lower()] += tuple(each.strip() for each in found[2].split(","))
            rest = rest[: found.start()]
        line = _LINE.fullmatch(rest)
        if line is None:
            raise ArgumentError(f"{text[:60]!r} is not of the form {FORM}", "subtasks", text, FORM)
        return Subtask(line[1], line[2].strip(), waits["after"], waits["needs"])


def salvaged(text: str, ids: Sequence[str] = ()) -> tuple[Subtask, ...]:
    """What can be used of a plan that is wrong: the subtasks that can be read and are known, each once, and what they
    wait for as far as it is there. None of that where they would wait for one another."""
    reader = Reader()
    found: dict[str, Subtask] = {}
    for part in _parts(text):
        try:
            subtask = reader.one(part)
        except ArgumentError:
            continue
        if not ids or subtask.id in ids:
            found.setdefault(subtask.id, subtask)
    kept = [_waiting_for(each, found.keys() - {each.id}) for each in found.values()]
    return tuple(_waiting_for(each, set()) for each in kept) if wrong(kept) else tuple(kept)


def _parts(text: str) -> list[str]:
    """The subtasks of a text, each for itself."""
    return [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]


def _waiting_for(subtask: Subtask, known: Collection[str]) -> Subtask:
    after, needs = (tuple(name for name in names if name in known) for names in (subtask.after, subtask.needs))
    return replace(subtask, after=after, needs=needs)


def wrong(subtasks: Iterable[Subtask], ids: Sequence[str] = ()) -> str:
    """What is wrong with a plan: a name given twice or not known, or a circle of subtasks that wait for one another.
    "" when nothing is."""
    found: dict[str, Subtask] = {}
    for each in subtasks:
        if ids and each.id not in ids:
            return f"there is no subtask {each.id!r}{did_you_mean(each.id, ids)}; the subtasks are {', '.join(ids)}"
        if each.id in found:
            return f"subtask {each.id!r} is given twice"
        found[each.id] = each
    for each in found.values():
        for name in each.waits_for:
            if name not in found:
                return f"{each.id} waits for {name!r}, which is not in the plan{did_you_mean(name, found)}"
    try:
        TopologicalSorter({each.id: each.waits_for for each in found.values()}).prepare()
    except CycleError as error:
        return f"these subtasks wait for one another: {' -> '.join(reversed(error.args[1]))}"
    return ""


def subtask_of(name: str, value: Any) -> Subtask:
    """A subtask as a YAML mapping holds it: its task alone, or a mapping with the keys of `Subtask`. Raises
    AuthorError."""
    if not re.fullmatch(_ID, name):
        raise AuthorError(f"subtask {name!r}: a name is one word of letters, digits and _")
    given = {"task": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise AuthorError(f"subtask {name}: needs a task, or a mapping with {', '.join(_KEYS)}")
    for key in given:
        if key not in _KEYS:
            raise AuthorError(f"subtask {name}: unknown key {key!r}{did_you_mean(str(key), _KEYS)}")
    steps = given.get("max_steps")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise AuthorError(f"subtask {name}: max_steps must be a whole number above 0, not {steps!r}")
    tools = None if given.get("tools") is None else _names(name, given, "tools")
    return Subtask(
        name, str(given.get("task") or ""), _names(name, given, "after"), _names(name, given, "needs"), tools, steps
    )


def _names(name: str, given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = given.get(key)
    items = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(each, str) for each in items):
        raise AuthorError(f"subtask {name}: {key} must be a list of names")
    return tuple(items)
