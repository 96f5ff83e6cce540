"""SGLang's own endpoint: the whole text so far in every event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fakes import error, event, reply, sse
from . import Answer, Script, Server, tokens, write


class SGLangServer(Server):
    """`increments`: as with --incremental-streaming-output. `leaks`: half a stop string, as before October 2025."""

    kind = "sglang"
    path = "/generate"

    def pages(self) -> Mapping[str, Script]:
        def models(request: Any) -> Answer:
            return reply({"data": [{"id": "/models/m-8b", "owned_by": "sglang", "max_model_len": self.context}]})

        return {"/v1/models": models, "/get_model_info": reply({"model_path": "/models/m-8b", "is_generation": True})}

    def complete(self, body: dict[str, Any]) -> Answer:
        prompt, sampling = tokens(body["text"]), body.get("sampling_params") or {}
        wanted = sampling.get("max_new_tokens", 128)
        if prompt >= self.context:
            return self.refuse(
                400, f"The input ({prompt} tokens) is longer than the model's context length ({self.context} tokens)."
            )
        if prompt + wanted > self.context:
            return self.refuse(
                400,
                f"Requested token count exceeds the model's maximum context length of {self.context} tokens. You "
                f"requested a total of {prompt + wanted} tokens: {prompt} tokens from the input messages and {wanted} "
                "tokens for the completion. Please reduce the number of tokens in the input messages or the completion "
                "to fit within the limit.",
            )
        written = write(self.text, sampling.get("stop") or [], wanted)
        shown = ["".join(written.pieces[:number]) for number in range(1, len(written.pieces) + 1)]
        if self.settings.get("leaks"):
            shown.append(f"{written.text}\nObs")
        events = [self._event(text, prompt, number, None) for number, text in enumerate(shown, 1)]
        if self.settings.get("increments"):
            events = [self._event(text, prompt, number, None) for number, text in enumerate(written.pieces, 1)]
        matched = written.reason if written.stopped else 151645
        length = {"type": "length", "length": wanted}
        reason = length if written.reason == "length" else {"type": "stop", "matched": matched}
        last = "" if self.settings.get("increments") else written.text
        return sse(*events, self._event(last, prompt, len(written.pieces), reason), b"[DONE]")

    def _event(self, text: str, prompt: int, number: int, reason: Any) -> dict[str, Any]:
        meta = {
            "id": "x",
            "finish_reason": reason,
            "prompt_tokens": prompt,
            "completion_tokens": number,
            "cached_tokens": 3,
        }
        return {"text": text, "meta_info": meta}

    def refuse(self, status: int, message: str) -> Answer:
        return error(
            status, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
        )

    def failing(self, message: str) -> bytes:
        return event({"error": {"object": "error", "message": message, "type": "BadRequestError", "code": 400}})
