"""Between what a model wants and what is done: allowlist, budgets, repeats, time limits, and what a fault leads to."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Completion, Usage, load_tools, react, tool
from react_text.gateway import Gateway
from react_text.repeats import stable_hash
from react_text.settings import Repeats, Settings

from .harbour import Harbour, Played, Writer, act, finish, play


def errors(played: Played) -> list[str]:
    return [step.error for step in played.result.steps]


def reason(played: Played) -> str:
    return played.result.stop_reason


# -- allowlist


def test_a_tool_that_is_not_allowed_is_refused_and_not_shown() -> None:
    played = play(act("search[x]"), act("lookup[x]"), finish(), allow=["lookup"])
    assert errors(played) == ["denied_tool", "", ""]
    observation = str(played.result.steps[0].observation)
    assert observation == 'Error: the tool "search" may not be used here.\nTools: lookup[keyword]; finish[answer]'
    assert played.calls == [("lookup", {"keyword": "x"})]
    assert "search" not in played.prompts[0]


def test_a_tool_that_is_allowed_but_missing() -> None:
    played = play(act("search_policy[x]"), finish(), allow=["search_policy", "lookup"])
    assert errors(played) == ["missing_tool", ""]
    assert '"search_policy" is not available' in str(played.result.steps[0].observation)


def test_without_allow_all_tools_may_be_used_and_with_an_empty_one_none() -> None:
    assert errors(play(act("search[x]"), finish())) == ["", ""]
    played = play(act("search[x]"), finish(), allow=[])
    assert (errors(played), played.calls) == (["denied_tool", ""], [])


def test_finish_is_always_allowed() -> None:
    assert play(finish("12 m"), allow=["lookup"]).result.answer == "12 m"


def test_allow_takes_functions_and_modules(tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text("def lookup(a: str) -> str:\n    return a\n")
    harbour = Harbour()
    agent = Agent(None, harbour.tools, finish, allow=[harbour.search, tmp_path / "more.py"])
    assert agent.settings.allow == ("search", "lookup")
    assert Agent(None, harbour.tools, finish, allow=harbour.search).settings.allow == ("search",)


def test_a_name_in_another_spelling_is_the_same_tool() -> None:
    assert play(act("Get-Weather[Vigo]"), finish()).calls == [("get_weather", {"city": "Vigo", "days": 1})]
    assert errors(play(act("SEARCH[x]"), finish(), allow=["lookup"])) == ["denied_tool", ""]


# -- budgets


@pytest.mark.parametrize(("limit", "reason_"), [(1, "max_steps"), (2, "success")])
def test_max_steps_counts_turns_finish_included(limit: int, reason_: str) -> None:
    assert reason(play(act("search[a]"), finish(), max_steps=limit)) == reason_


def test_max_steps_is_eight_by_default() -> None:
    played = play(*[act(f"search[{n}]") for n in range(9)])
    assert (reason(played), len(played.prompts)) == ("max_steps", 8)


def test_max_tool_calls() -> None:
    calls = [act("search[a]"), act("unheard_of[x]"), act("search[b]"), act("search[c]")]
    played = play(*calls, max_tool_calls=2)
    assert (reason(played), len(played.calls), len(played.result.steps)) == ("max_tool_calls", 2, 4)
    assert "all 2 tool calls are used up" in str(played.result.steps[3].observation)
    assert reason(play(*calls[:3], finish(), max_tool_calls=2)) == "success"


def slow(seconds: float) -> Callable[..., str]:
    def llm(prompt: str, stop: list[str]) -> str:
        time.sleep(seconds)
        return act(f"search[{prompt.count('search[')}]")

    return llm


def test_max_seconds() -> None:
    harbour = Harbour()
    result = react("Q?", slow(0.03), harbour.tools, max_seconds=0.05)
    assert (result.stop_reason, len(result.steps)) == ("max_seconds", 2)


def test_max_seconds_cuts_a_tool_short() -> None:
    over = threading.Event()

    def search(query: str) -> str:
        over.wait(30)
        return "late"

    started = time.monotonic()
    played = play(act("search[a]"), finish(), tools=[search], max_seconds=0.1)
    over.set()
    assert time.monotonic() - started < 5
    assert (reason(played), errors(played)) == ("max_seconds", ["tool_timeout"])


def costly(*usages: Usage) -> list[Completion]:
    return [Completion(act(f"search[{n}]"), "stop", usage) for n, usage in enumerate(usages)]


def test_max_tokens_of_the_run_counts_prompt_and_completion() -> None:
    played = play(*costly(*[Usage(40, 10)] * 3), limits={"max_tokens": 100})
    assert (reason(played), len(played.result.steps)) == ("max_tokens", 2)
    assert played.result.usage == Usage(80, 20)
    assert reason(play(*costly(*[Usage(40, 10)] * 2), finish(), limits={"max_tokens": 101})) == "success"


def test_max_cost() -> None:
    prices = {"prompt": 2.0, "completion": 10.0}
    played = play(*costly(*[Usage(100_000, 20_000)] * 3), max_cost=0.75, prices=prices)
    assert (reason(played), len(played.result.steps)) == ("max_cost", 2)
    assert played.result.cost == pytest.approx(0.8)


def test_a_server_that_tells_no_tokens_costs_nothing() -> None:
    played = play(*costly(Usage(), Usage(None, 7)), finish(), limits={"max_tokens": 8, "max_cost": 0.1}, prices={})
    assert (reason(played), played.result.usage, played.result.cost) == ("success", Usage(None, 7), 0.0)


def test_what_is_left_of_the_budgets() -> None:
    now = [100.0]
    settings = Settings().override(max_steps=5, max_tool_calls=3, max_seconds=20)
    gateway = Gateway(load_tools(Harbour().tools), settings, clock=lambda: now[0])
    now[0] = 108.0
    assert gateway.remaining(2) == {"steps": 3, "tool_calls": 3, "seconds": 12.0}
    assert gateway.spent_budget(4, Usage()) == ""
    now[0] = 120.0
    assert gateway.spent_budget(4, Usage()) == "max_seconds"
    now[0] = 130.0
    assert gateway.remaining(5) == {"steps": 0, "tool_calls": 3, "seconds": 0.0}


# -- repeats

SAME = {
    "another order": ["get_budget[team=A, month=May]", "get_budget[month=May, team=A]"],
    "positions and names": ["get_budget[A, May]", "get_budget[month=May, team=A]"],
    "JSON": ["get_budget[A, May]", 'get_budget[{"month": "May", "team": "A"}]'],
    "quotes": ["search[pier]", 'search["pier"]'],
    "a number written otherwise": ["get_weather[Vigo, 3]", "get_weather[Vigo, 3.0]"],
    "a default": ["get_weather[Vigo]", "get_weather[Vigo, 1]"],
    "the name in another spelling": ["get_budget[A, May]", "Get-Budget[A, May]"],
}


@pytest.mark.parametrize("calls", SAME.values(), ids=SAME)
def test_the_same_call_is_not_run_again(calls: list[str]) -> None:
    played = play(*map(act, calls), finish())
    assert errors(played) == ["", "repeat", ""]
    assert len(played.calls) == 1
    first, second = played.result.steps[:2]
    assert first.args_hash == second.args_hash


@pytest.mark.parametrize(
    "calls", [["search[pier]", "search[Pier]"], ["search[a]", "lookup[a]"], ["get_weather[a, 1]", "get_weather[a, 2]"]]
)
def test_another_call_is_run(calls: list[str]) -> None:
    played = play(*map(act, calls), finish())
    assert errors(played) == ["", "", ""]
    assert len({step.args_hash for step in played.result.steps}) >= 2


def test_a_repeat_says_where_the_result_is_and_what_else_can_be_done() -> None:
    played = play(act("search[a]"), act("lookup[a]"), act("search[a]"), finish())
    assert played.result.steps[2].observation == (
        "Error: search was already called with these arguments in step 1 and was not run again. Its result is above.\n"
        "Use another tool (calculator, lookup, get_budget, get_weather), other arguments, or finish with what is known."
    )


def test_a_pure_tool_shows_its_result_again() -> None:
    @tool(pure=True)
    def area(side: int) -> int:
        return side * side

    played = play(act("area[7]"), act("area[7]"), finish(), tools=[area])
    assert "Its result was: 49" in str(played.result.steps[1].observation)


def test_the_third_notice_about_the_same_repeat_ends_the_run() -> None:
    played = play(*[act("search[a]")] * 6)
    assert (reason(played), len(played.result.steps), len(played.calls)) == ("loop_detected", 4, 1)
    a, b = act("search[a]"), act("search[b]")
    played = play(a, b, a, b, a, b, finish())
    assert (reason(played), len(played.calls)) == ("success", 2)
    assert errors(played) == ["", "", "repeat", "repeat", "repeat", "repeat", ""]


def test_a_call_that_failed_may_be_made_again() -> None:
    outcomes = iter([ValueError("busy"), "done"])

    def search(query: str) -> str:
        outcome = next(outcomes)
        if isinstance(outcome, ValueError):
            raise outcome
        return outcome

    assert errors(play(act("search[a]"), act("search[a]"), finish(), tools=[search])) == ["tool_raised", "", ""]


@pytest.mark.parametrize("repeats", ["off", {"mode": "off"}, False, Repeats("off")])
def test_repeat_detection_can_be_switched_off(repeats: Any) -> None:
    played = play(*[act("search[a]")] * 4, finish(), repeats=repeats)
    assert (reason(played), len(played.calls)) == ("success", 4)


def spend(team: str, amount: float) -> str:
    return "noted"


NEAR = {
    "case and blanks": ("soft", ["spend[Pilots and Co, 100]", "spend[ pilots  AND co , 100]"], True),
    "a number of another type": ("soft", ["spend[A, 100]", "spend[A, 100.0]"], True),
    "another number": ("soft", ["spend[A, 100]", "spend[A, 101]"], False),
    "a number near by": ({"mode": "soft", "round": 25}, ["spend[A, 100]", "spend[A, 110]"], True),
    "a number in a text near by": ({"mode": "soft", "round": 25}, ["spend[100, 1]", "spend[110, 1]"], True),
    "a number too far": ({"mode": "soft", "round": 25}, ["spend[A, 100]", "spend[A, 120]"], False),
    "rounding is soft only": ({"round": 25}, ["spend[A, 100]", "spend[A, 110]"], True),
    "exact sees the difference": ("exact", ["spend[A, 100]", "spend[a, 100]"], False),
}


@pytest.mark.parametrize(("repeats", "calls", "repeated"), NEAR.values(), ids=NEAR)
def test_near_repeats(repeats: Any, calls: list[str], repeated: bool) -> None:
    played = play(*map(act, calls), finish(), tools=[spend], repeats=repeats)
    assert errors(played) == ["", "repeat" if repeated else "", ""]


def test_a_near_repeat_says_that_it_is_one() -> None:
    played = play(act("spend[A, 1]"), act("spend[a, 1]"), finish(), tools=[spend], repeats="soft")
    assert "with nearly the same arguments in step 1" in str(played.result.steps[1].observation)


@pytest.mark.parametrize(
    "repeats", ["sometimes", {"mode": "soft", "nearest": 5}, {"mode": "soft", "round": "x"}, {"round": 0}, 7]
)
def test_repeats_that_are_none(repeats: Any) -> None:
    with pytest.raises(AuthorError, match="repeats must be exact, soft or off"):
        play(finish(), repeats=repeats)


@pytest.mark.parametrize("number", ["1e999", "NaN", "1e299", "1" + "0" * 400])
def test_numbers_that_cannot_be_rounded_end_no_run(number: str) -> None:
    def spend(sums: dict) -> str:  # type: ignore[type-arg]
        return "noted"

    call = act(f'spend[{{"sums": {{"a": {number}}}}}]')
    played = play(call, call, finish(), tools=[spend], repeats={"mode": "soft", "round": 1e-12})
    assert errors(played) == ["", "repeat", ""]


def test_the_hash_of_arguments_is_stable() -> None:
    values = {"a": {"x": 1, "y": [1, 2]}, "b": datetime.date(2026, 7, 1), "c": {"q", "p"}}
    turned = {"c": {"p", "q"}, "b": datetime.date(2026, 7, 1), "a": {"y": [1, 2], "x": 1}}
    assert stable_hash(values) == stable_hash(turned)
    assert stable_hash({"query": "pier"}) == "bfb885e7851d"
    assert stable_hash(values) != stable_hash({**values, "c": {"p"}})


# -- time limits


def test_the_time_limit_of_a_tool_goes_before_that_of_the_run() -> None:
    over = threading.Event()

    @tool(timeout=0.05)
    def own(a: str) -> str:
        over.wait(30)
        return a

    def other(a: str) -> str:
        over.wait(30)
        return a

    played = play(act("own[x]"), act("other[x]"), finish(), tools=[own, other], tool_timeout=0.1)
    over.set()
    assert errors(played) == ["tool_timeout", "tool_timeout", ""]
    assert "own gave no result within 0.05 seconds" in str(played.result.steps[0].observation)
    assert "other gave no result within 0.1 seconds" in str(played.result.steps[1].observation)


def test_tools_run_in_the_context_of_their_caller() -> None:
    import contextvars

    user = contextvars.ContextVar("user", default="nobody")

    def search(query: str) -> str:
        return user.get()

    user.set("Anna")
    assert play(act("search[x]"), finish(), tools=[search]).result.steps[0].observation == "Anna"


# -- what a fault leads to

BAD = {
    "invalid_action": (" prose", "invalid_action:no_action"),
    "tool_denied": (act("lookup[x]"), "tool_denied:lookup"),
    "tool_missing": (act("unheard_of[x]"), "tool_missing:unheard_of"),
    "tool_bad_args": (act("search[]"), "tool_bad_args:search"),
    "tool_error": (act("search[fail]"), "tool_error:search"),
    "loop_detected": (act("search[first]"), "loop_detected"),
}


def fragile(query: str) -> str:
    if query == "fail":
        raise ValueError("failed")
    return query


def played_fault(fault: str, **settings: Any) -> Played:
    tools = {"search": fragile, "lookup": fragile}
    return play(act("search[first]"), BAD[fault][0], finish(), tools=tools, allow=["search"], **settings)


@pytest.mark.parametrize("fault", BAD)
def test_by_default_a_fault_is_an_observation(fault: str) -> None:
    played = played_fault(fault)
    assert (reason(played), len(played.result.steps)) == ("success", 3)
    assert str(played.result.steps[1].observation).startswith("Error: ")


@pytest.mark.parametrize("fault", BAD)
def test_a_fault_can_end_the_run(fault: str) -> None:
    played = played_fault(fault, faults={fault: "stop"})
    assert (reason(played), len(played.result.steps)) == (BAD[fault][1], 2)
    assert played.result.message
    assert played.result.steps[1].observation in str(played.result.trace)


def test_a_policy_for_one_fault_leaves_the_others() -> None:
    for fault in BAD:
        others = {other: "stop" for other in BAD if other != fault}
        assert reason(played_fault(fault, faults=others)) == "success"


@pytest.mark.parametrize(
    ("faults", "message"),
    [({"tool_eror": "stop"}, "did you mean tool_error"), ({"tool_error": "ignore"}, "observe or stop")],
)
def test_policies_that_are_none(faults: dict[str, str], message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        play(finish(), faults=faults)


MISTAKES = [" prose", act("unheard_of[x]"), act("search[]"), act("finish[]"), act("finish[answer]"), act("search(x)")]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_three_errors_of_the_model_in_a_row_end_the_run(mistake: str) -> None:
    played = play(*[mistake] * 4)
    assert (reason(played), len(played.result.steps)) == ("invalid_action:repeated", 3)


def test_errors_of_different_kinds_add_up() -> None:
    played = play(*MISTAKES)
    assert (reason(played), len(played.result.steps)) == ("invalid_action:repeated", 3)


@pytest.mark.parametrize(
    "between", [act("search[x]"), act("lookup[fail]"), act("search[y]")], ids=["call", "fault", "repeat"]
)
def test_anything_else_in_between_starts_the_count_again(between: str) -> None:
    def lookup(keyword: str) -> str:
        raise ValueError

    played = play(act("search[y]"), *MISTAKES[:2], between, *MISTAKES[:2], finish(), tools=[fragile_search, lookup])
    assert reason(played) == "success"


def fragile_search(query: str) -> str:
    return query


fragile_search.__name__ = "search"


@pytest.mark.parametrize(("limit", "steps"), [(1, 1), (5, 5), (None, 8)])
def test_the_number_of_errors_in_a_row_can_be_set(limit: int | None, steps: int) -> None:
    played = play(*[" prose"] * 9, max_errors=limit)
    assert len(played.result.steps) == steps
    assert reason(played) == ("max_steps" if limit is None else "invalid_action:repeated")


def test_empty_turns_with_others_between_are_errors_like_any() -> None:
    played = play("", "", " prose", "", "")
    assert reason(played) == "invalid_action:repeated"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_step": 3}, "did you mean max_steps"),
        ({"max_steps": 0}, "above 0"),
        ({"max_steps": 2.5}, "whole number"),
        ({"max_steps": None}, "cannot be lifted"),
        ({"max_seconds": "soon"}, "a number above 0"),
        ({"max_tool_calls": True}, "a number above 0"),
    ],
)
def test_limits_that_are_none(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        play(finish(), limits=limits)


# -- on_budget: finish

SPENT: dict[str, tuple[list[str | Completion], dict[str, Any]]] = {
    "max_steps": ([act("search[a]")], {"max_steps": 1}),
    "max_tool_calls": ([act("search[a]"), act("search[b]")], {"max_tool_calls": 1}),
    "max_tokens": ([Completion(act("search[a]"), "stop", Usage(9, 1))], {"limits": {"max_tokens": 10}}),
    "max_cost": ([Completion(act("search[a]"), "stop", Usage(9, 1))], {"max_cost": 1e-6, "prices": {"prompt": 1}}),
    "max_seconds": ([act("search[slow]")], {"max_seconds": 0.02}),
}


@pytest.mark.parametrize(("turns", "settings"), SPENT.values(), ids=SPENT)
def test_one_last_completion_can_only_finish(turns: list[Any], settings: dict[str, Any], request: Any) -> None:
    def search(query: str) -> str:
        time.sleep(0.03 if query == "slow" else 0)
        return query

    played = play(*turns, "240 m] and more", tools=[search], on_budget="finish", **settings)
    assert (reason(played), played.result.answer) == (request.node.callspec.id, "240 m")
    assert played.prompts[-1].endswith("\nAction: finish[")
    assert len(played.prompts) == len(turns) + 1


LAST_WORDS = {
    "nothing": ("", None, "empty"),
    "no closing bracket": ("240 m", None, "truncated"),
    "no answer": ("]", None, "empty_answer"),
    "the label at once": ("Action: finish[240 m]", "240 m", ""),
}


@pytest.mark.parametrize(("text", "answer", "error"), LAST_WORDS.values(), ids=LAST_WORDS)
def test_last_words(text: str, answer: str | None, error: str) -> None:
    played = play(act("search[a]"), text, max_steps=1, on_budget="finish")
    assert (reason(played), played.result.answer) == ("max_steps", answer)
    assert errors(played) == ["", error]


@pytest.mark.parametrize("text", ["Action: lookup[b]", " Once more.\nAction: lookup[b]"])
def test_last_words_run_no_tool(text: str) -> None:
    played = play(act("search[a]"), text, max_steps=1, on_budget="finish")
    assert (reason(played), played.result.answer) == ("max_steps", None)
    assert played.calls == [("search", {"query": "a"})]


def test_no_last_words_when_no_budget_is_spent() -> None:
    assert len(play(finish(), on_budget="finish").prompts) == 1
    assert len(play(*[" prose"] * 3, on_budget="finish").prompts) == 3


def test_a_server_that_fails_during_the_last_words_changes_nothing() -> None:
    played = play(act("search[a]"), max_steps=1, on_budget="finish")
    assert (reason(played), played.result.answer, len(played.result.steps)) == ("max_steps", None, 1)


def test_last_words_with_numbered_labels() -> None:
    writer = Writer(act("search[a]"), "240 m]")
    result = react("Q?", writer, Harbour().tools, max_steps=1, on_budget="finish", labels="numbered")
    assert writer.prompts[1].endswith("\nAction 2: finish[")
    assert result.answer == "240 m"
