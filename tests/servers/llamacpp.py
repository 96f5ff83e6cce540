"""llama.cpp: SSE without [DONE], the stop string named, a queue and no limit of stop strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, event, native, native_end, reply, sse
from . import Answer, Script, Server, pieces, tokens, write

HEADERS = {"Server": "llama.cpp"}


class LlamaCppServer(Server):
    kind = "llamacpp"
    path = "/completion"

    def pages(self) -> Mapping[str, Script]:
        models = {"object": "list", "data": [{"id": "m.gguf", "owned_by": "llamacpp"}]}
        props = {"default_generation_settings": {"n_ctx": self.context}, "model_path": "/models/m-8b.gguf"}
        return {"/v1/models": reply(models, **HEADERS), "/props": lambda request: reply(props, **HEADERS)}

    def complete(self, body: dict[str, Any]) -> Answer:
        prompt = tokens(body["prompt"])
        if prompt >= self.context:
            return error(400, {"error": too_long(prompt, self.context)}, **HEADERS)
        limit = body.get("n_predict", -1)
        written = write(self.text, body.get("stop") or [], limit if limit >= 0 else self.context - prompt)
        events = [native(piece, number, prompt=prompt, cached=0) for number, piece in enumerate(written.pieces, 1)]
        reason = {"eos": "eos", "length": "limit"}.get(written.reason, "word")
        end = native_end(reason, len(written.pieces), tokens_evaluated=prompt)
        end["timings"] = {"cache_n": 0, "prompt_n": prompt, "predicted_n": len(written.pieces)}
        return sse(*events, end).but(headers={"Content-Type": "text/event-stream", **HEADERS})

    def other(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/tokenize":
            return reply({"tokens": list(range(len(pieces(body["content"]))))}, **HEADERS)
        return self.refuse(404, "File Not Found")

    def refuse(self, status: int, message: str) -> Answer:
        kinds = {
            401: "authentication_error",
            404: "not_found_error",
            501: "not_supported_error",
            503: "unavailable_error",
        }
        kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
        return error(status, {"error": {"code": status, "message": message, "type": kind}}, **HEADERS)

    def failing(self, message: str) -> bytes:
        return event({"error": {"code": 400, "message": message, "type": "invalid_request_error"}})


def too_long(prompt: int, size: int) -> dict[str, Any]:
    """The error for a prompt that does not fit, which Ollama passes on inside a text."""
    said = f"request ({prompt} tokens) exceeds the available context size ({size} tokens), try increasing it"
    kind = {"code": 400, "message": said, "type": "exceed_context_size_error"}
    return {**kind, "n_prompt_tokens": prompt, "n_ctx": size}
