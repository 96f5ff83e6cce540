"""Prompt -> the text of one turn: the stream is cut as soon as the turn is over, and a completion with nothing in it
is asked for once more."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .labels import Labels, label_beginning, label_line
from .models.base import Completion, Constraint, Finish, Model, Options, Usage
from .output import sendable
from .parse import has_open_think, is_empty, turn_end

Show = Callable[[str], None]

# Only these characters can complete an action or a label.
_DECISIVE = re.compile(r"[\]］】:：]")
# Not in scripts that are written without blanks.
_WORDS_MEET = re.compile(r"[A-Za-z0-9.,;:?!][A-Za-z0-9]")
MOST_STOPS = 4
_UNBOUND = "the model server does not keep to the grammar it was given (constrain): only the parser checks its turns"


@dataclass(frozen=True)
class Asked:
    """The text of one turn, behind the cue `Thought:`, and what it cost; `reasked` says why it took two completions."""

    text: str
    finish: Finish
    usage: Usage
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    reasked: str = ""


def ask(
    model: Model,
    prompt: Callable[[str], str],
    *,
    step: int,
    labels: Labels,
    options: Options,
    stop: Sequence[str] = (),
    deadline: float | None = None,
    show: Show | None = None,
    cue: str | None = None,
    prefill: str = "",
    constrain: Callable[[str], Constraint | None] | None = None,
) -> Asked:
    """One turn of `model`. `prompt(cue)` is the prompt that ends in `cue`, `constrain(cue)` the grammar of what may
    follow; `show` gets the text as it may be displayed.

    With `cue` the turn begins with that text (`Action: finish[`) and is asked for only once; with `prefill` its thought
    begins with that, which the cue of `prompt` then ends in. Raises ServerError.
    """
    stops = [*labels.stops(step), *stop][:MOST_STOPS]
    started = time.monotonic()

    def complete(text: str, stops: Sequence[str], before: str = "", cue: str = "") -> Completion:
        watch = Watch(labels, before, show)
        constraint = constrain(cue) if constrain and cue else None
        own: dict[str, Any] = {} if constraint is None else {"constraint": constraint}
        found = model.complete(text, stop=stops, options=options, on_text=watch, deadline=deadline, **own)
        watch.finish(found.text)
        # A text that max_tokens or the author's own stop string has cut may be the beginning of a good one.
        whole = found.finish in ("cut", "eos") or (found.finish == "stop" and not stop)
        if constraint and found.constrained and whole and not constraint.accepts(found.text):
            return found.warned(_UNBOUND)
        return found

    def asked(text: str, *completions: Completion, why: str = "") -> Asked:
        usage, warnings = Usage(), tuple[str, ...]()
        for each in completions:
            usage, warnings = usage + each.usage, warnings + each.warnings
        return Asked(sendable(text), completions[-1].finish, usage, time.monotonic() - started, warnings, why)

    def after(cue: str, text: str) -> str:
        """The turn that begins with `cue`; a model that writes its label again has begun it itself, and may write the
        last word of it (`finish[`) again."""
        own = text.lstrip()
        if label_line(labels.thought, labels.action).match(own) or is_empty(text, labels):
            return text
        last = cue.rpartition(" ")[2]
        return cue + (own.removeprefix(last) if own.startswith(last) else text)

    if cue is not None:
        only = complete(prompt(cue), stops, before=cue, cue=cue)
        return asked(after(cue, only.text), only)
    cue = labels.cue(labels.thought, step, prefill)
    if prefill and show:
        show(prefill)
    first = complete(prompt(cue), stops, before=prefill, cue=cue)
    if is_empty(first.text, labels):
        # The same prompt would give the same nothing: a model whose first words are the stop string, say. It is asked
        # for the action instead.
        cue = labels.cue(labels.action, step)
        second = complete(prompt(cue), stops, before=cue, cue=cue)
        return asked(after(cue, second.text), first, second, why="the completion was empty")
    begun = _begun(prefill, first.text, labels)
    if first.finish == "stop" and has_open_think(first.text, labels):
        # The stop string stood inside the reasoning: the same generation goes on without stop strings.
        second = complete(prompt(cue) + sendable(first.text), [], before=begun)
        return asked(begun + second.text, first, second, why="a stop string cut the reasoning")
    return asked(begun, first)


def _begun(prefill: str, text: str, labels: Labels) -> str:
    """The thought that `prefill` begins and `text` goes on with. Some models write its beginning or the label again,
    and some servers drop the blank before the first word."""
    own = text.lstrip()
    if not prefill or own.startswith(prefill) or label_line(labels.thought).match(own):
        return text
    blank = " " if _WORDS_MEET.fullmatch(prefill[-1] + text[:1]) else ""
    return f"{prefill}{blank}{text}"


class Watch:
    """Follows a completion piece by piece: says when the turn is over, and shows what can no longer become a label."""

    def __init__(self, labels: Labels, before: str = "", show: Show | None = None) -> None:
        self.text = before
        self._before = before
        self._labels = labels
        self._show = show
        self._shown = len(before)
        self._beginning = label_beginning(labels.observation, labels.question)

    def __call__(self, piece: str) -> bool:
        """Take the next piece; True when no more is needed."""
        self.text += piece
        end = turn_end(self.text, self._labels) if _DECISIVE.search(piece) else None
        if self._show:
            self._display(self._safe() if end is None else end)
        return end is not None

    def restart(self) -> None:
        """The server's answer broke off and is asked for again from the start."""
        self.text = self._before

    def finish(self, text: str) -> None:
        """The completion is over and was `text`."""
        if self._show:
            self.text = self._before + text
            end = turn_end(self.text + "\n", self._labels)
            self._display(len(self.text) if end is None else end)

    def _safe(self) -> int:
        """How much of the text can be shown: not the beginning of what may become a label line."""
        last = self.text.rfind("\n")
        line = self.text[last + 1 :]
        return last if last >= 0 and (not line.strip() or self._beginning.fullmatch(line)) else len(self.text)

    def _display(self, end: int) -> None:
        if end > self._shown and self._show:
            self._show(self.text[self._shown : end])
            self._shown = end
