"""The three systems that ship, beyond what their goldens in `traces/` show: these are collected as tests themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Trace, load_tools

ROOT = Path(__file__).parents[1]


def test_the_cloud_spend_answer_takes_every_figure_from_a_tool() -> None:
    golden = Trace.load(ROOT / "traces" / "cloud_spend.trace")
    seen, answer = " ".join(step.observation or "" for step in golden.steps), golden.meta["answer"]
    for figure in ("41820", "12400", "54220", "50000", "4220"):
        assert figure in seen
        assert f"{int(figure):,}" in answer
    assert "0.0844" in seen and "8.44 percent" in answer


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
    calculator = load_tools(ROOT / "tools" / "arithmetic.py")["calculator"].function
    assert result in str(calculator(expression))
