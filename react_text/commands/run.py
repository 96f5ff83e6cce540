"""`run` and `render`: a prompt at work, and its exact text."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SERVER_FAILED, AuthorError, ContextOverflow
from ..files import write
from .common import (
    AUTHOR,
    DONE,
    INTERRUPTED,
    NO_ANSWER,
    SERVER,
    Register,
    check_writable,
    chosen_model,
    fail,
    prints_to_stderr,
    prompt_arguments,
    record_file,
    variables,
    write_exactly,
)

if TYPE_CHECKING:
    from ..agent import Agent
    from ..loop import Run
    from ..models.base import PromptText
    from ..prompt import OpenPrompt, Prompt


def register(command: Register) -> None:
    """Declare the commands."""
    run = command("run", run_prompt, "answer a question: the transcript on stderr, the answer on stdout")
    prompt_arguments(run)
    run_options(run)

    render = command("render", render_prompt, "print the exact prompt of the first step")
    prompt_arguments(render)
    render.add_argument("--chat-template", metavar="NAME", help="none, auto, a built-in name or a Jinja file")
    render.add_argument("--model", metavar="SPEC", help="the model whose template `auto` is")
    render.add_argument("--turn", nargs=2, metavar=("N", "FILE"), help="the prompt of turn N of a trace instead")
    render.add_argument("--visible", action="store_true", help="mark blanks at line ends, and where the text ends")


def run_options(command: argparse.ArgumentParser) -> None:
    """What can be said about a run, whether it is a new one or goes on."""
    command.add_argument("--model", metavar="SPEC", help="URL, local[:FILE.gguf], scripted:FILE.trace, or auto")
    command.add_argument("--timeout", type=float, metavar="S", help="longest silence of the model server, in seconds")
    command.add_argument("--chat-template", metavar="NAME", help="none, auto, a built-in name or a Jinja file")
    command.add_argument("--max-steps", type=int, metavar="N", help="turns of the model, finish included")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the trace of the run here")
    command.add_argument("--log", type=Path, metavar="FILE", help="write the event log here (JSON Lines)")
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.add_argument("--quiet", action="store_true", help="no transcript on stderr")


def run_prompt(arguments: argparse.Namespace) -> int:
    """`react-text run PROMPT [QUESTION]`"""
    from ..agent import Agent
    from ..prompt import Prompt

    prompt = Prompt.load(arguments.prompt)
    model, notice = chosen_model(arguments.model, arguments.prompt.parent, prompt.demo, timeout=arguments.timeout)
    agent = Agent(prompt, model=model, **given_settings(arguments))
    start = partial(agent.steps, arguments.question, variables=variables(arguments))
    return carry_out(agent, start, arguments, arguments.prompt.stem, notice)


def given_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings among `run_options` that were given."""
    given = {"max_steps": arguments.max_steps, "chat_template": arguments.chat_template}
    return {key: value for key, value in given.items() if value is not None}


def carry_out(
    agent: Agent, start: Callable[..., Run], arguments: argparse.Namespace, name: str, notice: str = ""
) -> int:
    """Carry out the run that `start(log=, on_text=)` begins: show it as it goes, write down what it leaves behind, and
    give the exit code. Its log is called `name` where the user gives none."""
    from ..display import Display
    from ..redact import refuse_secrets

    if arguments.out:
        check_writable(arguments.out)
    log = record_file(arguments.log, name)
    typed = getattr(agent.model, "echoes", False)
    display = None if arguments.quiet else Display(sys.stderr, agent.settings.labels, typed=typed)
    run = start(log=log, on_text=display.text if display else None)
    if display:
        if notice:
            display.note(notice)
        display.task(run.prompt.task)
        for step in run.steps:  # those that a resumed run has from its past
            display.step(step)
    try:
        with prints_to_stderr(run.model):
            for step in run:
                if display:
                    display.step(step)
        code = None
    except KeyboardInterrupt:
        iter(run).close()  # it may have come between two steps
        code = INTERRUPTED
    result = run.result
    if arguments.out:
        data = result.trace.dump()
        try:
            refuse_secrets(data, arguments.out)
            write(arguments.out, data)
        except AuthorError as error:  # the answer is worth showing all the same
            code = fail(str(error), AUTHOR)
    if display:
        display.end(result)
    if arguments.json:
        print(json.dumps(_result_as_dict(result), ensure_ascii=False, indent=2, default=str))
    elif result.answer is not None:
        print(result.answer)
    if result.ungrounded:
        fail(f"no source for {', '.join(result.ungrounded)} in the answer", 0)
    if arguments.quiet and not result.ok and not arguments.json:
        fail(f"{result.stop_reason}: {result.message}", 0)
    if code is not None:
        return code
    if result.stop_reason in (*SERVER_FAILED, ContextOverflow.stop_reason):
        return SERVER
    return DONE if result.answer is not None else NO_ANSWER


def render_prompt(arguments: argparse.Namespace) -> int:
    """`react-text render PROMPT [QUESTION]`"""
    from ..models.chat_template import find_template
    from ..prompt import Prompt
    from ..show import prompt_of, with_marks

    prompt = Prompt.load(arguments.prompt)
    if arguments.turn:
        if arguments.question or arguments.var:
            raise AuthorError("--turn takes question and variables from the trace")
        number, file = arguments.turn
        text = prompt_of(file, int(number) if number.isdecimal() else 0, prompt)
    else:
        text = _first_prompt(arguments, prompt)
    given = {} if arguments.chat_template is None else {"chat_template": arguments.chat_template}
    setting = prompt.settings.override(**given).chat_template
    model = None
    if arguments.model or setting == "auto":
        model, _ = chosen_model(arguments.model, arguments.prompt.parent, prompt.demo)
    template = find_template(setting, model)
    if template:
        text = template.wrap(text)
    write_exactly(with_marks(text) if arguments.visible else text)
    return DONE


def _first_prompt(arguments: argparse.Namespace, prompt: Prompt) -> PromptText:
    from ..scratchpad import run_tools

    tools = run_tools(prompt.tools, prompt.settings)
    offered = tools.offered(prompt.settings.allow, prompt.settings.answer)
    opened = prompt.open(arguments.question, offered, variables=variables(arguments))
    for remark in _remarks(prompt, opened, arguments.question or prompt.question or ""):
        print(f"# {remark}", file=sys.stderr)
    labels = prompt.settings.labels
    return opened.text("", labels.cue(labels.thought, 1, opened.prefill))


def _remarks(prompt: Prompt, opened: OpenPrompt, question: str) -> Iterator[str]:
    """What is worth knowing about a prompt and cannot be seen in its text."""
    from ..observe import label_like

    if prompt.pick is not None:
        names = ", ".join(path.name for path in opened.examples) or "none"
        yield f"examples: {names} (picked from {len(prompt.examples)}; the one most like the question is the last)"
    for name, value in {"question": question, **opened.variables}.items():
        if label_like(str(value), prompt.settings.labels):
            yield f"RT504: a line of {name} begins like a label; the model may take it for one"


def _result_as_dict(result: Any) -> dict[str, Any]:
    facts = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    return {
        **facts,
        "steps": [dataclasses.asdict(step) for step in result.steps],
        "usage": dataclasses.asdict(result.usage),
        "trace": str(result.trace),
    }
