"""One word changed anywhere that a run depends on is caught: in the right category, at the right step, with a
difference that explains itself, and nothing is written. Each mutation is made to the three systems that ship."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from react_text import Trace

from .project import Project

ROOT = Path(__file__).parents[1]
OBSERVE = (ROOT / "react_text" / "templates" / "observe.j2").read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for folder in ("prompts", "tools", "traces"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    made = Project(tmp_path, {"setup.cfg": "[react_text]\n"})
    before = made.run("test")
    assert before.code == 0 and made.run("test --tools").code == 0, str(before)
    return made


def macro(name: str) -> str:
    """One macro of the package's templates, for a project to override."""
    found = re.search(r"\{%- macro " + name + r"\(.*?\{%- endmacro -%\}", OBSERVE, re.S)
    assert found
    return found[0].replace("tool_list()", "tools | join('; ')")


Goldens = Callable[[Trace], bool]


def uses(prompt: str) -> Goldens:
    return lambda trace: trace.meta["prompt"] == f"prompts/{prompt}.j2"


def calls(tool: str, arguments: str = "") -> Goldens:
    return lambda trace: any(step.tool == tool and arguments in (step.arguments or "") for step in trace.steps)


def refused(kind: str) -> Goldens:
    return lambda trace: f"mistake {kind}" in trace.outcomes.values()


def more_results_than(count: int) -> Goldens:
    return lambda t: sum(bool(s.observation) and n not in t.outcomes for n, s in enumerate(t.steps, 1)) > count


@dataclass(frozen=True)
class Mutation:
    """`old` becomes `new` in `file`; `found` are the goldens that notice. One of them, `first`, says so in `category`
    at `step`, with `shown` in its difference."""

    file: str
    old: str
    new: str
    found: tuple[Goldens, ...]
    first: str
    category: str
    step: int
    shown: tuple[str, ...]
    check: str = "test"


HEAD = "the rendered head is another text now"
ANNOTATED = "__import__('typing').Annotated[str, __import__('react_text').Pattern(r'\\d{4}-0[1-6]')]"

