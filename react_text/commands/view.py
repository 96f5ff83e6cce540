"""Runs that were recorded: two beside each other on the terminal (`diff`), and any number on a page (`view`)."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import AUTHOR, DONE, NO_ANSWER, Register

if TYPE_CHECKING:
    from ..match import Change

_DEFAULT = Path("traces")


def register(command: Register) -> None:
    """Declare the commands."""
    diff = command("diff", run_diff, "what differs between two runs, step by step")
    for name in ("A", "B"):
        diff.add_argument(
            name.lower(), metavar=name, help="a trace; LOG:N, a run of a log; PLAN:STAGE; the last otherwise"
        )
    diff.add_argument("--json", action="store_true", help="print the changes and the aligned steps as JSON")

    view = command("view", run_view, "a page to look at runs: list, transcripts, costs, differences, search")
    text = f"traces, plans, logs, folders of them ({_DEFAULT}/ when none is named); two files are compared as well"
    view.add_argument("paths", nargs="*", metavar="PATH", help=text)
    view.add_argument("-o", "--out", type=Path, default=Path("react-text.html"), metavar="FILE",
                      help="the page (react-text.html)")  # fmt: skip
    view.add_argument("--rates", type=Path, metavar="FILE", help="pass rates to show, from `live --json`")
    view.add_argument("--no-check", action="store_true", help="do not replay the goldens of folders")
    view.add_argument("--force", action="store_true", help="overwrite FILE even if it is no such page")


def run_diff(arguments: argparse.Namespace) -> int:
    """`react-text diff A B`"""
    from ..diff import categories, coloured, step_diff, story
    from ..display import printable
    from ..match import aligned
    from ..matching import Matching
    from ..runs import differences, read_run, short_names

    one, other = read_run(arguments.a), read_run(arguments.b)
    changes = differences(one.trace, other.trace)
    if arguments.json:
        facts = {
            "a": one.name,
            "b": other.name,
            "same": not changes,
            "story": story(changes) if changes else "",
            "categories": categories(changes),
            "changes": [_change(c) for c in changes],
            "steps": aligned(one.trace, other.trace, Matching()),
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
        return NO_ANSWER if changes else DONE
    if not changes:
        print(printable(f"{one.name} and {other.name}: the same run"))
        return DONE
    first, second = short_names(one, other)
    names = printable(first), printable(second)
    told = f"{story(changes)} [{', '.join(categories(changes))}]"
    head = printable(f"{one.name} -> {other.name}: {told}")
    listed = [f"  {printable(str(change))}" for change in changes] if len(changes) > 1 else []
    lines = step_diff(one.trace, other.trace, changes, names=names)
    print(*coloured([head, *listed, *lines], sys.stdout), sep="\n")
    return NO_ANSWER


def run_view(arguments: argparse.Namespace) -> int:
    """`react-text view [PATH...]`"""
    from ..display import printable
    from ..entries import Entry, entries, read_rates
    from ..runs import read_run
    from ..view import Comparison, check_page, page, write_page

    if not arguments.force:
        check_page(arguments.out)
    paths = arguments.paths or [_DEFAULT]
    rates = read_rates(arguments.rates) if arguments.rates else {}
    comparison, title = None, str(paths[0]) if len(paths) == 1 else f"{len(paths)} files and folders"
    if len(paths) == 2 and not any(Path(path).is_dir() for path in paths):
        one, other = map(read_run, paths)
        comparison = Comparison.of(one, other)
        title = " ↔ ".join(comparison.names)
        found = [Entry(run.name, run, rates=rates.get(str(run.path.resolve()), ())) for run in (one, other)]
    else:
        found = entries(paths, check=not arguments.no_check, rates=rates)
    write_page(arguments.out, page(found, comparison, title))
    print(arguments.out)
    for entry in found:
        for text in filter(None, [entry.error, *entry.notices]):
            print(printable(text), file=sys.stderr)
    bad = sum(not entry.good for entry in found)
    print(f"# {len(found)} run{'' if len(found) == 1 else 's'}, {bad} failed or without an answer", file=sys.stderr)
    return AUTHOR if any(entry.error for entry in found) else DONE


def _change(change: Change) -> dict[str, Any]:
    side = {"golden": "a", "run": "b"}.get(change.only_in)
    return {"category": change.category, "step": change.step, "only_in": side, "message": change.message}
