"""vLLM: the completions endpoint of OpenAI with the stop string that was met, and token counts in every event."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .base import Constraint, Options
from .openai import OpenAICompletions

_STRUCTURED_OUTPUTS = (0, 11)  # the version that renamed the field; the one after the next dropped the old name


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
        """By the name that the server's version knows: each ignores the other's, and writes what it likes."""
        version = re.match(r"(\d+)\.(\d+)", str(self.page("/version").get("version")))
        if version and (int(version[1]), int(version[2])) < _STRUCTURED_OUTPUTS:
            return {"guided_regex": constraint.regex}
        return {"structured_outputs": {"regex": constraint.regex}}
