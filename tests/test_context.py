"""Long runs: what is shortened in the prompt, when, and what it does to the server's prefix cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Completion, ContextOverflow, Result, ScriptedModel, Trace, Usage, react
from react_text.context import Gauge
from react_text.models import fit, open_model
from react_text.models.base import Options
from react_text.recover import recover
from react_text.resume import Resumption

from .harbour import act, finish
from .servers import Server, tokens
from .servers.koboldcpp import KoboldCppServer
from .servers.llamacpp import LlamaCppServer
from .servers.lmstudio import LMStudioServer
from .servers.ollama import OllamaServer
from .servers.openai import OpenAIServer
from .servers.sglang import SGLangServer
from .servers.tgi import TGIServer
from .servers.vllm import VLLMServer

STEPS = 60
CONTEXT = 4096
SENTENCE = "Quay {0} took in coal, timber and salt from three ships, and the crane was idle for {0} hours. "


def caveat(page: int) -> str:
    return f"Note: page {page} leaves out quay {page * 7}."


def read(page: int) -> str:
    """Read a page of the port's ledger."""
    half = (SENTENCE.format(page) * 11)[:980]
    return f"{half}\n{caveat(page)}\n{half}" if page % 3 == 0 else f"{half}\n{half}"


def pages(count: int = STEPS) -> list[str]:
    return [*(f" Next.\nAction: read[{page}]" for page in range(1, count)), finish()]


def count(text: str) -> int:
    """Tokens, as a vocabulary makes them: pieces of words, single digits, single marks."""
    return len(re.findall(r"\d|[A-Za-z]{1,6}|[^\w\s]|\n", text))


class Counting:
    """A model with a context of `size` tokens, which it tells if it is `told`. A prompt that does not fit is refused,
    on a `strict` server together with max_tokens, with the numbers or `silent` about them."""

    name = "counting"

    def __init__(
        self,
        turns: Sequence[str],
        size: int = CONTEXT,
        *,
        told: bool = True,
        strict: bool = True,
        silent: bool = False,
        counts: bool = True,
    ) -> None:
        self.turns: Iterator[str] = iter(turns)
        self.size, self.told, self.strict, self.silent, self.counts = size, told, strict, silent, counts
        self.prompts: list[str] = []
        self.refused = 0

    def context_size(self) -> int | None:
        return self.size if self.told else None

    def complete(self, prompt: str, *, options: Options, **_: Any) -> Completion:
        found = count(prompt)
        if found + (options.max_tokens if self.strict else 0) > self.size:
            self.refused += 1
            numbers = {} if self.silent else {"prompt_tokens": found, "context_size": self.size}
            raise ContextOverflow(f"{found} tokens for {self.size}", **numbers)
        self.prompts.append(str(prompt))
        return Completion(next(self.turns), "stop", Usage(found if self.counts else None, 9))


def run(model: Any, tools: Any = read, **settings: Any) -> Result:
    return react("What did the quays take in?", model, tools, **{"max_steps": STEPS, "context": "elide", **settings})


def rebuilds(prompts: Sequence[str], cue: str = "Thought:") -> int:
    return sum(not now.startswith(before.removesuffix(cue)) for before, now in pairwise(prompts))


# -- it fits, it is rebuilt rarely, it loses no caveat

SERVERS: dict[str, dict[str, Any]] = {
    "tells its size": {},
    "takes the prompt alone": {"strict": False},
    "refuses with numbers": {"told": False},
    "refuses without numbers": {"told": False, "silent": True},
    "tells, and refuses without numbers": {"silent": True},
    "does not count": {"counts": False},
}


@pytest.mark.parametrize("name", SERVERS)
def test_sixty_steps_of_long_observations_fit_a_small_context(name: str) -> None:
    model = Counting(pages(), **SERVERS[name])
    result = run(model)
    assert (result.stop_reason, len(result.steps)) == ("success", STEPS), result.message
    assert max(map(count, model.prompts)) <= CONTEXT
    for page in range(3, STEPS, 3):
        assert caveat(page) in model.prompts[-1]
    assert rebuilds(model.prompts) < STEPS / 2
    print(f"{name}: {rebuilds(model.prompts)} rebuilds, {model.refused} refusals")


