"""Servers that take only chat messages: the head of the prompt as the user's message, the transcript as an open answer.

The server's chat template stands between the two, so the model sees other text than on a completion endpoint. That is
why only a spec `chat+URL` leads here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .base import Constraint, Options, PromptText
from .endpoint import Piece
from .openai import OpenAICompletions


class Chat(OpenAICompletions):
    """POST /v1/chat/completions at the base URL `url`, which may end in /v1.

    The assistant's message is to be continued (`prefill`): llama.cpp, vLLM, SGLang, TGI and TabbyAPI do so when asked,
    Ollama and OpenRouter where model or provider can. With `prefill=False` all is in the user's message.
    """

    path = "/v1/chat/completions"
    optional = ("stop", "stream_options", "continue_final_message", "add_generation_prompt")
    not_found = "check the URL and the model"
    takes_messages = True
    """The server has the chat template; no prompt is wrapped in one here."""

    def __init__(self, url: str, *, prefill: bool = True, **settings: Any) -> None:
        super().__init__(url, **settings)
        self.prefill = prefill

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body = super().request(prompt, stop, options)
        text = body.pop("prompt")
        at = self._seam(text)
        messages = [{"role": "user", "content": text[:at].rstrip("\n")}]
        if self.prefill:
            messages.append({"role": "assistant", "content": text[at:]})
            # Both: llama.cpp refuses the first without the second, vLLM would begin a new turn without the first.
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        return {"messages": messages, **body}

    def read(self, event: dict[str, Any]) -> Piece:
        choice = (event.get("choices") or [{}])[0]
        message = choice.get("delta") or choice.get("message") or {}
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        piece = super().read({**event, "choices": [{**choice, "text": message.get("content")}]})
        return dataclasses.replace(piece, hidden=len(reasoning))

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        """Nothing: servers differ in whether the grammar of an answer begins before its prefill or behind it."""
        return {}

    def echo(self, prompt: str) -> str:
        """llama.cpp repeats the beginning of the answer that it was given."""
        return prompt[self._seam(prompt) :] if self.prefill else ""

    def _seam(self, prompt: str) -> int:
        """Where the assistant's message begins: behind the head, or with the last line when no head is known."""
        if not self.prefill:
            return len(prompt)
        return PromptText.of(prompt).head or prompt.rfind("\n") + 1
