"""The commands around goldens: nothing is overwritten before a person has said so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from react_text import AuthorError, Trace
from react_text.golden import Case
from react_text.review import Pending, updated

from .project import DEPOT, Project

TURNS = [" Hall 3.\nAction: crates[3]", " Known.\nAction: finish[41 crates]"]
LOST = [" x\nAction: crate[3]", *TURNS]
OBSERVE = '{%- macro unknown_tool(e) -%}Error: no tool is called "{{ e.tool }}".{%- endmacro -%}\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two goldens. `drift` makes the tools answer otherwise, `reword` the engine."""
    made = Project(tmp_path)
    made.record("traces/hall.trace", TURNS)
    made.record("traces/lost.trace", LOST)
    return made


def drift(project: Project) -> None:
    project.edit("tools/depot.py", "41", "42")


def reword(project: Project) -> None:
    project.write("prompts/observe.j2", OBSERVE)


def new_version(project: Project, old: str = "41 crates in", new: str = "42 crates in") -> str:
    return project.read("traces/hall.trace").replace(old, new)


def test_goldens_as_recorded(project: Project) -> None:
    ran = project.run("test")
    assert (ran.code, ran.out, ran.err, ran.changed) == (0, "2 as recorded\n", "", {})
    assert project.run("test --tools").out == "2 as recorded\n"


def test_a_difference_is_shown_and_nothing_is_written(project: Project) -> None:
    drift(project)
    assert project.run("test").code == 0
    ran = project.run("test --tools")
    assert ran.code == 1
    assert ran.changed == {}
    line = Trace.load(project.folder / "traces" / "hall.trace").line_of(1, observation=True)
    assert ran.out.startswith(
        f"traces/hall.trace:{line}: step 1: crates answers differently; same path; same answer [tool]\n"
    )
    assert "    - Observation: 41 crates in hall 3\n    + Observation: 42 crates in hall 3\n" in ran.out
    assert ran.out.endswith("\n0 as recorded, 2 differ (2 tool)\n")


def test_single_files_can_be_named(project: Project) -> None:
    drift(project)
    assert project.run("test --tools traces/hall.trace").out.endswith("\n0 as recorded, 1 differ (1 tool)\n")


def test_examples_are_no_tests(project: Project) -> None:
    project.edit("traces/lost.trace", "format: 1\n", "format: 1\ntest: false\n")
    project.edit("traces/lost.trace", "prompt: prompts/depot.j2\n", "")
    assert project.run("test").out == "1 as recorded, 1 example (test: false)\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("test nowhere", "nowhere: no such file"),
        ("test traces/hal.trace", "traces/hal.trace: no such file (did you mean hall.trace?)"),
        ("test tools", "tools: no traces here"),
        ("review nowhere", "nowhere: no such file"),
        ("accept traces/hall.trace", "traces/hall.trace: nothing is pending here"),
        ("reject traces/hall.trace.new", "traces/hall.trace.new: no such file"),
        ("accept traces --only wordings", "there is no category 'wordings' (did you mean wording?)"),
        ("accept", "required"),
        ("affected", "required"),
    ],
)
def test_a_wrong_call_has_exit_code_2(project: Project, command: str, message: str) -> None:
    ran = project.run(command)
    assert ran.code == 2, str(ran)
    assert message in ran.err
    assert ran.changed == {}


def test_a_golden_that_cannot_be_read_is_an_error_and_the_others_are_checked_all_the_same(project: Project) -> None:
    project.edit("traces/hall.trace", "format: 1", "formt: 1")
    ran = project.run("test")
    assert ran.code == 2
    assert ran.err == "traces/hall.trace:2: unknown key 'formt' (did you mean format?)\n"
    assert ran.out == "1 as recorded, 1 cannot be checked\n"


