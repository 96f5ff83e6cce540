"""Any server with the completions endpoint of OpenAI: vLLM, SGLang, LM Studio, TabbyAPI, hosted services."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..errors import ServerError
from .base import Finish, Options, Usage
from .http import HTTPModel, Piece
from .wire import count

MODELS_PATH = "/v1/models"

_FINISH: dict[str, Finish] = {"length": "length", "eos_token": "eos"}
_UNFINISHED = (None, "", "null", "abort", "error", "content_filter")  # TGI and KoboldCpp send "" and "null" on the way
_PATIENCE = 3.0  # seconds for the list of models


class OpenAICompletions(HTTPModel):
    """POST /v1/completions at the base URL `url`, which may end in /v1. Without `model` the server's first is used."""

    path = "/v1/completions"
    optional = ("stop", "stream_options")
    _card: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The model given, else the first of the server's list, else `completions`; of a path its last part."""
        known = self.model or str(self._look_up().get("id") or "completions")
        return known.rpartition("/")[2].removesuffix(".gguf") if known.startswith("/") else known

    def context_size(self) -> int | None:
        """`max_model_len` as vLLM and SGLang tell it."""
        return count(self._look_up().get("max_model_len"))

    def prepare(self, limit: float) -> None:
        if not self.model:
            self._look_up(limit)

    def request(self, prompt: str, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if model := self.model or (self._card or {}).get("id"):
            body["model"] = model
        if options.seed is not None:
            body["seed"] = options.seed
        if stop:
            body["stop"] = list(stop)
        return body

    def read(self, event: dict[str, Any]) -> Piece:
        counts = event.get("usage") or {}
        details = counts.get("prompt_tokens_details") or {}
        usage = Usage(
            count(counts.get("prompt_tokens")),
            count(counts.get("completion_tokens")),
            count(details.get("cached_tokens")),
        )
        choices = event.get("choices") or [{}]  # the event with the token counts has none
        return Piece(choices[0].get("text") or "", _finish(choices[0]), usage)

    def _look_up(self, limit: float = float("inf")) -> dict[str, Any]:
        """The server's entry for the model, asked for once; {} when there is none to be had."""
        if self._card is None:
            try:
                reply = self.client.get(MODELS_PATH, min(limit, time.monotonic() + _PATIENCE))
            except ServerError:
                return {}
            if reply.status >= 500:  # not ready yet
                return {}
            cards = model_cards(reply.json)
            self._card = next((card for card in cards if card.get("id") == self.model), (cards or [{}])[0])
        return self._card


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
