"""`doctor`: what a model server does for a text ReAct loop, and what to do where it does not."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import AuthorError, ServerError
from .common import DONE, NO_ANSWER, Register

if TYPE_CHECKING:
    from ..models.http import HTTPModel


def register(command: Register) -> None:
    """Declare the command."""
    doctor = command("doctor", examine_server, "try what a model server does for a text ReAct loop")
    doctor.add_argument("--model", metavar="SPEC", help="URL or local[:FILE.gguf]; otherwise as for `run`")
    doctor.add_argument("--timeout", type=float, metavar="S", help="longest silence of the model server, in seconds")
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")


def examine_server(arguments: argparse.Namespace) -> int:
    """`react-text doctor`"""
    from ..display import printable
    from ..doctor import examine

    model = _server(arguments.model, arguments.timeout)
    checks = []
    for check in examine(model):
        checks.append(check)
        if not arguments.json:
            print(f"{check.verdict}  {check.name:<15} {printable(check.found)}", flush=True)
            if check.advice:
                print(f"{'':21} -> {check.advice}", flush=True)
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in ("pass", "warn", "fail")}
    if arguments.json:
        facts = {"url": model.url, "model": model.name, **counts, "checks": [dataclasses.asdict(c) for c in checks]}
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        print(f"# {model.url}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return NO_ANSWER if counts["fail"] else DONE


def _server(spec: str | None, timeout: float | None) -> HTTPModel:
    """The model to examine. Raises AuthorError for one without a server, ServerError when there is none."""
    from ..models import auto_model, open_model
    from ..models.http import HTTPModel
    from ..project import find_project

    project = find_project(Path())
    timeout = timeout or project.timeout
    spec = spec or os.environ.get("REACT_TEXT_MODEL") or project.model or "auto"
    if spec == "auto":
        try:
            model, _ = auto_model(None, timeout=timeout)
        except AuthorError:
            raise ServerError(
                "no model server answers at the usual localhost ports: start one or give --model"
            ) from None
    else:
        model = open_model(spec, timeout=timeout)
    if not isinstance(model, HTTPModel):
        raise AuthorError(f"{spec!r} has no server that could be examined: give --model URL")
    return model
