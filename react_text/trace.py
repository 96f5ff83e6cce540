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
from .frontmatter import Head, read_head, read_text, split_head, unix_lines
from .labels import PLAIN, Labels
from .observe import frame
from .parse import parse_turn

KEYS = (
    "format", "prompt", "prompt_hash", "inputs", "tools", "labels", "options", "answer", "stop_reason", "finish",
    "head", "spans", "eol",
)  # fmt: skip


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
    """A run as text. `str(trace)` is the body; `dump()` the file."""

    body: str
    labels: Labels = PLAIN
    meta: Mapping[str, Any] = field(default_factory=dict)
    spans: Mapping[int, int] = field(default_factory=dict)
    task_lines: int | None = None
    path: Path | None = None
    original: bytes | None = None

    def __str__(self) -> str:
        return self.body

    @classmethod
    def load(cls, source: str | Path | bytes) -> Trace:
        """A trace from a file or its bytes. Raises AuthorError; repairs nothing."""
        path = None if isinstance(source, bytes) else Path(source)
        data = source if isinstance(source, bytes) else None
        text = unix_lines(_decoded(data) if data is not None else read_text(path or ""))
        head_text, body, _ = split_head(text)
        head = read_head(head_text, KEYS, path)
        if head.text("eol", "lf") == "none":
            body = body.removesuffix("\n")
        return cls(
            body=body,
            labels=_labels(head),
            meta={key: head.value(key) if key in ("inputs", "options") else _plain(head, key) for key in head.nodes},
            spans=_spans(head),
            task_lines=int(head.text("head")) if head.text("head").isdigit() else None,
            path=path,
            original=data if data is not None else Path(path or "").read_bytes(),
        )

    @classmethod
    def record(
        cls, task: str, turns: Sequence[tuple[str, str | None]], labels: Labels = PLAIN, meta: Mapping[str, Any] | None = None
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
            if observation is not None and _turn_start(labels).search(observation.partition("\n")[2])
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
        lines = self.body.split("\n")
        if lines[-1] == "":
            lines.pop()
        starts = [bool(_turn_start(self.labels).match(line)) for line in lines]
        results = [bool(re.match(_label(self.labels.observation, self.labels), line)) for line in lines]

        def following(found: Sequence[bool], position: int) -> int:
            return next((i for i in range(position, len(lines)) if found[i]), len(lines))

        position = following(starts, 0) if self.task_lines is None else self.task_lines
        task = "".join(line + "\n" for line in lines[:position])
        turns: list[tuple[str, str | None]] = []
        seen = 0
        while position < len(lines):
            result = following(results, position)
            text = "\n".join(lines[position:result])
            if result == len(lines):
                turns.append((text, None))
                break
            seen += 1
            span = self.spans.get(seen)
            position = following(starts, result + 1) if span is None else result + span
            if position > len(lines) or (span and position < len(lines) and not starts[position]):
                raise self._error("spans", f"spans: observation {seen} does not end at a label after {span} lines")
            turns.append((text, _unframed("\n".join(lines[result:position]))))
        return task, turns

    def _error(self, key: str, message: str) -> AuthorError:
        return AuthorError(message, path=self.path)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AuthorError(f"a trace is UTF-8 (byte {data[error.start]:#04x} at {error.start})") from None


def _label(word: str, labels: Labels) -> str:
    return rf"{re.escape(word)}{'(?: [0-9]+)?' if labels.numbered else ''}:"


def _turn_start(labels: Labels) -> re.Pattern[str]:
    """In a trace a label stands at the very start of its line, exactly as the engine writes it."""
    return re.compile(f"^(?:{_label(labels.thought, labels)}|{_label(labels.action, labels)})", re.M)


def _unframed(text: str) -> str:
    """The observation behind its label: one blank is the frame's, the rest its own."""
    return text[text.index(":") + 1 :].removeprefix(" ")


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
