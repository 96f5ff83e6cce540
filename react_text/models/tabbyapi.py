"""TabbyAPI: the completions endpoint of OpenAI, which also says whether a stop string was met."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .base import Constraint, Finish
from .chat_template import TemplateSource
from .endpoint import Piece
from .openai import OpenAICompletions
from .wire import count

_FINISH: dict[str, Finish] = {"stop_string": "stop", "stop_token": "eos", "max_new_tokens": "length"}


class TabbyAPI(OpenAICompletions):
    """POST /v1/completions of a TabbyAPI at the base URL `url`. An over-long prompt gets a 400 with both sizes."""

    def model_id(self, limit: float = math.inf) -> str:
        """The model given, else the one that is loaded; the list of /v1/models names all that could be."""
        return self.model or str(self.page("/v1/model", limit).get("id") or "")

    def context_size(self, limit: float = math.inf) -> int | None:
        """`max_seq_len` of GET /v1/model, else `num_ctx`."""
        return count(self._parameters(limit).get("max_seq_len")) or self.num_ctx

    def chat_template(self) -> TemplateSource | None:
        """The template that the server uses for chats. It does not tell the tokens that this may insert."""
        text = self._parameters().get("prompt_template_content")
        return TemplateSource(text) if isinstance(text, str) and text else None

    def _parameters(self, limit: float = math.inf) -> dict[str, Any]:
        """What GET /v1/model says about the loaded model."""
        parameters = self.page("/v1/model", limit).get("parameters")
        return parameters if isinstance(parameters, dict) else {}

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        return {"regex_pattern": constraint.regex}

    def read(self, event: dict[str, Any]) -> Piece:
        piece = super().read(event)
        choices = event.get("choices") or [{}]
        told = _FINISH.get(choices[0].get("eos_reason") or "")
        return piece if told is None or piece.finish is None else dataclasses.replace(piece, finish=told)
