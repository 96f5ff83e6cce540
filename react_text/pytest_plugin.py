"""`*.trace` and `*.plan` files -> pytest items, `traces/capital.trace::replay`: the same checks as `react-text test`.

Nothing of the engine is imported before there is a trace to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .entries import Verdict
    from .golden import Case, Outcome
    from .library import Library
    from .plan.replay import PlanCase, PlanOutcome

_LIBRARY: pytest.StashKey[Library] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("react-text", "traces as tests")
    group.addoption("--react-tools", action="store_true", help="check goldens against the real tools as well")
    group.addoption(
        "--react-update", action="store_true", help="write what has changed to NAME.trace.new, for `react-text review`"
    )
    group.addoption(
        "--react-report", type=Path, metavar="FILE", help="write a page with all traces and what they came to"
    )
    group.addoption(
        "--react-rates", type=Path, metavar="FILE", help="pass rates for the page, from `react-text live --json`"
    )
    parser.addini("react_text_paths", "folders whose *.trace files are tests (traces)", type="paths")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "react_text: a golden trace, collected by react-text")
    if config.getoption("--react-update"):
        from .errors import AuthorError
        from .review import refuse_in_ci

        try:
            refuse_in_ci("--react-update")
        except AuthorError as error:
            raise pytest.UsageError(str(error)) from None
    if config.getoption("--react-report") and not hasattr(config, "workerinput"):  # of xdist: its reports come here
        config.pluginmanager.register(Page(config), "react_text_page")


class Page:
    """Collects what became of each trace, wherever it was checked, and writes the page in the end."""

    def __init__(self, config: pytest.Config) -> None:
        from .entries import read_rates
        from .errors import AuthorError
        from .view import check_page

        self.config = config
        self.path: Path = config.getoption("--react-report")
        self.told = str(self.path)
        self.found: dict[str, dict[str, Verdict]] = {}
        rates = config.getoption("--react-rates")
        try:
            check_page(self.path)
            self.rates = read_rates(rates) if rates else {}
        except AuthorError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one item; those that only passed before and after the call say nothing."""
        from .entries import Verdict

        name, _, check = report.nodeid.rpartition("::")
        if name.endswith((".trace", ".plan")) and (report.when == "call" or not report.passed):
            outcome = "error" if report.failed and report.when != "call" else report.outcome
            lines = tuple(report.longreprtext.split("\n")) if report.longrepr else ()
            self.found.setdefault(name, {})[check] = Verdict(check, outcome, lines)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        from .entries import checked
        from .errors import AuthorError
        from .view import page, write_page

        listed = [
            entry
            for name, verdicts in sorted(self.found.items())
            for entry in checked(name, self.config.rootpath / name, [*verdicts.values()], self.rates)
        ]
        try:
            write_page(self.path, page(listed, title="goldens"))
        except AuthorError as error:
            self.told = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"react-text: {self.told}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TraceFile | None:
    if file_path.suffix not in (".trace", ".plan"):
        return None
    folders = parent.config.getini("react_text_paths") or [parent.config.rootpath / "traces"]
    named = parent.session.isinitpath(file_path) or any(file_path.is_relative_to(folder) for folder in folders)
    return TraceFile.from_parent(parent, path=file_path) if named else None


class TraceFile(pytest.File):
    """One golden. A file that cannot be read makes items as well: they fail, where skipping it would pass."""

    def collect(self) -> Iterator[TraceItem]:
        checks = ["replay", "tools"] if self.config.getoption("--react-tools") else ["replay"]
        if b"\ntest:" in self.path.read_bytes() and not self._is_test():  # else it is not worth parsing here
            return
        for check in checks:
            yield TraceItem.from_parent(self, name=check)

    def _is_test(self) -> bool:
        from .errors import AuthorError

        try:
            return case_of(self).is_test
        except AuthorError:
            return True


class TraceItem(pytest.Item):
    """One check of one golden."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_marker("react_text")

    def setup(self) -> None:
        """Read trace and prompt: what cannot be read is an error, not a failed test."""
        from .errors import AuthorError
        from .files import from_here

        try:
            self.case = case_of(self)
            _ = self.case.is_test, self.case.prompt
        except AuthorError as error:
            raise pytest.fail.Exception(from_here(str(error)), pytrace=False) from None

    def runtest(self) -> None:
        from .review import write_pending

        outcome = self.case.check(self.name)
        if outcome.ok:
            return
        option = self.config.getoption
        # The check of the tools sees all that the replay sees: where both run, its file is the one to review.
        if option("--react-update") and (self.name == "tools" or not option("--react-tools")):
            write_pending(outcome)
        raise TraceChanged(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from .diff import report
        from .errors import AuthorError
        from .files import from_here

        if isinstance(excinfo.value, TraceChanged):
            outcome = excinfo.value.outcome
            return "\n".join(report(outcome, whole=True))
        if isinstance(excinfo.value, AuthorError):
            return from_here(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.name} of {self.path.name}"


class TraceChanged(AssertionError):
    """The run differs from its golden."""

    def __init__(self, outcome: Outcome | PlanOutcome) -> None:
        super().__init__(f"{len(outcome.changes)} changes")
        self.outcome = outcome


def case_of(node: pytest.Item | pytest.File) -> Case | PlanCase:
    """The golden behind a node; prompts and tools are loaded once for the whole session."""
    from .golden import open_case
    from .library import Library

    library = node.config.stash.setdefault(_LIBRARY, Library())
    try:
        shown = node.path.relative_to(Path.cwd())
    except ValueError:
        shown = node.path
    return open_case(shown, library)
