"""`plan`: a request that takes more than one run of the loop."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SERVER_FAILED, AuthorError
from .common import (
    DONE,
    INTERRUPTED,
    NO_ANSWER,
    SERVER,
    Register,
    check_writable,
    chosen_model,
    fail,
    prints_to_stderr,
    record_file,
)

if TYPE_CHECKING:
    from ..display import Display
    from ..loop import Run
    from ..models.base import Model
    from ..plan import PlanScript, PlanState
    from ..prompt import Prompt
    from ..result import Step


def register(command: Register) -> None:
    """Declare the command."""
    plan = command("plan", run_plan, "carry out a request in stages: goal, subtasks, a loop for each, synthesis")
    plan.add_argument("prompt", type=Path, metavar="PROMPT", help="a plan prompt (prompts/NAME/plan.j2) or its folder")
    plan.add_argument("request", nargs="?", metavar="REQUEST", help="the prompt's own default otherwise")
    plan.add_argument("--model", metavar="SPEC", help="URL, local[:FILE.gguf], scripted:FILE.plan, or auto")
    plan.add_argument("--timeout", type=float, metavar="S", help="longest silence of the model server, in seconds")
    plan.add_argument("--plan", type=Path, metavar="FILE", help="the subtasks, as YAML, in place of the model's")
    plan.add_argument("--interpret", choices=("on", "off"), help="whether a completion judges each result")
    plan.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="subtasks worked on at the same time")
    plan.add_argument("--out", type=Path, metavar="FILE", help="keep the state here (NAME.plan), after each step")
    plan.add_argument("--resume", type=Path, metavar="FILE", help="go on with the plan that was kept here")
    plan.add_argument("--log", type=Path, metavar="FILE", help="write the event logs of all stages here (JSON Lines)")
    plan.add_argument("--json", action="store_true", help="print the whole state as JSON")
    plan.add_argument("--quiet", action="store_true", help="no transcripts on stderr")


def run_plan(arguments: argparse.Namespace) -> int:
    """`react-text plan PROMPT [REQUEST]`"""
    from ..plan import Planner, PlanState
    from ..plan.run import plan_file
    from ..prompt import Prompt

    prompt = Prompt.load(plan_file(arguments.prompt))
    if prompt.plan is None:
        raise AuthorError(
            "this is no plan prompt: it has no key `plan:` (react-text run works with it)", path=prompt.path
        )
    model, notice = _model(arguments, prompt)
    interpret = {"on": True, "off": False, None: None}[arguments.interpret]
    planner = Planner(prompt, model, jobs=max(1, arguments.jobs), interpret=interpret)
    past = PlanState.load(arguments.resume) if arguments.resume else None
    if arguments.log:
        check_writable(arguments.log)
    out = record_file(arguments.out or arguments.resume, prompt.path.parent.name if prompt.path else "plan", ".plan")
    go_on = f"; go on with: react-text plan {arguments.prompt} --resume {out}" if out else ""
    shown = None if arguments.quiet else _Shown(notice)
    try:
        with prints_to_stderr(model):
            state = planner.run(
                arguments.request,
                file=arguments.plan,
                past=past,
                save=(lambda state: state.save(out)) if out else None,
                log=arguments.log,
                on_stage=shown.stage if shown else None,
                on_step=shown.step if shown else None,
                on_text=shown.text if shown and arguments.jobs == 1 else None,
            )
    except KeyboardInterrupt:
        return fail(f"interrupted{go_on}", INTERRUPTED)
    if shown:
        print(f"# {state.stop_reason}{f', kept in {out}' if out else ''}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(state.as_dict(), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_result(state)))
    if state.stop_reason in SERVER_FAILED:
        return fail(f"{state.stop_reason}{go_on}", SERVER)
    return DONE if state.answer else NO_ANSWER


def _model(arguments: argparse.Namespace, prompt: Prompt) -> tuple[Model | PlanScript, str]:
    from ..plan import PlanScript

    spec = arguments.model or "auto"
    if spec.startswith("scripted:") and spec.endswith(".plan"):
        return PlanScript.load(Path(spec.removeprefix("scripted:"))), ""
    demo = prompt.plan.demo if prompt.plan else None
    folder = arguments.prompt.parent
    return chosen_model(spec, folder, demo, timeout=arguments.timeout, scripted=PlanScript.load)


def _result(state: PlanState) -> list[str]:
    """The answer, and beneath it what it cost, what went wrong and what was done: never left to the model to say."""
    lines = [state.answer or "(no answer)", ""]
    if state.money:
        money, unit = state.money, state.money["unit"]
        lines.append(f"Budget: {money['spent']} of {money['total']} {unit} spent, {money['left']} left".rstrip())
        lines += [f"  {name}: {amount} {unit}".rstrip() for name, amount in money["parts"].items()]
    lines += [f"Warning: {warning}" for warning in state.warnings]
    facts = state.metadata
    done = ", ".join(f"{count} {status}" for status, count in facts["subtasks"].items()) or "none"
    calls = facts["tool_calls"]
    lines.append(f"Steps: {facts['steps']} of {facts['max_steps']}; subtasks: {done}; tool calls: {calls}")
    return lines


class _Shown:
    """The stages on stderr as they go. With several at the same time, each step as a whole."""

    def __init__(self, notice: str) -> None:
        self._notice = notice
        self._displays: dict[str, Display] = {}
        self._latest: Display | None = None

    def stage(self, key: str, run: Run) -> None:
        from ..display import Display

        display = self._displays[key] = self._latest = Display(sys.stderr, run.settings.labels)
        if self._notice:
            display.note(self._notice)
            self._notice = ""
        display.note(f"--- {key}")
        display.task(run.prompt.task)

    def text(self, piece: str) -> None:
        if self._latest:
            self._latest.text(piece)

    def step(self, key: str, step: Step) -> None:
        self._displays[key].step(step)