MUTATIONS = {
    "a word of an observation template": Mutation(
        "prompts/observe.j2", "is no tool called", "is no tool named",
        (refused("unknown_tool"),), "cloud_spend_recovery", "wording", 1,
        (
            '- Observation: Error: there is no tool called "get_reserved_cost".',
            '+ Observation: Error: there is no tool named "get_reserved_cost".',
        ),
    ),
    "a rule of a prompt": Mutation(
        "prompts/debug_ci.j2", "Say what to change", "Say what you would change",
        (uses("debug_ci"),), "debug_ci", "prompt", 0, (HEAD,),
    ),
    "a rule that all prompts inherit": Mutation(
        "prompts/react.j2", "Never write an observation yourself", "Never invent an observation",
        (), "cloud_spend", "prompt", 0, (HEAD,),
    ),
    "a thought of a few-shot": Mutation(
        "traces/debug_ci_slug.trace", "The file itself will tell.", "The file itself tells.",
        (uses("debug_ci"),), "debug_ci", "prompt", 0, (HEAD,),
    ),
    "the description of a tool": Mutation(
        "tools/debug_ci.py", "The text of a file", "The contents of a file",
        (uses("debug_ci"),), "debug_ci", "prompt", 0, (HEAD,),
    ),
    "a figure of a tool": Mutation(
        "tools/cloud_spend.py", "12400", "12401",
        (calls("query_reserved", "2026-07"),), "cloud_spend", "tool", 2,
        (
            "- Observation: {'month': '2026-07', 'reserved_usd': 12400}",
            "+ Observation: {'month': '2026-07', 'reserved_usd': 12401}",
        ),
        "test --tools",
    ),
    "a figure that only a file holds": Mutation(
        "traces/debug_ci_repo/package.json", ">=20", ">=22",
        (calls("read_file", "package.json"),), "debug_ci", "tool", 2,
        ('-   "engines": { "node": ">=20" },', '+   "engines": { "node": ">=22" },'),
        "test --tools",
    ),
    "a regex of a tool": Mutation(
        "tools/arithmetic.py", "[-+*/()]", "[-+*()]",
        (calls("calculator", "/"),), "cloud_spend", "tool", 6,
        ("- Observation: 0.0844", "+ Observation: {'error': \"cannot read ' / 50000'"),
        "test --tools",
    ),
    "the pattern of an argument": Mutation(
        "tools/cloud_spend.py", "def query_reserved(month: str)", f"def query_reserved(month: {ANNOTATED})",
        (uses("cloud_spend"),), "cloud_spend", "wording", 2,
        ("- Observation: {'month': '2026-07', 'reserved_usd': 12400}", "+ Observation: Error: month must be"),
    ),
    "a label": Mutation(
        "prompts/debug_ci.j2", "limits:", "labels: {action: Step}\nlimits:",
        (uses("debug_ci"),), "debug_ci", "path", 1, ("+ Observation: Error: the Step line is missing",),
    ),
    "a budget": Mutation(
        "prompts/refund.j2", "max_tool_calls: 5", "max_tool_calls: 2",
        (uses("refund"), more_results_than(2)), "refund", "wording", 3,
        ("+ Observation: Error: not run: all 2 tool calls are used up.",),
    ),
    "the question": Mutation(
        "prompts/debug_ci.j2", "{% block rules",
        "{% block question %}Task: {{ question }}{% endblock %}\n{% block rules",
        (uses("debug_ci"),), "debug_ci", "prompt", 0, ("- Question: The tests pass", "+ Task: The tests pass"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_caught(project: Project, name: str) -> None:
    mutation = MUTATIONS[name]
    traces = {path.stem: Trace.load(path) for path in (project.folder / "traces").glob("*.trace")}
    if mutation.file == "prompts/observe.j2":
        project.write(mutation.file, macro("unknown_tool"))
    if mutation.file == "prompts/react.j2":
        project.write(mutation.file, (ROOT / "react_text" / "templates" / "react.j2").read_text(encoding="utf-8"))
    project.edit(mutation.file, mutation.old, mutation.new)
    ran = project.run(mutation.check)
    assert ran.code == 1, str(ran)
    assert ran.changed == {}

    reports = re.split(r"\n\n(?=traces/|\d+ as recorded)", ran.out)[:-1]
    found = {re.split(r"[/.]", report)[1]: report for report in reports}
    mutated = {Path(mutation.file).stem} if mutation.file.endswith(".trace") else set()
    assert {*found} - mutated == {n for n, t in traces.items() if all(here(t) for here in mutation.found)} - mutated
    report = found[mutation.first]
    place = f"step {mutation.step}: " if mutation.step else ""
    headline = report.split("\n")[0]
    assert re.search(rf"\[(\w+, )*{mutation.category}(, \w+)*\]$", headline), headline
    assert f"{mutation.category}: {place}" in report or f": {place}" in headline, report
    for line in mutation.shown:
        assert line in report, report


def test_a_regex_of_the_engine_is_caught(project: Project) -> None:
    """In a copy of the engine that knows only full-width opening brackets."""
    shutil.copytree(ROOT / "react_text", project.folder / "engine" / "react_text")
    project.edit("engine/react_text/scan.py", 're.compile(r"[\\[［【]")', 're.compile(r"[［【]")')
    before = project.files()
    done = subprocess.run(
        [sys.executable, "-m", "react_text", "test", "traces/cloud_spend.trace"],
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(project.folder / "engine"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 1, done.stderr
    assert re.match(r"traces/cloud_spend\.trace:\d+: step 1: ", done.stdout), done.stdout
    assert "+ Observation: Error: an action needs the form tool[...]" in done.stdout
    assert project.files() == before
