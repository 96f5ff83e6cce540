"""A run on the terminal: the transcript as it grows, with colours where they are wanted."""

from __future__ import annotations

import os
import re
from typing import TextIO

from .labels import Labels, label_line
from .result import Result, Step

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLES = {"label": "1", "observation": "32", "error": "33", "note": "2"}


def printable(text: str) -> str:
    """`text` without raw control characters: what a tool returned must not steer the user's terminal."""
    return _UNSAFE.sub(lambda match: chr(0x2400 + ord(match[0])) if ord(match[0]) < 0x20 else "\ufffd", text)


def wants_colour(out: TextIO) -> bool:
    """Whether `out` is a terminal, of somebody who has not switched colours off."""
    return out.isatty() and "NO_COLOR" not in os.environ


def styled(text: str, style: str) -> str:
    """`text` in one of the styles `label`, `observation`, `error` and `note`."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


class Display:
    """Writes a run's transcript to `out` as it happens. Turns that are `typed` stand there already; `number` is that of
    the step that comes next."""

    def __init__(self, out: TextIO, labels: Labels, *, typed: bool = False) -> None:
        self._out = out
        self._labels = labels
        self._typed = typed
        self._colour = wants_colour(out)
        self.number = 1
        self._turn_open = False

    def note(self, text: str) -> None:
        """A remark of react-text itself."""
        self._write(self._styled(f"# {text}\n", "note"))

    def task(self, text: str) -> None:
        """The question line."""
        self._write(printable(text))

    def text(self, piece: str) -> None:
        """The next piece of what the model writes."""
        if self._typed:
            self._turn_open = True
            return
        if not self._turn_open:
            self._turn_open = True
            own = label_line(self._labels.thought, self._labels.action).match(piece.lstrip())
            cue = "" if own else self._styled(self._labels.cue(self._labels.thought, self.number), "label")
            piece = piece.lstrip() if own else piece if piece[:1].isspace() else f" {piece}"
            self._write(cue)
        self._write(printable(piece))

    def step(self, step: Step) -> None:
        """A finished step: its observation."""
        if not self._turn_open:
            self._write(printable(step.text))
        if not (self._typed and self._turn_open):
            self._write("\n")
        if step.observation is not None:
            label = self._labels.cue(self._labels.observation, step.number)
            style = "error" if step.error else "observation"
            self._write(self._styled(label, "label") + " " + self._styled(printable(step.observation), style) + "\n")
        self.number, self._turn_open = step.number + 1, False

    def end(self, result: Result) -> None:
        """Why the run stopped, and what it cost."""
        if self._turn_open and not self._typed:
            self._write("\n")  # cut short within a turn
        facts = [result.stop_reason, f"{len(result.steps)} steps"]
        usage = result.usage
        if usage.prompt_tokens is not None:
            cached = f" ({usage.cached_tokens} from the cache)" if usage.cached_tokens is not None else ""
            facts.append(f"{usage.prompt_tokens} prompt tokens{cached}, {usage.completion_tokens or 0} generated")
        self.note(", ".join(facts))
        for text in filter(None, [result.message, *result.warnings]):
            self.note(printable(text))

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
