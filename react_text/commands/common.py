"""What several commands share: exit codes, prompt arguments, writing files safely."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import AuthorError

DONE, NO_ANSWER, AUTHOR, SERVER, INTERRUPTED = 0, 1, 2, 3, 130

Register = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
"""Declares a command: its name, the function that runs it and gives the exit code, and one line of help."""


def prompt_arguments(command: argparse.ArgumentParser) -> None:
    """PROMPT, QUESTION and -v."""
    command.add_argument("prompt", type=Path, metavar="PROMPT", help="a prompt file (prompts/NAME.j2)")
    command.add_argument("question", nargs="?", metavar="QUESTION", help="the prompt's own default otherwise")
    command.add_argument(
        "-v", "--var", action="append", default=[], metavar="NAME=VALUE", help="a variable of the prompt"
    )


def variables(arguments: argparse.Namespace) -> dict[str, str]:
    """The -v arguments. Raises AuthorError."""
    pairs = [text.partition("=") for text in arguments.var]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise AuthorError(f"-v takes NAME=VALUE, not {name!r}")
    return {name: value for name, _, value in pairs}


def check_writable(path: Path) -> None:
    """Fail before the run rather than after it, when its record would be lost. Raises AuthorError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None
    if path.stat().st_size == 0:
        path.unlink()


def write(path: Path, data: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def fail(message: str, code: int) -> int:
    """Say what went wrong on stderr. A message that begins with a path stands alone, so that editors can follow it."""
    print(message if code == AUTHOR else f"react-text: {message}", file=sys.stderr)
    return code
