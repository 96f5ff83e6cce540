"""Runs from traces and logs, and `diff`: what differs between two of them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from react_text import Agent, Completion, ScriptedModel, Trace, Usage
from react_text.errors import AuthorError
from react_text.runs import differences, find_files, read_run, read_runs

from .project import Project

ROOT = Path(__file__).parents[1]
CLOUD, WRONG = ROOT / "traces" / "cloud_spend.trace", ROOT / "traces" / "cloud_spend_wrong.trace"
TURNS = [" Hall 3.\nAction: crates[3]", " Known.\nAction: finish[41 crates]"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def run_logged(project: Project, turns: list[str | Completion], log: str = "run.jsonl") -> Trace:
    agent = Agent(project.folder / "prompts/depot.j2", model=ScriptedModel(turns))
    return agent.run(log=project.folder / log).trace


# -- reading


def test_a_log_knows_what_each_step_cost(project: Project) -> None:
    turns = [
        Completion(TURNS[0], usage=Usage(300, 12, 0)),
        Completion(TURNS[1], usage=Usage(340, 9, 312)),
    ]
    trace = run_logged(project, turns)
    run = read_run(str(project.folder / "run.jsonl"))
    assert run.trace.dump() == trace.dump()
    assert [cost.usage for cost in run.costs] == [Usage(300, 12, 0), Usage(340, 9, 312)]
    assert run.model and all(cost.model_seconds >= 0 for cost in run.costs)


def test_a_trace_knows_no_costs() -> None:
    run = read_run(str(CLOUD))
    assert (run.costs, run.model, run.name) == ((), "", str(CLOUD))


def test_each_run_of_a_log_has_a_number_and_the_last_one_is_meant(project: Project) -> None:
    first = run_logged(project, [*TURNS])
    second = run_logged(project, [TURNS[0].replace("3]", "4]"), TURNS[1]])
    path = str(project.folder / "run.jsonl")
    assert [run.name for run in read_runs(path)[0]] == [f"{path}:1", f"{path}:2"]
    assert read_run(f"{path}:1").trace.body == first.body
    assert read_run(path).trace.body == read_run(f"{path}:2").trace.body == second.body
    for number in ("0", "3"):
        with pytest.raises(AuthorError, match=f"there is no run {number}: this file holds 1, 2"):
            read_run(f"{path}:{number}")


def test_a_file_whose_name_ends_like_a_number_is_that_file(project: Project) -> None:
    project.write("a:1", CLOUD.read_text(encoding="utf-8"))
    assert len(read_run(str(project.folder / "a:1")).trace.steps) == 7


def test_a_plan_has_a_run_for_each_stage(project: Project) -> None:
    plan = ROOT / "traces" / "travel" / "japan.plan"
    names = [run.name.removeprefix(f"{plan}:") for run in read_runs(plan)[0]]
    assert names[:2] == ["goal", "plan"] and "act flights" in names and names[-1] == "synthesise"
    assert read_run(f"{plan}:goal").trace.meta["prompt"] == "prompts/travel/goal.j2"
    other = ROOT / "traces" / "travel" / "japan_hotel_timeout.plan"
    assert project.run(f"diff {plan}:goal {other}:goal").code == 0
    assert project.run(f"diff {plan} {other}").code == 1
    with pytest.raises(AuthorError, match="there is no run hotel: this file holds goal, plan"):
        read_run(f"{plan}:hotel")


def test_what_a_log_says_of_costs_need_not_be_true(project: Project) -> None:
    run_logged(project, [*TURNS])
    lines = project.read("run.jsonl").split("\n")
    step = json.loads(lines[1])
    step |= {"usage": {"prompt_tokens": "many", "completion_tokens": -3, "cached_tokens": True}, "model_seconds": 1e99}
    project.write("odd.jsonl", "\n".join([lines[0], json.dumps(step), json.dumps({**step, "step": 2, "usage": 7})]))
    costs = read_run(str(project.folder / "odd.jsonl")).costs
    assert [cost.usage for cost in costs] == [Usage(), Usage()]
    assert [cost.model_seconds for cost in costs] == [0, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ('{"a": 1}\n', "this log holds no run"),
        ('{"event": "start", "run": "1"}\n', "this is not a log of react-text"),
        ("---\nfromat: 1\n---\n", "unknown key 'fromat'"),
    ],
)
def test_what_cannot_be_read_is_named(project: Project, content: str | None, message: str) -> None:
    if content is not None:
        project.write("file", content)
    with pytest.raises(AuthorError, match=message):
        read_runs(project.folder / "file")


def test_folders_give_their_traces_and_logs(project: Project) -> None:
    project.record("traces/b.trace", [*TURNS])
    run_logged(project, [*TURNS], "traces/a/run.jsonl")
    project.write("traces/note.txt", "")
    found = find_files([project.folder / "traces"])
    assert [path.name for path in found] == ["run.jsonl", "b.trace"]
    with pytest.raises(AuthorError, match="no traces, plans or logs are here"):
        find_files([project.folder / "tools"])


# -- differences


def test_what_only_one_run_says_of_itself_is_no_difference() -> None:
    bare = Trace(Trace.load(CLOUD).body)
    assert differences(bare, Trace.load(CLOUD)) == differences(Trace.load(CLOUD), bare) == []


FACTS: list[tuple[str, str, str]] = [
    ("answer", "Nobody", "answer"),
    ("stop_reason", "max_steps", "answer"),
    ("prompt_hash", "0123456789abcdef", "prompt"),
    ("tools", "[one]", "format"),
]


@pytest.mark.parametrize(("key", "value", "category"), FACTS)
def test_what_both_say_differently_is_one(project: Project, key: str, value: str, category: str) -> None:
    lines = CLOUD.read_text(encoding="utf-8").split("\n")
    place = next(n for n, line in enumerate(lines) if line.startswith(f"{key}:"))
    project.write("other.trace", "\n".join([*lines[:place], f"{key}: {value}", *lines[place + 1 :]]))
    other = Trace.load(project.folder / "other.trace")
    for one, two in ((Trace.load(CLOUD), other), (other, Trace.load(CLOUD))):
        assert [change.category for change in differences(one, two)] == [category]


def test_a_match_key_lets_nothing_pass(project: Project) -> None:
    text = CLOUD.read_text(encoding="utf-8").replace("format: 1\n", "format: 1\nmatch: answer\n")
    project.write("a.trace", text)
    project.write("b.trace", text.replace("Now the budget", "Then the budget"))
    done = project.run("diff a.trace b.trace")
    assert done.code == 1 and "[thought]" in done.out


# -- the command


def test_diff_aligns_by_step(project: Project) -> None:
    done = project.run(f"diff {CLOUD} {WRONG}")
    assert (done.code, done.err, done.changed) == (1, "", {})
    lines = done.out.split("\n")
    assert lines[0] == (
        f"{CLOUD} -> {WRONG}: step 2: is missing: query_reserved[2026-07]; 2 more missing steps; "
        "2 more changes; another answer [path, thought, answer]"
    )
    shown = "\n".join(lines[7:])
    assert shown.startswith(
        "    @ 1 step the same\n    @ step 2: cloud_spend_wrong.trace has none here\n    - Thought: "
    )
    assert (
        "    @ step 4, step 2 of cloud_spend_wrong.trace\n"
        "    - Thought: 54220 USD in all. Now the budget to compare it with.\n"
        "    + Thought: 41820 USD. Now the budget.\n"
    ) in shown
    back = project.run(f"diff {WRONG} {CLOUD}").out
    assert "@ step 2 of cloud_spend.trace: cloud_spend_wrong.trace has none here" in back


def test_diff_of_the_same_run_says_so(project: Project) -> None:
    trace = run_logged(project, [*TURNS])
    (project.folder / "run.trace").write_bytes(trace.dump())
    done = project.run("diff run.jsonl run.trace")
    assert (done.code, done.out, done.err) == (0, "run.jsonl and run.trace: the same run\n", "")
    assert project.run("diff run.trace run.jsonl").code == 0


def test_diff_takes_two_runs_of_one_log(project: Project) -> None:
    run_logged(project, [*TURNS])
    run_logged(project, [TURNS[0].replace("3]", "4]"), TURNS[1]])
    done = project.run("diff run.jsonl:1 run.jsonl:2")
    assert done.code == 1
    assert "step 1: calls crates[4] instead of crates[3]" in done.out


def test_diff_as_json(project: Project) -> None:
    done = project.run(f"diff --json {WRONG} {CLOUD}")
    facts = json.loads(done.out)
    assert done.code == 1 and facts["same"] is False
    assert facts["categories"] == ["path", "thought", "answer"]
    assert facts["steps"][:4] == [[1, 1], [None, 2], [None, 3], [2, 4]]
    assert facts["changes"][0] == {
        "category": "path",
        "step": 2,
        "only_in": "b",
        "message": "is an extra step: query_reserved[2026-07]",
    }
    same = project.run(f"diff --json {CLOUD} {CLOUD}")
    assert same.code == 0 and json.loads(same.out)["same"] is True


@pytest.mark.parametrize(
    "arguments", ["nope.trace x.trace", "x.trace nope.trace", "x.trace x.trace:2", "x.trace y.txt"]
)
def test_diff_of_what_cannot_be_used(project: Project, arguments: str) -> None:
    project.write("x.trace", CLOUD.read_text(encoding="utf-8"))
    project.write("y.txt", '{"event": 1}\n')
    done = project.run(f"diff {arguments}")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1 and ": " in done.err


def test_diff_sends_no_escapes_of_a_trace_to_the_terminal(project: Project) -> None:
    project.write("a.trace", "Question: q\nThought: \x1b[2Jx\nAction: look[\x1b]0;a]\nObservation: \x9bcalm\n")
    project.write("b.trace", "Question: q\nThought: \x1b[2Jy\nAction: look[\x1b]0;b]\nObservation: \x9bwild\n")
    done = project.run("diff a.trace b.trace")
    assert done.code == 1
    assert not {c for c in done.out if (c != "\n" and ord(c) < 0x20) or 0x7F <= ord(c) < 0xA0}


def test_diff_is_in_colour_on_a_terminal_alone() -> None:
    command = [sys.executable, "-m", "react_text", "diff", str(CLOUD), str(WRONG)]
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
    plain = subprocess.run(command, env=environment, capture_output=True).stdout
    assert b"\x1b" not in plain
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=environment, stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait() == 1
    os.close(ours)
    assert b"\x1b[31m    - Thought: " in shown and b"\x1b[32m    + Thought: " in shown
