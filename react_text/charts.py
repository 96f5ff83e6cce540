"""What the steps of a run cost -> bars: tokens that were cached, read and written, or characters without a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .pieces import StepView
from .runs import Cost

_HEIGHT = 40.0
_WIDEST = 640.0
_BAR, _GAP = 12.0, 3.0


@dataclass(frozen=True)
class Bar:
    """One step: `parts` are (kind, y, height), from the bottom up."""

    link: str
    x: float
    note: str
    parts: Sequence[tuple[str, float, float]]


@dataclass(frozen=True)
class Chart:
    """Bars in a box of `width` and `height`; `legend` pairs the kinds of their parts with words."""

    label: str
    legend: Sequence[tuple[str, str]]
    bars: Sequence[Bar]
    width: float
    bar: float
    height: float = _HEIGHT


def chart(steps: Sequence[StepView], costs: Sequence[Cost]) -> Chart | None:
    """The chart of a run, None when it has no steps."""
    usages = [cost.usage for cost in costs]
    known = [usage for usage in usages if usage.prompt_tokens is not None]
    if known:
        legend = [("cached", "from the cache"), ("read", "read"), ("written", "written")]
        sizes: list[tuple[int, ...]] = []
        for usage in usages:
            prompt, cached = usage.prompt_tokens or 0, min(usage.cached_tokens or 0, usage.prompt_tokens or 0)
            sizes.append((cached, prompt - cached, usage.completion_tokens or 0))
        unit = "tokens"
    else:
        legend = [("written", "turn"), ("read", "observation")]
        sizes = [*(step.characters for step in steps)]
        unit = "characters"
    if not steps or len(sizes) != len(steps):
        return None
    largest = max(1, *map(sum, sizes))
    pitch = min(_BAR + _GAP, _WIDEST / len(steps))
    bars = []
    for number, (step, parts) in enumerate(zip(steps, sizes, strict=True)):
        words = ", ".join(f"{size:,} {word}" for size, (_, word) in zip(parts, legend, strict=True))
        bars.append(
            Bar(
                step.id,
                round(number * pitch, 2),
                f"step {step.number}: {unit}: {words}",
                _stacked(parts, legend, largest),
            )
        )
    label = f"{unit} per step, at most {largest:,}"
    return Chart(label, legend, bars, round(pitch * len(steps), 2), round(pitch * _BAR / (_BAR + _GAP), 2))


def _stacked(sizes: Sequence[int], legend: Sequence[tuple[str, str]], largest: int) -> list[tuple[str, float, float]]:
    """The parts of one bar, those of no height left out."""
    parts, below = [], 0
    for size, (kind, _) in zip(sizes, legend, strict=True):
        height = round(_HEIGHT * size / largest, 2)
        if height:
            parts.append((kind, round(_HEIGHT - _HEIGHT * (below + size) / largest, 2), height))
        below += size
    return parts
