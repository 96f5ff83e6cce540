"""Traces from and for others: `import` and `export`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AuthorError
from .common import DONE, Register, check_writable, write_exactly

if TYPE_CHECKING:
    from ..formats import Imported
    from ..prompt import Prompt

_IMPORTED = ("react2022", "langchain", "chat")
_EXPORTED = ("completions", "chat", "markdown", "react2022")


def register(command: Register) -> None:
    """Declare the commands."""
    take = command("import", run_import, "make traces from the files of others")
    take.add_argument("format", choices=_IMPORTED, help="JSON of the ReAct paper, LangChain transcript, or chat JSONL")
    take.add_argument("file", type=Path, metavar="FILE", help="the file to read")
    take.add_argument("--key", metavar="K", help="react2022: the key whose examples are wanted")
    take.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where the files go; here otherwise")

    give = command("export", run_export, "turn traces into what others read")
    give.add_argument(
        "format", choices=_EXPORTED, help="JSONL for fine-tuning or chat, Markdown, JSON of the ReAct paper"
    )
    give.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="traces, or folders of them; react2022: prompts"
    )
    give.add_argument(
        "--prompt", type=Path, metavar="PROMPT", help="the prompt to put before them, instead of their own"
    )
    give.add_argument("--key", metavar="K", help="react2022: the key of the text; the file's name otherwise")
    give.add_argument(
        "--into", type=Path, metavar="JSON", help="react2022: keep the other keys and the style of this file"
    )
    give.add_argument("--out", type=Path, metavar="FILE", help="write here instead of to stdout")


def run_import(arguments: argparse.Namespace) -> int:
    """`react-text import FORMAT FILE`"""
    imported = _imported(arguments)
    for path in imported.save(arguments.out):
        print(path)
    for note in imported.notes:
        print(f"# {note}", file=sys.stderr)
    return DONE


def run_export(arguments: argparse.Namespace) -> int:
    """`react-text export FORMAT PATH...`"""
    from ..files import write

    text = "".join(_exported(arguments))
    if arguments.out:
        check_writable(arguments.out)
        write(arguments.out, text.encode("utf-8"))
    else:
        write_exactly(text)
    return DONE


def _imported(arguments: argparse.Namespace) -> Imported:
    if arguments.format == "react2022":
        from ..formats import react2022

        return react2022.read(arguments.file, arguments.key)
    if arguments.key is not None:
        raise AuthorError("--key belongs to react2022")
    if arguments.format == "chat":
        from ..formats import chat

        return chat.read(arguments.file)
    from ..formats import langchain

    return langchain.read(arguments.file)


def _exported(arguments: argparse.Namespace) -> Iterator[str]:
    from ..files import collect
    from ..prompt import Prompt

    if arguments.format == "react2022":
        from ..formats import react2022

        key = arguments.key or arguments.paths[0].stem
        yield react2022.written(react2022.joined(arguments.paths), key, arguments.into)
        return
    for option in ("key", "into"):
        if getattr(arguments, option) is not None:
            raise AuthorError(f"--{option} belongs to react2022")
    prompt = Prompt.load(arguments.prompt) if arguments.prompt else None
    yield from _records(arguments.format, collect(arguments.paths), prompt)


def _records(format: str, paths: Sequence[Path], prompt: Prompt | None) -> Iterator[str]:
    from ..formats import chat, finetune, markdown
    from ..show import head_of
    from ..trace import Trace

    for number, path in enumerate(paths):
        if format == "markdown":
            yield ("\n" if number else "") + markdown.markdown(Trace.load(path))
        elif format == "chat":
            trace = Trace.load(path)
            head = head_of(path, prompt) if prompt or trace.meta.get("prompt") else ""
            yield _line({"messages": chat.messages_of(trace, head)})
        else:
            yield from map(_line, finetune.records(path, prompt))


def _line(record: object) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
