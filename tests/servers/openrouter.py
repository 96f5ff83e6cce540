"""OpenRouter: comments in the stream, errors at status 200, prompts squeezed unless told not to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, event, reply
from . import Answer, Script, Written
from .openai import OpenAIServer


class OpenRouterServer(OpenAIServer):
    kind = "openrouter"
    path = "/api/v1/completions"
    default_max_tokens = None
    model = "org/m-8b"

    def pages(self) -> Mapping[str, Script]:
        def models(request: Any) -> Answer:
            return reply({"data": [{"id": "org/other", "context_length": 1}, self.card()]})

        return {"/api/v1/models": models}

    def card(self) -> dict[str, Any]:
        return {"id": self.model, "name": "M 8B", "context_length": self.context}

    def check(self, body: dict[str, Any], prompt: int, wanted: int | None) -> Answer | None:
        if prompt < self.context or body.get("transforms") != []:
            return None
        return self.refuse(
            400,
            f"This endpoint's maximum context length is {self.context} tokens. However, you requested about {prompt} "
            "tokens. Please reduce the length of either one.",
        )

    def stream(self, body: dict[str, Any], written: Written, prompt: int) -> Answer:
        answer = super().stream(body, written, min(prompt, self.context))
        first, *rest = answer.chunks
        return answer.but(chunks=[b": OPENROUTER PROCESSING\n\n", first, b": OPENROUTER PROCESSING\n\n", *rest])

    def ending(self, written: Written) -> dict[str, Any]:
        return {"native_finish_reason": "stop_sequence" if written.stopped else "eos"}

    def refuse(self, status: int, message: str) -> Answer:
        return error(status, {"error": {"code": status, "message": message, "metadata": {"provider_name": "P"}}})

    def failing(self, message: str) -> bytes:
        return event({"error": {"code": 400, "message": message}, "choices": [{"text": "", "finish_reason": "error"}]})
