"""Goldens + a real model -> how often it still gets there, by which paths, and how sure that is."""

from __future__ import annotations

import math
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .agent import Agent
from .errors import SERVER_FAILED, AuthorError, ServerError
from .files import collect
from .golden import Case
from .library import Library
from .match import Change, check_expectations, compare
from .matching import Matching
from .models.base import Model
from .stats import mcnemar, wilson
from .tools import Toolbox
from .trace import Trace, is_finish

_ALTERNATIVE = re.compile(r"~[0-9]+\Z")
# A run is judged by what it came to, not by how its prompt and its front matter are worded.
_IRRELEVANT = ("prompt", "format")


@dataclass(frozen=True)
class Variant:
    """What is tried: a model, and a prompt file in place of each golden's own."""

    name: str
    model: Model
    prompt: Path | None = None


@dataclass(frozen=True)
class Trial:
    """One run. `changes` are those from the golden, or the alternative, that it is closest to; none when it passed."""

    trace: Trace
    changes: tuple[Change, ...]

    @property
    def passed(self) -> bool:
        return not self.changes

    @property
    def path(self) -> tuple[str, ...]:
        """Its actions. How the answer is worded is no part of it; an end without an answer is."""
        steps = self.trace.steps
        actions = ["finish" if is_finish(s) else f"{s.tool}[{s.arguments}]" if s.tool else "(none)" for s in steps]
        stop_reason = self.trace.meta.get("stop_reason")
        return tuple(actions if stop_reason == "success" else [*actions, f"({stop_reason})"])


@dataclass
class Report:
    """The runs of one case with one variant, by number."""

    path: Path
    variant: Variant
    planned: int
    minimum: float
    trials: dict[int, Trial] = field(default_factory=dict)

    @property
    def passed(self) -> int:
        return sum(trial.passed for trial in self.trials.values())

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 percent Wilson interval of the pass rate."""
        return wilson(self.passed, len(self.trials))

    @property
    def ok(self) -> bool | None:
        """Whether the case passes; None while the runs that are still to come could decide either way."""
        needed = math.ceil(self.minimum * self.planned - 1e-9)
        if self.passed >= needed:
            return True
        return False if self.passed + self.planned - len(self.trials) < needed else None

    @property
    def paths(self) -> list[tuple[tuple[str, ...], list[Trial]]]:
        """The distinct paths, the most frequent first, each with its runs, those that passed first."""
        groups: dict[tuple[str, ...], list[Trial]] = {}
        for _, trial in sorted(self.trials.items()):
            groups.setdefault(trial.path, []).append(trial)
        for trials in groups.values():
            trials.sort(key=lambda trial: not trial.passed)
        return sorted(groups.items(), key=lambda group: -len(group[1]))


@dataclass(frozen=True)
class Pairs:
    """The same runs with two variants: what the second one fixed and broke."""

    fixed: int = 0
    broken: int = 0
    both: int = 0
    neither: int = 0

    @classmethod
    def of(cls, first: Report, second: Report) -> Pairs:
        """The runs that both have."""
        runs = first.trials.keys() & second.trials.keys()
        results = [(first.trials[run].passed, second.trials[run].passed) for run in runs]
        counts = [results.count(pair) for pair in ((False, True), (True, False), (True, True), (False, False))]
        return cls(*counts)

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(
            self.fixed + other.fixed,
            self.broken + other.broken,
            self.both + other.both,
            self.neither + other.neither,
        )

    @property
    def p(self) -> float:
        """The exact p-value of McNemar's test."""
        return mcnemar(self.fixed, self.broken)


class LiveCheck:
    """Goldens, tried with one variant or with two that are compared. Raises AuthorError before the first run.

    `runs` are made of each case, `jobs` at the same time; of a single variant no more than its verdict takes. Nothing
    is cached: every run asks its model. `settings` are laid over those of each golden; tools marked `unsafe` are
    refused unless `unsafe` is set.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        variants: Sequence[Variant],
        *,
        runs: int = 5,
        minimum: float = 0.8,
        jobs: int = 1,
        unsafe: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.variants, self.runs, self.minimum, self.jobs = variants, runs, minimum, jobs
        self.reports: list[Report] = []
        self._starters: list[_Starter] = []
        self._lock = threading.Lock()
        self._over = False
        library = Library()
        for path in find_cases(paths, library):
            goldens = [Case(each, library) for each in (path, *alternatives(path))]
            for variant in variants:
                self.reports.append(Report(path, variant, runs, minimum))
                self._starters.append(_Starter(goldens, variant, settings or {}, unsafe=unsafe))

    @property
    def pairs(self) -> dict[Path, Pairs]:
        """For two variants, each case's pairs."""
        found = zip(self.reports[::2], self.reports[1::2], strict=True) if len(self.variants) == 2 else ()
        return {first.path: Pairs.of(first, second) for first, second in found}

    @property
    def judged(self) -> list[Report]:
        """The reports that decide: of two variants those of the second, the one that is to replace the first."""
        return self.reports[len(self.variants) - 1 :: len(self.variants)]

    def run(self, on_trial: Callable[[Report, Trial], None] | None = None) -> None:
        """Make the runs. `reports` hold what there is at any time, also after Ctrl-C or a ServerError."""
        count = len(self.variants)
        tasks = (
            (number, run)
            for first in range(0, len(self.reports), count)
            for run in range(self.runs)
            for number in range(first, first + count)
        )
        try:
            for report, trial in self._results(tasks):
                if on_trial is not None:
                    on_trial(report, trial)
        finally:
            with self._lock:
                self._over = True

    def _results(self, tasks: Iterator[tuple[int, int]]) -> Iterator[tuple[Report, Trial]]:
        """The trials as they come, from daemon threads: Ctrl-C does not wait for a server that is still writing."""
        done: queue.SimpleQueue[tuple[Report, Trial] | BaseException | None] = queue.SimpleQueue()

        def work() -> None:
            try:
                while (task := self._next(tasks)) is not None:
                    number, run = task
                    trial = self._starters[number].trial(run)
                    with self._lock:  # before the next task is chosen, and not while a report is printed
                        if self._over:
                            return
                        self.reports[number].trials[run] = trial
                    done.put((self.reports[number], trial))
                done.put(None)
            except BaseException as error:  # for the thread that waits
                done.put(error)

        for _ in range(self.jobs):
            threading.Thread(target=work, daemon=True, name="react-text live").start()
        working = self.jobs
        while working:
            item = done.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                working -= 1
            else:
                yield item

    def _next(self, tasks: Iterator[tuple[int, int]]) -> tuple[int, int] | None:
        with self._lock:
            return None if self._over else next((task for task in tasks if self._wanted(task[0])), None)

    def _wanted(self, number: int) -> bool:
        """Whether a further run can change a verdict. Pairs need all runs, and so do rates that nothing depends on."""
        return len(self.variants) > 1 or self.minimum == 0 or self.reports[number].ok is None


