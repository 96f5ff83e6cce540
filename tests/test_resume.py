"""A run that was cut short goes on: what it had done is not done again, and not a byte of it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Completion, ScriptedModel, Trace
from react_text.recover import recover
from react_text.resume import Resumption

from .fakes import FakeServer, error, native, native_end, sse
from .test_cli import ROOT, environment, run
from .test_trace_format import WRITTEN

__all__ = ["environment"]

TOOLS = '''
from pathlib import Path

CALLS = Path(__file__).with_name("calls.txt")


def _called(what):
    with CALLS.open("a") as file:
        file.write(what + "\\n")


def look(place: str) -> str:
    """Look at a place."""
    _called(f"look {place}")
    if place == "broken":
        raise ValueError("no\\nObservation: such place")
    answers = {"empty": "", "labels": "page:\\nThought: of the page\\nAction: look[x]"}
    return answers.get(place, f"You see {place}.")
'''
PROMPT = '---\nquestion: What is there?\ntools: [tools.py]\n---\n{% extends "react.j2" %}\n'
FINISH = " Done.\nAction: finish[end]"
TURNS = [
    " One.\nAction: look[a]",
    "\nAction: look(b)",
    " Two.\nAction: look[broken]",
    " Three.\nAction: look[labels]",
    FINISH,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with one prompt and one tool that writes down its calls."""
    (tmp_path / "setup.cfg").write_text("[react_text]\n")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "tools.py").write_text(TOOLS)
    (tmp_path / "prompts" / "p.j2").write_text(PROMPT)
    return tmp_path


def calls(folder: Path) -> list[str]:
    """What was called since the last time."""
    path = folder / "prompts" / "calls.txt"
    found = path.read_text().split("\n")[:-1] if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def recorded(folder: Path, *turns: str | Completion, **settings: Any) -> Path:
    """The trace of a run; what it called is forgotten."""
    result = Agent(folder / "prompts" / "p.j2", model=ScriptedModel(turns), **settings).run()
    calls(folder)
    path = folder / "run.trace"
    path.write_bytes(result.trace.dump())
    return path


def resumed(path: Path, *turns: str | Completion, step: int | None = None, **settings: Any) -> Trace:
    resumption = Resumption(path, step=step)
    run = resumption.run(resumption.agent(ScriptedModel(turns), **settings))
    for _ in run:
        pass
    return run.trace


@pytest.mark.parametrize("done", range(5))
def test_a_run_goes_on_behind_its_last_step(folder: Path, done: int) -> None:
    full = Trace.load(recorded(folder, *TURNS))
    path = recorded(folder, *TURNS[:done])  # the script ends there, as a server can
    assert Trace.load(path).meta["stop_reason"] == "llm_error"
    trace = resumed(path, *TURNS[done:])
    assert trace.dump() == full.dump()
    assert calls(folder) == ["look a", "look broken", "look labels"][max(0, done - (done > 1)) :]


@pytest.mark.parametrize("written", WRITTEN)
def test_what_the_file_says_stays_as_it_is(folder: Path, written: str) -> None:
    path = recorded(folder, *WRITTEN[written], FINISH, FINISH)
    before = Trace.load(path)
    last = len(before.steps)
    prompts: list[str] = []

    def live(prompt: str, stop: list[str]) -> str:
        prompts.append(prompt)
        return " Otherwise.\nAction: finish[new]"

    resumption = Resumption(path, step=last)
    run = resumption.run(resumption.agent(live))
    assert [step.number for step in run] == [last]
    assert run.trace.before(last) == before.before(last)
    assert prompts == [f"{run.prompt.head}{before.before(last)}Thought:"]
    assert (run.answer, calls(folder)) == ("new", [])
    again = Trace.load(run.trace.dump())
    assert [again.steps[: last - 1], again.finishes, again.outcomes] == [
        before.steps[: last - 1],
        before.finishes,
        before.outcomes,
    ]


