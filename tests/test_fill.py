"""`fill`: observations from the real tools, in the file where they were missing, beside it where others change."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Trace
from react_text.fill import fill, unfilled_turns

from .project import Project

HEAD = "---\n# by hand\nformat: 1\nprompt: prompts/depot.j2 # ours\n---\n"
QUESTION = "Question: How many crates are in hall 3?\n"
END = "Thought: 41.\nAction: finish[41]\n"
CRATES = "Thought: I count.\nAction: crates[3]\n"
COUNTED = f"{CRATES}Observation: 41 crates in hall 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def written(project: Project, body: str, head: str = HEAD) -> Path:
    project.write("traces/a.trace", f"{head}{QUESTION}{body}")
    return project.folder / "traces" / "a.trace"


def body_of(project: Project, name: str = "traces/a.trace") -> str:
    return Trace.load(project.folder / name).body.removeprefix(QUESTION)


# name of the behaviour -> (what was written by hand, what it becomes)
BODIES = {
    "an observation that is missing": (CRATES + END, COUNTED + END),
    "an observation that is empty": (f"{CRATES}Observation:\n{END}", COUNTED + END),
    "a last turn without one": (CRATES, COUNTED),
    "turns without thoughts": (
        "Action: crates[3]\nAction: crates[4]\nAction: finish[58]\n",
        "Action: crates[3]\nObservation: 41 crates in hall 3\nAction: crates[4]\n"
        "Observation: 17 crates in hall 4\nAction: finish[58]\n",
    ),
    "a thought of several lines": (
        f"Thought: I count.\nIn hall 3.\nAction: crates[3]\n{END}",
        f"Thought: I count.\nIn hall 3.\nAction: crates[3]\nObservation: 41 crates in hall 3\n{END}",
    ),
    "an unknown tool": (
        f"Thought: I count.\nAction: crate[3]\n{END}",
        "Thought: I count.\nAction: crate[3]\n"
        'Observation: Error: there is no tool called "crate". Did you mean crates?\n'
        "Tools: crates[hall: str]; weigh[crate: str, scale: int = 1]; fetch[crate]; label[crate]; ship[crate]; "
        f"finish[answer]\n{END}",
    ),
    "arguments that do not fit": (
        f"Thought: I count.\nAction: crates[0]\n{END}",
        "Thought: I count.\nAction: crates[0]\n"
        "Observation: Error: hall must be str matching [1-9], not '0'. Nothing was done. Usage: crates[hall: str] (str "
        f"matching [1-9])\n{END}",
    ),
    "a malformed action": (
        f"Thought: I count.\nAction: crates(3)\n{END}",
        "Thought: I count.\nAction: crates(3)\n"
        "Observation: Error: arguments stand in square brackets, not in parentheses. Write:\nAction: crates[3]\n"
        f"{END}",
    ),
    "a tool that raises": (
        f"Thought: I fetch.\nAction: fetch[7]\n{END}",
        "Thought: I fetch.\nAction: fetch[7]\nObservation: Error: fetch failed with LookupError: no crate 7\n"
        f"Try other arguments or another tool, or finish with what is known.\n{END}",
    ),
    "a tool with nothing to say": (
        f"Thought: I read.\nAction: label[7]\n{END}",
        f"Thought: I read.\nAction: label[7]\nObservation: (no output)\n{END}",
    ),
    "an answer without an answer": (
        "Action: finish[]\n",
        "Action: finish[]\n"
        "Observation: Error: the answer is missing. Give the answer inside the brackets of finish[...].\n",
    ),
    "the same call twice": (
        f"{CRATES}{CRATES}{END}",
        f"{COUNTED}{CRATES}"
        "Observation: Error: crates was already called with these arguments in step 1 and was not run again. "
        "Its result is above.\n"
        "Use another tool (weigh, fetch, label, ship), other arguments, or finish with what is known.\n"
        f"{END}",
    ),
    "nothing at all": (COUNTED + END, COUNTED + END),
}


@pytest.mark.parametrize(("body", "filled"), BODIES.values(), ids=BODIES.keys())
def test_what_is_missing_is_written_into_the_file(project: Project, body: str, filled: str) -> None:
    written(project, body)
    done = project.run("fill traces/a.trace")
    assert done.code == 0, done
    assert body_of(project) == filled
    assert list(done.changed) == ["traces/a.trace"] * (body != filled)
    assert "# by hand\n" in project.read("traces/a.trace") and " # ours\n" in project.read("traces/a.trace")
    again = project.run("fill traces/a.trace")
    assert (again.code, again.changed) == (0, {})
    assert "no observation is missing" in again.out


@pytest.mark.parametrize("name", BODIES)
def test_a_filled_trace_replays_as_a_golden(project: Project, name: str) -> None:
    written(project, BODIES[name][0])
    project.run("fill traces/a.trace")
    done = project.run("test traces")
    assert (done.code, done.out) == (0, "1 as recorded\n")


@pytest.mark.parametrize(
    ("labels", "turns", "filled"),
    [
        (
            "numbered",
            "Thought 1: I count.\nAction 1: crates[3]\nAction 2: crates[4]\nThought 3: 41.\nAction 3: finish[41]\n",
            "Thought 1: I count.\nAction 1: crates[3]\nObservation 1: 41 crates in hall 3\nAction 2: crates[4]\n"
            "Observation 2: 17 crates in hall 4\nThought 3: 41.\nAction 3: finish[41]\n",
        ),
        (
            "{thought: 思考, action: 行动, observation: 观察}",
            "思考: 数.\n行动: crates[3]\n思考: 41.\n行动: finish[41]\n",
            "思考: 数.\n行动: crates[3]\n观察: 41 crates in hall 3\n思考: 41.\n行动: finish[41]\n",
        ),
    ],
    ids=["numbered", "own words"],
)
def test_other_labels(project: Project, labels: str, turns: str, filled: str) -> None:
    project.edit("prompts/depot.j2", "tools:", f"labels: {labels}\ntools:")
    written(project, turns, HEAD.replace("format: 1\n", f"format: 1\nlabels: {labels}\n"))
    assert project.run("fill traces/a.trace").code == 0
    assert body_of(project) == filled
    assert project.run("test traces").out == "1 as recorded\n"


def test_lines_that_look_like_labels_get_a_span(project: Project) -> None:
    project.edit("tools/depot.py", 'return ""', 'return "for:\\nThought: of you\\nObservation: none"')
    written(project, f"Thought: I read.\nAction: label[7]\n{END}")
    project.run("fill traces/a.trace")
    trace = Trace.load(project.folder / "traces/a.trace")
    assert trace.spans.observations == {1: 3}
    assert trace.steps[0].observation == "for:\nThought: of you\nObservation: none"
    assert len(trace.steps) == 2


def test_an_observation_with_a_line_of_an_action_is_kept_from_the_next_turn(project: Project) -> None:
    """The engine's own error ends in a corrected line: it must not be read as the turn that follows."""
    written(project, f"Thought: I count.\nAction: crates(3)\nAction: crates[3]\n{END}")
    project.run("fill traces/a.trace")
    trace = Trace.load(project.folder / "traces/a.trace")
    assert [step.tool for step in trace.steps] == [None, "crates", "finish"]
    assert trace.outcomes == {1: "mistake parentheses"}


