"""`init`: a project that works at once, laid out without overwriting anything."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from glob import glob
from pathlib import Path

import pytest

from react_text import Trace
from react_text.golden import Case

from .project import Project

ROOT = Path(__file__).parents[1]
FILES = {
    ".editorconfig", ".gitattributes", "setup.cfg", "prompts/ferries.j2", "tools/ferries.py", "tests/test_ferries.py",
    "traces/ferries.trace", "traces/ferries_recovery.trace",
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, {})
    done = made.run("init .")
    assert (done.code, set(done.changed)) == (0, FILES)
    assert set(done.out.split()) == FILES
    return made


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("run prompts/ferries.j2", "The last ferry of the day reaches Skerry at 18:25.\n"),
        ("test", "2 as recorded\n"),
        ("test --tools", "2 as recorded\n"),
        ("lint --strict", ""),
        ("fmt --check traces", ""),
        ("fill --check traces", "traces/ferries.trace: the tools answer as it says\n"
                                "traces/ferries_recovery.trace: the tools answer as it says\n"),
    ],
)  # fmt: skip
def test_a_command_works_at_once(project: Project, command: str, out: str) -> None:
    done = project.run(command, env={"REACT_TEXT_PROBE": "off"})
    assert (done.code, done.out, done.changed) == (0, out, {}), done


def test_pytest_runs_its_tests_and_its_traces(project: Project) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin()]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def plugin() -> list[str]:
    """An installed package brings its plugin along."""
    from importlib.metadata import entry_points

    installed = {point.name for point in entry_points(group="pytest11")}
    return [] if "react_text" in installed else ["-p", "react_text.pytest_plugin"]


def test_git_and_editors_leave_the_bytes_of_traces_alone(project: Project) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project.folder, check=True)
    names = ["traces/ferries.trace", "traces/a.trace.new"]
    done = subprocess.run(
        ["git", "check-attr", "text", "diff", "--", *names], cwd=project.folder, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.count("text: unset") == done.stdout.count("diff: trace") == 2
    assert "trim_trailing_whitespace = false" in project.read(".editorconfig")


@pytest.mark.parametrize("name", sorted(FILES - {".editorconfig", ".gitattributes", "setup.cfg"}))
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path, {f"new/{name}": "mine"})
    done = project.run("init new")
    assert (done.code, done.out, done.changed) == (2, "", {})
    assert done.err == f"new/{name}: exists already; nothing was written\n"


def test_settings_of_the_folder_get_what_they_lack(tmp_path: Path) -> None:
    own = {
        "setup.cfg": "[metadata]\nname = x\n[tool:pytest]\naddopts = -q",
        ".gitattributes": "*.png binary\n*.trace -text\n",
        ".editorconfig": "root = true\n\n\n",
    }
    project = Project(tmp_path, own)
    done = project.run("init .")
    assert (done.code, set(done.changed)) == (0, FILES - {".gitattributes"})
    for name, text in own.items():
        assert project.read(name).startswith(text.rstrip("\n") + "\n"), name
    parser = configparser.ConfigParser()
    parser.read_string(project.read("setup.cfg"))  # no section twice
    assert parser.sections() == ["metadata", "tool:pytest", "react_text"]
    assert project.read(".gitattributes").count("*.trace ") == 1
    assert project.read(".editorconfig").count("[") == 1


def test_a_project_that_is_there_gets_nothing_twice(project: Project) -> None:
    for name in FILES - {".editorconfig", ".gitattributes", "setup.cfg"}:
        (project.folder / name).unlink()
    done = project.run("init .")
    assert set(done.changed) == FILES - {".editorconfig", ".gitattributes", "setup.cfg"}


def test_a_folder_that_cannot_be_made_is_an_author_error(tmp_path: Path) -> None:
    project = Project(tmp_path, {"file": ""})
    done = project.run("init file/new")
    assert (done.code, done.changed) == (2, {})
    assert "file/new" in done.err and "cannot be written" in done.err


def test_the_first_golden_shows_the_tools_and_the_few_shot_shows_recovery(project: Project) -> None:
    golden = Case(project.folder / "traces/ferries.trace")
    assert golden.is_test and golden.replay().ok
    few_shot = Trace.load(project.folder / "traces/ferries_recovery.trace")
    assert list(few_shot.outcomes.values()) == ["mistake unknown_tool", "mistake bad_arguments"]


def test_an_installed_package_brings_the_project_along() -> None:
    """Its files are package data, whose patterns match no name that begins with a dot: `glob` neither."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    package = ROOT / "react_text"
    patterns = settings["options.package_data"]["react_text"].split()
    packed = {path for pattern in patterns for path in glob(pattern, root_dir=package)}  # noqa: PTH207
    shipped = {path for path in (package / "templates").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {str(path.relative_to(package)) for path in shipped} <= packed
