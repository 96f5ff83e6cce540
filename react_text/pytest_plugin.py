"""`*.trace` files -> pytest items, `traces/capital.trace::replay`: the same checks as `react-text test`.

Nothing of the engine is imported before there is a trace to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .golden import Case, Library, Outcome

_LIBRARY: pytest.StashKey[Library] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("react-text", "traces as tests")
    group.addoption("--react-tools", action="store_true", help="check goldens against the real tools as well")
    group.addoption(
        "--react-update", action="store_true", help="write what has changed to NAME.trace.new, for `react-text review`"
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


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TraceFile | None:
    if file_path.suffix != ".trace":
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
        self.case = case_of(self)
        _ = self.case.is_test, self.case.prompt

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
            return "\n".join(report(excinfo.value.outcome, whole=True))
        if isinstance(excinfo.value, AuthorError):
            return from_here(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.name} of {self.path.name}"


class TraceChanged(AssertionError):
    """The run differs from its golden."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{len(outcome.changes)} changes")
        self.outcome = outcome


def case_of(node: pytest.Item | pytest.File) -> Case:
    """The golden behind a node; prompts and tools are loaded once for the whole session."""
    from .golden import Case, Library

    library = node.config.stash.setdefault(_LIBRARY, Library())
    try:
        shown = node.path.relative_to(Path.cwd())
    except ValueError:
        shown = node.path
    return Case(shown, library)
