"""SGLang's own endpoint: every event holds the whole text so far and the token counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import wire
from .base import Constraint, Finish, Options, Usage
from .endpoint import Piece
from .http import HTTPModel
from .openai import MODELS_PATH, model_cards
from .wire import count


class SGLang(HTTPModel):
    """POST /generate of an SGLang server at the base URL `url`.

    Prompt and max_tokens have to fit the context together, else it answers 400 with both sizes.
    """

    path = "/generate"
    sampling = "sampling_params"
    outside = frozenset({"lora_path", "priority", "return_logprob", "logprob_start_len", "top_logprobs_num"})

    @property
    def name(self) -> str:
        """The model given, else what the server runs, else `sglang`; of a path its last part."""
        known = self.model or str(self._card(math.inf).get("id") or "sglang")
        return known.rpartition("/")[2] if known.startswith("/") else known

    def context_size(self, limit: float = math.inf) -> int | None:
        """`max_model_len` of GET /v1/models, else `num_ctx`."""
        return count(self._card(limit).get("max_model_len")) or self.num_ctx

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        sampling: dict[str, Any] = {"max_new_tokens": options.max_tokens, "temperature": options.temperature}
        if options.seed is not None:
            sampling["sampling_seed"] = options.seed
        if stop:
            sampling["stop"] = list(stop)
        return {"text": prompt, "sampling_params": sampling, "stream": True}

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        return {"regex": constraint.regex}

    def problem(self, event: dict[str, Any]) -> wire.Problem | None:
        meta = event.get("meta_info")
        reason = meta.get("finish_reason") if isinstance(meta, dict) else None
        if isinstance(reason, dict) and reason.get("type") == "abort":
            event = {"error": {**reason, "code": reason.get("status_code")}}
        return super().problem(event)

    def read(self, event: dict[str, Any]) -> Piece:
        meta = event.get("meta_info") or {}
        usage = Usage(
            count(meta.get("prompt_tokens")), count(meta.get("completion_tokens")), count(meta.get("cached_tokens"))
        )
        return Piece(event.get("text") or "", self._finish(meta.get("finish_reason")), usage, whole=True)

    def _finish(self, reason: Any) -> Finish | None:
        """Why the text ended. What was met is a stop string, or the number of a token: the model's own end."""
        if not isinstance(reason, dict):
            return None
        if reason.get("type") == "length":
            return "length"
        return "stop" if isinstance(reason.get("matched"), str) else "eos"

    def _card(self, limit: float) -> dict[str, Any]:
        return (model_cards(self.page(MODELS_PATH, limit)) or [{}])[0]
