"""`.trace` <-> `Trace`, byte for byte.

A trace file is YAML front matter and a body; the body is exactly the text that followed the head of the prompt:
question line, turns, observations. Nothing in it is escaped, so that the same file is a few-shot example, a recorded
run and a test. Where a text holds lines that look like labels, `spans`, `turns` and `head` say how many lines it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from .arguments import ArgumentError
from .errors import AuthorError, ParseError, did_you_mean
from .frontmatter import Head, decoded, read_bytes, read_head, split_head, typed, unix_lines
from .labels import ARROW, NUMBERED, PLAIN, Labels
from .layout import (
    NO_SPANS,
    Row,
    Spans,
    behind_cue,
    find_conflict,
    find_rows,
    framed,
    lines_of,
    needed_spans,
    unframed,
)
from .models.base import Finish
from .nearmiss import FINISH
from .output import without_surrogates
from .parse import parse_turn, same_name
from .tools import ANSWER

# In the order in which they are written. Scalars are texts, whatever YAML would make of them: the answer `yes` stays
# `yes`.
KEYS = (
    "format", "prompt", "prompt_hash", "inputs", "settings", "tools", "labels", "options", "answer", "stop_reason",
    "completions", "finish", "outcomes", "match", "redact", "expect", "test", "lint", "hand", "head", "turns", "spans",
    "eol",
)  # fmt: skip
_MAPPINGS = ("inputs", "settings", "options", "match", "redact", "expect", "lint")
_BY_STEP = ("completions", "finish", "outcomes")
_STRUCTURE = ("format", "labels", "head", "turns", "spans", "eol")
_FINISHES = get_args(Finish)
_PLAIN_YAML = re.compile(r"[\w./](?:[\w ./+()$%-]*[\w./+()$%])?")


@dataclass(frozen=True)
class TraceStep:
    """One turn and its observation. `text` is the turn as the body holds it, without its last newline; `tool` is None
    when the turn has no readable action; `observation` is None when none follows.

    `completion` is what the model wrote, `finish` how that ended; `outcome` is what came of the action when it was not
    a result: `empty`, `nothing RESULT`, `raised TYPE: TEXT`, `timeout SECONDS`, `mistake KIND`.
    """

    text: str
    observation: str | None
    thought: str = ""
    tool: str | None = None
    arguments: str | None = None
    completion: str = ""
    finish: Finish = "stop"
    outcome: str = ""

    @property
    def came_to(self) -> str:
        """The `outcome`, by the name that it has in a step of a run."""
        return self.outcome


@dataclass(frozen=True)
class Trace:
    """A run as text. `str(trace)` is the body; `dump()` the file.

    `meta` is the front matter but for what shapes the body: `labels` and `spans`. `first_line` is the file's line
    number of the body's first line.
    """

    body: str
    labels: Labels = PLAIN
    meta: Mapping[str, Any] = field(default_factory=dict)
    spans: Spans = NO_SPANS
    path: Path | None = None
    first_line: int = 1
    # What the file was read from. A changed copy (`dataclasses.replace`) does not inherit it.
    _original: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        return self.body

    @classmethod
    def load(cls, source: str | Path | bytes) -> Trace:
        """A trace from a file or its bytes. Raises AuthorError; repairs nothing."""
        path = None if isinstance(source, bytes) else Path(source)
        data = source if isinstance(source, bytes) else read_bytes(source)
        if path and path.suffix == ".j2":
            raise AuthorError("this is a prompt, and a trace is needed here", path=path)
        text = unix_lines(decoded(data, path))
        head_text, body, first_line = split_head(text)
        if text.startswith("---\r"):
            raise AuthorError(
                "some lines end in CRLF and others do not; save the file with one kind", path=path, line=1
            )
        if head_text is None and text.startswith("---\n"):
            raise AuthorError("the front matter has no closing `---` line", path=path, line=1)
        for number, line in enumerate((head_text or "").split("\n"), 2):
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                raise AuthorError("git conflict markers", path=path, line=number)
        head = read_head(head_text, KEYS, path)
        if head.text("format", "1") != "1":
            raise head.error("format", f"format {head.text('format')} is not known here, only 1")
        if head.choice("eol", ("lf", "none")) == "none":
            body = body.removesuffix("\n")
        trace = cls(
            body=body,
            labels=_labels(head),
            meta={key: _meta(head, key) for key in head.nodes if key not in _STRUCTURE},
            spans=Spans(_task_lines(head), _numbers(head, "turns"), _numbers(head, "spans")),
            path=path,
            first_line=first_line,
        )
        object.__setattr__(trace, "_original", data)
        if trace.spans != NO_SPANS or "<<<<<<< " in body:
            conflict = find_conflict(trace._lines, trace._rows, trace.spans)
            if conflict is not None:
                raise AuthorError("git conflict markers", path=path, line=first_line + conflict)
        if path and head_text is None and not trace.steps:
            raise AuthorError("this is no trace: it has neither front matter nor turns", path=path)
        return trace

    @classmethod
    def record(
        cls,
        task: str,
        turns: Sequence[tuple[str, str | None]],
        labels: Labels = PLAIN,
        meta: Mapping[str, Any] | None = None,
    ) -> Trace:
        """The trace of a run: its question, a text that ends in a newline, and each turn's text with its observation.
        Raises AuthorError for texts that cannot stand in one body."""
        task = without_surrogates(task)
        if task and not task.endswith("\n"):
            raise AuthorError("the first turn must begin on a line of its own: the question has no newline at its end")
        turns = [(without_surrogates(t), None if o is None else without_surrogates(o)) for t, o in turns]
        body = [task]
        for number, (text, observation) in enumerate(turns, 1):
            body += [text, "\n", "" if observation is None else framed(observation, labels, number)]
        joined = "".join(body)
        return cls(joined, labels, dict(meta or {}), needed_spans(task, turns, labels, joined))

    def dump(self) -> bytes:
        """The bytes of the file; exactly those it was loaded from, if it was."""
        if self._original is not None:
            return self._original
        meta = {"format": 1, **self.meta, "head": self.spans.task}
        if self.labels in _PRESETS:
            meta["labels"] = _PRESETS[self.labels]
        elif self.labels != PLAIN:
            own, plain = vars(self.labels), vars(PLAIN)
            meta["labels"] = {word: own[word] for word in own if own[word] != plain[word]}
        meta["turns"], meta["spans"] = self.spans.turns or None, self.spans.observations or None
        body = self.body
        if not body.endswith("\n"):
            meta["eol"], body = "none", body + "\n"
        lines = [f"{key}: {_yaml(meta[key])}\n" for key in KEYS if meta.get(key) is not None]
        return ("---\n" + "".join(lines) + "---\n" + body).encode("utf-8")

    @cached_property
    def task(self) -> str:
        """What stands before the first turn: the question line."""
        return self.before(1)

    @cached_property
    def steps(self) -> list[TraceStep]:
        """The turns, each with its observation."""
        return [self._step(number, row) for number, row in enumerate(self._rows, 1)]

    @cached_property
    def completions(self) -> list[str]:
        """What the model wrote in each turn: the text behind the cue `Thought:`, or the whole turn when it has none."""
        behind = [behind_cue(self._text(row.start, row.result), self.labels) for row in self._rows]
        written = self.meta.get("completions") or {}
        return [written.get(number, text) for number, text in enumerate(behind, 1)]

    @cached_property
    def observations(self) -> list[str | None]:
        """The observation of each turn, None where the body ends before one."""
        return [self._observation(row) for row in self._rows]

    @cached_property
    def finishes(self) -> dict[int, Finish]:
        """How the completion of a turn ended, where it was not an ordinary stop."""
        return dict(self.meta.get("finish") or {})

    @cached_property
    def outcomes(self) -> dict[int, str]:
        """What came of a turn's action, where it was not a result."""
        return dict(self.meta.get("outcomes") or {})

    @cached_property
    def answer(self) -> str | None:
        """What the run has answered: what the front matter says, or else what the last step does; None when nothing."""
        if self.meta.get("answer") is not None:  # also one that was given when a budget had run out
            return str(self.meta["answer"])
        last = self.steps[-1] if self.steps else None
        if last is None or not is_finish(last) or self.meta.get("stop_reason") not in ("success", None):
            return None
        try:
            return str(ANSWER.read(last.arguments or "")["answer"])
        except ArgumentError:
            return (last.arguments or "").strip()

    def before(self, step: int) -> str:
        """The body up to a step (from 1): what the model saw behind the head of the prompt, but for the cue."""
        rows = self._rows
        if step > len(rows):
            return self.body
        return "".join(f"{line}\n" for line in self._lines[: rows[step - 1].start])

    def shown(self, step: int) -> tuple[str, str]:
        """The lines of a step (from 1) and of its observation as they stand in the body, each without its last newline;
        the second is "" when there is none."""
        row = self._rows[step - 1]
        return self._text(row.start, row.result), self._text(row.result, row.end)

    def line_of(self, step: int, *, observation: bool = False) -> int:
        """The file's line number where a step (from 1), or its observation, begins."""
        row = self._rows[step - 1]
        return self.first_line + (row.result if observation else row.start)

    def _step(self, number: int, row: Row) -> TraceStep:
        text = self._text(row.start, row.result)
        observation = self._observation(row)
        if self.labels == ARROW:
            return _command(text, observation)
        completion = self.completions[number - 1]
        step = TraceStep(
            text,
            observation,
            completion=completion,
            finish=self.finishes.get(number, "stop"),
            outcome=self.outcomes.get(number, ""),
        )
        try:
            turn = parse_turn(completion, labels=self.labels, truncated=step.finish == "length")
        except ParseError as error:
            return replace(step, thought=error.text)
        return replace(step, thought=turn.thought, tool=turn.action.tool, arguments=turn.action.arguments)

    def _observation(self, row: Row) -> str | None:
        return unframed(self._text(row.result, row.end), self.labels) if row.observation else None

    def _text(self, start: int, end: int) -> str:
        return "\n".join(self._lines[start:end])

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self.body)

    @cached_property
    def _rows(self) -> list[Row]:
        try:
            return find_rows(self._lines, self.labels, self.spans)
        except AuthorError as error:
            raise AuthorError(error.message, path=self.path, line=self.first_line + (error.line or 1) - 1) from None


