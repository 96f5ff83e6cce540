"""Every entry of cases.yaml that has a model_output, played through a whole run; see case_expectations.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from react_text.observe import frame

from .harbour import ANSWERS, finish, play

FOLDER = Path(__file__).parent
CASES = {
    case["id"]: case["model_output"]
    for case in yaml.safe_load((FOLDER / "cases.yaml").read_text("utf-8"))
    if "model_output" in case
}
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "case_expectations.yaml").read_text("utf-8"))
LENIENT = [case for case, expected in EXPECTED.items() if "lenient" in expected]
VARIANTS = [(case, name) for case, expected in EXPECTED.items() for name in expected.get("variants", ())]
KEYS = {"call", "answer", "mistake", "says", "never_says", "thought", "text", "lacks"}
# Mistakes of a turn that could be read: their observations name the tool or its usage instead of a line to copy.
READABLE = {"bad_arguments", "unknown_tool", "empty_answer", "placeholder_answer"}


def test_every_case_has_an_expectation_and_every_expectation_a_case() -> None:
    assert EXPECTED.keys() == CASES.keys()
    assert len(CASES) == 62


def test_expectations_use_known_keys_and_expect_exactly_one_outcome() -> None:
    entries = [({**e}, {"lenient", "variants"}) for e in EXPECTED.values()]
    entries += [(EXPECTED[case]["lenient"], set()) for case in LENIENT]
    entries += [(EXPECTED[case]["variants"][name], {"turn"}) for case, name in VARIANTS]
    for entry, extra in entries:
        assert entry.keys() <= KEYS | extra
        assert len(entry.keys() & {"call", "answer", "mistake"}) == 1


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    check(CASES[case], EXPECTED[case])


@pytest.mark.parametrize("case", CASES)
def test_case_with_a_lenient_parser(case: str) -> None:
    """Leniency changes near misses and nothing else."""
    check(CASES[case], EXPECTED[case].get("lenient", EXPECTED[case]), lenient=True)


@pytest.mark.parametrize(("case", "name"), VARIANTS, ids=[f"{case}-{name}" for case, name in VARIANTS])
def test_variant_of_a_case(case: str, name: str) -> None:
    expected = EXPECTED[case]["variants"][name]
    check(expected["turn"], expected)


def check(turn: str, expected: dict[str, Any], **settings: Any) -> None:
    played = play(turn, finish(), **settings)
    step = played.result.steps[0]
    assert played.calls == list(expected.get("call", {}).items())
    assert step.error == expected.get("mistake", "")
    assert step.thought == expected.get("thought", step.thought)
    assert step.text == expected.get("text", step.text)
    if "answer" in expected:
        assert (played.result.answer, played.result.stop_reason) == (expected["answer"], "success")
        assert len(played.result.steps) == 1
        return
    # The run goes on, and the next prompt holds this turn and its observation, nothing else.
    assert (played.result.answer, len(played.result.steps)) == ("end", 2)
    first, second = played.prompts
    assert step.observation
    assert (
        second
        == first.removesuffix("Thought:") + step.text + "\n" + frame(step.observation, "Observation:") + "Thought:"
    )
    for tool in expected.get("call", {}):
        assert step.observation == ANSWERS[tool]
    if "mistake" in expected and step.error not in READABLE:
        assert any(line.startswith("Action: ") and "[" in line for line in step.observation.split("\n"))
    for text in expected.get("says", ()):
        assert text in step.observation
    for text in expected.get("never_says", ()):
        assert text not in step.observation
    for text in expected.get("lacks", ()):
        assert text not in second