class _Starter:
    """Makes the runs of one case with one variant."""

    def __init__(self, goldens: Sequence[Case], variant: Variant, settings: Mapping[str, Any], *, unsafe: bool) -> None:
        self.goldens = goldens
        first = goldens[0]
        self.given = {**(first.golden.meta.get("settings") or {}), **settings}
        self.inputs = first.golden.meta.get("inputs") or {}
        self.matchings = [case.matching(_tools(case), default="answer") for case in goldens]
        try:
            own = Agent(first.prompt, _tools(first), variant.model, **self.given)
            self.agent = own
            if variant.prompt is not None:
                prompt = first.library.prompt(variant.prompt)
                self.agent = Agent(prompt, first.library.tools(prompt, "tools"), variant.model, **self.given)
            self.question = first.question(own, self.inputs)
            opened = self.agent.steps(self.question, variables=self.inputs)
        except AuthorError as error:
            raise error if error.path else first.error("settings", error.message) from None
        refused = [tool.name for tool in opened.gateway.allowed.values() if tool.options.unsafe]
        if refused and not unsafe:
            raise AuthorError(
                f"{refused[0]} is marked unsafe and would really be run (--unsafe allows it)", path=first.path
            )

    def trial(self, number: int) -> Trial:
        """Run `number`. Raises ServerError when the model server fails."""
        run = self._agent(number).steps(self.question, variables=self.inputs)
        for _ in run:
            pass
        if run.stop_reason in SERVER_FAILED:
            raise ServerError(run.message)
        trace, last = run.trace, len(run.steps)
        longest = f"{run.prompt.head}{trace.before(last)}{run.labels.cue(run.labels.thought, last)}"
        found = [
            self._changes(case.golden, matching, trace, len(longest))
            for case, matching in zip(self.goldens, self.matchings, strict=True)
        ]
        return Trial(trace, min(found, key=len))

    def _agent(self, number: int) -> Agent:
        """The agent of a run: a seed counts up, because the same seed would give the same run again."""
        seed = self.agent.settings.options.seed
        if seed is None:
            return self.agent
        return Agent(self.agent.prompt, self.agent.tools, self.agent.model, **{**self.given, "seed": seed + number})

    def _changes(self, golden: Trace, matching: Matching, trace: Trace, longest_prompt: int) -> tuple[Change, ...]:
        changes = [c for c in compare(golden, trace, matching=matching) if c.category not in _IRRELEVANT]
        expect = golden.meta.get("expect")
        return (*changes, *check_expectations(trace, expect, longest_prompt=longest_prompt))


def find_cases(paths: Iterable[str | Path], library: Library) -> list[Path]:
    """The goldens among trace files and folders: alternatives belong to their golden, and of a folder's files those
    that are only examples are left out. Raises AuthorError."""
    paths = [Path(path) for path in paths]
    found = []
    for path in dict.fromkeys(_base(path) for path in collect(paths)):
        case = Case(path, library)
        if path in paths or (case.is_test and case.golden.meta.get("prompt")):
            found.append(path)
    if not found:
        raise AuthorError("no golden is here", path=paths[0] if paths else None)
    return found


def alternatives(path: Path) -> list[Path]:
    """`NAME~2.trace` and so on, beside `NAME.trace`: other ways to get there that are as good."""
    return sorted(each for each in path.parent.glob(f"{path.stem}~*.trace") if _base(each) == path)


def _base(path: Path) -> Path:
    """The golden that an alternative belongs to, any other file itself."""
    base = path.with_name(_ALTERNATIVE.sub("", path.stem) + path.suffix)
    return base if base.is_file() else path


def _tools(case: Case) -> Toolbox:
    return case.library.tools(case.prompt, "tools")
