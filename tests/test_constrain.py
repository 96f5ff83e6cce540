"""Runs whose decoding is constrained, server by server, and the command that shows a grammar."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Completion, Options, Result, ScriptedModel, load_tools, react
from react_text.grammar import Grammar, TurnConstraint
from react_text.labels import PLAIN
from react_text.models.detect import SERVERS
from react_text.models.llamacpp import LlamaCpp
from react_text.models.vllm import VLLM

from .fakes import FakeServer, error, reply
from .gbnf import Gbnf
from .project import Project
from .servers import TURN, Server
from .servers.llamacpp import LlamaCppServer
from .servers.vllm import VLLMServer
from .test_servers import Case, every_server, model_of

FIELDS = {
    "llamacpp": ("grammar", "gbnf"),
    "koboldcpp": ("grammar", "gbnf"),
    "textgen": ("grammar_string", "gbnf"),
    "tabbyapi": ("regex_pattern", "regex"),
    "vllm": ("structured_outputs.regex", "regex"),
    "sglang": ("sampling_params.regex", "regex"),
    "tgi": ("parameters.grammar.value", "regex"),
}


def field(body: dict[str, Any], path: str) -> Any:
    for name in path.split("."):
        body = body[name]
    return body


def lookup(keyword: str) -> str:
    """Look a keyword up."""
    return f"240 m for {keyword}"


def search(query: str) -> str:
    """Search."""
    return "nothing"


def turn_of(*tools: Any) -> TurnConstraint:
    """The constraint of a whole turn."""
    found = Grammar(load_tools(tools), PLAIN).after("Thought:", 1)
    assert found
    return found


def run_on(server: Server, **settings: Any) -> Result:
    return Agent(tools=[lookup], model=model_of(server), **settings).run("How long is the pier?")


@every_server
def test_each_server_gets_the_grammar_in_its_own_field(case: Case) -> None:
    with case.server("\nAction: finish[240 m]") as server:
        result = run_on(server, constrain="auto")
        off = run_on(server)
        constrained, free = (request.json for request in server.completions)
    assert result.answer == off.answer == "240 m"
    if server.kind in FIELDS:
        path, language = FIELDS[server.kind]
        assert field(constrained, path) == getattr(turn_of(lookup), language)
        with pytest.raises(KeyError):
            field(free, path)
        assert result.warnings == off.warnings
    else:
        assert constrained == free
        assert [w for w in result.warnings if w not in off.warnings] == [
            f"{server.url}{server.path} takes no grammar: constrain has no effect there"
        ]


def test_an_endpoint_of_openai_takes_the_field_of_the_server_that_its_list_names() -> None:
    with VLLMServer("\nAction: finish[x]") as server:
        Agent(tools=[lookup], model=SERVERS["openai"](server.url), constrain="auto").run("x?")
        assert field(server.completions[0].json, "structured_outputs.regex") == turn_of(lookup).regex


def llamacpp(server: FakeServer) -> LlamaCpp:
    return LlamaCpp(server.url, backoff=0.005, retry_seconds=0.05)


def grammars(server: Server) -> list[str]:
    return [request.json["grammar"] for request in server.completions]


def test_a_lazy_grammar_goes_to_llamacpp_with_its_trigger() -> None:
    with LlamaCppServer(" x\nAction: finish[x]") as server:
        Agent(tools=[lookup], model=llamacpp(server), constrain="lazy").run("x?")
        body = server.completions[0].json
    assert body["grammar"].startswith('root ::= "Action: " call "\\n"?\n')
    assert (body["grammar_lazy"], body["grammar_triggers"]) == (True, [{"type": 2, "value": "\n(Action:)"}])


def test_only_allowed_tools_and_no_made_calls_are_in_the_grammar_of_a_step() -> None:
    def status() -> str:
        """The state of the pier."""
        return "open"

    with LlamaCppServer("\nAction: status[]", "\nAction: finish[x]") as server:
        agent = Agent(tools=[lookup, status, search], model=llamacpp(server), allow=["status"], constrain="auto")
        assert agent.run("x?").answer == "x"
        first, second = grammars(server)
    assert '"status[]"' in first and "lookup" not in first
    assert "status" not in second and '"finish["' in second
    with LlamaCppServer("\nAction: status[]", "\nAction: status[]", "\nAction: finish[x]") as server:
        Agent(tools=[status], model=llamacpp(server), constrain="auto", repeats="off").run("x?")
        assert ['"status[]"' in grammar for grammar in grammars(server)] == [True] * 3


def test_parts_of_a_turn_are_asked_for_with_the_grammar_of_the_part() -> None:
    grammar = Grammar(load_tools([lookup]), PLAIN)
    part, answer = grammar.after("Action:", 1), grammar.after("Action: finish[", 2)
    assert part and answer
    with LlamaCppServer("", " lookup[pier]", "240 m]\n") as server:
        agent = Agent(tools=[lookup], model=llamacpp(server), constrain="auto", max_steps=1, on_budget="finish")
        result = agent.run("x?")
        assert grammars(server) == [turn_of(lookup).gbnf, part.gbnf, answer.gbnf]
    assert (result.answer, result.stop_reason) == ("240 m", "max_steps")


def test_reasoning_that_a_stop_string_has_cut_goes_on_without_a_grammar() -> None:
    with LlamaCppServer("<think>a\nObservation: b", " b</think>\nAction: finish[x]") as server:
        assert Agent(tools=[lookup], model=llamacpp(server), constrain="auto").run("x?").answer == "x"
        assert ["grammar" in request.json for request in server.completions] == [True, False]


@pytest.mark.parametrize("tail", ["", "\n"], ids=["ends behind the bracket", "one newline"])
def test_terminal_grammar_state(tail: str) -> None:
    """The server may end a text where its grammar is complete, with or without the newline that is allowed there."""
    first, last = f" x\nAction: lookup[pier]{tail}", f" y\nAction: finish[240 m]{tail}"
    with LlamaCppServer(first, last) as server:
        result = Agent(tools=[lookup], model=llamacpp(server), constrain="auto").run("x?")
        assert [Gbnf(grammar).accepts(first) for grammar in grammars(server)] == [True, True]
    assert (result.answer, result.warnings) == ("240 m", ())
    assert [step.text for step in result.steps] == [
        "Thought: x\nAction: lookup[pier]", "Thought: y\nAction: finish[240 m]",
    ]  # fmt: skip


IGNORED = "the model server does not keep to the grammar it was given"


def test_a_server_that_ignores_the_grammar_is_reported_once() -> None:
    turns = [" x\nAction: search[a]", " x\nAction: search[b]", " x\nAction: finish[240 m]"]
    with LlamaCppServer(*turns) as server:
        result = Agent(tools=[lookup], model=llamacpp(server), constrain="auto").run("x?")
    assert [warning[: len(IGNORED)] for warning in result.warnings] == [IGNORED]
    assert result.answer == "240 m"
    with LlamaCppServer(*turns) as server:
        assert Agent(tools=[lookup], model=llamacpp(server)).run("x?").warnings == ()


@pytest.mark.parametrize(
    ("first", "given"),
    [
        pytest.param(" I think so, and so on, and so on, and so on, and so on.", {"max_tokens": 12}, id="max_tokens"),
        pytest.param(" I think.\n\nMore.", {"stop": ["\n\n"]}, id="a stop string of the author"),
    ],
)
def test_a_text_that_was_cut_is_no_sign_of_a_server_that_ignores_the_grammar(first: str, given: Any) -> None:
    with LlamaCppServer(first, " x\nAction: finish[x]") as server:
        result = Agent(tools=[lookup], model=llamacpp(server), constrain="auto", **given).run("x?")
    assert ([step.ok for step in result.steps], result.answer) == ([False, True], "x")
    assert result.warnings == ()


def test_a_refused_connection_after_a_grammar_request_is_reported_with_a_hint() -> None:
    with LlamaCppServer("\nAction: lookup[pier]") as server:
        model = llamacpp(server)
        run = Agent(tools=[lookup], model=model, constrain="auto").steps("x?")
        next(iter(run))
    list(run)
    assert run.result.stop_reason == "llm_error"
    assert "is it running" in run.result.message
    assert "held a grammar" in run.result.message and "constrain: off" in run.result.message


@pytest.mark.parametrize(("status", "hint"), [(500, True), (400, True), (401, False), (404, False), (503, False)])
def test_which_refusals_hint_at_the_grammar(status: int, hint: bool) -> None:
    with FakeServer(error(status, {"error": {"message": "Unexpected empty grammar stack"}})) as server:
        constrained = Agent(tools=[lookup], model=llamacpp(server), constrain="auto").run("x?")
        free = Agent(tools=[lookup], model=llamacpp(server)).run("x?")
    assert constrained.stop_reason == free.stop_reason == "llm_error"
    assert ("held a grammar" in constrained.message) == hint
    assert "held a grammar" not in free.message


def test_a_field_of_the_author_comes_before_that_of_the_engine() -> None:
    with LlamaCppServer("\nAction: finish[x]") as server:
        Agent(tools=[lookup], model=llamacpp(server), constrain="auto", options={"grammar": "mine"}).run("x?")
        assert grammars(server) == ["mine"]


def test_functions_and_scripts_are_not_bothered_with_a_grammar() -> None:
    def llm(prompt: str, stop: list[str]) -> str:
        return TURN if "Observation:" not in prompt.rpartition("Question:")[2] else " ok\nAction: finish[x]"

    assert react("x?", llm, [lookup], constrain="auto").answer == "x"
    assert react("x?", ScriptedModel(["\nAction: finish[x]"]), [lookup], constrain="lazy").answer == "x"
    completion = ScriptedModel(["\nAction: finish[x]"]).complete(
        "x", stop=[], options=Options(), constraint=turn_of(lookup)
    )
    assert completion == Completion("\nAction: finish[x]")


@pytest.mark.parametrize(
    ("version", "name"),
    [("0.6.3.post1", "guided_regex"), ("0.10.2", "guided_regex"), ("0.11.0", "structured_outputs"),
     ("1.0", "structured_outputs"), ("", "structured_outputs")],
)  # fmt: skip
def test_the_field_of_a_vllm_by_its_version(version: str, name: str) -> None:
    with FakeServer(pages={"/version": reply({"version": version})}) as server:
        assert list(VLLM(server.url).constrained(turn_of(lookup))) == [name]


@pytest.mark.parametrize("value", ["sometimes", True])
def test_a_setting_that_is_none(value: Any) -> None:
    with pytest.raises(AuthorError, match=re.escape(f"constrain must be off or auto or lazy, not {value!r}")):
        Agent(tools=[lookup], model=ScriptedModel([]), constrain=value)


# -- the command


@pytest.fixture
def project(tmp_path: Path) -> Project:
    prompt = "---\ntools: tools.py\nallow: [search]\n{}---\n{{% extends 'react.j2' %}}\n"
    tools = "def search(query: str): ...\ndef other(): ...\n"
    bad = prompt.format("constrain: onn\n")
    return Project(tmp_path, {"p.j2": prompt.format(""), "bad.j2": bad, "tools.py": tools})


@pytest.mark.parametrize("language", ["gbnf", "regex", "lark"])
def test_the_command_prints_the_grammar_of_a_prompt(project: Project, language: str) -> None:
    done = project.run(f"grammar p.j2 --as {language}")
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip("\n") == getattr(turn_of(search), language).rstrip("\n")
    assert done.out.endswith("\n") and not done.out.endswith("\n\n")
    if language == "gbnf":
        assert project.run("grammar p.j2").out == done.out


def test_what_the_command_says_about_a_prompt_that_is_wrong(project: Project) -> None:
    done = project.run("grammar bad.j2")
    assert (done.code, done.out) == (2, "")
    assert done.err == "bad.j2:4: constrain must be off or auto or lazy, not 'onn'\n"
    assert project.run("grammar none.j2").code == 2
