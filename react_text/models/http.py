"""Prompt -> completion over HTTP: what all completion servers have in common.

A server is a subclass of `HTTPModel` with a `path`, `request` (what to send) and `read` (what one event says). Streams,
retries, limits and the wording of errors are here, so that they are right once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import email.utils
import itertools
import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import AuthorError, ContextOverflow, ServerError, ServerTimeout
from . import wire
from .base import Completion, Finish, OnText, Options, Usage
from .connection import KEY_VARIABLE, Answer, Client, Retry, Watch

MAX_STOPS = 4  # vLLM and TGI refuse more; the engine cuts at all of them itself
RETRY_STATUS = {408, 429, 500, 502, 503, 504}
BROKEN_ATTEMPTS = 3  # a stream that breaks every time is given up before retry_seconds are over
LONGEST_WAIT = 8.0  # seconds between two attempts, where the server does not ask for more
FIRST_PATIENCE = 3.0  # seconds to wait for a server that has never answered: most likely it is not running
GRACE = 3.0  # seconds in which the token counts have to follow the finish, or the rest of an error its status
CHARACTERS_PER_TOKEN = 32  # no vocabulary gives more on average, so only a server without a limit writes more
LONGEST_LINE = 64 * 2**20  # bytes


@dataclass(frozen=True)
class Piece:
    """What one event of a stream says: new text, why the text ends (None while it goes on), token counts so far."""

    text: str = ""
    finish: Finish | None = None
    usage: Usage = field(default_factory=Usage)


class HTTPModel:
    """A model behind a completion endpoint. Keeps settings only, so one object serves many threads.

    All times are in seconds: `timeout` is the longest silence (a local model may take minutes to read a prompt),
    `total_timeout` bounds a whole completion with its retries, `retry_seconds` how long a failing server is asked
    again, counted from the first failure, and `backoff` is the first wait between two attempts. `send_stop=False` is
    for endpoints that refuse stop strings.
    """

    path = ""
    """Where completions are asked for, below the base URL."""

    optional: tuple[str, ...] = ("stop",)
    """Request fields that are left out when the server refuses them."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        total_timeout: float = 3600.0,
        retry_seconds: float = 60.0,
        backoff: float = 0.5,
        send_stop: bool = True,
    ) -> None:
        for seconds in (timeout, connect_timeout, total_timeout):
            if not 0 < seconds <= threading.TIMEOUT_MAX:
                raise AuthorError(f"a timeout is a positive number of seconds, not {seconds}")
        self.client = Client(url, api_key=api_key, timeout=timeout, connect_timeout=connect_timeout)
        self.model = model
        self.total_timeout = total_timeout
        self.retry_seconds = retry_seconds
        self.backoff = backoff
        self.send_stop = send_stop
        self._answered = False
        self._refused: set[str] = set()  # of `optional`, what this server turned out not to take

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The base URL, as messages show it."""
        return self.client.url

    # What each server says about itself.

    @property
    def name(self) -> str:
        """What logs and traces call this model. Never raises."""
        return self.model or self.url

    def context_size(self) -> int | None:
        """Tokens that the prompt and its completion may have together; None when the server does not tell."""
        return None

    def prepare(self, limit: float) -> None:
        """Ask the server for what `request` needs, until `limit` (a `time.monotonic()` value). Never raises."""

    def request(self, prompt: str, stop: Sequence[str], options: Options) -> dict[str, Any]:
        """The body that asks for a streamed completion; without a stop field when `stop` is empty."""
        raise NotImplementedError

    def read(self, event: dict[str, Any]) -> Piece:
        """What one event says. Errors that it reports in a usual form have been dealt with before."""
        raise NotImplementedError

    # What is the same for all of them.

    def complete(
        self,
        prompt: str,
        *,
        stop: Sequence[str],
        options: Options,
        on_text: OnText | None = None,
        deadline: float | None = None,
    ) -> Completion:
        """See `Model.complete`. The connection is closed, which cancels the work, as soon as `on_text` says enough.

        A stream that breaks after some text is asked for again from its start; before that `on_text.restart()` is
        called, when there is such a method.
        """
        started = time.monotonic()
        limit = started + self.total_timeout
        too_late = f"{self._at} did not finish within {self.total_timeout:g} seconds (total_timeout)"
        if deadline is not None and deadline < limit:
            limit = deadline
            too_late = f"{self._at} did not finish in the {max(0.0, limit - started):.1f} seconds left to it"
        prompt = wire.sendable(prompt)
        warnings: list[str] = []
        give_up: float | None = None
        broken = 0
        for attempt in itertools.count():
            left_out = frozenset(self._refused)
            text = _Text(prompt, CHARACTERS_PER_TOKEN * max(0, options.max_tokens) + 4096, on_text)
            try:
                with Watch(limit, too_late) as watch:
                    self.prepare(limit)
                    finish, usage = self._attempt(self._body(prompt, stop, options, left_out), text, watch)
                break
            except _Refused as refused:
                if refused.field in left_out:
                    raise refused.error from None
                self._refused.add(refused.field)
            except Retry as failure:
                broken += failure.broken
                now = time.monotonic()
                patience = self.retry_seconds if self._answered or failure.broken else FIRST_PATIENCE
                give_up = give_up or now + min(patience, self.retry_seconds)
                backoff = min(self.backoff * 2 ** min(attempt, 16), LONGEST_WAIT) * random.uniform(0.5, 1)
                wait = max(backoff, failure.after)
                if broken >= BROKEN_ATTEMPTS or now + wait > min(give_up, limit):
                    raise failure.error from failure.__cause__
                warnings.append(f"{failure.error} (asked again)")
                time.sleep(wait)
            if text.parts and (restart := getattr(on_text, "restart", None)):
                restart()
        if text.overrun:
            warnings.append(f"{self._at} went on far past max_tokens {options.max_tokens} and was cut off")
        if self.send_stop and "stop" in self._refused:
            warnings.append(f"{self._at} refuses stop strings; to send none from the start, set send_stop: false")
        if usage.completion_tokens is None and (finish == "cut" or text.overrun):
            usage = dataclasses.replace(usage, completion_tokens=len(text.parts))  # servers send one token an event
        return Completion("".join(text.parts), finish, usage, tuple(warnings))

    def refusal(self, path: str, status: int, problem: wire.Problem) -> ServerError:
        """The error for an answer with `status` that reports `problem`, worded for the person who runs the agent."""
        key = self.client.key
        url = self.url + path
        said = wire.shorten(problem.message.replace(key, "***") if key else problem.message)  # some repeat a bad key
        if problem.overflow:
            return ContextOverflow(
                f"{url}: the prompt does not fit the context of the model: {said}",
                prompt_tokens=problem.prompt_tokens,
                context_size=problem.context_size,
            )
        if status in (401, 403):
            said += f" ({'it does not take the given key; change' if key else 'set'} {KEY_VARIABLE} or api_key)"
        if status in (404, 405):
            said += " (a raw completion endpoint is required, a chat endpoint will not do: check the URL and the model)"
        return ServerError(f"{url} {'reports an error' if status == 200 else f'answered {status}'}: {said}")

    @property
    def _at(self) -> str:
        return self.url + self.path

    def _body(self, prompt: str, stop: Sequence[str], options: Options, left_out: frozenset[str]) -> bytes:
        wanted = self.send_stop and "stop" not in left_out
        # An empty stop string ends the text before its first character on llama.cpp.
        stop = [text for text in stop if text][:MAX_STOPS] if wanted else []
        fields = {**self.request(prompt, stop, options), **options.extra}
        fields = {field: value for field, value in fields.items() if field not in left_out}
        try:
            return wire.sendable(json.dumps(fields, ensure_ascii=False, allow_nan=False)).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ServerError(f"{self._at}: these options cannot be sent as JSON: {error}") from error

    def _attempt(self, body: bytes, text: _Text, watch: Watch) -> tuple[Finish, Usage]:
        """Make one request and read its stream into `text`. Raises Retry, _Refused or a ServerError."""
        finish: Finish | None = None
        usage = Usage()
        with self.client.open("POST", self.path, watch, body) as answer:
            self._answered = True
            self._check(answer, watch)
            try:
                for piece in self._pieces(answer):
                    usage = _latest(usage, piece.usage)
                    if text.add(piece.text):
                        return "cut", usage
                    if text.overrun:
                        return "length", usage
                    if piece.finish:
                        finish = piece.finish
                        watch.shorten(GRACE)
                    if finish and None not in (usage.prompt_tokens, usage.completion_tokens):
                        break  # no need to wait for [DONE] or the end of the body, which some servers forget
            except (Retry, ServerTimeout):
                if not finish:  # after it nothing can be missing but the token counts
                    raise
        if not finish:
            raise Retry(ServerError(f"{self._at}: the text ended without a finish reason"), broken=True)
        text.close()
        return finish, usage

    def _check(self, answer: Answer, watch: Watch) -> None:
        """Raise what a failed request deserves. A web page is no completion even at status 200."""
        if answer.status == 200 and "html" not in answer.headers.get("Content-Type", ""):
            return
        watch.shorten(GRACE)
        problem = wire.problem_of(answer.body(2**16))
        if location := answer.headers.get("Location"):
            problem = wire.Problem(f"the URL has moved to {location}")
        error = self.refusal(self.path, answer.status, problem)
        if problem.overflow:
            raise error
        if answer.status in RETRY_STATUS:
            raise Retry(error, after=_retry_after(answer.headers.get("Retry-After", "")))
        if answer.status in (400, 422):
            for field in self.optional:
                if problem.refuses(field):
                    raise _Refused(field, error)
        raise error

    def _pieces(self, answer: Answer) -> Iterator[Piece]:
        """The events of a stream, read. Raises Retry for a broken stream and for an error that may pass."""
        try:
            for event in wire.events(answer.chunks(), LONGEST_LINE):
                if problem := wire.problem_in(event):
                    error = self.refusal(self.path, problem.code or 200, problem)
                    passing = problem.code in RETRY_STATUS and not problem.overflow
                    raise Retry(error, broken=True) if passing else error
                yield self._piece(event)
        except (wire.Malformed, RecursionError) as error:
            raise Retry(ServerError(f"{self._at}: the answer is damaged: {error}"), broken=True) from error

    def _piece(self, event: dict[str, Any]) -> Piece:
        try:
            piece = self.read(event)
            return dataclasses.replace(piece, text=wire.sendable(piece.text))
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            fields = wire.shorten(", ".join(event))
            raise ServerError(f"{self._at} sent an event of unknown form, with the fields {fields}") from error


class _Refused(Exception):
    """The server does not take the optional request field `field`; `error` says so, if it was not even sent."""

    def __init__(self, field: str, error: ServerError) -> None:
        super().__init__(field)
        self.field = field
        self.error = error


class _Text:
    """The text of one attempt: without an echo of the prompt, of at most `most` characters, passed on to `on_text`."""

    def __init__(self, prompt: str, most: int, on_text: OnText | None) -> None:
        self.parts: list[str] = []
        self._room = most
        self._on_text = on_text
        self._prompt = prompt
        self._echoed: int | None = 0  # characters held back: the prompt up to here is all there was. None: no echo

    @property
    def overrun(self) -> bool:
        """Whether there was more text than max_tokens can explain."""
        return self._room <= 0

    def add(self, text: str) -> bool:
        """Take new text; True when `on_text` has had enough."""
        if text and self._echoed is not None:
            if self._echoed < len(self._prompt) and self._prompt.startswith(text, self._echoed):
                self._echoed += len(text)
                return False
            rest = self._prompt[self._echoed :]
            text = text[len(rest) :] if text.startswith(rest) else self._prompt[: self._echoed] + text
            self._echoed = None
        return self._pass(text)

    def close(self) -> None:
        """Pass on what was held back and is not the whole prompt."""
        if self._echoed is not None and self._echoed < len(self._prompt):
            self._pass(self._prompt[: self._echoed])

    def _pass(self, text: str) -> bool:
        text = text[: self._room]
        if not text:
            return False
        self._room -= len(text)
        self.parts.append(text)
        return self._on_text is not None and bool(self._on_text(text))


def _latest(old: Usage, new: Usage) -> Usage:
    """The counts of `new`, where it has any, else those of `old`."""
    known = {name: value for name, value in dataclasses.asdict(new).items() if value is not None}
    return dataclasses.replace(old, **known)


def _retry_after(header: str) -> float:
    """Seconds to wait by a Retry-After header, given there as seconds or as a date; 0 when it says nothing usable."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(header))
    with contextlib.suppress(ValueError):
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    return 0.0