def test_a_step_in_the_middle_can_be_made_anew(folder: Path) -> None:
    path = recorded(folder, *TURNS)
    trace = resumed(path, " Else.\nAction: look[c]", FINISH, step=2)
    assert [step.tool for step in trace.steps] == ["look", "look", "finish"]
    assert trace.before(2) == Trace.load(path).before(2)
    assert calls(folder) == ["look c"]


def test_the_words_of_the_file_count_and_not_those_of_today(folder: Path) -> None:
    path = recorded(folder, " One.\nAction: look(a)", " Two.\nAction: look[b]")
    old = (
        path.read_bytes()
        .replace(b"arguments stand in square brackets", b"use square brackets")
        .replace(b"You see", b"See")
    )
    path.write_bytes(old)
    trace = resumed(path, FINISH)
    assert trace.before(3) == Trace.load(old).body
    assert "use square brackets" in trace.body and "See b." in trace.body
    assert calls(folder) == []


def test_the_past_counts_for_repeats_and_budgets(folder: Path) -> None:
    path = recorded(folder, " One.\nAction: look[a]", " Two.\nAction: look[b]", max_steps=3)
    trace = resumed(path, " Again.\nAction: look[a]")
    assert "was already called" in str(trace.steps[-1].observation)
    assert (trace.meta["stop_reason"], len(trace.steps), calls(folder)) == ("max_steps", 3, [])
    trace = resumed(path, " Again.\nAction: look[c]", FINISH, max_steps=4)
    assert (trace.meta["stop_reason"], trace.meta["settings"]) == ("success", {"max_steps": 4})


def test_settings_variables_and_the_question_are_those_of_the_run(folder: Path) -> None:
    (folder / "prompts" / "p.j2").write_text(
        '---\ntools: [tools.py]\ninputs: {day: "1"}\n---\n{% extends "react.j2" %}'
        "{% block question %}On {{ day }}: <{{ question }}>{% endblock %}\n"
    )
    agent = Agent(folder / "prompts" / "p.j2", model=ScriptedModel(["\nAction 1: look[a]"]), labels="numbered", seed=3)
    path = folder / "run.trace"
    path.write_bytes(agent.run("Who\nis it?", variables={"day": "007"}).trace.dump())
    trace = resumed(path, "\nAction: finish[end]")
    assert trace.task == "On 007: <Who\nis it?>\n"
    assert trace.body.endswith("Observation 1: You see a.\nAction 2: finish[end]\n")
    assert (trace.meta["inputs"], trace.meta["settings"]) == ({"day": "007"}, {"labels": "numbered", "seed": 3})


def test_a_scripted_trace_goes_on_with_the_turn_of_the_same_step(folder: Path) -> None:
    path = recorded(folder, "", "", " Two.\nAction: look[a]", FINISH)
    resumption = Resumption(path, step=2)
    run = resumption.run(resumption.agent(f"scripted:{path}"))
    assert [step.tool for step in run] == ["look", "finish"]
    assert run.trace.dump() == path.read_bytes()


def test_a_changed_prompt_is_said(folder: Path) -> None:
    path = recorded(folder, *TURNS[:1])
    prompt = folder / "prompts" / "p.j2"
    prompt.write_text(prompt.read_text() + "{% block separator %}Now:{% endblock %}")
    resumption = Resumption(path)
    run = resumption.run(resumption.agent(ScriptedModel([FINISH])))
    list(run)
    assert run.result.warnings == ("the prompt is another one than when this trace was recorded",)


