"""`show`: a trace on the terminal."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import AuthorError
from .common import DONE, Register, write_exactly


def register(command: Register) -> None:
    """Declare the command."""
    show = command("show", show_trace, "print a trace, one of its steps, or the exact prompt of one of its turns")
    show.add_argument("file", type=Path, metavar="FILE", help="a trace")
    show.add_argument("--step", type=int, metavar="N", help="only this step")
    show.add_argument("--prompt", type=int, metavar="N", help="the exact prompt that turn N was written for")
    show.add_argument("--raw", action="store_true", help="the exact bytes: no colours, control characters as they are")


def show_trace(arguments: argparse.Namespace) -> int:
    """`react-text show FILE`"""
    from ..display import printable, styled, wants_colour
    from ..show import prompt_of, step_of, transcript
    from ..trace import Trace

    if arguments.prompt is not None:
        if arguments.step is not None:
            raise AuthorError("--step and --prompt exclude each other")
        text: str = prompt_of(arguments.file, arguments.prompt)
        write_exactly(text if arguments.raw else printable(text) + "\n")
        return DONE
    trace = Trace.load(arguments.file)
    if arguments.raw:
        write_exactly(trace.body if arguments.step is None else step_of(trace, arguments.step))
        return DONE
    colour = wants_colour(sys.stdout)
    if arguments.step is None:
        facts = f"{trace.meta.get('stop_reason') or 'no stop reason'}, {len(trace.steps)} steps"
        note = f"# {arguments.file}: {trace.meta.get('prompt') or 'no prompt'}, {facts}"
        print(styled(note, "note") if colour else note, file=sys.stderr)
    text = transcript(trace, arguments.step, colour=colour)
    print(text, end="" if text.endswith("\n") else "\n")
    return DONE
