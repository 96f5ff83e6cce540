"""What the servers with a /v1/completions share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import chunk, counts, error, event, reply, sse
from . import Answer, Script, Server, Written, tokens, write


class OpenAIServer(Server):
    """POST /v1/completions, as most servers take it."""

    kind = "openai"
    path = "/v1/completions"
    default_max_tokens: int | None = 16
    owner = "user"
    model = "m-8b"

    def pages(self) -> Mapping[str, Script]:
        return {"/v1/models": lambda request: reply({"object": "list", "data": [self.card()]})}

    def card(self) -> dict[str, Any]:
        return {"id": self.model, "object": "model", "created": 0, "owned_by": self.owner}

    def complete(self, body: dict[str, Any]) -> Answer:
        refusal = self.check(body, tokens(body["prompt"]), self.max_tokens(body))
        if refusal:
            return refusal
        stop = body.get("stop") or []
        written = write(self.text, [stop] if isinstance(stop, str) else stop, self.max_tokens(body))
        return self.stream(body, written, tokens(body["prompt"]))

    def max_tokens(self, body: dict[str, Any]) -> int | None:
        limit: int | None = body.get("max_tokens", self.default_max_tokens)
        return limit

    def check(self, body: dict[str, Any], prompt: int, wanted: int | None) -> Answer | None:
        """The refusal of a request, None when all is well."""
        return None

    def stream(self, body: dict[str, Any], written: Written, prompt: int) -> Answer:
        events: list[Any] = [chunk(piece) for piece in written.pieces]
        events.append(chunk("", "length" if written.reason == "length" else "stop", **self.ending(written)))
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append({"object": "text_completion", "choices": [], "usage": counts(prompt, len(written.pieces))})
        return sse(*events, b"[DONE]")

    def ending(self, written: Written) -> dict[str, Any]:
        """What the last choice says more."""
        return {}

    def refuse(self, status: int, message: str) -> Answer:
        body = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return error(status, {"error": body})

    def failing(self, message: str) -> bytes:
        return event({"error": {"message": message, "type": "server_error", "code": 400}})