def test_it_is_refused_once_at_most_before_the_size_is_known() -> None:
    model = Counting(pages(), told=False)
    assert run(model).ok
    assert model.refused == 1
    told = Counting(pages())
    assert run(told).ok
    assert told.refused == 0


def test_between_rebuilds_each_prompt_begins_with_the_one_before() -> None:
    model = Counting(pages(30))
    assert run(model).ok
    lost = [now for before, now in pairwise(model.prompts) if not now.startswith(before.removesuffix("Thought:"))]
    assert 3 <= len(lost) <= 8  # 30 steps of some 500 tokens, half of some 3,300 made free at a time
    for prompt in lost:
        assert count(prompt) <= CONTEXT * 0.7


def test_head_turns_mistakes_and_the_newest_results_stay_as_they_are() -> None:
    turns = pages(20)
    turns[2] = act("raed[3]")
    turns[4] = " I cannot decide."
    model = Counting(turns)
    result = run(model)
    first, last = model.prompts[0], model.prompts[-1]
    assert last.startswith(first.removesuffix("Thought:"))
    for step in result.steps[:-1]:
        assert f"{step.text}\n" in last
    for step in (result.steps[2], result.steps[4]):
        assert f"Observation: {step.observation}\n" in last
    for before, prompt in zip(result.steps, model.prompts[1:], strict=False):
        assert prompt.endswith(f"{before.observation}\nThought:")
    assert "Observation: [... 1,961 characters left out ...]\nThought:" in last


def test_the_oldest_go_first() -> None:
    model = Counting(pages(20))
    result = run(model)
    for prompt in model.prompts:
        whole = [step.number for step in result.steps if step.observation and step.observation in prompt]
        assert whole == list(range(whole[0], whole[-1] + 1)) if whole else True


def test_the_same_run_gives_the_same_prompts() -> None:
    one, other = Counting(pages()), Counting(pages())
    assert run(one).trace == run(other).trace
    assert one.prompts == other.prompts


def test_what_gains_nothing_by_it_is_not_shortened() -> None:
    def read(page: int) -> str:
        return " ".join(f"Note {n} of page {page}." for n in range(20))

    model = Counting(pages(40), 1600)
    result = run(model, read)
    assert result.stop_reason == "context_overflow"
    assert "left out" not in model.prompts[-1]


# -- trace and log hold the whole text; what was done can be read in the log


def test_trace_and_log_hold_the_whole_text(tmp_path: Path) -> None:
    model = Counting(pages(20))
    agent = Agent(None, read, model, max_steps=20, context="elide")
    result = agent.run("What?", log=tmp_path / "run.jsonl")
    verbatim = react("What?", Counting(pages(20), 10**6), read, max_steps=20)
    assert result.trace.body == verbatim.trace.body
    assert recover(tmp_path / "run.jsonl")[0].body == verbatim.trace.body
    events = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().split("\n")[:-1]]
    steps = [event for event in events if event["event"] == "step"]
    shortened = [step.get("elided", []) for step in steps]
    assert [number for each in shortened for number in each] == list(range(1, sum(map(len, shortened)) + 1))
    assert sum(map(len, shortened)) == model.prompts[-1].count("Observation: [...") > 10
    for step, before, now in zip(steps[1:], model.prompts, model.prompts[1:], strict=False):
        if step.get("elided"):
            stable = before.removesuffix("Thought:")
            common = next(n for n, (a, b) in enumerate(zip(stable, now, strict=False)) if a != b)
            assert step["prefix_bytes_lost"] == len(stable[common:].encode())
        else:
            assert "prefix_bytes_lost" not in step


def test_a_golden_of_a_long_run_is_replayed_and_resumed_to_the_same_trace(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[react_text]\n")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "tools.py").write_text(
        f"SENTENCE = {SENTENCE!r}\n\n\ndef read(page: int) -> str:\n"
        '    """Read a page."""\n    return SENTENCE.format(page) * 20\n'
    )
    (tmp_path / "prompts" / "long.j2").write_text(
        "---\nquestion: What?\ntools: [tools.py]\ncontext: elide\nscratchpad: true\n"
        'limits: {max_steps: 20, max_context: 2500}\n---\n{% extends "react.j2" %}\n'
    )
    turns = pages(20)
    turns[3] = act("note[quay 3 is closed]")
    model = Counting(turns, 2500)
    result = Agent(tmp_path / "prompts" / "long.j2", model=model).run()
    assert result.ok
    assert "characters left out" in model.prompts[-1]
    path = tmp_path / "traces" / "long.trace"
    path.parent.mkdir()
    path.write_bytes(result.trace.dump())

    from react_text.golden import Case

    for check in ("replay", "tools"):
        outcome = Case(path).check(check)
        assert outcome.ok, outcome.changes
    resumed = Resumption(path, step=12)
    rest = Counting(turns[11:], 2500)
    again = resumed.run(resumed.agent(rest))
    for _ in again:
        pass
    assert again.result.trace.body == result.trace.body
    assert again.result.notes == result.notes == ("quay 3 is closed",)
    assert max(map(count, rest.prompts)) <= 2500


