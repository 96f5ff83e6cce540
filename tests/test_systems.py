"""The three systems that ship: every trace replays byte for byte against the real tools, with the right figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Agent, Result, Trace

ROOT = Path(__file__).parents[1]
TRACES = sorted((ROOT / "traces").glob("*.trace"))


def replay(trace: Path, **settings: object) -> Result:
    """The model half of a trace against the tools of its prompt."""
    loaded = Trace.load(trace)
    question = loaded.task.removeprefix("Question: ").rstrip("\n")
    prompt = ROOT / str(loaded.meta["prompt"])
    return Agent(prompt, model=f"scripted:{trace}", **settings).run(question)


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.stem)
def test_a_trace_replays_byte_for_byte_against_the_real_tools(trace: Path) -> None:
    loaded = Trace.load(trace)
    result = replay(trace)
    assert str(result.trace) == loaded.body
    assert result.answer == loaded.meta["answer"]
    assert result.stop_reason == loaded.meta["stop_reason"]


def test_the_cloud_spend_answer_takes_every_figure_from_a_tool() -> None:
    result = replay(ROOT / "traces" / "cloud_spend.trace")
    seen = " ".join(step.observation or "" for step in result.steps)
    assert result.answer is not None
    for figure in ("41820", "12400", "54220", "50000", "4220"):
        assert figure in seen
        assert f"{int(figure):,}" in result.answer
    assert "0.0844" in seen and "8.44 percent" in result.answer


def test_the_run_that_ignores_the_note_is_wrong_by_the_reserved_part() -> None:
    result = replay(ROOT / "traces" / "cloud_spend_wrong.trace")
    assert "8,180 USD under" in (result.answer or "")
    assert "excludes reserved instances" in (result.steps[0].observation or "")
    assert all(step.tool != "query_reserved" for step in result.steps)


def test_a_recovery_names_the_valid_tools_and_goes_on() -> None:
    result = replay(ROOT / "traces" / "cloud_spend_recovery.trace")
    first, second = result.steps[:2]
    assert first.error == "unknown_tool" and first.arguments == "July 2026"
    for name in ("query_spend", "query_reserved", "get_budget", "calculator", "finish"):
        assert name in (first.observation or "")
    assert (second.tool, second.arguments, second.error) == ("query_reserved", "2026-07", "")


@pytest.mark.parametrize(
    ("trace", "parts"),
    [("refund", ("Yes", "49.00 USD", "14 days")), ("refund_user7", ("No", "free plan", "0.00 USD"))],
)
def test_refund_answers(trace: str, parts: tuple[str, ...]) -> None:
    result = replay(ROOT / "traces" / f"{trace}.trace")
    assert all(part in (result.answer or "") for part in parts)


def test_without_search_policy_on_the_allowlist_the_refund_run_ends_as_denied() -> None:
    allow = ["get_user_profile", "get_user_billing"]
    result = replay(ROOT / "traces" / "refund.trace", allow=allow)
    assert (result.answer, result.stop_reason) == (None, "tool_denied:search_policy")
    assert "search_policy" not in Agent(ROOT / "prompts" / "refund.j2", model=lambda p, stop: "", allow=allow).steps(
        "?"
    ).prompt.head.split("Examples:")[0]


@pytest.mark.parametrize("path", ["../refund_user7.trace", "/etc/passwd", "docs/../../cloud_spend.trace"])
def test_the_debugging_agent_reads_nothing_outside_its_repository(path: str) -> None:
    turns = [f" x\nAction: read_file[{path}]", " x\nAction: finish[end]"]
    from react_text import ScriptedModel

    result = Agent(ROOT / "prompts" / "debug_ci.j2", model=ScriptedModel(turns)).run()
    assert "is outside the repository" in (result.steps[0].observation or "")


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("41820 + 12400", "54220"),
        ("4220 / 50000", "0.0844"),
        ("-(2 + 3) * 4", "-20"),
        ("0.1 + 0.2", "0.3"),
        ("1 / 3", "0.3333333333"),
        ("1 / 0", "division by zero"),
        ("2 ** 8", "did not expect '*'"),
        ("__import__('os')", "cannot read"),
        ("(1 + 2", "not closed"),
        ("", "ends too early"),
        ("1" * 300, "longer than"),
        ("41,820 + 1", "cannot read"),
    ],
)
def test_the_calculator(expression: str, result: str) -> None:
    from react_text import load_tools

    calculator = load_tools(ROOT / "tools" / "arithmetic.py")["calculator"].function
    assert result in str(calculator(expression))
