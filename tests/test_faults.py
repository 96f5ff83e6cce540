"""Recovery by kind of failure: a call that times out, one that finds nothing, one that another run has made."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Result, ScriptedModel, load_tools
from react_text.gateway import Calls, Gateway
from react_text.golden import Case
from react_text.output import is_nothing
from react_text.parse import Action
from react_text.settings import Repeats, Settings

from .harbour import act, finish


def run(tool: Callable[..., object], *turns: str, **settings: Any) -> Result:
    return Agent(None, tool, ScriptedModel(turns), tool_timeout=0.05, **settings).run("Where is it?")


def slow(times: int) -> tuple[Callable[[str], str], list[str]]:
    """A tool whose first calls, so many, give no result in time."""
    calls: list[str] = []

    def search(query: str) -> str:
        calls.append(query)
        if len(calls) <= times:
            time.sleep(0.3)
        return "found"

    return search, calls


def test_a_call_that_times_out_is_made_once_more() -> None:
    tool, calls = slow(1)
    result = run(tool, act("search[x]"), finish(), faults={"tool_timeout": "retry"})
    assert (calls, result.steps[0].observation, result.stop_reason) == (["x", "x"], "found", "success")
    assert result.warnings == ("search gave no result in time and was called once more",)


def test_a_call_that_times_out_twice_ends_the_run() -> None:
    tool, calls = slow(9)
    result = run(tool, act("search[x]"), finish(), faults={"tool_timeout": "retry"})
    assert (calls, result.stop_reason) == (["x", "x"], "tool_error:search")
    assert (result.steps[0].observation or "").startswith("Error: search gave no result within 0.05 seconds, twice.")


def test_the_policy_for_failing_tools_holds_for_slow_ones_too() -> None:
    tool, calls = slow(9)
    assert run(tool, act("search[x]"), finish(), faults={"tool_error": "stop"}).stop_reason == "tool_error:search"
    assert calls == ["x"]


def nothing_for(*queries: str) -> Callable[[str], list[str]]:
    def search(query: str) -> list[str]:
        return [] if query in queries else [query]

    return search


def test_a_call_that_finds_nothing_may_be_adjusted_once() -> None:
    tool = nothing_for("x", "y")
    adjusted = run(tool, act("search[x]"), act("search[z]"), finish(), faults={"empty_result": "adjust"})
    assert adjusted.ok
    assert adjusted.steps[0].observation == (
        "[]\nError: search found nothing. Change the arguments once, or finish with what is known."
    )
    failed = run(tool, act("search[x]"), act("search[y]"), finish(), faults={"empty_result": "adjust"})
    assert failed.stop_reason == "empty_result:search"
    assert (failed.steps[1].observation or "").startswith("[]\nError: search found nothing again.")


def test_something_found_in_between_makes_it_the_first_time_again() -> None:
    turns = [act("search[x]"), act("search[z]"), act("search[y]"), finish()]
    assert run(nothing_for("x", "y"), *turns, faults={"empty_result": "adjust"}).ok


def test_without_a_policy_nothing_is_an_observation_like_any_other() -> None:
    result = run(nothing_for("x", "y"), act("search[x]"), act("search[y]"), finish())
    assert (result.ok, result.steps[0].observation, result.steps[0].error) == (True, "[]", "")


def test_nothing_can_end_the_run_at_once() -> None:
    result = run(nothing_for("x"), act("search[x]"), finish(), faults={"empty_result": "stop"})
    assert result.stop_reason == "empty_result:search"


def test_runs_that_found_nothing_replay_from_their_trace(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").touch()
    (tmp_path / "t.py").write_text("def search(query: str) -> list[str]:\n    return []\n")
    head = 'question: "Where?"\ntools: t.py\nfaults: {empty_result: adjust}'
    (tmp_path / "p.j2").write_text(f'---\n{head}\n---\n{{% extends "react.j2" %}}\n')
    result = Agent(tmp_path / "p.j2", model=ScriptedModel([act("search[x]"), act("search[y]")])).run()
    assert result.trace.outcomes == {1: "nothing []", 2: "nothing []"}
    golden = tmp_path / "g.trace"
    golden.write_bytes(result.trace.dump())
    assert Case(golden).replay().changes == Case(golden).run_tools().changes == ()


@pytest.mark.parametrize(
    "text",
    ["", " \n", "[]", "{}", "()", "set()", "None", "{'results': []}", "{'count': 0}", "{'city': 'Oslo', 'hotels': []}"],
)
def test_what_is_nothing(text: str) -> None:
    assert is_nothing(text)


@pytest.mark.parametrize(
    "text",
    ["0", "no", "[0]", "{'error': 'x'}", "{'total': 0, 'rows': [1]}", "{'price': 0}", "[" * 2000, "{'a'", "False"],
)
def test_what_is_not_nothing(text: str) -> None:
    assert not is_nothing(text)


def test_a_policy_that_a_fault_does_not_have() -> None:
    with pytest.raises(AuthorError, match="faults: empty_result must be observe or stop or adjust, not 'retry'"):
        Agent(model=finish, faults={"empty_result": "retry"})


# -- calls that another run has made


def gateways(repeats: Repeats = Repeats()) -> tuple[Gateway, Gateway, list[str]]:  # noqa: B008
    asked: list[str] = []

    def search(query: str) -> str:
        asked.append(query)
        return f"about {query}"

    calls: Calls = {}
    one, two = (
        Gateway(load_tools(search), Settings(repeats=repeats), calls=calls, name=name) for name in ("flights", "hotel")
    )
    return one, two, asked


def test_a_call_that_another_run_has_made_is_answered_from_there() -> None:
    one, two, asked = gateways()
    assert one.call(Action("search", "Oslo"), 1) == "about Oslo"
    with pytest.raises(Exception) as caught:
        two.call(Action("search", "Oslo"), 1)
    fields = caught.value.fields  # type: ignore[attr-defined]
    assert (fields["run"], fields["result"], asked) == ("flights", "about Oslo", ["Oslo"])
    tool = one.tools["search"]
    assert one.is_repeat(tool, {"query": "Oslo"}) and not two.is_repeat(tool, {"query": "Oslo"})


def test_near_repeats_across_runs() -> None:
    one, two, asked = gateways(Repeats("soft"))
    one.call(Action("search", "Oslo"), 1)
    with pytest.raises(Exception, match="repeat"):
        two.call(Action("search", " OSLO "), 1)
    assert asked == ["Oslo"]
