"""text-generation-webui: the completions endpoint of OpenAI, with its own ways for a prompt that does not fit.

Its llama.cpp loader answers with an empty text, the others drop the front of the prompt; both at status 200. It counts
tokens when asked, but does not say how large the context is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from ..errors import ContextOverflow, ServerError
from . import fit
from .base import Completion, Constraint, Options
from .endpoint import PATIENCE
from .openai import OpenAICompletions
from .wire import count


class TextGen(OpenAICompletions):
    """POST /v1/completions of a text-generation-webui at the base URL `url`.

    With `num_ctx` a prompt that does not fit is never sent. Without it, an over-long prompt is known only by an answer
    that is empty, or ends as too long before max_tokens.
    """

    cuts_prompts = True

    def model_id(self, limit: float = math.inf) -> str:
        """The model given, else the one that is loaded."""
        return self.model or str(self.page("/v1/internal/model/info", limit).get("model_name") or "")

    def context_size(self, limit: float = math.inf) -> int | None:
        """`num_ctx`."""
        return self.num_ctx

    def count_tokens(self, prompt: str, limit: float = math.inf) -> int | None:
        """The tokens of a prompt as the server counts them."""
        try:
            reply = self.client.post(
                "/v1/internal/token-count", {"text": prompt}, min(limit, time.monotonic() + PATIENCE)
            )
        except ServerError:
            return None
        return count(reply.json.get("length"))

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body = super().request(prompt, stop, options)
        if self.num_ctx:
            body["truncation_length"] = self.num_ctx
        return body

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        return {"grammar_string": constraint.gbnf}

    def checked(self, prompt: str, completion: Completion, plan: fit.Plan) -> Completion:
        """The server ends with `length` as well when its counts of prompt and text fill the context. Its count of the
        prompt is of the whole one, cut or not."""
        written = completion.usage.completion_tokens or 0
        if completion.finish == "length" and (not completion.text or 0 < written < plan.options.max_tokens):
            raise ContextOverflow(
                f"{self.url}{self.path}: a prompt of {completion.usage.prompt_tokens} tokens fills the context",
                prompt_tokens=completion.usage.prompt_tokens,
                context_size=plan.size,
            )
        if not completion.text:
            completion = completion.warned(f"{self.url}: empty text, which may stand for a prompt that does not fit")
        if plan.size is None:
            completion = completion.warned(
                f"{self.url} does not tell the size of its context: give it as ?num_ctx=TOKENS"
            )
        return completion
