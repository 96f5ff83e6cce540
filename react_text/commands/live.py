"""`live`: goldens against a real model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AuthorError, ServerError, without_password
from ..files import write
from .common import DONE, INTERRUPTED, NO_ANSWER, SERVER, Register, check_writable, chosen_model, fail, settings

if TYPE_CHECKING:
    from ..live import LiveCheck, Report, Trial, Variant


def register(command: Register) -> None:
    """Declare the command."""
    live = command("live", run_live, "run goldens again and again with a real model: pass rates, intervals, paths")
    live.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="goldens, or folders of them; traces otherwise"
    )
    live.add_argument("--model", metavar="SPEC", help="the model, as for run")
    live_options(live)


def live_options(command: argparse.ArgumentParser) -> None:
    """What can be said about a live check, wherever it is started."""
    command.add_argument("-n", "--runs", type=int, default=5, metavar="N", help="runs of each case (5)")
    command.add_argument("--min", type=float, default=0.8, metavar="R", help="pass rate that each case needs (0.8)")
    command.add_argument("-j", "--jobs", type=int, default=1, metavar="J", help="runs at the same time (1)")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the prompt")
    command.add_argument("--unsafe", action="store_true", help="also run tools that are marked unsafe")
    command.add_argument("--out", type=Path, metavar="DIR", help="save a sample of each path here, as NAME~K.trace")
    command.add_argument("--models", metavar="A,B", help="compare two models run by run; the second is judged")
    command.add_argument("--prompts", metavar="X,Y", help="compare two prompt files run by run; the second is judged")
    command.add_argument("--json", action="store_true", help="print the figures as JSON")


def run_live(arguments: argparse.Namespace) -> int:
    """`react-text live [PATH...] --model SPEC`"""
    from ..live import LiveCheck

    if arguments.runs < 1 or arguments.jobs < 1 or not 0 <= arguments.min <= 1:
        raise AuthorError("-n and -j must be whole numbers above 0, --min a rate from 0 to 1")
    check = LiveCheck(
        arguments.paths or [Path("traces")],
        _variants(arguments),
        runs=arguments.runs,
        minimum=arguments.min,
        jobs=arguments.jobs,
        unsafe=arguments.unsafe,
        settings=settings(arguments),
    )
    if arguments.out:
        check_writable(arguments.out / "sample.trace")
    print("# no response is cached: every run asks the model", file=sys.stderr)
    code = None
    try:
        check.run(_progress)
    except ServerError as error:
        code = fail(str(error), SERVER)
    except KeyboardInterrupt:
        code = fail("interrupted; this is what there was", INTERRUPTED)
    samples = _write_samples(check, arguments.out) if arguments.out else {}
    if arguments.json:
        print(json.dumps(_as_dict(check, samples), ensure_ascii=False, indent=2))
    else:
        print(*_lines(check, samples), sep="\n")
    if code is not None:
        return code
    return DONE if all(report.ok for report in check.judged) else NO_ANSWER


def _variants(arguments: argparse.Namespace) -> list[Variant]:
    from ..live import Variant

    folder = arguments.paths[0] if arguments.paths else Path("traces")
    pairs = [(name, getattr(arguments, name, None)) for name in ("models", "prompts")]
    for name, given in pairs:
        if given and (given.count(",") != 1 or (name == "models" and (arguments.model or arguments.prompts))):
            raise AuthorError("--models and --prompts each compare two, A,B; --models replaces --model and --prompts")
    if getattr(arguments, "models", None):
        return [Variant(without_password(spec), chosen_model(spec, folder)[0]) for spec in arguments.models.split(",")]
    model, notice = chosen_model(arguments.model, folder)
    if notice:
        print(f"# {notice}", file=sys.stderr)
    if getattr(arguments, "prompts", None):
        return [Variant(path, model, Path(path)) for path in arguments.prompts.split(",")]
    return [Variant(model.name, model)]


def _progress(report: Report, trial: Trial) -> None:
    """A line for each run, so that a person sees it go on."""
    why = f": {trial.changes[0].message}" if trial.changes else ""
    verdict = "passed" if trial.passed else "failed"
    print(f"{verdict}  {report.path} {len(trial.trace.steps)} steps{why}", file=sys.stderr)


def _lines(check: LiveCheck, samples: dict[int, Path]) -> Iterator[str]:
    """The report as text: each case with its rate and its paths, then the pairs."""
    for report in check.reports:
        runs, (low, high) = len(report.trials), report.interval
        name = f"{report.path} ({report.variant.name})" if len(check.variants) > 1 else str(report.path)
        interval = f"95 % interval {100 * low:.0f} to {100 * high:.0f} %"
        rate = f"{report.passed} of {runs} passed, {interval}" if runs else "no run"
        verdict = {True: ": ok", False: f": below {report.minimum:g}", None: ": undecided"}[report.ok]
        yield f"{name}: {rate}{verdict if report.minimum else ''}"
        if report.minimum and report.ok is not None and runs < report.planned:
            yield f"  stopped early: {report.planned - runs} more could not change that"
        for path, trials in report.paths:
            passed = sum(trial.passed for trial in trials)
            yield f"  {len(trials)}x, {passed} passed: {' > '.join(map(_short, path))}"
            why = next((str(change) for trial in trials for change in trial.changes), "")
            if why:
                yield f"      {why}"
            if id(trials[0]) in samples:
                yield f"      sample: {samples[id(trials[0])]}"
    if check.pairs:
        yield from _table(check)


def _table(check: LiveCheck) -> Iterator[str]:
    from ..live import Pairs

    first, second = (variant.name for variant in check.variants)
    rows = [(str(path), pairs) for path, pairs in check.pairs.items()]
    total = sum((pairs for _, pairs in rows), Pairs())
    width = max(len(name) for name, _ in (*rows, ("total", total)))
    yield f"{first} -> {second}"
    yield f"{'':{width}}  fixed  broken  both  neither"
    for name, pairs in [*rows, ("total", total)]:
        yield f"{name:{width}}  {pairs.fixed:5}  {pairs.broken:6}  {pairs.both:4}  {pairs.neither:7}"
    yield f"exact McNemar p = {total.p:.4f}"


def _write_samples(check: LiveCheck, folder: Path) -> dict[int, Path]:
    """One run of each path, under the names that make them alternatives; by the identity of their trials."""
    from ..live import alternatives

    samples: dict[int, Path] = {}
    numbers: dict[Path, int] = {}
    for report in check.reports:
        for _, trials in report.paths:
            number = numbers.get(report.path, 1 + len(alternatives(report.path))) + 1
            numbers[report.path] = number
            path = folder / f"{report.path.stem}~{number}.trace"
            write(path, trials[0].trace.dump())
            samples[id(trials[0])] = path
    return samples


def _as_dict(check: LiveCheck, samples: dict[int, Path]) -> dict[str, Any]:
    return {
        "cases": [
            {
                "case": str(report.path),
                "variant": report.variant.name,
                "planned": report.planned,
                "runs": len(report.trials),
                "passed": report.passed,
                "interval": [round(bound, 4) for bound in report.interval],
                "ok": report.ok,
                "paths": [
                    {
                        "path": path,
                        "runs": len(trials),
                        "passed": sum(trial.passed for trial in trials),
                        "why": next((str(change) for trial in trials for change in trial.changes), None),
                        "sample": trials[0].trace.body,
                        "file": str(samples[id(trials[0])]) if samples else None,
                    }
                    for path, trials in report.paths
                ],
            }
            for report in check.reports
        ],
        "pairs": {str(path): {**asdict(pairs), "p": pairs.p} for path, pairs in check.pairs.items()},
    }


def _short(action: str) -> str:
    action = " ".join(action.split())
    return action if len(action) <= 48 else f"{action[:44]} ..."
