"""Traces written by hand: `fmt`, `fill`, `author`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AuthorError
from ..files import write
from ..frontmatter import decoded
from .common import AUTHOR, DONE, INTERRUPTED, NO_ANSWER, Register, check_writable, chosen_model, edit_file, variables

if TYPE_CHECKING:
    from ..agent import Agent
    from ..author import Session
    from ..fill import Filled
    from ..labels import Labels
    from ..models.base import Model
    from ..tools import Toolbox
    from ..trace import Trace


def register(command: Register) -> None:
    """Declare the commands."""
    fmt = command("fmt", run_fmt, "write the front matter of traces in its usual form; the body is never touched")
    text = "traces, or folders of them (traces/ when none is named)"
    fmt.add_argument("paths", nargs="*", type=Path, default=[Path("traces")], metavar="PATH", help=text)
    fmt.add_argument("--check", action="store_true", help="change nothing; exit code 1 when something would be changed")

    fill = command("fill", run_fill, "run the tools that a trace calls and write the observations that are missing")
    fill.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="traces, or folders of them")
    fill.add_argument(
        "--step", type=int, action="append", default=[], metavar="N", help="only this step; can be repeated"
    )
    fill.add_argument("--all", action="store_true", help="make every observation anew")
    fill.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 when an observation is not as it is"
    )
    fill.add_argument("--tools", type=Path, action="append", metavar="MODULE", help="tools instead of the prompt's")
    fill.add_argument("--yes", action="store_true", help="run tools that are marked unsafe without asking")

    author = command("author", run_author, "play the model of a prompt yourself and keep the trace")
    author.add_argument(
        "prompt", nargs="?", type=Path, metavar="PROMPT", help="a prompt file; that of --from otherwise"
    )
    author.add_argument("--question", metavar="Q", help="the prompt's own default otherwise")
    author.add_argument(
        "-v", "--var", action="append", default=[], metavar="NAME=VALUE", help="a variable of the prompt"
    )
    author.add_argument("--from", type=Path, dest="source", metavar="FILE", help="a trace to go on from")
    author.add_argument("--step", type=int, metavar="K", help="with --from: the first step to write anew")
    author.add_argument("--model", metavar="SPEC", help="the model that :model asks; otherwise as for `run`")
    author.add_argument("--out", type=Path, metavar="FILE", help="write the trace here at the end instead of to stdout")


def run_fmt(arguments: argparse.Namespace) -> int:
    """`react-text fmt [PATH...]`"""
    from ..fmt import formatted
    from ..trace import Trace

    changes = 0

    def format_one(path: Path) -> None:
        nonlocal changes
        trace = Trace.load(path)
        data = formatted(trace)
        if data != trace.dump():
            changes += 1
            print(f"{'would change' if arguments.check else 'changed'} {path}")
            if not arguments.check:
                write(path, data)

    failed = _each(arguments.paths, format_one)
    return AUTHOR if failed else NO_ANSWER if changes and arguments.check else DONE


def run_fill(arguments: argparse.Namespace) -> int:
    """`react-text fill FILE...`"""
    from ..fill import fill

    if arguments.step and arguments.all:
        raise AuthorError("--step and --all exclude each other")
    undone = False

    def fill_one(path: Path) -> None:
        nonlocal undone
        filled = fill(
            path,
            tools=arguments.tools,
            only=arguments.step,
            everything=arguments.all or arguments.check,
            confirm=lambda question: arguments.yes or (not arguments.check and _agreed(question)),
        )
        finish = _drift if arguments.check else _written
        undone = finish(path, filled) or undone

    failed = _each(arguments.paths, fill_one)
    return AUTHOR if failed else NO_ANSWER if undone else DONE


def run_author(arguments: argparse.Namespace) -> int:
    """`react-text author PROMPT`"""
    if arguments.out and arguments.out.exists():
        raise AuthorError("exists already; author overwrites nothing", path=arguments.out)
    if arguments.step is not None and not arguments.source:
        raise AuthorError("--step needs --from FILE")
    if arguments.out:
        check_writable(arguments.out)
    session = _session(arguments)
    code = DONE
    try:
        result = session.play()
        code = DONE if result.answer is not None else NO_ANSWER
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:  # whatever happens, what was written is not lost
        if session.unsaved and not (arguments.out and session.save(arguments.out)):
            print(session.trace.dump().decode("utf-8"), end="")
    return code


def _each(paths: Sequence[Path], work: Callable[[Path], None]) -> bool:
    """Work on traces one by one; True when one of them could not be worked on."""
    from ..files import collect

    failed = False
    for path in collect(paths):
        try:
            work(path)
        except AuthorError as error:
            print(error, file=sys.stderr)
            failed = True
    return failed


# -- fill


def _written(path: Path, filled: Filled) -> bool:
    """Write what filling a trace has come to, and say so; True when something is left to do."""
    filled.save()
    if filled.steps:
        print(f"{path}: filled {_steps(filled.steps)}")
    for step, what in filled.differ.items():
        print(f"{path}: step {step}: {what}")
    for note in filled.notes:
        print(f"{path}: {note}")
    if filled.pending:
        print(f"{path}.new is pending: react-text review {path}", file=sys.stderr)
    if not (filled.steps or filled.differ or filled.notes):
        print(f"{path}: no observation is missing")
    return bool(filled.pending or filled.notes)


def _drift(path: Path, filled: Filled) -> bool:
    """Say where the tools do not answer as the trace has it; True when they do not."""
    from ..diff import coloured, step_diff
    from ..match import compare
    from ..matching import Matching

    for note in filled.notes:
        print(f"{path}: {note}")
    for step in filled.steps:
        print(f"{path}: step {step} has no observation yet")
    for step, what in filled.differ.items():
        print(f"{path}: step {step}: {what}")
    if filled.pending:
        changes = compare(filled.draft, filled.pending, matching=Matching())
        print(*coloured(step_diff(filled.draft, filled.pending, changes), sys.stdout), sep="\n")
    if filled.steps or filled.pending:
        return True
    print(f"{path}: the tools answer as it says")
    return False


def _steps(numbers: Sequence[int]) -> str:
    return f"step {numbers[0]}" if len(numbers) == 1 else f"steps {', '.join(map(str, numbers))}"


def _agreed(question: str) -> bool:
    """A person's yes. Through a pipe nobody is asked, and that is a no."""
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# -- author


