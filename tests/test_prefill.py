"""`prefill`: how every thought begins. The model goes on behind it, and the trace holds the whole thought."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Agent, AuthorError, ScriptedModel
from react_text.grammar import Grammar
from react_text.labels import NUMBERED, PLAIN, Labels
from react_text.tools import load_tools

from .harbour import Harbour, Writer, play

ASKS = "{{ question }} I look for"
WEATHER = " the weather.\nAction: get_weather[Kiel]"
RAIN = " the answer, rain.\nAction: finish[rain]"


def test_each_thought_begins_with_the_prefill_and_the_trace_holds_it() -> None:
    run = play(WEATHER, RAIN, question="How is it\nin Kiel?", prefill=ASKS)
    assert [prompt.rsplit("\n", 1)[1] for prompt in run.prompts] == ["Thought: How is it in Kiel? I look for"] * 2
    assert [step.thought for step in run.result.steps] == [
        "How is it in Kiel? I look for the weather.",
        "How is it in Kiel? I look for the answer, rain.",
    ]
    assert run.prompts[1].startswith(run.prompts[0] + " the weather.\nAction: get_weather[Kiel]\nObservation: rain")


THOUGHTS = {
    "goes on": (" the pier.", "Q? I look for the pier."),
    "the server drops the first blank": ("the pier.", "Q? I look for the pier."),
    "begins again": (" Q? I look for the pier.", "Q? I look for the pier."),
    "begins with the label": (" Thought: I search the pier.", "I search the pier."),
    "a comma": (", say, the pier.", "Q? I look for, say, the pier."),
    "nothing more": ("", "Q? I look for"),
}


@pytest.mark.parametrize(("written", "thought"), THOUGHTS.values(), ids=THOUGHTS)
def test_how_a_model_goes_on(written: str, thought: str) -> None:
    step = play(f"{written}\nAction: search[pier]", RAIN, question="Q?", prefill=ASKS).result.steps[0]
    assert (step.thought, step.tool) == (thought, "search")


def test_a_script_without_blanks_gets_none() -> None:
    run = play("を探す。\nAction: finish[はい]", question="桟橋は?", prefill="{{ question }}長さ")
    assert run.result.steps[0].thought == "桟橋は?長さを探す。"


def test_an_empty_completion_is_asked_for_the_action() -> None:
    run = play("", " search[pier]", RAIN, question="Q?", prefill=ASKS)
    assert [prompt.rsplit("\n", 1)[1] for prompt in run.prompts[:2]] == ["Thought: Q? I look for", "Action:"]
    assert run.result.answer == "rain"


def test_numbered_labels() -> None:
    run = play(" it.\nAction 1: search[pier]", RAIN, question="Q?", prefill=ASKS, labels="numbered")
    assert run.prompts[1].endswith("\nThought 2: Q? I look for")


def test_it_is_shown_as_part_of_the_thought() -> None:
    shown: list[str] = []
    Agent(tools=Harbour().tools, model=Writer(RAIN), prefill=ASKS).run("Q?", on_text=shown.append)
    assert "".join(shown) == f"Q? I look for{RAIN}"


def test_a_trace_replays_to_itself() -> None:
    trace = play(WEATHER, RAIN, question="Q?", prefill=ASKS).result.trace
    again = Agent(tools=Harbour().tools, model=ScriptedModel.from_trace(trace), prefill=ASKS).run("Q?").trace
    assert again.body == trace.body


@pytest.mark.parametrize("labels", [PLAIN, NUMBERED])
def test_a_grammar_goes_on_behind_it(labels: Labels) -> None:
    grammar = Grammar(load_tools(Harbour().tools), labels)
    bare = labels.cue(labels.thought, 2)
    assert grammar.after(f"{bare} Q? I look for", 2) == grammar.after(bare, 2)


def test_inputs_stand_in_it_and_only_there(tmp_path: Path) -> None:
    path = tmp_path / "p.j2"
    path.write_text('---\ninputs: {place: }\nprefill: "In {{ place }}"\n---\n{% extends "react.j2" %}\n')
    result = Agent(path, model=Writer(RAIN)).run("Q?", variables={"place": "Kiel"})
    assert result.steps[0].thought == "In Kiel the answer, rain."


HEADS = {
    "syntax": ('question: Q?\nprefill: "{{ question"', "p.j2:3: prefill: unexpected end of template"),
    "undefined": ('question: Q?\nprefill: "{{ place }}"', "p.j2: prefill: 'place' is undefined"),
    "no such operation": (
        'question: Q?\nprefill: "{{ question / 2 }}"',
        "p.j2: prefill: TypeError: unsupported operand",
    ),
    "no text": ("question: Q?\nprefill: [a]", "p.j2:3: prefill"),
}


@pytest.mark.parametrize(("head", "message"), HEADS.values(), ids=HEADS)
def test_errors_are_those_of_the_author(tmp_path: Path, head: str, message: str) -> None:
    path = tmp_path / "p.j2"
    path.write_text(f'---\n{head}\n---\n{{% extends "react.j2" %}}\n')
    with pytest.raises(AuthorError) as caught:
        Agent(path, model=Writer()).run()
    assert message in str(caught.value)
