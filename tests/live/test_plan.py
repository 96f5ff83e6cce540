"""The whole pipeline of a plan on a real model of 270 million parameters: it ends with a result and says what
went wrong, whatever the quality."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text.models.llamacpp import LlamaCpp
from react_text.models.local import shared_server
from react_text.plan import Planner, PlanState

pytestmark = pytest.mark.live

PROMPTS = Path(__file__).parents[2] / "prompts"


@pytest.mark.parametrize(("system", "interpret"), [("travel", False), ("travel", True), ("research", False)])
def test_a_plan_ends_with_a_result_and_honest_warnings(
    system: str, interpret: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state.plan"
    planner = Planner(PROMPTS / system, LlamaCpp(shared_server().url), interpret=interpret)
    state = planner.run(save=lambda state: state.save(path))
    with capsys.disabled():
        print(f"\n{system}: {state.stop_reason}, {state.metadata}, {len(state.warnings)} warnings")
        print("\n".join(f"  {warning}" for warning in state.warnings))
    assert state.stop_reason in ("success", "partial")
    assert state.answer
    assert all(part.ended for part in state.parts.values())
    for name, part in state.parts.items():
        if part.status != "done":
            assert any(warning.startswith(f"{name}: {part.status}") for warning in state.warnings)
    assert state.steps <= state.max_steps
    assert PlanState.load(path).traces.keys() == state.traces.keys()
