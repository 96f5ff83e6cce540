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
    from ..scratchpad import run_tools

    prompt = Prompt.load(arguments.prompt)
    tools = run_tools(prompt.tools, prompt.settings)
    labels = prompt.settings.labels
    grammar = Grammar(tools.offered(prompt.settings.allow, prompt.settings.answer), labels)
    constraint = grammar.after(labels.cue(labels.thought, 1), 1)
    text: str = getattr(constraint, arguments.language)
    write_exactly(text if text.endswith("\n") else f"{text}\n")
    return DONE
