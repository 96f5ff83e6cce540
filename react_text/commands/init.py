"""`init`: a project to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import DONE, Register


def register(command: Register) -> None:
    """Declare the command."""
    init = command("init", run_init, "lay out a project: prompts, tools, traces, tests; nothing is overwritten")
    init.add_argument("folder", type=Path, metavar="DIR", help="a new folder, or one in which these files are not")


def run_init(arguments: argparse.Namespace) -> int:
    """`react-text init DIR`"""
    from ..scaffold import create

    for path in create(arguments.folder):
        print(path)
    return DONE