def test_update_writes_pending_files_and_no_golden(project: Project) -> None:
    drift(project)
    ran = project.run("test --tools --update")
    assert ran.code == 1
    assert set(ran.changed) == {"traces/hall.trace.new", "traces/lost.trace.new"}
    assert ran.changed["traces/hall.trace.new"] == new_version(project)
    assert ran.out.endswith("2 differ (2 tool), 2 pending (react-text review)\n")
    drift_undone = project.run("test --update")
    assert drift_undone.changed == {"traces/hall.trace.new": None, "traces/lost.trace.new": None}
    assert drift_undone.code == 0


def test_update_adds_facts_that_the_front_matter_lacks(project: Project) -> None:
    whole = project.read("traces/lost.trace")
    kept = [line for line in whole.split("\n") if not line.startswith(("prompt_hash:", "outcomes:"))]
    project.write("traces/lost.trace", "\n".join(kept))
    ran = project.run("test --update")
    assert ran.code == 0
    assert "traces/lost.trace: as recorded, but its front matter has no prompt_hash and no outcomes yet" in ran.out
    assert ran.changed == {"traces/lost.trace.new": whole}


def test_pending_is_listed_for_people_and_scripts(project: Project) -> None:
    assert project.run("pending").out == ""
    assert json.loads(project.run("pending --json").out) == []
    drift(project)
    project.run("test --tools --update traces/hall.trace")
    ran = project.run("pending")
    assert ran.out == "traces/hall.trace.new: step 1: crates answers differently; same path; same answer [tool]\n"
    assert json.loads(project.run("pending --json").out) == [
        {
            "golden": "traces/hall.trace",
            "pending": "traces/hall.trace.new",
            "story": "step 1: crates answers differently; same path; same answer",
            "categories": ["tool"],
            "changes": [{"category": "tool", "step": 1, "message": "crates answers differently"}],
        }
    ]


def test_accepting_makes_it_the_golden(project: Project) -> None:
    drift(project)
    project.run("test --tools --update")
    expected = new_version(project)
    ran = project.run("accept traces/hall.trace")
    assert (ran.code, ran.out) == (0, "accepted traces/hall.trace\n")
    assert ran.changed == {"traces/hall.trace": expected, "traces/hall.trace.new": None}
    assert project.run("accept traces").code == 0
    assert project.run("test --tools").code == 0


def test_rejecting_removes_it(project: Project) -> None:
    drift(project)
    project.run("test --tools --update")
    ran = project.run("reject traces/hall.trace.new traces/lost.trace")
    assert ran.changed == {"traces/hall.trace.new": None, "traces/lost.trace.new": None}
    assert ran.out == "rejected traces/hall.trace\nrejected traces/lost.trace\n"


def test_only_harmless_categories_are_waved_through(project: Project) -> None:
    drift(project)
    reword(project)
    assert "1 differ (1 wording)" in project.run("test --update").out
    project.run("test --tools --update traces/hall.trace")
    ran = project.run("accept traces --only wording,format")
    assert ran.code == 1
    assert ran.out == "kept pending: traces/hall.trace (tool)\naccepted traces/lost.trace\n"
    assert set(ran.changed) == {"traces/lost.trace", "traces/lost.trace.new"}


def test_only_looks_at_all_that_would_change_whatever_match_lets_pass(project: Project) -> None:
    project.edit("traces/lost.trace", "format: 1\n", "format: 1\nmatch: actions\nexpect: {max_steps: 2}\n")
    reword(project)
    drift(project)
    project.run("test --tools --update traces/lost.trace")
    ran = project.run("accept traces --only wording")
    assert ran.out == "kept pending: traces/lost.trace (wording, tool)\n"


def test_a_trace_without_a_golden_is_new_until_it_is_accepted(project: Project) -> None:
    text = project.read("traces/hall.trace")
    project.write("traces/more.trace.new", text)
    assert project.run("pending").out.endswith("[new]\n")
    assert project.run("accept traces --only tool").changed == {}
    assert project.run("accept traces/more.trace").changed == {"traces/more.trace.new": None, "traces/more.trace": text}


