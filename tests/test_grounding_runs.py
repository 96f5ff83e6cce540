"""What a run does about numbers without a source: report them, tell the model, keep them out of what it writes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Result, ScriptedModel, Trace
from react_text.answer_forms import answer_form
from react_text.golden import Case
from react_text.grammar import Grammar, TurnConstraint
from react_text.grounding import Sources
from react_text.labels import PLAIN
from react_text.models.llamacpp import LlamaCpp
from react_text.models.vllm import VLLM
from react_text.recover import recover
from react_text.resume import Resumption
from react_text.spellings import spellings
from react_text.tools import load_tools

from .gbnf import Gbnf
from .project import Project
from .servers import Server
from .servers.llamacpp import LlamaCppServer
from .servers.vllm import VLLMServer
from .test_grounding import CASES


def look(what: str) -> str:
    """Look something up."""
    return {"price": "{'price': 54219.6, 'id': 'L269'}"}.get(what, "nothing")


LOOK = " Hm.\nAction: look[price]"
GUESS, GOOD = " Yes.\nAction: finish[77 or 54,220 or 78]", " So.\nAction: finish[54,220]"


def play(*turns: str, **settings: Any) -> Result:
    return Agent(tools=[look], model=ScriptedModel(turns), **settings).run("What is it?")


@pytest.mark.parametrize("mode", ["off", "report", "observe", "decode"])
def test_an_answer_with_sources_changes_nothing(mode: str) -> None:
    result = play(LOOK, GOOD, grounding=mode)
    assert (result.answer, result.stop_reason, result.ungrounded, len(result.steps)) == ("54,220", "success", (), 2)


def test_report_only_says_which_numbers_have_no_source() -> None:
    result = play(LOOK, GUESS, grounding="report")
    assert (result.ok, result.ungrounded, len(result.steps)) == (True, ("77", "78"), 2)
    assert play(LOOK, GUESS).ungrounded == ()


TOLD = """\
Error: 77, 78 in the answer have no source: no tool has returned them, and the question does not say them.
Get them from a tool, or finish without them."""


@pytest.mark.parametrize("mode", ["observe", "decode"])
def test_the_model_is_told_once(mode: str) -> None:
    result = play(LOOK, GUESS, GOOD, grounding=mode)
    assert [step.observation for step in result.steps[1:]] == [TOLD, None]
    assert (result.answer, result.stop_reason, result.ungrounded) == ("54,220", "success", ())
    assert result.steps[1].error == "ungrounded" and result.trace.outcomes == {2: "mistake ungrounded"}
    stubborn = play(LOOK, GUESS, LOOK.replace("price", "again"), GUESS, grounding=mode)
    assert (stubborn.ok, stubborn.ungrounded, len(stubborn.steps)) == (True, ("77", "78"), 4)


def test_one_number_is_told_of_in_the_singular() -> None:
    result = play(" So.\nAction: finish[77]", " So.\nAction: finish[77]", grounding="observe")
    assert str(result.steps[0].observation).startswith("Error: 77 in the answer has no source: no tool has returned it")


def test_a_project_words_it_otherwise(tmp_path: Path) -> None:
    (tmp_path / "observe.j2").write_text("{% macro ungrounded(e) %}Says who? {{ e.numbers | join('+') }}{% endmacro %}")
    (tmp_path / "p.j2").write_text("---\ngrounding: observe\n---\n{% extends 'react.j2' %}")
    agent = Agent(tmp_path / "p.j2", [look], ScriptedModel([GUESS, GOOD]))
    assert agent.run("x?").steps[0].observation == "Says who? 77+54,220+78"


@pytest.mark.parametrize("settings", [{"max_steps": 2}, {"max_tool_calls": 9, "max_steps": 2, "on_budget": "finish"}])
def test_an_answer_is_not_lost_to_a_budget(settings: dict[str, Any]) -> None:
    result = play(LOOK, GUESS, grounding="observe", **settings)
    assert (result.ok, result.ungrounded, len(result.steps)) == (True, ("77", "78"), 2)


def test_last_words_are_taken_as_they_are() -> None:
    result = play(LOOK, "77]", grounding="observe", on_budget="finish", max_steps=1)
    assert (result.answer, result.stop_reason, result.ungrounded) == ("77", "max_steps", ("77",))


def test_a_run_without_an_answer_has_no_numbers() -> None:
    result = play(GUESS, LOOK, grounding="observe", max_steps=2)
    assert (result.answer, result.ungrounded) == (None, ())


def test_a_typed_answer_that_was_not_taken_has_no_values() -> None:
    settings: dict[str, Any] = {"answer": {"days": "int"}, "grounding": "observe"}
    turns = [" So.\nAction: finish[days=77]", " Hm.\nAction: look[x]"]
    told = play(*turns, max_steps=2, **settings)
    assert (told.steps[0].error, told.answer, told.values) == ("ungrounded", None, {})
    taken = play(turns[0], turns[0], **settings)
    assert (taken.values, taken.ungrounded) == ({"days": 77}, ("77",))


def test_the_log_tells_and_its_run_can_be_recovered(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    agent = Agent(tools=[look], model=ScriptedModel([LOOK, GUESS, GUESS]), grounding="observe")
    result = agent.run("What is it?", log=log)
    end = json.loads(log.read_text().splitlines()[-1])
    assert (end["event"], end["ungrounded"]) == ("end", ["77", "78"])
    assert recover(log)[0].dump() == result.trace.dump()


def test_a_setting_that_is_none() -> None:
    message = "grounding must be off or report or observe or decode, not 'some'"
    with pytest.raises(AuthorError, match=re.escape(message)):
        play(grounding="some")


# -- decode


def spelled(text: str) -> list[str]:
    return Sources(text).spellings()


def test_spellings_are_the_same_number_in_other_ways() -> None:
    found = spelled("1234 and 54219.6, 0.0844, L269, refund-v3, 2026-07-12, 18:05, 1.4.0")
    assert {
        "1234",
        "1,234",
        "54219.6",
        "54,220",
        "54220",
        "54,219.60",
        "8.44%",
        "8.4 percent",
        "L269",
        "refund-v3",
    } <= set(found)
    assert {"2026-07-12", "18:05", "1.4.0", "8%"} <= set(found)
    assert not {"1,235", "54,219", "8.44", "9%", "0844"} & set(found)


@pytest.mark.parametrize(("observation", "good", "bad"), CASES.values(), ids=CASES)
def test_all_spellings_have_a_source(observation: str, good: str, bad: str) -> None:
    found = list(spellings(observation))
    assert found
    sources = Sources(observation)
    assert all(number.source for each in sources.spellings() for number in sources.trace(each))


def test_only_the_newest_of_very_many_are_offered() -> None:
    found = spelled(" ".join(f"n{number}" for number in range(3000)))
    assert len(found) == 1000 and found[-1] == "n2999" and "n1" not in found


SEEN = "{'price': 54219.6, 'share': 0.0844, 'id': 'L269', 'day': '2026-07-12', 'at': '18:05', 'n': [7, 12]}"
_FOUND = Grammar(load_tools([look]), PLAIN).after("Action: finish[", 1, answer=answer_form(Sources(SEEN).spellings()))
assert _FOUND
CONSTRAINT: TurnConstraint = _FOUND
WRITTEN = {
    "54,220": True,
    "It costs $54,220 (8.44 %) at 18:05 on 2026-07-12; book L269!": True,
    "7": True,
    "7 and 12": True,
    "7, 12": True,
    "(7) <12": True,
    "7%": True,
    "no digits, it's said \"so\"": True,
    "a=7": False,
    "($7).": True,
    "Yes: 7  12, L269.": True,
    "7 ": False,
    "712": False,
    "77": False,
    "7.12": False,
    "7,12": False,
    "7:12": False,
    "7-12": False,
    "7/12": False,
    "7.7": False,
    "x7": False,
    "7x7": False,
    "7\u00a012": False,
    "12 July 2026": True,
    "July 12": True,
    "12 June 2026": False,
    "June 12": False,
    "June": False,
    "(JUN 12)": False,
    "Junction": True,
    "seven (twelve)": True,
    "Eight": False,
    "eighty-four": False,
    "tense": True,
    "all three": False,
    "one of both": True,
    "8": False,
    "54,221": False,
    "L270": False,
    "2026-07-13": False,
    "2026": True,
    "8.44": False,
    "L 269": False,
    "a 7b": False,
    "７７": False,
    "": False,
    " ": False,
    "7 [12]": False,
}  # fmt: skip


@pytest.mark.parametrize(("answer", "fits"), WRITTEN.items())
@pytest.mark.parametrize("language", ["gbnf", "regex"])
def test_the_form_of_an_answer(language: str, answer: str, fits: bool) -> None:
    accepts = Gbnf(CONSTRAINT.gbnf).accepts if language == "gbnf" else CONSTRAINT.accepts
    assert accepts(f"{answer}]\n") == fits
    if fits:
        assert all(number.source for number in Sources(SEEN).trace(answer))


PIECES = [
    "7", "12", "2026", "k", "m", "km", "million", "pm", "x", "$", "(", ")", "-", "\u2212", ",", ".", ":", "/", "%", "=",
    "'", "\u00a0", "\u3000", "\u202f", "#", "*", "1.", "and", "°", "–", "e", "T", "v",
    "July", "Aug", "seven", "eight", "one", "th", *[" "] * 20,
]  # fmt: skip


def test_what_the_form_lets_through_has_a_source() -> None:
    """But for words that count and follow one another: `seven twelve`."""
    sources, chance, through = Sources(SEEN), random.Random(1), 0
    pieces = [*PIECES, *sources.spellings()]
    for _ in range(20_000):
        answer = "".join(chance.choice(pieces) for _ in range(chance.randint(1, 9)))
        if CONSTRAINT.accepts(f"{answer}]\n"):
            missing = [number.text for number in sources.trace(answer) if not number.source]
            assert [text for text in missing if any(map(str.isdigit, text))] == [], answer
            assert [text for text in missing if " " not in text] == [], answer
            through += 1
    assert through > 3000


# -- decode in a run


def answers(grammar: str) -> Iterator[bool]:
    """Whether a grammar takes an answer with a number that was seen, and one with another."""
    for answer in ("54,220", "54,221"):
        yield Gbnf(grammar).accepts(f" So.\nAction: finish[{answer}]\n")


def llamacpp(server: Server) -> LlamaCpp:
    return LlamaCpp(server.url, backoff=0.005, retry_seconds=0.05)


@pytest.mark.parametrize("constrain", ["off", "auto"])
def test_the_numbers_of_each_completion_are_those_seen_before(constrain: str) -> None:
    with LlamaCppServer(LOOK, GOOD) as server:
        agent = Agent(tools=[look], model=llamacpp(server), grounding="decode", constrain=constrain)
        assert agent.run("What is it?").answer == "54,220"
        first, second = (request.json["grammar"] for request in server.completions)
    assert list(answers(first)) == [False, False]
    assert list(answers(second)) == [True, False]


def test_it_works_with_a_lazy_grammar_and_numbered_labels() -> None:
    with LlamaCppServer(" Hm.\nAction 1: look[price]", " So.\nAction 2: finish[54,220]") as server:
        agent = Agent(
            tools=[look], model=llamacpp(server), grounding="decode", constrain="lazy", labels="numbered",
        )  # fmt: skip
        assert agent.run("What is it?").answer == "54,220"
        body = server.completions[1].json
    assert body["grammar_lazy"]
    grammar = Gbnf(body["grammar"])
    assert [grammar.accepts(f"Action 2: finish[{answer}]") for answer in ("54,220", "54,221")] == [True, False]


def test_last_words_are_restricted_too() -> None:
    with LlamaCppServer(LOOK, "54,220]") as server:
        agent = Agent(tools=[look], model=llamacpp(server), grounding="decode", on_budget="finish", max_steps=1)
        result = agent.run("What is it?")
        grammar = Gbnf(server.completions[1].json["grammar"])
    assert (result.answer, result.stop_reason, result.warnings) == ("54,220", "max_steps", ())
    assert [grammar.accepts(text) for text in ("54,220]\n", "54,221]\n", "L269]", "L270]")] == [True, False] * 2


def test_a_server_that_takes_expressions_gets_one() -> None:
    with VLLMServer(LOOK, GOOD) as server:
        Agent(tools=[look], model=VLLM(server.url), grounding="decode").run("What is it?")
        pattern = server.completions[1].json["structured_outputs"]["regex"]
    found = [re.fullmatch(pattern, f" So.\nAction: finish[{answer}]") for answer in ("54,220", "54,221")]
    assert [bool(each) for each in found] == [True, False]


def test_what_cannot_be_restricted_is_told_to_the_model() -> None:
    """A server that ignores its grammar, and words that make a date of a number."""
    with LlamaCppServer(LOOK, " So.\nAction: finish[54,221]", GOOD) as server:
        agent = Agent(tools=[look], model=llamacpp(server), grounding="decode")
        result = agent.run("What is it?")
    assert (result.steps[1].error, result.answer, len(result.warnings)) == ("ungrounded", "54,220", 1)


def test_an_answer_that_has_a_type_keeps_its_form() -> None:
    grammar = Grammar(
        load_tools([look]).offered(None, Agent(model=print, answer={"days": "int"}).settings.answer), PLAIN
    )
    with_form = grammar.after("Action: finish[", 1, answer=answer_form(["7"]))
    assert with_form == grammar.after("Action: finish[", 1)


def test_other_modes_leave_completions_alone() -> None:
    with LlamaCppServer(LOOK, GOOD) as server:
        Agent(tools=[look], model=llamacpp(server), grounding="observe").run("What is it?")
        assert ["grammar" in request.json for request in server.completions] == [False, False]


def test_a_long_answer_form_is_quickly_made() -> None:
    text = " ".join(f"{number}.{number % 7}" for number in range(1000, 3000))
    constraint = Grammar(load_tools([look]), PLAIN).after("Thought:", 1, answer=answer_form(Sources(text).spellings()))
    assert constraint and len(constraint.gbnf) < 50_000 and len(constraint.regex) < 200_000


# -- goldens, resumed runs, the command


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


CRATES = [" Hall 3.\nAction: crates[3]", " So.\nAction: finish[77 crates]", " So.\nAction: finish[41 crates]"]


def test_a_golden_makes_the_remark_anew(project: Project) -> None:
    project.record("traces/a.trace", CRATES, grounding="observe")
    assert Case(project.folder / "traces/a.trace").replay().ok
    project.write("prompts/observe.j2", "{% macro ungrounded(e) %}Says who?{% endmacro %}")
    changes = Case(project.folder / "traces/a.trace").replay().changes
    assert list(map(str, changes)) == ["wording: step 2: the engine words this observation differently"]


def test_a_golden_tells_when_a_number_has_a_source_now(project: Project) -> None:
    project.record("traces/a.trace", CRATES, grounding="observe")
    project.edit("traces/a.trace", "Observation: 41 crates", "Observation: 77 and 41 crates")
    changes = Case(project.folder / "traces/a.trace").replay().changes
    assert [change.category for change in changes][:1] == ["wording"]


def test_a_run_goes_on_behind_the_remark(project: Project) -> None:
    project.record("traces/a.trace", CRATES, grounding="observe")
    resumption = Resumption(project.folder / "traces/a.trace", step=3)
    run = resumption.run(resumption.agent(ScriptedModel([CRATES[1]])))
    list(run)
    assert (run.result.answer, run.result.ungrounded, len(run.result.steps)) == ("77 crates", ("77",), 3)


def test_a_trace_with_a_remark_is_shown_and_checked(project: Project) -> None:
    project.record("traces/a.trace", CRATES, grounding="observe")
    assert "Error: 77 in the answer has no source" in project.run("show traces/a.trace").out
    done = project.run("lint traces/a.trace")
    assert (done.code, done.out) == (0, ""), str(done)
    assert project.run("test traces/a.trace").code == 0


def test_run_says_it_on_stderr_and_in_json(project: Project) -> None:
    project.record("traces/a.trace", CRATES[:2])
    project.edit("prompts/depot.j2", "tools:", "grounding: report\ntools:")
    done = project.run("run prompts/depot.j2 --model scripted:traces/a.trace --quiet", env={"XDG_STATE_HOME": "state"})
    assert (done.code, done.out, done.err) == (0, "77 crates\n", "react-text: no source for 77 in the answer\n")
    done = project.run(
        "run prompts/depot.j2 --model scripted:traces/a.trace --json --quiet", env={"XDG_STATE_HOME": "state"}
    )
    assert json.loads(done.out)["ungrounded"] == ["77"]


def test_the_command_names_numbers_and_places(project: Project) -> None:
    project.record("traces/a.trace", CRATES[::2])
    project.record("traces/b.trace", CRATES[:2])
    line = project.read("traces/a.trace").split("\n").index("Action: finish[41 crates]") + 1
    good = f"traces/a.trace:{line}: 41 from observation 1 (line {line - 2}): 41 crates in hall 3\n"
    done = project.run("ground traces/a.trace")
    assert (done.code, done.out, done.err) == (0, good, "")
    done = project.run("ground traces")
    assert (done.code, done.out) == (1, f"{good}traces/b.trace:{line}: 77 has no source\n")


def test_the_command_reads_logs_and_writes_json(project: Project) -> None:
    agent = Agent(project.folder / "prompts/depot.j2", model=ScriptedModel(CRATES[:2]))
    for _ in range(2):
        agent.run(log=project.folder / "run.jsonl")
    done = project.run("ground run.jsonl")
    assert (done.code, done.out) == (1, "run.jsonl:1: 77 has no source\nrun.jsonl:2: 77 has no source\n")
    done = project.run("ground run.jsonl:2 --json")
    found = {"text": "77", "start": 0, "end": 2, "source": None}
    assert done.code == 1
    assert json.loads(done.out) == [{"file": "run.jsonl:2", "answer": "77 crates", "numbers": [found]}]


def test_the_command_without_an_answer_and_without_a_file(project: Project) -> None:
    project.record("traces/a.trace", [CRATES[0]], max_steps=1)
    done = project.run("ground traces/a.trace")
    assert (done.code, done.out, done.err) == (0, "", "# traces/a.trace: no answer\n")
    assert project.run("ground traces/c.trace").code == 2


def test_the_line_of_a_number_in_an_answer_of_several_lines(tmp_path: Path) -> None:
    turns = [("Action: look[it]", "850"), ("Thought: So.\nAction: finish[1. Fly for 850.\n2. Pay 860.]", None)]
    trace = Trace.record("Question: x?\n", turns, meta={"answer": "1. Fly for 850.\n2. Pay 860."})
    project = Project(tmp_path, {"a.trace": trace.dump().decode()})
    lines = project.read("a.trace").split("\n")
    done = project.run("ground a.trace")
    first = lines.index("Action: finish[1. Fly for 850.") + 1
    assert done.out.split("\n")[1] == f"a.trace:{first + 1}: 860 has no source"
