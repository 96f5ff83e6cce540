"""A template -> what it extends, includes and imports that it should not, or that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jinja2

from ..templates import environment, find_source, references


class BadReference(NamedTuple):
    """A tag that refers to a trace (RT503), to nothing, or back to where it came from (RT507)."""

    code: str
    path: Path
    line: int
    message: str


def find_references(path: Path) -> tuple[BadReference, ...]:
    """The bad references of a prompt file and of all that it pulls in. A template that cannot be parsed has none here:
    loading it says why."""
    try:
        return tuple(_walk(environment(path.parent), path.name, ()))
    except jinja2.TemplateSyntaxError:
        return ()


def _walk(env: jinja2.Environment, name: str, above: tuple[str, ...]) -> Iterator[BadReference]:
    source, path = find_source(env, name) or ("", name)
    above = (*above, name)
    for line, names, optional in references(env.parse(source, name, path)):
        target = next((each for each in names if find_source(env, each)), names[0])
        if target.endswith(".trace"):
            message = f"{target} is rendered as a template here: insert it as a value, through `examples:`"
            yield BadReference("RT503", Path(path), line, message)
        elif target in above:
            yield BadReference("RT507", Path(path), line, f"{' -> '.join([*above, target])} goes round in a circle")
        elif find_source(env, target):
            yield from _walk(env, target, above)
        elif not optional:
            yield BadReference("RT507", Path(path), line, f"there is no template {target!r}")
