"""Constrained decoding on a real llama-server: grammars load, turns keep to them, and nothing is written behind a turn.

The model has 270 million parameters and is asked at temperature 1, where it writes much that is no turn. Its turns are
read to their end here, as a client without the cut would get them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from react_text import Agent, Completion, Options, ParseError, Prompt, load_tools, parse_turn
from react_text.arguments import ArgumentError, Parameter, read_arguments
from react_text.grammar import Grammar
from react_text.labels import PLAIN
from react_text.models.http import HTTPModel
from react_text.models.llamacpp import LlamaCpp
from react_text.models.local import shared_server
from react_text.models.openai import OpenAICompletions
from react_text.nearmiss import FINISH
from react_text.tools import Toolbox
from tests.test_grammar import NAMED, TOOLS

pytestmark = pytest.mark.live

PROMPTS = sorted((Path(__file__).parents[2] / "prompts").glob("*.j2"))
TURNS = 50


@pytest.fixture(scope="module")
def model() -> LlamaCpp:
    return LlamaCpp(shared_server().url)


@dataclass
class Case:
    """A first turn that is to be written."""

    tools: Toolbox
    prompt: str

    @classmethod
    def of(cls, path: Path) -> Case:
        prompt = Prompt.load(path)
        tools = load_tools(prompt.tools)
        tools = tools if prompt.settings.allow is None else tools.offered(prompt.settings.allow)
        return cls(tools, prompt.open(None, tools).text("", "Thought:"))

    def write(self, model: HTTPModel, seed: int, constrain: str, max_tokens: int = 256) -> Completion:
        grammar = Grammar(self.tools, PLAIN, lazy=constrain == "lazy")
        return model.complete(
            self.prompt,
            stop=PLAIN.stops(1),
            options=Options(max_tokens=max_tokens, temperature=1.0, seed=seed),
            constraint=None if constrain == "off" else grammar.after("Thought:", 1),
        )

    def complaint(self, text: str) -> str:
        """What is wrong with a turn, "" when it can be read, its tool is one of these, and its arguments convert."""
        try:
            turn = parse_turn(text)
            if turn.action.tool == FINISH:
                read_arguments(turn.action.arguments, [Parameter("answer")])
            else:
                self.tools[turn.action.tool].read(turn.action.arguments)
        except (ParseError, ArgumentError, KeyError) as error:
            return f"{type(error).__name__}: {error}"
        return ""


def written(model: LlamaCpp, constrain: str, turns: int) -> list[str]:
    """What is wrong with each of so many turns; their figures are printed."""
    cases = [Case.of(path) for path in PROMPTS]
    complaints, tokens, behind = [], 0, []
    started = time.monotonic()
    for seed in range(turns):
        case = cases[seed % len(cases)]
        completion = case.write(model, seed, constrain)
        complaint = case.complaint(completion.text)
        complaints.append(complaint and f"{complaint}: {completion.text!r}")
        tokens += completion.usage.completion_tokens or 0
        if not complaint:
            turn = parse_turn(completion.text)
            assert turn.clean.endswith("]")
            kept = model.tokens(turn.text, add_special=False)
            assert kept and completion.usage.completion_tokens
            behind.append(completion.usage.completion_tokens - len(kept))
    good, average = complaints.count(""), sum(behind) / max(1, len(behind))
    print(
        f"\nconstrain: {constrain}: {good} of {turns} turns are read and convert, {tokens / turns:.0f} tokens a turn, "
        f"{average:.1f} of them behind the bracket (0 kept), {time.monotonic() - started:.0f} seconds"
    )
    assert constrain == "off" or average <= 3
    return complaints


def test_constrained_turns_are_all_read_and_convert(model: LlamaCpp) -> None:
    assert list(filter(None, written(model, "auto", TURNS))) == []


def test_lazily_constrained_turns_call_tools_that_exist(model: LlamaCpp) -> None:
    for complaint in filter(None, written(model, "lazy", 20)):
        assert "ParseError" in complaint, "only the thought may be anything"


def test_without_a_grammar_some_are_not(model: LlamaCpp) -> None:
    assert any(written(model, "off", 20)), "then the grammar would be of no use"


@pytest.mark.parametrize("name", TOOLS)
def test_every_grammar_loads_and_binds(model: LlamaCpp, name: str) -> None:
    case = Case(TOOLS.offered([name]), "Thought:")
    call = Grammar(case.tools, PLAIN).after("Action:", 1)
    options = Options(max_tokens=200, temperature=1.0, seed=1)
    completion = model.complete(f"Use {name}.\nAction:", stop=[], options=options, constraint=call)
    assert completion.constrained
    if completion.finish != "length":
        assert call and call.accepts(completion.text)
        assert case.complaint(f"Action:{completion.text}") == ""


def test_a_grammar_of_all_tools_loads(model: LlamaCpp) -> None:
    assert len(TOOLS) > 30 and set(NAMED) <= set(TOOLS)
    case = Case(TOOLS, "Thought: I look.\nAction: text[x]\nObservation: y\nThought:")
    for constrain in ("auto", "lazy"):
        completion = case.write(model, 1, constrain)
        assert completion.finish == "length" or case.complaint(completion.text) == ""


def test_the_endpoint_of_openai_takes_the_grammar_too(model: LlamaCpp) -> None:
    case = Case.of(PROMPTS[0])
    completion = case.write(OpenAICompletions(model.url), 1, "auto")
    assert completion.constrained
    assert case.complaint(completion.text) == ""


def test_a_grammar_that_is_none_is_refused_with_a_hint_and_the_server_lives_on(model: LlamaCpp) -> None:
    result = Agent(PROMPTS[0], model=model, constrain="auto", options={"grammar": 'root ::= "'}).run()
    assert result.stop_reason == "llm_error"
    assert "answered 400" in result.message and "held a grammar" in result.message
    assert model.complete("The", stop=[], options=Options(max_tokens=1)).text


@pytest.mark.parametrize("constrain", ["auto", "lazy"])
@pytest.mark.parametrize("labels", ["plain", "numbered"])
def test_a_run_keeps_to_the_grammar(model: LlamaCpp, constrain: str, labels: str) -> None:
    result = Agent(PROMPTS[0], model=model, constrain=constrain, labels=labels, temperature=1.0, seed=3).run()
    print(f"\n{result.trace}{result.stop_reason}")
    assert result.stop_reason not in ("llm_error", "llm_timeout", "context_overflow"), result.message
    assert not [warning for warning in result.warnings if "grammar" in warning]
    if constrain == "auto":
        mistakes = {step.error for step in result.steps if step.finish != "length"}
        assert mistakes <= {"", "repeat", "placeholder_answer"}
