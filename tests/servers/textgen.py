"""text-generation-webui: an empty text or a cut prompt at status 200; `length` when the context is full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, reply
from . import Answer, Script, Written, tokens, write
from .openai import OpenAIServer


class TextGenServer(OpenAIServer):
    """`loader`: llama.cpp answers with nothing, Transformers drops the front."""

    kind = "textgen"
    default_max_tokens = 512

    def pages(self) -> Mapping[str, Script]:
        info = {"model_name": self.model, "lora_names": [], "loader": "llama.cpp"}
        return {**super().pages(), "/v1/internal/model/info": reply(info)}

    def complete(self, body: dict[str, Any]) -> Answer:
        size = body.get("truncation_length") or self.context
        prompt, wanted = tokens(body["prompt"]), self.max_tokens(body) or 512
        written = write(self.text, body.get("stop") or [], wanted)
        if self.settings.get("loader") == "Transformers":
            if prompt + wanted > size:
                written = Written(["I do not know what you want."], "eos")
        elif prompt >= self.context:
            written = Written([], "eos")
        if prompt + len(written.pieces) >= size:
            written = Written(written.pieces, "length")
        return self.stream(body, written, prompt)

    def other(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/v1/internal/token-count":
            return reply({"length": tokens(body["text"])})
        return self.refuse(404, "Not Found")

    def refuse(self, status: int, message: str) -> Answer:
        if status == 422:
            return error(status, {"detail": [{"loc": ["body", "temperature"], "msg": message, "type": "float_type"}]})
        return super().refuse(status, message)
