"""vLLM: the completions endpoint of OpenAI with the stop string that was met, and token counts in every event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Constraint, Options
from .openai import OpenAICompletions


class VLLM(OpenAICompletions):
    """POST /v1/completions of a vLLM server at the base URL `url`.

    Prompt and max_tokens have to fit the context together, else it answers 400 with both sizes. Cached tokens are told
    only by a server that runs with --enable-prompt-tokens-details.
    """

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body = super().request(prompt, stop, options)
        # In every event, so that a stream that is cut has told its counts too.
        body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
        return body

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        """By the name that holds since 0.12; older servers ignore it."""
        return {"structured_outputs": {"regex": constraint.regex}}
