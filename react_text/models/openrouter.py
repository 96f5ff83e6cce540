"""OpenRouter: the completions endpoint of OpenAI in front of many providers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from .base import Options
from .openai import OpenAICompletions
from .wire import count

HOST = "openrouter.ai"


class OpenRouter(OpenAICompletions):
    """POST /api/v1/completions of OpenRouter; `url` may leave out /api/v1.

    Only providers that take every field are asked, so that stop strings and seed count; and no prompt is squeezed to
    fit a small context, which happens by default.
    """

    linger = 1.0

    def __init__(self, url: str, **settings: Any) -> None:
        if urlsplit(url).path in ("", "/"):
            url = url.rstrip("/") + "/api"
        super().__init__(url, **settings)

    def context_size(self, limit: float = math.inf) -> int | None:
        """`context_length` of the model, else `num_ctx`."""
        return count(self.card(limit).get("context_length")) or self.num_ctx

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body = super().request(prompt, stop, options)
        return {**body, "transforms": [], "provider": {"require_parameters": True}}
