"""What the engine costs per step, beside a bare loop that does the least a ReAct loop can do. Prints, asserts nothing
about time: machines differ, ratios less so."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import pytest

from react_text import Agent

pytestmark = pytest.mark.benchmark

OBSERVATION = "x" * 400
ACTION = re.compile(r"Action: (\w+)\[(.*?)\]", re.S)


def bare_loop(question: str, llm: Callable[..., str], tools: dict[str, Callable[[str], str]], most: int) -> str | None:
    """The loop everyone writes first."""
    prompt = f"Answer with tools.\nTools: {', '.join(tools)}\n\nQuestion: {question}\n"
    for _ in range(most):
        text = llm(prompt + "Thought:", stop=["\nObservation:"])
        text = text.split("\nObservation:")[0]
        match = ACTION.search(text)
        if not match:
            prompt += f"Thought:{text}\nObservation: no action found\n"
            continue
        text = text[: match.end()]
        name, argument = match.groups()
        if name == "finish":
            return argument
        if name not in tools:
            observation = f"unknown tool {name}"
        else:
            try:
                observation = tools[name](argument)
            except Exception as error:
                observation = f"{type(error).__name__}: {error}"
        prompt += f"Thought:{text}\nObservation: {observation}\n"
    return None


def look_up(key: str) -> str:
    """Look something up."""
    return OBSERVATION


def script(steps: int) -> Callable[..., str]:
    """A model that makes `steps` different calls and then finishes."""
    turns = iter(range(steps))

    def llm(prompt: str, stop: list[str]) -> str:
        number = next(turns)
        return " I look.\nAction: finish[done]" if number == steps - 1 else f" I look.\nAction: look_up[key {number}]"

    return llm


def seconds(run: Callable[[], object], times: int = 7) -> float:
    def once() -> float:
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    return median(once() for _ in range(times))


@pytest.mark.parametrize("steps", [8, 64, 512])
def test_time_per_step(steps: int) -> None:
    def engine() -> None:
        result = Agent(None, [look_up], script(steps), max_steps=steps).run("What?")
        assert result.answer == "done"

    def bare() -> None:
        assert bare_loop("What?", script(steps), {"look_up": look_up}, steps) == "done"

    ours, theirs = seconds(engine), seconds(bare)
    print(f"\n{steps:4} steps: {ours / steps * 1000:.3f} ms a step, bare loop {theirs / steps * 1000:.3f} ms")


@pytest.mark.parametrize("module", ["react_text", "react_text.agent"])
def test_import_time(module: str) -> None:
    def started(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    empty, requests, ours = started("pass"), started("import requests"), started(f"import {module}")
    print(f"\nimport {module}: {(ours - empty) * 1000:.0f} ms, import requests: {(requests - empty) * 1000:.0f} ms")
