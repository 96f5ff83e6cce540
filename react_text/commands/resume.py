"""Runs that were cut short: `recover` and `resume`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from ..files import write
from .common import DONE, Register, check_writable, chosen_model
from .run import carry_out, given_settings, run_options


def register(command: Register) -> None:
    """Declare the commands."""
    recover = command("recover", run_recover, "rebuild the trace of a run from its log, whatever became of the process")
    recover.add_argument("log", type=Path, metavar="LOG", help="the event log of one or more runs (JSON Lines)")
    recover.add_argument("--run", type=int, metavar="N", help="which run of the log, from 1; the last one otherwise")
    recover.add_argument("--out", type=Path, metavar="FILE", help="write the trace here instead of to stdout")

    resume = command("resume", run_resume, "go on with a recorded run: its first steps from the file, then live")
    resume.add_argument("file", type=Path, metavar="FILE", help="the trace of the run")
    resume.add_argument("--step", type=int, metavar="K", help="first new step; the one behind the last otherwise")
    run_options(resume)


def run_recover(arguments: argparse.Namespace) -> int:
    """`react-text recover LOG`"""
    from ..recover import recover

    trace, notices = recover(arguments.log, arguments.run)
    for notice in notices:
        print(notice, file=sys.stderr)
    print(f"# {trace.meta['stop_reason']}, {len(trace.steps)} steps", file=sys.stderr)
    if arguments.out:
        check_writable(arguments.out)
        write(arguments.out, trace.dump())
    else:
        sys.stdout.buffer.write(trace.dump())
        sys.stdout.buffer.flush()
    return DONE


def run_resume(arguments: argparse.Namespace) -> int:
    """`react-text resume FILE`"""
    from ..resume import Resumption

    resumption = Resumption(arguments.file, step=arguments.step)
    model, notice = arguments.model, ""
    if not (model or "").startswith("scripted:"):  # a script goes on at the step of the run, see Resumption.agent
        # Not the prompt's demo: its turns know nothing of what this run has seen.
        model, notice = chosen_model(model, resumption.case.root, timeout=arguments.timeout)
    agent = resumption.agent(model, **given_settings(arguments))
    return carry_out(agent, partial(resumption.run, agent), arguments, arguments.file.stem, notice)
