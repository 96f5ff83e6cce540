"""`author`: a person plays the model, through a pipe and on a real terminal; what comes of it replays."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from react_text import Labels, Trace, load_tools
from react_text.author import HELP, completions, usage_lines
from react_text.labels import NUMBERED, PLAIN

from .project import Project, Ran

ROOT = Path(__file__).parents[1]
QUESTION = "Question: How many crates are in hall 3?\n"
COUNTED = "Thought: I count.\nAction: crates[3]\nObservation: 41 crates in hall 3\n"
ANSWER = "Thought: 41.\nAction: finish[41]\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def author(project: Project, *lines: str, command: str = "author prompts/depot.j2", **env: str) -> Ran:
    return project.run(command, stdin="".join(f"{line}\n" for line in lines), env=env)


def body(text: str) -> str:
    """The turns of a trace, without its question."""
    return Trace.load(text.encode()).body.removeprefix(QUESTION)


# name of the behaviour -> (what is typed, the turns that come of it)
SESSIONS = {
    "a turn ends with its action": (["I count.", "Action: crates[3]", "41.", "Action: finish[41]"], COUNTED + ANSWER),
    "a thought may have several lines": (
        ["I count:", "all of them.", "Action: crates[3]", "41.", "Action: finish[41]"],
        COUNTED.replace("I count.", "I count:\nall of them.") + ANSWER,
    ),
    "a turn may be an action alone": (
        ["Action: crates[3]", "41.", "Action: finish[41]"],
        COUNTED.removeprefix("Thought: I count.\n") + ANSWER,
    ),
    "an argument may have several lines": (
        ["Action: weigh[a", "b]", "41.", "Action: finish[41]"],
        f"Action: weigh[a\nb]\nObservation: 3 kg\n{ANSWER}",
    ),
    "a malformed action earns what a model's would": (
        ["I count.", "Action: crates(3)", "Action: crates[3]", "41.", "Action: finish[41]"],
        "Thought: I count.\nAction: crates(3)\n"
        "Observation: Error: arguments stand in square brackets, not in parentheses. Write:\nAction: crates[3]\n"
        f"Action: crates[3]\nObservation: 41 crates in hall 3\n{ANSWER}",
    ),
    "an empty line ends a turn without an action": (
        ["I wonder.", "", "41.", "Action: finish[41]"],
        "Thought: I wonder.\n"
        "Observation: Error: the Action line is missing after the thought. Write one line of this form, then stop:\n"
        "Action: crates[hall]\n"
        "Tools: crates[hall: str]; weigh[crate: str, scale: int = 1]; fetch[crate]; label[crate]; ship[crate]; "
        f"finish[answer]\n{ANSWER}",
    ),
    "undo takes the last turn back": (
        ["Which?", "Action: crates[4]", ":undo", "I count.", "Action: crates[3]", "41.", "Action: finish[41]"],
        COUNTED + ANSWER,
    ),
    "undo takes the answer back": (
        ["I count.", "Action: crates[3]", "42.", "Action: finish[42]", ":undo", "41.", "Action: finish[41]"],
        COUNTED + ANSWER,
    ),
    "an observation by hand": (
        ["I count.", "Action: crates[3]", ":obs 40 crates", "41.", "Action: finish[41]"],
        COUNTED.replace("41 crates in hall 3", "40 crates") + ANSWER,
    ),
    "an observation by hand has as many lines as it likes": (
        ["I count.", "Action: crates[3]", ":obs", "40 crates,", "Action: nothing", ".", "41.", "Action: finish[41]"],
        COUNTED.replace("41 crates in hall 3", "40 crates,\nAction: nothing") + ANSWER,
    ),
    "commands that only show something": (
        [":help", ":prompt", ":undoo", "I count.", ":prompt", "Action: crates[3]", "41.", "Action: finish[41]"],
        COUNTED + ANSWER,
    ),
    "a line that only looks like a command is text": (
        [" :undo, he said.", "Action: finish[41]"],
        "Thought: :undo, he said.\nAction: finish[41]\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "turns"), SESSIONS.values(), ids=SESSIONS.keys())
def test_what_is_typed_becomes_a_trace_that_replays(project: Project, lines: list[str], turns: str) -> None:
    done = author(project, *lines, ":save traces/mine")
    assert done.code == 0, done
    assert done.out == "" and "Traceback" not in done.err
    assert body(project.read("traces/mine.trace")) == turns
    assert project.run("test traces").out == "1 as recorded\n"


@pytest.mark.parametrize(
    ("labels", "lines", "turns"),
    [
        (
            "numbered",
            ["I count.", "Action 1: crates(3)", "Action: crates[3]", "41.", "Action 3: finish[41]"],
            "Thought 1: I count.\nAction 1: crates(3)\n"
            "Observation 1: Error: arguments stand in square brackets, not in parentheses. Write:\nAction: crates[3]\n"
            "Action 2: crates[3]\nObservation 2: 41 crates in hall 3\nThought 3: 41.\nAction 3: finish[41]\n",
        ),
        (
            "{thought: 思考, action: 行动, observation: 观察}",
            ["数.", "行动: crates[3]", "41.", "行动: finish[41]"],
            "思考: 数.\n行动: crates[3]\n观察: 41 crates in hall 3\n思考: 41.\n行动: finish[41]\n",
        ),
    ],
    ids=["numbered", "own words"],
)
def test_other_labels(project: Project, labels: str, lines: list[str], turns: str) -> None:
    project.edit("prompts/depot.j2", "tools:", f"labels: {labels}\ntools:")
    done = author(project, *lines, ":save traces/mine")
    assert body(project.read("traces/mine.trace")) == turns, done
    assert project.run("test traces").out == "1 as recorded\n"


def test_the_transcript_is_shown_as_it_grows(project: Project) -> None:
    done = author(project, "I count.", "Action: crates[3]", "41.", "Action: finish[41]", ":save a.trace")
    assert done.err.startswith(f"{QUESTION}{COUNTED}{ANSWER}# success, 2 steps\n")


def test_what_was_not_saved_is_printed(project: Project) -> None:
    done = author(project, "I count.", "Action: crates[3]", ":quit")
    assert (done.code, done.changed) == (1, {})
    trace = Trace.load(done.out.encode())
    assert (trace.meta["stop_reason"], body(done.out)) == ("interrupted", COUNTED)
    assert author(project, ":quit").out == ""


def test_out_is_written_at_the_end_and_overwrites_nothing(project: Project) -> None:
    command = "author prompts/depot.j2 --out traces/mine.trace"
    done = author(project, "I count.", "Action: crates[3]", "41.", "Action: finish[41]", command=command)
    assert (done.code, done.out, body(project.read("traces/mine.trace"))) == (0, "", COUNTED + ANSWER)
    again = author(project, "Action: finish[1]", command=command)
    assert (again.code, again.changed) == (2, {})
    assert again.err == "traces/mine.trace: exists already; author overwrites nothing\n"


def test_save_overwrites_only_what_it_has_written_itself(project: Project) -> None:
    project.write("traces/other.trace", "---\nformat: 1\n---\n")
    done = author(project, "I count.", "Action: crates[3]", ":save traces/other", ":save traces/mine", "41.",
                  "Action: finish[41]", ":save traces/mine", ":save")  # fmt: skip
    assert "# traces/other.trace exists already: nothing was written\n" in done.err
    assert "# :save needs the name of a file\n" in done.err
    assert list(done.changed) == ["traces/mine.trace"] and done.out == ""
    assert body(project.read("traces/mine.trace")) == COUNTED + ANSWER


def test_a_secret_is_not_saved_but_still_there(project: Project) -> None:
    done = author(project, f"Action: finish[{'hf_' + 'a' * 34}]", ":save traces/mine")
    assert done.changed == {} and "Hugging Face token" in done.err
    assert "hf_aaa" in done.out


def test_question_and_variables(project: Project) -> None:
    project.edit("prompts/depot.j2", "tools:", "inputs: {place: here}\ntools:")
    command = 'author prompts/depot.j2 --question "How heavy is b?" -v place=there'
    done = author(project, "Action: finish[1 kg]", ":save a", command=command)
    trace = Trace.load(project.folder / "a.trace")
    assert trace.task == "Question: How heavy is b?\n"
    assert trace.meta["inputs"] == {"place": "there"}
    assert done.code == 0


def test_hand_written_observations_are_marked_until_they_are_taken_back(project: Project) -> None:
    author(
        project,
        "Action: crates[3]",
        ":obs 40",
        "Action: crates[4]",
        ":obs 50",
        ":undo",
        "Action: finish[40]",
        ":save a",
    )
    assert Trace.load(project.folder / "a.trace").meta["hand"] == ["1"]
    author(project, "Action: crates[3]", ":obs 40", ":undo", "Action: finish[40]", ":save b")
    assert "hand" not in Trace.load(project.folder / "b.trace").meta


def test_a_person_may_take_longer_than_a_model(project: Project) -> None:
    project.edit("prompts/depot.j2", "tools:", "limits: {max_seconds: 0.001}\ntools:")
    done = author(project, "Action: crates[3]", "Action: finish[41]", ":save a")
    assert (done.code, Trace.load(project.folder / "a.trace").meta["stop_reason"]) == (0, "success")


def test_lint_speaks_about_the_trace_so_far(project: Project) -> None:
    done = author(project, "Action: crates[3]", ":obs 40 crates", ":lint", ":quit")
    assert "RT409" in done.err
    assert not list(project.folder.rglob(".author-*"))


# -- :model and :edit


def test_the_model_proposes_and_the_person_decides(project: Project) -> None:
    project.write("script.trace", f"{QUESTION}Thought: I guess.\nAction: crates[9]\nObservation: x\n{ANSWER}")
    command = "author prompts/depot.j2 --model scripted:script.trace"
    done = author(project, ":model", "r", "I count.", "Action: crates[3]", ":model", "k", ":save a", command=command)
    assert "# scripted:script.trace proposes:\nI guess.\nAction: crates[9]\n" in done.err
    assert body(project.read("a.trace")) == COUNTED + ANSWER


def test_the_model_completes_a_turn_that_is_begun(project: Project) -> None:
    project.write("script.trace", f"{QUESTION}Action: crates[3]\nObservation: x\n{ANSWER}")
    command = "author prompts/depot.j2 --model scripted:script.trace"
    author(project, "I count.", ":model", "k", ":quit", ":save a", command=command)
    done = author(project, "I count.", ":model", "k", "41.", "Action: finish[41]", ":save a", command=command)
    assert done.code == 0
    assert body(project.read("a.trace")) == COUNTED + ANSWER


def test_without_a_model_a_proposal_is_refused_with_a_note(project: Project) -> None:
    done = author(project, ":model", "Action: finish[41]", ":model", ":save a", REACT_TEXT_PROBE="off")
    assert "# no model server found" in done.err and "# the run is over\n" in done.err
    assert done.code == 0


EDITOR = f'{sys.executable} -c "import sys,pathlib; p = pathlib.Path(sys.argv[1]); p.write_text({{}})"'


@pytest.mark.parametrize(
    ("lines", "edited", "turns"),
    [
        (["I count.", "Action: crates[4]", ":edit"], "p.read_text().replace('4', '3')", COUNTED),
        (["I cuont.", ":edit"], "p.read_text().replace('uo', 'ou') + chr(10) + 'Action: crates[3]'", COUNTED),
        ([":edit"], "'I count.' + chr(10) + 'Action: crates[3]'", COUNTED),
        (["I count.", "Action: crates[3]", ":edit"], "p.read_text()", COUNTED),
        (["I count.", "Action: crates[3]", ":edit"], "''", COUNTED),
    ],
    ids=["the last turn", "the turn so far", "a turn from nothing", "no change", "emptied"],
)
def test_edit_opens_the_editor(project: Project, lines: list[str], edited: str, turns: str) -> None:
    done = author(project, *lines, "41.", "Action: finish[41]", ":save a", EDITOR=EDITOR.format(edited))
    assert done.code == 0, done
    assert body(project.read("a.trace")) == turns + ANSWER


def test_an_editor_that_is_not_there_ends_nothing(project: Project) -> None:
    done = author(project, ":edit", "Action: finish[41]", ":save a", EDITOR="no-such-editor")
    assert "# EDITOR: no-such-editor: No such file or directory\n" in done.err
    assert done.code == 0


# -- from a run that failed


FAILED = ["I count.\nAction: crates[3]", "Which one?\nAction: crates[9]", "None.\nAction: finish[0]"]


def test_a_failed_run_is_repaired_from_one_of_its_steps(project: Project) -> None:
    own = project.record("traces/failed.trace", FAILED)
    command = "author --from traces/failed.trace --step 2 --out traces/repaired.trace"
    done = author(project, "41.", "Action: finish[41]", command=command)
    assert done.code == 0, done
    assert project.read("traces/failed.trace") == own
    assert body(project.read("traces/repaired.trace")) == COUNTED + ANSWER
    assert done.err.startswith(QUESTION + COUNTED + ANSWER)
    assert project.run("test traces").out == "2 as recorded\n"


def test_the_steps_before_it_are_not_made_again(project: Project) -> None:
    project.record("traces/failed.trace", FAILED)
    project.edit("traces/failed.trace", "41 crates in hall 3", "40 crates, by hand")
    project.edit("traces/failed.trace", "stop_reason", "hand: [1, 2]\nstop_reason")
    author(project, "40.", "Action: finish[40]", ":save a", command="author --from traces/failed.trace --step 2")
    trace = Trace.load(project.folder / "a.trace")
    assert (trace.steps[0].observation, trace.meta["hand"]) == ("40 crates, by hand", ["1"])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("author", "author needs a PROMPT, or --from FILE"),
        ("author prompts/depot.j2 --step 2", "--step needs --from FILE"),
        ("author prompts/depot.j2 --from traces/failed.trace", "--from takes prompt, question and variables from"),
        ("author --from traces/failed.trace", "traces/failed.trace: this run has finished; --step 1 to --step 3"),
        ("author --from traces/failed.trace --step 7", "--step must be from 1 to 3"),
        ("author prompts/dpot.j2", "prompts/dpot.j2: no such file (did you mean depot.j2?)"),
        ("author prompts/depot.j2 -v a=b", "variable 'a' is not used by this prompt"),
        ("author prompts/depot.j2 --out setup.cfg/a", "cannot be written"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_an_author_error(project: Project, command: str, message: str) -> None:
    project.record("traces/failed.trace", FAILED)
    done = author(project, "Action: finish[41]", command=command)
    assert (done.code, done.out, done.changed) == (2, "", {})
    assert message in done.err


# -- run --model human


def test_a_person_can_be_the_model_of_any_run(project: Project) -> None:
    done = author(project, "I count.", "Action: crates[3]", "41.", "Action: finish[41]",
                  command="run prompts/depot.j2 --model human --out a.trace")  # fmt: skip
    assert (done.code, done.out) == (0, "41\n")
    assert done.err.startswith(QUESTION + COUNTED + ANSWER)
    assert Trace.load(project.folder / "a.trace").meta["answer"] == "41"


def test_a_person_who_leaves_interrupts_the_run(project: Project) -> None:
    done = author(project, "I count.", "Action: crates[3]", command="run prompts/depot.j2 --model human --out a.trace")
    assert (done.code, done.out) == (1, "")
    assert "# interrupted, 1 steps\n# nobody is writing any more\n" in done.err
    assert Trace.load(project.folder / "a.trace").meta["stop_reason"] == "interrupted"


# -- the terminal


class Terminal:
    """A tmux session with a shell in a project; `type` sends keys, `wait` waits for a text on the screen."""

    def __init__(self, folder: Path) -> None:
        self.name = f"react-text-{uuid.uuid4().hex[:12]}"
        shell = f"env -u TMUX PYTHONPATH={ROOT} REACT_TEXT_PROBE=off PS1='ready> ' NO_COLOR=1 sh"
        self._tmux("new-session", "-d", "-s", self.name, "-x", "180", "-y", "60", "-c", str(folder), shell)

    def type(self, *keys: str) -> None:
        for key in keys:
            special = key in ("Enter", "Tab", "C-d", "C-c")
            self._tmux("send-keys", "-t", self.name, *([] if special else ["-l"]), key)

    def line(self, text: str) -> None:
        self.type(text, "Enter")

    def wait(self, text: str) -> str:
        """The screen, once `text` is on it."""
        for _ in range(300):
            screen = self._tmux("capture-pane", "-p", "-t", self.name)
            if text in screen:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{text!r} is not on the screen:\n{screen}")

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-L", self.name, *arguments], capture_output=True, encoding="utf-8", check=True)
        return done.stdout


@pytest.fixture
def terminal(project: Project) -> Iterator[Terminal]:
    opened = Terminal(project.folder)
    yield opened
    opened.close()


def test_a_session_on_a_terminal(project: Project, terminal: Terminal) -> None:
    """A malformed action, its correction with the help of the Tab key, a tool call, the answer, and :save."""
    terminal.line(f"{sys.executable} -m react_text author prompts/depot.j2")
    terminal.wait("Question: How many crates are in hall 3?\nThought:")
    terminal.line("I count.")
    terminal.line("Action: crates(3)")
    terminal.wait("Action: crates[3]\nThought:")  # the corrected line, and the cue of the next turn
    terminal.type("The brackets.", "Enter", "Tab")
    terminal.wait("The brackets.\nAction:")
    terminal.type("cr", "Tab")
    terminal.wait("\nAction: crates[\n")
    terminal.line("3]")
    terminal.wait("Observation: 41 crates in hall 3\nThought:")
    terminal.type("Which else?", "Enter", "Action: ", "Tab", "Tab")
    terminal.wait("weigh[crate: str, scale: int = 1]\nfetch[crate]\n")
    terminal.line("label[a]")
    terminal.wait("Observation: (no output)\n")
    terminal.line(":undo")
    terminal.wait("# turn 3 taken back\nThought:")
    terminal.line("There are 41.")
    terminal.line("Action: finish[41 crates]")
    terminal.wait(":save FILE, :undo or :quit>")
    terminal.line(":save traces/mine")
    terminal.wait("# saved traces/mine.trace\n")
    terminal.type("C-d")
    screen = terminal.wait("\nready>")
    assert "Traceback" not in screen
    assert body(project.read("traces/mine.trace")) == (
        "Thought: I count.\nAction: crates(3)\n"
        "Observation: Error: arguments stand in square brackets, not in parentheses. Write:\nAction: crates[3]\n"
        "Thought: The brackets.\nAction: crates[3]\nObservation: 41 crates in hall 3\n"
        "Thought: There are 41.\nAction: finish[41 crates]\n"
    )
    assert project.run("test traces").out == "1 as recorded\n"


def test_ctrl_c_on_a_terminal_loses_nothing(project: Project, terminal: Terminal) -> None:
    terminal.line(f"{sys.executable} -m react_text author prompts/depot.j2 --out a.trace; echo code $?")
    terminal.wait("Thought:")
    terminal.line("Action: crates[3]")
    terminal.wait("Observation: 41 crates in hall 3\nThought:")
    terminal.type("half a", "C-c")
    screen = terminal.wait("code 130")
    assert "# saved a.trace" in screen and "Traceback" not in screen
    assert body(project.read("a.trace")) == COUNTED.removeprefix("Thought: I count.\n")


def test_an_unsafe_tool_is_asked_about_on_a_terminal(project: Project, terminal: Terminal) -> None:
    project.edit(
        "tools/depot.py", 'raise AssertionError("a check must not do this")', 'return f"{crate} is on its way"'
    )
    project.write("a.trace", f"---\nprompt: prompts/depot.j2\n---\n{QUESTION}Action: ship[7]\nAction: finish[done]\n")
    terminal.line(f"{sys.executable} -m react_text fill a.trace")
    terminal.wait("step 1 calls ship[7], which is marked unsafe. Run it? [y/N]")
    terminal.line("y")
    terminal.wait("a.trace: filled step 1")
    assert "Observation: 7 is on its way\n" in project.read("a.trace")


# -- completion


@pytest.mark.parametrize(
    ("line", "labels", "found"),
    [
        ("", PLAIN, ["Action: "]),
        ("Act", PLAIN, ["Action: "]),
        ("I act", PLAIN, []),
        ("Action: ", PLAIN, [f"Action: {name}[" for name in ("crates", "weigh", "fetch", "label", "ship", "finish")]),
        ("Action: f", PLAIN, ["Action: fetch[", "Action: finish["]),
        ("Action: crates", PLAIN, ["Action: crates["]),
        ("Action: crates[", PLAIN, ["Action: crates["]),
        ("Action: crates[3", PLAIN, []),
        ("Action: z", PLAIN, []),
        ("", NUMBERED, ["Action 2: "]),
        ("Action 2: w", NUMBERED, ["Action 2: weigh["]),
        ("", Labels(action="行动"), ["行动: "]),
        (":s", PLAIN, [":save"]),
        (":", PLAIN, [f":{name}" for name in HELP]),
    ],
)  # fmt: skip
def test_completion(project: Project, line: str, labels: Labels, found: list[str]) -> None:
    assert completions(line, load_tools(project.folder / "tools/depot.py"), labels, 2) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Action: weigh[", ["weigh[crate: str, scale: int = 1]"]),
        ("Action: weigh[a, ", ["weigh[crate: str, scale: int = 1]"]),
        ("Action: f", ["fetch[crate]", "finish[answer]"]),
        ("Action: none[", []),
    ],
)
def test_usage_lines(project: Project, line: str, found: list[str]) -> None:
    assert usage_lines(line, load_tools(project.folder / "tools/depot.py"), PLAIN, 2) == found
