"""Text Generation Inference of Hugging Face: its own endpoint, which also says whether a stop string was met."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .base import Constraint, Finish, Options, Usage
from .endpoint import Piece
from .http import HTTPModel
from .wire import count

_FINISH: dict[str, Finish] = {"length": "length", "eos_token": "eos"}


class TGI(HTTPModel):
    """POST /generate_stream of a TGI server at the base URL `url`.

    It finds a stop string only where a token ends with it, and leaves it in the text. Prompt and max_tokens have to fit
    the context together, else it answers 422 with both sizes.
    """

    path = "/generate_stream"
    sampling = "parameters"

    @property
    def name(self) -> str:
        """The model given, else what the server runs, else `tgi`."""
        return self.model or str(self.page("/info").get("model_id") or "tgi")

    def context_size(self, limit: float = math.inf) -> int | None:
        """`max_total_tokens` of GET /info, else `num_ctx`."""
        return count(self.page("/info", limit).get("max_total_tokens")) or self.num_ctx

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        greedy = options.temperature == 0  # which is no temperature that the server takes
        parameters: dict[str, Any] = {
            "max_new_tokens": options.max_tokens,
            "do_sample": not greedy,
            "return_full_text": False,
            "details": True,
        }
        if not greedy:
            parameters["temperature"] = options.temperature
        if options.seed is not None:
            parameters["seed"] = options.seed
        if stop:
            parameters["stop"] = list(stop)
        return {"inputs": prompt, "parameters": parameters}

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        return {"grammar": {"type": "regex", "value": constraint.regex}}

    def read(self, event: dict[str, Any]) -> Piece:
        details = event.get("details") or {}
        usage = Usage(count(details.get("input_length")), count(details.get("generated_tokens")))
        whole = event.get("generated_text")
        finish = None if whole is None else _FINISH.get(details.get("finish_reason") or "", "stop")
        if "token" not in event:  # no stream: a proxy that collects it
            return Piece(whole or "", finish, usage)
        token = event["token"]
        return Piece("" if token.get("special") else token["text"], finish, usage)
