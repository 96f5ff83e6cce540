"""`scratchpad: true`: a tool `note[text]` whose notes stay in view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from react_text import Agent, AuthorError, Prompt, Trace
from react_text.cli import main
from react_text.grammar import Grammar
from react_text.labels import PLAIN
from react_text.recover import recover

from .harbour import Harbour, Writer, act, finish, play
from .test_context import Counting, count, pages, read
from .test_context import run as long_run

PROMPT = """\
---
question: What did the quays take in?
tools: [tools.py]
demo: demo.trace
scratchpad: true
---
{% extends "react.j2" %}
"""
DEMO = """\
---
format: 1
---
Question: What did the quays take in?
Thought: I keep what I know.
Action: note[quay 3 is closed]
Observation: noted
Thought: That is all.
Action: finish[coal]
"""


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text('def look(quay: int) -> str:\n    """Look at a quay."""\n    return "coal"\n')
    (tmp_path / "demo.trace").write_text(DEMO)
    (tmp_path / "p.j2").write_text(PROMPT)
    return tmp_path / "p.j2"


def test_a_note_is_an_action_with_a_short_answer() -> None:
    played = play(act("note[quay 3 is closed]"), act('Note["a, b"]'), finish(), scratchpad=True)
    assert [step.observation for step in played.result.steps] == ["noted", "noted", None]
    assert played.result.notes == ("quay 3 is closed", "a, b")
    assert "Action: note[quay 3 is closed]\nObservation: noted\n" in played.prompts[-1]
    assert "note[text] - Keep a fact" in played.prompts[0]
    assert played.prompts[0].index("note[text]") < played.prompts[0].index("finish[answer]")
    assert "Notes so far" not in played.prompts[-1]


def test_without_the_key_there_is_no_such_tool() -> None:
    played = play(act("note[x]"), finish())
    assert "note[text]" not in played.prompts[0]
    assert played.result.steps[0].error == "unknown_tool"
    assert played.result.notes == ()


def test_the_same_note_again_is_a_repeat() -> None:
    played = play(act("note[x]"), act("note[x]"), act("note[ x]"), finish(), scratchpad=True)
    assert [step.error for step in played.result.steps] == ["", "repeat", "repeat", ""]
    assert played.result.notes == ("x",)


def test_an_empty_note_is_a_mistake() -> None:
    played = play(act("note[]"), finish(), scratchpad=True)
    assert played.result.steps[0].error == "bad_arguments"
    assert played.result.notes == ()


def test_the_allowlist_applies() -> None:
    played = play(act("note[x]"), finish(), scratchpad=True, allow=["search"])
    assert played.result.steps[0].error == "denied_tool"
    assert "note[text]" not in played.prompts[0]
    allowed = play(act("note[x]"), finish(), scratchpad=True, allow=["note"])
    assert allowed.result.notes == ("x",)


def test_a_tool_of_that_name_is_in_the_way() -> None:
    def Note(text: str) -> str:
        return text

    with pytest.raises(AuthorError, match="scratchpad: there is a tool called 'Note' already"):
        Agent(None, Note, Writer(finish()), scratchpad=True)


def test_an_agent_keeps_no_notes_between_runs() -> None:
    agent = Agent(None, Harbour().tools, Writer(act("note[x]"), finish(), finish()), scratchpad=True)
    assert agent.run("Q?").notes == ("x",)
    assert agent.run("Q?").notes == ()


def test_prompts_grammars_and_lint_know_it(prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(prompt)]) == 0
    assert "look[quay: int] - Look at a quay.\nnote[text] - " in capsys.readouterr().out
    assert main(["grammar", str(prompt)]) == 0
    assert "note" in capsys.readouterr().out
    agent = Agent(prompt, model=Writer(finish()))
    constraint = Grammar(agent.tools, PLAIN).after("Thought:", 1)
    assert constraint and constraint.accepts(" I keep it.\nAction: note[quay 3 is closed]")
    example = prompt.parent / "example.trace"
    example.write_text(DEMO.replace("format: 1", "format: 1\ntest: false"))
    prompt.write_text(PROMPT.replace("demo:", "examples: [example.trace]\nallow: [look, note]\ndemo:"))
    main(["lint", str(prompt)])
    assert "note" not in capsys.readouterr().out.replace(str(prompt.parent), "")


def test_notes_are_in_the_result_as_json_and_come_back_from_a_log(
    prompt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = prompt.parent / "run.jsonl"
    assert main(["run", str(prompt), "--json", "--quiet", "--log", str(log)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["notes"] == ["quay 3 is closed"]
    trace, _ = recover(log)
    assert trace.body in result["trace"]


# -- in long runs


def test_notes_stay_in_the_transcript_and_stand_at_its_end_once_it_was_shortened() -> None:
    turns = pages(30)
    turns[1], turns[4] = act("note[quay 3 is closed]"), act("note[the crane is slow]")
    model = Counting(turns)
    result = long_run(model, scratchpad=True)
    assert result.ok
    assert result.notes == ("quay 3 is closed", "the crane is slow")
    last = model.prompts[-1]
    assert "Action: note[quay 3 is closed]\nObservation: noted\n" in last
    assert last.endswith("Notes so far:\n- quay 3 is closed\n- the crane is slow\nThought:")
    assert max(map(count, model.prompts)) <= 4096
    for prompt in model.prompts:
        assert ("Notes so far" in prompt) == ("characters left out" in prompt)
    assert b"Notes so far" not in result.trace.dump()


def test_notes_at_the_end_cost_the_prefix_cache_nothing_of_the_transcript(tmp_path: Path) -> None:
    turns = pages(30)
    turns[1] = act("note[quay 3 is closed]")
    agent = Agent(None, read, Counting(turns), max_steps=30, context="elide", scratchpad=True)
    agent.run("What?", log=tmp_path / "run.jsonl")
    steps = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().split("\n")[1:-2]]
    assert sum("elided" in step for step in steps) >= 3
    for step in steps:
        assert ("prefix_bytes_lost" in step) == ("elided" in step)


def test_a_prompt_can_show_its_notes_as_it_likes(tmp_path: Path) -> None:
    text = PROMPT.replace("tools: [tools.py]\ndemo: demo.trace\n", "") + (
        "{% block notes %}{% if notes %}({{ notes | join('; ') }})\n{% endif %}{% endblock %}\n"
    )
    (tmp_path / "p.j2").write_text(text)
    writer = Writer(act("note[x]"), act("note[y]"), finish())
    assert Agent(tmp_path / "p.j2", model=writer).run().ok
    assert [prompt.count("(x") for prompt in writer.prompts] == [0, 1, 1]
    assert writer.prompts[2].endswith("Observation: noted\n(x; y)\nThought:")


def test_a_prompt_without_scratchpad_is_rendered_once(tmp_path: Path) -> None:
    (tmp_path / "p.j2").write_text('---\nquestion: Q?\n---\n{% extends "react.j2" %}\n')
    opened = Prompt.load(tmp_path / "p.j2").open(None, Agent(None, [], Writer()).tools)
    before = opened.text("", "Thought:")
    opened._render = None  # type: ignore[method-assign,assignment]
    assert opened.text("Thought: x\n", "Thought:", step=2) == before + " x\nThought:"


def test_a_trace_with_notes_is_an_ordinary_trace() -> None:
    result = play(act("note[x]"), finish(), scratchpad=True).result
    loaded = Trace.load(result.trace.dump())
    assert loaded.meta["settings"] == {"scratchpad": True}
    assert [step.tool for step in loaded.steps] == ["note", "finish"]
