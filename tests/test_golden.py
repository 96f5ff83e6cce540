"""Replay and tools check: a golden is reproduced byte for byte, and what the engine writes itself is made anew."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from react_text import Agent, AuthorError, Completion, Options, ScriptedModel, Trace
from react_text.files import collect
from react_text.golden import Case
from react_text.library import Library
from react_text.offline import NetworkUsed, offline

from .project import DEPOT, Project

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "traces").glob("*.trace"))
TURNS = [" Hall 3.\nAction: crates[3]", " Known.\nAction: finish[41 crates]"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def changes(case: Case, check: str = "replay") -> list[str]:
    return [str(change) for change in case.check(check).changes]


# -- what is reproduced


RUNS: dict[str, tuple[Sequence[str | Completion], dict[str, Any]]] = {
    "a plain run": (TURNS, {}),
    "an unknown tool": ([" x\nAction: crate[3]", *TURNS], {}),
    "bad arguments": ([" x\nAction: crates[three]", *TURNS], {}),
    "another form of call": ([" x\nAction: crates(3)", *TURNS], {}),
    "a lenient run": ([" x\nAction: crates(3)", TURNS[1]], {"lenient": True}),
    "no action": ([" I wonder.", *TURNS], {}),
    "nothing at all": (["", "", *TURNS], {}),
    "only empty turns": ([""] * 6, {}),
    "a thought-less turn": (["\nAction: crates[3]", TURNS[1]], {}),
    "a repeat": ([TURNS[0], *TURNS], {}),
    "a tool that raises": ([" x\nAction: fetch[blue]", *TURNS], {}),
    "a tool that answers nothing": ([" x\nAction: label[blue]", *TURNS], {}),
    "cut off at max_tokens": ([Completion(" x\nAction: crates[3", "length"), *TURNS], {}),
    "the end of the text": ([TURNS[0], Completion(TURNS[1], "eos")], {}),
    "invented observations": ([TURNS[0] + "\nObservation: 7\nThought: y\nAction: finish[7]", TURNS[1]], {}),
    "reasoning": ([" <think>hm Action: fetch[x]</think> Hall 3.\nAction: crates[3]", TURNS[1]], {}),
    "a budget of steps": (TURNS, {"max_steps": 1}),
    "last words": (TURNS, {"max_steps": 1, "on_budget": "finish"}),
    "a budget of calls": ([TURNS[0], " x\nAction: weigh[a]", TURNS[1]], {"max_tool_calls": 1}),
    "a loop": ([TURNS[0]] * 4, {}),
    "a denied tool": ([" x\nAction: fetch[a]", *TURNS], {"allow": ["crates"]}),
    "a stop at a fault": ([" x\nAction: fetch[a]", *TURNS], {"faults": {"tool_error": "stop"}}),
    "numbered labels": (TURNS, {"labels": "numbered"}),
    "own labels": ([t.replace("Action", "Do") for t in TURNS], {"labels": {"action": "Do", "question": "Claim"}}),
    "a server that fails": (TURNS[:1], {}),
    "a shortened observation": (TURNS, {"max_observation": 8}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_replays_from_its_trace(project: Project, name: str) -> None:
    turns, keywords = RUNS[name]
    before = project.record("traces/run.trace", turns, **keywords)
    case = Case(project.folder / "traces" / "run.trace")
    assert changes(case) == []
    assert changes(case, "tools") == []
    assert case.replay().actual.dump() == before.encode()
    assert project.read("traces/run.trace") == before


@pytest.mark.parametrize(
    "question",
    [
        "Who?",
        "Which of these?\n- one\n- two",
        "Line\n\nThought: of mine",
        " blanks ",
        "a: b: c",
        "思考：何？",
        "{{ x }}",
        "Question: q",
    ],
)
@pytest.mark.parametrize("label", ["Question", "Claim"])
def test_the_question_is_found_in_the_task(project: Project, question: str, label: str) -> None:
    project.record("traces/run.trace", TURNS, question, labels={"question": label})
    assert changes(Case(project.folder / "traces" / "run.trace")) == []


def test_inputs_and_a_question_block_of_ones_own(project: Project) -> None:
    project.edit("prompts/depot.j2", "---\n{%", "inputs: {team: night, day: none}\n---\n{%")
    block = "{% block question %}Claim by {{ team }} ({{ day }}): {{ question }} Is it true?{% endblock %}\n"
    project.write("prompts/depot.j2", project.read("prompts/depot.j2") + block)
    for value in ("day", "yes", "007", "2026-07-01", "1.50", 3, True):
        text = project.record("traces/run.trace", TURNS, "Hall 3 is full.", variables={"team": value, "day": "x"})
        assert f"Claim by {value} (x): Hall 3 is full. Is it true?\n" in text
        assert changes(Case(project.folder / "traces" / "run.trace")) == [], value


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_prompt_sent_is_head_and_body_up_to_that_turn(path: Path) -> None:
    case = Case(path)
    sent: list[str] = []
    script = ScriptedModel.from_trace(case.golden).turns

    def model(prompt: str, stop: Sequence[str]) -> Completion:
        sent.append(prompt)
        return script[len(sent) - 1]

    outcome = case.replay()
    agent = Agent(case.prompt, model=model, **(case.golden.meta.get("settings") or {}))
    agent.run(case.golden.task.removeprefix("Question: ").removesuffix("\n"))
    assert len(sent) == len(case.golden.steps)
    for step, prompt in enumerate(sent, 1):
        assert prompt == outcome.head + case.golden.before(step) + "Thought:"


OBSERVATIONS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            ["", "\n", " ", "a\r\nb", "Thought: x\nAction: y[z]", "Observation: x", "---", "{{ x }}", "a\u2028b", "\0"]
        ),
    ),
    min_size=1,
    max_size=4,
)
WRITTEN = st.sampled_from(
    [
        " x\nAction: say[{n}]",
        "\nAction: say[{n}]",
        " x\nAction: say({n})",
        " x\nAction: sai[{n}]",
        " x",
        "",
        " x\nAction: say[",
        " <think>Action: say[9]</think> x\nAction: say[{n}]",
        " x\nAction: say[{n}]\nObservation: made up",
        " **x**\n**Action:** `say[{n}]`",
        " x\nAction: say[ten]",
        "  x \n\n Action:  Say[{n}] ",
        " x\nAction: say[{n}]\nThought: more",
        " x\nAction: None",
    ]
)


@settings(max_examples=60)
@given(OBSERVATIONS, st.lists(WRITTEN, max_size=4), st.sampled_from(["plain", "numbered"]), st.text(max_size=30))
def test_whatever_a_run_was_its_trace_replays(said: list[str], turns: list[str], labels: str, question: str) -> None:
    tools = (
        "import json, pathlib\n\n_SAID = json.loads(pathlib.Path(__file__).with_suffix('.json').read_text())\n\n\n"
        "def say(number: int) -> str:\n    return _SAID[number % len(_SAID)]\n"
    )
    prompt = '---\ntools: [../tools/say.py]\n---\n{% extends "react.j2" %}\n'
    with tempfile.TemporaryDirectory() as folder:
        files = {"setup.cfg": "", "tools/say.py": tools, "tools/say.json": json.dumps(said), "prompts/say.j2": prompt}
        project = Project(Path(folder), files)
        script = [turn.replace("{n}", str(n)) for n, turn in enumerate([*turns, " x\nAction: finish[end]"])]
        try:
            text = project.record("traces/run.trace", script, question, prompt="prompts/say.j2", labels=labels)
        except AuthorError:
            return  # texts that cannot stand in one body: no trace, no golden
        case = Case(project.folder / "traces" / "run.trace")
        assert changes(case) == []
        assert changes(case, "tools") == []
        assert project.read("traces/run.trace") == text


# -- what is found


Edit = Callable[[Project], None]

DRIFTS: dict[str, tuple[Sequence[str | Completion], Edit, list[str]]] = {
    "a tool that is gone": (
        TURNS,
        lambda p: p.edit("tools/depot.py", "def crates", "def boxes"),
        [
            "prompt: ",
            "format: front matter: tools was",
            "wording: step 1: the engine answers this turn itself (unknown_tool)",
        ],
    ),
    "a lower limit": (
        TURNS,
        lambda p: p.edit("prompts/depot.j2", "tools:", "limits: {max_steps: 1}\ntools:"),
        [
            "path: step 2: is missing: finish[41 crates]",
            "answer: step 2: answers nothing instead of '41 crates'",
            "answer: step 1: ends as max_steps instead of success",
        ],
    ),
    "a question block": (
        TURNS,
        lambda p: p.write(
            "prompts/depot.j2", p.read("prompts/depot.j2") + "{% block question %}Q: {{ question }}{% endblock %}"
        ),
        ["prompt: the question line differs"],
    ),
    "other labels": (
        TURNS,
        lambda p: p.edit("prompts/depot.j2", "tools:", "labels: {action: Step}\ntools:"),
        ["prompt: the rendered head is another text now", "prompt: the labels are other words now", "path: step 1"],
    ),
    "other options": (
        TURNS,
        lambda p: p.edit("prompts/depot.j2", "tools:", "options: {temperature: 1}\ntools:"),
        ["format: front matter: options was"],
    ),
    "a near miss that is executed now": (
        [" x\nAction: crates(3)", TURNS[1]],
        lambda p: p.edit("prompts/depot.j2", "tools:", "lenient: true\ntools:"),
        ["path: step 1: calls crates[3] instead of no readable action"],
    ),
    "a template for empty results": (
        [" x\nAction: label[blue]", *TURNS],
        lambda p: p.write("prompts/observe.j2", "{%- macro no_output(e) -%}(nothing){%- endmacro -%}"),
        ["wording: step 1: the engine words this observation differently"],
    ),
    "a template for failures": (
        [" x\nAction: fetch[blue]", *TURNS],
        lambda p: p.write("prompts/observe.j2", "{%- macro tool_raised(e) -%}No: {{ e.text }}{%- endmacro -%}"),
        ["wording: step 1: the engine words this observation differently"],
    ),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_the_replay_finds(project: Project, name: str) -> None:
    turns, edit, expected = DRIFTS[name]
    project.record("traces/run.trace", turns)
    edit(project)
    found = changes(Case(project.folder / "traces" / "run.trace"))
    for start in expected:
        assert any(change.startswith(start) for change in found), found
    assert len(found) == len(expected) or expected[0].startswith("prompt"), found


def test_tools_that_answer_otherwise_are_found_by_the_tools_check_alone(project: Project) -> None:
    project.record("traces/run.trace", [" x\nAction: weigh[ab]", " x\nAction: fetch[b]", *TURNS])
    project.edit("tools/depot.py", "41", "42")
    project.edit("tools/depot.py", "LookupError", "KeyError")
    case = Case(project.folder / "traces" / "run.trace")
    assert changes(case) == []
    assert changes(case, "tools") == [
        "tool: step 2: fetch answers differently",
        "tool: step 3: crates answers differently",
    ]


def test_unsafe_tools_are_not_run_and_answer_from_the_file(project: Project) -> None:
    project.edit("tools/depot.py", '    raise AssertionError("a check must not do this")', '    return "sent"')
    project.record("traces/run.trace", [" x\nAction: ship[blue]", *TURNS])
    project.write("tools/depot.py", DEPOT["tools/depot.py"])
    assert changes(Case(project.folder / "traces" / "run.trace"), "tools") == []


def test_a_tool_that_ends_the_process_is_an_error_and_does_not_pass(project: Project) -> None:
    project.record("traces/run.trace", TURNS)
    project.edit("tools/depot.py", '    return f"{_CRATES', '    raise SystemExit(0)\n    return f"{_CRATES')
    ran = project.run("test --tools")
    assert (ran.code, ran.out) == (2, "0 as recorded, 1 cannot be checked\n")
    assert ran.err == "traces/run.trace: step 1: a tool ended the process (SystemExit: 0)\n"


def test_a_hand_written_golden_needs_only_its_prompt(project: Project) -> None:
    turns = "Thought: Hall 3.\nAction: crates[3]\nObservation: 41 crates in hall 3\nAction: finish[41]\n"
    project.write("traces/run.trace", f"---\nprompt: prompts/depot.j2\n---\nQuestion: How many?\n{turns}")
    case = Case(project.folder / "traces" / "run.trace")
    assert changes(case) == changes(case, "tools") == []


def test_a_golden_that_ends_too_early_is_not_taken_for_a_whole_run(project: Project) -> None:
    project.record("traces/run.trace", TURNS, max_steps=1)
    project.edit("traces/run.trace", "settings: {max_steps: 1}\n", "")
    assert changes(Case(project.folder / "traces" / "run.trace")) == [
        "path: step 1: goes on where the golden ends as max_steps"
    ]


def test_expectations_and_redaction_count_in_a_check(project: Project) -> None:
    project.record("traces/run.trace", TURNS, head="expect: {max_steps: 1, max_prompt_chars: 100}\n")
    found = changes(Case(project.folder / "traces" / "run.trace"))
    assert found[0] == "path: step 2: is one too many: expect says max_steps 1"
    assert found[1].startswith("prompt: the longest prompt has ")

    project.edit("tools/depot.py", "crates in hall {hall}", "crates in hall {hall}, id 0x{id(object()):012x}")
    project.record("traces/run.trace", TURNS, head="redact: address\n")
    case = Case(project.folder / "traces" / "run.trace")
    project.edit("tools/depot.py", "id(object())", "id(object()) + 9")
    assert changes(case, "tools") == []
    project.edit("traces/run.trace", "redact: address\n", "")
    assert changes(Case(project.folder / "traces" / "run.trace"), "tools") == [
        "tool: step 1: crates answers differently"
    ]


# -- no network


NETWORK = "\nimport socket\n\n\ndef _ask():\n    {how}\n\n"


@pytest.mark.parametrize(
    "how",
    [
        "socket.create_connection(('127.0.0.1', 9), timeout=1)",
        "socket.getaddrinfo('localhost', 9)",
        "socket.gethostbyname('localhost')",
        "with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.sendto(b'x', ('127.0.0.1', 9))",
    ],
)
def test_loading_tools_may_not_use_the_network(project: Project, how: str) -> None:
    project.record("traces/run.trace", TURNS)
    swallowed = NETWORK.format(how=how) + "\ntry:\n    _ask()\nexcept Exception:\n    pass\n"
    project.write("tools/depot.py", DEPOT["tools/depot.py"] + swallowed)
    with pytest.raises(AuthorError) as caught:
        Case(project.folder / "traces" / "run.trace").replay()
    assert "loading the tools of depot.j2 tried to reach" in str(caught.value)
    assert changes(Case(project.folder / "traces" / "run.trace"), "tools") == []


def test_the_step_that_uses_the_network_is_named(project: Project) -> None:
    # A value of an Enum that asks the network what it is called, but only when an argument is read.
    kinds = (
        "\nimport enum, socket, sys\n\n\nclass _Name:\n    def __str__(self):\n"
        "        if sys._getframe(1).f_code.co_name != '<genexpr>':\n            socket.getaddrinfo('localhost', 80)\n"
        "        return 'b'\n\n\nclass _Kind(enum.Enum):\n    A = _Name()\n\n\n"
        "def sort(kind: _Kind) -> str:\n    return 'sorted'\n"
    )
    project.write("tools/depot.py", DEPOT["tools/depot.py"] + kinds)
    project.record("traces/run.trace", [TURNS[0], " x\nAction: sort[b]", TURNS[1]])
    path = project.folder / "traces" / "run.trace"
    with pytest.raises(AuthorError) as caught:
        Case(path).replay()
    line = Trace.load(path).line_of(2)
    assert str(caught.value) == f"{path}:{line}: step 2 tried to reach localhost:80; a replay needs no network"


def test_the_guard_holds_in_the_worker_threads_of_tools_and_ends_with_the_replay() -> None:
    def reach(host: str) -> str:
        """Reach a host."""
        socket.getaddrinfo(host, 80)
        return "reached"

    turns = [" x\nAction: reach[127.0.0.1]", " x\nAction: finish[y]"]
    agent = Agent(tools=[reach], model=ScriptedModel(turns))
    with offline("here") as stretch:
        assert "NetworkUsed" in str(agent.run("?").steps[0].observation)
        with pytest.raises(NetworkUsed):
            socket.getaddrinfo("127.0.0.1", 80)
    assert stretch.attempts == ["here tried to reach 127.0.0.1:80"] * 2
    assert agent.run("?").steps[0].observation == "reached"


# -- what cannot be checked


ERRORS: dict[str, tuple[str, str, str]] = {
    "no prompt": ("prompt: prompts/depot.j2\n", "", ":2: a golden needs `prompt:`"),
    "a prompt that is gone": (
        "prompts/depot.j2\n",
        "prompts/depo.j2\n",
        ":3: there is no prompt prompts/depo.j2 (did you mean prompts/depot.j2?)",
    ),
    "a mode that does not exist": ("format: 1\n", "format: 1\nmatch: action\n", ":3: match: 'action' is none of"),
    "an expectation that does not exist": (
        "format: 1\n",
        "format: 1\nexpect: {stop: x}\n",
        ":3: expect: unknown key 'stop'",
    ),
    "a redaction that does not exist": (
        "format: 1\n",
        "format: 1\nredact: dates\n",
        ":3: redact: 'dates' is not built in",
    ),
    "a setting that does not exist": (
        "format: 1\n",
        "format: 1\nsettings: {max_step: 3}\n",
        ":3: unknown setting 'max_step'",
    ),
    "an input that does not exist": (
        "format: 1\n",
        "format: 1\ninputs: {x: 3}\n",
        "variable 'x' is not used by this prompt",
    ),
    "neither a test nor none": (
        "format: 1\n",
        "format: 1\ntest: maybe\n",
        ":3: test must be true or false, not 'maybe'",
    ),
    "an unknown key": ("format: 1\n", "format: 1\nmtch: exact\n", ":3: unknown key 'mtch' (did you mean match?)"),
    "no end of the front matter": ("\n---\nQuestion", "\n--\nQuestion", ":1: the front matter has no closing"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_golden_that_cannot_be_checked_is_an_error_at_its_line(project: Project, name: str) -> None:
    old, new, message = ERRORS[name]
    project.record("traces/run.trace", TURNS)
    project.edit("traces/run.trace", old, new)
    with pytest.raises(AuthorError) as caught:
        case = Case(project.folder / "traces" / "run.trace")
        assert case.is_test
        case.replay()
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "nothing of the kind", "\xff"], ids=["empty", "prose", "not UTF-8"])
def test_an_empty_or_unreadable_golden_is_an_error(project: Project, text: str) -> None:
    (project.folder / "x.trace").write_bytes(text.encode("latin-1"))
    with pytest.raises(AuthorError):
        Case(project.folder / "x.trace").replay()


def test_a_mistake_in_tools_or_templates_is_an_error_of_their_file(project: Project) -> None:
    project.record("traces/run.trace", [" x\nAction: crate[3]", *TURNS])
    project.write("prompts/observe.j2", "{% macro %}")
    with pytest.raises(AuthorError, match=r"observe\.j2:1: template"):
        Case(project.folder / "traces" / "run.trace").replay()
    project.write("tools/depot.py", "def crates(\n")
    with pytest.raises(AuthorError, match=r"depot\.py:1: syntax error"):
        Case(project.folder / "traces" / "run.trace").replay()


def test_a_template_that_fails_at_work_is_an_error_of_its_file(project: Project) -> None:
    project.record("traces/run.trace", [" x\nAction: crate[3]", *TURNS])
    project.write("prompts/observe.j2", "{%- macro unknown_tool(e) -%}{{ e.tool.name.first }}{%- endmacro -%}")
    ran = project.run("test")
    assert ran.code == 2
    assert ran.err == "prompts/observe.j2: template: macro unknown_tool: 'str object' has no attribute 'name'\n"


def test_prompts_and_tools_are_loaded_once(project: Project) -> None:
    count = (
        "\nimport pathlib\n\nwith pathlib.Path(__file__).with_suffix('.log').open('a') as _log:\n    _log.write('x')\n"
    )
    project.write("tools/depot.py", DEPOT["tools/depot.py"] + count)
    for name in ("a", "b", "c"):
        project.record(f"traces/{name}.trace", TURNS)
    (project.folder / "tools" / "depot.log").unlink()
    library = Library()
    for path in collect([project.folder / "traces"]):
        assert Case(path, library).replay().ok
    assert project.read("tools/depot.log") == "x"


def test_collecting(project: Project) -> None:
    for name in ("b.trace", "a.trace", "deep/c.trace", "d.trace.new", "e.txt"):
        project.write(f"traces/{name}", "")
    folder = project.folder / "traces"
    assert [p.relative_to(folder).as_posix() for p in collect([folder])] == ["a.trace", "b.trace", "deep/c.trace"]
    assert collect([folder / "b.trace", folder / "b.trace"]) == [folder / "b.trace"]
    with pytest.raises(AuthorError, match=r"aa\.trace: no such file \(did you mean a\.trace\?\)"):
        collect([folder / "aa.trace"])


def test_a_model_that_asks_for_options_is_not_needed() -> None:
    """The model half answers any request: its turns do not depend on the prompt or on sampling."""
    golden = Trace.load(SHIPPED[0])
    model = ScriptedModel.from_trace(golden)
    assert model.complete("anything", stop=[], options=Options(seed=3)).text == golden.completions[0]
