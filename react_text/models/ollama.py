"""Ollama's own endpoint in raw mode; its /v1/completions puts the prompt into a chat template.

What it does with a prompt that is too long: since October 2025 it refuses when asked to (`truncate: false`); before, it
drops the front, where the rules stand, and answers 200. Then only its count of tokens tells.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

from ..errors import ServerError
from . import fit
from .base import Completion, Finish, Options, Usage
from .endpoint import PATIENCE, Piece
from .http import HTTPModel
from .wire import count, problem_of

NUM_CTX = 8192
"""The context asked for when neither `num_ctx` nor a loaded model says: the server's own default may be 4096, too small
for rules, examples and a few steps."""

_FINISH: dict[str, Finish] = {"length": "length"}


class Ollama(HTTPModel):
    """POST /api/generate of an Ollama at the base URL `url`.

    Without `model`, the one it has loaded or the only one it has. `num_ctx` stays the same for a whole run: another
    value makes the server load the model anew.
    """

    path = "/api/generate"
    optional = ("stop", "think", "truncate")
    sampling = "options"
    outside = frozenset({"format", "keep_alive", "raw", "shift", "think", "truncate"})
    cuts_prompts = True
    linger = 1.0
    _checked = False
    _made: int | None = None

    @property
    def name(self) -> str:
        """The model given or chosen, else `ollama`."""
        try:
            self.prepare(time.monotonic() + PATIENCE)
        except ServerError:
            return "ollama"
        return self.model or "ollama"

    def prepare(self, limit: float) -> None:
        """Choose the model. Raises ServerError when that is for the user to do."""
        if self.model:
            return
        try:
            installed = self._models("/api/tags", limit)
        except ServerError:  # the request will fail in the same way: it is made again, or says why not
            return
        loaded = self._running(limit)
        names = [str(model.get("name")) for model in (loaded if len(loaded) == 1 else installed)]
        if len(names) != 1:
            what = (
                f"has several models ({', '.join(names)}): choose one with" if names else "has no model: pull one, or"
            )
            raise ServerError(f"the Ollama at {self.url} {what} ollama+{self.url}?model=NAME")
        self.model = names[0]

    def context_size(self, limit: float = math.inf) -> int | None:
        """`num_ctx`, else the context of the loaded model, else `NUM_CTX`: settled by the first completion. Less where
        the server has made less."""
        if self.num_ctx is None:
            self.num_ctx = self._loaded(limit) or NUM_CTX
        return self._made or self.num_ctx

    def plan(self, prompt: str, options: Options, limit: float) -> fit.Plan:
        """See `HTTPModel.plan`. `num_ctx` among the sampling options, where Ollama has it, is the same setting."""
        self.num_ctx = count(options.extra.get("num_ctx")) or self.num_ctx
        return super().plan(prompt, options, limit)

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        sampling: dict[str, Any] = {
            "num_ctx": self.num_ctx,
            "num_predict": options.max_tokens,
            "temperature": options.temperature,
        }
        if options.seed is not None:
            sampling["seed"] = options.seed
        if stop:
            sampling["stop"] = list(stop)
        return {
            "model": self.model,
            "prompt": prompt,
            "raw": True,
            "stream": True,
            "think": False,  # models that can think do so even in raw mode, and the thought leaves the text
            "truncate": False,
            "options": sampling,
        }

    def read(self, event: dict[str, Any]) -> Piece:
        usage = Usage(
            count(event.get("prompt_eval_count")),
            count(event.get("eval_count")),
            count(event.get("prompt_eval_cached_count")),
        )
        reason = event.get("done_reason") or ""  # some backends give it without `done`
        finish = _FINISH.get(reason, "stop") if event.get("done") or reason else None
        return Piece(event.get("response") or "", finish, usage, hidden=len(event.get("thinking") or ""))

    def cut_sign(self, read: fit.Read, before: fit.Read | None, plan: fit.Plan) -> str:
        """Before 0.30 a prompt that was cut fills the context (Ollama's issue 3839); since then half of it and two
        tokens (17427).

        A count below the estimate is no sign: versions of 2024 leave out what was cached. So does a count that shrinks,
        unless the prompt can have grown past the context.
        """
        size = plan.size or NUM_CTX
        if read.tokens >= size - 1:
            return f"all of its context of {size}"
        if abs(read.tokens - size // 2 - 2) <= 4 and fit.about_tokens(read.prompt) >= 1.5 * read.tokens:
            return f"half of its context of {size}, for a prompt of about {fit.about_tokens(read.prompt)}"
        if before and fit.shrank(read, before):
            most = before.tokens + 2 * fit.about_tokens(read.prompt) - 2 * fit.about_tokens(before.prompt)
            if most >= size - 1:
                return f"{before.tokens} before, for a prompt that has only grown, with a context of {size}"
        return ""

    def checked(self, prompt: str, completion: Completion, plan: fit.Plan) -> Completion:
        """See `HTTPModel.checked`. Once in a run it is also asked which context the server has really made."""
        if self._remembers and not self._checked:
            self._checked = True
            made = self._loaded(time.monotonic() + PATIENCE)
            if made and self.num_ctx and made < self.num_ctx:
                self._made = made
                plan = dataclasses.replace(plan, size=made)
                completion = completion.warned(
                    f"{self.url} runs {self.model} with a context of {made} tokens, not num_ctx {self.num_ctx}"
                )
        tokens = completion.usage.prompt_tokens
        if tokens is not None and tokens < fit.least_tokens(prompt):
            completion = completion.warned(
                f"{self.url} counts fewer tokens than the prompt can have: a part was dropped, or was cached"
            )
        return super().checked(prompt, completion, plan)

    def _loaded(self, limit: float) -> int | None:
        """The context in force for the model; None while it is not loaded."""
        loaded = self._running(limit)
        names = (self.model, f"{self.model}:latest")
        return next((count(model.get("context_length")) for model in loaded if model.get("name") in names), None)

    def _running(self, limit: float) -> list[dict[str, Any]]:
        """The loaded models; none where the server does not tell."""
        try:
            return self._models("/api/ps", limit)
        except ServerError:
            return []

    def _models(self, path: str, limit: float) -> list[dict[str, Any]]:
        reply = self.client.get(path, min(limit, time.monotonic() + PATIENCE))
        if reply.status != 200:
            raise self.refusal(path, reply.status, problem_of(reply.body))
        models = reply.json.get("models")
        return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []
