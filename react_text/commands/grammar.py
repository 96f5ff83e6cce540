"""`grammar`: what a model may write in a turn of a prompt, as servers for constrained decoding take it."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import DONE, Register, write_exactly

_LANGUAGES = ("gbnf", "regex", "lark")


def register(command: Register) -> None:
    """Declare the command."""
    grammar = command("grammar", print_grammar, "print the grammar of a turn, as `constrain` sends it")
    grammar.add_argument("prompt", type=Path, metavar="PROMPT", help="a prompt file (prompts/NAME.j2)")
    grammar.add_argument(
        "--as", dest="language", choices=_LANGUAGES, default="gbnf", help="the language; gbnf is the default"
    )


def print_grammar(arguments: argparse.Namespace) -> int:
    """`react-text grammar PROMPT`"""
    from ..grammar import Grammar
    from ..prompt import Prompt
    from ..tools import load_tools

    prompt = Prompt.load(arguments.prompt)
    tools = load_tools(prompt.tools)
    allow, labels = prompt.settings.allow, prompt.settings.labels
    grammar = Grammar(tools if allow is None else tools.only(allow), labels)
    constraint = grammar.after(labels.cue(labels.thought, 1), 1)
    text: str = getattr(constraint, arguments.language)
    write_exactly(text if text.endswith("\n") else f"{text}\n")
    return DONE