REVIEWS: list[tuple[str, int, set[str], str]] = [
    ("a\nr\n", 0, {"hall", "hall.new", "lost.new"}, "nothing is pending\n"),
    ("accept\nskip\n", 1, {"hall", "hall.new"}, "1 left pending\n"),
    ("s\nA\n", 1, {"lost", "lost.new"}, "1 left pending\n"),
    ("q\n", 1, set(), "2 left pending\n"),
    ("", 1, set(), "2 left pending\n"),
    ("a\n", 1, {"hall", "hall.new"}, "1 left pending\n"),
    ("what?\n\nr\nr\n", 0, {"hall.new", "lost.new"}, "nothing is pending\n"),
]


@pytest.mark.parametrize(("answers", "code", "changed", "end"), REVIEWS)
def test_a_review_reads_its_answers_from_stdin(
    project: Project, answers: str, code: int, changed: set[str], end: str
) -> None:
    drift(project)
    project.run("test --tools --update")
    ran = project.run("review", stdin=answers)
    names = {f"traces/{name.partition('.')[0]}.trace{'.new' * name.endswith('.new')}" for name in changed}
    assert (ran.code, set(ran.changed)) == (code, names), str(ran)
    assert ran.out.startswith(
        "1/2 traces/hall.trace: step 1: crates answers differently; same path; same answer [tool]\n"
    )
    assert ran.out.endswith(end)
    assert "[a]ccept, [r]eject, [s]kip, [e]dit, [q]uit? " in ran.err


def test_a_review_with_nothing_pending(project: Project) -> None:
    ran = project.run("review")
    assert (ran.code, ran.out) == (0, "nothing is pending\n")


def test_a_review_can_edit_before_it_accepts(project: Project, tmp_path: Path) -> None:
    drift(project)
    project.run("test --tools --update traces/hall.trace")
    editor = project.folder / "editor.py"
    editor.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text().replace('42 crates', '43 crates'))\n"
    )
    ran = project.run("review", stdin="e\na\n", env={"EDITOR": f"{sys.executable} {editor}"})
    assert "+ Observation: 42 crates" in ran.out and "+ Observation: 43 crates" in ran.out
    assert ran.changed["traces/hall.trace"] == new_version(project, "42 crates in", "43 crates in")
    assert "43 crates in" in project.read("traces/hall.trace")


def test_what_an_edit_has_broken_is_not_accepted(project: Project) -> None:
    drift(project)
    project.run("test --tools --update traces/hall.trace")
    project.edit("traces/hall.trace.new", "format: 1", "form: 1")
    ran = project.run("review", stdin="a\ns\n")
    assert ran.code == 1 and ran.changed == {}
    assert "traces/hall.trace.new:2: unknown key 'form' (did you mean format?)" in ran.err
    assert project.run("accept traces").code == 2
    assert project.run("reject traces").changed == {"traces/hall.trace.new": None}


def test_an_editor_that_does_not_exist_is_named(project: Project) -> None:
    drift(project)
    project.run("test --tools --update")
    ran = project.run("review", stdin="e\n", env={"EDITOR": "no-such-editor"})
    assert (ran.code, ran.err.endswith("EDITOR: no-such-editor: No such file or directory\n")) == (2, True)


def test_another_program_can_show_the_difference(project: Project) -> None:
    drift(project)
    project.run("test --tools --update traces/hall.trace")
    shows = project.folder / "shows.py"
    shows.write_text("import pathlib, sys\npathlib.Path('shown').write_text(' '.join(sys.argv[1:]))\n")
    ran = project.run("review", stdin="q\n", env={"RT_DIFF": f"{sys.executable} {shows}"})
    assert ran.changed == {"shown": "traces/hall.trace traces/hall.trace.new"}
    assert "- Observation" not in ran.out


WRITING = ["test --update", "review", "accept traces", "reject traces", "prune --delete"]


@pytest.mark.parametrize("command", WRITING)
def test_nothing_is_changed_in_ci(project: Project, command: str) -> None:
    drift(project)
    project.run("test --tools --update")
    ran = project.run(command, env={"CI": "true"}, stdin="a\na\n")
    assert (ran.code, ran.changed) == (2, {})
    assert "is refused where CI is set" in ran.err
    assert project.run("test", env={"CI": "true"}).code == 0
    assert project.run("pending", env={"CI": "true"}).code == 0


