"""The command line: one thin function per command.

Answers go to stdout, everything else to stderr. Exit codes: 0 done, 1 no answer, 2 the author or the call is wrong
(`path:line: message`), 3 the model server failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .errors import AuthorError, ServerError
from .version import __version__

DONE, NO_ANSWER, AUTHOR, SERVER, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never shows a traceback (REACT_TEXT_DEBUG=1 does)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    arguments = parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except AuthorError as error:
        return _fail(str(error), AUTHOR)
    except ServerError as error:
        return _fail(str(error), SERVER)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if os.environ.get("REACT_TEXT_DEBUG"):
            raise
        return _fail(f"internal error: {type(error).__name__}: {error} (REACT_TEXT_DEBUG=1 shows where)", AUTHOR)


def parser() -> argparse.ArgumentParser:
    """The argument parser with all commands."""
    top = argparse.ArgumentParser(prog="react-text", description="Text-protocol ReAct for completion models.")
    top.add_argument("--version", action="version", version=f"react-text {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(command=function)
        return made

    run = command("run", run_prompt, "answer a question: the transcript on stderr, the answer on stdout")
    _prompt_arguments(run)
    run.add_argument("--model", metavar="SPEC", help="URL, scripted:FILE.trace, or auto (the default)")
    run.add_argument("--timeout", type=float, metavar="S", help="longest silence of the model server, in seconds")
    run.add_argument("--max-steps", type=int, metavar="N", help="turns of the model, finish included")
    run.add_argument("--out", type=Path, metavar="FILE", help="write the trace of the run here")
    run.add_argument("--log", type=Path, metavar="FILE", help="write the event log here (JSON Lines)")
    run.add_argument("--json", action="store_true", help="print the whole result as JSON")
    run.add_argument("--quiet", action="store_true", help="no transcript on stderr")

    render = command("render", render_prompt, "print the exact prompt of the first step")
    _prompt_arguments(render)
    return top


def run_prompt(arguments: argparse.Namespace) -> int:
    """`react-text run PROMPT [QUESTION]`"""
    from .agent import Agent
    from .display import Display
    from .log import default_log
    from .models import auto_model, open_model
    from .project import find_project
    from .prompt import Prompt
    from .result import Interrupted

    prompt = Prompt.load(arguments.prompt)
    project = find_project(arguments.prompt.parent)
    timeout = arguments.timeout or project.timeout
    notice = ""
    if arguments.model and arguments.model != "auto":
        model = open_model(arguments.model, timeout=timeout)
    else:
        model, notice = auto_model(prompt.demo, project.model, timeout)
    settings = {} if arguments.max_steps is None else {"max_steps": arguments.max_steps}
    agent = Agent(prompt, model=model, **settings)
    log = arguments.log or default_log(arguments.prompt.stem)
    for path in filter(None, (arguments.out, log)):
        _check_writable(path)

    display = None if arguments.quiet else Display(sys.stderr, agent.settings.labels)
    run = agent.steps(
        arguments.question, variables=_variables(arguments), log=log, on_text=display.text if display else None
    )
    if display:
        if notice:
            display.note(notice)
        display.task(run.prompt.task)
    code = None
    try:
        for step in run:
            if display:
                display.step(step)
        result = run.result
    except Interrupted as interrupted:
        result, code = interrupted.result, INTERRUPTED
    if arguments.out:
        _write(arguments.out, result.trace.dump())
    if display:
        display.end(result)
    if arguments.json:
        print(json.dumps(_result_as_dict(result), ensure_ascii=False, indent=2, default=str))
    elif result.answer is not None:
        print(result.answer)
    if arguments.quiet and not result.ok and not arguments.json:
        _fail(f"{result.stop_reason}: {result.message}", 0)
    if code is not None:
        return code
    if result.stop_reason in ("llm_error", "llm_timeout", "context_overflow"):
        return SERVER
    return DONE if result.answer is not None else NO_ANSWER


def render_prompt(arguments: argparse.Namespace) -> int:
    """`react-text render PROMPT [QUESTION]`"""
    from .prompt import Prompt
    from .tools import load_tools

    prompt = Prompt.load(arguments.prompt)
    tools = load_tools(prompt.tools)
    allow = prompt.settings.allow
    opened = prompt.open(
        arguments.question, tools if allow is None else tools.only(allow), variables=_variables(arguments)
    )
    labels = prompt.settings.labels
    text = opened.text("", labels.cue(labels.thought, 1))
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return DONE


def _prompt_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("prompt", type=Path, metavar="PROMPT", help="a prompt file (prompts/NAME.j2)")
    command.add_argument("question", nargs="?", metavar="QUESTION", help="the prompt's own default otherwise")
    command.add_argument(
        "-v", "--var", action="append", default=[], metavar="NAME=VALUE", help="a variable of the prompt"
    )


def _variables(arguments: argparse.Namespace) -> dict[str, str]:
    pairs = [text.partition("=") for text in arguments.var]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise AuthorError(f"-v takes NAME=VALUE, not {name!r}")
    return {name: value for name, _, value in pairs}


def _result_as_dict(result: Any) -> dict[str, Any]:
    facts = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    return {
        **facts,
        "steps": [dataclasses.asdict(step) for step in result.steps],
        "usage": dataclasses.asdict(result.usage),
        "trace": str(result.trace),
    }


def _check_writable(path: Path) -> None:
    """Fail before the run rather than after it, when its record would be lost."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None
    if path.stat().st_size == 0:
        path.unlink()


def _write(path: Path, data: bytes) -> None:
    """Write a file so that it is either the old one or the new one, never half."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def _fail(message: str, code: int) -> int:
    print(f"react-text: {message}" if code != AUTHOR or not message[:1].isalnum() else message, file=sys.stderr)
    return code
