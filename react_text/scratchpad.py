"""Tools and settings -> the tools of a run: with `scratchpad: true` there is `note[text]` among them.

A note is an action like any other, so it stays in the transcript, which the server has in its cache; no shortening of
the context touches it.
"""

from __future__ import annotations

from .errors import AuthorError
from .settings import Settings
from .tools import Toolbox, ToolSource, load_tools, make_tool

NOTE = "note"
NOTED = "noted"


def note(text: str) -> str:
    """Keep a fact or a plan in view: notes stay when older results are shortened."""
    return NOTED


_TOOL = make_tool(note, NOTE)


def run_tools(source: ToolSource | None, settings: Settings) -> Toolbox:
    """The tools from `source`, those of the settings behind them. Raises AuthorError."""
    tools = load_tools(source)
    if not settings.scratchpad:
        return tools
    if tools.resolve(NOTE) is not None:
        raise AuthorError(f"scratchpad: there is a tool called {tools.resolve(NOTE)!r} already")
    return Toolbox([*tools.values(), _TOOL], tools.finish)


def note_text(arguments: str) -> str:
    """What a note says, by its argument text. Raises ArgumentError."""
    return str(_TOOL.read(arguments)["text"])
