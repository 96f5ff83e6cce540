"""Plans: goal, subtasks, a loop for each, synthesis; limits, recovery, and what a state file is good for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from react_text import AuthorError, Completion, ServerError, Trace
from react_text.cli import main
from react_text.models.scripted import ScriptedModel
from react_text.plan import Planner, PlanScript, PlanState
from react_text.plan.goal import checked_goal
from react_text.plan.options import options_in, picked
from react_text.plan.replay import PlanCase
from react_text.subtasks import Subtask

ROOT = Path(__file__).parents[1]
TRAVEL, TRACES = ROOT / "prompts" / "travel", ROOT / "traces" / "travel"
JAPAN = TRACES / "japan.plan"


def turn(action: str, thought: str = "I know.") -> str:
    return f" {thought}\nAction: {action}"


class Turns(PlanScript):
    """The turns of each stage, by its key; `prompts` keeps what the stages were asked."""

    def __init__(self, turns: dict[str, Sequence[str]]) -> None:
        self.turns = turns
        self.name = "turns"
        self.prompts: dict[str, list[str]] = {}

    def stage(self, key: str, first: int = 1) -> ScriptedModel:
        seen = self.prompts.setdefault(key, [])

        class Stage(ScriptedModel):
            def session(self) -> ScriptedModel:
                return self

            def complete(self, prompt: str, **asked: Any) -> Completion:
                seen.append(prompt)
                return super().complete(prompt, **asked)

        return Stage(self.turns.get(key, ()))


def turns_of(path: Path) -> dict[str, Sequence[str]]:
    return {key: trace.completions for key, trace in PlanState.load(path).traces.items()}


# -- the travel system


def japan(**other: Sequence[str]) -> Turns:
    return Turns({**turns_of(JAPAN), **{key.replace("_", " "): value for key, value in other.items()}})


def test_the_whole_journey() -> None:
    script = japan()
    state = Planner(TRAVEL, script).run()
    assert state.stop_reason == "success"
    assert state.goal == {
        "destination": "Japan", "origin": "San Francisco", "duration_days": 5, "travellers": 2, "month": "October",
        "budget_total": 3000, "interests": ["hiking", "street food", "temples"],
    }  # fmt: skip
    assert state.selections["flights"][0]["price_usd"] == 850
    assert state.money == {
        "total": 3000, "spent": 2882, "left": 118, "unit": "USD",
        "parts": {"flights": 1700, "accommodation": 1000, "activities": 182},
    }  # fmt: skip
    assert state.metadata == {"steps": 8, "max_steps": 25, "subtasks": {"done": 4}, "tool_calls": 4}
    assert (state.answer or "").startswith("Day 1: ") and state.warnings == []


def test_every_prompt_behind_the_flights_says_what_is_left() -> None:
    script = japan()
    Planner(TRAVEL, script).run()
    assert all("Budget: 3000 of 3000 USD left." in prompt for prompt in script.prompts["act flights"])
    hotel = script.prompts["act accommodation"]
    assert all("Budget: 1300 of 3000 USD left.\nSelected: flights F101 (1700)" in prompt for prompt in hotel)
    assert "[Step 1 of 8 here, 3 of 25 in all. Open: activities, itinerary." in hotel[0]
    assert "[Step 2 of 8 here, 4 of 25 in all." in hotel[1]
    assert all("Budget: 300 of 3000 USD left." in prompt for prompt in script.prompts["act activities"])
    assert hotel[1].startswith(hotel[0][: hotel[0].index("[Step")])  # what changes stands behind the transcript


def test_synthesis_sees_goal_selections_and_warnings_and_no_transcript() -> None:
    script = japan()
    Planner(TRAVEL, script).run()
    (prompt,) = script.prompts["synthesise"]
    asked = prompt[prompt.rindex("What the request asks for:") :]
    assert "'id': 'F101'" in asked and "Budget: 3000 USD, spent 2882, left 118." in asked
    assert "F103" not in asked and "search_flights" not in asked


@pytest.mark.parametrize(
    ("name", "reason", "said"),
    [
        ("japan_no_flights", "flights: failed: empty_result:search_flights", "no flights were found"),
        ("japan_hotel_timeout", "accommodation: failed: tool_error:search_hotels", "there is no hotel yet"),
        ("japan_out_of_steps", "activities: failed: max_steps", "ran out of steps"),
    ],
)
def test_failures_are_said(name: str, reason: str, said: str) -> None:
    script = PlanScript.load(TRACES / f"{name}.plan")
    state = Planner(TRAVEL, script).run(script.state.request, worlds=script.world)
    assert state.stop_reason == "partial"
    assert any(warning.startswith(reason) for warning in state.warnings)
    assert said in (state.answer or "")


def test_a_bad_airport_goes_to_the_model() -> None:
    state = PlanState.load(TRACES / "japan_bad_airport.plan")
    observation = state.traces["act flights"].observations[0] or ""
    assert "there is no airport OSA" in observation and "KIX (Osaka)" in observation


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.plan")) + sorted((ROOT / "traces" / "research").glob("*.plan")))
@pytest.mark.parametrize("check", ["replay", "tools"])
def test_recorded_plans_are_reproduced(path: Path, check: str) -> None:
    assert PlanCase(path).check(check).changes == ()


def test_the_research_system_is_prompts_tools_and_yaml() -> None:
    script = PlanScript.load(ROOT / "traces" / "research" / "ferries.plan")
    state = Planner(ROOT / "prompts" / "research", script).run()
    assert list(state.parts) == ["today", "costs", "doubts", "verdict"]
    assert (state.stop_reason, state.money) == ("success", None)
    assert "38 crossings a day" in (state.answer or "")


# -- a small system of its own

GOAL = {"goal": (turn("finish[topic=boats]"),)}
PLAN = "finish[a: First part; b: Second part (after a); c: Third part (needs b)]"


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Planner]:
    """A planner whose prompts need no tools but `search`."""

    def planner(turns: dict[str, Sequence[str]], plan: str = "{}", act: str = "", **settings: Any) -> Planner:
        (tmp_path / "setup.cfg").touch()
        head = 'question: "Boats, 40 at most"\nanswer: {subtasks: plan}\nlimits: {max_steps: 2}'
        files = {
            "plan": (f"{head}\nplan: {plan}", "plan/plan.j2"),
            "goal": ("answer: {topic: str or None, most: float or None}\nlimits: {max_steps: 2}", "plan/goal.j2"),
            "act": (f"tools: [tools.py]\nlimits: {{max_steps: 3}}\n{act}", "plan/act.j2"),
        }
        for name, (front, base) in files.items():
            (tmp_path / f"{name}.j2").write_text(f'---\n{front}\n---\n{{% extends "{base}" %}}\n')
        if not (tmp_path / "tools.py").exists():
            (tmp_path / "tools.py").write_text(
                "def search(query: str) -> str:\n"
                "    return '' if query == 'nothing' else str({'id': query.upper(), 'cost': 15})\n"
            )
        return Planner(tmp_path, settings.pop("model", None) or Turns({**GOAL, **turns}), **settings)

    return planner


def statuses(state: PlanState) -> dict[str, str]:
    return {name: part.status for name, part in state.parts.items()}


def test_a_subtask_begins_when_those_it_waits_for_have_ended(small: Callable[..., Planner]) -> None:
    plan = "finish[c: Third (after b, a); b: Second (after a); a: First; d: Fourth]"
    order: list[str] = []
    planner = small({"plan": (turn(plan),), **{f"act {name}": (turn("finish[x]"),) for name in "abcd"}})
    planner.run(on_stage=lambda key, run: order.append(key))
    assert order == ["goal", "plan", "act a", "act b", "act c", "act d", "synthesise"]


def test_after_goes_on_and_needs_skips(small: Callable[..., Planner]) -> None:
    fails = [turn("search[x]"), turn("search[y]"), turn("search[z]")]
    planner = small({"plan": (turn(PLAN),), "act a": fails, "act b": fails, "synthesise": (turn("finish[done]"),)})
    state = planner.run()
    assert statuses(state) == {"a": "failed", "b": "failed", "c": "skipped"}
    assert "c: skipped: it needs b, which is not done" in state.warnings
    assert (state.stop_reason, state.answer) == ("partial", "done")


def test_a_skipped_subtask_skips_those_that_need_it(small: Callable[..., Planner]) -> None:
    plan = "finish[a: First part; b: Second part (needs a); c: Third part (needs b); d: Fourth part (after c)]"
    planner = small({"plan": (turn(plan),), "act a": [turn("search[nothing]")] * 3, "act d": (turn("finish[x]"),)})
    assert statuses(planner.run()) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "done"}


def test_the_limit_of_all_steps(small: Callable[..., Planner]) -> None:
    acts = {f"act {name}": (turn("search[x]"), turn("finish[x]")) for name in "abc"}
    state = small({"plan": (turn(PLAN),), **acts}, plan="{limits: {max_steps: 3}}").run()
    assert statuses(state) == {"a": "done", "b": "failed", "c": "skipped"}
    assert state.steps == 3
    assert any(warning.startswith("b: failed: max_steps") for warning in state.warnings)


def test_a_subtask_for_which_no_step_is_left_is_not_begun(small: Callable[..., Planner]) -> None:
    plan = "finish[a: First part; b: Second part]"
    acts = {f"act {name}": (turn("search[x]"), turn("finish[x]")) for name in "ab"}
    state = small({"plan": (turn(plan),), **acts}, plan="{limits: {max_steps: 2}}").run()
    assert "b: failed: not begun: all 2 steps are used" in state.warnings


def test_limits_of_a_single_subtask_and_its_tools(small: Callable[..., Planner]) -> None:
    declared = "{subtasks: {a: {max_steps: 1, tools: []}}}"
    state = small({"plan": (turn("finish[a: First part]"),), "act a": (turn("search[x]"),)}, plan=declared).run()
    assert "may not be used here" in (state.traces["act a"].observations[0] or "")
    assert state.parts["a"].steps == 1


@pytest.mark.parametrize(
    ("limits", "reason"),
    [("max_tool_calls: 1", "all 1 tool calls are used"), ("max_seconds: 0.0001", "all 0.0001 seconds are used")],
)
def test_other_limits_of_the_whole(small: Callable[..., Planner], limits: str, reason: str) -> None:
    plan = "finish[a: First part; b: Second part]"
    acts = {f"act {name}": (turn(f"search[{name}]"), turn("finish[x]")) for name in "ab"}
    state = small({"plan": (turn(plan),), **acts}, plan=f"{{limits: {{{limits}}}}}").run()
    assert f"b: failed: not begun: {reason}" in state.warnings


def test_a_plan_that_is_wrong_goes_back_to_the_model(small: Callable[..., Planner]) -> None:
    turns = (turn("finish[a: First (after b)]"), turn("finish[a: First part]"))
    state = small({"plan": turns, "act a": (turn("finish[x]"),)}).run()
    assert list(state.parts) == ["a"]
    assert "a waits for 'b', which is not in the plan" in (state.traces["plan"].observations[0] or "")


def test_without_a_plan_the_request_is_one_subtask(small: Callable[..., Planner]) -> None:
    wrong = (turn("finish[boats]"),) * 2
    state = small({"plan": wrong, "act request": (turn("finish[x]"),)}).run()
    assert (statuses(state), state.parts["request"].subtask.task) == ({"request": "done"}, "Boats, 40 at most")
    assert state.warnings[0].startswith("plan: max_steps")


def test_without_a_goal_the_plan_goes_on(small: Callable[..., Planner]) -> None:
    state = small(
        {"goal": ("Hm.", "Hm."), "plan": (turn("finish[a: First part]"),), "act a": (turn("finish[x]"),)}
    ).run()
    assert state.warnings[0].startswith("goal: max_steps") and state.goal == {}
    assert statuses(state) == {"a": "done"}


def test_what_the_request_does_not_say_is_left_open(small: Callable[..., Planner]) -> None:
    turns = {"goal": (turn("finish[topic=ships, most=40]"),), "plan": (turn("finish[a: First part]"),)}
    state = small({**turns, "act a": (turn("finish[x]"),)}).run()
    assert state.goal == {"topic": None, "most": 40}
    assert "goal: topic 'ships' is not in the request and is left open" in state.warnings


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("San Francisco", True), ("san francisco", True), ("SFO", False), (2, True), (3, False), (3000, True),
        (3000.0, True), (["hiking", "street food"], True), (["hiking", "golf"], False), (None, True), ("", True),
        ("October 2", True), ("October 9", False),
    ],
)  # fmt: skip
def test_what_counts_as_said(value: Any, said: bool) -> None:
    request = "For two in October, from San Francisco; hiking, street food; about 3,000 USD."
    goal, left_open = checked_goal({"it": value}, request)
    assert (goal["it"] == value, bool(left_open)) == (said or value is None, not said)
    assert checked_goal({"it": value}, request, ["it"]) == ({"it": value}, [])


def test_without_a_synthesis_the_findings_are_the_answer(small: Callable[..., Planner]) -> None:
    state = small({"plan": (turn("finish[a: First part]"),), "act a": (turn("finish[12 boats]"),)}).run()
    assert (state.stop_reason, state.answer) == ("llm_error", None) or state.answer == "a: 12 boats"


def test_a_synthesis_that_fails_is_said(small: Callable[..., Planner]) -> None:
    turns = {
        "plan": (turn("finish[a: First part]"),),
        "act a": (turn("finish[12 boats]"),),
        "synthesise": ("Hm.", "Hm."),
    }
    state = small(turns).run()
    assert (state.stop_reason, state.answer) == ("partial", "a: 12 boats")
    assert state.warnings[-1].startswith("synthesise: max_steps")


def test_selections_cost_and_an_overspent_budget_is_said(small: Callable[..., Planner]) -> None:
    turns = {
        "goal": (turn("finish[topic=boats, most=40]"),),
        "plan": (turn("finish[a: First part; b: Second part; c: Third part]"),),
    }
    acts = {f"act {name}": (turn(f"search[{name}1]"), turn(f"finish[{name.upper()}1 it is]")) for name in "abc"}
    state = small({**turns, **acts}, plan="{budget: {total: most, cost: cost, unit: USD}}").run()
    assert state.money == {"total": 40, "spent": 45, "left": -5, "unit": "USD", "parts": {"a": 15, "b": 15, "c": 15}}
    assert "the selections cost 45 of 40 USD" in state.warnings


def test_a_call_of_another_subtask_is_answered_from_there(small: Callable[..., Planner]) -> None:
    acts = {"act a": (turn("search[x1]"), turn("finish[X1]")), "act b": (turn("search[ X1 ]"), turn("finish[X1]"))}
    state = small({"plan": (turn("finish[a: First part; b: Second part]"),), **acts}, act="repeats: soft").run()
    observation = state.traces["act b"].observations[0] or ""
    assert "was already called with nearly the same arguments for a and was not run again." in observation
    assert "Its result was: {'id': 'X1', 'cost': 15}" in observation
    assert state.parts["b"].selected == [{"id": "X1", "cost": 15}]


def test_results_may_be_judged(small: Callable[..., Planner]) -> None:
    turns = {
        "plan": (turn("finish[a: First part]"),),
        "act a": (turn("search[x1]"), turn("search[x2]"), turn("finish[both seen]")),
        "interpret a 1": (turn("finish[useful=true, pick=X1, why=cheap]"),),
        "interpret a 2": (turn("finish[useful=false, why=dear, again=try x3]"),),
    }
    planner = small(turns, interpret=True)
    state = planner.run()
    assert state.parts["a"].results == [
        "search[x1]: 1 options: X1 (picked X1; cheap)",
        "search[x2]: 1 options: X2 (of no use; dear; try x3)",
    ]
    assert state.parts["a"].selected == [{"id": "X1", "cost": 15}]
    assert isinstance(planner.model, Turns)
    assert "So far: search[x1]: 1 options: X1 (picked X1; cheap)" in planner.model.prompts["act a"][1]


def test_a_judgement_that_fails_is_said(small: Callable[..., Planner]) -> None:
    turns = {"plan": (turn("finish[a: First part]"),), "act a": (turn("search[x1]"), turn("finish[X1]")),
             "interpret a 1": ("Hm.", "Hm.")}  # fmt: skip
    state = small(turns, interpret=True).run()
    assert statuses(state) == {"a": "done"}
    assert any(warning.startswith("a: a result was not judged: max_steps") for warning in state.warnings)


WORDS = (
    "Action: ", "finish[", "search[", "]", "a: Do it", "; ", "b: More (after a)", "(needs b)", "topic=", "boats", "40",
    ", ", "most=", "nothing", "x1", "\n", "Thought: ", "Observation: ", "{", "'id': ", "<|im_end|>", "\ud800", "\x00",
    "None",
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), max_size=14), st.booleans())
def test_whatever_the_model_writes_a_plan_ends_with_its_state(
    small: Callable[..., Planner], texts: list[str], interpret: bool
) -> None:
    left = iter(texts)

    def model(prompt: str, stop: list[str]) -> str:
        return next(left, " I know.\nAction: finish[a: Do it]")

    state = small({}, model=model, interpret=interpret, plan="{limits: {max_steps: 9}}").run()
    assert state.stop_reason in ("success", "partial", "failed")
    assert all(part.ended for part in state.parts.values()) and state.steps <= 9
    again = yaml.safe_load(state.dump())
    assert again["metadata"]["steps"] == state.steps
    assert {key: str(trace) for key, trace in state.traces.items()} == {
        key: str(Trace.load(text.encode())) for key, text in again["traces"].items()
    }


# -- plans in YAML


def test_a_plan_in_yaml_needs_no_completion(small: Callable[..., Planner], tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("goal: {topic: boats}\nsubtasks:\n  a: First\n  b: {task: Second, needs: [a], max_steps: 2}\n")
    planner = small({"act a": (turn("finish[x]"),), "act b": (turn("finish[x]"),)})
    state = planner.run(file=path)
    assert state.goal == {"topic": "boats"}
    assert state.parts["b"].subtask == Subtask("b", "Second", needs=("a",), max_steps=2)
    assert isinstance(planner.model, Turns) and set(planner.model.prompts) == {"act a", "act b", "synthesise"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("subtasks:\n  a: {task: x, after: [b]}\n", ":2: a waits for 'b', which is not in the plan"),
        (
            "subtasks:\n  a: {task: x, after: b}\n  b: {task: y, needs: a}\n",
            ":2: these subtasks wait for one another: ",
        ),
        ("subtasks:\n  a: {tasks: x}\n", ":2: subtask a: unknown key 'tasks' (did you mean task?)"),
        ("subtasks:\n  a: {after: []}\n", ":2: subtask a: needs a task"),
        ("subtask:\n  a: x\n", ": a plan needs `subtasks:`"),
        ("subtasks: {a: x}\ngaol: 1\n", ":2: unknown key 'gaol' (did you mean goal?)"),
        ("subtasks: [\n", ":2: not YAML: "),
    ],
)
def test_what_is_wrong_with_a_plan_in_yaml(
    small: Callable[..., Planner], tmp_path: Path, text: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    small({})
    assert main(["plan", str(tmp_path), "--plan", str(path), "--model", f"scripted:{JAPAN}"]) == 2
    assert f"own.yaml{error}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        ("{limits: {max_step: 3}}", "limits: unknown key 'max_step'"),
        ("{stages: {goals: x.j2}}", "plan: unknown stage 'goals' (did you mean goal?)"),
        ("{budget: {total: x}}", "plan: budget must be {total: "),
        ("{subtasks: {a: {steps: 3}}}", "subtask a: unknown key 'steps'"),
        ("{interpret: maybe}", "plan: interpret must be true or false"),
        ("{goal: x}", "plan: unknown key 'goal'"),
    ],
)
def test_what_is_wrong_with_the_settings_of_a_plan(small: Callable[..., Planner], plan: str, error: str) -> None:
    with pytest.raises(AuthorError) as caught:
        small({}, plan=plan)
    assert f"plan.j2:5: {error}" in str(caught.value)


# -- at the same time


class Slow(Turns):
    """Takes a while for each completion, and counts how many are at work."""

    def stage(self, key: str, first: int = 1) -> ScriptedModel:
        outer = self

        class Stage(ScriptedModel):
            def session(self) -> ScriptedModel:
                return self

            def complete(self, prompt: str, **asked: Any) -> Completion:
                with lock:
                    outer.now += 1
                    outer.most = max(outer.most, outer.now)
                time.sleep(0.05)
                with lock:
                    outer.now -= 1
                return super().complete(prompt, **asked)

        lock = self.lock
        return Stage(self.turns.get(key, ()))

    lock = threading.Lock()
    now = most = 0


def test_independent_subtasks_run_at_the_same_time(small: Callable[..., Planner]) -> None:
    names = "abcd"
    plan = "; ".join(f"{name}: Part of it" for name in names) + "; e: The rest (needs a, b, c, d)"
    acts = {f"act {name}": (turn(f"search[{name}]"), turn("finish[x]")) for name in "abcde"}
    model = Slow({**GOAL, "plan": (turn(f"finish[{plan}]"),), **acts, "synthesise": (turn("finish[all]"),)})
    state = small({}, model=model, jobs=4).run()
    assert model.most == 4
    assert statuses(state) == dict.fromkeys("abcde", "done")
    assert state.metadata == {"steps": 10, "max_steps": 25, "subtasks": {"done": 5}, "tool_calls": 5}


def test_steps_are_never_given_away_twice(small: Callable[..., Planner]) -> None:
    plan = "finish[a: First part; b: Second part; c: Third part]"
    acts = {f"act {name}": [turn(f"search[{name}{n}]") for n in range(9)] for name in "abc"}
    model = Slow({**GOAL, "plan": (turn(plan),), **acts, "synthesise": (turn("finish[x]"),)})
    state = small({}, model=model, jobs=3, plan="{limits: {max_steps: 5}}").run()
    assert state.steps <= 5


# -- state files


def test_the_state_is_kept_after_each_step_and_says_everything(small: Callable[..., Planner], tmp_path: Path) -> None:
    kept: list[dict[str, Any]] = []
    acts = {"act a": (turn("search[x1]"), turn("finish[X1]")), "synthesise": (turn("finish[all]"),)}
    planner = small({"plan": (turn("finish[a: First part]"),), **acts})
    state = planner.run(save=lambda state: kept.append(yaml.safe_load(state.dump())))
    running = [each["subtasks"]["a"] for each in kept if each.get("subtasks")]
    assert [part["status"] for part in running][:2] == ["pending", "in_progress"]
    assert kept[-1] == yaml.safe_load(state.dump())
    assert json.loads(json.dumps(state.as_dict()))["answer"] == "all"


class Dies(PlanScript):
    """A model server that is gone after so many completions."""

    def __init__(self, state: PlanState, completions: int, error: BaseException) -> None:
        super().__init__(state)
        self.left = completions
        self.error = error

    def stage(self, key: str, first: int = 1) -> ScriptedModel:
        outer = self

        class Stage(ScriptedModel):
            def session(self) -> ScriptedModel:
                return self

            def complete(self, prompt: str, **asked: Any) -> Completion:
                if outer.left == 0:
                    raise outer.error
                outer.left -= 1
                return super().complete(prompt, **asked)

        return Stage(super().stage(key, first).turns)


@pytest.mark.parametrize(
    ("name", "error"),
    [("japan_judged", ServerError("the server is gone")), ("japan_no_flights", KeyboardInterrupt())],
    ids=["server", "ctrl-c"],
)
def test_a_plan_that_was_cut_short_goes_on_wherever_it_was(name: str, error: BaseException, tmp_path: Path) -> None:
    recorded = PlanState.load(TRACES / f"{name}.plan")
    path = tmp_path / "state.plan"
    for completions in range(sum(len(trace.completions) for trace in recorded.traces.values())):
        path.unlink(missing_ok=True)
        cut = Planner(TRAVEL, Dies(recorded, completions, error), interpret=recorded.interpret)
        try:
            state = cut.run(save=lambda state: state.save(path))
            assert state.stop_reason == "llm_error"
        except KeyboardInterrupt:
            assert PlanState.load(path).request
        whole = Planner(TRAVEL, Dies(recorded, -1, error), interpret=recorded.interpret)
        assert whole.run(past=PlanState.load(path)).dump() == (TRACES / f"{name}.plan").read_text(encoding="utf-8")


def test_a_plan_that_was_killed_goes_on(tmp_path: Path) -> None:
    path, code = tmp_path / "state.plan", (
        "import sys, time; from pathlib import Path; from react_text.plan import *\n"
        "class Late(PlanScript):\n    def stage(self, *key):\n        time.sleep(0.15); return super().stage(*key)\n"
        f"Planner(Path({str(TRAVEL)!r}), Late.load(Path({str(JAPAN)!r}))).run("
        f"save=lambda state: state.save(Path(sys.argv[1])))\n"
    )  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    while "act flights" not in (path.read_text(encoding="utf-8") if path.exists() else ""):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    past = PlanState.load(path)
    assert "act flights" in past.traces and "synthesise" not in past.traces
    assert Planner(TRAVEL, PlanScript.load(JAPAN)).run(past=past).dump() == JAPAN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("format: 1\n", "this is no recorded plan"),
        ("format: 1\nrequest: x\ntraces: [x]\n", "traces must be a mapping"),
        ('format: 1\nrequest: x\ntraces: {goal: "---\\nformat: 9\\n---\\n"}\n', "the trace of 'goal': format 9"),
        ("a: [\n", "not YAML"),
    ],
)
def test_a_state_file_that_cannot_be_read(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "x.plan"
    path.write_text(text)
    with pytest.raises(AuthorError) as caught:
        PlanState.load(path)
    assert str(caught.value).startswith(str(path)) and error in str(caught.value)


# -- goldens


def test_a_change_of_a_tool_is_seen_stage_by_stage(tmp_path: Path) -> None:
    copy = tmp_path / "japan.plan"
    text = JAPAN.read_text(encoding="utf-8")
    copy.write_text(text.replace("'price_usd': 910", "'price_usd': 911"), encoding="utf-8")
    for part in ("prompts", "tools", "traces", "setup.cfg"):
        (tmp_path / part).symlink_to(ROOT / part)
    outcome = PlanCase(copy).check("tools")
    assert [(change.category, change.message.partition(":")[0]) for change in outcome.changes] == [
        ("tool", "act flights")
    ]
    assert any("911" in line for line in outcome.report)


def test_test_update_and_accept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for part in ("prompts", "tools", "setup.cfg"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "travel").symlink_to(TRACES)
    golden = tmp_path / "own" / "japan.plan"
    golden.parent.mkdir()
    golden.write_text(
        JAPAN.read_text(encoding="utf-8").replace("'price_usd': 910", "'price_usd': 911"), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["test", "own", "--tools", "--update"]) == 1
    assert main(["pending", "own"]) == 0
    assert "[tool]" in capsys.readouterr().out
    assert main(["accept", "own"]) == 0
    assert golden.read_text(encoding="utf-8") == JAPAN.read_text(encoding="utf-8")
    assert main(["test", "own"]) == 0


@pytest.mark.parametrize(
    ("file", "plans"),
    [
        ("tools/research.py", ["traces/research/ferries.plan"]),
        ("prompts/research/subquestions.yaml", ["traces/research/ferries.plan"]),
        ("prompts/travel/interpret.j2", sorted(f"traces/travel/{path.name}" for path in TRACES.glob("*.plan"))),
    ],
)
def test_the_plans_that_depend_on_a_file(
    file: str, plans: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["affected", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines if ".plan:" in line] == plans


# -- the command


def test_the_command_plays_the_demo_without_a_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REACT_TEXT_PROBE", "off")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["plan", str(TRAVEL)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Day 1: ")
    assert "Budget: 2882 of 3000 USD spent, 118 left\n  flights: 1700 USD\n" in out
    assert out.endswith("Steps: 8 of 25; subtasks: 4 done; tool calls: 4\n")
    assert "the turns are scripted, replayed from japan.plan" in err and "# --- act flights" in err
    (kept,) = (tmp_path / "react-text" / "runs").glob("*.plan")
    assert err.endswith(f"# success, kept in {kept}\n")


def test_the_command_prints_json_and_keeps_the_state(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, log = tmp_path / "x.plan", tmp_path / "x.jsonl"
    spec = f"scripted:{JAPAN}"
    given = [
        "plan",
        str(TRAVEL / "plan.j2"),
        "--model",
        spec,
        "--json",
        "--quiet",
        "--out",
        str(out),
        "--log",
        str(log),
    ]
    assert main(given) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["metadata"]["tool_calls"] == 4 and printed["money"]["left"] == 118
    assert out.read_bytes() == JAPAN.read_bytes()
    events = [json.loads(line)["event"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert (events.count("start"), events.count("step"), events.count("end")) == (7, 11, 7)
    assert main([*given, "--resume", str(out)]) == 0


def test_the_command_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "x.plan"
    broken = tmp_path / "broken.plan"
    state = PlanState.load(JAPAN)
    del state.traces["act activities"]
    state.save(broken)
    assert main(["plan", str(TRAVEL), "--model", f"scripted:{broken}", "--quiet", "--out", str(out)]) == 3
    assert f"react-text plan {TRAVEL} --resume {out}" in capsys.readouterr().err


# -- options


def test_options_are_mappings_with_an_id() -> None:
    text = "{'id': 'F1', 'cost': 3}\nnot one: {'name': 'x'}\n[{'id': 2}, {'id': 'H3'}]\nIts result was: {'id': 'Z'}"
    assert [option["id"] for option in options_in(f"{text}\n{{'id': ")] == ["F1", 2, "H3", "Z"]


def test_the_options_that_an_answer_names() -> None:
    options = [{"id": "F1"}, {"id": "F10"}, {"id": "H2"}]
    assert picked("H2, then F10 (not f1)", options) == [{"id": "H2"}, {"id": "F10"}]
