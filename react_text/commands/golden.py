"""Traces as tests: `test`, what to do about what has changed (`review`, `accept`, `reject`, `pending`), and what
depends on what (`affected`, `prune`)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AuthorError
from ..files import from_here
from .common import AUTHOR, DONE, NO_ANSWER, Register, edit_file
from .live import live_options, run_live

if TYPE_CHECKING:
    from ..review import Pending

_DEFAULT = Path("traces")
_CHOICES = "[a]ccept, [r]eject, [s]kip, [e]dit, [q]uit? "


def register(command: Register) -> None:
    """Declare the commands."""
    test = command("test", run_tests, "check that goldens are still reproduced")
    _paths(test, "trace files, or folders of them")
    test.add_argument("--tools", action="store_true", help="run the real tools instead of answering from the file")
    test.add_argument("--update", action="store_true", help="write what has changed to NAME.trace.new, for review")
    test.add_argument("--live", dest="model", metavar="MODEL", help="run the cases with a real model instead")
    live_options(test)
    _force(test)

    review = command("review", run_review, "go through what is pending: see the difference, accept, reject, edit")
    _paths(review, "pending files, goldens, or folders")
    _force(review)

    accept = command("accept", run_accept, "make pending files the goldens")
    accept.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="pending files, goldens, or folders")
    accept.add_argument("--only", metavar="CATEGORIES", help="only where nothing else has changed: wording,tool")
    _force(accept)

    reject = command("reject", run_reject, "remove pending files")
    reject.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="pending files, goldens, or folders")
    _force(reject)

    pending = command("pending", run_pending, "list what is pending")
    _paths(pending, "folders")
    pending.add_argument("--json", action="store_true", help="print the list as JSON")

    affected = command("affected", run_affected, "which goldens depend on files, and which of them still replay")
    affected.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a prompt, template, tools module or trace"
    )

    prune = command("prune", run_prune, "list traces that nothing refers to any more")
    _paths(prune, "folders of traces")
    prune.add_argument("--delete", action="store_true", help="delete them")
    _force(prune)


def run_tests(arguments: argparse.Namespace) -> int:
    """`react-text test [PATH...]`"""
    if arguments.model or arguments.models or arguments.prompts:
        return run_live(arguments)
    from ..diff import coloured, report
    from ..files import collect
    from ..golden import open_case
    from ..library import Library
    from ..plan.replay import SUFFIX as PLAN
    from ..review import lacking, pending_path, refuse_in_ci, write_pending

    if arguments.update and not arguments.force:
        refuse_in_ci("--update (without --force)")
    check, library = "tools" if arguments.tools else "replay", Library()
    counts, categories = Counter[str](), Counter[str]()
    for path in collect(arguments.paths, (".trace", PLAN)):
        try:
            case = open_case(path, library)
            if not case.is_test:
                counts["examples"] += 1
                continue
            outcome = case.check(check)
            counts["differ" if outcome.changes else "as recorded"] += 1
            categories.update({change.category for change in outcome.changes})
            if outcome.changes:
                print(*coloured(report(outcome), sys.stdout), "", sep="\n")
            if arguments.update and (missing := lacking(outcome)):
                print(f"{path}: as recorded, but its front matter has no {' and no '.join(missing)} yet")
            if arguments.update and (outcome.changes or missing):
                write_pending(outcome)
            elif arguments.update:
                pending_path(path).unlink(missing_ok=True)
        except AuthorError as error:
            counts["errors"] += 1
            _complain(error)
        counts["pending"] += pending_path(path).is_file()
    print(_summary(counts, categories))
    return AUTHOR if counts["errors"] else NO_ANSWER if counts["differ"] else DONE


def run_review(arguments: argparse.Namespace) -> int:
    """`react-text review [PATH...]`: reads its answers from stdin, a terminal or not."""
    from ..review import Pending, find_pending, refuse_in_ci

    if not arguments.force:
        refuse_in_ci("review (without --force)")
    waiting = find_pending(arguments.paths)
    left = len(waiting)
    for number, pending in enumerate(waiting, 1):
        while True:
            _show(pending, f"{number}/{len(waiting)} ")
            print(_CHOICES, end="", file=sys.stderr, flush=True)
            answer = sys.stdin.readline()
            choice = answer.strip()[:1].lower()
            if not answer or choice == "q":
                return _decided(left)
            if choice == "e":
                edit_file(pending.path)
                pending = Pending(pending.path)  # what was read of it before is stale
            elif choice == "s":
                break
            elif choice in ("a", "r") and _settle(pending, accept=choice == "a"):
                left -= 1
                break
    return _decided(left)


def run_accept(arguments: argparse.Namespace) -> int:
    """`react-text accept PATH...`"""
    from ..diff import categories
    from ..review import find_pending, only_categories, refuse_in_ci, within

    if not arguments.force:
        refuse_in_ci("accept (without --force)")
    wanted = only_categories(arguments.only) if arguments.only else None
    code = DONE
    for pending in find_pending(arguments.paths):
        try:
            if wanted is not None and not within(pending.changes, wanted):
                print(f"kept pending: {pending.golden} ({', '.join(categories(pending.changes))})")
                code = max(code, NO_ANSWER)
                continue
        except AuthorError as error:
            _complain(error)
            code = AUTHOR
            continue
        code = code if _settle(pending, accept=True) else AUTHOR
    return code


def run_reject(arguments: argparse.Namespace) -> int:
    """`react-text reject PATH...`"""
    from ..review import find_pending, refuse_in_ci

    if not arguments.force:
        refuse_in_ci("reject (without --force)")
    for pending in find_pending(arguments.paths):
        _settle(pending, accept=False)
    return DONE


def run_pending(arguments: argparse.Namespace) -> int:
    """`react-text pending [PATH...]`"""
    from ..diff import categories, story
    from ..review import find_pending

    rows, code = [], DONE
    for pending in find_pending(arguments.paths):
        try:
            changes = pending.changes
        except AuthorError as error:
            _complain(error)
            code = AUTHOR
            continue
        facts = {"golden": str(pending.golden), "pending": str(pending.path), "story": story(changes)}
        listed = [{"category": c.category, "step": c.step, "message": c.message} for c in changes]
        rows.append({**facts, "categories": categories(changes), "changes": listed})
        if not arguments.json:
            print(f"{pending.path}: {story(changes)} [{', '.join(categories(changes))}]")
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    return code


def run_affected(arguments: argparse.Namespace) -> int:
    """`react-text affected FILE...`"""
    from ..diff import categories
    from ..files import collect
    from ..golden import open_case
    from ..library import Library
    from ..plan.replay import SUFFIX as PLAN

    wanted, library, code, found = [Path(os.path.realpath(path)) for path in arguments.files], Library(), DONE, 0
    for path in collect([_DEFAULT], (".trace", PLAN)):
        try:
            case = open_case(path, library)
            if not case.is_test or not any(f.resolve().is_relative_to(w) for f in case.files for w in wanted):
                continue
            changes = case.replay().changes
        except AuthorError as error:
            _complain(error)
            code = AUTHOR
            continue
        found += 1
        print(f"{path}: {'differs: ' + ', '.join(categories(changes)) if changes else 'replays byte for byte'}")
        code = max(code, NO_ANSWER) if changes else code
    if not found and code == DONE:
        _note("no golden depends on this")
    if found and any(path.suffix == ".py" for path in arguments.files):
        _note("react-text test --tools shows what the tools answer now")
    return code


def run_prune(arguments: argparse.Namespace) -> int:
    """`react-text prune [PATH...]`"""
    from ..review import refuse_in_ci
    from ..unused import unused

    if arguments.delete and not arguments.force:
        refuse_in_ci("--delete (without --force)")
    found = unused(arguments.paths)
    for path, reason in found:
        print(f"{path}: {reason}")
        if arguments.delete:
            path.unlink()
    if found:
        _note("deleted" if arguments.delete else "nothing was deleted: --delete does it")
    return DONE


def _paths(command: argparse.ArgumentParser, text: str) -> None:
    text = f"{text} ({_DEFAULT}/ when none is named)"
    command.add_argument("paths", nargs="*", type=Path, default=[_DEFAULT], metavar="PATH", help=text)


def _force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="change files even where CI is set")


def _summary(counts: Counter[str], categories: Counter[str]) -> str:
    parts = [f"{counts['as recorded']} as recorded"]
    if counts["differ"]:
        parts.append(f"{counts['differ']} differ ({', '.join(f'{n} {c}' for c, n in categories.most_common())})")
    if counts["errors"]:
        parts.append(f"{counts['errors']} cannot be checked")
    if counts["examples"]:
        parts.append(f"{counts['examples']} example{'s' * (counts['examples'] > 1)} (test: false)")
    if counts["pending"]:
        parts.append(f"{counts['pending']} pending (react-text review)")
    return ", ".join(parts)


def _complain(error: AuthorError) -> None:
    sys.stdout.flush()  # what came before it stands before it, wherever both go
    print(from_here(str(error)), file=sys.stderr)


def _note(text: str) -> None:
    sys.stdout.flush()
    print(f"# {text}", file=sys.stderr)


def _show(pending: Pending, counter: str) -> None:
    """The difference that accepting would make."""
    from ..diff import categories, coloured, story

    try:
        changes = pending.changes
        print(f"{counter}{pending.golden}: {story(changes)} [{', '.join(categories(changes))}]")
        lines = pending.difference if pending.is_plan else _step_diff(pending)
    except AuthorError as error:
        print(error)
        return
    if lines:
        print(*coloured(lines, sys.stdout), sep="\n")


def _step_diff(pending: Pending) -> list[str]:
    """The difference of two traces; none where another program has shown it."""
    from ..diff import external_diff, step_diff, visible

    (expected, actual), changes = pending.traces, pending.changes
    if expected is None:
        return [f"    + {visible(line)}" for line in actual.body.removesuffix("\n").split("\n")]
    sys.stdout.flush()  # another program may write next
    if external_diff(pending.golden, pending.path):
        return []
    return [*(f"  {change}" for change in changes if len(changes) > 1), *step_diff(expected, actual, changes)]


def _settle(pending: Pending, *, accept: bool) -> bool:
    """Accept or reject, and say so; False when it cannot be accepted."""
    try:
        if accept:
            pending.accept()
        else:
            pending.reject()
    except AuthorError as error:
        _complain(error)
        return False
    print(f"{'accepted' if accept else 'rejected'} {pending.golden}")
    return True


def _decided(left: int) -> int:
    print(f"{left} left pending" if left else "nothing is pending")
    return NO_ANSWER if left else DONE
