"""A server that takes only chat messages, and continues an assistant's message in the way of llama.cpp or vLLM."""

from __future__ import annotations

from typing import Any

from ..fakes import counts, sse
from . import Answer, Written, tokens
from .openai import OpenAIServer


class ChatServer(OpenAIServer):
    """`way`: "llama.cpp" repeats the open message unless told to continue it, "vllm" begins a new one unless it is
    told, "strict" refuses fields it does not know, "echo" repeats it always."""

    kind = "chat"
    path = "/v1/chat/completions"
    _begins = ""

    def complete(self, body: dict[str, Any]) -> Answer:
        way = self.settings.get("way", "vllm")
        messages, told = body["messages"], body.get("continue_final_message", False)
        if told and body.get("add_generation_prompt", True):
            said = "Cannot set both add_generation_prompt and continue_final_message to true."
            return self.refuse(400, said)
        for field in ("continue_final_message", "add_generation_prompt"):
            if way == "strict" and field in body:
                return self.refuse(400, f"Unrecognized request argument supplied: {field}")
        opened = messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""
        if opened and opened != opened.rstrip():
            return self.refuse(400, "final assistant content cannot end with trailing whitespace")
        repeats = way == "echo" or (way == "llama.cpp" and not told)
        begins = (opened if repeats else "") if told or way != "vllm" else "Thought:"
        self._begins = begins
        return super().complete({**body, "prompt": "".join(message["content"] for message in messages)})

    def stream(self, body: dict[str, Any], written: Written, prompt: int) -> Answer:
        def event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }

        field = "reasoning_content" if self.settings.get("thinks") else "content"
        events = [event({"role": "assistant", "content": None}), event({"content": self._begins})]
        events += [event({field: piece}) for piece in written.pieces]
        events.append(event({}, "length" if written.reason == "length" else "stop"))
        events.append({"choices": [], "usage": counts(prompt, len(written.pieces), tokens("x"))})
        return sse(*events, b"[DONE]")
