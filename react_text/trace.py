"""`.trace` <-> `Trace`, byte for byte.

A trace file is YAML front matter and a body; the body is exactly the text that followed the head of the prompt:
question line, turns, observations. Nothing in it is escaped, so that the same file is a few-shot example, a recorded
run and a test. Where an observation holds lines that look like labels, `spans` says how many lines it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from .errors import AuthorError, ParseError
from .frontmatter import Head, decoded, read_bytes, read_head, split_head, unix_lines
from .labels import PLAIN, Labels
from .observe import frame
from .parse import parse_turn

# In the order in which they are written. Scalars are texts, whatever YAML would make of them: the answer `yes` stays
# `yes`.
KEYS = (
    "format", "prompt", "prompt_hash", "inputs", "settings", "tools", "labels", "options", "answer", "stop_reason",
    "finish", "outcomes", "match", "redact", "expect", "test", "lint", "hand", "head", "spans", "eol",
)  # fmt: skip
_MAPPINGS = ("inputs", "settings", "options", "finish", "outcomes", "match", "redact", "expect", "lint")
_CONFLICT = re.compile(r"^<{7} .*\n(?:.*\n)*?={7}\n(?:.*\n)*?>{7} ", re.M)


@dataclass(frozen=True)
class TraceStep:
    """One turn and its observation. `text` is the turn as the body holds it, without its last newline; `tool` is None
    when the turn has no readable action; `observation` is None when the body ends before one."""

    text: str
    observation: str | None
    thought: str = ""
    tool: str | None = None
    arguments: str | None = None


@dataclass(frozen=True)
class Trace:
    """A run as text. `str(trace)` is the body; `dump()` the file.

    `meta` is the front matter but for what shapes the body; `spans` the number of lines of single observations and
    `task_lines` that of the question, where labels alone do not tell. `first_line` is the file's line number of the
    body's first line.
    """

    body: str
    labels: Labels = PLAIN
    meta: Mapping[str, Any] = field(default_factory=dict)
    spans: Mapping[int, int] = field(default_factory=dict)
    task_lines: int | None = None
    path: Path | None = None
    first_line: int = 1
    original: bytes | None = None

    def __str__(self) -> str:
        return self.body

    @classmethod
    def load(cls, source: str | Path | bytes) -> Trace:
        """A trace from a file or its bytes. Raises AuthorError; repairs nothing."""
        path = None if isinstance(source, bytes) else Path(source)
        data = source if isinstance(source, bytes) else read_bytes(source)
        text = unix_lines(decoded(data, path))
        head_text, body, first_line = split_head(text)
        if head_text is None and text.startswith("---\n"):
            raise AuthorError("the front matter has no closing `---` line", path=path, line=1)
        if conflict := _CONFLICT.search(head_text or ""):
            line = (head_text or "").count("\n", 0, conflict.start()) + 2
            raise AuthorError("git conflict markers", path=path, line=line)
        head = read_head(head_text, KEYS, path)
        if head.text("format", "1") != "1":
            raise head.error("format", f"format {head.text('format')} is not known here, only 1")
        if head.choice("eol", ("lf", "none")) == "none":
            body = body.removesuffix("\n")
        trace = cls(
            body=body,
            labels=_labels(head),
            meta={
                key: head.mapping(key) if key in _MAPPINGS and _is_mapping(head, key) else _plain(head, key)
                for key in head.nodes
                if key not in _STRUCTURE
            },
            spans=_spans(head),
            task_lines=_task_lines(head),
            path=path,
            first_line=first_line,
            original=data,
        )
        trace._check_conflicts()
        return trace

    @classmethod
    def record(
        cls,
        task: str,
        turns: Sequence[tuple[str, str | None]],
        labels: Labels = PLAIN,
        meta: Mapping[str, Any] | None = None,
    ) -> Trace:
        """The trace of a run: its question line, and each turn's text with its observation."""
        body = [task]
        for number, (text, observation) in enumerate(turns, 1):
            body.append(text + "\n")
            if observation is not None:
                body.append(frame(observation, labels.cue(labels.observation, number)))
        spans = {
            number: observation.count("\n") + 1
            for number, (_, observation) in enumerate(turns, 1)
            if observation is not None
            and (_turn_start(labels).search(observation.partition("\n")[2]) or _CONFLICT.search(observation + "\n"))
        }
        task_lines = task.count("\n") if _turn_start(labels).search(task) else None
        return cls("".join(body), labels, dict(meta or {}), _by_observation(spans, turns), task_lines)

    def dump(self) -> bytes:
        """The bytes of the file; exactly those it was loaded from, if it was."""
        if self.original is not None:
            return self.original
        meta = {"format": 1, **self.meta}
        if self.labels.numbered:
            meta["labels"] = "numbered"
        elif self.labels != PLAIN:
            words = ("thought", "action", "observation", "question")
            meta["labels"] = {w: getattr(self.labels, w) for w in words if getattr(self.labels, w) != getattr(PLAIN, w)}
        if self.task_lines is not None:
            meta["head"] = self.task_lines
        if self.spans:
            meta["spans"] = dict(self.spans)
        body = self.body
        if not body.endswith("\n"):
            meta["eol"], body = "none", body + "\n"
        lines = [f"{key}: {_yaml(meta[key])}\n" for key in KEYS if key in meta and meta[key] is not None]
        return ("---\n" + "".join(lines) + "---\n" + body).encode("utf-8")

    @cached_property
    def task(self) -> str:
        """What stands before the first turn: the question line."""
        return self._parts[0]

    @cached_property
    def steps(self) -> list[TraceStep]:
        """The turns, each with its observation."""
        return [self._step(text, observation) for text, observation in self._parts[1]]

    @cached_property
    def completions(self) -> list[str]:
        """What the model wrote in each turn: the text behind the cue `Thought:`, or the whole turn when it has none."""
        cue = re.compile(_label(self.labels.thought, self.labels))
        return [text[m.end() :] if (m := cue.match(text)) else text for text, _ in self._parts[1]]

    @cached_property
    def finishes(self) -> dict[int, str]:
        """How the completion of a turn ended, where it was not an ordinary stop."""
        given = self.meta.get("finish") or {}
        return {int(number): str(finish) for number, finish in given.items()}

    def _step(self, text: str, observation: str | None) -> TraceStep:
        try:
            turn = parse_turn(text, labels=self.labels)
        except ParseError as error:
            return TraceStep(text, observation, error.text)
        return TraceStep(text, observation, turn.thought, turn.action.tool, turn.action.arguments)

    @cached_property
    def _parts(self) -> tuple[str, list[tuple[str, str | None]]]:
        """The task, and each turn with its observation."""
        lines = self._lines
        task_end, rows = self._layout
        turns = []
        for start, result, end in rows:
            observation = None if result == end else self._unframed("\n".join(lines[result:end]))
            turns.append(("\n".join(lines[start:result]), observation))
        return "".join(line + "\n" for line in lines[:task_end]), turns

    @cached_property
    def _lines(self) -> list[str]:
        lines = self.body.split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    @cached_property
    def _layout(self) -> tuple[int, list[tuple[int, int, int]]]:
        """Where the task ends, and for each turn the lines (from 0) where it, its observation and what follows begin."""
        lines = self._lines
        starts = [bool(_turn_start(self.labels).match(line)) for line in lines]
        results = [
            bool(_observation(self.labels).match(line)) and not start for line, start in zip(lines, starts, strict=True)
        ]

        def following(found: Sequence[bool], position: int) -> int:
            return next((i for i in range(position, len(lines)) if found[i]), len(lines))

        position = following(starts, 0) if self.task_lines is None else self.task_lines
        if position > len(lines):
            raise self._error(0, f"head: the question has {len(lines)} lines, not {position}")
        task_end, rows, seen = position, [], 0
        while position < len(lines):
            start, result = position, following(results, position + 1)
            if result == len(lines):
                rows.append((start, result, result))
                break
            seen += 1
            span = self.spans.get(seen)
            position = following(starts, result + 1) if span is None else result + span
            if span and (position > len(lines) or (position < len(lines) and not starts[position])):
                raise self._error(result, f"spans: observation {seen} does not end before a label after {span} lines")
            rows.append((start, result, position))
        if unknown := [number for number in self.spans if number > seen]:
            raise self._error(0, f"spans: there is no observation {unknown[0]}")
        return task_end, rows

    def line_of(self, step: int, *, observation: bool = False) -> int:
        """The file's line number where a step (from 1), or its observation, begins."""
        start, result, _ = self._layout[1][step - 1]
        return self.first_line + (result if observation else start)

    def _unframed(self, text: str) -> str:
        """The observation behind its label: one blank is the frame's, the rest its own."""
        return text[len(_observation(self.labels).match(text)[0]) :].removeprefix(" ")  # type: ignore[index]

    def _check_conflicts(self) -> None:
        """Conflict markers are an error, but for those inside an observation whose extent is declared."""
        if "<<<<<<< " not in self.body:
            return
        seen = 0
        declared: set[int] = set()
        for _, result, end in self._layout[1]:
            seen += result < end
            if result < end and seen in self.spans:
                declared.update(range(result, end))
        text = "".join("\n" if i in declared else line + "\n" for i, line in enumerate(self._lines))
        if conflict := _CONFLICT.search(text):
            raise self._error(text.count("\n", 0, conflict.start()), "git conflict markers")

    def _error(self, line: int, message: str) -> AuthorError:
        return AuthorError(message, path=self.path, line=self.first_line + line)