def _session(arguments: argparse.Namespace) -> Session:
    from ..agent import Agent
    from ..author import Session
    from ..display import Display
    from ..fill import steps_by_hand
    from ..models.human import Human
    from ..prompt import Prompt
    from ..resume import Resumption

    given: dict[str, Any] = {"question": arguments.question, "variables": variables(arguments)}
    # A person takes longer than the time that a prompt gives its model.
    settings: dict[str, Any] = {"max_seconds": None}
    if arguments.source:
        if arguments.prompt or arguments.question or arguments.var:
            raise AuthorError("--from takes prompt, question and variables from the trace")
        resumption = Resumption(arguments.source, step=arguments.step)
        agent = resumption.agent(Human(), **settings)
        inputs = resumption.trace.meta.get("inputs") or {}
        question = resumption.case.question(agent, inputs)
        given = {"question": question, "variables": inputs, "past": resumption.trace.steps[: resumption.step - 1]}
        given["by_hand"] = steps_by_hand(resumption.trace)
    elif arguments.prompt:
        agent = Agent(Prompt.load(arguments.prompt), model=Human(), **settings)
    else:
        raise AuthorError("author needs a PROMPT, or --from FILE")
    terminal = _Terminal()
    session = Session(
        agent,
        Display(sys.stderr, agent.settings.labels, typed=sys.stdin.isatty()),
        terminal,
        propose=_proposer(arguments, agent),
        edit=_edited,
        lint=lambda trace: _findings(trace, agent),
        **given,
    )
    if sys.stdin.isatty():
        session.display.note("a turn ends with its action or an empty line; :help lists commands, Tab completes")
        terminal.complete(session)
    return session


def _proposer(arguments: argparse.Namespace, agent: Agent) -> Callable[[int], Model]:
    """The model behind `:model`, opened when it is first asked. A script goes on at the same step."""
    from ..models.scripted import ScriptedModel

    spec: str = arguments.model or "auto"

    @cache
    def opened() -> Model:
        model: Model = chosen_model(spec, agent.prompt.path.parent if agent.prompt.path else Path())[0]
        return model

    if spec.startswith("scripted:"):
        return lambda step: ScriptedModel.from_trace(spec.removeprefix("scripted:"), first=step)
    return lambda step: opened()


def _edited(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "turn.txt"
        path.write_bytes(text.encode("utf-8"))
        edit_file(path)
        return decoded(path.read_bytes(), path)


def _findings(trace: Trace, agent: Agent) -> list[str]:
    """What lint says of a trace, which has to be a file of the prompt's project for that."""
    from ..lint import lint

    folder = agent.prompt.path.parent if agent.prompt.path else Path()
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".author-", suffix=".trace") as file:
        file.write(trace.dump())
        file.flush()
        report = lint([file.name])
    return [f"{f.line}:{f.column}: {f.rule.code} {f.message}" for f in report.findings] + [
        error.message for error in report.unusable
    ]


class _Terminal:
    """Reads lines, and completes them with the Tab key where Python has readline."""

    def __init__(self) -> None:
        self.cue = ""

    def __call__(self, cue: str) -> str | None:
        from ..models.human import read_line

        self.cue = cue
        return read_line(cue)

    def complete(self, session: Session) -> None:
        """Complete commands, the label of an action and names of tools; list usage lines."""
        try:
            import readline
        except ImportError:
            return
        from ..author import completions, usage_lines

        def context() -> tuple[Toolbox, Labels, int]:
            return session.run.gateway.allowed, session.labels, len(session.past) + 1

        def completed(line: str, number: int) -> str | None:
            found = completions(line, *context())
            if not found and number == 0:
                listed(line, [], 0)
            return found[number] if number < len(found) else None

        def listed(line: str, matches: Sequence[str], longest: int) -> None:
            """What can be meant, below the line, and the line once more below that."""
            line = readline.get_line_buffer()
            lines = matches if line.startswith(":") else usage_lines(line, *context())
            if lines:
                sys.stdout.write("\n".join(["", *lines, self.cue + line]))
                sys.stdout.flush()

        readline.set_completer_delims("")
        readline.set_completer(completed)
        readline.set_completion_display_matches_hook(listed)
        libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
