"""The command line: finds the command and turns what goes wrong into one line and an exit code.

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 no answer, 2 the author or the call is wrong
(`path:line: message`), 3 the model server failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence

from .commands import (
    author,
    convert,
    doctor,
    evaluate,
    golden,
    grammar,
    ground,
    init,
    lint,
    live,
    plan,
    resume,
    run,
    show,
    view,
)
from .commands.common import AUTHOR, DONE, INTERRUPTED, SERVER, fail
from .errors import AuthorError, ServerError
from .version import __version__

# In the order in which `--help` lists them.
_GROUPS = (
    run, resume, plan, init, author, show, view, ground, grammar, convert, doctor, evaluate, golden, live, lint,
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never shows a traceback (REACT_TEXT_DEBUG=1 does)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if sys.stdin is None:  # closed, as a service manager may leave it
        sys.stdin = io.StringIO()
    arguments = parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except AuthorError as error:
        return fail(str(error), AUTHOR)
    except ServerError as error:
        return fail(str(error), SERVER)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:  # a full disk, a file that may not be read
        if os.environ.get("REACT_TEXT_DEBUG"):
            raise
        return fail(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", AUTHOR)
    except Exception as error:
        if os.environ.get("REACT_TEXT_DEBUG"):
            raise
        return fail(f"internal error: {type(error).__name__}: {error} (REACT_TEXT_DEBUG=1 shows where)", AUTHOR)


def parser() -> argparse.ArgumentParser:
    """The argument parser with all commands."""
    top = argparse.ArgumentParser(prog="react-text", description="Text-protocol ReAct for completion models.")
    top.add_argument("--version", action="version", version=f"react-text {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(command=function)
        return made

    for group in _GROUPS:
        group.register(command)
    return top
