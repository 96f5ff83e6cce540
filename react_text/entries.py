"""Paths -> what a page lists: the runs in them, with what the checks and the pass rates say of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .diff import report
from .errors import AuthorError
from .files import from_here
from .frontmatter import read_text
from .golden import open_case
from .library import Library
from .runs import Recorded, find_files, read_runs
from .stats import wilson


@dataclass(frozen=True)
class Verdict:
    """What a check came to: `passed`, `failed`, `error` or `skipped`; `report` is what it had to say, line by line."""

    check: str
    outcome: str
    report: tuple[str, ...] = ()


@dataclass(frozen=True)
class Way:
    """One way to an answer, how many runs went it, and how many of them passed."""

    actions: tuple[str, ...]
    runs: int
    passed: int


@dataclass(frozen=True)
class Rate:
    """How many runs of a golden with a real model passed. `variant` is the model or prompt that was tried, `ways` what
    its runs did."""

    variant: str
    passed: int
    runs: int
    ways: tuple[Way, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 percent Wilson interval of the rate."""
        return wilson(self.passed, self.runs)


Rates = Mapping[str, Sequence[Rate]]
"""The rates of each golden, by its resolved path."""


@dataclass
class Entry:
    """One run on a page. `run` is None where the file could not be read: `error` says why; `notices` what of a log."""

    name: str
    run: Recorded | None = None
    error: str = ""
    notices: Sequence[str] = ()
    verdicts: Sequence[Verdict] = ()
    rates: Sequence[Rate] = ()

    @property
    def outcome(self) -> str:
        """The worst that a check has said, else how the run ended: `passed`, `failed`, `error`, `skipped`; `answered`,
        `unanswered`."""
        found = [verdict.outcome for verdict in self.verdicts]
        if self.run is None or "error" in found:
            return "error"
        worst = next((word for word in ("failed", "passed", "skipped") if word in found), "")
        return worst or ("unanswered" if self.run.trace.answer is None else "answered")

    @property
    def good(self) -> bool:
        return self.outcome in ("passed", "answered", "skipped")


def entries(paths: Iterable[str | Path], *, check: bool = False, rates: Rates | None = None) -> list[Entry]:
    """The runs in files and folders. A file that cannot be read is an entry as well, but for a file of a folder that
    holds no runs at all. Goldens in folders are replayed if `check` is set. Raises AuthorError for a path that is not
    there."""
    paths, library, found = [Path(path) for path in paths], Library(), []
    for path in find_files(paths):
        try:
            runs, notices = read_runs(path)
        except AuthorError as error:
            if path in paths or path.suffix != ".jsonl":
                found.append(Entry(str(path), error=from_here(str(error))))
            continue
        verdicts = replayed(path, library) if check and path not in paths and path.suffix != ".jsonl" else []
        own = (rates or {}).get(str(path.resolve()), ())
        found += (Entry(run.name, run, notices=notices, verdicts=verdicts, rates=own) for run in runs)
    return found


def checked(name: str, path: Path, verdicts: Sequence[Verdict], rates: Rates) -> list[Entry]:
    """A golden with what its checks have come to; a plan has an entry for each of its stages."""
    try:
        runs, _ = read_runs(path)
    except AuthorError as error:
        return [Entry(name, error=from_here(str(error)), verdicts=verdicts)]
    own = rates.get(str(path.resolve()), ())
    return [Entry(run.name.replace(str(path), name), run, verdicts=verdicts, rates=own) for run in runs]


def replayed(path: Path, library: Library) -> list[Verdict]:
    """The verdict of `react-text test` on a golden, none for a trace that is only an example."""
    try:
        case = open_case(path, library)
        if not case.is_test:
            return []
        outcome = case.check("replay")
    except AuthorError as error:
        return [Verdict("replay", "error", (from_here(str(error)),))]
    if outcome.ok:
        return [Verdict("replay", "passed")]
    return [Verdict("replay", "failed", tuple(report(outcome, whole=True)))]


def read_rates(path: Path) -> Rates:
    """What `react-text live --json` has printed. Raises AuthorError."""
    found: dict[str, list[Rate]] = {}
    try:
        for case in json.loads(read_text(path))["cases"]:
            ways = tuple(Way(tuple(map(str, p["path"])), int(p["runs"]), int(p["passed"])) for p in case["paths"])
            rate = Rate(str(case["variant"]), *_counts(case), ways)
            found.setdefault(str(Path(str(case["case"])).resolve()), []).append(rate)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise AuthorError(f"this is not what `live --json` prints: {type(error).__name__} {error}", path=path) from None
    return found


def _counts(case: Mapping[str, Any]) -> tuple[int, int]:
    passed, runs = int(case["passed"]), int(case["runs"])
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} passed")
    return passed, runs
