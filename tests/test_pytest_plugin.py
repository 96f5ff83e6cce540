"""Traces as pytest items, in real pytest processes: the same checks and the same verdicts as `react-text test`."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

from .project import Project

ROOT = Path(__file__).parents[1]
TURNS = [" Hall 3.\nAction: crates[3]", " Known.\nAction: finish[41 crates]"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("pytest.ini", "[pytest]\nfilterwarnings = error\naddopts = --strict-markers -p no:cacheprovider\n")
    for name in ("depot", "hall", "night"):
        made.record(f"traces/{name}.trace", TURNS)
    return made


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    changed: set[str]


def pytest_run(project: Project, *arguments: str, plugins: tuple[str, ...] = (), **env: str) -> Ran:
    before = project.files()
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_ADDOPTS")}
    # Only the plugins that are named: whether react-text is installed here makes no difference then.
    environment |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **env,
    }
    named = [part for name in ("react_text.pytest_plugin", *plugins) for part in ("-p", name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *named, *arguments],
        cwd=project.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    after = project.files()
    return Ran(done.returncode, done.stdout, {n for n in {*before, *after} if before.get(n) != after.get(n)})


def test_each_trace_is_an_item(project: Project) -> None:
    ran = pytest_run(project, "--collect-only", "-q")
    assert ran.out.split("\n")[:3] == [f"traces/{name}.trace::replay" for name in ("depot", "hall", "night")]
    ran = pytest_run(project, "-v")
    assert ran.code == 0
    assert "traces/hall.trace::replay PASSED" in ran.out and "3 passed" in ran.out
    assert ran.changed == set()


SELECTIONS: list[tuple[tuple[str, ...], str]] = [
    (("-k", "hall"), "1 passed, 2 deselected"),
    (("-m", "react_text"), "3 passed"),
    (("-m", "not react_text"), "3 deselected"),
    (("traces/hall.trace",), "1 passed"),
    (("traces/hall.trace::replay",), "1 passed"),
    (("traces",), "3 passed"),
    (("--react-tools",), "6 passed"),
    (("--react-tools", "-k", "tools and hall"), "1 passed, 5 deselected"),
]


@pytest.mark.parametrize(("arguments", "summary"), SELECTIONS, ids=lambda value: " ".join(value) if value else "")
def test_items_are_selected_as_usual(project: Project, arguments: tuple[str, ...], summary: str) -> None:
    assert summary in pytest_run(project, "-q", *arguments).out


def test_a_failure_is_the_plain_difference(project: Project) -> None:
    project.edit("tools/depot.py", "41", "42")
    ran = pytest_run(project, "--react-tools", "--junitxml=junit.xml", "-k", "hall")
    assert ran.code == 1
    assert "1 failed, 1 passed" in ran.out
    shown = (
        "step 1: crates answers differently; same path; same answer [tool]\n"
        "    @ step 1\n"
        "      Thought: Hall 3.\n"
        "      Action: crates[3]\n"
        "    - Observation: 41 crates in hall 3\n"
        "    + Observation: 42 crates in hall 3\n"
        "    ^               ^\n"
        "    @ 1 step the same"
    )
    assert shown in ran.out
    assert "Traceback" not in ran.out and "_checked" not in ran.out
    report = ElementTree.parse(project.folder / "junit.xml").getroot()
    cases = {case.get("name"): case for case in report.iter("testcase")}
    assert cases["replay"].find("failure") is None
    failure = cases["tools"].find("failure")
    assert failure is not None and shown in (failure.text or "")
    assert ran.changed == {"junit.xml"}


def test_lf_and_x_work(project: Project) -> None:
    project.edit("pytest.ini", "-p no:cacheprovider", "")
    project.edit("traces/hall.trace", "crates in hall 3", "boxes in hall 3")
    assert "1 failed, 2 passed" in pytest_run(project, "-q", "--react-tools", "-k", "tools").out
    ran = pytest_run(project, "-q", "--react-tools", "--lf")
    assert "1 failed" in ran.out and "passed" not in ran.out
    assert "stopping after 1 failures" in pytest_run(project, "-x", "--react-tools").out


def test_xdist_checks_and_updates(project: Project) -> None:
    pytest.importorskip("xdist")
    assert "3 passed" in pytest_run(project, "-q", "-n", "2", plugins=("xdist",)).out
    project.edit("tools/depot.py", "41", "42")
    ran = pytest_run(project, "-q", "-n", "2", "--react-tools", "--react-update", plugins=("xdist",))
    assert "3 failed, 3 passed" in ran.out
    assert ran.changed == {f"traces/{name}.trace.new" for name in ("depot", "hall", "night")}
    assert "Observation: 42 crates" in project.read("traces/hall.trace.new")


def test_update_writes_pending_files_but_not_in_ci(project: Project) -> None:
    project.write("prompts/observe.j2", '{%- macro unknown_tool(e) -%}Error: no "{{ e.tool }}".{%- endmacro -%}')
    project.record("traces/hall.trace", [" x\nAction: crate[3]", *TURNS])
    project.edit("prompts/observe.j2", "no ", "there is no ")
    ran = pytest_run(project, "-q", "--react-update", CI="true")
    assert ran.code == 4 and ran.changed == set()
    assert "--react-update changes files, which is refused where CI is set" in ran.out
    ran = pytest_run(project, "-q", "--react-update")
    assert (ran.code, ran.changed) == (1, {"traces/hall.trace.new"})
    assert project.run("accept traces").code == 0
    assert pytest_run(project, "-q").code == 0


BROKEN = {
    "an unknown key": ("format: 1", "formt: 1", "traces/hall.trace:2: unknown key 'formt' (did you mean format?)"),
    "a prompt that is gone": ("depot.j2", "past.j2", "traces/hall.trace:3: there is no prompt prompts/past.j2"),
    "neither test nor none": (
        "format: 1",
        "format: 1\ntest: perhaps",
        "traces/hall.trace:3: test must be true or false",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_golden_that_cannot_be_read_is_an_error_and_no_skip(project: Project, name: str) -> None:
    old, new, message = BROKEN[name]
    project.edit("traces/hall.trace", old, new)
    ran = pytest_run(project, "-q")
    assert ran.code == 1
    assert "2 passed, 1 error" in ran.out
    assert message in ran.out and "AuthorError" not in ran.out


def test_an_empty_golden_and_a_missing_one_are_errors(project: Project) -> None:
    project.write("traces/hall.trace", "")
    ran = pytest_run(project, "-q")
    assert (ran.code, "2 passed, 1 error" in ran.out) == (1, True)
    ran = pytest_run(project, "-q", "traces/gone.trace")
    assert (ran.code, "file or directory not found: traces/gone.trace" in ran.out) == (4, True)


def test_examples_opt_out(project: Project) -> None:
    project.write("traces/hall.trace", "---\ntest: false\n---\nQuestion: x\nAction: finish[y]\n")
    assert "2 passed" in pytest_run(project, "-q").out


def test_only_configured_folders_and_named_files_are_collected(project: Project) -> None:
    project.write("more/hall.trace", project.read("traces/hall.trace"))
    project.write("more/not_a.txt", "")
    assert "3 passed" in pytest_run(project, "-q").out
    assert "1 passed" in pytest_run(project, "-q", "more/hall.trace").out
    assert pytest_run(project, "-q", "more").code == 5
    project.write("pytest.ini", "[pytest]\nreact_text_paths = more traces\n")
    assert "4 passed" in pytest_run(project, "-q").out


def test_items_stand_beside_ordinary_tests(project: Project) -> None:
    project.write("tests/test_more.py", "def test_more():\n    pass\n")
    assert "4 passed" in pytest_run(project, "-q").out


def test_the_plugin_loads_nothing_of_the_engine_without_traces(tmp_path: Path) -> None:
    code = (
        "import sys\n\n\ndef test_loaded():\n"
        "    own = {name for name in sys.modules if name.startswith('react_text')}\n"
        "    assert own == {'react_text', 'react_text.version', 'react_text.pytest_plugin'}, own\n"
        "    assert not {'yaml', 'jinja2', 'requests'} & set(sys.modules)\n"
    )
    project = Project(tmp_path, {"pytest.ini": "[pytest]\n", "test_it.py": code})
    ran = pytest_run(project, "-q")
    assert ran.code == 0, ran.out


@pytest.mark.parametrize("edit", [None, ("tools/depot.py", "41", "42"), ("traces/hall.trace", "format", "frmat")])
def test_the_verdicts_are_those_of_the_command(project: Project, edit: tuple[str, str, str] | None) -> None:
    if edit:
        project.edit(*edit)
    verdicts = {0: 0, 1: 1, 2: 1}  # pytest has no exit code of its own for errors
    assert pytest_run(project, "-q", "--react-tools", "-k", "tools").code == verdicts[project.run("test --tools").code]


# -- --react-report


def outcomes(project: Project, name: str = "page.html") -> dict[str, str]:
    """What a page lists of each trace."""
    return dict(re.findall(r'class="name">([^<]+)</span><span class="more">(\w+)', project.read(name)))


def test_a_report_lists_every_trace_with_its_outcome(project: Project) -> None:
    project.edit("tools/depot.py", "41", "42")
    project.edit("traces/hall.trace", "prompts/depot.j2", "prompts/none.j2")
    project.write("traces/broken.trace", "---\nfromat: 1\n---\n")
    project.edit("traces/night.trace", "crates[3]", "crates[4]")
    ran = pytest_run(project, "--react-tools", "--react-report=out/page.html")
    assert ran.code == 1 and ran.changed == {"out/page.html"}
    assert "react-text: out/page.html" in ran.out
    assert outcomes(project, "out/page.html") == {
        "broken.trace": "error", "depot.trace": "failed", "hall.trace": "error", "night.trace": "failed",
    }  # fmt: skip
    text = html.unescape(project.read("out/page.html"))
    assert "crates answers differently" in text and "there is no prompt prompts/none.j2" in text
    assert text.count("<h3>tools</h3>") == 4 and text.count("<h3>replay</h3>") == 2


def test_a_report_of_a_part_lists_that_part_and_overwrites_its_own_page(project: Project) -> None:
    for _ in range(2):
        assert pytest_run(project, "-k", "hall", "--react-report", "page.html").code == 0
    assert outcomes(project) == {"hall.trace": "passed"}


def test_a_report_has_pass_rates(project: Project) -> None:
    ways = [{"path": ["finish"], "runs": 20, "passed": 19}]
    case = {"case": "traces/hall.trace", "variant": "tiny", "passed": 19, "runs": 20, "paths": ways}
    project.write("live.json", json.dumps({"cases": [case]}))
    assert pytest_run(project, "--react-report=page.html", "--react-rates=live.json").code == 0
    assert project.read("page.html").count("19 of 20 passed, 95 % interval 76 to 99 %") == 2


def test_a_report_shows_the_stages_of_a_plan(tmp_path: Path) -> None:
    for part in ("prompts", "tools", "traces"):
        shutil.copytree(ROOT / part, tmp_path / part)
    project = Project(tmp_path, {"setup.cfg": "", "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider\n"})
    ran = pytest_run(project, "--react-report=page.html", "-k", "japan.plan or japan_no_flights")
    assert ran.code == 0 and "2 passed" in ran.out
    found = outcomes(project)
    assert found["japan.plan:goal"] == found["japan_no_flights.plan:synthesise"] == "passed"


def test_a_report_never_overwrites_another_file(project: Project) -> None:
    ran = pytest_run(project, "--react-report=setup.cfg")
    assert ran.code == 4 and ran.changed == set()
    assert "setup.cfg: is not a page of react-text, and would be overwritten" in ran.out
    assert (
        "this is not what `live --json` prints"
        in pytest_run(project, "--react-report=page.html", "--react-rates=setup.cfg").out
    )


def test_a_report_that_cannot_be_written_is_no_success(project: Project) -> None:
    ran = pytest_run(project, "--react-report=traces/hall.trace/page.html")
    assert ran.code == 4 and ran.changed == set()
    assert "react-text: traces/hall.trace/page.html: cannot be " in ran.out and "Traceback" not in ran.out


def test_a_report_comes_from_all_workers(project: Project) -> None:
    pytest.importorskip("xdist")
    project.edit("traces/hall.trace", "answer: 41 crates", "answer: 42 crates")
    ran = pytest_run(project, "-n", "2", "--react-report=page.html", plugins=("xdist",))
    assert ran.code == 1
    assert outcomes(project) == {"depot.trace": "passed", "hall.trace": "failed", "night.trace": "passed"}
