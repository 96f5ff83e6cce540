"""llama.cpp's own endpoint, which tells more than its /v1: whether a stop string or the model's own end was met."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..errors import ContextOverflow, ServerError
from .base import Finish, Options, Usage
from .http import HTTPModel, Piece
from .wire import count

_FINISH: dict[str, Finish] = {"eos": "eos", "word": "stop", "limit": "length"}
_PATIENCE = 3.0  # seconds for /props, which answers at once even while the server is busy


class LlamaCpp(HTTPModel):
    """POST /completion of a llama-server at the base URL `url`. `model` picks one where the server holds several."""

    path = "/completion"
    _props: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The model given, else what the server calls its model, else `llamacpp`."""
        props = self._properties()
        known = self.model or str(props.get("model_alias") or props.get("model_path") or "llamacpp")
        return known.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf")

    def context_size(self) -> int | None:
        """Tokens of one slot, which is less than the -c of a server with several."""
        settings = self._properties().get("default_generation_settings")
        return count(settings.get("n_ctx")) if isinstance(settings, dict) else None

    def request(self, prompt: str, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt,
            "n_predict": options.max_tokens,
            "temperature": options.temperature,
            "stream": True,
            "cache_prompt": True,
            "timings_per_token": True,  # with every event, so that a stream that is cut has told its counts too
        }
        if options.seed is not None:
            body["seed"] = options.seed
        if stop:
            body["stop"] = list(stop)
        if self.model:
            body["model"] = self.model
        return body

    def read(self, event: dict[str, Any]) -> Piece:
        timings = event.get("timings") or {}
        cached, evaluated = count(timings.get("cache_n")), count(timings.get("prompt_n"))
        whole = count(event.get("tokens_evaluated"))
        prompt_tokens = whole if cached is None or evaluated is None else cached + evaluated
        written = count(event.get("tokens_predicted"))
        usage = Usage(prompt_tokens, count(timings.get("predicted_n")) if written is None else written, cached)
        if event.get("truncated"):  # a part of the prompt or of the text is gone; no server option makes that harmless
            raise ContextOverflow(
                f"{self.url}{self.path}: the context of the model was full before the text ended",
                prompt_tokens=usage.prompt_tokens,
                context_size=self.context_size(),
            )
        return Piece(event.get("content") or "", _finish(event) if event.get("stop") else None, usage)

    def _properties(self) -> dict[str, Any]:
        """What GET /props says, {} while there is no answer."""
        if self._props is None:
            try:
                reply = self.client.get("/props", time.monotonic() + _PATIENCE)
            except ServerError:
                return {}
            if reply.status != 200:
                return {}
            self._props = reply.json
        return self._props


def _finish(event: dict[str, Any]) -> Finish:
    """Why the text ended: `stop_type`, or the three booleans of builds before December 2024."""
    old = next((reason for reason in _FINISH if event.get(f"stopped_{reason}")), "")
    return _FINISH.get(event.get("stop_type") or old, "stop")
