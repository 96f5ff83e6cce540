"""The public names, `react` and `Agent` as a user writes them, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import react_text
from react_text import Agent, AuthorError, ParseError, Prompt, ScriptedModel, Trace, load_tools, parse_turn, react, tool
from react_text.errors import ContextOverflow, Mistake, ReactTextError, ServerError, ServerTimeout

from .harbour import Harbour, act, finish, play

ROOT = Path(__file__).parents[1]


def test_all_public_names_are_there_and_are_all() -> None:
    assert set(react_text.__all__) == {"__version__", *react_text._HOME}
    for name in react_text.__all__:
        assert getattr(react_text, name) is not None
    assert "Agent" in dir(react_text)
    with pytest.raises(AttributeError, match="no attribute 'Agents'"):
        react_text.Agents  # noqa: B018


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = "{'requests', 'jinja2', 'yaml', 'urllib3', 'asyncio'}"
    assert python(f"import sys, react_text; print({heavy} & set(sys.modules))") == "set()"
    assert python("import sys, react_text; react_text.Agent; print('requests' in sys.modules)") == "False"


def test_the_package_is_typed() -> None:
    assert (ROOT / "react_text" / "py.typed").is_file()


def test_errors_form_three_families() -> None:
    for error, family in ((ParseError, Mistake), (ServerTimeout, ServerError), (ContextOverflow, ServerError)):
        assert issubclass(error, family)
    for family in (Mistake, AuthorError, ServerError):
        assert issubclass(family, ReactTextError)
    assert str(AuthorError("wrong", path="p.j2", line=3)) == "p.j2:3: wrong"
    assert str(AuthorError("wrong", path="p.j2")) == "p.j2: wrong"
    assert str(AuthorError("wrong")) == "wrong"


# -- react


def search(query: str) -> str:
    """Search the archive."""
    return f"all about {query}"


def answering(prompt: str, stop: list[str]) -> str:
    assert "\nObservation:" in stop
    return " Look.\nAction: search[pier]" if "all about" not in prompt else " Good.\nAction: finish[240 m]"


def test_react_with_functions() -> None:
    result = react("How long is the pier?", answering, [search], max_steps=8)
    assert (result.answer, result.stop_reason, result.ok) == ("240 m", "success", True)
    step = result.steps[0]
    assert (step.thought, step.tool, step.arguments, step.observation) == ("Look.", "search", "pier", "all about pier")
    assert step.text == "Thought: Look.\nAction: search[pier]"
    assert result.usage.prompt_tokens is None
    assert str(result.trace) == (
        "Question: How long is the pier?\nThought: Look.\nAction: search[pier]\nObservation: all about pier\n"
        "Thought: Good.\nAction: finish[240 m]\n"
    )


def test_react_with_a_dict_a_module_path_and_any_mixture(tmp_path: Path) -> None:
    (tmp_path / "archive.py").write_text("def search(query: str) -> str:\n    return 'all about ' + query\n")
    path = tmp_path / "archive.py"
    for tools in (
        {"search": lambda query: f"all about {query}"},
        path,
        str(path),
        [path],
        load_tools([search]),
        search,
    ):
        assert react("Q?", answering, tools).answer == "240 m"


def test_react_without_tools() -> None:
    assert react("Q?", ScriptedModel([finish("12")])).answer == "12"


def test_react_with_a_prompt_file(tmp_path: Path) -> None:
    (tmp_path / "archive.py").write_text("def search(query: str) -> str:\n    return 'all about ' + query\n")
    (tmp_path / "p.j2").write_text(
        "---\ntools: archive.py\nlimits: {max_steps: 1}\n---\nQuestion: {{ question }}\n{{ transcript }}{{ cue }}"
    )
    assert react("Q?", answering, prompt=tmp_path / "p.j2").stop_reason == "max_steps"
    assert react("Q?", answering, prompt=tmp_path / "p.j2", max_steps=2).answer == "240 m"
    prompt = Prompt.load(tmp_path / "p.j2")
    assert Agent(prompt, model=answering, max_steps=3).run("Q?").answer == "240 m"


# -- Agent


def test_an_agent_needs_a_model() -> None:
    with pytest.raises(AuthorError, match="an agent needs a model"):
        Agent(None, [search])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_step": 3}, r"unknown setting 'max_step' \(did you mean max_steps\?\)"),
        ({"temprature": 1}, "did you mean temperature"),
        ({"temperature": -1}, "temperature must be a number from 0 up"),
        ({"max_tokens": 0}, "max_tokens must be a whole number above 0"),
        ({"limits": {"max_steps": 0}}, "max_steps must be a number above 0"),
        ({"labels": "fancy"}, "plain, numbered or a mapping"),
        ({"prices": {"promt": 1}}, "prices must be"),
        ({"on_budget": "finsh"}, "on_budget must be stop or finish, not 'finsh'"),
        ({"think": "kept"}, "think must be drop or keep"),
        ({"observations": "guard"}, "observations must be verbatim or guarded"),
        ({"lenient": "false"}, "lenient must be true or false, not 'false'"),
        ({"scratchpad": 1}, "scratchpad must be true or false"),
        *[({key: 3}, f"{key} must be a mapping, not 3") for key in ("limits", "options", "faults", "prices")],
        ({"stop": 3}, "stop must be a list of texts, not 3"),
        ({"stop": [3]}, "stop must be a list of texts"),
        ({"allow": 3}, "allow must be a list of tools, not 3"),
        ({"seed": "x"}, "options: seed must be a whole number, not 'x'"),
        ({"prefill": "{{ question"}, "prefill: unexpected end of template"),
    ],
)
def test_settings_that_are_none(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        Agent(None, [search], answering, **settings)


def test_keywords_go_before_the_prompts_own_settings(tmp_path: Path) -> None:
    path = tmp_path / "p.j2"
    path.write_text("---\nlimits: {max_steps: 3, max_tool_calls: 2}\noptions: {temperature: 1}\nlenient: true\n---\n")
    settings = Agent(path, [search], answering, max_steps=5, max_tokens=99).settings
    assert (settings.limits.max_steps, settings.limits.max_tool_calls) == (5, 2)
    assert (settings.options.temperature, settings.options.max_tokens, settings.lenient) == (1, 99, True)


def test_examples_are_texts_or_files(tmp_path: Path) -> None:
    text = "Question: a\nAction: search[b]\nObservation: c\nAction: finish[d]\n"
    (tmp_path / "a.trace").write_text(f"---\nanswer: d\n---\n{text}")
    for examples in ([text], [tmp_path / "a.trace"], [str(tmp_path / "a.trace")]):
        prompt = play(finish(), examples=examples).prompts[0]
        assert f"Examples:\n\n{text}\n" in prompt
        assert "letter_count" not in prompt
        assert "answer: d" not in prompt
    with pytest.raises(AuthorError, match=r"b\.trace: no such file \(did you mean a\.trace\?\)"):
        play(finish(), examples=[tmp_path / "b.trace"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt", "is not understood"),
        ("htp://x", r"did you mean http\?"),
        ("http://", "names no host"),
        ("", "not understood"),
    ],
)
def test_model_specs_that_are_none(spec: str, message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        Agent(None, [search], spec)


def test_a_scripted_model_from_a_file(tmp_path: Path) -> None:
    trace = react("Q?", answering, [search]).trace
    (tmp_path / "pier.trace").write_bytes(trace.dump())
    again = Agent(None, [search], f"scripted:{tmp_path / 'pier.trace'}").run("Q?")
    assert again.trace.dump() == trace.dump()
    with pytest.raises(AuthorError, match="no such file"):
        Agent(None, [search], f"scripted:{tmp_path / 'tower.trace'}")


def test_a_result_can_be_saved_and_read(tmp_path: Path) -> None:
    result = react("Q?", answering, [search])
    (tmp_path / "run.trace").write_bytes(result.trace.dump())
    loaded = Trace.load(tmp_path / "run.trace")
    assert loaded.body == str(result.trace)
    assert loaded.meta["answer"] == "240 m"


# -- what the README promises


def test_an_error_observation_for_an_unreadable_turn_has_a_line_that_could_be_copied() -> None:
    turns = [
        " prose",
        "Action: x",
        "Action: search(x)",
        "Answer: 3",
        "Action: None",
        "<think>x</think>y",
        "search[x]",
        "Action:",
    ]
    for turn in turns:
        observation = str(play(turn, finish()).result.steps[0].observation)
        lines = [line for line in observation.split("\n") if line.startswith("Action: ")]
        assert len(lines) == 1
        assert parse_turn(lines[0]).action.tool in {*(f.__name__ for f in Harbour().tools), "finish"}


def test_parse_turn_gives_spans_into_the_completion() -> None:
    text = " I look.\nAction: search[pier length] and so on"
    turn = parse_turn(text)
    assert (turn.thought, turn.action.tool, turn.action.arguments) == ("I look.", "search", "pier length")
    assert text[slice(*turn.thought_span)] == "I look."
    assert turn.text == " I look.\nAction: search[pier length]"
    with pytest.raises(ParseError) as caught:
        parse_turn("Action: search(pier)")
    assert (caught.value.kind, caught.value.correction) == ("parentheses", "search[pier]")


def test_tool_options_are_part_of_the_api() -> None:
    @tool(repeatable=True)
    def tide() -> str:
        return "high"

    assert play(*[act("tide[]")] * 3, finish(), tools=[tide]).result.ok


def test_a_decorated_function_keeps_its_type(tmp_path: Path) -> None:
    """For the author's own type checker."""
    (tmp_path / "tide.py").write_text(
        "from react_text import tool\n\n@tool(pure=True)\ndef tide(day: int) -> str:\n    return str(day)\n\n"
        "tide('high')\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / "tide.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert 'Argument 1 to "tide" has incompatible type "str"; expected "int"' in done.stdout
