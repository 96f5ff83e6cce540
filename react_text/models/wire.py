"""Bytes of an HTTP answer -> the events in it, and error bodies of every known shape -> `Problem`. No I/O here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# The wordings by which servers say that a prompt (or prompt plus max_tokens) does not fit. One server uses status 400
# and 500 for it, others 422 or an error inside a 200, so only the words can tell it from a fault worth a retry.
_OVERFLOW = (
    "exceed_context_size_error",
    "exceeds the available context size",
    "context size has been exceeded",
    "maximum context length",
    "context length is only",
    "longer than the model's context length",
    "requested token count exceeds",
    "`inputs` tokens + `max_new_tokens`",
    "must have less than",
    "context_length_exceeded",
    "trying to keep the first",
    "longer than the context length currently available",
    "greater than the context length",
    "longer than the maximum model length",  # vLLM since 0.8
    "exceeds the maximum allowed length",  # SGLang
    "exceed context window",  # llama-cpp-python
    "reached context length",  # LM Studio, in the middle of a text
    "exceeds the context length",
    "greater than max_seq_len",
    "prompt is too long",
    "max_tokens must be at least 1, got -",  # vLLM, of what a prompt leaves
)
_CONTEXT_SIZE = (
    r"max_seq_len (\d{1,9})",
    r"context (?:size|length|window)(?: is| of)?(?: only)? ?\(?(\d{1,9})",
    r"(?:maximum model|maximum allowed) length (?:of )?\(?(\d{1,9})",
    r"(?:<=|less than) (\d{1,9})",
    r"n_ctx\W+(\d{1,9})",
)
_PROMPT_TOKENS = (  # the most exact first: several messages also give the sum of prompt and max_tokens
    r"(\d{1,9}) in (?:the|your) (?:messages|prompt)",
    r"(\d{1,9}) tokens from the input",
    r"(\d{1,9}) input tokens",
    r"(?:request|input|input length) \((\d{1,9}) tokens\)",
    r"prompt (?:length (?:of )?|\(length )(\d{1,9})",
    r"prompt is too long: (\d{1,9})",
    r"context length (\d{1,9}) is greater",
    r"given: (\d{1,9})",
    r"keep the first (\d{1,9})",
    r"requested (?:a total of |about |tokens \()?(\d{1,9})",
    r"n_prompt_tokens\W+(\d{1,9})",
)
_BYTES = "surrogateescape"
_BOM = b"\xef\xbb\xbf"
_REFUSES_FIELD = re.compile("support|permit|allow|unknown|unrecogni[sz]ed|unexpected|extra|invalid", re.IGNORECASE)


_PLAIN = frozenset({"message", "type", "code", "status", "param", "success"})


class Malformed(ValueError):
    """The answer is not what it claims to be: broken off in the middle, not JSON, or a line without end."""


@dataclass(frozen=True)
class Problem:
    """What a server says is wrong. `param` is the request field it names, `code` the status given inside the body."""

    message: str
    kind: str = ""
    param: str = ""
    code: int | None = None
    prompt_tokens: int | None = None
    context_size: int | None = None

    @property
    def overflow(self) -> bool:
        """Whether the prompt does not fit the context."""
        said = f"{self.message} {self.kind}".lower()
        return any(words in said for words in _OVERFLOW)

    @property
    def lasting(self) -> bool:
        """Whether asking again unchanged is hopeless, whatever the status: llama.cpp gives a 500 for a grammar."""
        return self.overflow or "grammar" in self.message.lower()

    def refuses(self, field: str) -> bool:
        """Whether the request field `field` is what the server does not take."""
        named = re.search(rf"\b{field}\b", self.message) and _REFUSES_FIELD.search(self.message)
        return self.param == field or bool(named)


def events(chunks: Iterable[bytes], longest: int) -> Iterator[dict[str, Any]]:
    """The JSON objects in a body: server-sent events, one object a line, or a single object over many lines.

    Every `data:` line is an event of its own, because no completion server spreads one over several; the data of an
    event with the name `error` is one, whatever it looks like. Bytes that are no UTF-8, because a server splits
    characters between events, stand there as lone surrogates: see `Received`. Ends at `[DONE]` or with the bytes;
    raises `Malformed` for what is no JSON object and for lines of more than `longest` bytes.
    """
    source = lines(chunks, longest)
    failed = False
    for raw in source:
        line = raw.strip().removeprefix(_BOM)
        if line.startswith(b"event:"):
            failed = line[6:].strip() == b"error"
        elif line.startswith(b"{"):
            try:
                event = decode(line, _BYTES)
            except Malformed:  # the first line of an indented object
                event = decode(line + b"".join(lines(source, longest)), _BYTES)
            yield event
        elif line.startswith(b"data:"):
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            if data:
                yield _failure(data) if failed else decode(data, _BYTES)
        elif line.startswith(b"error:"):  # llama.cpp before September 2025
            yield _failure(line[6:].strip())


def _failure(data: bytes) -> dict[str, Any]:
    """An error that is told beside the stream, in the form of one that is told in it."""
    try:
        event = decode(data)
    except Malformed:
        return {"error": shorten(data)}
    return event if event.get("error") else {"error": event}


def lines(chunks: Iterable[bytes], longest: int) -> Iterator[bytes]:
    """Split at line feeds only: U+2028 and its like are ordinary characters inside JSON. The last line may be open."""
    tail = bytearray()
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        tail += first
        for part in rest:
            yield bytes(tail)
            tail = bytearray(part)
        if len(tail) > longest:
            raise Malformed(f"a line of more than {longest} bytes")
    if tail:
        yield bytes(tail)


def decode(data: bytes, errors: str = "strict") -> dict[str, Any]:
    """One JSON object. Decoded only when whole, so that characters split between two reads come out right."""
    try:
        value = json.loads(data.decode(errors=errors))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"no JSON: {shorten(data)!r}") from error
    if not isinstance(value, dict):
        raise Malformed(f"no JSON object: {shorten(data)!r}")
    return value


def problem_in(value: Any) -> Problem | None:
    """The error that a decoded body or event reports, whatever its HTTP status; None when it reports none.

    Shapes: {"error": {"message"}}, {"error": "text", "error_type"}, {"object": "error", "message"}, {"detail": "text"},
    {"detail": {"msg"}}, {"detail": [{"msg", "loc"}]}, {"message", "type"} alone, {"choices": [{"error": {"message"}}]}.
    OpenRouter has what the provider said in {"error": {"metadata": {"raw"}}}.
    """
    if not isinstance(value, dict):
        return None
    plain = value.get("object") == "error" or (isinstance(value.get("message"), str) and not value.keys() - _PLAIN)
    error = value.get("error") or (value if plain else value.get("detail")) or _in_choice(value)
    if isinstance(error, list) and error:
        error = error[0]
    if not error:
        return None
    if not isinstance(error, dict):
        error = {"message": str(error), "type": value.get("error_type")}
    kind = " ".join(str(error[key]) for key in ("type", "code") if error.get(key) is not None)
    message = str(error.get("message") or error.get("msg") or error.get("error") or kind or error)
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        message = f"{message}: {metadata['raw']}"
    place = error.get("loc")
    param = error.get("param") or (place[-1] if isinstance(place, list) and place else "")
    said = f"{message} {kind}".lower()
    return Problem(
        message=message,
        kind=kind,
        param=str(param),
        code=_status(error.get("code")),
        prompt_tokens=count(error.get("n_prompt_tokens")) or _number(_PROMPT_TOKENS, said),
        context_size=count(error.get("n_ctx")) or _number(_CONTEXT_SIZE, said),
    )


def _in_choice(value: dict[str, Any]) -> Any:
    """The error of the first choice, where a server passes on what another one said."""
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


def problem_of(body: bytes) -> Problem:
    """The error that the body of a failed request reports; a page of HTML is reduced to its first words."""
    try:
        problem = problem_in(decode(body))
    except (Malformed, RecursionError):
        problem = None
    return problem or Problem(shorten(body) or "no explanation")


def count(value: Any) -> int | None:
    """A number of tokens, or None for anything else a server may have put there."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _status(value: Any) -> int | None:
    """An HTTP status inside a body; some write it as text, others put a word there."""
    return int(value) if isinstance(value, str) and re.fullmatch("[1-5][0-9][0-9]", value) else count(value)


def sendable(text: str) -> str:
    """`text` without lone surrogates, which UTF-8 cannot carry: halves of a pair are joined, others become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _number(patterns: Iterable[str], text: str) -> int | None:
    found = (re.search(pattern, text) for pattern in patterns)
    return next((int(match[1]) for match in found if match), None)


def shorten(said: str | bytes, most: int = 300) -> str:
    """The first words of a message on one line, without tags and without control characters (terminal escapes)."""
    text = said[: 8 * most]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    text = sendable(text)
    text = re.sub(r"</?[a-zA-Z!][^<>]*(?:>|$)|[\x00-\x20\x7f-\x9f]+", " ", text)
    text = re.sub(" +", " ", text).strip()
    return text if len(text) <= most else text[:most] + "..."
