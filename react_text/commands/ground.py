"""`ground`: where the numbers of an answer came from."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from .common import DONE, NO_ANSWER, Register

if TYPE_CHECKING:
    from ..grounding import Number, Source
    from ..runs import Recorded

_AROUND = 40  # characters of a source on either side of the number


def register(command: Register) -> None:
    """Declare the command."""
    ground = command("ground", ground_answers, "show which observation each number of an answer came from")
    ground.add_argument("files", nargs="+", metavar="FILE", help="traces, logs (LOG:N for one of its runs), folders")
    ground.add_argument("--json", action="store_true", help="print answers, numbers and sources as JSON")


def ground_answers(arguments: argparse.Namespace) -> int:
    """`react-text ground FILE...`: exit code 1 when a number has no source."""
    from ..grounding import ground
    from ..runs import find_files, read_runs

    found, code = [], DONE
    for file in find_files(arguments.files):
        runs, notices = read_runs(file)
        for notice in notices:
            print(f"# {notice}", file=sys.stderr)
        for run in runs:
            grounding = ground(run.trace)
            code = NO_ANSWER if grounding.ungrounded else code
            found.append({"file": run.name, **asdict(grounding)})
            if grounding.answer is None:
                print(f"# {run.name}: no answer", file=sys.stderr)
            for number in grounding.numbers if not arguments.json else ():
                print(f"{_place(run, number)}: {_origin(run, number)}")
    if arguments.json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    return code


def _place(run: Recorded, number: Number) -> str:
    """Where a number stands: the file and, in a trace, the line."""
    trace = run.trace
    if trace.path is None:
        return run.name
    last = trace.steps[-1]
    before = last.text.partition(last.arguments or "")[0] + str(trace.meta.get("answer") or "")[: number.start]
    return f"{run.name}:{trace.line_of(len(trace.steps)) + before.count(chr(10))}"


def _origin(run: Recorded, number: Number) -> str:
    """`8.44 from observation 6 (line 26), percent of a ratio: 0.0844`"""
    from ..display import printable

    source = number.source
    if source is None:
        return f"{number.text} has no source"
    where = f"observation {source.step}" if source.step else f"the {source.where}"
    if run.trace.path is not None and source.where != "inputs":
        first = run.trace.line_of(source.step, observation=True) if source.step else run.trace.first_line
        where += f" (line {first + source.text[: source.start].count(chr(10))})"
    how = "" if source.how == "same" else f", {source.how}"
    return printable(f"{number.text} from {where}{how}: {_snippet(source)}")


def _snippet(source: Source) -> str:
    """A source with some words on either side, in one line."""
    before, behind = source.text[: source.start], source.text[source.end :]
    if len(before) > _AROUND:
        before = f"... {before[-_AROUND:].partition(' ')[2]}"
    if len(behind) > _AROUND:
        behind = f"{behind[:_AROUND].rpartition(' ')[0]} ..."
    return " ".join(f"{before}{source.text[source.start : source.end]}{behind}".split())
