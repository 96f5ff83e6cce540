"""Where models come from: `open_model(spec)`. HTTP clients are imported only when one is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from ..errors import AuthorError, did_you_mean, without_password
from .base import Model
from .scripted import ScriptedModel, as_model

KINDS = (
    "llamacpp", "vllm", "ollama", "tgi", "sglang", "lmstudio", "koboldcpp", "tabbyapi", "textgen", "openrouter",
    "openai", "chat",
)  # fmt: skip
"""What a server can be named as, in front of its URL: `ollama+http://host:11434`."""

_WEB = ("http", "https")
_HOST = re.compile(r"[\w.-]+:\d+(?:/\S*)?")
_SCHEMES = (*_WEB, *(f"{kind}+{web}" for kind in KINDS for web in _WEB), "scripted", "local", "human", "auto")


def open_model(spec: str | Model | Callable[..., Any], *, timeout: float | None = None) -> Model:
    """A model from its name.

        http://host:port            asks the server what it is
        KIND+http://host:port       does not ask: one of KINDS, `openai` for any /v1/completions, `chat` for chat only
        local:FILE.gguf?ctx=8192    a llama-server of our own for that file; `local` alone for the model of [local]
        scripted:FILE.trace         replays the turns of a trace
        human                       asks a person, on the terminal or through a pipe

    Settings follow a URL as its query, `?model=NAME&num_ctx=8192`: model, num_ctx, send_stop, timeout, connect_timeout,
    total_timeout, retry_seconds, as `Endpoint` takes them, and prefill for `chat`.

    `timeout` is the longest silence of a server in seconds; the default is generous, because a local model may take
    minutes to read a prompt. A model object is returned as it is and a function is wrapped. Raises AuthorError for a
    spec that cannot be read, ServerError when a server has to be asked and does not answer.
    """
    if not isinstance(spec, str):
        return as_model(spec)
    if spec == "human":
        from .human import Human

        return Human()
    options: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    if spec == "local" or spec.startswith(("local:", "local?")):
        from .llamacpp import LlamaCpp
        from .local import shared_server

        return LlamaCpp(shared_server(spec.removeprefix("local").removeprefix(":")).url, **options)
    scheme, colon, rest = spec.partition(":")
    if not colon or scheme not in _SCHEMES:
        near = f" (did you mean http://{spec}?)" if _HOST.fullmatch(spec) else did_you_mean(scheme, _SCHEMES)
        raise AuthorError(
            f"model {without_password(spec)!r} is not understood{near}; give a URL or scripted:FILE.trace"
        )
    if scheme == "scripted":
        return ScriptedModel.from_trace(rest)
    kind, _, scheme = scheme.rpartition("+")
    try:
        parts = urlsplit(f"{scheme}:{rest}")
    except ValueError as error:
        raise AuthorError(f"model {without_password(spec)!r} is no URL: {error}") from None
    if not parts.hostname:
        raise AuthorError(f"model {without_password(spec)!r} names no host")
    options |= _settings(parts.query, kind)
    url = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    from .detect import SERVERS, identify

    return SERVERS[kind](url, **options) if kind else identify(url, **options)


def auto_model(
    demo: Path | None,
    configured: str | None = None,
    timeout: float | None = None,
    scripted: Callable[[Path], Any] = ScriptedModel.from_trace,
) -> tuple[Any, str]:
    """The model to use when none was named, and a notice for the user ("" when it was configured). `scripted` makes one
    of the demo.

    In this order: the environment variable REACT_TEXT_MODEL, the project's setting, a server on a usual localhost
    port, the prompt's demo trace. Raises AuthorError when there is none of them.
    """
    spec = os.environ.get("REACT_TEXT_MODEL") or configured
    if spec and spec != "auto":
        return open_model(spec, timeout=timeout), ""
    complaint = ""
    if os.environ.get("REACT_TEXT_PROBE") != "off":
        from .detect import running

        model, complaint = running(**({} if timeout is None else {"timeout": timeout}))
        if model is not None:
            return model, f"using the model server at {model.url}"
    reason = complaint or "no model server found"
    if demo is not None:
        return scripted(demo), (
            f"{reason}: the turns are scripted, replayed from {demo.name} against the real tools "
            "(--model URL runs a model)"
        )
    raise AuthorError(f"{reason} and the prompt has no demo: give --model URL or set REACT_TEXT_MODEL")


def _settings(query: str, kind: str) -> dict[str, Any]:
    """The settings in the query of a URL. Raises AuthorError."""
    known = {**_SETTINGS, "prefill": _flag} if kind == "chat" else _SETTINGS
    settings: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise AuthorError(f"model URL: unknown setting {name!r}{near}")
        try:
            settings[name] = known[name](text)
        except (ValueError, KeyError):
            raise AuthorError(f"model URL: {name} cannot be {text!r}") from None
    return settings


_flag = {"true": True, "false": False}.__getitem__
_SETTINGS: dict[str, Callable[[str], Any]] = {
    "model": str,
    "num_ctx": int,
    "send_stop": _flag,
    "timeout": float,
    "connect_timeout": float,
    "total_timeout": float,
    "retry_seconds": float,
}
