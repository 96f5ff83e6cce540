"""Where models come from: `open_model(spec)`. HTTP clients are imported only when one is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from ..errors import AuthorError, did_you_mean
from .base import Completion, Finish, Model, OnText, Options, Usage
from .scripted import CallableModel, ScriptedModel, as_model

# Where llama.cpp, vLLM and LM Studio listen when nobody has told them otherwise.
USUAL_URLS = ("http://127.0.0.1:8080", "http://127.0.0.1:8000", "http://127.0.0.1:1234")
_SCHEMES = ("http", "https", "llamacpp+http", "llamacpp+https", "openai+http", "openai+https", "scripted", "auto")


def open_model(spec: str | Model | Callable[..., Any], *, timeout: float | None = None) -> Model:
    """A model from its name.

        http://host:port            asks the server what it is
        llamacpp+http://host:port   llama.cpp's native /completion
        openai+http://host:port     any /v1/completions; ?model=NAME picks the model
        scripted:FILE.trace         replays the turns of a trace

    `timeout` is the longest silence of a server in seconds; the default is generous, because a local model may take
    minutes to read a prompt. A model object is returned as it is and a function is wrapped. Raises AuthorError for a
    spec that cannot be read, ServerError when a server has to be asked and does not answer.
    """
    if not isinstance(spec, str):
        return as_model(spec)
    scheme, colon, rest = spec.partition(":")
    if not colon or scheme not in _SCHEMES:
        near = did_you_mean(scheme, _SCHEMES)
        raise AuthorError(f"model {spec!r} is not understood{near}; give a URL or scripted:FILE.trace")
    if scheme == "scripted":
        return ScriptedModel.from_trace(rest)
    kind, _, scheme = scheme.rpartition("+")
    parts = urlsplit(f"{scheme}:{rest}")
    if not parts.hostname:
        raise AuthorError(f"model {spec!r} names no host")
    query = dict(parse_qsl(parts.query))
    url = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    options: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    if kind == "llamacpp":
        from .llamacpp import LlamaCpp

        return LlamaCpp(url, **options)
    if kind == "openai":
        from .openai import OpenAICompletions

        return OpenAICompletions(url, model=query.get("model"), **options)
    from .detect import identify

    return identify(url, model=query.get("model"), **options)


def auto_model(demo: Path | None, configured: str | None = None, timeout: float | None = None) -> tuple[Model, str]:
    """The model to use when none was named, and a notice for the user ("" when it was configured).

    In this order: the environment variable REACT_TEXT_MODEL, the project's setting, a server on a usual localhost
    port, the prompt's demo trace. Raises AuthorError when there is none of them.
    """
    spec = os.environ.get("REACT_TEXT_MODEL") or configured
    if spec and spec != "auto":
        return open_model(spec, timeout=timeout), ""
    url = _answering()
    if url:
        model = open_model(url, timeout=timeout)
        return model, f"using the model server at {url}"
    if demo is not None:
        return ScriptedModel.from_trace(demo), (
            f"no model server found: the turns are scripted, replayed from {demo.name} against the real tools "
            "(--model URL runs a model)"
        )
    raise AuthorError("no model server found and the prompt has no demo: give --model URL or set REACT_TEXT_MODEL")


def _answering() -> str | None:
    """The first of the usual URLs where a completion server answers; all are asked at the same time."""
    if os.environ.get("REACT_TEXT_PROBE") == "off":
        return None
    import socket

    def open_port(url: str) -> bool:
        parts = urlsplit(url)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 80), timeout=0.3).close()
        except OSError:
            return False
        return True

    listening = [url for url in USUAL_URLS if open_port(url)]
    if not listening:
        return None
    from .detect import probe

    with ThreadPoolExecutor(len(listening)) as pool:
        answers = list(pool.map(lambda url: probe(url, timeout=0.8), listening))
    return next((url for url, answered in zip(listening, answers, strict=True) if answered), None)


__all__ = [
    "CallableModel", "Completion", "Finish", "Model", "OnText", "Options", "ScriptedModel", "Usage", "as_model",
    "auto_model", "open_model",
]  # fmt: skip
