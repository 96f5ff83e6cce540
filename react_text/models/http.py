"""Prompt -> completion over HTTP: what all completion servers have in common.

Streams, retries, limits and the wording of errors are here, so that they are right once; what differs from server to
server is in `Endpoint` and its subclasses.
"""

from __future__ import annotations

import contextlib
import dataclasses
import email.utils
import itertools
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import ContextOverflow, ServerError, without_password
from . import fit, wire
from .base import Completion, Constraint, Finish, OnText, Options, PromptText, Usage
from .connection import KEY_VARIABLE, Answer, Retry, Watch
from .endpoint import Endpoint, Piece
from .received import Received
from .special import doubled_beginning, first_token

MAX_STOPS = 4  # vLLM and TGI refuse more; the engine cuts at all of them itself
RETRY_STATUS = {408, 429, 500, 502, 503, 504}
BROKEN_ATTEMPTS = 3  # a stream that breaks every time is given up before retry_seconds are over
LONGEST_WAIT = 8.0  # seconds between two attempts, where the server does not ask for more
FIRST_PATIENCE = 3.0  # seconds to wait for a server that has never answered: most likely it is not running
GRACE = 3.0  # seconds in which the token counts have to follow the finish, or the rest of an error its status
CHARACTERS_PER_TOKEN = 32  # no vocabulary gives more on average, so only a server without a limit writes more
LONGEST_LINE = 64 * 2**20  # bytes

_WANTS_MODEL = re.compile(r"\bmodel\b.{0,20}\b(?:missing|required|parameter)\b")


