"""`lint`: traces and prompts against the table of rules."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..display import printable
from ..errors import AuthorError
from .common import AUTHOR, DONE, NO_ANSWER, Register

if TYPE_CHECKING:
    from ..lint import Finding

_FOLDERS = ("prompts", "traces")
_SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}


def register(command: Register) -> None:
    """Declare the command."""
    lint = command("lint", run_lint, "check traces and prompts: form, tools, sources of numbers, what prompts teach")
    lint.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files, folders; else prompts and traces")
    lint.add_argument("--select", action="append", default=[], metavar="CODE", help="only these rules (RT4: all RT4xx)")
    lint.add_argument("--ignore", action="append", default=[], metavar="CODE", help="not these rules")
    lint.add_argument("--all", action="store_true", help="also what the files' own `lint:` keys ignore or expect")
    lint.add_argument("--strict", action="store_true", help="warnings count as errors")
    lint.add_argument("--format", choices=("text", "json", "github"), default="text", help="how findings are printed")


def run_lint(arguments: argparse.Namespace) -> int:
    """`react-text lint [PATH...]`: exit code 1 for errors, 2 for files that cannot be linted."""
    from ..lint import lint

    paths = arguments.paths or [Path(folder) for folder in _FOLDERS if Path(folder).is_dir()] or [Path(_FOLDERS[0])]
    report = lint(paths, select=_codes(arguments.select), ignore=_codes(arguments.ignore), suppress=not arguments.all)
    if arguments.format == "json":
        print(json.dumps([_as_dict(finding) for finding in report.findings], ensure_ascii=False, indent=2))
    else:
        for finding in report.findings:
            print(_github(finding) if arguments.format == "github" else _text(finding))
    sys.stdout.flush()
    for error in report.unusable:
        print(error, file=sys.stderr)
    if not report.files:
        raise AuthorError("no traces or prompts here", path=paths[0])
    counts = {severity: report.count(severity) for severity in _SEVERITIES}
    figures = [_plural(number, _SEVERITIES[severity]) for severity, number in counts.items() if number]
    figures += [f"{len(report.unusable)} cannot be linted"] if report.unusable else []
    print(f"# {_plural(report.files, 'file')}: {', '.join(figures) or 'nothing found'}", file=sys.stderr)
    if report.unusable:
        return AUTHOR
    return NO_ANSWER if counts["error"] or (arguments.strict and counts["warning"]) else DONE


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _text(finding: Finding) -> str:
    return f"{printable(str(finding))}\n    help: {finding.rule.help}"


def _codes(given: list[str]) -> list[str]:
    return [code.strip() for codes in given for code in codes.split(",") if code.strip()]


def _as_dict(finding: Finding) -> dict[str, object]:
    return {
        "path": str(finding.path),
        "line": finding.line,
        "column": finding.column,
        "code": finding.rule.code,
        "severity": finding.rule.severity,
        "message": finding.message,
        "help": finding.rule.help,
    }


def _github(finding: Finding) -> str:
    """A workflow command, which GitHub shows at the line of a pull request."""
    kind = "notice" if finding.rule.severity == "info" else finding.rule.severity
    file = _escaped(str(finding.path)).replace(":", "%3A").replace(",", "%2C")
    place = f"file={file},line={finding.line},col={finding.column},title={finding.rule.code}"
    return f"::{kind} {place}::{_escaped(finding.message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