def is_finish(step: TraceStep) -> bool:
    """Whether a step gives the answer."""
    return step.tool is not None and same_name(step.tool) == same_name(FINISH)


_PRESETS = {NUMBERED: "numbered", ARROW: "arrow"}


def _command(text: str, observation: str | None) -> TraceStep:
    """A step of a text game: `> think: ...` only thinks, another command has its verb for a tool."""
    command = text.removeprefix(ARROW.action).removeprefix(" ")
    if command.startswith("think:"):
        return TraceStep(text, observation, command.removeprefix("think:").strip(), completion=text)
    verb, _, rest = command.partition(" ")
    return TraceStep(text, observation, "", verb, rest, text)


def _labels(head: Head) -> Labels:
    value = head.value("labels") if "labels" in head else "plain"
    try:
        return ARROW if value == "arrow" else Labels.of(value)
    except AuthorError as error:
        raise head.error("labels", error.message) from None


def _numbers(head: Head, key: str) -> dict[int, int]:
    given = head.mapping_of_numbers(key)
    if any(number < 1 or lines < 1 for number, lines in given.items()):
        raise head.error(key, f"{key} must map numbers from 1 to numbers of lines")
    return given


def _task_lines(head: Head) -> int | None:
    given = head.text("head")
    if given and not re.fullmatch("[0-9]{1,9}", given):
        raise head.error("head", f"head must be the number of lines of the question, not {given!r}")
    return int(given) if given else None


