"""A person as the model: the turns are typed, on a terminal or through a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from ..errors import ParseError, ServerError
from ..labels import PLAIN, Labels, label_line
from ..parse import parse_turn
from .base import Completion, Constraint, OnText, Options

_COMMAND = re.compile(":[a-z]")

ReadLine = Callable[[str], str | None]
"""Shows a cue and gives the next line, None when there are no more."""

Command = Callable[[str, str, str], str | None]
"""Gets a line that is a command (`:undo`), the lines of the turn before it, and the prompt. What it returns is the
turn; None when the turn goes on."""


class Left(ServerError):
    """The person has gone. The run ends as a run that was interrupted."""

    stop_reason = "interrupted"


class Human:
    """Asks a person for each turn.

    A turn is over as soon as its action is there, or with an empty line: so a malformed action, or none, is sent as it
    is and earns the same answer as a model's. `command` takes the lines that begin with a colon and a letter.
    """

    name = "human"
    takes_raw = True

    def __init__(self, labels: Labels = PLAIN, read: ReadLine | None = None, command: Command | None = None) -> None:
        self.labels = labels
        self.read = read or read_line
        self.command = command
        self.written = ""  # a turn that is there already, and comes before what is typed

    @property
    def echoes(self) -> bool:
        """Whether what is typed stands on the terminal already."""
        return sys.stdin.isatty()

    def complete(
        self,
        prompt: str,
        *,
        stop: Sequence[str],
        options: Options,
        on_text: OnText | None = None,
        deadline: float | None = None,
        constraint: Constraint | None = None,
    ) -> Completion:
        text, self.written = self.written or self._typed(prompt), ""
        label = text[:1].isspace() or label_line(self.labels.action).match(text)
        return Completion(text if label else f" {text}")

    def _typed(self, prompt: str) -> str:
        """The lines of one turn. Raises Left when there are none."""
        text = ""
        while not self._is_over(text):
            line = self.read("" if text else prompt.rpartition("\n")[2] + " ")
            if line is None and not text:
                raise Left("nobody is writing any more")
            if not line and text:
                break
            if line and self.command and _COMMAND.match(line):
                turn = self.command(line, text, prompt)
                if turn is not None:
                    return turn
            elif line:
                text = f"{text}\n{line}" if text else line
        return text

    def _is_over(self, text: str) -> bool:
        """Whether the action is there, well formed or not. One whose bracket is open goes on."""
        last = text.rpartition("\n")[2]
        try:
            parse_turn(text, labels=self.labels)
        except ParseError as error:
            label = label_line(self.labels.action).match(last)
            return error.kind != "truncated" and label is not None and bool(last[label.end() :].strip())
        return True


def read_line(cue: str) -> str | None:
    """The next line from stdin. A terminal shows the cue, and lets the line be edited."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        try:
            return input(cue)
        except EOFError:
            print()  # what comes next begins a line of its own
            return None
    if sys.stdin.isatty():
        print(cue, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None