@pytest.mark.parametrize(
    ("turns", "settings", "step", "message"),
    [
        (TURNS, {}, None, "this run has finished; --step 1 to --step 5 says from where to go on"),
        (TURNS, {}, 6, "there are 4 complete steps: --step must be from 1 to 5"),
        (TURNS, {}, 0, "there are 4 complete steps: --step must be from 1 to 5"),
        (TURNS[:2], {"max_steps": 2}, None, "the run ends again in step 2 as max_steps; --max-steps gives it more"),
        (TURNS[:3], {"faults": {"tool_error": "stop"}}, None, "the run ends again in step 3 as tool_error:look"),
    ],
    ids=["finished", "too late", "too early", "no steps left", "a fault that ends the run"],
)  # fmt: skip
def test_where_no_run_can_go_on(
    folder: Path, turns: list[str], settings: dict[str, Any], step: int | None, message: str
) -> None:
    path = recorded(folder, *turns, **settings)
    with pytest.raises(AuthorError) as caught:
        resumed(path, step=step)
    assert str(caught.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("prompt: prompts/p.j2\n", ""), "a golden needs `prompt:`"),
        (
            ("prompt: prompts/p.j2\n", "prompt: prompts/q.j2\n"),
            "there is no prompt prompts/q.j2 (did you mean prompts/p.j2?)",
        ),
        (
            ("format: 1\n", "format: 1\nlabels: {thought: Idea}\n"),
            "the labels of the trace are not those of its prompt",
        ),
        (
            ("format: 1\n", "format: 1\nsettings: {max_stps: 3}\n"),
            "unknown setting 'max_stps' (did you mean max_steps?)",
        ),
    ],
    ids=["no prompt", "another prompt", "other labels", "an unknown setting"],
)
def test_a_trace_that_does_not_fit_its_project(folder: Path, change: tuple[str, str], message: str) -> None:
    path = recorded(folder, *TURNS[:1])
    path.write_bytes(path.read_bytes().replace(change[0].encode(), change[1].encode()))
    with pytest.raises(AuthorError) as caught:
        resumed(path, FINISH)
    assert message in str(caught.value) and str(caught.value).startswith(str(path))


def turn(text: str) -> Any:
    return sse(native(text), native_end("eos"))


def test_progress_lost_on_rate_limit(environment: dict[str, str], folder: Path) -> None:
    """Four steps succeed, then the server is busy for good: the four steps are kept and their tools not run again."""
    four = [f" Step.\nAction: look[{place}]" for place in "abcd"]
    busy = error(429, {"error": {"message": "slow down"}}, **{"Retry-After": "100000"})
    with FakeServer(*map(turn, four), busy) as server:
        done = run(environment, "run", "prompts/p.j2", "--model", f"llamacpp+{server.url}", "--log", "r.jsonl",
                   "--out", "r.trace", "--quiet", cwd=folder)  # fmt: skip
    assert done.returncode == 3
    assert "slow down" in done.stderr
    trace = Trace.load(folder / "r.trace")
    assert ([step.arguments for step in trace.steps], trace.meta["stop_reason"]) == (list("abcd"), "llm_error")
    assert recover(folder / "r.jsonl")[0].dump() == trace.dump()
    assert calls(folder) == ["look a", "look b", "look c", "look d"]
    with FakeServer(turn(" One more.\nAction: look[e]"), turn(FINISH)) as server:
        done = run(
            environment, "resume", "r.trace", "--model", f"llamacpp+{server.url}", "--out", "s.trace", cwd=folder
        )
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert done.stderr.startswith(
        "Question: What is there?\nThought: Step.\nAction: look[a]\nObservation: You see a.\n"
    )
    assert calls(folder) == ["look e"]
    new = Trace.load(folder / "s.trace")
    assert (len(new.steps), new.before(5)) == (6, trace.body)
    assert server.requests[0].json["prompt"].endswith(f"{trace.body}Thought:")


def test_the_command_resumes_shipped_traces(environment: dict[str, str], tmp_path: Path) -> None:
    """A trace that was saved outside of its project belongs to that of the working folder."""
    out = tmp_path / "half.trace"
    run(environment, "run", "prompts/cloud_spend.j2", "--max-steps", 3, "--out", out, "--quiet")
    model = "scripted:traces/cloud_spend.trace"
    done = run(environment, "resume", out, "--model", model, "--max-steps", 8, "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["trace"] == Trace.load(ROOT / "traces" / "cloud_spend.trace").body
    done = run(environment, "resume", out, "--max-steps", 8)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no model server found" in done.stderr and "Traceback" not in done.stderr
