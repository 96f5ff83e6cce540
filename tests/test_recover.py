"""Logs -> traces: nothing that a run had completed is lost, whatever became of its process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Labels, Trace
from react_text.recover import Log, recover

from .test_cli import ROOT, environment, run
from .test_trace_format import WRITTEN, Recorder, look

__all__ = ["environment"]


def test_200_runs_killed_at_random_moments_lose_no_step(tmp_path: Path) -> None:
    kills = 200
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "tests.killed", tmp_path, str(kills)], cwd=ROOT, check=True, timeout=120)
    full = Trace.load(tmp_path / "full.trace")
    found: Counter[str] = Counter()
    for number in range(kills):
        out, log = tmp_path / f"{number}.out", tmp_path / f"{number}.jsonl"
        said = out.read_text().split() if out.exists() else []
        try:
            trace, notices = recover(log)
        except AuthorError:
            assert said == []
            found["not begun"] += 1
            continue
        steps = len(trace.steps)
        assert len(said) <= steps <= len(said) + 1
        assert trace.body == full.before(steps + 1)
        assert trace.steps == full.steps[:steps]
        finished = steps == len(full.steps)
        assert (trace.meta["stop_reason"], trace.meta.get("answer")) == (
            ("success", "read") if finished else ("interrupted", None)
        )
        found["finished" if finished else f"{steps:2} steps"] += 1
        found["half a line"] += bool(notices)
    print(f"\n{kills} kills, {time.monotonic() - started:.1f} s: {dict(sorted(found.items()))}")
    cut = sum(count for name, count in found.items() if name.endswith("steps"))
    assert cut > kills / 4, "too few runs were killed in the middle"


@pytest.mark.parametrize("written", WRITTEN)
def test_a_log_holds_the_whole_trace(written: str, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    result = Agent(None, [look], Recorder(WRITTEN[written]), max_steps=9).run("What is there?", log=log)
    trace, notices = recover(log)
    assert trace.dump() == result.trace.dump()
    assert notices == []


@pytest.mark.parametrize(
    "settings",
    [
        {"labels": "numbered"},
        {"labels": Labels(thought="思考", action="行动", observation="观察", question="问题")},
        {"max_steps": 1, "on_budget": "finish"},
        {"repeats": {"mode": "soft", "round": 5}, "lenient": True, "temperature": 0.5, "seed": 7},
        {"allow": [look]},
    ],
)
def test_settings_are_recovered(settings: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    turns = [" I look.\nAction: look[a]" if settings.get("max_steps") else " 看\n行动: look[a]\nAction: look[a]"]
    result = Agent(None, [look], Recorder([*turns]), **settings).run("What?", log=log)
    trace, _ = recover(log)
    assert trace.dump() == result.trace.dump()
    assert Agent(None, [look], Recorder([]), **Trace.load(trace.dump()).meta["settings"]).settings == (
        Agent(None, [look], Recorder([]), **settings).settings
    )


def logged(log: Path, *turns: str) -> list[bytes]:
    """The lines of a log to which one more run was added."""
    Agent(None, [look], Recorder([*turns])).run("What?", log=log)
    return log.read_bytes().split(b"\n")[:-1]


@pytest.mark.parametrize(
    ("keep", "steps", "notices"),
    [
        (lambda lines: b"\n".join(lines) + b"\n", 3, []),
        (lambda lines: b"\n".join(lines), 3, []),
        (lambda lines: b"\n".join(lines[:-1]) + b"\n", 3, []),
        (lambda lines: b"\n".join(lines[:3]) + b"\n" + lines[3][:50], 2, ["4: not a complete event"]),
        (lambda lines: b"\n".join(lines[:3]) + b"\n" + lines[3].partition("é".encode())[0] + b"\xc3", 2, ["4: not"]),
        (lambda lines: lines[0] + b"\n", 0, []),
        (
            lambda lines: b"\n".join([lines[0], lines[1][:9], *lines[2:]]),
            0,
            ["2: not", "3: an earlier", "4: an earlier"],
        ),
    ],
    ids=["whole", "no newline at the end", "no end", "half a step", "half a letter", "no step", "a hole"],
)
def test_what_is_left_of_a_log_is_recovered(keep: Any, steps: int, notices: list[str], tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    lines = logged(log, " a\nAction: look[é]", " b\nAction: look[b]")
    full, _ = recover(log)
    log.write_bytes(keep(lines))
    trace, said = recover(log)
    assert trace.body == full.before(steps + 1)
    assert [text[len(str(log)) + 1 :][: len(start)] for text, start in zip(said, notices, strict=True)] == notices


def test_a_run_that_is_appended_to_half_a_line_is_not_damaged(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    lines = logged(log, " a\nAction: look[a]")
    log.write_bytes(b"\n".join(lines[:1]) + b"\n" + lines[1][:40])
    logged(log, " b\nAction: look[b]")
    assert [len(each.steps) for each in Log.load(log).runs] == [0, 2]
    assert recover(log)[0].steps[0].arguments == "b"


def test_runs_at_the_same_time_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    runs = [Agent(None, [look], Recorder([f" a\nAction: look[{name}]"])).steps("What?", log=log) for name in "xy"]
    for _ in zip(*runs, strict=True):
        pass
    assert [recover(log, number)[0].steps[0].arguments for number in (1, 2)] == ["x", "y"]
    assert [recover(log, number)[0].dump() for number in (1, 2)] == [run.trace.dump() for run in runs]


@pytest.mark.parametrize(
    ("content", "run_number", "message"),
    [
        (b"", None, "this log holds no run"),
        (b"not a log\n", None, "this log holds no run"),
        (b'{"event": "step", "run": "1-1"}\n', None, "this log holds no run"),
        (b'{"event": "start", "run": "1-1"}\n', None, "this is not a log of react-text"),
        (b'{"event": "start", "run": "1-1"}\n', 2, "there is no run 2: this log holds 1"),
    ],
)
def test_a_file_that_is_no_log_is_an_author_error(
    content: bytes, run_number: int | None, message: str, tmp_path: Path
) -> None:
    log = tmp_path / "x.jsonl"
    log.write_bytes(content)
    with pytest.raises(AuthorError, match=message) as caught:
        recover(log, run_number)
    assert str(caught.value).startswith(f"{log}: ")


def test_the_command_writes_the_trace_to_a_file_or_to_stdout(environment: dict[str, str], tmp_path: Path) -> None:
    log, out, trace = tmp_path / "r.jsonl", tmp_path / "r.trace", tmp_path / "new" / "t.trace"
    run(environment, "run", "prompts/refund.j2", "--quiet", "--log", log, "--out", out)
    run(environment, "run", "prompts/cloud_spend.j2", "--max-steps", 2, "--quiet", "--log", log)
    with log.open("ab") as file:
        file.write(b'{"event": "sta')
    done = run(environment, "recover", log, "--run", 1)
    assert (done.returncode, done.stdout) == (0, out.read_text(encoding="utf-8"))
    done = run(environment, "recover", log, "--out", trace)
    assert (done.returncode, done.stdout) == (0, "")
    last = log.read_bytes().count(b"\n") + 1
    assert done.stderr == f"{log}:{last}: not a complete event, left out\n# max_steps, 2 steps\n"
    assert len(Trace.load(trace).steps) == 2
    done = run(environment, "recover", log, "--run", 3)
    assert (done.returncode, done.stderr) == (2, f"{log}: there is no run 3: this log holds 2\n")
    assert json.loads(log.read_text(encoding="utf-8").split("\n")[0])["event"] == "start"