@pytest.mark.parametrize("command", WRITING[:-1])
def test_force_allows_it_in_ci(project: Project, command: str) -> None:
    drift(project)
    project.run("test --tools --update")
    assert project.run(f"{command} --force", env={"CI": "true"}, stdin="a\na\n").changed
    drift_again = project.run("test --tools --update", env={"CI": "0"})
    assert "refused" not in drift_again.err


def test_secrets_are_refused_when_a_pending_file_is_written(project: Project) -> None:
    project.edit("tools/depot.py", "crates in hall {hall}", "crates, key of-the-depot-1")
    ran = project.run("test --tools --update traces/hall.trace", env={"DEPOT_API_KEY": "of-the-depot-1"})
    assert (ran.code, ran.changed) == (2, {})
    assert "traces/hall.trace.new:" in ran.err and "DEPOT_API_KEY" in ran.err
    assert "of-the-depot-1" not in ran.err


def test_secrets_are_refused_when_a_run_is_saved_and_the_answer_is_shown_all_the_same(project: Project) -> None:
    model, out = "scripted:traces/hall.trace", "traces/new.trace"
    env = {"HALL_TOKEN": "crates in hall 3", "XDG_STATE_HOME": "state", "REACT_TEXT_PROBE": "off"}
    ran = project.run(f"run prompts/depot.j2 --model {model} --out {out} --log run.jsonl --quiet", env=env)
    assert (ran.code, ran.out) == (2, "41 crates\n")
    assert f"{out}:13: this line would hold the value of the environment variable HALL_TOKEN" in ran.err
    assert out not in ran.changed


def test_what_is_written_is_redacted(project: Project) -> None:
    project.edit("tools/depot.py", "crates in hall {hall}", "crates on 2026-07-01")
    project.edit("traces/hall.trace", "format: 1\n", "format: 1\nredact: [date]\n")
    project.run("test --tools --update traces/hall.trace")
    assert "Observation: 41 crates on <date1>\n" in project.read("traces/hall.trace.new")
    project.run("accept traces")
    assert project.run("test --tools traces/hall.trace").code == 0


# -- the front matter of an update


def test_an_update_keeps_the_authors_keys_their_order_and_comments() -> None:
    golden = Trace.load(
        b"---\n# why this golden is here\nformat: 1\nmatch: actions  # loose\nprompt: p.j2\n"
        b"answer: >\n  old\n  answer\n"
        b"# about the end\noutcomes:\n  1: raised X\n  # within\n  2: empty\n\nexpect: {max_steps: 3}\n---\n"
        b"Question: x\nAction: finish[b]\n"
    )
    turns = [("Thought: q\nAction: f[1]", "Thought: y\nAction: z[]"), ("Action: finish[new]", None)]
    meta = {"answer": "new", "prompt_hash": "abcd", "tools": ["f"], "stop_reason": "success", "outcomes": {2: "empty"}}
    run = Trace.record("Question: x\n", turns, meta=meta)
    assert updated(golden, run).decode() == (
        "---\n# why this golden is here\nformat: 1\nmatch: actions  # loose\nprompt: p.j2\nprompt_hash: abcd\n"
        "answer: new\nstop_reason: success\n# about the end\noutcomes: {2: empty}\n\n"
        "expect: {max_steps: 3}\nspans: {1: 2}\n---\n" + run.body
    )


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "traces").glob("*.trace")), ids=lambda p: p.stem)
def test_updating_a_golden_that_is_reproduced_changes_nothing(path: Path) -> None:
    case = Case(path)
    assert updated(case.golden, case.replay().actual) == path.read_bytes()


def test_a_pending_trace_that_cannot_be_compared_is_an_error(project: Project) -> None:
    project.write("traces/hall.trace.new", "---\n---")
    with pytest.raises(AuthorError):
        Pending(project.folder / "traces" / "nothing.trace.new").accept()


# -- what depends on what


