"""Faithful fakes of completion servers: each reads the request as its server does and answers with its bytes.

A fake "model" would write `text` if nothing stopped it; tokens are pieces of four characters. Each server knows its
stop strings, its default for max_tokens, its limits, the events of its stream, its errors, and what it does with a
prompt that is too long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..fakes import Answer, FakeServer, Request, Script

TURN = " Look it up.\nAction: lookup[pier 🌊]"
TEXT = TURN + "\nObservation: 240 m\nThought: Good.\nAction: finish[240 m]"


def pieces(text: str) -> list[str]:
    """The tokens of a text."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def tokens(text: str) -> int:
    return len(pieces(text))


@dataclass(frozen=True)
class Written:
    """What the model wrote: a piece for each token, and why it stopped: `eos`, `length`, or the stop string."""

    pieces: Sequence[str]
    reason: str

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def stopped(self) -> bool:
        return self.reason not in ("eos", "length")


def write(text: str, stop: Sequence[str], max_tokens: int | None, *, keep_stop: bool = False) -> Written:
    """What a model that would write `text` gets to write: the earliest stop string or max_tokens ends it."""
    parts = pieces(text)
    limited = parts if max_tokens is None else parts[:max_tokens]
    whole = "".join(limited)
    met = min((found for found in stop if found in whole), key=whole.index, default=None)
    if met is not None:
        return Written(pieces(whole[: whole.index(met) + len(met) * keep_stop]), met)
    return Written(limited, "eos" if len(limited) == len(parts) else "length")


Fault = Answer | Callable[[Answer], Answer]


class Server(FakeServer):
    """A server at work: it writes `texts` one after the other, the last one again and again.

    `faults` come first: answers instead of completions, or functions that damage one. `split` cuts every body into
    chunks of so many bytes, wherever that falls; `delay` is the pause before each. Further `settings` are of the
    server's kind.
    """

    kind: ClassVar[str]
    path: ClassVar[str]
    """Where completions are asked for."""

    def __init__(
        self,
        *texts: str,
        context: int = 4096,
        split: int = 0,
        delay: float = 0.0,
        faults: Sequence[Fault] = (),
        **settings: Any,
    ) -> None:
        self.context = context
        self.settings = settings
        self.faults = list(faults)
        self._texts = list(texts or [TEXT])
        self._split, self._delay = split, delay
        super().__init__(self._route, pages=self.pages())

    @property
    def text(self) -> str:
        """What the model is about to write."""
        return self._texts[0]

    @property
    def completions(self) -> list[Request]:
        """The requests for completions."""
        return [request for request in self.requests if request.path == self.path]

    def pages(self) -> Mapping[str, Script]:
        """What GET gives."""
        return {}

    def complete(self, body: dict[str, Any]) -> Answer:
        """The answer to a request for a completion."""
        raise NotImplementedError

    def other(self, path: str, body: dict[str, Any]) -> Answer:
        """The answer to any other POST."""
        return self.refuse(404, "Not Found")

    def refuse(self, status: int, message: str) -> Answer:
        """An error as the server words it."""
        raise NotImplementedError

    def failing(self, message: str) -> bytes:
        """An error in the middle of a stream."""
        raise NotImplementedError

    def _route(self, request: Request) -> Answer:
        if request.path != self.path:
            return self.other(request.path, request.json)
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Answer):
            return fault
        answer = self.complete(request.json)
        if fault:
            return fault(answer)
        if len(self._texts) > 1:
            del self._texts[0]
        chunks = list(answer.chunks)
        if self._split:
            data = b"".join(chunks)
            chunks = [data[at : at + self._split] for at in range(0, len(data), self._split)]
        return answer.but(chunks=chunks, delay=self._delay)
