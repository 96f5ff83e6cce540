"""A model server -> what it does for a text ReAct loop, seen by trying: each thing passes, is a warning, or fails.

Nothing is taken from documentation: what a line says has just been tried. A probe takes seconds on a small model, and
none waits for more than a minute.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from .errors import AuthorError, ContextOverflow, ServerError, ServerTimeout
from .models.base import Completion, Constraint, Options, PromptText
from .models.chat_template import BUILT_IN, rendered
from .models.detect import SERVERS
from .models.http import HTTPModel
from .models.llamacpp import LlamaCpp
from .models.special import broken_up

Verdict = Literal["pass", "warn", "fail"]

_PATIENCE = 60.0  # seconds for one completion
_STOP = "\nObservation:"  # of several tokens in most vocabularies, and it begins with a newline
_WORDS = ("lamp", "rope", "sail", "oar", "mast", "deck", "knot", "buoy", "quay", "gull", "net", "tide")
_LEAST_CONTEXT = 4096  # tokens: a head with a few examples, and some steps
_LEAST_SPEED = 5.0  # tokens a second: a turn takes about fifty
_MARKERS = 8
_SIZE = "give the size in the model spec (?num_ctx=N), or watch the token counts of a run"
_ANOTHER = "this says nothing about the server: try it with another model"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do about it where it did not pass."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Asked:
    """A completion, and when its first and its last text came, in seconds from the request."""

    completion: Completion
    first: float
    last: float

    @property
    def text(self) -> str:
        return self.completion.text


def examine(model: HTTPModel) -> Iterator[Check]:
    """All checks of `model`, one after the other. Raises ServerError when the server cannot be asked at all."""
    examination = _Examination(model)
    yield examination.server()
    for name, check in examination.others.items():
        try:
            yield from check()
        except ServerError as error:
            yield Check(name, "fail", str(error), "look at the server's own log")


class _Grammar:
    """A text that no model writes by itself, as a `Constraint`."""

    regex = " zq[0-9][0-9]"
    gbnf = lazy_gbnf = 'root ::= " zq" [0-9] [0-9]'
    lark = f"start: /{regex}/"
    lazy = False
    trigger = ""

    def accepts(self, text: str) -> bool:
        return re.fullmatch(self.regex, text) is not None


class _Examination:
    def __init__(self, model: HTTPModel) -> None:
        self.model = model
        self.speed: list[str] = []
        self.slow = False
        self.others: dict[str, Callable[[], Iterator[Check]]] = {
            "context": self.context,
            "stop": self.stop,
            "prefix cache": self.prefix_cache,
            "cancel": self.cancel,
            "constraint": self.constraint,
            "chat template": self.chat_template,
            "special tokens": self.special_tokens,
            "truncation": self.truncation,
            "speed": self.speeds,
        }

    def ask(
        self,
        prompt: str,
        max_tokens: int,
        *,
        stop: str = "",
        enough: int = 0,
        constraint: Constraint | None = None,
    ) -> Asked:
        """One greedy completion, closed once it has `enough` characters."""
        started = time.monotonic()
        times: list[float] = []
        text = ""

        def follow(piece: str) -> bool:
            nonlocal text
            times.append(time.monotonic() - started)
            text += piece
            return 0 < enough <= len(text)

        completion = self.model.complete(
            prompt,
            stop=[stop] if stop else [],
            options=Options(max_tokens=max_tokens),
            on_text=follow,
            deadline=started + _PATIENCE,
            constraint=constraint,
        )
        end = time.monotonic() - started
        return Asked(completion, times[0] if times else end, times[-1] if times else end)

    # -- the checks, in the order in which they are shown

    def server(self) -> Check:
        self.ask("Answer with tools.\n\nThought:", 1)
        kind = next((kind for kind, server in SERVERS.items() if type(self.model) is server), "unknown")
        return Check("server", "pass", f"{kind}, model {self.model.name}")

    def context(self) -> Iterator[Check]:
        size = self.model.context_size()
        if size is None:
            yield Check("context", "warn", "the server does not tell its size", _SIZE)
        elif size < _LEAST_CONTEXT:
            advice = f"start the server with a context of {_LEAST_CONTEXT} or more"
            yield Check("context", "warn", f"{size} tokens, which a head and a few steps fill", advice)
        else:
            yield Check("context", "pass", f"{size} tokens")

    def stop(self) -> Iterator[Check]:
        """Whether a stop string of several tokens that begins with a newline ends the text, and what is left of it."""
        asked = self.ask(_transcript(8), 60, stop=_STOP)
        text, shown = asked.text, json.dumps(_STOP)
        before, met, behind = text.partition(_STOP)
        if not met and asked.completion.finish in ("length", "eos"):
            yield Check("stop", "warn", f"not seen: the model wrote {_quoted(text)} and never {shown}", _ANOTHER)
            return
        if behind.strip():
            advice = "the client cuts the stream there, so runs are right; see `cancel` for what is generated in vain"
            yield Check("stop", "fail", f"{shown} is ignored: the text goes on behind it", advice)
        elif met:
            advice = "nothing: the client cuts it off"
            yield Check("stop", "warn", f"{shown} ends the text and is returned with it", advice)
        else:
            yield Check("stop", "pass", f"{shown} ends the text and is not returned")
        rest = next((_STOP[:n] for n in range(len(_STOP) - 1, 0, -1) if before.endswith(_STOP[:n])), "")
        if rest.strip():
            yield Check("residue", "warn", f"{json.dumps(rest)} is left of the stop string", "nothing: it is dropped")
        else:
            yield Check("residue", "pass", "nothing is left of the stop string")

    def prefix_cache(self) -> Iterator[Check]:
        """How much of a prompt the server still knows when the next one begins with it."""
        prompt = _transcript(24, f"This is log {secrets.token_hex(8)}. ")
        first = self.ask(prompt, 8)
        usage = first.completion.usage
        if usage.prompt_tokens:
            self._measured("prompt", usage.prompt_tokens - (usage.cached_tokens or 0), first.first)
        again = self.ask(prompt + f"{first.text}\nAction: lookup[more]\nObservation: found\nThought:", 1)
        cached = again.completion.usage.cached_tokens
        if cached is None or not usage.prompt_tokens:
            found = f"the server does not tell; the second time took {again.first:.2f} s, the first {first.first:.2f} s"
            kept = first.first > 0.3 and again.first < 0.5 * first.first  # shorter times show nothing
            yield Check("prefix cache", "pass" if kept else "warn", found, "" if kept else "look at its log or metrics")
            return
        whole = again.completion.usage.prompt_tokens or cached
        rate = cached / max(whole, 1)
        found = f"{cached} of the {whole} prompt tokens of a next step were known ({rate:.0%})"
        advice = "switch on prompt caching; models with sliding-window attention may need a server option (--swa-full)"
        verdict: Verdict = "pass" if rate >= 0.9 else "warn" if rate >= 0.5 else "fail"
        yield Check("prefix cache", verdict, found, "" if verdict == "pass" else advice)

    def cancel(self) -> Iterator[Check]:
        """Whether the server stops working when the client has read enough and closes the connection."""
        size = self.model.context_size() or 2 * _LEAST_CONTEXT
        planned = min(2000, size // 2)
        asked = self.ask("Counting up: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,", planned, enough=160)
        written = asked.completion.usage.completion_tokens or 0
        if asked.completion.finish != "cut":
            yield Check("cancel", "warn", f"not seen: the model stopped by itself after {written} tokens", _ANOTHER)
            return
        speed = self._measured("generation", written - 1, asked.last - asked.first)
        waited, busy = self._idle_after((planned - written) / speed)
        if busy:
            advice = (
                "a turn that is over costs max_tokens all the same: lower it, and see whether a proxy is in between"
            )
            yield Check("cancel", "fail", f"still at work {waited:.1f} s after the connection was closed", advice)
        else:
            yield Check(
                "cancel",
                "pass",
                f"free {waited:.1f} s after the connection was closed, {planned - written} tokens early",
            )

    def _idle_after(self, left: float) -> tuple[float, bool]:
        """(seconds until the server was free, whether it still was not); `left` is how long it would work otherwise."""
        started = time.monotonic()
        longest = min(left / 2, _PATIENCE / 2)
        while isinstance(self.model, LlamaCpp):
            slots = self.model.slots()
            passed = time.monotonic() - started
            if slots is None:
                break
            if not any(slot.get("is_processing") for slot in slots) or passed > longest:
                return passed, passed > longest
            time.sleep(0.05)
        try:  # a server with one slot answers when it is free; one that batches is never held up
            self.ask("Thought:", 1)
        except ServerTimeout:
            return time.monotonic() - started, True
        passed = time.monotonic() - started
        return passed, passed > longest

    def constraint(self) -> Iterator[Check]:
        """Whether a grammar binds the model: to a text that no model writes by itself."""
        grammar = _Grammar()
        asked = self.ask(_transcript(8), 12, constraint=grammar)
        field = next(iter(self.model.constrained(grammar)), "")
        if not asked.completion.constrained:
            yield Check("constraint", "warn", "the server takes no grammar", "leave constrain: off, auto has no effect")
        elif grammar.accepts(asked.text):
            yield Check("constraint", "pass", f"a grammar in the field {field!r} binds the text")
        else:
            found = f"a grammar in the field {field!r} is ignored: {_quoted(asked.text)}"
            yield Check("constraint", "fail", found, "set constrain: off, or take a newer server")

    def chat_template(self) -> Iterator[Check]:
        if getattr(self.model, "takes_messages", False):
            yield Check("chat template", "pass", "the endpoint applies its own")
            return
        source = self.model.chat_template()
        names = ", ".join(BUILT_IN)
        if source is None:
            advice = f"for an instruction-tuned model try chat_template: {names}"
            yield Check(
                "chat template", "warn", "the server does not tell the model's, so `auto` cannot be used", advice
            )
            return
        try:
            template = rendered(source)
        except AuthorError as error:
            yield Check(
                "chat template", "warn", f"cannot be used: {error.message}", f"try chat_template: {names}, or a FILE"
            )
            return
        if isinstance(self.model, LlamaCpp) and template.end:
            ids = self.model.tokens(template.end, parse_special=True)
            if ids is not None and len(ids) > 1:
                found = f"{template.end} ends a turn in it, which is no token of this model: is it a base model?"
                yield Check("chat template", "warn", found, "keep chat_template: none")
                return
        end = f"{template.end} ends a turn" if template.end else "a turn has no end token"
        yield Check("chat template", "pass", f"told by the server; {end}")

    def special_tokens(self) -> Iterator[Check]:
        """Whether a control token in a tool's output reaches the model as the text it is."""
        if not isinstance(self.model, LlamaCpp):
            found = (
                f"control tokens in tool output are broken up: the model reads {broken_up(PromptText('<|im_end|>'))}"
            )
            advice = "nothing: traces keep them; llama.cpp's own endpoint takes them as the text they are"
            yield Check("special tokens", "warn", found, advice)
            return
        source = self.model.chat_template()
        token = (source and source.eos) or "<|im_end|>"
        text = PromptText(" ".join(f"Line {n} is {token}." for n in range(_MARKERS)))
        token_ids = self.model.tokens(token, parse_special=True) or []
        parts = self.model.encode(text, math.inf)
        if parts == text:
            found = f"{token} in tool output is read as a control token: its shape is not known here"
            yield Check("special tokens", "fail", found, "please report this, with the name of the model")
            return
        if isinstance(parts, str):
            found = "the server cannot be asked for its tokens: control tokens in tool output are broken up"
            yield Check("special tokens", "warn", found, "make POST /tokenize reachable")
            return
        ids = {part for part in parts if isinstance(part, int)}
        expected = sum(
            1 if isinstance(part, int) else len(self.model.tokens(part, add_special=place == 0) or [])
            for place, part in enumerate(parts)
        )
        counted = self.ask(text, 1).completion.usage.prompt_tokens
        if counted == expected and not (len(token_ids) == 1 and ids.issuperset(token_ids)):
            yield Check("special tokens", "pass", f"{token} in tool output is read as text, not as a control token")
        else:
            found = f"{token} in tool output may be read as a control token: {counted} tokens counted, not {expected}"
            yield Check("special tokens", "fail", found, "please report this, with the name of the model")

    def truncation(self) -> Iterator[Check]:
        """What becomes of a prompt that does not fit."""
        size = self.model.context_size()
        if size is None:
            yield Check("truncation", "warn", "not tried: the size of the context is not known", _SIZE)
            return
        try:
            asked = self.ask(" ".join(str(n % 10) for n in range(size + 200)) + "\nThought:", 1)
        except ContextOverflow as overflow:
            told = f" ({overflow.prompt_tokens} tokens for {overflow.context_size})" if overflow.prompt_tokens else ""
            yield Check("truncation", "pass", f"a prompt that is too long is refused{told}")
        except ServerTimeout:
            found = f"no answer to a prompt of {size + 200} tokens within {_PATIENCE:g} s"
            yield Check("truncation", "warn", found, "look at the server's own log for what it does with such a prompt")
        else:
            counted = asked.completion.usage.prompt_tokens
            advice = "keep runs far below the context: what is cut are the rules and the tools, and nothing says so"
            found = f"a prompt of more than {size} tokens is answered as if it fitted; the server counts {counted}"
            yield Check("truncation", "fail", found, advice)

    def speeds(self) -> Iterator[Check]:
        if not self.speed:
            yield Check("speed", "warn", "not seen: the server told no token counts", "look at the times of a run")
            return
        advice = "a smaller model, a smaller quantisation, or fewer tokens in the prompt" if self.slow else ""
        yield Check("speed", "warn" if self.slow else "pass", ", ".join(self.speed), advice)

    def _measured(self, what: str, tokens: int, seconds: float) -> float:
        speed = max(tokens, 1) / max(seconds, 1e-3)
        self.speed.append(f"{what} {speed:.0f} tokens a second")
        self.slow = self.slow or speed < _LEAST_SPEED
        return speed


def _transcript(steps: int, head: str = "") -> PromptText:
    """The beginning of a run whose next turn any model can guess, up to the cue."""
    words = itertools.islice(itertools.cycle(_WORDS), steps)
    turns = (f"Thought: The word is {word}.\nAction: lookup[{word}]\nObservation: found\n" for word in words)
    head += "Look up one word after the other.\n\n"
    return PromptText(f"{head}{''.join(turns)}Thought:", len(head))


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= 60 else f"{text[:57]}...", ensure_ascii=False)
