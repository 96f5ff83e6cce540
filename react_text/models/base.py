"""The one seam between the engine and a language model: prompt in, `Completion` out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Finish = Literal["stop", "eos", "length", "cut"]
"""Why a completion ended: a stop string, the end-of-text token, max_tokens, or because the client closed the stream.
Servers that do not tell `stop` from `eos` are recorded as `stop`."""

OnText = Callable[[str], bool]
"""Called with each new piece of a stream; returns True when no more is needed, and the stream is closed there. A model
that has its text all at once need not call it."""


@dataclass(frozen=True)
class Options:
    """How to sample one completion. `max_tokens` is always sent: some servers stop after 16 tokens otherwise.

    `extra` holds further request fields, sent under the names the author gave (`top_p`, `min_p`, `cache_prompt`...).
    """

    max_tokens: int = 256
    temperature: float = 0.0
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All fields that are set, `extra` among them."""
        seed = {} if self.seed is None else {"seed": self.seed}
        return {"max_tokens": self.max_tokens, "temperature": self.temperature, **seed, **self.extra}


@dataclass(frozen=True)
class Usage:
    """Token counts; None where the server did not tell. `cached_tokens` are the prompt tokens that it did not have to
    evaluate again."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _total(self.prompt_tokens, other.prompt_tokens),
            _total(self.completion_tokens, other.completion_tokens),
            _total(self.cached_tokens, other.cached_tokens),
        )


def _total(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


@dataclass(frozen=True)
class Completion:
    """What a model wrote after a prompt, and why it stopped. `warnings` are for people: a server that ignored stop.
    `constrained`: the server was given the constraint; whether it keeps to it is another question."""

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    constrained: bool = False

    def warned(self, warning: str) -> Completion:
        """The same with one warning more."""
        return dataclasses.replace(self, warnings=(*self.warnings, warning))


class PromptText(str):
    """A prompt that knows its parts. Everywhere else it is a plain `str`, and a plain `str` will do in its place.

    head     the characters up to the end of head and task: what a chat endpoint takes as the user's message. The rest
             is the transcript. 0 where that is not known.
    markup   spans (start, end) of text that a chat template has added. Only there may a control token of the model
             stand: everything else is data and is read as text, whatever it looks like.
    """

    head: int
    markup: tuple[tuple[int, int], ...]

    def __new__(cls, text: str, head: int = 0, markup: Sequence[tuple[int, int]] = ()) -> PromptText:
        prompt = super().__new__(cls, text)
        prompt.head, prompt.markup = head, tuple(markup)
        return prompt

    @classmethod
    def of(cls, text: str) -> PromptText:
        """The prompt itself, or a plain text as one without known parts."""
        return text if isinstance(text, cls) else cls(text)

    def __add__(self, more: str) -> PromptText:
        """The prompt with more transcript behind it."""
        return PromptText(str.__add__(self, more), self.head, self.markup)


class Constraint(Protocol):
    """What a completion may be, in each language that a server may take; made when it is asked for.

    gbnf        the grammar language of llama.cpp
    regex       without look-ahead, for the whole completion
    lark        the dialect of llguidance
    lazy        the author wants thoughts left alone: servers that can are given `lazy_gbnf` in place of the whole. It
                holds from where the group of the pattern `trigger` begins, once that is found in the text.
    """

    @property
    def gbnf(self) -> str: ...
    @property
    def regex(self) -> str: ...
    @property
    def lark(self) -> str: ...
    @property
    def lazy(self) -> bool: ...
    @property
    def lazy_gbnf(self) -> str: ...
    @property
    def trigger(self) -> str: ...

    def accepts(self, text: str) -> bool:
        """Whether a whole completion keeps to it."""


class Model(Protocol):
    """Anything that continues a text.

    A model that remembers something between completions (a script its place) has a method `session()` as well: it
    gives the model that a single run asks. One that knows how many tokens its context holds, for prompt and completion
    together, has a method `context_size()`.
    """

    @property
    def name(self) -> str:
        """What logs and traces call this model."""

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
        """Continue `prompt` until a `stop` string, the model's own end, `options.max_tokens`, or `on_text` says enough.

        `deadline` is a `time.monotonic()` value; a `constraint` is for servers that can decode by one, and only given
        where the author wants it. Raises `ServerError` (or `ServerTimeout`, `ContextOverflow`) and nothing else.
        """
