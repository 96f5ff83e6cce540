"""The command line as a user meets it: real processes, real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from react_text import Trace
from react_text.version import __version__

from .fakes import FakeServer, native, native_end, sse

ROOT = Path(__file__).parents[1]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("REACT_TEXT_MODEL", "REACT_TEXT_API_KEY")}
    return kept | {"XDG_STATE_HOME": str(tmp_path / "state"), "REACT_TEXT_PROBE": "off", "PYTHONPATH": str(ROOT)}


def run(environment: dict[str, str], *arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "react_text", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=60)


@pytest.mark.parametrize("prompt", ["cloud_spend", "refund", "debug_ci"])
def test_a_shipped_prompt_runs_with_no_other_argument(environment: dict[str, str], prompt: str) -> None:
    done = run(environment, "run", f"prompts/{prompt}.j2")
    answer = Trace.load(ROOT / "traces" / f"{prompt}.trace").meta["answer"]
    assert (done.returncode, done.stdout) == (0, f"{answer}\n")
    assert "the turns are scripted" in done.stderr
    assert "success" in done.stderr


def test_quiet_prints_the_answer_alone(environment: dict[str, str]) -> None:
    done = run(environment, "run", "prompts/refund.j2", "--quiet")
    assert done.stderr == ""
    assert done.stdout.startswith("Yes.")


def test_out_log_and_json_agree(environment: dict[str, str], tmp_path: Path) -> None:
    out, log = tmp_path / "a" / "run.trace", tmp_path / "run.jsonl"
    done = run(environment, "run", "prompts/debug_ci.j2", "--out", out, "--log", log, "--json", "--quiet")
    result = json.loads(done.stdout)
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").split("\n") if line]
    trace = Trace.load(out)
    assert trace.body == result["trace"] == Trace.load(ROOT / "traces" / "debug_ci.trace").body
    assert [event["event"] for event in events] == ["start", "step", "step", "step", "end"]
    assert [event["observation"] for event in events[1:-1]] == [step.observation for step in trace.steps]
    assert events[-1]["answer"] == result["answer"] == trace.meta["answer"]
    assert str(ROOT) not in out.read_text(encoding="utf-8")


def test_a_log_is_written_to_the_state_folder_by_default(environment: dict[str, str], tmp_path: Path) -> None:
    run(environment, "run", "prompts/refund.j2", "--quiet")
    logs = list((tmp_path / "state" / "react-text" / "runs").glob("*refund.jsonl"))
    assert len(logs) == 1


def test_where_no_log_can_be_kept_the_run_goes_on_without(environment: dict[str, str]) -> None:
    for command, prompt, answer in (("run", "prompts/refund.j2", "Yes."), ("plan", "prompts/travel", "Day 1")):
        done = run(environment | {"XDG_STATE_HOME": "/dev/null"}, command, prompt)
        assert (done.returncode, done.stdout[: len(answer)]) == (0, answer)
        assert "# the run is not recorded: /dev/null/react-text/runs/" in done.stderr


def test_a_run_without_an_answer_has_exit_code_1(environment: dict[str, str]) -> None:
    done = run(environment, "run", "prompts/cloud_spend.j2", "--max-steps", "2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "max_steps" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.j2"], "nowhere.j2: no such file"),
        (["run", "prompts/clod_spend.j2"], "did you mean cloud_spend.j2?"),
        (["run", "prompts/refund.j2", "-v", "x"], "-v takes NAME=VALUE"),
        (["run", "prompts/refund.j2", "-v", "usr=1"], "'usr' is not used"),
        (["run", "prompts/refund.j2", "--model", "nonsense"], "model 'nonsense' is not understood"),
        (["run", "prompts/refund.j2", "--model", "scripted:none.trace"], "none.trace: no such file"),
        (["run", "prompts/refund.j2", "--max-steps", "0"], "max_steps must be a number above 0"),
        (["run", "prompts/refund.j2", "--out", "README.md/x.trace"], "cannot be written"),
        (["run", "prompts"], "a folder"),
        (["run", "prompts/refund.j2", " "], "QUESTION: is empty"),
        (["run", "traces/refund.trace"], "traces/refund.trace: this is a trace, and a prompt is needed here"),
        (["show", "prompts/refund.j2"], "prompts/refund.j2: this is a prompt, and a trace is needed here"),
        (["plan", "prompts/refund.j2"], "prompts/refund.j2: this is no plan prompt"),
        (["fmt", "setup.cfg"], "setup.cfg: this is no trace"),
        (["fill", "tools"], "tools: no traces here"),
        (["lint", "tools"], "tools: no traces or prompts here"),
        (["render", "nowhere.j2"], "no such file"),
        (["nonsense"], "invalid choice"),
        ([], "required"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_has_exit_code_2_and_no_traceback(
    environment: dict[str, str], arguments: list[str], message: str
) -> None:
    done = run(environment, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_mistake_in_a_prompt_is_reported_with_path_and_line(environment: dict[str, str], tmp_path: Path) -> None:
    prompt = tmp_path / "p.j2"
    prompt.write_text('---\nquestion: x\ntols: [a.py]\n---\n{% extends "react.j2" %}\n')
    assert f"{prompt}:3: unknown key 'tols' (did you mean tools?)" in run(environment, "run", prompt).stderr
    prompt.write_text(
        '---\nquestion: x\n---\n{% extends "react.j2" %}\n{% block rules %}{{ a }} {{ b }}{% endblock %}\n'
    )
    done = run(environment, "render", prompt)
    assert done.returncode == 2
    assert f"{prompt}:5: undefined variables: a (line 5), b (line 5)" in done.stderr


def test_a_dead_server_has_exit_code_3(environment: dict[str, str]) -> None:
    done = run(environment, "run", "prompts/refund.j2", "--model", "http://127.0.0.1:9")
    assert done.returncode == 3
    assert "is it running" in done.stderr and "Traceback" not in done.stderr


def test_a_streaming_server_answers(environment: dict[str, str]) -> None:
    with FakeServer(
        sse(native(" I look"), native(" it up.\nAction: get_user_profile[42"), native("]\nObservation: made up")),
        sse(native(" Known.\nAction: finish[Anna]"), native_end("eos")),
    ) as server:
        done = run(environment, "run", "prompts/refund.j2", "--model", f"llamacpp+{server.url}")
    assert (done.returncode, done.stdout) == (0, "Anna\n")
    assert "made up" not in done.stderr
    assert server.requests[1].json["prompt"].startswith(server.requests[0].json["prompt"])
    assert "\nObservation:" in server.requests[0].json["stop"]


def test_render_prints_the_exact_prompt(environment: dict[str, str]) -> None:
    done = run(environment, "render", "prompts/refund.j2", "Question of mine?")
    assert done.stdout.endswith("Now the question to answer:\n\nQuestion: Question of mine?\nThought:")
    assert "# " not in done.stdout


def test_the_environment_names_the_model(environment: dict[str, str]) -> None:
    named = environment | {"REACT_TEXT_MODEL": "scripted:traces/refund_user7.trace"}
    assert run(named, "run", "prompts/refund.j2", "--quiet").stdout.startswith("No.")


def test_setup_cfg_names_the_model(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text(f"[react_text]\nmodel = scripted:{ROOT}/traces/refund_user7.trace\n")
    prompt = tmp_path / "p.j2"
    prompt.write_text(f'---\nquestion: x\ntools: {ROOT}/tools/refund.py\n---\n{{% extends "react.j2" %}}\n')
    assert run(environment, "run", prompt, "--quiet").stdout.startswith("No.")
    (tmp_path / "setup.cfg").write_text("[react_text]\nmodell = x\n")
    done = run(environment, "run", prompt)
    assert done.returncode == 2 and "did you mean model?" in done.stderr


def test_eval_takes_the_model_of_setup_cfg(environment: dict[str, str], tmp_path: Path) -> None:
    script = "Question: x\nThought: a\nAction: finish[four]\n"
    (tmp_path / "four.trace").write_text(script)
    (tmp_path / "setup.cfg").write_text(f"[react_text]\nmodel = scripted:{tmp_path}/four.trace\n")
    (tmp_path / "p.j2").write_text('{% extends "react.j2" %}')
    (tmp_path / "tasks.yaml").write_text("prompt: p.j2\ntasks:\n- {id: a, question: How many, answer: four}\n")
    done = run(environment, "eval", tmp_path / "tasks.yaml")
    assert (done.returncode, done.stdout[:6]) == (0, "1 of 1"), done.stderr


def test_ctrl_c_ends_the_run_as_interrupted_with_its_trace_saved(environment: dict[str, str], tmp_path: Path) -> None:
    tools = tmp_path / "slow.py"
    tools.write_text("import time\n\ndef wait(text):\n    print('waiting', flush=True)\n    time.sleep(60)\n")
    script = tmp_path / "s.trace"
    script.write_text(
        "---\nformat: 1\n---\nQuestion: x\nThought: a\nAction: nothing[b]\nObservation: e\nAction: wait[now]\n"
    )
    prompt = tmp_path / "p.j2"
    prompt.write_text(f'---\nquestion: x\ntools: {tools}\n---\n{{% extends "react.j2" %}}\n')
    out = tmp_path / "out.trace"
    command = [
        sys.executable,
        "-m",
        "react_text",
        "run",
        str(prompt),
        "--model",
        f"scripted:{script}",
        "--out",
        str(out),
    ]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert any(line.endswith(b"waiting\n") for line in process.stderr)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - started < 5
    assert errors.startswith(b"\n# interrupted, ") and b"Traceback" not in errors
    trace = Trace.load(out)
    assert trace.meta["stop_reason"] == "interrupted"
    assert len(trace.steps) == 1


def test_terminal_escapes_of_a_tool_reach_the_trace_but_not_the_terminal(
    environment: dict[str, str], tmp_path: Path
) -> None:
    tools = tmp_path / "t.py"
    tools.write_text("def colour(text):\n    return '\\x1b[31mred\\x1b[0m'\n")
    script = tmp_path / "s.trace"
    script.write_text("---\nformat: 1\n---\nQuestion: x\nAction: colour[a]\nObservation: r\nAction: finish[done]\n")
    prompt = tmp_path / "p.j2"
    prompt.write_text(f'---\nquestion: x\ntools: {tools}\n---\n{{% extends "react.j2" %}}\n')
    out = tmp_path / "out.trace"
    done = run(environment, "run", prompt, "--model", f"scripted:{script}", "--out", out)
    assert "\x1b" not in done.stderr and "␛[31mred" in done.stderr
    assert Trace.load(out).steps[0].observation == "\x1b[31mred\x1b[0m"


def test_what_a_tool_prints_is_no_part_of_the_answer(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("def ask(what: str) -> str:\n    print('looking')\n    return 'so'\n")
    (tmp_path / "p.j2").write_text('---\nquestion: Q?\ntools: t.py\n---\n{% extends "react.j2" %}\n')
    (tmp_path / "s.trace").write_text("Question: Q?\nAction: ask[it]\nObservation: so\nAction: finish[so]\n")
    done = run(environment, "run", tmp_path / "p.j2", "--quiet", "--model", f"scripted:{tmp_path / 's.trace'}")
    assert (done.stdout, done.stderr) == ("so\n", "looking\n")


def test_a_device_or_a_link_is_written_to_and_stays_what_it_is(environment: dict[str, str], tmp_path: Path) -> None:
    golden = ROOT / "traces" / "refund.trace"
    pipe, link, kept = tmp_path / "pipe", tmp_path / "link.trace", tmp_path / "kept.trace"
    os.mkfifo(pipe)
    link.symlink_to(kept)
    reader = os.open(pipe, os.O_RDWR)  # no end of file when react-text has only looked whether it can write
    for out in (pipe, link):
        assert run(environment, "run", "prompts/refund.j2", "--quiet", "--out", out).returncode == 0
    read = os.read(reader, 65536)
    os.close(reader)
    assert Trace.load(read).body == Trace.load(kept).body == Trace.load(golden).body
    assert pipe.is_fifo()
    assert link.is_symlink()
    kept.write_text("")
    kept.chmod(0o640)
    assert run(environment, "run", "prompts/refund.j2", "--max-steps", "0", "--out", kept).returncode == 2
    assert run(environment, "run", "prompts/nowhere.j2", "--out", kept).returncode == 2
    assert kept.read_text() == ""
    assert run(environment, "run", "prompts/refund.j2", "--quiet", "--out", link).returncode == 0
    assert kept.stat().st_mode & 0o777 == 0o640


def test_the_answer_is_shown_when_the_disk_is_full(environment: dict[str, str]) -> None:
    done = run(environment, "run", "prompts/refund.j2", "--quiet", "--out", "/dev/full")
    assert (done.returncode, done.stdout[:4]) == (2, "Yes.")
    assert done.stderr == "/dev/full: cannot be written: No space left on device\n"


def test_a_closed_stdin_is_an_empty_one(environment: dict[str, str]) -> None:
    command = f"exec {sys.executable} -m react_text author prompts/refund.j2 <&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert done.stderr.endswith("# nobody is writing any more\n")


def test_version_and_help(environment: dict[str, str]) -> None:
    assert run(environment, "--version").stdout == f"react-text {__version__}\n"
    assert "run" in run(environment, "--help").stdout


def test_the_core_needs_three_packages_only(environment: dict[str, str]) -> None:
    code = (
        "import sys; import react_text; assert 'requests' not in sys.modules and 'jinja2' not in sys.modules;"
        "from react_text import react, Agent; assert 'requests' not in sys.modules; import pytest"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
