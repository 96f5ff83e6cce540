"""Traces and prompts -> what breaks a rule of `rules`, with its place: the runner behind `react-text lint`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import AuthorError, did_you_mean, no_such_file
from .context import File, Found, Library, TraceFile
from .rules import EXPECTED, RULES, Rule


@dataclass(frozen=True)
class Finding:
    """A broken rule and its place."""

    path: Path
    line: int
    column: int
    rule: Rule
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.rule.code} {self.message}"


@dataclass(frozen=True)
class Report:
    """What linting came to: the findings, the files that could not be linted, the number of all files."""

    findings: tuple[Finding, ...]
    unusable: tuple[AuthorError, ...]
    files: int

    def count(self, severity: str) -> int:
        return sum(finding.rule.severity == severity for finding in self.findings)


def lint(
    paths: Iterable[str | Path], *, select: Sequence[str] = (), ignore: Sequence[str] = (), suppress: bool = True
) -> Report:
    """Apply the rules to traces, prompts and folders of them.

    `select` and `ignore` are codes or their beginnings; without `suppress` the `lint:` keys of the files do not count.
    Raises AuthorError for a path or a code that does not exist.
    """
    _check_codes([*select, *ignore])
    rules = [rule for rule in RULES if _matches(rule, select or ("",)) and not _matches(rule, ignore)]
    targets = find_files(paths)
    library = Library(targets)
    found: list[Finding] = []
    unusable: list[AuthorError] = []
    for path in targets:
        try:
            file = library.file(path)
            findings = list(_apply(file, rules))
            found += _unsuppressed(file, findings, rules, library) if suppress else findings
        except AuthorError as error:
            unusable.append(error)
    return Report(tuple(sorted(found, key=_place)), tuple(unusable), len(targets))


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """The traces and prompts that are named, and those in the folders that are; no partials (`_x.j2`) and no wording
    (`observe.j2`), which are looked at with the prompts that use them. Raises AuthorError."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [*path.rglob("*.trace"), *path.rglob("*.j2")]
            found += sorted(p for p in inside if not p.name.startswith("_") and p.name != "observe.j2")
        elif not path.exists():
            raise no_such_file(path)
        elif path.suffix not in (".trace", ".j2"):
            raise AuthorError("lint reads traces (.trace) and prompts (.j2)", path=path)
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _apply(file: File, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        check = rule.trace if isinstance(file, TraceFile) else rule.prompt
        if check is not None and (rule.unloaded or file.loaded):
            for found in check(file):
                yield _finding(file, rule, found)


def _finding(file: File, rule: Rule, found: Found) -> Finding:
    return Finding(found.path or file.path, found.line, found.column, rule, found.message)


def _unsuppressed(
    file: File, findings: Sequence[Finding], rules: Sequence[Rule], library: Library
) -> Iterator[Finding]:
    """What is left when the files' `lint:` keys are heeded, and what is missing of what they promise."""
    expected = file.suppression.get("expect", ())
    for finding in findings:
        # What a prompt finds in one of its examples, the example may ignore as well.
        asked = [file, library.trace(finding.path)] if finding.path.suffix == ".trace" else [file]
        ignored = [code for each in asked for code in each.suppression.get("ignore", ())]
        if not _matches(finding.rule, [*ignored, *expected]):
            yield finding
    if EXPECTED in rules:
        for code in expected:
            if any(_matches(rule, [code]) for rule in rules) and not any(_matches(f.rule, [code]) for f in findings):
                yield _finding(file, EXPECTED, file.at_key("lint", f"{code} is expected here, and nothing was found"))


def _matches(rule: Rule, codes: Iterable[str]) -> bool:
    return any(rule.code.startswith(code) for code in codes)


def _check_codes(codes: Iterable[str]) -> None:
    for code in codes:
        if not any(_matches(rule, [code]) for rule in RULES):
            raise AuthorError(f"no rule begins with {code!r}{did_you_mean(code, [rule.code for rule in RULES])}")


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return str(finding.path), finding.line, finding.column, finding.rule.code


__all__ = ["RULES", "Finding", "Report", "Rule", "find_files", "lint"]