_STRUCTURE = ("format", "labels", "head", "spans", "eol")


def _label(word: str, labels: Labels) -> str:
    return rf"{re.escape(word)}{'(?: [0-9]+)?' if labels.numbered else ''}:"


def _turn_start(labels: Labels) -> re.Pattern[str]:
    """In a trace a label stands at the very start of its line, exactly as the engine writes it."""
    return re.compile(f"^(?:{_label(labels.thought, labels)}|{_label(labels.action, labels)})", re.M)


def _observation(labels: Labels) -> re.Pattern[str]:
    return re.compile(f"^{_label(labels.observation, labels)}", re.M)


def _by_observation(spans: Mapping[int, int], turns: Sequence[tuple[str, str | None]]) -> dict[int, int]:
    """Spans count observations, not turns: a turn may have none."""
    numbers, seen = {}, 0
    for number, (_, observation) in enumerate(turns, 1):
        seen += observation is not None
        if number in spans:
            numbers[seen] = spans[number]
    return numbers


def _labels(head: Head) -> Labels:
    try:
        return Labels.of(head.value("labels") if "labels" in head else "plain")
    except AuthorError as error:
        raise head.error("labels", error.message) from None


def _spans(head: Head) -> dict[int, int]:
    given = head.mapping_of_numbers("spans")
    if any(number < 1 or lines < 1 for number, lines in given.items()):
        raise head.error("spans", "spans must map the number of an observation to its number of lines")
    return given


def _task_lines(head: Head) -> int | None:
    given = head.text("head")
    if given and not given.isdigit():
        raise head.error("head", f"head must be the number of lines of the question, not {given!r}")
    return int(given) if given else None


def _is_mapping(head: Head, key: str) -> bool:
    return isinstance(head.value(key), dict)


def _plain(head: Head, key: str) -> Any:
    value = head.value(key)
    if isinstance(value, (list, tuple)):
        return head.texts(key)
    return value if isinstance(value, dict) else head.text(key)


def _yaml(value: Any) -> str:
    """One line of YAML. Texts that YAML would read otherwise are written as JSON strings, which are YAML too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    text = str(value)
    if re.fullmatch(r"[\w./](?:[\w ./+()$%-]*[\w./+()$%])?", text) and "\n" not in text:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
