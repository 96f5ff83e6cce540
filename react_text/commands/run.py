"""`run` and `render`: a prompt at work, and its exact text."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from .common import (
    DONE,
    INTERRUPTED,
    NO_ANSWER,
    SERVER,
    Register,
    check_writable,
    fail,
    prompt_arguments,
    variables,
    write,
)


def register(command: Register) -> None:
    """Declare the commands."""
    run = command("run", run_prompt, "answer a question: the transcript on stderr, the answer on stdout")
    prompt_arguments(run)
    run.add_argument("--model", metavar="SPEC", help="URL, scripted:FILE.trace, or auto (the default)")
    run.add_argument("--timeout", type=float, metavar="S", help="longest silence of the model server, in seconds")
    run.add_argument("--max-steps", type=int, metavar="N", help="turns of the model, finish included")
    run.add_argument("--out", type=Path, metavar="FILE", help="write the trace of the run here")
    run.add_argument("--log", type=Path, metavar="FILE", help="write the event log here (JSON Lines)")
    run.add_argument("--json", action="store_true", help="print the whole result as JSON")
    run.add_argument("--quiet", action="store_true", help="no transcript on stderr")

    render = command("render", render_prompt, "print the exact prompt of the first step")
    prompt_arguments(render)


def run_prompt(arguments: argparse.Namespace) -> int:
    """`react-text run PROMPT [QUESTION]`"""
    from ..agent import Agent
    from ..display import Display
    from ..log import default_log
    from ..models import auto_model, open_model
    from ..project import find_project
    from ..prompt import Prompt
    from ..result import Interrupted

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
        check_writable(path)

    display = None if arguments.quiet else Display(sys.stderr, agent.settings.labels)
    run = agent.steps(
        arguments.question, variables=variables(arguments), log=log, on_text=display.text if display else None
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
        write(arguments.out, result.trace.dump())
    if display:
        display.end(result)
    if arguments.json:
        print(json.dumps(_result_as_dict(result), ensure_ascii=False, indent=2, default=str))
    elif result.answer is not None:
        print(result.answer)
    if arguments.quiet and not result.ok and not arguments.json:
        fail(f"{result.stop_reason}: {result.message}", 0)
    if code is not None:
        return code
    if result.stop_reason in ("llm_error", "llm_timeout", "context_overflow"):
        return SERVER
    return DONE if result.answer is not None else NO_ANSWER


def render_prompt(arguments: argparse.Namespace) -> int:
    """`react-text render PROMPT [QUESTION]`"""
    from ..prompt import Prompt
    from ..tools import load_tools

    prompt = Prompt.load(arguments.prompt)
    tools = load_tools(prompt.tools)
    allow = prompt.settings.allow
    opened = prompt.open(
        arguments.question, tools if allow is None else tools.only(allow), variables=variables(arguments)
    )
    labels = prompt.settings.labels
    text = opened.text("", labels.cue(labels.thought, 1))
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return DONE


def _result_as_dict(result: Any) -> dict[str, Any]:
    facts = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    return {
        **facts,
        "steps": [dataclasses.asdict(step) for step in result.steps],
        "usage": dataclasses.asdict(result.usage),
        "trace": str(result.trace),
    }
