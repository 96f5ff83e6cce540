"""URL -> the model class that fits the server there."""

from __future__ import annotations

import time
from typing import Any

from ..errors import ServerError
from .http import HTTPModel
from .llamacpp import LlamaCpp
from .openai import MODELS_PATH, OpenAICompletions, model_cards
from .wire import Problem


def identify(url: str, *, seconds: float = 3.0, **settings: Any) -> HTTPModel:
    """Ask the server at `url`, for at most `seconds`, what it is; `settings` are those of `HTTPModel`.

    llama.cpp says so in a header, on error replies too; anything else is taken to offer /v1/completions. Raises
    ServerError when nothing answers or the key is refused.
    """
    model = OpenAICompletions(url, **settings)
    reply = model.client.get(MODELS_PATH, time.monotonic() + seconds)
    owners = [card.get("owned_by") for card in model_cards(reply.json)]
    if reply.headers.get("Server", "").startswith("llama.cpp") or owners[:1] == ["llamacpp"]:
        return LlamaCpp(url, **settings)
    if reply.status in (401, 403):
        raise model.refusal(MODELS_PATH, reply.status, Problem("not allowed"))
    return model


def probe(url: str, *, timeout: float = 0.5) -> bool:
    """Whether a server that lists models answers at `url` within `timeout` seconds.

    The body decides: LM Studio answers any path with 200.
    """
    try:
        reply = OpenAICompletions(url).client.get(MODELS_PATH, time.monotonic() + timeout)
    except ServerError:
        return False
    return isinstance(reply.json.get("data"), list)
