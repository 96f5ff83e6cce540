"""TabbyAPI: fills the context by default, counts only when asked to, says what ended the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, event, reply
from . import Answer, Script, Written
from .openai import OpenAIServer


class TabbyAPIServer(OpenAIServer):
    kind = "tabbyapi"
    owner = "tabbyAPI"
    default_max_tokens = None
    model = "m-8b-exl3"

    def pages(self) -> Mapping[str, Script]:
        def model(request: Any) -> Answer:
            return reply({"id": self.model, "parameters": {"max_seq_len": self.context}})

        listed = {"object": "list", "data": [{"id": "a-folder", "owned_by": self.owner}, self.card()]}
        info = {"software": {"name": "TabbyAPI"}}
        pages = {"/v1/models": reply(listed), "/v1/model": model, "/.well-known/serviceinfo": reply(info)}
        return {**pages, "/props": reply({"default_generation_settings": {"n_ctx": 1}})}

    def check(self, body: dict[str, Any], prompt: int, wanted: int | None) -> Answer | None:
        if prompt < self.context:
            return None
        said = f"Prompt length {prompt} exceeds the available context size of {self.context} tokens"
        kind = {"type": "invalid_request_error", "param": None, "code": "context_length_exceeded"}
        return error(400, {"error": {"message": said, **kind}})

    def ending(self, written: Written) -> dict[str, Any]:
        reasons = {"eos": "stop_token", "length": "max_new_tokens"}
        return {"eos_reason": reasons.get(written.reason, "stop_string")}

    def refuse(self, status: int, message: str) -> Answer:
        return error(status, {"detail": message})

    def failing(self, message: str) -> bytes:
        return event({"error": {"message": message, "trace": None}})
