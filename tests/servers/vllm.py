"""vLLM: 16 tokens by default, at most four stop strings, prompt and max_tokens have to fit together."""

from __future__ import annotations

from typing import Any

from ..fakes import chunk, counts, error, event, sse
from . import Answer, Written
from .openai import OpenAIServer


class VLLMServer(OpenAIServer):
    kind = "vllm"
    owner = "vllm"

    def card(self) -> dict[str, Any]:
        return {**super().card(), "max_model_len": self.context}

    def check(self, body: dict[str, Any], prompt: int, wanted: int | None) -> Answer | None:
        if body.get("model") not in (None, self.model):
            return self.refuse(404, f"The model `{body['model']}` does not exist.")
        if len(body.get("stop") or []) > 4:
            return self.refuse(400, "stop must have at most 4 strings")
        if "stream_options" in body and not body.get("stream"):
            return self.refuse(400, "Stream options can only be defined when `stream=True`.")
        if prompt + (wanted or 0) <= self.context:
            return None
        if self.settings.get("old"):
            return self.refuse(
                400,
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{prompt + (wanted or 0)} tokens ({prompt} in your prompt; {wanted} for the completion). Please "
                "reduce your prompt; or completion length.",
            )
        return self.refuse(
            400,
            f"You passed {prompt} input tokens and requested {wanted} output tokens. However, the model's context "
            f"length is only {self.context} tokens, resulting in a maximum input length of "
            f"{self.context - (wanted or 0)} tokens. Please reduce the length of the input prompt.",
        )

    def stream(self, body: dict[str, Any], written: Written, prompt: int) -> Answer:
        answer = super().stream(body, written, prompt)
        if not (body.get("stream_options") or {}).get("continuous_usage_stats"):
            return answer
        events = [chunk(piece, None, counts(prompt, number)) for number, piece in enumerate(written.pieces, 1)]
        last = chunk("", "length" if written.reason == "length" else "stop", **self.ending(written))
        last["usage"] = counts(prompt, len(written.pieces))
        return sse(*events, last, {"choices": [], "usage": last["usage"]}, b"[DONE]")

    def ending(self, written: Written) -> dict[str, Any]:
        return {"stop_reason": written.reason if written.stopped else None}

    def refuse(self, status: int, message: str) -> Answer:
        kind = {404: "NotFoundError"}.get(status, "BadRequestError" if status < 500 else "InternalServerError")
        return error(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})

    def failing(self, message: str) -> bytes:
        return event({"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}})
