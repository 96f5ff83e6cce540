"""The loop: how a run grows its prompt, how it ends, and that nothing raises out of it."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import (
    Agent,
    Completion,
    ContextOverflow,
    Interrupted,
    Options,
    Result,
    ScriptedModel,
    ServerError,
    ServerTimeout,
    Trace,
    Usage,
    react,
)
from react_text.result import explain

from .harbour import Harbour, Writer, act, finish, play
from .test_parse import PIECES

# -- how runs end


def raising(error: BaseException) -> Any:
    def llm(prompt: str, stop: list[str]) -> str:
        raise error

    return llm


class Overfull:
    """A model whose context is full from the start."""

    name = "overfull"

    def complete(self, prompt: str, **_: Any) -> Completion:
        raise ContextOverflow("the prompt has 9 tokens, the context 8", prompt_tokens=9, context_size=8)


ENDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "success": ([finish()], {}),
    "max_steps": ([act("search[a]")], {"max_steps": 1}),
    "max_tool_calls": ([act("search[a]"), act("search[b]")], {"max_tool_calls": 1}),
    "max_seconds": ([act("get_weather[slow]")], {"max_seconds": 0.01}),
    "max_tokens": ([Completion(act("search[a]"), "stop", Usage(9, 1))], {"limits": {"max_tokens": 10}}),
    "max_cost": ([Completion(act("search[a]"), "stop", Usage(9, 1))], {"max_cost": 1e-6, "prices": {"prompt": 1}}),
    "llm_timeout": (raising(TimeoutError("no answer in 5 s")), {}),
    "llm_error": (raising(ConnectionError("refused")), {}),
    "context_overflow": (Overfull(), {}),
    "loop_detected": ([act("search[a]")] * 4, {}),
    "tool_denied:lookup": ([act("lookup[x]")], {"allow": ["search"], "faults": {"tool_denied": "stop"}}),
    "tool_missing:unheard_of": ([act("unheard_of[x]")], {"faults": {"tool_missing": "stop"}}),
    "tool_bad_args:search": ([act("search[]")], {"faults": {"tool_bad_args": "stop"}}),
    "tool_error:get_weather": ([act("get_weather[fail]")], {"faults": {"tool_error": "stop"}}),
    "invalid_action:no_action": ([" prose"], {"faults": {"invalid_action": "stop"}}),
    "invalid_action:repeated": ([" prose"] * 3, {}),
    "invalid_action:empty": ([""] * 6, {}),
}


def weather(city: str) -> str:
    if city == "fail":
        raise ValueError("no such city")
    time.sleep(0.02 if city == "slow" else 0)
    return "rain"


@pytest.mark.parametrize("reason", ENDS)
def test_every_stop_reason(reason: str) -> None:
    model, settings = ENDS[reason]
    tools = {tool.__name__: tool for tool in Harbour().tools} | {"get_weather": weather}
    result = react("Q?", Writer(*model) if isinstance(model, list) else model, tools, **settings)
    assert result.stop_reason == reason
    assert result.ok == (reason == "success")
    assert (result.answer is not None) == (reason == "success")
    assert bool(result.message) == (reason != "success")
    assert len(result.trace.steps) == len(result.steps)
    loaded = Trace.load(result.trace.dump())
    assert loaded.meta["stop_reason"] == reason
    assert [step.observation for step in loaded.steps] == [step.observation for step in result.steps]


def test_the_message_is_that_of_the_server() -> None:
    assert react("Q?", Overfull(), []).message == "the prompt has 9 tokens, the context 8"
    assert "ConnectionError: refused" in react("Q?", raising(ConnectionError("refused")), []).message
    assert "lookup" in explain("tool_denied:lookup")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("x"), "llm_error"),
        (StopIteration(), "llm_error"),
        (ServerError("x"), "llm_error"),
        (ServerTimeout("x"), "llm_timeout"),
        (TimeoutError("x"), "llm_timeout"),
    ],
)
def test_an_error_of_a_model_function_ends_the_run_and_keeps_its_steps(error: Exception, reason: str) -> None:
    turns = iter([act("search[a]")])

    def llm(prompt: str, stop: list[str]) -> str:
        text = next(turns, None)
        if text is None:
            raise error
        return text

    result = react("Q?", llm, Harbour().tools)
    assert (result.stop_reason, len(result.steps)) == (reason, 1)
    assert "Action: search[a]\nObservation: The pier is 240 m long.\n" in str(result.trace)


@pytest.mark.parametrize("text", [None, 3, b"Action: finish[x]"])
def test_a_model_function_that_returns_no_text(text: Any) -> None:
    result = react("Q?", lambda prompt, stop: text, [])
    assert (result.stop_reason, type(text).__name__ in result.message) == ("llm_error", True)


def test_interrupted_in_a_tool() -> None:
    def search(query: str) -> str:
        if query == "b":
            raise KeyboardInterrupt
        return "found"

    with pytest.raises(Interrupted) as caught:
        play(act("search[a]"), act("search[b]"), tools=[search])
    result = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert (result.stop_reason, result.answer, len(result.steps)) == ("interrupted", None, 1)
    assert "Observation: found\n" in str(result.trace)


def test_interrupted_in_the_model() -> None:
    with pytest.raises(Interrupted) as caught:
        react("Q?", raising(KeyboardInterrupt()), [])
    assert caught.value.result.stop_reason == "interrupted"


def test_interrupted_by_a_signal_while_a_tool_runs() -> None:
    over = threading.Event()

    def search(query: str) -> str:
        over.wait(30)
        return "late"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    timer = threading.Timer(0.1, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(Interrupted) as caught:
            play(act("search[a]"), tools=[search])
    finally:
        over.set()
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 10
    assert caught.value.result.stop_reason == "interrupted"


def test_system_exit_of_a_tool_passes_on(tmp_path: Any) -> None:
    def search(query: str) -> str:
        raise SystemExit(3)

    agent = Agent(None, [search], Writer(act("search[a]")))
    with pytest.raises(SystemExit):
        agent.run("Q?", log=tmp_path / "log")
    assert '"event": "end"' in (tmp_path / "log").read_text().split("\n")[-2]


def test_a_run_that_is_left_is_interrupted() -> None:
    run = Agent(None, Harbour().tools, Writer(act("search[a]"), finish())).steps("Q?")
    for step in run:
        assert step.number == 1
        break
    run._iterator.close()  # type: ignore[attr-defined]
    assert (run.result.stop_reason, len(run.result.steps)) == ("interrupted", 1)


# -- how prompts grow


def test_each_prompt_begins_with_the_one_before() -> None:
    turns = [
        act("search[a]"),
        " prose",
        "",
        " lookup[x]",
        "<think>hm</think>\nAction: lookup[y]",
        act("search[a]"),
        finish(),
    ]
    for labels in ("plain", "numbered", {"thought": "思考", "action": "行动", "observation": "观察"}):
        own = turns
        if isinstance(labels, dict):
            own = [turn.replace("Action", "行动") for turn in turns]
        played = play(*own, labels=labels)
        assert played.result.stop_reason == "success"
        prompts = [prompt.rpartition("\n")[0] + "\n" for prompt in played.prompts]
        for before, after in pairwise(prompts):
            assert after.startswith(before)
        head = prompts[0]
        transcript = played.result.trace.body.partition("\n")[2]
        assert (head + transcript).startswith(prompts[-1])


def test_a_prompt_is_head_question_and_transcript() -> None:
    played = play(" I look.\nAction: search[a]\nObservation: x", finish("240 m"))
    body = (
        "Question: How long is the pier?\n"
        "Thought: I look.\n"
        "Action: search[a]\n"
        "Observation: The pier is 240 m long.\n"
        "Thought: That is all.\n"
        "Action: finish[240 m]\n"
    )
    assert str(played.result.trace) == body
    head = played.prompts[0].removesuffix("Question: How long is the pier?\nThought:")
    assert played.prompts[1] + " That is all.\nAction: finish[240 m]\n" == head + body


NUMBERED = (
    "Question: How long?\n"
    "Thought 1: Look.\n"
    "Action 1: search[pier]\n"
    "Observation 1: The pier is 240 m long.\n"
    "Thought 2:\n"
    "Observation 2: Error: nothing was written."
)


def test_numbered_labels() -> None:
    turns = (" Look.\nAction 1: search[pier]\nObservation 1: x", "", "", "Action 3: finish[240 m]")
    played = play(*turns, question="How long?", labels="numbered")
    assert str(played.result.trace).startswith(NUMBERED)
    assert played.stops[0] == ["\nObservation 1:", "\nObservation:", "\nQuestion:"]
    assert [prompt.rpartition("\n")[2] for prompt in played.prompts] == [
        "Thought 1:",
        "Thought 2:",
        "Action 2:",
        "Thought 3:",
    ]
    assert str(played.result.trace).endswith("\nAction 3: finish[240 m]\n")


def test_own_labels() -> None:
    labels = {"thought": "思考", "action": "行动", "observation": "观察", "question": "问题"}
    turns = (" 查。\n行动：search［水位］\n观察：x", " prose", "行动: finish[十二米]")
    played = play(*turns, question="水有多深?", labels=labels)
    assert played.calls == [("search", {"query": "水位"})]
    assert str(played.result.trace).startswith(
        "问题: 水有多深?\n思考: 查。\n行动：search［水位］\n观察: The pier is 240 m long.\n思考: prose\n"
    )
    assert "\n行动: calculator[expression]\n" in str(played.result.steps[1].observation)
    assert played.stops[0] == ["\n观察:", "\n问题:"]
    assert played.result.answer == "十二米"
    for word in ("Thought:", "Action:", "Observation:", "Question:"):
        assert word not in played.prompts[2]


def test_a_base_prompt_shows_a_filled_in_example_with_a_tool_that_is_not_there() -> None:
    prompt = play(finish()).prompts[0]
    assert "letter_count[lantern]" in prompt
    assert "finish[breakwater is longer" in prompt
    assert "letter_count[" not in play(finish(), tools={"letter_count": weather}).prompts[0].partition("Example")[2]


# -- models


def test_a_script_is_played_anew_in_each_run() -> None:
    harbour = Harbour()
    agent = Agent(None, harbour.tools, ScriptedModel([act("search[a]"), finish()]))
    assert agent.run("A?").answer == agent.run("B?").answer == "end"
    assert len(harbour.calls) == 2


def test_a_script_that_is_too_short() -> None:
    agent = Agent(None, Harbour().tools, ScriptedModel([act("search[a]")], name="pier.trace"))
    for _ in range(2):
        result = agent.run("A?")
        assert (result.stop_reason, len(result.steps)) == ("llm_error", 1)
        assert result.message == "the script of pier.trace has 1 turns, and the run asked for one more"


def test_a_script_from_a_trace_makes_the_same_run(tmp_path: Any) -> None:
    turns = [act("search[a]"), " prose", "", "", Completion("Action: lookup[x", "length"), "Action: finish[240 m]"]
    first = play(*turns, max_errors=9).result
    (tmp_path / "run.trace").write_bytes(first.trace.dump())
    again = react("How long is the pier?", f"scripted:{tmp_path / 'run.trace'}", Harbour().tools, max_errors=9)
    assert again.trace.dump() == first.trace.dump()


class Recorder:
    """A model that keeps all it is asked with."""

    name = "recorder"

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def complete(self, prompt: str, **arguments: Any) -> Completion:
        self.asked = {"prompt": prompt, **arguments}
        return Completion(finish())


def test_what_a_model_is_asked_with() -> None:
    model = Recorder()
    react(
        "Q?", model, [], temperature=0.5, max_tokens=99, seed=3, options={"min_p": 0.1}, stop=["\n\n"], max_seconds=60
    )
    assert model.asked["options"] == Options(99, 0.5, 3, {"min_p": 0.1})
    assert model.asked["stop"] == ["\nObservation:", "\nQuestion:", "\n\n"]
    assert 0 < model.asked["deadline"] - time.monotonic() <= 60
    react("Q?", model, [])
    assert model.asked["options"] == Options(256, 0.0)
    assert model.asked["deadline"] is None


def test_at_most_four_stop_strings() -> None:
    model = Recorder()
    react("Q?", model, [], labels="numbered", stop=["a", "b", "c"])
    assert model.asked["stop"] == ["\nObservation 1:", "\nObservation:", "\nQuestion:", "a"]


# -- steps and results


def test_a_step_tells_what_happened() -> None:
    model = ScriptedModel([Completion(" Look. \nAction: search[ pier ]\nmore", "cut", Usage(50, 9, 40)), finish("x")])
    result = react("Q?", model, Harbour().tools)
    step = result.steps[0]
    assert (step.number, step.thought, step.tool, step.arguments) == (1, "Look.", "search", " pier ")
    assert step.text == "Thought: Look. \nAction: search[ pier ]"
    assert step.completion == " Look. \nAction: search[ pier ]\nmore"
    assert (step.observation, step.error, step.ok) == ("The pier is 240 m long.", "", True)
    assert (step.finish, step.usage) == ("cut", Usage(50, 9, 40))
    last = result.steps[1]
    assert (last.number, last.tool, last.arguments, last.observation) == (2, "finish", "x", None)
    assert result.usage == Usage(50, 9, 40)
    assert result.seconds > 0


def test_a_step_without_a_readable_action() -> None:
    step = play(" I wonder.", finish()).result.steps[0]
    assert (step.thought, step.tool, step.arguments, step.args_hash, step.ok) == ("I wonder.", None, None, None, False)


def test_steps_come_one_by_one() -> None:
    harbour = Harbour()
    run = Agent(None, harbour.tools, Writer(act("search[a]"), act("lookup[b]"), finish())).steps("Q?")
    seen: list[tuple[int, int]] = [(step.number, len(harbour.calls)) for step in run]
    assert seen == [(1, 1), (2, 2), (3, 2)]
    assert run.result.answer == "end"


def test_text_is_shown_as_it_may_be_shown() -> None:
    class Streams:
        name = "streams"

        def complete(self, prompt: str, *, on_text: Any, **_: Any) -> Completion:
            pieces = [" Look", ".\nAct", "ion: finish[x", "]", "\nObs"]
            taken = ""
            for piece in pieces:
                taken += piece
                if on_text(piece):
                    return Completion(taken, "cut")
            return Completion(taken)

    shown: list[str] = []
    steps: list[int] = []
    agent = Agent(None, [], Streams())
    assert agent.run("Q?", on_text=shown.append, on_step=lambda step: steps.append(step.number)).answer == "x"
    assert "".join(shown) == " Look.\nAction: finish[x]"
    assert len(shown) > 1
    assert steps == [1]


# -- any run

turns = st.lists(
    st.sampled_from([*PIECES, "Action: search[", "Action: finish[", "get_budget[", "\x00", "\r"]), max_size=12
)
completions = st.builds(Completion, turns.map("".join), st.sampled_from(["stop", "length", "eos"]))
settings = st.fixed_dictionaries(
    {},
    optional={
        "lenient": st.booleans(),
        "labels": st.sampled_from(["plain", "numbered", {"action": "行动", "observation": "观察"}]),
        "on_budget": st.sampled_from(["stop", "finish"]),
        "observations": st.sampled_from(["guarded", "verbatim"]),
        "max_observation": st.integers(1, 20),
        "repeats": st.sampled_from(["off", "soft", {"mode": "soft", "round": 25}]),
        "max_steps": st.integers(1, 6),
        "allow": st.just(["search"]),
    },
)
results = st.text(alphabet="\r\n -\x0bThoughtActionObservation:\u2028{}%ab[]", max_size=30)


@given(st.lists(completions, max_size=5), settings, results)
def test_any_run_ends_with_a_reason_and_a_trace_that_can_be_read(turns: Any, settings: Any, found: str) -> None:
    def search(query: str) -> str:
        return found

    result = play(*turns, tools=[search], **settings).result
    assert result.stop_reason not in ("", "interrupted")
    data = result.trace.dump()
    loaded = Trace.load(data)
    assert loaded.body == str(result.trace)
    assert [(step.text, step.observation) for step in loaded.steps] == [(s.text, s.observation) for s in result.steps]


# -- many runs at once


def test_one_agent_in_many_threads() -> None:
    def llm(prompt: str, stop: list[str]) -> str:
        question = prompt.rpartition("Question: ")[2].partition("\n")[0]
        n = prompt.rpartition("Question: ")[2].count("Observation:")
        return act(f"search[{question} {n}]") if n < 3 else finish(question)

    def search(query: str) -> str:
        time.sleep(0.001)
        return query

    agent = Agent(None, [search], llm)

    async def runs() -> list[Result]:
        return await asyncio.gather(*[asyncio.to_thread(agent.run, f"q{n}") for n in range(24)])

    for n, result in enumerate(asyncio.run(runs())):
        assert result.answer == f"q{n}"
        assert [step.observation for step in result.steps] == [f"q{n} 0", f"q{n} 1", f"q{n} 2", None]


def test_scripted_runs_at_once_do_not_share_their_place() -> None:
    model = ScriptedModel([act("search[a]"), act("search[b]"), finish()])

    def steps() -> Iterator[int]:
        for step in Agent(None, Harbour().tools, model).steps("Q?"):
            yield step.number

    first, second = steps(), steps()
    assert [next(first), next(second), next(first), next(second), next(first), next(second)] == [1, 1, 2, 2, 3, 3]


THINKING = "<think>Thought: perhaps\nObservation: no\nAction: search[b]</think>Look it up.\nAction: search[pier]"


@pytest.mark.parametrize(("think", "kept"), [("drop", False), ("keep", True)])
def test_reasoning_blocks_stay_in_the_transcript_only_where_the_prompt_keeps_them(think: str, kept: bool) -> None:
    prompts: list[str] = []

    def llm(prompt: str, stop: list[str]) -> str:
        prompts.append(prompt)
        return THINKING if len(prompts) == 1 else " Known.\nAction: finish[240 m]"

    result = react("How long?", llm, {"search": lambda query: "240 m"}, think=think)
    assert (result.answer, result.steps[0].arguments) == ("240 m", "pier")
    assert ("<think>" in prompts[1]) == ("<think>" in str(result.trace)) == kept
    again = Trace.load(result.trace.dump())
    assert [step.arguments for step in again.steps] == ["pier", "240 m"]
    assert [step.observation for step in again.steps] == ["240 m", None]
    replayed = react("How long?", ScriptedModel.from_trace(again), {"search": lambda query: "240 m"}, think=think)
    assert str(replayed.trace) == str(result.trace)
