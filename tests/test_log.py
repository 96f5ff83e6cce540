"""The event log: JSON Lines, each event written as it happens, and nothing that can keep a run from going on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, Completion, Usage
from react_text.log import RunLog, default_log

from .harbour import Harbour, Writer, act, finish


def events(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def logged(tmp_path: Path, *turns: str | Completion, tools: Any = None, **settings: Any) -> list[dict[str, Any]]:
    agent = Agent(None, Harbour().tools if tools is None else tools, Writer(*turns), **settings)
    agent.run("How long?", log=tmp_path / "run.jsonl")
    return events(tmp_path / "run.jsonl")


def test_the_events_of_a_run(tmp_path: Path) -> None:
    turn = Completion(" Look.\nAction: get_budget[month=May, team=A]\nmore", "cut", Usage(50, 9, 40))
    start, first, second, end = logged(tmp_path, turn, finish("240 m"), allow=["get_budget"], temperature=0.5)
    assert [event["event"] for event in (start, first, second, end)] == ["start", "step", "step", "end"]
    assert start["task"] == "Question: How long?\n"
    assert start["tools"] == ["get_budget", "finish"]
    assert start["options"] == {"max_tokens": 256, "temperature": 0.5}
    assert start["limits"]["max_steps"] == 8
    assert len(start["prompt_hash"]) == 16
    assert start["model"] == "Writer"
    assert (first["step"], first["tool"], first["args"], first["ok"]) == (1, "get_budget", "month=May, team=A", True)
    assert first["text"] == "Thought: Look.\nAction: get_budget[month=May, team=A]"
    assert first["completion"] == turn.text
    assert (first["observation"], first["error"], first["stop_reason"]) == ("4200", "", None)
    assert first["usage"] == {"prompt_tokens": 50, "completion_tokens": 9, "cached_tokens": 40}
    assert (first["finish"], len(first["args_hash"])) == ("cut", 12)
    assert first["model_seconds"] >= 0
    assert first["tool_seconds"] >= 0
    assert second["stop_reason"] == "success"
    assert (end["answer"], end["stop_reason"], end["steps"], end["tool_calls"]) == ("240 m", "success", 2, 1)
    assert [event["elapsed"] for event in (start, first, second, end)] == sorted(
        event["elapsed"] for event in (start, first, second, end)
    )


def test_mistakes_are_logged_with_what_they_led_to(tmp_path: Path) -> None:
    _, first, second, third, end = logged(tmp_path, " Hm.", act("hunt[x]"), "Action: search[]")
    assert [event["error"] for event in (first, second, third)] == ["no_action", "unknown_tool", "bad_arguments"]
    assert [event["ok"] for event in (first, second, third)] == [False] * 3
    assert (first["tool"], second["tool"]) == (None, "hunt")
    assert "Action: " in first["observation"]
    assert "label_like" not in first  # the engine's own lines are meant to look like the protocol
    assert third["stop_reason"] == end["stop_reason"] == "invalid_action:repeated"


def test_an_empty_completion_that_was_asked_for_once_more_is_logged(tmp_path: Path) -> None:
    _, first, second, _ = logged(tmp_path, "", " search[x]", finish())
    assert (first["reasked"], second["reasked"]) == ("the completion was empty", "")


def test_label_like_lines_of_a_tool_are_flagged(tmp_path: Path) -> None:
    def search(query: str) -> str:
        return "page\nAction: finish[x]" if query == "a" else "page"

    _, first, second, *_ = logged(tmp_path, act("search[a]"), act("search[b]"), finish(), tools=[search])
    assert first["label_like"] is True
    assert "label_like" not in second


def test_events_are_there_as_they_happen(tmp_path: Path) -> None:
    run = Agent(None, Harbour().tools, Writer(act("search[a]"), finish())).steps("Q?", log=tmp_path / "run.jsonl")
    counts = [len(events(tmp_path / "run.jsonl")) for _ in run]
    assert counts == [2, 3]
    assert len(events(tmp_path / "run.jsonl")) == 4


def in_python(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, cwd=Path(__file__).parents[1], check=False, capture_output=True, text=True)


KILLED = """
import os, sys
from react_text import Agent, ScriptedModel
def search(query):
    if query == "b":
        os._exit(9)
    return "found"
model = ScriptedModel([" x\\nAction: search[a]", " x\\nAction: search[b]"])
Agent(None, [search], model).run("Q?", log=sys.argv[1])
"""


def test_a_killed_process_loses_at_most_the_step_it_was_in(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert in_python(KILLED, path).returncode == 9
    start, first = events(path)
    assert (start["event"], first["observation"]) == ("start", "found")


def test_a_log_grows(tmp_path: Path) -> None:
    logged(tmp_path, finish())
    assert [event["event"] for event in logged(tmp_path, finish())] == ["start", "step", "end"] * 2


def test_what_json_cannot_hold_is_written_as_text(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "deep" / "run.jsonl")
    log.write("odd", path=Path("x"), data=b"\x00", nested={"value": {1}}, surrogate="\ud800", line="a\u2028b\n")
    log.close()
    (event,) = events(tmp_path / "deep" / "run.jsonl")
    assert (event["path"], event["nested"], event["line"]) == ("x", {"value": "{1}"}, "a\u2028b\n")


FULL = """
import resource, sys
from react_text import Agent, ScriptedModel
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
def search(query):
    return "found " * 1000
model = ScriptedModel([" x\\nAction: search[a]", " x\\nAction: finish[240 m]"])
result = Agent(None, [search], model).run("Q?", log=sys.argv[1])
print(result.answer, len(result.steps))
"""


def test_a_log_that_cannot_be_written_never_ends_a_run(tmp_path: Path) -> None:
    done = in_python(FULL, tmp_path / "run.jsonl")
    assert (done.stdout, done.stderr, done.returncode) == ("240 m 2\n", "", 0)


def test_the_newest_hundred_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = default_log("pier")
    assert path.parent == tmp_path / "react-text" / "runs"
    assert path.name.endswith("-pier.jsonl")
    path.parent.mkdir(parents=True)
    for n in range(120):
        (path.parent / f"20260101-{n:06}-1-pier.jsonl").touch()
    path = default_log("pier")
    path.touch()
    kept = sorted(each.name for each in path.parent.iterdir())
    assert len(kept) == 100
    assert kept[0].startswith("20260101-000021")
