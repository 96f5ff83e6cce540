"""The options that a tool offers, the one that an answer picks, and one line on each result.

An option is a mapping with an `id`, as `str()` writes it: alone on a line, or in a list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..output import is_nothing
from ..result import Step

Option = Mapping[str, Any]
_LONGEST = 100_000  # characters of one value that is read
_SHOWN = 90


def options_in(observation: str) -> list[Option]:
    """The options of an observation, in their order."""
    found: list[Option] = []
    for line in observation.split("\n"):
        found += _options(line.strip())
    return found


def picked(answer: str, options: Iterable[Option]) -> list[Option]:
    """The options whose id stands in an answer, each once, in the order of the answer."""
    places: dict[str, tuple[int, Option]] = {}
    for option in options:
        name = str(option["id"])
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer)
        if found and name not in places:
            places[name] = (found.start(), option)
    return [option for _, option in sorted(places.values(), key=lambda place: place[0])]


def summary(step: Step) -> str:
    """One line on what came of a call."""
    observation = step.observation or ""
    options = [str(option["id"]) for option in options_in(observation)]
    if options:
        told = f"{len(options)} options: {', '.join(options)}"
    elif is_nothing(observation) or step.error == "empty_result":
        told = "nothing"
    else:
        told = _shortened(observation.partition("\n")[0])
    return f"{step.tool}[{_shortened(step.arguments or '')}]: {told}"


def cost(option: Option, field: str) -> float:
    """What an option costs, 0 where it does not say."""
    value = option.get(field, 0)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def label(option: Option, field: str | None = None) -> str:
    """An option in a few words: its id, its name and its cost."""
    words = [str(option[key]) for key in ("id", "name") if key in option]
    return " ".join(words) + (f" ({cost(option, field):g})" if field and field in option else "")


def _options(text: str) -> Iterator[Option]:
    # A mapping may stand behind words, as where the engine quotes an earlier result.
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0 or len(text) > _LONGEST or "id" not in text:
        return
    try:
        value = ast.literal_eval(text[start:])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    yield from (each for each in values if isinstance(each, dict) and "id" in each)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
