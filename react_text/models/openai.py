"""Any server with the completions endpoint of OpenAI: vLLM, SGLang, LM Studio, TabbyAPI, hosted services."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ServerError
from .base import Constraint, Finish, Options, Usage
from .endpoint import Piece
from .http import HTTPModel
from .wire import count

MODELS_PATH = "/v1/models"

_FINISH: dict[str, Finish] = {"length": "length", "max_tokens": "length", "eos_token": "eos"}
_CONSTRAINED: dict[str, Callable[[Constraint], dict[str, Any]]] = {
    "llamacpp": lambda constraint: {"grammar": constraint.gbnf},
    "koboldcpp": lambda constraint: {"grammar": constraint.gbnf},
    "vllm": lambda constraint: {"structured_outputs": {"regex": constraint.regex}},
    "sglang": lambda constraint: {"regex": constraint.regex},
    "tabbyAPI": lambda constraint: {"regex_pattern": constraint.regex},
}
_UNFINISHED = (None, "", "null", "abort", "error", "content_filter")  # TGI and KoboldCpp send "" and "null" on the way


class OpenAICompletions(HTTPModel):
    """POST /v1/completions at the base URL `url`, which may end in /v1. Without `model` the server's first is used."""

    path = "/v1/completions"
    optional: Sequence[str] = ("stop", "stream_options")

    @property
    def name(self) -> str:
        """The model given or that of the server, else `completions`; of a path its last part."""
        known = self.model_id() or "completions"
        return known.rpartition("/")[2].removesuffix(".gguf") if known.startswith("/") else known

    def context_size(self, limit: float = math.inf) -> int | None:
        """`max_model_len` as vLLM and SGLang tell it, else `num_ctx`."""
        return count(self.card(limit).get("max_model_len")) or self.num_ctx

    def request(self, prompt: str, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if model := self.model_id(0):  # asked for with the size of the context
            body["model"] = model
        if options.seed is not None:
            body["seed"] = options.seed
        if stop:
            body["stop"] = list(stop)
        return body

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        """By the field of the server that the list of models names. Servers ignore the fields of others, some refuse
        them."""
        written = _CONSTRAINED.get(str(self.card().get("owned_by")))
        return written(constraint) if written else {}

    def read(self, event: dict[str, Any]) -> Piece:
        counts = event.get("usage") or {}
        details = counts.get("prompt_tokens_details") or {}
        usage = Usage(
            count(counts.get("prompt_tokens")),
            count(counts.get("completion_tokens")),
            count(details.get("cached_tokens")),
        )
        choice = (event.get("choices") or [{}])[0]  # the event with the token counts has none
        if "text" not in choice and ("delta" in choice or "message" in choice):
            raise ServerError(f"{self._at} answers with chat messages: a raw completion endpoint is required")
        return Piece(choice.get("text") or "", _finish(choice), usage)

    def model_id(self, limit: float = math.inf) -> str:
        """The model given, else the first of the server's list; "" when there is none to be had. Never raises."""
        return self.model or str(self.card(limit).get("id") or "")

    def card(self, limit: float = math.inf) -> dict[str, Any]:
        """The server's entry for the model, {} when there is none to be had. Never raises."""
        cards = model_cards(self.page(MODELS_PATH, limit))
        return next((card for card in cards if card.get("id") == self.model), (cards or [{}])[0])


def model_cards(listing: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of an answer to GET /v1/models, [] for an answer that is no such list."""
    data = listing.get("data")
    return [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []


def _finish(choice: dict[str, Any]) -> Finish | None:
    """Why the text ended, None while it goes on.

    vLLM and SGLang name the stop string that was met; null or the id of a token there is the model's own end.
    """
    reason = choice.get("finish_reason")
    if reason in _UNFINISHED:
        return None
    for key in ("stop_reason", "matched_stop"):
        if reason == "stop" and key in choice:
            return "stop" if isinstance(choice[key], str) else "eos"
    return _FINISH.get(reason, "stop")
