"""Chat transcripts, one JSON object with `messages` a line <-> traces.

A turn of the assistant is a turn of the model, what the user or a tool says after it the observation. Calls that are no
text become actions, and a last message without an action becomes `finish`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import AuthorError, ParseError
from ..formats import Imported, file_name, numbered
from ..frontmatter import read_text
from ..labels import NUMBERED, PLAIN, Labels, label_line
from ..layout import framed, unframed
from ..loop import turn_line
from ..nearmiss import FINISH
from ..parse import parse_turn
from ..trace import Trace, is_finish
from .langchain import action_line

_ROLES = {"human": "user", "gpt": "assistant", "function": "tool", "observation": "tool", "developer": "system"}
_NUMBERED = re.compile(r"(?:Thought|Action) [0-9]+:")
# Forms of an action that other engines teach, and the label that an answer has there.
_FOREIGN = ("action_input", "answer_label")


@dataclass(frozen=True)
class _Message:
    role: str
    text: str
    calls: Sequence[Any] = ()
    call: str = ""
    """The call that a tool's message answers."""


@dataclass
class _Turn:
    text: str
    call: str = ""
    observation: str | None = None


def read(path: Path) -> Imported:
    """The conversations of a file as traces. Raises AuthorError."""
    traces, left_out = [], 0
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            messages = list(_messages(line))
            left_out += sum(message.role == "system" for message in messages)
            traces.append(_trace([message for message in messages if message.role != "system"]))
        except AuthorError as error:
            raise AuthorError(error.message, path=path, line=number) from None
    if not traces:
        raise AuthorError("it holds no conversation", path=path)
    notes = [f"{left_out} system messages were left out: they belong into a prompt file"] if left_out else []
    return Imported(numbered(file_name(path.stem), traces), notes=notes)


def messages_of(trace: Trace, head: str = "") -> list[dict[str, str]]:
    """A trace as messages; `head` is what its prompt says before the question. Reading them gives a trace again, the
    same one when its question begins with `Question:`."""
    messages = [_message("system", head)] if head else []
    messages += [_message("user", trace.task.removesuffix("\n"))] if trace.task else []
    for number, step in enumerate(trace.steps, 1):
        messages.append(_message("assistant", step.text))
        if step.observation is not None:
            messages.append(_message("user", framed(step.observation, trace.labels, number).removesuffix("\n")))
    return messages


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _messages(line: str) -> Iterator[_Message]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise AuthorError(f"this line is not JSON: {getattr(error, 'msg', error)}") from None
    given = record.get("messages", record.get("conversations")) if isinstance(record, dict) else record
    if not isinstance(given, list) or not all(isinstance(message, dict) for message in given):
        raise AuthorError("this line has no list of `messages`")
    for message in given:
        role = message.get("role", message.get("from"))
        role = _ROLES.get(role, role) if isinstance(role, str) else role
        if role not in ("system", "user", "assistant", "tool"):
            raise AuthorError(f"a message has the role {role!r}")
        text = _text(message.get("content", message.get("value")))
        yield _Message(role, text, message.get("tool_calls") or (), str(message.get("tool_call_id") or ""))


def _text(content: Any) -> str:
    if isinstance(content, list) and all(isinstance(part, Mapping) and "text" in part for part in content):
        content = "".join(str(part["text"]) for part in content)
    if content is not None and not isinstance(content, str):
        raise AuthorError("a message has something other than text for its content")
    return content or ""


def _trace(messages: Sequence[_Message]) -> Trace:
    question = messages[0].text if messages and messages[0].role == "user" else ""
    said = messages[1:] if question else messages
    labels = NUMBERED if any(_NUMBERED.match(each.text) for each in said if each.role == "assistant") else PLAIN
    turns: list[_Turn] = []
    for message, following in zip(said, [*said[1:], None], strict=False):
        if message.role == "assistant":
            turns += _turns(message, following, labels, len(turns) + 1)
        else:
            _observe(turns, message, labels)
    if not turns:
        raise AuthorError("this conversation has no message of an assistant")
    # A question of several lines has its label somewhere, as one with a label has.
    own = "\n" in question or label_line(PLAIN.question).match(question)
    task = "" if not question else f"{question}\n" if own else f"{PLAIN.question}: {question}\n"
    trace = Trace.record(task, [(turn.text, turn.observation) for turn in turns], labels)
    answer = trace.steps[-1].arguments if is_finish(trace.steps[-1]) else None
    return replace(trace, meta={"answer": answer, "test": "false"})


def _turns(message: _Message, following: _Message | None, labels: Labels, number: int) -> Iterator[_Turn]:
    """The turns of one message: one, or one for each call."""
    text = message.text.strip()
    for count, call in enumerate(message.calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise AuthorError("a call has no function with a name")
        given = function.get("arguments") or ""
        given = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        line = action_line(function["name"], "" if given.strip() == "{}" else given, labels)
        kept = f"{text}\n{line}" if text and not count else line
        yield _Turn(turn_line(kept, labels, number + count), str(call.get("id") or ""))
    if not message.calls:
        label = label_line(labels.thought).match(text)
        kept = _kept(text[label.end() :] if label else text, following, labels)
        yield _Turn(turn_line(kept, labels, number))


def _kept(text: str, following: _Message | None, labels: Labels) -> str:
    """What is kept of a message: a last one without an action is the answer."""
    try:
        return parse_turn(text, labels=labels).clean
    except ParseError as error:
        refused = following is not None and unframed(following.text, labels).startswith("Error: ")
        if error.kind in _FOREIGN and not refused:
            return parse_turn(text, labels=labels, lenient=[error.correction.partition("[")[0]]).clean
        return error.text if following else action_line(FINISH, text.strip(), labels)


def _observe(turns: Sequence[_Turn], message: _Message, labels: Labels) -> None:
    """Text after a turn is its observation: that of the call it names, else of the first call that has none yet."""
    if not turns:
        raise AuthorError("this conversation has two messages before the assistant's first")
    open_turns = [turn for turn in turns if turn.observation is None]
    named = [turn for turn in turns if message.call and turn.call == message.call]
    turn = (named or [turn for turn in open_turns if turn.call] or turns[-1:])[0]
    text = unframed(message.text, labels)
    turn.observation = text if turn.observation is None else f"{turn.observation}\n{text}"
