"""Steps -> the transcript as the prompt shows it: all of it, or in a long run (`context: elide`) the oldest results
shortened, so that prompt and completion fit the model's context.

The prompt of a step begins with the one before it, and the server has that in its cache. Shortening breaks this, so it
is done rarely: not before the context is full, and then until half of the room is free again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .ask import Asked
from .errors import ContextOverflow
from .models.base import Model
from .observe import Observer, frame

_NEWEST = 2  # results that stay whole, as long as half of the room can be had without them
_WORTH = 0.9  # a shortened result is used if it has no more than this share of the whole one
_MARGIN = 20  # one part in so many of the context is left free: what was not counted yet is an estimate
_RESERVE = 4  # max_tokens may be large: no more than one part in so many of the context is kept free for it
_GUESS = 3.0  # bytes of a token, until the server has counted: cautious, English and code have four
_TELLING = 200  # bytes: fewer say nothing about how many a token has


@dataclass
class Gauge:
    """How many tokens prompts have. A server counts each prompt it reads, so only what is new since is estimated."""

    size: int = 0
    tokens: int = 0
    _densities: deque[float] = field(default_factory=lambda: deque(maxlen=4))

    def learn(self, size: int, tokens: int, *, grown: bool) -> None:
        """A prompt of `size` bytes had so many `tokens`; `grown` says that it began with the one before."""
        more = tokens - self.tokens
        if grown and self.size and size - self.size >= _TELLING and more > 0:
            self._densities.append((size - self.size) / more)
        self.size, self.tokens = size, tokens

    def of(self, size: int) -> int:
        """The tokens of a prompt of `size` bytes: one that begins with the last one, or a shortened one."""
        if size < self.size:
            return math.ceil(self.tokens * size / self.size)
        return self.tokens + math.ceil((size - self.size) / min(self._densities, default=_GUESS))


@dataclass(frozen=True)
class _Result:
    """An observation that may still be shortened, and its place among the parts of the transcript. The `payload` is
    what a tool has said; what the engine says around it, to a repeated call, stays."""

    step: int
    place: int
    text: str
    cue: str
    payload: str


class Context:
    """The transcript of a run. `head` is what stands before it in the prompt; `shortened` are the steps whose results
    have been shortened since the last completion, `elided` is their number in the whole run."""

    def __init__(self, model: Model, observer: Observer, head: str) -> None:
        self.transcript = ""
        self.shortened: list[int] = []
        self.elided = 0
        self._model, self._observer = model, observer
        self._settings = observer.settings
        # A script or a person writes the same whatever the prompt shows.
        limited = not getattr(model, "takes_raw", False)
        self._elides = limited and self._settings.context == "elide"
        self._limit = self._settings.limits.max_context if limited else None
        self._head = self._size = _bytes(head)
        self._gauge = Gauge()
        self._most: int | None = None  # tokens of the context, as the server has refused more
        self._parts: list[str] = []
        self._whole: deque[_Result] = deque()

    def add(self, text: str) -> None:
        """A turn, or what the engine says to it: text that stays as it is."""
        self.transcript += text
        self._size += _bytes(text)
        self._parts.append(text)

    def add_result(self, step: int, text: str, cue: str, payload: str) -> None:
        """An observation, behind its label, with the result of a tool in it."""
        self._whole.append(_Result(step, len(self._parts), text, cue, payload))
        self.add(frame(text, cue))

    def ask(self, ask: Callable[[], Asked]) -> Asked:
        """An answer to the prompt, which is made to fit first, and once more if the server says that it does not.

        Raises ContextOverflow when that is not possible, and what `ask` raises."""
        self.shortened = []
        self._fit()
        try:
            asked = ask()
        except ContextOverflow as overflow:
            if not self._shorten_after(overflow):
                raise
            asked = ask()
        if asked.usage.prompt_tokens is not None and not asked.reasked:  # the usage of two prompts would be the sum
            self._gauge.learn(self._size, asked.usage.prompt_tokens, grown=not self.shortened)
        return asked

    def _fit(self) -> None:
        if self._elides and self._whole and (size := self._context_size()) is not None:
            self._shorten(size)
        if self._limit is not None and (tokens := self._gauge.of(self._size)) >= self._limit:
            raise ContextOverflow(
                f"the prompt has about {tokens} tokens, and max_context is {self._limit}; not sent",
                prompt_tokens=tokens,
                context_size=self._limit,
            )

    def _context_size(self) -> int | None:
        told = getattr(self._model, "context_size", None)
        sizes = (self._limit, told() if told else None, self._most)
        return min(filter(None, sizes), default=None)

    def _shorten_after(self, overflow: ContextOverflow) -> bool:
        """The server has refused the prompt, so it counts more tokens than the estimate."""
        if not self._elides:
            return False
        size = overflow.context_size or self._context_size()
        tokens = max(self._gauge.of(self._size), overflow.prompt_tokens or 0, size or 0)
        self._gauge.learn(self._size, tokens, grown=False)
        self._most = size or tokens
        return self._shorten(self._most)

    def _shorten(self, size: int) -> bool:
        """Shorten the oldest results of a prompt that does not fit a context of `size` tokens until half of the room
        behind the head is free; the newest one only if the prompt would not fit otherwise. Whether the transcript is
        another one now."""
        room = size - min(self._settings.options.max_tokens, size // _RESERVE) - size // _MARGIN
        if self._gauge.of(self._size) <= room:
            return False
        enough = (self._gauge.of(self._head) + room) // 2
        before = self.elided
        for newest, most in ((_NEWEST, enough), (1, enough), (0, room)):
            while len(self._whole) > newest and self._gauge.of(self._size) > most:
                self._elide(self._whole.popleft())
        if self.elided > before:
            self.transcript = "".join(self._parts)
        return self.elided > before

    def _elide(self, result: _Result) -> None:
        short = result.text.replace(result.payload, self._observer.elided(result.payload), 1)
        if len(short) > _WORTH * len(result.text):
            return
        framed = frame(short, result.cue)
        self._size += _bytes(framed) - _bytes(self._parts[result.place])
        self._parts[result.place] = framed
        self.shortened.append(result.step)
        self.elided += 1


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
