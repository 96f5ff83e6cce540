"""Ollama: NDJSON, its own names, and four ways with a prompt that is too long, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import dumps, error, reply
from . import Answer, Request, Script, Server, tokens, write
from .llamacpp import too_long


class OllamaServer(Server):
    """`cuts`: "" refuses by `truncate: false` (since October 2025), "half" keeps half the window (0.30 without it),
    "full" keeps it all (before 0.30). `cached`: counts only new tokens (2024). `loaded`, `installed`: names of models.
    `trained`: the most context a model can have. `thinks`: "unless told" or "always", the text goes to `thinking`."""

    kind = "ollama"
    path = "/api/generate"

    def __init__(
        self,
        *texts: str,
        cuts: str = "",
        cached: bool = False,
        loaded: Mapping[str, int] | None = None,
        installed: tuple[str, ...] = ("llama3:8b",),
        trained: int = 131072,
        **settings: Any,
    ) -> None:
        super().__init__(*texts, **settings)
        self.cuts, self.cached, self.trained = cuts, cached, trained
        self.loaded = dict(loaded or {})
        self.installed = installed
        self.before = 0

    def pages(self) -> Mapping[str, Script]:
        def ps(request: Request) -> Answer:
            loaded = [{"name": name, "model": name, "context_length": size} for name, size in self.loaded.items()]
            return reply({"models": loaded})

        def tags(request: Request) -> Answer:
            return reply({"models": [{"name": name, "model": name} for name in self.installed]})

        def models(request: Request) -> Answer:
            owned = [{"id": name, "object": "model", "owned_by": "library"} for name in self.installed]
            return reply({"object": "list", "data": owned})

        running = Answer([b"Ollama is running"], headers={"Content-Type": "text/plain"}, framing="length")
        pages = {"/api/ps": ps, "/api/tags": tags, "/v1/models": models}
        return {**pages, "/api/version": reply({"version": "0.30.1"}), "/": running}

    def complete(self, body: dict[str, Any]) -> Answer:
        options, prompt = body.get("options") or {}, tokens(body["prompt"])
        if body["model"] not in self.installed:
            return self.refuse(404, f"model '{body['model']}' not found")
        if body.get("raw") and any(field in body for field in ("system", "template", "context")):
            return self.refuse(400, "raw mode does not support template, system, or context")
        if not isinstance(options.get("stop", []), list):
            return self.refuse(400, 'option "stop" must be of type array')
        size = self.loaded[body["model"]] = min(options.get("num_ctx") or 4096, self.trained)
        if prompt >= size:
            if not self.cuts and body.get("truncate") is False:
                return self.refuse(400, dumps({"error": too_long(prompt, size)}).decode())
            prompt = size if self.cuts == "full" else size // 2 + 2
        if not body.get("raw"):
            return self._stream(["It seems you sent a list of numbers."], prompt, "stop")
        told, self.before = prompt - self.before * self.cached, prompt
        written = write(self.text, options.get("stop") or [], options.get("num_predict") if options else None)
        return self._stream(written.pieces, told, "length" if written.reason == "length" else "stop", body)

    def _stream(self, texts: Any, prompt: int, reason: str, body: Mapping[str, Any] = {}) -> Answer:
        thinks = self.settings.get("thinks") == "always" or (
            self.settings.get("thinks") and body.get("think") is not False
        )
        field = "thinking" if thinks else "response"
        head = {"model": "m", "created_at": "2026-08-21T18:48:22Z"}
        lines = [{**head, "response": "", field: text, "done": False} for text in texts]
        counts = {"total_duration": 5, "prompt_eval_count": prompt, "prompt_eval_duration": 3, "eval_count": len(texts)}
        lines.append({**head, "response": "", "done": True, "done_reason": reason, **counts})
        return ndjson(*lines)

    def refuse(self, status: int, message: str) -> Answer:
        return error(status, {"error": message})

    def failing(self, message: str) -> bytes:
        return dumps({"error": message}) + b"\n"


def ndjson(*lines: Any) -> Answer:
    return Answer([dumps(line) + b"\n" for line in lines], headers={"Content-Type": "application/x-ndjson"})