def test_other_changes_go_to_a_pending_file_and_nothing_behind_them_is_filled(project: Project) -> None:
    written(project, f"{CRATES}Observation: 12 crates\nThought: And 4?\nAction: crates[4]\n{END}")
    done = project.run("fill traces/a.trace")
    assert done.code == 1
    assert list(done.changed) == ["traces/a.trace.new"]
    assert "step 1 answers differently: the turns behind it were written for the old answer" in done.out
    assert COUNTED in project.read("traces/a.trace.new")
    assert "hall 4" not in project.read("traces/a.trace.new")
    assert project.run("accept traces/a.trace").code == 0
    done = project.run("fill traces/a.trace")
    assert (done.code, list(done.changed)) == (0, ["traces/a.trace"])
    assert "17 crates in hall 4" in project.read("traces/a.trace")


def test_what_was_missing_before_a_difference_is_filled_in_place(project: Project) -> None:
    written(project, f"{CRATES}Thought: And 4?\nAction: crates[4]\nObservation: 5 crates\nAction: label[a]\n{END}")
    done = project.run("fill traces/a.trace")
    assert set(done.changed) == {"traces/a.trace", "traces/a.trace.new"}
    own, pending = project.read("traces/a.trace"), project.read("traces/a.trace.new")
    assert COUNTED in own and "Observation: 5 crates\n" in own
    assert COUNTED in pending and "Observation: 17 crates in hall 4\n" in pending