def test_a_script_is_never_shown_less() -> None:
    result = run(ScriptedModel(pages(20)), max_context=600)
    assert result.ok


# -- when it is not enough


def test_a_newest_observation_that_is_larger_than_the_context_is_shortened_as_well() -> None:
    def read(page: int) -> str:
        return SENTENCE.format(page) * 200

    model = Counting(pages(5), 2000)
    result = run(model, read)
    assert (result.stop_reason, model.refused) == ("success", 0)
    assert "characters left out" in model.prompts[1]
    assert result.steps[0].observation == read(1)


def test_what_cannot_be_shortened_ends_the_run_with_the_numbers() -> None:
    def read(page: int) -> str:
        return f"warning: {SENTENCE.format(page)}\n" * 200

    result = run(Counting(pages(5), 2000), read)
    assert (result.stop_reason, len(result.steps)) == ("context_overflow", 1)
    assert re.search(r"\d+ tokens for 2000", result.message)


def test_verbatim_is_the_default_and_shortens_nothing() -> None:
    model = Counting(pages())
    result = react("What?", model, read, max_steps=STEPS)
    assert result.stop_reason == "context_overflow"
    assert f"for {CONTEXT}" in result.message
    assert not rebuilds(model.prompts)
    assert model.refused == 1


def test_max_context_is_for_servers_that_do_not_tell() -> None:
    model = Counting(pages(20), 10**6, told=False)
    assert run(model, max_context=2000).ok
    assert max(map(count, model.prompts)) <= 2000


def test_max_context_ends_a_verbatim_run_with_the_numbers() -> None:
    model = Counting(pages(20), 10**6, told=False)
    result = react("What?", model, read, max_context=2000)
    assert result.stop_reason == "context_overflow"
    assert re.fullmatch(r"the prompt has about \d{4} tokens, and max_context is 2000; not sent", result.message)
    assert max(map(count, model.prompts)) < 2000