def _meta(head: Head, key: str) -> Any:
    value = head.value(key)
    if key in _BY_STEP:
        if not isinstance(value, dict) or not all(type(number) is int for number in value):
            raise head.error(key, f"{key} must map the numbers of steps to words")
        words = {number: str(word) for number, word in value.items()}
        for word in words.values() if key == "finish" else ():
            if word not in _FINISHES:
                raise head.error(key, f"finish: unknown word {word!r}{did_you_mean(word, _FINISHES)}")
        return words
    if isinstance(value, dict):
        return head.mapping(key) if key in _MAPPINGS else value
    return head.texts(key) if isinstance(value, list) else head.text(key)


def _yaml(value: Any, *, inside: bool = False) -> str:
    """One line of YAML. What would not be read as the same text is quoted: among the values `inside` a mapping or list,
    also what would be read as a number, true, false or null."""
    if isinstance(value, Mapping):
        pairs = ((_yaml(key, inside=True), _yaml(item, inside=True)) for key, item in value.items())
        # YAML wants to be told about a long key.
        return "{" + ", ".join(f"{'? ' if len(key) > 1000 else ''}{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(item, inside=True) for item in value) + "]"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    text = str(value)
    meant = typed(text)
    if _PLAIN_YAML.fullmatch(text) and meant is not None and not (inside and meant != text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in quoted)


def _escaped(character: str) -> str:
    """YAML knows no surrogate pairs, as JSON has them: a character has one escape."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
