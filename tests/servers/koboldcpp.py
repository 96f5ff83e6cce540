"""KoboldCpp: HTTP/1.0, a stream that ends with the connection, and the front of a long prompt dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import dumps, error, event, reply
from . import Answer, Script, Server, tokens, write

HEADERS = {"Server": "ConcedoLlamaForKoboldServer", "Content-Type": "text/event-stream"}


class KoboldCppServer(Server):
    """`counts`: what the tokenizer answers instead of the number."""

    kind = "koboldcpp"
    path = "/api/extra/generate/stream"

    def pages(self) -> Mapping[str, Script]:
        return {
            "/v1/models": reply({"data": [{"id": "koboldcpp/m-8b", "owned_by": "koboldcpp"}]}),
            "/api/extra/version": reply({"result": "KoboldCpp", "version": "1.77"}),
            "/api/v1/model": reply({"result": "koboldcpp/m-8b"}),
            "/api/extra/true_max_context_length": lambda request: reply({"value": self.context}),
            "/api/tags": reply({"models": [{"name": "koboldcpp"}]}),
            "/api/version": reply({"version": "0.7.0"}),
        }

    def complete(self, body: dict[str, Any]) -> Answer:
        size, wanted = min(body.get("max_context_length", self.context), self.context), body.get("max_length", 180)
        if tokens(body["prompt"]) + wanted > size:
            return self._stream(["I do not know what you want.", " Tell me more."], "stop")
        stop = body.get("stop_sequence") or []
        written = write(self.text, stop, wanted, keep_stop=not body.get("trim_stop", False))
        return self._stream(written.pieces, "stop" if written.reason == "eos" else "length")

    def _stream(self, texts: Any, reason: str) -> Answer:
        events = [{"token": text, "finish_reason": None} for text in texts]
        events.append({"token": "", "finish_reason": reason})
        chunks = [b"event: message\ndata: " + dumps(event) + b"\n\n" for event in events]
        return Answer(chunks, headers=HEADERS, framing="until_close")

    def other(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/api/extra/tokencount":
            return reply({"value": self.settings.get("counts", tokens(body["prompt"])), "ids": []})
        return self.refuse(404, "Not Found")

    def refuse(self, status: int, message: str) -> Answer:
        return error(status, {"detail": {"msg": message, "type": "service_unavailable"}})

    def failing(self, message: str) -> bytes:
        return event({"detail": {"msg": message, "type": "server_error"}})
