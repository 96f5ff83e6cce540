"""What differs between completion servers: what they are sent, what their events say, what they tell about themselves.

A server is a subclass of `HTTPModel`, which is an `Endpoint` that can be asked for a completion. It needs a `path`,
`request` and `read`; everything else has a default.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import AuthorError, ServerError
from . import fit, wire
from .base import Constraint, Finish, Options, PromptText, Usage
from .chat_template import TemplateSource
from .connection import Client
from .special import broken_up

PATIENCE = 3.0  # seconds for a question about the server or its model, which is answered even while it is busy


@dataclass(frozen=True)
class Piece:
    """What one event of a stream says: new text, why the text ends (None while it goes on), token counts so far.

    `whole`: the text is all there is so far. `hidden`: characters of reasoning that the server keeps out of the text.
    """

    text: str = ""
    finish: Finish | None = None
    usage: Usage = field(default_factory=Usage)
    whole: bool = False
    hidden: int = 0


class Endpoint:
    """A completion endpoint at the base URL `url`. Keeps settings and what the server says about itself, so one object
    serves many threads.

    All times are in seconds: `timeout` is the longest silence (a local model may take minutes to read a prompt),
    `total_timeout` bounds a whole completion with its retries, `retry_seconds` how long a failing server is asked
    again, counted from the first failure, and `backoff` is the first wait between two attempts. `send_stop=False` is
    for endpoints that refuse stop strings. `num_ctx` is the size of the context in tokens: asked for where a request
    can choose it, elsewhere believed where the server does not tell.
    """

    path = ""
    """Where completions are asked for, below the base URL."""

    optional: Sequence[str] = ("stop",)
    """Request fields that are left out when the server refuses them."""

    sampling = ""
    """The request field that holds the sampling options; "" when they stand beside the prompt."""

    outside: Collection[str] = ()
    """Options of the author that stand beside the prompt all the same."""

    cuts_prompts = False
    """Whether the server drops a part of a prompt that does not fit and says nothing."""

    not_found = "a raw completion endpoint is required, a chat endpoint will not do: check the URL and the model"
    """What to do about a URL that the server does not know."""

    linger = 0.0
    """Seconds in which the server may finish by itself after the turn is over: some tell their counts at the end only.
    It is about to write the stop string."""

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
        num_ctx: int | None = None,
    ) -> None:
        for seconds in (timeout, connect_timeout, total_timeout):
            if not 0 < seconds <= threading.TIMEOUT_MAX:
                raise AuthorError(f"a timeout is a positive number of seconds, not {seconds}")
        if num_ctx is not None and num_ctx < 1:
            raise AuthorError(f"num_ctx is a number of tokens above 0, not {num_ctx}")
        self.client = Client(url, api_key=api_key, timeout=timeout, connect_timeout=connect_timeout)
        self.model = model
        self.total_timeout = total_timeout
        self.retry_seconds = retry_seconds
        self.backoff = backoff
        self.send_stop = send_stop
        self.num_ctx = num_ctx
        self._answered = False
        self._refused: set[str] = set()  # of `optional`, what this server turned out not to take
        self._pages: dict[str, dict[str, Any]] = {}
        self._remembers = False
        self._before: fit.Read | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The base URL, as messages show it."""
        return self.client.url

    def session(self) -> Endpoint:
        """This model for a single run, whose prompts only grow: a server that counts fewer tokens has cut one."""
        run = copy.copy(self)
        run._remembers = True
        return run

    @property
    def name(self) -> str:
        """What logs and traces call this model. Never raises."""
        return self.model or self.url

    def page(self, path: str, limit: float = math.inf) -> dict[str, Any]:
        """The JSON object that GET `path` gives, asked for once, until `limit`; {} when there is none to be had. With a
        `limit` of 0 nothing is asked. Never raises."""
        if path not in self._pages:
            if not limit:
                return {}
            try:
                reply = self.client.get(path, min(limit, time.monotonic() + PATIENCE))
            except ServerError:
                return {}
            if reply.status >= 500:  # not ready yet
                return {}
            self._pages[path] = reply.json if reply.status == 200 else {}
        return self._pages[path]

    def context_size(self, limit: float = math.inf) -> int | None:
        """Tokens that the prompt and its completion may have together; None when nobody knows. The server is asked
        until `limit` (a `time.monotonic()` value). Never raises."""
        return self.num_ctx

    def count_tokens(self, prompt: str, limit: float = math.inf) -> int | None:
        """The tokens of a prompt by the server's tokenizer; None where there is none, and on servers that refuse by
        themselves what does not fit. Never raises."""
        return None

    def prepare(self, limit: float) -> None:
        """Ask the server for what `request` needs, until `limit` (a `time.monotonic()` value). Raises ServerError when
        the request cannot be made."""

    def chat_template(self) -> TemplateSource | None:
        """The chat template of the model; None when the server does not tell. Raises ServerError when it does not
        answer."""
        return None

    def encode(self, prompt: PromptText, limit: float) -> Any:
        """The prompt as `request` is given it. What looks like a control token in its data goes to the model as text:
        here it is broken up. Called for every attempt, after `prepare` and with its `limit`; never raises."""
        return broken_up(prompt)

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        """The body that asks for a streamed completion of an encoded prompt. No stop field when `stop` is empty."""
        raise NotImplementedError

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        """The options that make the server keep to a constraint; {} where it takes none."""
        return {}

    def problem(self, event: dict[str, Any]) -> wire.Problem | None:
        """The error that an event reports, None for none. It is not read then."""
        return wire.problem_in(event)

    def read(self, event: dict[str, Any]) -> Piece:
        """What one event says."""
        raise NotImplementedError

    def echo(self, prompt: str) -> str:
        """What a server may repeat before the new text."""
        return prompt

    def cut_sign(self, read: fit.Read, before: fit.Read | None, plan: fit.Plan) -> str:
        """By what the server shows that it has cut the prompt, "" when nothing does. `before` is the run's last one."""
        if fit.shrank(read, before):
            return f"{before.tokens if before else 0} before, for a prompt that has only grown"
        least = fit.least_tokens(read.prompt)
        return f"at least {least} are in it" if read.tokens < least else ""
