"""Traces -> Markdown, for reports and reviews."""

from __future__ import annotations

import re

from ..display import printable
from ..labels import ARROW
from ..trace import Trace, TraceStep, is_finish

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown(trace: Trace) -> str:
    """A trace as Markdown: thoughts as text, actions and observations as they stand."""
    parts = [f"## {_text(trace.task.strip()) or 'No question'}"]
    for number, step in enumerate(trace.steps, 1):
        parts.append(f"### Step {number}")
        parts += _step(step, games=trace.labels == ARROW)
    facts = [f"{key}: {_text(str(trace.meta[key]))}" for key in ("prompt", "stop_reason") if trace.meta.get(key)]
    parts += [", ".join(facts)] if facts else []
    return "\n\n".join(parts) + "\n"


def _step(step: TraceStep, *, games: bool) -> list[str]:
    parts = [_text(step.thought)] if step.thought and step.tool is not None else []
    if step.tool is None:
        parts.append(_fenced(step.text))
    elif is_finish(step):
        parts.append(f"**Answer:** {_text(step.arguments or '')}")
    else:
        parts.append(_fenced(step.text if games else f"{step.tool}[{step.arguments}]"))
    if step.observation is not None:
        parts.append("Observation:")
        parts.append(_fenced(step.observation, "text"))
    return parts


def _text(text: str) -> str:
    """Text that Markdown shows as it is, line by line."""
    return "  \n".join(_SPECIAL.sub(r"\\\1", line) for line in printable(text).split("\n"))


def _fenced(text: str, language: str = "") -> str:
    """Text between fences that are longer than any in it."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{printable(text)}\n{fence}"
