"""LM Studio: the completions endpoint of its own REST API, which also says why the text ended."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..errors import ContextOverflow
from .base import Finish
from .endpoint import Piece
from .openai import OpenAICompletions
from .wire import count

_FINISH: dict[str, Finish] = {"eosFound": "eos", "stopStringFound": "stop", "maxPredictedTokensReached": "length"}


class LMStudio(OpenAICompletions):
    """POST /api/v0/completions of an LM Studio at the base URL `url`.

    It shows an over-long prompt in many ways: a 400, an error at status 200, an empty stream without a finish reason.
    Any path that it does not know gets a 200 too.
    """

    path = "/api/v0/completions"
    cuts_prompts = True
    linger = 1.0

    def model_id(self, limit: float = math.inf) -> str:
        """The model given, else one that is loaded; the list of /v1/models names all that could be."""
        return self.model or str(self._loaded(limit).get("id") or "") or super().model_id(limit)

    def context_size(self, limit: float = math.inf) -> int | None:
        """The context with which the model is loaded, else `num_ctx`."""
        config = self._loaded(limit).get("config") or {}
        return count(config.get("context_length")) or self.num_ctx

    def _loaded(self, limit: float) -> dict[str, Any]:
        """What GET /api/v1/models says about the model given, or about the first that is loaded."""
        models = self.page("/api/v1/models", limit).get("models")
        for model in models if isinstance(models, list) else []:
            for loaded in model.get("loaded_instances") or []:
                if self.model in (None, loaded.get("id"), model.get("key")) and model.get("type") != "embedding":
                    return dict(loaded)
        return {}

    def read(self, event: dict[str, Any]) -> Piece:
        piece = super().read(event)
        reason = (event.get("stats") or {}).get("stop_reason") or ""
        if reason == "contextLengthReached":
            raise ContextOverflow(
                f"{self.url}{self.path}: the context of the model was full before the text ended",
                prompt_tokens=piece.usage.prompt_tokens,
                context_size=self.context_size(),
            )
        told = _FINISH.get(reason)
        return piece if told is None else dataclasses.replace(piece, finish=told)
