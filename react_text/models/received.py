"""Pieces of a stream -> the text of one completion: no echo of the prompt, no leaked end token, never endless."""

from __future__ import annotations

import codecs
import re

from .base import OnText
from .special import BEGINNINGS
from .wire import sendable

END_TOKENS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|return|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    "</s>",
)
"""What models end a turn with. A raw endpoint may give it as text and go on behind it, with somebody else's turn: on
some servers the stop strings of a request replace the model's own, and a stop string never matches a special token."""

_END = re.compile("|".join(map(re.escape, END_TOKENS)))
_HALF = re.compile("[\ud800-\udbff\udc80-\udcff\ufffd]+\\Z")  # of a character, which the next event has whole
_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+")  # of characters, as `wire.events` leaves them


class Received:
    """The text of one attempt, passed on to `on_text` as it comes; `parts` is what has been passed on.

    `echo` is what the server may repeat before the new text, behind a blank or begin-of-text token of its own: removed
    if the text begins with all of it. More than `most` characters are not taken (`overrun`), and nothing from a leaked
    end token on (`ended`). `hidden` counts the characters of reasoning that the server keeps out of the text. A
    character of which two events have a half each (surrogates, or bytes) is put together.
    """

    def __init__(self, most: int, on_text: OnText | None = None) -> None:
        self.parts: list[str] = []
        self.echo = ""
        self.hidden = 0
        self.ended = False
        self._room = most
        self._on_text = on_text
        self._echoes: list[str] | None = None  # what the text may still turn out to begin with; [] for no echo
        self._echoed = 0  # characters held back: the beginning of each of them
        self._half = ""  # of a character
        self._held = ""  # may become an end token
        self._whole = ""
        self._increments = False

    @property
    def overrun(self) -> bool:
        """Whether there was more text than max_tokens can explain."""
        return self._room <= 0

    @property
    def text(self) -> str:
        """All that has been passed on."""
        return "".join(self.parts)

    def add(self, text: str, *, whole: bool = False) -> bool:
        """Take new text, or with `whole` all the text so far; True when `on_text` has had enough."""
        if whole:
            text = self._new(text)
        text = self._half + text
        self._half = _unfinished(text)
        text = _characters(text.removesuffix(self._half))
        return self._before_end_token(self._behind_echo(text) if text else "")

    def close(self) -> None:
        """The stream is over: pass on what was held back and has come to nothing."""
        held = self._echoes[0][: self._echoed] if self._echoes else ""
        if held not in (self._echoes or ()):
            self._before_end_token(held)
        if not self.ended:
            self._pass(self._held + _characters(self._half))

    def _behind_echo(self, text: str) -> str:
        """The text without an echo; "" while it may be one."""
        if self._echoes is None:
            begun = [start + blank for start in BEGINNINGS for blank in ("", " ")]
            begun += [" "] if text.startswith(" ") and not text.isspace() else []
            self._echoes = [start + self.echo for start in ("", *begun)] if self.echo else []
        if not self._echoes:
            return text
        going_on = [echo for echo in self._echoes if len(echo) > self._echoed and echo.startswith(text, self._echoed)]
        if going_on:
            self._echoes = going_on
            self._echoed += len(text)
            return ""
        whole = (echo for echo in self._echoes if text.startswith(echo[self._echoed :]))
        echo = next(whole, None)
        text = self._echoes[0][: self._echoed] + text if echo is None else text[len(echo) - self._echoed :]
        self._echoes = []
        return text

    def _new(self, text: str) -> str:
        """What the text so far has more than the last one. A server set to send increments shows it by its second."""
        text = text if self._increments else _HALF.sub("", text)
        common = min(len(text), len(self._whole))
        self._increments = self._increments or text[:common] != self._whole[:common]
        if self._increments:
            return text
        new = text[len(self._whole) :]
        self._whole += new  # kept when a text is shorter: the last one may lack a half stop string that leaked before
        return new

    def _before_end_token(self, text: str) -> bool:
        """Pass on the text up to an end token, and hold back what may become one."""
        if not text or self.ended:
            return False
        text = self._held + text
        leaked = (at.start() for at in _END.finditer(text) if self._ends(at[0], text[: at.start()]))
        end = next(leaked, None)
        self.ended = end is not None
        end = len(text) - _beginning(text) if end is None else end
        self._held = text[end:]
        return self._pass(text[:end])

    def _ends(self, token: str, before: str) -> bool:
        """Whether an end token behind `before` is one and no text: inside a bracket an argument quotes it, and what
        closes an `<s>` is HTML."""
        before = self.text + before
        return before.count("[") <= before.count("]") and not (token == "</s>" and "<s>" in before)

    def _pass(self, text: str) -> bool:
        text = text[: self._room]
        if not text:
            return False
        self._room -= len(text)
        self.parts.append(text)
        return self._on_text is not None and bool(self._on_text(text))


def _unfinished(text: str) -> str:
    """The beginning of a character at the end of a text."""
    if "\ud800" <= text[-1:] <= "\udbff":
        return text[-1:]
    last = next((found[0] for found in _BYTES.finditer(text) if found.end() == len(text)), "")
    return last[codecs.utf_8_decode(_raw(last), "replace", False)[1] :]


def _characters(text: str) -> str:
    """The text with what its bytes stand for, and U+FFFD for what stands for nothing."""
    return sendable(_BYTES.sub(lambda found: _raw(found[0]).decode(errors="replace"), text))


def _raw(escaped: str) -> bytes:
    return escaped.encode(errors="surrogateescape")


def _beginning(text: str) -> int:
    """How many of the last characters may be the beginning of an end token."""
    tail = text[text.rfind("<") :] if "<" in text else ""
    return len(tail) if tail and any(token.startswith(tail) for token in END_TOKENS) else 0
