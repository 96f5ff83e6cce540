"""Prompts, tools and projects by their paths, each loaded once for all the traces that share them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .agent import Agent
from .errors import AuthorError
from .files import project_root
from .offline import Offline, offline
from .project import Project, find_project
from .prompt import Prompt
from .tools import Toolbox, load_tools

_STAND_IN = "\ue000question\ue001"


class Library:
    """Prompts, tools and project settings, each loaded once for all cases that share them."""

    def __init__(self) -> None:
        self._prompts: dict[Path, Prompt] = {}
        self._toolboxes: dict[tuple[Path, str], Toolbox] = {}
        self._roots: dict[tuple[Path, str], Path] = {}
        self._projects: dict[Path, Project] = {}
        self._frames: dict[tuple[Path, str], tuple[str, str]] = {}

    def prompt(self, path: Path) -> Prompt:
        """Raises AuthorError."""
        if path not in self._prompts:
            self._prompts[path] = Prompt.load(path)
        return self._prompts[path]

    def has(self, path: Path) -> bool:
        """Whether there is a prompt at a path."""
        return path in self._prompts or path.is_file()

    def tools(self, prompt: Prompt, check: str) -> Toolbox:
        """The tools of a prompt. For a replay they are loaded without a network. Raises AuthorError."""
        assert prompt.path is not None
        key = prompt.path, check
        if key not in self._toolboxes:
            if check == "replay":
                with offline(f"loading the tools of {prompt.path.name}") as stretch:
                    loaded = load_tools(prompt.tools)
                refuse_network(stretch, prompt.path, None)
            else:
                loaded = load_tools(prompt.tools)
            self._toolboxes[key] = loaded
        return self._toolboxes[key]

    def frame(self, agent: Agent, inputs: Mapping[str, Any]) -> tuple[str, str]:
        """What a prompt puts before and behind the question. Raises AuthorError."""
        assert agent.prompt.path is not None
        key = agent.prompt.path, repr((inputs, agent.overrides))
        if key not in self._frames:
            before, _, behind = agent.steps(_STAND_IN, variables=inputs).prompt.task.partition(_STAND_IN)
            self._frames[key] = before, behind
        return self._frames[key]

    def root(self, folder: Path, prompt: str) -> Path:
        """The project of the traces in a folder. Traces that were saved outside of the project that has their prompt
        belong to that of the working folder."""
        key = folder, prompt
        if key not in self._roots:
            start, here = folder.resolve(), Path.cwd()
            own = project_root(start)
            places = (own, start, *start.parents, here, *here.parents)
            self._roots[key] = next((p for p in places if (p / prompt).is_file()), own)
        return self._roots[key]

    def project(self, folder: Path) -> Project:
        """Raises AuthorError."""
        if folder not in self._projects:
            self._projects[folder] = find_project(folder)
        return self._projects[folder]


def refuse_network(stretch: Offline, path: Path, line: int | None) -> None:
    if stretch.attempts:
        raise AuthorError(f"{stretch.attempts[0]}; a replay needs no network", path=path, line=line) from None
