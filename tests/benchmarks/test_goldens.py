"""What a thousand goldens cost: `react-text test`, and the same files as pytest items on two workers. Prints, asserts
nothing about time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from react_text import Agent, ScriptedModel

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).parents[2]
TRACES, STEPS = 1000, 8
TOOLS = '''
def lookup(key: str) -> str:
    """What is stored under a key."""
    return f"the value of {key}: " + "x" * 200
'''
PROMPT = '---\ntools: [../tools/store.py]\nlimits: {max_steps: 9}\n---\n{% extends "react.j2" %}\n'


def project(folder: Path) -> None:
    """A project of its own with the traces of as many runs."""
    for name, text in (("tools/store.py", TOOLS), ("prompts/store.j2", PROMPT), ("setup.cfg", "[react_text]\n")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "traces").mkdir()
    for number in range(TRACES):
        turns = [f" I look up {number}-{n}.\nAction: lookup[{number}-{n}]" for n in range(STEPS - 1)]
        model = ScriptedModel([*turns, f" Known.\nAction: finish[{number}]"])
        result = Agent(folder / "prompts" / "store.j2", model=model).run(f"What is stored for {number}?")
        assert result.ok and len(result.steps) == STEPS
        (folder / "traces" / f"run{number:04}.trace").write_bytes(result.trace.dump())


def timed(folder: Path, *command: str) -> tuple[float, float, str]:
    """Seconds on the clock, seconds of processor time, and what was printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    started, used = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    now = os.times()
    processor = now.children_user + now.children_system - used.children_user - used.children_system
    return time.perf_counter() - started, processor, done.stdout


def test_a_thousand_goldens(tmp_path: Path) -> None:
    project(tmp_path)
    plugins = ("-p", "react_text.pytest_plugin")
    commands = {
        "react-text test": ("react_text", "test"),
        "pytest -n 2": ("pytest", "-q", "-p", "xdist", *plugins, "-n", "2", "traces"),
        "pytest": ("pytest", "-q", *plugins, "traces"),
    }
    print(f"\n{TRACES} traces of {STEPS} steps")
    first = None
    for name, command in commands.items():
        clock, processor, output = timed(tmp_path, *command)
        assert f"{TRACES} as recorded\n" == output or f"{TRACES} passed" in output
        first = first or clock
        print(f"{name:16} {clock:6.2f} s, {processor:6.2f} s of processor time, {clock / first:.1f} times the first")
