"""Trace, event log or recorded plan -> the runs in it, each with what its steps cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import AuthorError, no_such_file
from .files import common_folder
from .match import FACTS, Change, compare
from .matching import Matching
from .models.base import Usage
from .plan.state import PlanState
from .recover import Log, LoggedRun
from .trace import Trace

# What a run says of itself: only where two runs both do can they differ in it.
_FACTS = ("prompt_hash", *FACTS)
_SUFFIXES = (".trace", ".plan", ".jsonl")


@dataclass(frozen=True)
class Cost:
    """What one step took: tokens, and seconds of the model and of the tool."""

    usage: Usage
    model_seconds: float = 0.0
    tool_seconds: float = 0.0


@dataclass(frozen=True)
class Recorded:
    """A run that was recorded. `name` is its path, with `:N` behind that of a log of several runs and `:STAGE` behind
    that of a plan. `costs` are those of its steps; a trace alone knows of none, nor of the `model`."""

    name: str
    path: Path
    trace: Trace
    costs: tuple[Cost, ...] = ()
    model: str = ""
    message: str = ""


def is_log(path: Path) -> bool:
    """Whether a file is an event log. Raises AuthorError for what cannot be read."""
    if path.suffix in (".trace", ".plan"):
        return False
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise AuthorError(f"cannot be read: {error.strerror}", path=path) from None


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that are named, and the traces, plans and logs (`*.trace`, `*.plan`, `*.jsonl`) in the folders that
    are. Raises AuthorError for folders without any."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(each for suffix in _SUFFIXES for each in path.rglob(f"*{suffix}"))
            if not inside:
                raise AuthorError("no traces, plans or logs are here", path=path)
            found.update(dict.fromkeys(inside))
        else:
            found[path] = None
    return list(found)


def read_runs(name: str | Path) -> tuple[list[Recorded], list[str]]:
    """The runs of a file in the order in which they began, or only one of them with `LOG:N` or `PLAN:STAGE`; and what
    could not be read of the file. Raises AuthorError."""
    path = Path(name)
    file, colon, label = str(name).rpartition(":")
    if path.exists() or not colon or not Path(file).is_file():
        runs, notices = _runs(path)
        return [*runs.values()], notices
    runs, notices = _runs(Path(file))
    if label not in runs:
        raise AuthorError(f"there is no run {label}: this file holds {', '.join(runs)}", path=file)
    return [runs[label]], notices


def _runs(path: Path) -> tuple[dict[str, Recorded], list[str]]:
    """The runs of a file by what tells them apart: their numbers, or the stages of a plan."""
    if not path.exists():
        raise no_such_file(path)
    if path.suffix == ".plan":
        traces = PlanState.load(path).traces
        if not traces:
            raise AuthorError("this plan holds no traces yet", path=path)
        return {stage: Recorded(f"{path}:{stage}", path, trace) for stage, trace in traces.items()}, []
    if not is_log(path):
        return {"1": Recorded(str(path), path, Trace.load(path))}, []
    log = Log.load(path)
    several = len(log.runs) > 1
    numbered = ((str(number), run) for number, run in enumerate(log.runs, 1))
    return {n: _recorded(f"{path}:{n}" if several else str(path), path, run) for n, run in numbered}, log.notices


def read_run(name: str) -> Recorded:
    """The run of a trace, the last one of a log or plan. Raises AuthorError."""
    return read_runs(name)[0][-1]


def short_names(one: Recorded, other: Recorded) -> tuple[str, str]:
    """The names of two runs without the folders that they share."""
    common = len(common_folder([one.name, other.name]))
    return one.name[common:], other.name[common:]


def differences(one: Trace, other: Trace) -> list[Change]:
    """All that differs between two runs, whatever a `match:` key lets pass. What only one of them says of itself is no
    difference. Raises AuthorError for a `redact:` that cannot be read."""
    shared = {key for key in _FACTS if one.meta.get(key) is not None and other.meta.get(key) is not None}
    one, other = (_with_facts(trace, shared) for trace in (one, other))
    changes = compare(one, other, matching=Matching())
    if one.meta.get("prompt_hash") != other.meta.get("prompt_hash"):
        changes.insert(0, Change("prompt", 0, "what the prompts say before the question differs"))
    return changes


def _with_facts(trace: Trace, names: set[str]) -> Trace:
    meta = {key: value for key, value in trace.meta.items() if key not in _FACTS or key in names}
    return dataclasses.replace(trace, meta=meta)


def _recorded(name: str, path: Path, run: LoggedRun) -> Recorded:
    end = run.end or {}
    model, message = (str(facts.get(key) or "") for facts, key in ((run.start, "model"), (end, "message")))
    return Recorded(name, path, run.trace, tuple(map(_cost, run.steps)), model, message)


def _cost(step: Mapping[str, Any]) -> Cost:
    """Whoever wrote the log: what is no number is not known."""
    given = step.get("usage")
    counts = given if isinstance(given, Mapping) else {}
    usage = Usage(*(_number(counts.get(f"{key}_tokens"), int) for key in ("prompt", "completion", "cached")))
    return Cost(usage, *(_number(step.get(f"{key}_seconds"), float) or 0.0 for key in ("model", "tool")))


def _number(value: Any, kind: type) -> Any:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12
    return kind(value) if fits else None
