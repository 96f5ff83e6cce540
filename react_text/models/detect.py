"""URL -> the model class that fits the server there, found out with few requests.

Several servers imitate others, and LM Studio answers any path with 200, so what counts is what a body says. The order
of the questions sorts the imitators out.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from ..errors import ServerError
from .chat import Chat
from .connection import Reply
from .http import HTTPModel
from .koboldcpp import KoboldCpp
from .llamacpp import LlamaCpp
from .lmstudio import LMStudio
from .ollama import Ollama
from .openai import MODELS_PATH, OpenAICompletions, model_cards
from .openrouter import HOST, OpenRouter
from .sglang import SGLang
from .tabbyapi import TabbyAPI
from .textgen import TextGen
from .tgi import TGI
from .vllm import VLLM
from .wire import Problem

SERVERS: dict[str, type[HTTPModel]] = {
    "llamacpp": LlamaCpp,
    "vllm": VLLM,
    "ollama": Ollama,
    "tgi": TGI,
    "sglang": SGLang,
    "lmstudio": LMStudio,
    "koboldcpp": KoboldCpp,
    "tabbyapi": TabbyAPI,
    "textgen": TextGen,
    "openrouter": OpenRouter,
    "openai": OpenAICompletions,
    "chat": Chat,
}
USUAL_PORTS = (8080, 8000, 11434, 3000, 30000, 1234, 5001, 5000)
"""Where these servers listen when nobody has told them otherwise: llama.cpp, vLLM, Ollama, TGI, SGLang, LM Studio,
KoboldCpp, and TabbyAPI or text-generation-webui."""

_OWNERS: dict[str, type[HTTPModel]] = {
    "llamacpp": LlamaCpp,
    "vllm": VLLM,
    "sglang": SGLang,
    "koboldcpp": KoboldCpp,
    "tabbyAPI": TabbyAPI,
}
_PATIENCE = 3.0  # seconds for one question

Says = Callable[[dict[str, Any]], bool]


def _models_with_a_state(said: dict[str, Any]) -> bool:
    return any("state" in card and "max_context_length" in card for card in model_cards(said))


# Asked from top to bottom. KoboldCpp comes before Ollama, whose paths it imitates.
_QUESTIONS: tuple[tuple[str, Says, type[HTTPModel]], ...] = (
    ("/api/extra/version", lambda said: said.get("result") == "KoboldCpp", KoboldCpp),
    ("/.well-known/serviceinfo", lambda said: (said.get("software") or {}).get("name") == "TabbyAPI", TabbyAPI),
    ("/info", lambda said: said.get("router") == "text-generation-router", TGI),
    ("/get_model_info", lambda said: "model_path" in said and "is_generation" in said, SGLang),
    ("/v1/internal/model/info", lambda said: "model_name" in said and "lora_names" in said, TextGen),
    ("/api/v0/models", _models_with_a_state, LMStudio),
)


def identify(url: str, *, seconds: float = 10.0, **settings: Any) -> HTTPModel:
    """Ask the server at `url`, for at most `seconds`, what it is; `settings` are those of `Endpoint`.

    What none of the questions fits is taken to offer /v1/completions. Raises ServerError when nothing answers or the
    key is refused.
    """
    limit = time.monotonic() + seconds
    model = OpenAICompletions(url, **settings)
    if urlsplit(url).hostname == HOST:
        return OpenRouter(url, **settings)

    def ask(path: str) -> Reply:
        return model.client.get(path, min(limit, time.monotonic() + _PATIENCE))

    def says(path: str, expected: Says) -> bool:
        try:
            return expected(ask(path).json)
        except (ServerError, AttributeError):  # no answer, or one of another form
            return False

    def is_ollama() -> bool:
        try:
            return "version" in ask("/api/version").json and ask("/").body.strip() == b"Ollama is running"
        except ServerError:
            return False

    models = ask(MODELS_PATH)
    owner = next((str(card.get("owned_by")) for card in model_cards(models.json)), "")
    if models.headers.get("Server", "").startswith("llama.cpp"):  # on error replies too
        return LlamaCpp(url, **settings)
    if owner in _OWNERS:
        return _OWNERS[owner](url, **settings)
    if models.status in (401, 403):
        raise model.refusal(MODELS_PATH, models.status, Problem("not allowed"))
    asked_first = owner == "library"  # what Ollama says of models from its own library
    if asked_first and is_ollama():
        return Ollama(url, **settings)
    for path, expected, found in _QUESTIONS:
        if says(path, expected):
            return found(url, **settings)
    if not asked_first and is_ollama():
        return Ollama(url, **settings)
    return model


def running(*, seconds: float = 1.0, **settings: Any) -> tuple[HTTPModel | None, str]:
    """The first model server on the usual ports of this machine, all asked at the same time and for at most `seconds`
    altogether; and what keeps one from being used, "" for nothing."""
    limit = time.monotonic() + seconds

    def ask(port: int) -> HTTPModel | str | None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=seconds / 3).close()
            model = identify(f"http://127.0.0.1:{port}", seconds=limit - time.monotonic(), **settings)
            listed = model.client.get(MODELS_PATH, limit) if type(model) is OpenAICompletions else None
        except (OSError, ServerError):
            return None
        if listed and not isinstance(listed.json.get("data"), list):  # some other web server
            return None
        try:
            model.prepare(limit)
        except ServerError as error:
            return str(error)
        return model

    with ThreadPoolExecutor(len(USUAL_PORTS)) as pool:
        answers = list(pool.map(ask, USUAL_PORTS))
    model = next((answer for answer in answers if isinstance(answer, HTTPModel)), None)
    return model, "" if model else next((answer for answer in answers if isinstance(answer, str)), "")
