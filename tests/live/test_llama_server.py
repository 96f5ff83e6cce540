"""The engine against a real llama-server and a small base model: the protocol holds, whatever the answers are worth.

A model of 270 million parameters reasons badly, so nothing here looks at what it answers.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from react_text import Agent, Result, open_model
from react_text.models.local import LlamaServer
from react_text.recover import recover
from react_text.resume import Resumption

pytestmark = pytest.mark.live

PROMPTS = Path(__file__).parents[2] / "prompts"


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with LlamaServer() as running:
        yield running


@pytest.fixture(scope="module")
def result(server: LlamaServer) -> Result:
    """A run of system 1 of several steps: greedy, or with the first seed that does not finish at once."""
    model = open_model(server.url)
    for seed, temperature in enumerate([0.0, 0.7, 0.7, 0.7, 0.7, 0.7]):
        result = Agent(PROMPTS / "cloud_spend.j2", model=model, temperature=temperature, seed=seed).run()
        if len(result.steps) > 2:
            break
    return result


def test_the_server_is_recognised_and_named(server: LlamaServer) -> None:
    model = open_model(server.url)
    assert type(model).__name__ == "LlamaCpp"
    assert "gemma" in model.name


def test_a_run_ends_with_a_stop_reason_and_a_trace(result: Result) -> None:
    print(f"\n{result.trace}stop reason: {result.stop_reason}")
    assert result.steps
    assert result.stop_reason not in ("llm_error", "llm_timeout", "context_overflow")
    assert str(result.trace).startswith("Question: ")


def test_no_text_is_kept_behind_the_closing_bracket_of_an_action(result: Result) -> None:
    for step in result.steps:
        if step.tool is not None:
            assert step.text.endswith("]"), step.text
        assert "\nObservation" not in step.text


def test_later_steps_find_nine_tenths_of_their_prompt_in_the_cache(result: Result) -> None:
    assert len(result.steps) > 2, "so short a run shows nothing about the cache"
    for step in result.steps[1:]:
        usage = step.usage
        assert usage.prompt_tokens and usage.cached_tokens is not None
        print(f"step {step.number}: {usage.cached_tokens} of {usage.prompt_tokens} prompt tokens from the cache")
        assert usage.cached_tokens >= 0.9 * usage.prompt_tokens


@pytest.mark.parametrize("scheme", ["llamacpp+", "openai+"])
def test_both_endpoints_stop_at_the_observation_label(server: LlamaServer, scheme: str) -> None:
    for name in ("refund.j2", "debug_ci.j2"):
        result = Agent(PROMPTS / name, model=open_model(scheme + server.url)).run()
        assert result.stop_reason not in ("llm_error", "llm_timeout", "context_overflow"), result.message
        assert all("\nObservation:" not in step.text for step in result.steps)


def test_a_prompt_that_does_not_fit_ends_the_run_with_the_numbers(server: LlamaServer) -> None:
    long = "word " * 6000
    result = Agent(PROMPTS / "debug_ci.j2", model=open_model(server.url)).run(long)
    assert result.stop_reason == "context_overflow"
    assert "4096" in result.message


def test_a_run_out_of_time_ends_as_max_seconds_or_llm_timeout(server: LlamaServer) -> None:
    started = time.monotonic()
    agent = Agent(PROMPTS / "cloud_spend.j2", model=open_model(server.url), max_seconds=0.5, on_budget="stop")
    result = agent.run("Please think about this for a very long time: " + "x y z " * 200)
    assert result.stop_reason in ("max_seconds", "llm_timeout")
    assert time.monotonic() - started < 5


def test_the_server_is_gone_after_close() -> None:
    server = LlamaServer(context=512)
    server.close()
    result = Agent(PROMPTS / "debug_ci.j2", model=open_model("llamacpp+" + server.url)).run()
    assert result.stop_reason == "llm_error"
    assert "is it running" in result.message


def test_a_server_that_is_killed_in_mid_stream_loses_nothing(tmp_path: Path) -> None:
    """The cable is pulled in the middle of the second turn: the run ends, and goes on with another server."""
    log, cut = tmp_path / "run.jsonl", tmp_path / "cut.trace"
    for part in ("prompts", "tools", "traces", "setup.cfg"):
        (tmp_path / part).symlink_to(PROMPTS.parent / part)
    with LlamaServer() as server:

        def pull_the_cable(piece: str) -> None:
            if run.steps and server.alive:
                os.killpg(server._process.pid, signal.SIGKILL)

        model = open_model(f"llamacpp+{server.url}?retry_seconds=2")
        agent = Agent(PROMPTS / "debug_ci.j2", model=model, constrain="auto", max_steps=4)
        run = agent.steps("Read package.json and say which Node it wants.", log=log, on_text=pull_the_cable)
        started = time.monotonic()
        for _ in run:
            pass
        result = run.result
    print(f"\n{result.stop_reason}: {result.message}")
    assert time.monotonic() - started < 60
    assert (result.stop_reason, len(result.steps)) == ("llm_error", 1)
    assert recover(log)[0].body == result.trace.body
    cut.write_bytes(result.trace.dump())
    resumption = Resumption(cut)
    with LlamaServer() as another:
        again = resumption.run(resumption.agent(another.url))
        for _ in again:
            pass
    assert again.result.trace.body.startswith(result.trace.body)
    assert len(again.result.steps) > 1 and again.result.stop_reason not in ("llm_error", "llm_timeout")
