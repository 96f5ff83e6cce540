"""Runs -> one page of HTML that holds everything: no server, no script needed to read it, nothing asked of any network.

The page answers the questions of whoever looks at a run: how it ended, what it did step by step, what each step cost,
where the numbers of its answer came from, and in what it differs from another run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .charts import Chart, chart
from .diff import story
from .entries import Entry, Rate
from .errors import AuthorError
from .files import common_folder, write
from .grounding import Grounding, ground
from .pieces import Block, Piece, StepView, cut, question, shown, sources, steps
from .runs import Cost, Recorded, differences, short_names
from .sidebyside import Pair, side_by_side
from .templates import BUILT_IN, page_environment
from .version import __version__

_OURS = '<meta name="generator" content="react-text'
_LONGEST_OPEN = 20_000  # characters of a step that is not folded at first: a browser takes its time to lay out more
_SIGNS = {"passed": "✓", "answered": "✓", "failed": "✗", "unanswered": "✗", "error": "!", "skipped": "–"}


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other."""

    names: tuple[str, str]
    story: str
    pairs: Sequence[Pair]

    @classmethod
    def of(cls, one: Recorded, other: Recorded) -> Comparison:
        """Raises AuthorError."""
        changes = differences(one.trace, other.trace)
        first, second = short_names(one, other)
        names = shown(first), shown(second)
        return cls(
            names, shown(story(changes)) if changes else "", side_by_side(one.trace, other.trace, changes, names)
        )


@dataclass
class View:
    """What the template shows of one entry."""

    id: str
    entry: Entry
    name: str
    folder: str
    facts: Sequence[str] = ()
    question: Block | None = None
    steps: Sequence[StepView] = ()
    costs: Sequence[str] = ()
    answer: Sequence[Piece] = ()
    chart: Chart | None = None
    ending: str = ""
    error: str = ""
    notices: Sequence[str] = ()
    rates: Sequence[str] = ()
    reports: Sequence[tuple[str, Sequence[tuple[str, str]]]] = field(default_factory=list)

    @property
    def rates_in_short(self) -> list[str]:
        """The pass rates as the list has them."""
        return [f"{rate.passed} of {rate.runs} passed{_interval(rate)}" for rate in self.entry.rates]

    @property
    def outcome(self) -> str:
        return "error" if self.error else self.entry.outcome

    @property
    def sign(self) -> str:
        return _SIGNS[self.outcome]

    @property
    def good(self) -> bool:
        return self.entry.good and not self.error

    def is_long(self, step: StepView) -> bool:
        """Whether a step is folded at first."""
        return sum(step.characters) > _LONGEST_OPEN


def page(entries: Sequence[Entry], comparison: Comparison | None = None, title: str = "traces") -> str:
    """The page, as text without lone surrogates."""
    css, script = ((BUILT_IN / "view" / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    common = common_folder([entry.name for entry in entries])
    views = [_view(f"r{number}", entry, common) for number, entry in enumerate(entries, 1)]
    template = page_environment().get_template("page.j2")
    return template.render(
        title=shown(title), views=views, comparison=comparison, css=css, script=script, version=__version__,
        policy=f"default-src 'none'; img-src data:; style-src {_digest(css)}; script-src {_digest(script)}",
        bad=sum(not view.good for view in views),
    )  # fmt: skip


def check_page(path: Path) -> None:
    """Raises AuthorError where another file than such a page would be overwritten."""
    try:
        if (path.is_file() or path.is_dir()) and _OURS not in path.read_bytes()[:2000].decode("utf-8", "replace"):
            raise AuthorError("is not a page of react-text, and would be overwritten", path=path)
    except OSError as error:
        raise AuthorError(f"cannot be overwritten: {error.strerror}", path=path) from None


def write_page(path: Path, html: str) -> None:
    """Write a page. Raises AuthorError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, html.encode("utf-8"))
    except OSError as error:
        raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None


def _view(id: str, entry: Entry, common: str) -> View:
    folder, _, name = entry.name[len(common) :].rpartition("/")
    view = View(id, entry, shown(name), shown(folder), error=shown(entry.error), notices=[*map(shown, entry.notices)])
    view.rates = [shown(text) for rate in entry.rates for text in _rate(rate)]
    view.reports = [(v.check, [_report_line(line) for line in v.report]) for v in entry.verdicts if v.report]
    if entry.run is not None:
        try:
            _fill(view, entry.run)
        except AuthorError as error:  # a body that its front matter does not describe
            view.error = shown(str(error))
    return view


def _fill(view: View, run: Recorded) -> None:
    trace, answer = run.trace, run.trace.answer
    grounding = ground(trace) if answer is not None else Grounding(None, ())
    answer, found = grounding.answer or answer, sources(grounding, view.id)
    view.steps = list(steps(trace, found, view.id))
    view.question = question(trace, found)
    view.answer = cut(answer, found.answer) if answer is not None else []
    view.costs = [*map(_cost, run.costs), *([""] * len(view.steps))]
    view.chart = chart(view.steps, run.costs)
    view.ending = shown(str(trace.meta.get("stop_reason") or ""))
    total = [cost.usage for cost in run.costs]
    tokens = sum((usage.prompt_tokens or 0) + (usage.completion_tokens or 0) for usage in total)
    seconds = sum(cost.model_seconds + cost.tool_seconds for cost in run.costs)
    facts = [
        str(trace.meta.get("prompt") or ""), run.model, _count(len(view.steps), "step"),
        f"{tokens:,} tokens" if tokens else f"{len(trace.body):,} characters", _seconds(seconds), run.message,
    ]  # fmt: skip
    view.facts = [shown(fact) for fact in facts if fact]


def _cost(cost: Cost) -> str:
    """What a step took, in a few words."""
    usage, seconds = cost.usage, cost.model_seconds + cost.tool_seconds
    parts = []
    if usage.prompt_tokens is not None:
        cached = f", {100 * usage.cached_tokens // max(usage.prompt_tokens, 1)} % cached" if usage.cached_tokens else ""
        parts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens or 0:,} tokens{cached}")
    return " · ".join(filter(None, [*parts, _seconds(seconds)]))


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.05 else ""


def _rate(rate: Rate) -> Iterator[str]:
    """A pass rate and the ways to it."""
    yield f"{rate.variant}: {rate.passed} of {rate.runs} passed{_interval(rate)}"
    for way in rate.ways:
        yield f"  {way.runs}x, {way.passed} passed: {' > '.join(way.actions)}"


def _interval(rate: Rate) -> str:
    low, high = rate.interval
    return f", 95 % interval {100 * low:.0f} to {100 * high:.0f} %" if rate.runs else ""


def _report_line(line: str) -> tuple[str, str]:
    """A line of a report and what it is: removed, added, a heading, or none of these."""
    kinds = {"-": "old", "+": "new", "@": "head", "^": "head"}
    return shown(line), kinds.get(line[4:5], "") if line.startswith("    ") else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _digest(text: str) -> str:
    """The only style or script that the page's policy lets a browser take."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
