"""react-text: a text-protocol ReAct engine for completion models.

Names are loaded when they are first used, so that `import react_text` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .agent import Agent, react
    from .conversion import Pattern, Range
    from .errors import (
        AuthorError,
        ContextOverflow,
        Mistake,
        ParseError,
        ReactTextError,
        ServerError,
        ServerTimeout,
    )
    from .labels import Labels
    from .loop import Run
    from .models import open_model
    from .models.base import Completion, Constraint, Model, OnText, Options, Usage
    from .models.scripted import ScriptedModel
    from .parse import Action, Turn, parse_turn
    from .prompt import Prompt
    from .result import Interrupted, Result, Step
    from .tools import Tool, load_tools, tool
    from .trace import Trace

_MODULES = {
    "agent": ("Agent", "react"),
    "conversion": ("Pattern", "Range"),
    "errors": (
        "AuthorError", "ContextOverflow", "Mistake", "ParseError", "ReactTextError", "ServerError", "ServerTimeout",
    ),
    "labels": ("Labels",),
    "loop": ("Run",),
    "models": ("open_model",),
    "models.base": ("Completion", "Constraint", "Model", "OnText", "Options", "Usage"),
    "models.scripted": ("ScriptedModel",),
    "parse": ("Action", "Turn", "parse_turn"),
    "prompt": ("Prompt",),
    "result": ("Interrupted", "Result", "Step"),
    "tools": ("Tool", "load_tools", "tool"),
    "trace": ("Trace",),
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action", "Agent", "AuthorError", "Completion", "Constraint", "ContextOverflow", "Interrupted", "Labels",
    "Mistake", "Model", "OnText", "Options", "ParseError", "Pattern", "Prompt", "Range", "ReactTextError", "Result",
    "Run", "ScriptedModel", "ServerError", "ServerTimeout", "Step", "Tool", "Trace", "Turn", "Usage", "__version__",
    "load_tools", "open_model", "parse_turn", "react", "tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
