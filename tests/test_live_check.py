"""Goldens against a model that does not always do the same: rates, paths, verdicts."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Completion, Options, ScriptedModel, ServerError, Trace
from react_text.library import Library
from react_text.live import LiveCheck, Pairs, Report, Trial, Variant, find_cases

from .fakes import FakeServer, error, native, native_end, sse
from .test_cli import environment, run

__all__ = ["environment"]

TOOLS = '''
from react_text import tool

def look(place: str) -> str:
    """Look at a place."""
    return f"You see {place}."

@tool(unsafe=True)
def burn(place: str) -> str:
    """Burn a place."""
    return "ashes"
'''
PROMPT = '---\nquestion: What is there?\ntools: [tools.py]\nallow: [look]\n---\n{% extends "react.j2" %}\n'
RIGHT = [" One.\nAction: look[sea]", " Known.\nAction: finish[the sea]"]
DETOUR = [" One.\nAction: look[sky]", *RIGHT]
WRONG = [" Clear.\nAction: finish[the sky]"]
NEVER = [" One.\nAction: look[sea]", *[" Hm."] * 3]


class Scripts:
    """A model that plays another script in each run."""

    name = "scripts"

    def __init__(self, *scripts: Sequence[str]) -> None:
        self.options: list[Options] = []
        self._scripts = itertools.cycle(scripts)
        self._lock = threading.Lock()

    def next_script(self) -> ScriptedModel:
        with self._lock:
            return ScriptedModel(next(self._scripts))

    def session(self) -> Session:
        return Session(self)

    def complete(self, prompt: str, **given: Any) -> Completion:
        raise AssertionError("a run has a session of its own")


class Session:
    """One run of Scripts; it has a script once it is asked for something."""

    name = "scripts"

    def __init__(self, model: Scripts) -> None:
        self.model = model
        self.script: ScriptedModel | None = None

    def complete(self, prompt: str, **given: Any) -> Completion:
        self.script = self.script or self.model.next_script()
        self.model.options.append(given["options"])
        return self.script.complete(prompt, **given)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "setup.cfg").write_text("[react_text]\n")
    for name in ("prompts", "traces"):
        (tmp_path / name).mkdir()
    (tmp_path / "prompts" / "tools.py").write_text(TOOLS)
    (tmp_path / "prompts" / "p.j2").write_text(PROMPT)
    save(tmp_path, "t", RIGHT)
    return tmp_path


def save(project: Path, name: str, turns: Sequence[str], head: str = "", **settings: Any) -> Path:
    """A golden, with further lines of front matter."""
    trace = Agent(project / "prompts" / "p.j2", model=ScriptedModel(turns), **settings).run().trace
    path = project / "traces" / f"{name}.trace"
    path.write_bytes(trace.dump().replace(b"format: 1\n", f"format: 1\n{head}".encode()))
    return path


def check(project: Path, *models: Any, **settings: Any) -> LiveCheck:
    variants = [Variant(str(number), model) for number, model in enumerate(models, 1)]
    made = LiveCheck([project / "traces"], variants, **settings)
    made.run()
    return made


@pytest.mark.parametrize(
    ("scripts", "runs", "minimum", "made", "passed", "ok"),
    [
        ([RIGHT], 5, 0.8, 4, 4, True),
        ([RIGHT], 5, 1.0, 5, 5, True),
        ([WRONG], 5, 0.8, 2, 0, False),
        ([WRONG], 5, 1.0, 1, 0, False),
        ([RIGHT, WRONG], 10, 0.5, 9, 5, True),
        ([WRONG, RIGHT], 10, 0.6, 9, 4, False),
        ([RIGHT, WRONG], 6, 0.0, 6, 3, True),
        ([NEVER], 1, 0.8, 1, 0, False),
    ],
)
def test_a_case_stops_as_soon_as_its_verdict_is_certain(
    project: Path, scripts: list[list[str]], runs: int, minimum: float, made: int, passed: int, ok: bool
) -> None:
    (report,) = check(project, Scripts(*scripts), runs=runs, minimum=minimum).reports
    assert (len(report.trials), report.passed, report.ok) == (made, passed, ok)


def test_a_verdict_is_open_while_runs_could_decide_either_way() -> None:
    passed, failed = Trial(Trace(""), ()), Trial(Trace(""), ("x",))  # type: ignore[arg-type]
    report = Report(Path("x"), Variant("v", Scripts([])), 4, 0.5)
    verdicts = []
    for number, trial in enumerate([failed, passed, failed, passed]):
        report.trials[number] = trial
        verdicts.append(report.ok)
    assert verdicts == [None, None, None, True]


def test_paths_are_gathered_with_their_frequency_and_a_sample(project: Path) -> None:
    (report,) = check(project, Scripts(RIGHT, DETOUR, RIGHT, WRONG, NEVER), runs=10, minimum=0).reports
    assert [(path, len(trials), sum(t.passed for t in trials)) for path, trials in report.paths] == [
        (("look[sea]", "finish"), 4, 4),
        (("look[sky]", "look[sea]", "finish"), 2, 2),
        (("finish",), 2, 0),
        (("look[sea]", "(none)", "(none)", "(none)", "(invalid_action:repeated)"), 2, 0),
    ]
    assert report.interval == pytest.approx((0.3127, 0.8318), abs=1e-4)
    assert [trials[0].trace.steps[0].arguments for _, trials in report.paths] == ["sea", "sky", "the sky", "sea"]
    assert {str(change) for _, trials in report.paths for trial in trials for change in trial.changes} == {
        "answer: step 2: answers 'the sky' instead of 'the sea'",
        "answer: step 2: answers nothing instead of 'the sea'",
        "answer: step 4: ends as invalid_action:repeated instead of success",
    }


@pytest.mark.parametrize(
    ("head", "script", "passed"),
    [
        ("", DETOUR, True),
        ("match: actions\n", DETOUR, False),
        ("match: superset\n", DETOUR, True),
        ("match: exact\n", RIGHT, True),
        ("expect: {max_steps: 2}\n", DETOUR, False),
        ("expect: {forbid: [look]}\n", WRONG, False),
        ('expect: {answer: "the s[ek]"}\n', WRONG, True),
        ("expect: {max_prompt_chars: 100}\n", RIGHT, False),
        ("expect: {max_prompt_chars: 9000}\n", RIGHT, True),
    ],
)
def test_the_golden_says_what_passes(project: Path, head: str, script: list[str], passed: bool) -> None:
    save(project, "t", RIGHT, head)
    (report,) = check(project, Scripts(script), runs=1).reports
    assert report.ok is passed


def test_an_alternative_is_as_good_as_its_golden(project: Path) -> None:
    save(project, "t", RIGHT, "match: actions\n")
    assert check(project, Scripts(DETOUR), runs=1).reports[0].ok is False
    save(project, "t~2", DETOUR, "match: actions\n")
    (report,) = check(project, Scripts(DETOUR, RIGHT), runs=2, minimum=1).reports
    assert (report.path.name, report.passed) == ("t.trace", 2)


def test_two_variants_are_compared_run_by_run(project: Path) -> None:
    save(project, "u", RIGHT)
    live = check(project, Scripts(RIGHT, WRONG, WRONG, RIGHT), Scripts(RIGHT, RIGHT, WRONG, WRONG), runs=4, minimum=0.5)
    assert [len(report.trials) for report in live.reports] == [4, 4, 4, 4]
    assert list(live.pairs.values()) == [Pairs(1, 1, 1, 1), Pairs(1, 1, 1, 1)]
    assert [report.variant.name for report in live.judged] == ["2", "2"]
    total = Pairs(9, 1, 0, 0) + Pairs(0, 0, 5, 7)
    assert (total, total.p) == (Pairs(9, 1, 5, 7), 0.021484375)


def test_prompts_are_compared_with_the_golden_s_question(project: Path) -> None:
    other = project / "prompts" / "q.j2"
    other.write_text(PROMPT.replace("What is there?", "Nothing") + "{% block rules %}- Be brief.{% endblock %}")
    model = Scripts(RIGHT)
    variants = [Variant(p.name, model, p) for p in (project / "prompts" / "p.j2", other)]
    live = LiveCheck([project / "traces" / "t.trace"], variants, runs=2)
    live.run()
    assert [trial.trace.task for report in live.reports for trial in report.trials.values()] == [
        "Question: What is there?\n"
    ] * 4
    assert [pairs.both for pairs in live.pairs.values()] == [2]


def test_runs_go_on_at_the_same_time(project: Path) -> None:
    together = threading.Barrier(3, timeout=20)

    class Meeting(Scripts):
        def next_script(self) -> ScriptedModel:
            together.wait()
            return super().next_script()

    assert check(project, Meeting(RIGHT), runs=6, minimum=1, jobs=3).reports[0].passed == 6


@pytest.mark.parametrize(
    ("settings", "seeds"), [({}, [None] * 3), ({"seed": 7, "temperature": 0.5}, [7, 8, 9])], ids=["no seed", "a seed"]
)
def test_a_seed_counts_up(project: Path, settings: dict[str, Any], seeds: list[int | None]) -> None:
    model = Scripts(WRONG)
    check(project, model, runs=3, minimum=0, settings=settings)
    assert [options.seed for options in model.options] == seeds


def test_unsafe_tools_are_refused_unless_they_are_allowed(project: Path) -> None:
    (project / "prompts" / "p.j2").write_text(PROMPT.replace("[look]", "[look, burn]"))
    with pytest.raises(AuthorError, match="burn is marked unsafe"):
        check(project, Scripts(RIGHT))
    assert check(project, Scripts(RIGHT), runs=1, unsafe=True).reports[0].ok is True


def test_a_server_that_fails_ends_the_check_with_what_there_was(project: Path) -> None:
    save(project, "u", RIGHT)
    live = LiveCheck([project / "traces"], [Variant("v", Scripts(RIGHT, RIGHT, [], RIGHT))], runs=2, minimum=1)
    with pytest.raises(ServerError, match="asked for one more"):
        live.run()
    assert [(report.passed, report.ok) for report in live.reports] == [(2, True), (0, None)]


def test_the_cases_of_a_folder(project: Path) -> None:
    traces = project / "traces"
    save(project, "t~2", DETOUR)
    save(project, "no_base~2", DETOUR)
    save(project, "example", RIGHT, "test: false\n")
    (traces / "bare.trace").write_text("Question: x\nThought: y\nAction: finish[z]\n")
    found = find_cases([traces], Library())
    assert [path.name for path in found] == ["no_base~2.trace", "t.trace"]
    assert find_cases([traces / "t~2.trace"], Library()) == [traces / "t.trace"]
    assert find_cases([traces / "example.trace"], Library()) == [traces / "example.trace"]
    with pytest.raises(AuthorError, match="no traces here"):
        find_cases([project / "prompts"], Library())


# -- the command


def scripted(project: Path, name: str, turns: Sequence[str]) -> str:
    """A model spec that always plays these turns."""
    path = project / f"{name}.trace"
    path.write_bytes(Agent(project / "prompts" / "p.j2", model=ScriptedModel(turns)).run().trace.dump())
    return f"scripted:{path}"


def test_the_command_prints_a_report(environment: dict[str, str], project: Path) -> None:
    right, wrong = scripted(project, "right", DETOUR), scripted(project, "wrong", WRONG)
    done = run(environment, "live", "--model", right, "-n", 5, "--min", 0.8, "--out", "new", cwd=project)
    assert (done.returncode, done.stdout) == (
        0,
        "traces/t.trace: 4 of 4 passed, 95 % interval 51 to 100 %: ok\n"
        "  stopped early: 1 more could not change that\n"
        "  4x, 4 passed: look[sky] > look[sea] > finish\n"
        "      sample: new/t~2.trace\n",
    )
    assert done.stderr.startswith("# no response is cached: every run asks the model\npassed  traces/t.trace 3 steps\n")
    assert [step.tool for step in Trace.load(project / "new" / "t~2.trace").steps] == ["look", "look", "finish"]
    done = run(environment, "live", "traces/t.trace", "--model", wrong, "-n", 2, cwd=project)
    assert (done.returncode, done.stdout) == (
        1,
        "traces/t.trace: 0 of 1 passed, 95 % interval 0 to 79 %: below 0.8\n"
        "  stopped early: 1 more could not change that\n"
        "  1x, 0 passed: finish\n"
        "      answer: step 2: answers 'the sky' instead of 'the sea'\n",
    )
    done = run(environment, "live", "--models", f"{wrong},{right}", "-n", 3, "--json", cwd=project)
    found = json.loads(done.stdout)
    assert done.returncode == 0  # the second is judged
    assert [(case["variant"], case["runs"], case["passed"], case["ok"]) for case in found["cases"]] == [
        (wrong, 3, 0, False),
        (right, 3, 3, True),
    ]
    assert found["pairs"] == {"traces/t.trace": {"fixed": 3, "broken": 0, "both": 0, "neither": 0, "p": 0.25}}
    done = run(environment, "live", "--model", right, "--prompts", "prompts/p.j2,prompts/p.j2", "-n", 2, cwd=project)
    assert done.stdout.endswith(
        "prompts/p.j2 -> prompts/p.j2\n"
        "                fixed  broken  both  neither\n"
        "traces/t.trace      0       0     2        0\n"
        "total               0       0     2        0\n"
        "exact McNemar p = 1.0000\n"
    )


def test_a_password_in_a_url_is_not_reported(environment: dict[str, str], project: Path) -> None:
    specs = [f"openai+http://user:secret@127.0.0.1:1?retry_seconds=0&model={name}" for name in "ab"]
    done = run(environment, "live", "traces/t.trace", "--models", ",".join(specs), "-n", 1, "--json", cwd=project)
    assert "user" not in done.stdout + done.stderr and "***@127.0.0.1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "-n and -j must be whole numbers above 0"),
        (["--min", "1.5"], "--min a rate from 0 to 1"),
        (["--models", "a"], "--models and --prompts each compare two"),
        (["--models", "a,b", "--model", "c"], "--models replaces --model"),
        (["nowhere"], "nowhere: no such file"),
        (["prompts"], "prompts: no traces here"),
        (["--model", "nonsense"], "model 'nonsense' is not understood"),
        (["--set", "max_stps=3"], "unknown setting 'max_stps'"),
        (["--set", "x"], "--set takes KEY=VALUE"),
        (["--prompts", "prompts/p.j2,prompts/none.j2"], "none.j2: no such file"),
        (["--out", "setup.cfg"], "cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call(environment: dict[str, str], project: Path, arguments: list[str], message: str) -> None:
    given = (
        arguments
        if any(word.startswith("--model") for word in arguments)
        else [*arguments, "--model", "scripted:traces/t.trace"]
    )
    done = run(environment, "live", *given, cwd=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and "Traceback" not in done.stderr


def turn(text: str, **settings: Any) -> Any:
    return sse(native(text), native_end("eos"), **settings)


def test_a_server_that_goes_away_has_exit_code_3(environment: dict[str, str], project: Path) -> None:
    busy = error(429, {"error": {"message": "slow down"}}, **{"Retry-After": "100000"})
    with FakeServer(*map(turn, RIGHT), busy) as server:
        done = run(environment, "live", "--model", f"llamacpp+{server.url}", "-n", "4", cwd=project)
    assert done.returncode == 3
    assert done.stdout.startswith("traces/t.trace: 1 of 1 passed, 95 % interval 21 to 100 %: undecided\n")
    assert "slow down" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_keeps_what_there_was(environment: dict[str, str], project: Path) -> None:
    with FakeServer(*map(turn, RIGHT), *map(turn, DETOUR), turn(" slow", delay=30)) as server:
        command = [
            sys.executable,
            "-m",
            "react_text",
            "live",
            "--model",
            f"llamacpp+{server.url}",
            "-n",
            "9",
            "--out",
            "new",
        ]
        process = subprocess.Popen(
            command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        assert [line.split()[0] for line in lines] == ["#", "passed", "passed"]
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert time.monotonic() - started < 10
    assert process.returncode == 130
    assert out == (
        "traces/t.trace: 2 of 2 passed, 95 % interval 34 to 100 %: undecided\n"
        "  1x, 1 passed: look[sea] > finish\n"
        "      sample: new/t~2.trace\n"
        "  1x, 1 passed: look[sky] > look[sea] > finish\n"
        "      sample: new/t~3.trace\n"
    )
    assert err == "react-text: interrupted; this is what there was\n"
