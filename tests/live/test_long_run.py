"""Long runs on a real llama-server: what stays in the prompt, and how much of it comes from the server's cache.

A model of 270 million parameters does not drive a run of sixty steps. So the server reads every prompt as in any run,
writes a few tokens and counts; the turn with which the run goes on is the next one of a script. Prompts, limits, token
counts and cache are real, only the words of the turns are not the model's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from react_text import Agent, Completion, Result, open_model
from react_text.models.base import Options
from react_text.models.http import HTTPModel
from react_text.models.local import LlamaServer

pytestmark = pytest.mark.live

CONTEXT = 4096
STEPS = 60
FEW = 4  # tokens to be written where the text does not matter


class Driven:
    """A server's model whose turns are those of a script."""

    name = "driven"

    def __init__(self, url: str, turns: Sequence[str]) -> None:
        model = open_model(url)
        assert isinstance(model, HTTPModel)
        self.model = model.session()
        self.turns = iter(turns)
        self.prompts: list[str] = []
        self.completions: list[Completion] = []

    def context_size(self) -> int | None:
        return self.model.context_size()

    def complete(self, prompt: str, *, stop: Sequence[str], options: Options, **_: Any) -> Completion:
        few = dataclasses.replace(options, max_tokens=FEW)
        completion = self.model.complete(prompt, stop=stop, options=few)  # type: ignore[attr-defined]
        self.prompts.append(str(prompt))
        self.completions.append(completion)
        return dataclasses.replace(completion, text=next(self.turns), finish="stop")


def caveat(page: int) -> str:
    return f"Note: page {page} leaves out quay {page * 7}."


def read(page: int) -> str:
    """Read a page of the port's ledger."""
    line = f"Berth {page}: the crew of the barge unloaded coal and salt, then the crane stood idle until the tide. "
    half = (line * 11)[:980]
    return f"{half}\n{caveat(page)}\n{half}" if page % 3 == 0 else f"{half}\n{half} {'.' * 38}"


def quay(number: int) -> str:
    """What lies at a quay."""
    return (
        f"At quay {number} lies a barge with {number * 13} tonnes of coal for the power station. She came in with the "
        "morning tide and waits for the crane, which is at work on the other side of the basin until noon. Her skipper "
        "asks for fresh water and for a pilot; the lock keeper has been told and will call when the gate is free."
    )


def turns(tool: str, count: int) -> list[str]:
    calls = [f" Next one.\nAction: {tool}[{number}]" for number in range(1, count)]
    return [*calls, " That is all.\nAction: finish[coal and salt]"]


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with LlamaServer(context=CONTEXT) as running:
        yield running


@pytest.fixture(scope="module")
def long_run(server: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Driven, Result, list[Any]]:
    model = Driven(server.url, turns("read", STEPS))
    log = tmp_path_factory.mktemp("log") / "run.jsonl"
    agent = Agent(None, read, model, max_steps=STEPS, context="elide", max_tokens=64)
    result = agent.run("What did the quays take in?", log=log)
    events = [json.loads(line) for line in log.read_text().split("\n")[:-1]]
    return model, result, [event for event in events if event["event"] == "step"]


def test_sixty_steps_never_overflow_a_small_context(long_run: tuple[Driven, Result, list[Any]]) -> None:
    model, result, _ = long_run
    assert (result.stop_reason, len(result.steps)) == ("success", STEPS), result.message
    assert result.warnings == ()
    for step in result.steps[:-1]:
        assert len(step.observation or "") >= 1900
    largest = max(each.usage.prompt_tokens or 0 for each in model.completions)
    print(f"\nthe largest prompt has {largest} of {CONTEXT} tokens")
    assert largest + FEW <= CONTEXT


def test_every_caveat_is_still_in_the_last_prompt(long_run: tuple[Driven, Result, list[Any]]) -> None:
    model, result, _ = long_run
    planted = [caveat(page) for page in range(3, STEPS, 3)]
    assert len(planted) == 19
    assert [each for each in planted if each not in model.prompts[-1]] == []
    for step in result.steps[:-1]:
        assert f"{step.text}\n" in model.prompts[-1]
        assert f"{step.observation}\n" in result.trace.body


def test_the_share_of_the_prompts_that_comes_from_the_cache(long_run: tuple[Driven, Result, list[Any]]) -> None:
    model, _, steps = long_run
    prompt = sum(each.usage.prompt_tokens or 0 for each in model.completions)
    cached = sum(each.usage.cached_tokens or 0 for each in model.completions)
    lost = sum(step.get("prefix_bytes_lost", 0) for step in steps)
    rebuilt = sum("elided" in step for step in steps)
    kept = zip(pairwise(model.prompts), model.completions[1:], steps[1:], strict=True)
    for (before, now), completion, step in kept:
        assert now.startswith(before.removesuffix("Thought:")) == ("elided" not in step)
        if "elided" not in step:
            usage = completion.usage
            new = (usage.prompt_tokens or 0) - (usage.cached_tokens or 0)
            assert new <= 0.25 * CONTEXT, f"step {step['step']} evaluates {new} tokens"
    print(f"\n{prompt} prompt tokens in {len(steps)} steps, {cached} of them ({cached / prompt:.0%}) from the cache")
    print(f"{rebuilt} of the prompts were rebuilt, {lost} bytes lost to the cache by that")
    assert cached > prompt / 3


def test_the_server_evaluates_hardly_more_than_what_is_new(server: LlamaServer) -> None:
    """In twelve steps: at most 1.1 times the bytes by which the prompts have grown. At each seam the server reads some
    five tokens again, for this kind of model; so it is less the more there is new."""
    model = Driven(server.url, turns("quay", 12))
    result = Agent(None, quay, model, max_steps=12).run("What lies at the quays?")
    assert (result.stop_reason, len(result.steps)) == ("success", 12)
    new_bytes = len(model.prompts[-1].encode()) - len(model.prompts[0].encode())
    counts = [(each.usage.prompt_tokens or 0, each.usage.cached_tokens or 0) for each in model.completions]
    new_tokens = counts[-1][0] - counts[0][0]
    evaluated = sum(prompt - cached for prompt, cached in counts[1:]) * new_bytes / new_tokens
    print(f"\n{new_bytes} new bytes in eleven steps, {evaluated:.0f} evaluated ({evaluated / new_bytes:.2f} times)")
    assert evaluated <= 1.1 * new_bytes
