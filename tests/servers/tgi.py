"""TGI: `data:` without a blank, the stop string kept in the text, no temperature of 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import dumps, error, reply
from . import Answer, Script, Server, tokens, write


class TGIServer(Server):
    kind = "tgi"
    path = "/generate_stream"

    def pages(self) -> Mapping[str, Script]:
        def info(request: Any) -> Answer:
            sizes = {"max_input_tokens": self.context - 1, "max_total_tokens": self.context, "max_stop_sequences": 4}
            return reply({"router": "text-generation-router", "version": "3.3.6", "model_id": "org/m-8b", **sizes})

        return {"/info": info, "/v1/models": reply({"data": [{"id": "org/m-8b", "owned_by": "org/m-8b"}]})}

    def complete(self, body: dict[str, Any]) -> Answer:
        asked, prompt = body.get("parameters") or {}, tokens(body["inputs"])
        wanted = asked.get("max_new_tokens", 100)
        if asked.get("temperature", 1.0) <= 0:
            return self.refuse(422, "`temperature` must be strictly positive")
        if len(asked.get("stop") or []) > 4:
            return self.refuse(422, "`stop` supports up to 4 stop sequences. Given: 5")
        if prompt >= self.context:
            return self.refuse(422, f"`inputs` must have less than {self.context} tokens. Given: {prompt}")
        if prompt + wanted > self.context:
            return self.refuse(
                422,
                f"`inputs` tokens + `max_new_tokens` must be <= {self.context}. Given: {prompt} `inputs` tokens and "
                f"{wanted} `max_new_tokens`",
            )
        written = write(self.text, asked.get("stop") or [], wanted, keep_stop=True)
        parts = [{"id": 1, "text": piece, "logprob": -0.1, "special": False} for piece in written.pieces]
        reason = {"eos": "eos_token", "length": "length"}.get(written.reason, "stop_sequence")
        if written.reason == "eos":
            parts.append({"id": 2, "text": "</s>", "logprob": -0.1, "special": True})
        events = [
            {"index": at, "token": part, "generated_text": None, "details": None} for at, part in enumerate(parts, 1)
        ]
        details = {"finish_reason": reason, "generated_tokens": len(parts), "seed": None, "input_length": prompt}
        events[-1] |= {"generated_text": written.text, "details": details if asked.get("details") else None}
        return spaceless(*events)

    def refuse(self, status: int, message: str) -> Answer:
        kinds = {422: "validation", 424: "generation", 429: "overloaded", 500: "incomplete_generation"}
        return error(status, {"error": message, "error_type": kinds.get(status, "generation")})

    def failing(self, message: str) -> bytes:
        return b"data:" + dumps({"error": message, "error_type": "generation"}) + b"\n\n"


def spaceless(*events: Any) -> Answer:
    return Answer([b"data:" + dumps(each) + b"\n\n" for each in events], headers={"Content-Type": "text/event-stream"})