def test_max_context_holds_for_a_function_that_counts_nothing() -> None:
    prompts: list[str] = []
    turns = iter(pages(20))

    def llm(prompt: str, stop: list[str]) -> str:
        prompts.append(prompt)
        return next(turns)

    assert run(llm, max_context=2000).ok
    assert max(map(count, prompts)) <= 2000
    assert "characters left out" in prompts[-1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"context": "short"}, "context must be verbatim or elide, not 'short'"),
        ({"max_context": 0}, "max_context must be a number above 0"),
        ({"max_context": 1.5}, "max_context must be a whole number"),
    ],
)
def test_settings_that_cannot_be(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        Agent(None, read, lambda prompt, stop: "", **setting)


def test_the_front_matter_says_where(tmp_path: Path) -> None:
    path = tmp_path / "p.j2"
    path.write_text('---\nquestion: Q?\ncontext: elided\n---\n{% extends "react.j2" %}\n')
    with pytest.raises(AuthorError, match=r"p\.j2:3: context must be verbatim or elide, not 'elided'"):
        Agent(path, read, lambda prompt, stop: "")


# -- the servers

SMALL = 1500
FAKES: list[tuple[type[Server], str]] = [
    (LlamaCppServer, "llamacpp"),
    (VLLMServer, "vllm"),
    (TGIServer, "tgi"),
    (SGLangServer, "sglang"),
    (LMStudioServer, "lmstudio"),
    (KoboldCppServer, "koboldcpp"),
    (OllamaServer, "ollama"),
]


@pytest.mark.parametrize(("kind", "scheme"), FAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_run_longer_than_the_context_of_a_server(kind: Callable[..., Server], scheme: str) -> None:
    with kind(*pages(12), context=SMALL) as server:
        query = f"?model=llama3:8b&num_ctx={SMALL}" if scheme == "ollama" else ""
        model = open_model(f"{scheme}+{server.url}{query}")
        result = Agent(None, read, model, max_steps=12, context="elide", max_tokens=64).run("What?")
        sent = [request.json for request in server.completions]
    prompts = [body.get("prompt") or body.get("inputs") or body["text"] for body in sent]
    assert result.stop_reason == "success", result.message
    assert max(map(tokens, prompts)) <= SMALL
    assert "characters left out" in prompts[-1]


def test_a_server_that_does_not_tell_is_asked_again_with_a_shorter_prompt() -> None:
    """A llama-server whose size cannot be read: it refuses with the numbers, once."""

    class Silent(LlamaCppServer):
        def pages(self) -> Any:
            return {}

    with Silent(*pages(12), context=SMALL) as server:
        model = open_model(f"llamacpp+{server.url}")
        result = Agent(None, read, model, max_steps=12, context="elide", max_tokens=64).run("What?")
        sent = [tokens(request.json["prompt"]) for request in server.completions]
    assert result.stop_reason == "success", result.message
    assert sum(size >= SMALL for size in sent) == 1
    assert len(sent) == len(result.steps) + 1


def test_openai_servers_with_num_ctx_in_their_url() -> None:
    with OpenAIServer(*pages(12)) as server:
        model = open_model(f"openai+{server.url}?num_ctx={SMALL}")
        result = Agent(None, read, model, max_steps=12, context="elide", max_tokens=64).run("What?")
        sent = [tokens(request.json["prompt"]) for request in server.completions]
    assert result.ok
    assert max(sent) <= SMALL


# -- the estimate


def test_the_gauge_learns_what_a_token_is() -> None:
    gauge = Gauge()
    assert gauge.of(3000) == 1000
    gauge.learn(4000, 1000, grown=False)
    assert gauge.of(4000) == 1000
    assert gauge.of(4600) == 1200
    gauge.learn(5000, 1500, grown=True)  # two bytes a token, in the new part
    assert gauge.of(6000) == 2000
    assert gauge.of(2500) == 750
    gauge.learn(3000, 900, grown=False)
    assert gauge.of(3200) == 1000
    for size in (3600, 4200, 4800, 5400):  # four bytes a token: the dense part is forgotten
        gauge.learn(size, 900 + (size - 3000) // 4, grown=True)
    assert gauge.of(5800) == 1600


def test_an_empty_completion_asked_for_twice_teaches_nothing() -> None:
    turns = pages(6)
    turns.insert(1, "")
    model = Counting(turns, told=True)
    assert run(model).ok
    assert not rebuilds(model.prompts[:2])
    assert "characters left out" not in model.prompts[-1]


def test_the_trace_does_not_say_how_it_was_shown() -> None:
    result = run(Counting(pages(20)))
    assert b"characters left out" not in result.trace.dump()
    assert Trace.load(result.trace.dump()).meta["settings"] == {"max_steps": STEPS, "context": "elide"}


def test_a_shortened_prompt_is_no_sign_that_the_server_has_cut_it() -> None:
    head, dense, thin = "Rules. " * 100, "7 4 1 8 " * 100, "quay " * 200
    before = fit.Read(head + dense, 1600)
    assert not fit.shrank(fit.Read(head + thin, 900), before)
    assert fit.shrank(fit.Read(head + dense + thin, 900), before)


def test_a_repeat_is_told_its_result_which_may_not_be_above_any_more() -> None:
    turns = [*pages(12)[:-1], act("read[3]"), *(act(f"read[{page}]") for page in range(12, 18)), finish()]
    model = Counting(turns, 2000)
    result = run(model)
    assert result.ok, result.message
    assert result.steps[11].error == "repeat"
    assert f"Its result was: {read(3)}\n" in model.prompts[12]
    left = f"in step 3 and was not run again. Its result was: [... 980 characters left out ...]\n{caveat(3)}\n[... 980"
    assert left in model.prompts[-1]
    assert model.prompts[-1].count("other arguments, or finish with what is known.") == 1
    verbatim = react("What?", Counting([act("read[1]"), act("read[1]"), finish()]), read)
    assert "Its result is above." in verbatim.trace.body
