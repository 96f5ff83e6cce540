"""What several commands share: exit codes, prompt arguments, writing files safely."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from ..errors import AuthorError

DONE, NO_ANSWER, AUTHOR, SERVER, INTERRUPTED = 0, 1, 2, 3, 130

Register = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
"""Declares a command: its name, the function that runs it and gives the exit code, and one line of help."""


def prompt_arguments(command: argparse.ArgumentParser) -> None:
    """PROMPT, QUESTION and -v."""
    command.add_argument("prompt", type=Path, metavar="PROMPT", help="a prompt file (prompts/NAME.j2)")
    text = "the prompt's own default otherwise"
    command.add_argument("question", nargs="?", type=_question, metavar="QUESTION", help=text)
    command.add_argument(
        "-v", "--var", action="append", default=[], metavar="NAME=VALUE", help="a variable of the prompt"
    )


def _question(text: str) -> str:
    if not text.strip():  # mostly a variable of the shell that is not set
        raise argparse.ArgumentTypeError("is empty")
    return text


def variables(arguments: argparse.Namespace) -> dict[str, str]:
    """The -v arguments. Raises AuthorError."""
    pairs = [text.partition("=") for text in arguments.var]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise AuthorError(f"-v takes NAME=VALUE, not {name!r}")
    return {name: value for name, _, value in pairs}


def chosen_model(
    spec: str | None,
    folder: Path,
    demo: Path | None = None,
    *,
    timeout: float | None = None,
    scripted: Callable[[Path], Any] | None = None,
) -> tuple[Any, str]:
    """The model of a command, and a notice for the user: the one that --model names, or else what `auto_model` finds
    for the project of `folder`. `timeout` (seconds) goes before the project's; `scripted` makes a model of the demo.
    Raises AuthorError, and ServerError for a server that does not answer."""
    from ..models import auto_model, open_model
    from ..project import find_project

    project = find_project(folder)
    timeout = timeout or project.timeout
    if spec and spec != "auto":
        return open_model(spec, timeout=timeout), ""
    return auto_model(demo, project.model, timeout, **({"scripted": scripted} if scripted else {}))


def settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The --set arguments, their values read as in front matter. Raises AuthorError."""
    from ..frontmatter import read_head

    found = {}
    for pair in arguments.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise AuthorError(f"--set takes KEY=VALUE, not {pair!r}")
        try:
            found[key] = read_head(f"value: {value}", ("value",)).value("value")
        except AuthorError:
            raise AuthorError(f"--set {key}: {value!r} cannot be read") from None
    return found


def check_writable(path: Path) -> None:
    """Fail before the run rather than after it, when its record would be lost. Raises AuthorError."""
    there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None
    if not there:
        path.resolve().unlink()


def record_file(given: Path | None, name: str, suffix: str = ".jsonl") -> Path | None:
    """Where a run is recorded: the file that was asked for, or else one in the user's state folder, named after `name`.
    None, with a notice, where there is no such folder, as in a container without a home. Raises AuthorError."""
    from ..log import default_log

    try:
        path = given or default_log(name, suffix)
        check_writable(path)
    except (AuthorError, OSError, RuntimeError) as error:
        if given:
            raise
        print(f"# the run is not recorded: {error}", file=sys.stderr)
        return None
    return path


def prints_to_stderr(model: object) -> AbstractContextManager[object]:
    """While a run is at work, what its tools print goes to stderr: stdout is for the answer. A person who plays the
    model needs stdout as it is."""
    return nullcontext() if getattr(model, "echoes", False) else redirect_stdout(sys.stderr)


def write_exactly(text: str) -> None:
    """Write a text to stdout as it is: no line end is converted."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        buffer.write(text.encode("utf-8", "replace"))
        buffer.flush()


def edit_file(path: Path) -> None:
    """Open a file in the user's editor, and wait. Raises AuthorError."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        subprocess.run([*editor, str(path)], check=False)
    except OSError as error:
        raise AuthorError(f"EDITOR: {editor[0]}: {error.strerror}") from None


def fail(message: str, code: int) -> int:
    """Say what went wrong on stderr. A message that begins with a path stands alone, so that editors can follow it."""
    print(message if code == AUTHOR else f"react-text: {message}", file=sys.stderr)
    return code
