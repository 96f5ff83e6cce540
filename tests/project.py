"""A react-text project in a folder of its own: files in, `run("test --tools")` -> what a user would see, and which
files it has changed."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, Completion, ScriptedModel
from react_text.cli import main

DEPOT = {
    "setup.cfg": "[react_text]\n",
    "prompts/depot.j2": """\
---
question: How many crates are in hall 3?
tools: [../tools/depot.py]
---
{% extends "react.j2" %}
{% block rules %}{{ super() }}
- Halls are numbered from 1 to 9.
{%- endblock %}
""",
    "tools/depot.py": '''\
from typing import Annotated

from react_text import Pattern, tool

_CRATES = {"3": 41, "4": 17}


def crates(hall: Annotated[str, Pattern(r"[1-9]")]) -> str:
    """Number of crates in a hall."""
    return f"{_CRATES.get(hall, 0)} crates in hall {hall}"


def weigh(crate: str, scale: int = 1) -> str:
    """Weight of a crate in kg."""
    return f"{len(crate) * scale} kg"


def fetch(crate: str) -> str:
    """Where a crate is brought to."""
    raise LookupError(f"no crate {crate}")


def label(crate: str) -> str:
    """What is written on a crate; nothing on most."""
    return ""


@tool(unsafe=True)
def ship(crate: str) -> str:
    """Send a crate away."""
    raise AssertionError("a check must not do this")
''',
}


@dataclass(frozen=True)
class Ran:
    """One command: its exit code, what it printed, and the files that it changed, None for those it deleted."""

    code: int
    out: str
    err: str
    changed: Mapping[str, str | None]

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n--- changed {sorted(self.changed)}"


class Project:
    """A folder with a project in it."""

    def __init__(self, folder: Path, files: Mapping[str, str] = DEPOT) -> None:
        self.folder = folder
        for name, text in files.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode("utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Change one place of a file."""
        text = self.read(name)
        assert text.count(old) >= 1, f"{old!r} is not in {name}:\n{text}"
        self.write(name, text.replace(old, new, 1))

    def record(
        self,
        name: str,
        turns: Sequence[str | Completion],
        question: str | None = None,
        *,
        head: str = "",
        prompt: str = "prompts/depot.j2",
        variables: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> str:
        """Run the turns against the real tools and keep the trace as a golden; `head` is added to its front matter."""
        agent = Agent(self.folder / prompt, model=ScriptedModel(turns), **settings)
        text = agent.run(question, variables=variables).trace.dump().decode("utf-8")
        self.write(name, text.replace("format: 1\n", f"format: 1\n{head}", 1))
        return self.read(name)

    def run(self, command: str, *, stdin: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """A command of react-text in this folder."""
        before = self.files()
        out, err = io.StringIO(), io.StringIO()
        with self._in_folder(stdin, env or {}), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(shlex.split(command))
            except SystemExit as exit_:  # argparse
                code = int(exit_.code or 0)
        after = self.files()
        changed = {name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)}
        return Ran(code, out.getvalue(), err.getvalue(), changed)

    def files(self) -> dict[str, str]:
        """All files, but for what Python leaves behind."""
        found = (
            path for path in self.folder.rglob("*") if path.is_file() and not {"__pycache__", ".git"} & {*path.parts}
        )
        return {str(p.relative_to(self.folder)): p.read_bytes().decode("utf-8", "replace") for p in found}

    @contextlib.contextmanager
    def _in_folder(self, stdin: str, env: Mapping[str, str]) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            for name in [name for name in os.environ if name in ("CI", "RT_DIFF", "VISUAL", "EDITOR")]:
                patch.delenv(name)
            for name, value in env.items():
                patch.setenv(name, value)
            yield
