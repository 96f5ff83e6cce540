"""Transcripts in LangChain's form, `Action:` and `Action Input:` on two lines, `Final Answer:` at the end -> traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import AuthorError, ParseError
from ..formats import Imported, file_name, numbered
from ..frontmatter import read_text, unix_lines
from ..labels import PLAIN, Labels
from ..nearmiss import FINISH, action
from ..parse import parse_turn
from ..trace import Trace

_LABEL = re.compile(r"^(Question|Thought|Action Input|Action|Observation|Final Answer):[ \t]?", re.M)
_PARTS = {"Thought": "thought", "Action": "action", "Action Input": "given", "Final Answer": "answer"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BEGINS = re.compile(r"^> Entering new .*chain\.\.\.[ \t]*\n", re.M)
_ENDS = re.compile(r"^> Finished chain\.[ \t]*(?:\n|\Z)", re.M)


@dataclass
class Turn:
    """A turn on its way: what stood behind its labels."""

    line: int = 0
    thought: str | None = None
    action: str | None = None
    given: str | None = None
    answer: str | None = None

    @property
    def acts(self) -> bool:
        return self.action is not None or self.answer is not None

    @property
    def begun(self) -> bool:
        return self.acts or self.thought is not None

    @property
    def text(self) -> str:
        """The turn as this engine's models write it. Raises AuthorError for an input that cannot stand in brackets."""
        lines = [] if self.thought is None else [f"{PLAIN.cue(PLAIN.thought, 1)} {self.thought}".rstrip()]
        if self.acts:
            lines.append(action_line(*(FINISH, self.answer) if self.answer is not None else (self.action, self.given)))
        return "\n".join(lines)


@dataclass
class Run:
    """One transcript: its question and its turns, each with its observation."""

    question: str = ""
    turns: list[tuple[Turn, str | None]] = field(default_factory=list)

    def trace(self, path: Path) -> Trace:
        """Raises AuthorError."""
        turns, answer = [], None
        for turn, observation in self.turns:
            try:
                if not turn.begun:
                    raise AuthorError("an observation of no turn")
                turns.append((turn.text, observation))
            except AuthorError as error:
                raise AuthorError(error.message, path=path, line=turn.line) from None
            answer = turn.answer if turn.answer is not None else answer
        task = f"{PLAIN.question}: {self.question}\n" if self.question else ""
        return Trace.record(task, turns, PLAIN, {"answer": answer, "test": "false"})


def read(path: Path) -> Imported:
    """The runs of a transcript; a `Question:` line or a new chain begins one. Raises AuthorError."""
    text = _COLOUR.sub("", unix_lines(read_text(path)))
    found = [run for run in _runs(text) if run.turns]
    if not any(turn.acts for run in found for turn, _ in run.turns):
        raise AuthorError("no `Action:` with an `Action Input:` and no `Final Answer:` begins a line of it", path=path)
    nameless = sum(not run.question for run in found)
    notes = [f"{nameless} of {len(found)} runs have no `Question:` line: theirs has to be added"] if nameless else []
    return Imported(numbered(file_name(path.stem), [run.trace(path) for run in found]), notes=notes)


def action_line(tool: str | None, given: str | None, labels: Labels = PLAIN) -> str:
    """`Action: tool[input]`. Raises AuthorError when it would not be read as that again."""
    for written in (given or "", f'"{given}"'):
        line = f"{labels.action}: {action((tool or '').strip(), written)}"
        try:
            turn = parse_turn(line, labels=labels)
        except ParseError:
            continue
        if turn.text == line and turn.action.arguments == line.partition("[")[2][:-1]:
            return line
    if given is None:
        raise AuthorError(f"{tool!r} is not the name of a tool, and no `Action Input:` line follows")
    raise AuthorError(f"the input of {tool!r} cannot stand in square brackets: {given!r}")


def _runs(text: str) -> Iterator[Run]:
    text = _ENDS.sub("", text)
    position = 0
    for begin in [*_BEGINS.finditer(text), None]:
        end = begin.start() if begin else len(text)
        yield from _chain(text, position, end)
        position = begin.end() if begin else end


def _chain(text: str, start: int, end: int) -> Iterator[Run]:
    """The runs within one chain. What stands before its first label is a thought: its cue was part of the prompt."""
    labels = list(_LABEL.finditer(text, start, end))
    run, turn = Run(), Turn()
    first = text[start : labels[0].start() if labels else end].strip()
    if first and labels and labels[0][1] != "Question":
        turn.thought = first
    for label, following in zip(labels, [*labels[1:], None], strict=False):
        word, content = label[1], text[label.end() : following.start() if following else end]
        closes = word in ("Question", "Thought") or (word in ("Action", "Final Answer") and turn.acts)
        if closes and turn.begun:
            run.turns.append((turn, None))
            turn = Turn()
        turn.line = turn.line or text.count("\n", 0, label.start()) + 1
        if word == "Question":
            yield run
            run, turn = Run(content.strip()), Turn()
        elif word == "Observation":
            run.turns.append((turn, content.removesuffix("\n")))
            turn = Turn()
        else:
            setattr(turn, _PARTS[word], content.strip())
    if turn.begun:
        run.turns.append((turn, None))
    yield run