class HTTPModel(Endpoint):
    """A model behind a completion endpoint. `lazy_grammars`: a grammar may begin at a trigger in the text."""

    lazy_grammars = False

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
        """See `Model.complete`. The connection is closed, which cancels the work, as soon as `on_text` says enough.

        A stream that breaks after some text is asked for again from its start; before that `on_text.restart()` is
        called, when there is such a method.
        """
        given = self.constrained(constraint) if constraint else {}
        options = dataclasses.replace(options, extra={**given, **options.extra})
        try:
            completion = self._complete(prompt, stop, options, on_text, deadline)
        except ServerError as error:
            if given and type(error) is ServerError and error.status in (None, 400, 422, 500):
                error.args = (
                    f"{error} (the request held a grammar, which may be the cause: constrain: off sends none)",
                )
            raise
        if constraint and not given:
            completion = completion.warned(f"{self._at} takes no grammar: constrain has no effect there")
        return dataclasses.replace(completion, constrained=bool(given))

    def _complete(
        self, prompt: str, stop: Sequence[str], options: Options, on_text: OnText | None, deadline: float | None
    ) -> Completion:
        started = time.monotonic()
        limit = started + self.total_timeout
        too_late = f"{self._at} did not finish within {self.total_timeout:g} seconds (total_timeout)"
        if deadline is not None and deadline < limit:
            limit = deadline
            too_late = f"{self._at} did not finish in the {max(0.0, limit - started):.1f} seconds left to it"
        prompt = PromptText.of(wire.sendable(prompt))
        warnings: list[str] = []
        wanted = options.max_tokens
        give_up: float | None = None
        broken = 0
        for attempt in itertools.count():
            left_out = frozenset(self._refused)
            # An empty stop string ends the text before its first character on llama.cpp.
            stops = [text for text in stop if text][:MAX_STOPS] if self.send_stop and "stop" not in left_out else []
            text = Received(CHARACTERS_PER_TOKEN * max(0, wanted) + 4096, on_text)
            try:
                with Watch(limit, too_late) as watch:
                    self.prepare(limit)
                    encoded = self.encode(prompt, limit)
                    sent = encoded if isinstance(encoded, str) else prompt
                    text.echo = self.echo(sent)
                    plan = self.plan(sent, options, limit)
                    finish, usage = self._attempt(self._body(encoded, stops, plan.options, left_out), text, watch)
                break
            except ContextOverflow as overflow:
                shortened = fit.shorter(options, overflow.prompt_tokens, overflow.context_size)
                if text.parts or shortened is None:
                    raise
                options = shortened
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
        warnings += self._notes(prompt, encoded, text, stops)
        if plan.options.max_tokens < wanted:
            warnings.append(f"{self._at}: max_tokens is lowered to what the prompt leaves of the context")
        if not usage.prompt_tokens:  # some count nothing and say 0
            usage = dataclasses.replace(usage, prompt_tokens=plan.tokens)
        if usage.completion_tokens is None and (finish == "cut" or text.overrun):
            usage = dataclasses.replace(usage, completion_tokens=len(text.parts))  # servers send one token an event
        return self.checked(sent, Completion(text.text, finish, usage, tuple(warnings)), plan)

    def _notes(self, prompt: PromptText, encoded: Any, text: Received, stops: Sequence[str]) -> Iterator[str]:
        """What the person who runs the agent should know about a completion. The same words each time, since a run
        keeps each warning once."""
        if text.overrun:
            yield f"{self._at} went on far past max_tokens and was cut off"
        if text.hidden and not text.text:
            yield f"{self._at}: empty text, {text.hidden} characters in the thinking field"
        if _runs_past(text.text, stops):
            yield f"{self._at} does not honour stop strings: the text is cut here"
        if isinstance(encoded, str) and encoded != prompt:
            yield f"{self._at}: control tokens in the text ({first_token(prompt)}) are sent with a blank inside"
        if bos := doubled_beginning(prompt):
            yield f"the prompt begins with {bos}, which servers put before it themselves: leave it out"
        if self.send_stop and "stop" in self._refused:
            yield f"{self._at} refuses stop strings; to send none from the start, open it with ?send_stop=false"

    def plan(self, prompt: str, options: Options, limit: float) -> fit.Plan:
        """How the prompt fits, before it is sent. Raises ContextOverflow when it cannot."""
        size = self.context_size(limit)
        return fit.plan(self._at, prompt, options, size, self.count_tokens(prompt, limit), self._before)

    def checked(self, prompt: str, completion: Completion, plan: fit.Plan) -> Completion:
        """The completion, if the server has read the whole prompt; with a warning where that is unlikely.

        Raises ContextOverflow on servers that are known to cut prompts (`cuts_prompts`).
        """
        if completion.usage.prompt_tokens is None:
            return completion
        read, before = fit.Read(prompt, completion.usage.prompt_tokens), self._before
        if self._remembers:
            self._before = read
        sign = self.cut_sign(read, before, plan)
        if not sign:
            return completion
        message = f"{self._at} seems to have cut the prompt without a word: it counts {read.tokens} tokens, {sign}"
        if not self.cuts_prompts:
            return completion.warned(message)
        raise ContextOverflow(message, prompt_tokens=fit.about_tokens(prompt), context_size=plan.size)

    def refusal(self, path: str, status: int, problem: wire.Problem) -> ServerError:
        """The error for an answer with `status` that reports `problem`, worded for the person who runs the agent."""
        url = self.url + path
        said = wire.shorten(self.client.hide(problem.message))
        if problem.overflow:
            return ContextOverflow(
                f"{url}: the prompt does not fit the context of the model: {said}",
                prompt_tokens=problem.prompt_tokens,
                context_size=problem.context_size,
            )
        if status in (401, 403):
            do = "it does not take the given key; change" if self.client.key else "set"
            said += f" ({do} {KEY_VARIABLE} or api_key)"
        elif not self.model and _WANTS_MODEL.search(said):
            said += " (name one behind the URL: ?model=NAME)"
        if status in (404, 405):
            said += f" ({self.not_found})"
        error = ServerError(f"{url} {'reports an error' if status == 200 else f'answered {status}'}: {said}")
        error.status = status
        return error

    @property
    def _at(self) -> str:
        return self.url + self.path

    def _body(self, prompt: Any, stop: Sequence[str], options: Options, left_out: frozenset[str]) -> bytes:
        fields = self.request(prompt, stop, options)
        for name, value in options.extra.items():
            (fields[self.sampling] if self.sampling and name not in self.outside else fields)[name] = value
        fields = {field: value for field, value in fields.items() if field not in left_out}
        try:
            return wire.sendable(json.dumps(fields, ensure_ascii=False, allow_nan=False)).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ServerError(f"{self._at}: these options cannot be sent as JSON: {error}") from error

    def _attempt(self, body: bytes, text: Received, watch: Watch) -> tuple[Finish, Usage]:
        """Make one request and read its stream into `text`. Raises Retry, _Refused or a ServerError."""
        finish: Finish | None = None
        usage = Usage()
        with self.client.open("POST", self.path, watch, body) as answer:
            self._answered = True
            self._check(answer, watch)
            try:
                for piece in self._pieces(answer):
                    usage = _latest(usage, piece.usage)
                    if not finish:
                        text.hidden += piece.hidden
                        enough = text.add(piece.text, whole=piece.whole)
                        own: Finish | None = (
                            "cut" if enough else "eos" if text.ended else "length" if text.overrun else None
                        )
                        finish = own or piece.finish
                        if finish:
                            wait = self.linger if own else GRACE
                            if not wait or text.overrun:
                                break
                            watch.shorten(wait)
                    if finish and None not in (usage.prompt_tokens, usage.completion_tokens):
                        break  # no need to wait for [DONE] or the end of the body, which some servers forget
            except (Retry, ServerError):
                if not finish:  # after it nothing can be missing but the token counts
                    raise
        if not finish:
            raise Retry(ServerError(f"{self._at}: the text ended without a finish reason"), broken=True)
        if finish != "cut":
            text.close()
        return finish, usage

    def _check(self, answer: Answer, watch: Watch) -> None:
        """Raise what a failed request deserves. A web page is no completion even at status 200."""
        if answer.status == 200 and "html" not in answer.headers.get("Content-Type", ""):
            return
        watch.shorten(GRACE)
        problem = wire.problem_of(answer.body(2**16))
        if location := answer.headers.get("Location"):
            problem = wire.Problem(f"the URL has moved to {without_password(location)}")
        error = self.refusal(self.path, answer.status, problem)
        if problem.lasting:
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
                if problem := self.problem(event):
                    error = self.refusal(self.path, problem.code or 200, problem)
                    passing = problem.code in RETRY_STATUS and not problem.lasting
                    raise Retry(error, broken=True) if passing else error
                yield self._piece(event)
        except (wire.Malformed, RecursionError) as error:
            said = self.client.hide(str(error))
            raise Retry(ServerError(f"{self._at}: the answer is damaged: {said}"), broken=True) from error

    def _piece(self, event: dict[str, Any]) -> Piece:
        try:
            piece = self.read(event)
            if not isinstance(piece.text, str):
                raise TypeError
            return piece
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            fields = wire.shorten(", ".join(event))
            raise ServerError(f"{self._at} sent an event of unknown form, with the fields {fields}") from error


class _Refused(Exception):
    """The server does not take the optional request field `field`; `error` says so, if it was not even sent."""

    def __init__(self, field: str, error: ServerError) -> None:
        super().__init__(field)
        self.field = field
        self.error = error


def _runs_past(text: str, stops: Sequence[str]) -> bool:
    """Whether there is text behind a stop string. At the very end some servers return the string itself."""
    return any(text.partition(stop)[2].strip() for stop in stops)


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