def test_all_makes_every_observation_anew(project: Project) -> None:
    written(
        project, f"{CRATES}Observation: 12 crates\nThought: And 4?\nAction: crates[4]\nObservation: 5 crates\n{END}"
    )
    own = project.read("traces/a.trace")
    done = project.run("fill traces/a.trace --all")
    assert list(done.changed) == ["traces/a.trace.new"]
    assert project.read("traces/a.trace.new") == own.replace("12 crates", "41 crates in hall 3").replace(
        "5 crates", "17 crates in hall 4"
    )


def test_a_turn_that_the_engine_keeps_otherwise_is_a_change(project: Project) -> None:
    written(project, f"Thought: I count.\nAction: crates[3] and so on\n{END}")
    done = project.run("fill traces/a.trace")
    assert set(done.changed) == {"traces/a.trace", "traces/a.trace.new"}
    assert "Action: crates[3] and so on\nObservation: 41 crates in hall 3\n" in project.read("traces/a.trace")
    assert COUNTED in project.read("traces/a.trace.new")
    assert "step 1: the engine keeps another text of this turn" in done.out


def test_step_runs_no_other_tool(project: Project) -> None:
    written(project, f"{CRATES}Observation: 12 crates\nThought: And 4?\nAction: crates[4]\n{END}")
    done = project.run("fill traces/a.trace --step 2")
    assert (done.code, list(done.changed)) == (0, ["traces/a.trace"])
    assert "Observation: 12 crates\n" in project.read("traces/a.trace")
    assert "Observation: 17 crates in hall 4\n" in project.read("traces/a.trace")
    done = project.run("fill traces/a.trace --step 1")
    assert list(done.changed) == ["traces/a.trace.new"]


def test_observations_by_hand_are_left_alone(project: Project) -> None:
    head = HEAD.replace("# ours\n", "# ours\nhand: [1]\n")
    written(project, f"{CRATES}Observation: 12 crates\nThought: And 4?\nAction: crates[4]\n{END}", head)
    assert project.run("fill traces/a.trace --all").code == 0
    assert "Observation: 12 crates\n" in project.read("traces/a.trace")
    assert "Observation: 17 crates in hall 4\n" in project.read("traces/a.trace")


SHIPS = f"{CRATES}Thought: Away.\nAction: ship[7]\nThought: And 4?\nAction: crates[4]\n{END}"


def test_an_unsafe_tool_is_not_run_unasked(project: Project) -> None:
    """Its function would raise an AssertionError, which would be in the trace."""
    written(project, SHIPS)
    done = project.run("fill traces/a.trace", stdin="y\n")  # a pipe is nobody's yes
    assert done.code == 1
    assert "step 2 was not run (unsafe): nothing behind it was filled" in done.out
    own = project.read("traces/a.trace")
    assert COUNTED in own and "a check must not" not in own and "hall 4" not in own


def test_yes_runs_an_unsafe_tool(project: Project) -> None:
    project.edit(
        "tools/depot.py", 'raise AssertionError("a check must not do this")', 'return f"{crate} is on its way"'
    )
    written(project, SHIPS)
    assert project.run("fill traces/a.trace --yes").code == 0
    assert body_of(project).count("Observation:") == 3
    assert "Observation: 7 is on its way\n" in body_of(project)


def test_a_person_is_asked_once_for_each_unsafe_call(project: Project) -> None:
    project.edit(
        "tools/depot.py", 'raise AssertionError("a check must not do this")', 'return f"{crate} is on its way"'
    )
    path = written(project, "Action: ship[7]\nAction: ship[8]\nAction: finish[end]\n")
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return "[7]" in question

    filled = fill(path, confirm=confirm)
    assert asked == [
        "step 1 calls ship[7], which is marked unsafe. Run it?",
        "step 2 calls ship[8], which is marked unsafe. Run it?",
    ]
    assert (filled.steps, filled.notes) == ([1], ["step 2 was not run (unsafe): nothing behind it was filled"])


def test_an_unsafe_step_with_an_observation_stays_as_it_is(project: Project) -> None:
    written(project, f"Action: ship[7]\nObservation: gone\n{CRATES}{END}")
    done = project.run("fill traces/a.trace")
    assert done.code == 1 and "step 1 was not run (unsafe): it stays as it is" in done.out
    assert body_of(project) == f"Action: ship[7]\nObservation: gone\n{COUNTED}{END}"