def test_affected_lists_the_goldens_of_a_file_and_which_still_replay(project: Project) -> None:
    both = "traces/hall.trace: replays byte for byte\ntraces/lost.trace: replays byte for byte\n"
    for name in ("prompts/depot.j2", "tools/depot.py", "prompts", "prompts/observe.j2"):
        ran = project.run(f"affected {name}")
        assert (ran.code, ran.out) == (0, both), name
    assert "react-text test --tools" in project.run("affected tools/depot.py").err
    assert project.run("affected traces/hall.trace").out == "traces/hall.trace: replays byte for byte\n"
    ran = project.run("affected README.md")
    assert (ran.code, ran.out, ran.err) == (0, "", "# no golden depends on this\n")
    reword(project)
    ran = project.run("affected prompts/observe.j2 tools/other.py")
    assert (ran.code, ran.out.endswith("traces/lost.trace: differs: wording\n")) == (1, True)


def test_a_few_shot_and_an_included_template_affect_too(project: Project) -> None:
    project.write("traces/shot.trace", "---\ntest: false\n---\nQuestion: x\nAction: finish[y]\n")
    project.write("prompts/_rule.j2", "- Be brief.\n")
    project.edit("prompts/depot.j2", "tools:", "examples: [../traces/shot.trace]\ntools:")
    project.edit("prompts/depot.j2", "- Halls", "{% include '_rule.j2' %}- Halls")
    for name in ("traces/shot.trace", "prompts/_rule.j2"):
        assert project.run(f"affected {name}").out.count("differs: prompt") == 2, name


def test_prune_lists_and_deletes_only_when_told(project: Project) -> None:
    assert project.run("prune").out == ""
    shot = "---\ntest: false\n---\nQuestion: x\nAction: finish[y]\n"
    project.write("traces/shown.trace", shot)
    project.write("traces/unseen.trace", shot)
    project.edit("prompts/depot.j2", "tools:", "examples: ../traces/shown.trace\ntools:")
    project.write("prompts/lone.j2", '---\nquestion: x\ntools: ../tools/gone.py\n---\n{% extends "react.j2" %}\n')
    project.write("traces/lone.trace", project.read("traces/hall.trace").replace("depot.j2", "lone.j2"))
    project.write("traces/past.trace", project.read("traces/hall.trace").replace("depot.j2", "past.j2"))
    project.write("traces/old.trace.new", shot)
    listed = (
        "traces/lone.trace: its tools module gone.py is gone\n"
        "traces/past.trace: its prompt prompts/past.j2 is gone\n"
        "traces/unseen.trace: an example that no prompt shows\n"
        "traces/old.trace.new: its golden is gone\n"
    )
    ran = project.run("prune")
    assert (ran.code, ran.out, ran.changed) == (0, listed, {})
    assert ran.err == "# nothing was deleted: --delete does it\n"
    ran = project.run("prune --delete")
    assert set(ran.changed) == {
        f"traces/{name}" for name in ("lone.trace", "past.trace", "unseen.trace", "old.trace.new")
    }


def test_prune_gives_up_when_a_prompt_cannot_be_read(project: Project) -> None:
    project.write("prompts/broken.j2", "---\nexamples: {\n---\n")
    ran = project.run("prune --delete")
    assert (ran.code, ran.changed) == (2, {})
    assert "broken.j2" in ran.err


def test_rules_for_tools_are_in_setup_cfg(project: Project) -> None:
    project.edit("traces/hall.trace", "format: 1\n", "format: 1\nmatch: actions\n")
    project.write("setup.cfg", "[react_text.match]\ncrates = lose\n")
    ran = project.run("test")
    assert ran.code == 2
    assert "setup.cfg: [react_text.match]: crates: 'lose' is not understood" in ran.err
    project.write("setup.cfg", "[react_text.match]\ncrates = {hall: [\n")
    assert "setup.cfg: [react_text.match]: crates: " in project.run("test").err
    project.write("setup.cfg", DEPOT["setup.cfg"] + "[react_text.match]\ncrates = {hall: 're:[1-9]'}\n")
    assert project.run("test").code == 0
