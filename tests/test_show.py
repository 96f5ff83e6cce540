"""`show` and `render --turn`: a trace on the terminal, and the exact prompt of any of its turns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from react_text import Agent, Prompt, ScriptedModel, Trace
from react_text.show import prompt_of, prompts, transcript, with_marks

from .project import Project

ROOT = Path(__file__).parents[1]
TRACES = sorted((ROOT / "traces").glob("*.trace"))
TRACES_2022 = sorted((ROOT / "tests" / "traces_2022").glob("*.trace"))
REFUND = ROOT / "traces" / "refund.trace"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def output(*arguments: object) -> bytes:
    """The exact bytes that a command writes to stdout."""
    command = [sys.executable, "-m", "react_text", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True).stdout


@pytest.mark.parametrize("path", [*TRACES, *TRACES_2022], ids=lambda path: path.stem)
def test_a_trace_is_shown_as_it_is(path: Path) -> None:
    trace = Trace.load(path)
    assert transcript(trace) == trace.body
    assert ESCAPE.sub("", transcript(trace, colour=True)) == trace.body
    steps = [transcript(trace, number) for number in range(1, len(trace.steps) + 1)]
    assert trace.task + "".join(steps) == trace.body


def test_colours_tell_labels_results_and_errors_apart() -> None:
    trace = Trace.load(
        b"---\noutcomes: {2: mistake no_action}\n---\nQuestion: q\nThought: a\nAction: look[b]\nObservation: c\n"
        b"Thought: d\nObservation: Error: e\n"
    )
    bold, green, yellow, end = "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
    assert transcript(trace, colour=True) == (
        f"Question: q\n{bold}Thought:{end} a\n{bold}Action:{end} look[b]\n{bold}Observation:{end}{green} c{end}\n"
        f"{bold}Thought:{end} d\n{bold}Observation:{end}{yellow} Error: e{end}\n"
    )


def test_control_characters_are_shown_unless_raw_is_asked_for(tmp_path: Path) -> None:
    project = Project(tmp_path, {})
    project.write("a.trace", "Question: q\nAction: look[b]\nObservation: \x1b[31mred\r\n")
    assert project.run("show a.trace").out == "Question: q\nAction: look[b]\nObservation: ␛[31mred␍\n"
    assert output("show", project.folder / "a.trace", "--raw") == (
        b"Question: q\nAction: look[b]\nObservation: \x1b[31mred\r\n"
    )


def test_one_step_and_the_line_above(tmp_path: Path) -> None:
    done = Project(tmp_path, {}).run(f"show {REFUND} --step 2")
    assert done.out.startswith("Thought: Anna is on the pro plan.") and done.out.count("Action:") == 1
    whole = Project(tmp_path, {}).run(f"show {REFUND}")
    assert whole.err == f"# {REFUND}: prompts/refund.j2, success, 4 steps\n"
    assert output("show", REFUND, "--step", 2, "--raw").decode() == done.out


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_prompt_of_a_turn_is_what_the_model_was_sent(path: Path) -> None:
    trace = Trace.load(path)
    sent: list[str] = []

    def llm(prompt: str, stop: list[str]) -> str:
        sent.append(prompt)
        return trace.completions[len(sent) - 1]

    question = trace.task.removeprefix("Question: ").removesuffix("\n")
    Agent(ROOT / str(trace.meta["prompt"]), model=llm, **(trace.meta.get("settings") or {})).run(question)
    assert [str(text) for text in prompts(path)] == sent
    for number, text in enumerate(sent, 1):
        assert text.endswith(trace.before(number) + "Thought:")
        assert prompt_of(path, number) == text


def test_prompts_that_change_from_step_to_step(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.edit("prompts/depot.j2", "---\n{% extends", "limits: {max_tool_calls: 5}\n---\n{% extends")
    project.write(
        "prompts/depot.j2",
        project.read("prompts/depot.j2")
        + "{% block cue %}({{ remaining.steps }} steps, {{ remaining.tool_calls }} calls)\n{{ cue }}{% endblock %}\n",
    )
    project.record("traces/a.trace", [" a\nAction: crates[3]", " b\nAction: crates(4)", " c\nAction: finish[41]"])
    found = [str(text).split("\n")[-2] for text in prompts(project.folder / "traces/a.trace")]
    assert found == ["(8 steps, 5 calls)", "(7 steps, 4 calls)", "(6 steps, 4 calls)"]


def test_the_turn_that_would_come_next(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.trace", "---\nprompt: prompts/depot.j2\n---\nQuestion: q\nAction: crates[3]\nObservation: 1\n")
    assert prompt_of(project.folder / "a.trace", 2).endswith("Observation: 1\nThought:")
    done = project.run("show a.trace --prompt 3")
    assert (done.code, done.err) == (2, "a.trace: there is no turn 3: with this prompt, the trace has 2\n")


def test_show_and_render_print_the_exact_prompt() -> None:
    expected = str(prompt_of(REFUND, 3)).encode()
    assert output("show", REFUND, "--prompt", 3, "--raw") == expected
    assert output("show", REFUND, "--prompt", 3) == expected + b"\n"
    assert output("render", "prompts/refund.j2", "--turn", 3, REFUND) == expected


def test_render_puts_another_prompt_before_a_trace(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.trace", "Question: q\nAction: crates[3]\nObservation: 1\nAction: finish[1]\n")
    text = prompt_of(project.folder / "a.trace", 2, Prompt.load(project.folder / "prompts/depot.j2"))
    assert "- Halls are numbered from 1 to 9." in text
    assert text.endswith("Question: q\nAction: crates[3]\nObservation: 1\nThought:")


def test_visible_marks_blanks_at_line_ends_and_the_end() -> None:
    assert with_marks("a b \n\tc\t\nThought:") == "a b·\n    c→\nThought:␄\n"
    assert output("render", "prompts/refund.j2", "--visible").decode().endswith("\nThought:␄\n")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("show none.trace", "none.trace: no such file"),
        ("show a.trace --step 9", "a.trace: there is no step 9: this trace has 1"),
        ("show a.trace --prompt 1", "a.trace: it names no prompt to put before it"),
        ("show a.trace --prompt 1 --step 1", "--step and --prompt exclude each other"),
        ("render prompts/depot.j2 --turn x a.trace", "a.trace: there is no turn 0"),
        ("render prompts/depot.j2 Why? --turn 1 a.trace", "--turn takes question and variables from the trace"),
    ],
)
def test_a_wrong_call_is_an_author_error(tmp_path: Path, command: str, message: str) -> None:
    project = Project(tmp_path)
    project.write("a.trace", "Question: q\nAction: crates[3]\nObservation: 1\n")
    done = project.run(command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(message)


def test_no_model_is_asked_for_a_prompt() -> None:
    """The script behind the prompts has no turns: a turn that was asked for would end in an error."""
    assert ScriptedModel(()).turns == ()
    assert len(list(prompts(REFUND))) == len(Trace.load(REFUND).steps)
