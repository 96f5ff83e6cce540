"""Prompt and max_tokens -> whether they fit the context; and the signs of a prompt that a server cut without a word.

Only the server can count tokens. Where it has no tokenizer to ask there are estimates: `least_tokens`, which no real
text stays below, and `about_tokens`, right within a factor of two.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from ..errors import ContextOverflow
from .base import Options

LEAST_ROOM = 16  # tokens: no action fits in fewer

_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)  # vocabularies have tokens for long runs of blanks, dashes, dots
_TAIL = 256  # characters at the end of a prompt that may be others in the next one: the cue, what steps are left
_SAME = 8  # tokens by which two counts of the same text may differ: the cue changes, tokens at a seam merge


def about_tokens(text: str) -> int:
    """The usual number of tokens: four bytes each, in English, in code and in Chinese."""
    return len(text.encode()) // 4


def least_tokens(text: str) -> int:
    """Fewer tokens than any vocabulary makes of a real text: eight bytes each, runs of one character counted once."""
    return len(_RUN.sub(r"\1", text).encode()) // 8


@dataclass(frozen=True)
class Read:
    """A prompt, and how many tokens the server says it was."""

    prompt: str
    tokens: int


@dataclass(frozen=True)
class Plan:
    """How a prompt fits: the size of the context, what the server's tokenizer says the prompt is (both in tokens, None
    when not known), and the options with a max_tokens that leaves room for it."""

    size: int | None
    tokens: int | None
    options: Options


def plan(where: str, prompt: str, options: Options, size: int | None, tokens: int | None, before: Read | None) -> Plan:
    """A plan for sending `prompt`. Raises ContextOverflow for one that cannot fit.

    `before` is the prompt before it in the same run. `tokens` is counted only for servers on which prompt and
    max_tokens have to fit together.
    """
    if size is None:
        return Plan(size, tokens, options)
    if tokens is not None and size - tokens < options.max_tokens:
        shortened = shorter(options, tokens, size)
        if shortened is None:
            raise ContextOverflow(
                f"{where}: the prompt of {tokens} tokens leaves too little of the context of {size} tokens; not sent",
                prompt_tokens=tokens,
                context_size=size,
            )
        options = shortened
    least = least_tokens(prompt)
    if before and prompt.startswith(before.prompt):
        least = max(least, before.tokens - _SAME + least_tokens(prompt[len(before.prompt) :]))
    if least >= size:
        raise ContextOverflow(
            f"{where}: the prompt has at least {least} tokens and the context {size}; not sent",
            prompt_tokens=least,
            context_size=size,
        )
    return Plan(size, tokens, options)


def shorter(options: Options, tokens: int | None, size: int | None) -> Options | None:
    """The options with max_tokens lowered to what a prompt of `tokens` leaves of the context; None when that is too
    little for a turn, or when max_tokens is not what is too much."""
    if tokens is None or size is None or not min(LEAST_ROOM, options.max_tokens) <= size - tokens < options.max_tokens:
        return None
    return dataclasses.replace(options, max_tokens=size - tokens)


def shrank(read: Read, before: Read | None) -> bool:
    """Whether the server counts fewer tokens than before for a prompt of the same run that has only grown. One that
    begins otherwise is no sign: a long run shortens its oldest observations."""
    return (
        before is not None
        and len(read.prompt.encode()) >= len(before.prompt.encode())
        and read.prompt.startswith(before.prompt[: max(0, len(before.prompt) - _TAIL)])
        and read.tokens < before.tokens - _SAME
    )
