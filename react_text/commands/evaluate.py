"""`eval`: a data set of tasks against a model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..errors import AuthorError
from .common import DONE, NO_ANSWER, Register, chosen_model, settings


def register(command: Register) -> None:
    """Declare the command."""
    evaluate = command("eval", run_evaluation, "run a data set of tasks and print how many were solved, at what cost")
    evaluate.add_argument("data", nargs="+", type=Path, metavar="DATA", help="YAML files with `prompt:` and `tasks:`")
    evaluate.add_argument("--model", metavar="SPEC", help="URL, scripted:FILE.trace, or auto (the default)")
    evaluate.add_argument("--split", metavar="NAME", help="only the tasks of this split")
    evaluate.add_argument("--examples", type=int, metavar="K", help="only the first K few-shots of each prompt")
    evaluate.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the prompt")
    evaluate.add_argument("-j", "--jobs", type=int, default=1, metavar="J", help="runs at the same time")
    evaluate.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_evaluation(arguments: argparse.Namespace) -> int:
    """`react-text eval DATA...`"""
    from ..evaluate import Score, evaluate, load_tasks, summary, wanted

    tasks = [task for path in arguments.data for task in load_tasks(path)]
    chosen = list(wanted(tasks, arguments.split))
    if not chosen:
        raise AuthorError(f"no task has the split {arguments.split!r}", path=arguments.data[0])
    model, notice = chosen_model(arguments.model, chosen[0].prompt.parent)
    if notice:
        print(f"# {notice}", file=sys.stderr)

    def show(score: Score) -> None:
        answer = score.result.answer if score.result.answer is not None else f"({score.result.stop_reason})"
        mark = "solved" if score.solved else "missed"
        print(f"{mark}  {score.task.id}: {answer[:80]!r}, {len(score.result.steps)} steps", file=sys.stderr)

    scores = evaluate(
        chosen, model, examples=arguments.examples, jobs=arguments.jobs, on_score=show, **settings(arguments)
    )
    figures = summary(scores)
    if arguments.json:
        print(json.dumps(figures))
    else:
        print(
            f"{figures['solved']} of {figures['tasks']} solved, per solved task {figures['steps_per_solved']} steps, "
            f"{figures['generated_per_solved']} tokens generated, {figures['evaluated_per_solved']} evaluated"
        )
    return DONE if figures["solved"] == figures["tasks"] else NO_ANSWER
