"""LM Studio: a 200 for any path, and four ways with a prompt that is too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, reply, sse
from . import Answer, Request, Script, Written
from .openai import OpenAIServer


class LMStudioServer(OpenAIServer):
    """`overflows`: "400", "200" with an error in the body, "empty" stream, "cut" without a word."""

    kind = "lmstudio"
    path = "/api/v0/completions"
    default_max_tokens = None
    model = "granite-8b"

    def pages(self) -> Mapping[str, Script]:
        def loaded(request: Request) -> Answer:
            instances = [{"id": self.model, "config": {"context_length": self.context}}]
            models = [
                {"type": "embedding", "key": "embed", "loaded_instances": [{"id": "embed", "config": {}}]},
                {"type": "llm", "key": "other", "loaded_instances": []},
                {"type": "llm", "key": "org/granite", "loaded_instances": instances},
            ]
            return reply({"models": models})

        state = {"id": self.model, "state": "loaded", "max_context_length": 131072}
        listed = {"object": "list", "data": [{"id": "other", "owned_by": "organization_owner"}, self.card()]}
        return Anything(
            {"/v1/models": reply(listed), "/api/v0/models": reply({"data": [state]}), "/api/v1/models": loaded}
        )

    def check(self, body: dict[str, Any], prompt: int, wanted: int | None) -> Answer | None:
        said = (
            f"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded with "
            f"context length of only {self.context} tokens, which is not enough. Try to load the model with a larger "
            "context length, or provide a shorter input"
        )
        ways = {"400": error(400, {"error": said}), "200": reply({"error": said}), "empty": sse(b"[DONE]")}
        return ways.get(self.settings.get("overflows", "400")) if prompt >= self.context else None

    def stream(self, body: dict[str, Any], written: Written, prompt: int) -> Answer:
        return super().stream(body, written, prompt if prompt < self.context else self.context // 2)

    def ending(self, written: Written) -> dict[str, Any]:
        return {}

    def complete(self, body: dict[str, Any]) -> Answer:
        answer = super().complete(body)
        chunks = list(answer.chunks)
        at = next((at for at, each in enumerate(chunks) if b'"finish_reason": "' in each), None)
        if at is not None:
            reason = "maxPredictedTokensReached" if b'"length"' in chunks[at] else self._reason(body)
            chunks[at] = chunks[at].replace(
                b'"object"', b'"stats": {"stop_reason": "%b"}, "object"' % reason.encode(), 1
            )
        return answer.but(chunks=chunks)

    def _reason(self, body: dict[str, Any]) -> str:
        return "stopStringFound" if any(stop in self.text for stop in body.get("stop") or []) else "eosFound"


class Anything(dict[str, Script]):
    """Pages, and a 200 for the rest."""

    def get(self, path: str, default: Any = None) -> Any:
        return self[path] if path in self else reply({"error": f"Unexpected endpoint or method. (GET {path})"})