@pytest.mark.parametrize(
    ("body", "code", "lines"),
    [
        (COUNTED + END, 0, ["traces/a.trace: the tools answer as it says"]),
        (CRATES + END, 1, ["traces/a.trace: step 1 has no observation yet"]),
        (
            f"{CRATES}Observation: 12 crates\n{END}",
            1,
            [
                "traces/a.trace: step 1: the observation is another one now",
                "    - Observation: 12 crates",
                "    + Observation: 41 crates in hall 3",
            ],
        ),
    ],
    ids=["as it is", "missing", "drift"],
)
def test_check_reports_drift_and_writes_nothing(project: Project, body: str, code: int, lines: list[str]) -> None:
    written(project, body)
    done = project.run("fill traces/a.trace --check")
    assert (done.code, done.changed) == (code, {})
    for line in lines:
        assert line in done.out.split("\n")


def test_tools_can_stand_in_for_those_of_the_prompt(project: Project) -> None:
    project.write("other.py", "def crates(hall):\n    return 'none'\n")
    project.write("traces/a.trace", f"{QUESTION}{CRATES}{END}")
    done = project.run("fill traces/a.trace --tools other.py")
    assert done.code == 0
    assert "Observation: none\n" in project.read("traces/a.trace")


def test_state_goes_from_step_to_step(project: Project) -> None:
    """Each tool runs once, in the order of the trace, although every step is a run of its own."""
    project.write(
        "tools/depot.py",
        "_seen = []\n\ndef note(text: str) -> str:\n    _seen.append(text)\n    return ', '.join(_seen)\n",
    )
    written(project, "Action: note[a]\nAction: note[b]\nAction: note[c]\nAction: finish[end]\n")
    project.run("fill traces/a.trace")
    assert [step.observation for step in Trace.load(project.folder / "traces/a.trace").steps] == [
        "a", "a, b", "a, b, c", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "command", "message"),
    [
        ("---\nformat: 1\n---\n", "", "traces/a.trace: it names no prompt: add `prompt: FILE`"),
        (HEAD.replace("depot.j2", "dpot.j2"), "", "no prompt prompts/dpot.j2 (did you mean prompts/depot.j2?)"),
        (HEAD.replace("format: 1", "format: 1\nlabels: numbered"), "", "the labels of the trace are not those of its"),
        ("---\nlabels: arrow\nprompt: prompts/depot.j2\n---\n", "", "the trace of a text game calls no tools"),
        (HEAD, "--step 9", "there is no step 9: this trace has 2"),
        (HEAD, "--step 1 --all", "--step and --all exclude each other"),
        (HEAD, "--tools none.py", "none.py: no such tools module"),
        (HEAD.replace("# ours", "\nsettings: {max_step: 4}"), "", "'max_step' (did you mean max_steps?)"),
        (HEAD.replace("# ours", "\nhand: [a]"), "", "traces/a.trace: hand must list the numbers of steps, not 'a'"),
    ],
    ids=["no prompt", "a wrong prompt", "other labels", "a text game", "no such step", "step and all", "no tools",
         "settings", "hand"],
)  # fmt: skip
def test_a_trace_that_cannot_be_filled_is_left_alone(project: Project, head: str, command: str, message: str) -> None:
    written(project, CRATES + END, head)
    done = project.run(f"fill traces/a.trace {command}")
    assert (done.code, done.changed) == (2, {})
    assert message in done.err


def test_a_secret_is_not_written(project: Project) -> None:
    project.edit("tools/depot.py", 'return ""', 'return "hf_" + "a" * 34')
    written(project, f"Action: label[7]\n{END}")
    done = project.run("fill traces/a.trace")
    assert (done.code, done.changed) == (2, {})
    assert "what looks like a Hugging Face token" in done.err


def test_turns_are_told_apart_by_their_labels_and_their_spans() -> None:
    first = "Thought: a\nb\nAction: w[x\nThought: no turn]"
    body = f"{QUESTION}{first}\nThought: c\nAction: w[y]\nObservation: o\nThought: d\n"
    assert [turn.text for turn in unfilled_turns(Trace.load(body.encode()))] == [
        "Thought: a\nb\nAction: w[x", "Thought: no turn]\nThought: c\nAction: w[y]", "Thought: d",
    ]  # fmt: skip
    declared = Trace.load(f"---\nturns: {{1: 4}}\n---\n{body}".encode())
    assert [turn.text for turn in unfilled_turns(declared)] == [first, "Thought: c\nAction: w[y]", "Thought: d"]
