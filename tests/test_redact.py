"""Redaction and secrets: volatile values become `<name1>`, and what must not be written is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import AuthorError, Trace
from react_text.redact import redacted, redaction_rules, refuse_secrets

A, B = "123e4567-e89b-12d3-a456-426614174000", "00000000-0000-4000-8000-00000000000a"

CASES: list[tuple[Any, str, str]] = [
    ("date", "on 2026-07-01, at 2026-07-01T10:00:00Z", "on <date1>, at <date2>"),
    ("date", "call 555-2026-07", "call 555-2026-07"),
    ("uuid", f"{A} then {B} then {A}", "<uuid1> then <uuid2> then <uuid1>"),
    ("path", "in /home/ann/a.txt and C:\\Users\\ann", "in <path1> and <path2>"),
    ("path", "see https://example.com/a/b and 3/4", "see https://example.com/a/b and 3/4"),
    ("port", "http://127.0.0.1:49152/x localhost:80", "http://127.0.0.1:<port1>/x localhost:<port2>"),
    ("port", "at 10:30", "at 10:30"),
    ("address", "<Crate at 0x7f3a5c1d>", "<Crate at <address1>>"),
    (["uuid", "date"], f"{A} 2026-07-01", "<uuid1> <date1>"),
    ({"order": r"ORD-\d+", "uuid": True}, f"ORD-7 {A} ORD-9 ORD-7", "<order1> <uuid1> <order2> <order1>"),
    ({"order": r"order (\d+)"}, "order 7, order 8", "order <order1>, order <order2>"),
    ({"number": r"\d+", "date": True}, "7 and 2026", "<number1> and <number2>"),
    (None, A, A),
]


@pytest.mark.parametrize(("rule", "text", "expected"), CASES)
def test_a_rule_replaces(rule: Any, text: str, expected: str) -> None:
    trace = Trace(f"Question: {text}\n")
    clean = redacted(trace, redaction_rules(rule))
    assert clean.body == f"Question: {expected}\n"
    assert redacted(clean, redaction_rules(rule)).body == clean.body


def test_equal_values_stay_equal_across_question_arguments_observation_and_answer() -> None:
    trace = Trace.record(
        f"Question: Where is {B}?\n",
        [(f"Action: find[{B}]", f"{A}\nThought: {B}"), (f"Action: finish[{A}]", None)],
        meta={"answer": A, "outcomes": {1: f"raised E: {B}"}},
    )
    clean = redacted(trace, redaction_rules("uuid"))
    assert clean.steps[0].observation == "<uuid2>\nThought: <uuid1>"
    assert (clean.steps[0].arguments, clean.steps[1].arguments) == ("<uuid1>", "<uuid2>")
    assert clean.meta == {"answer": "<uuid2>", "outcomes": {1: "raised E: <uuid1>"}}
    assert Trace.load(clean.dump()).steps == clean.steps


@given(st.lists(st.sampled_from([A, B, "<uuid1>", "<date2>", "2026-07-01", " ", "\n", "x", "<uuid", "1>"])))
def test_redacting_twice_is_redacting_once_and_keeps_the_lines(parts: list[str]) -> None:
    rules, text = redaction_rules(["uuid", "date"]), " ".join(parts)
    once = redacted(Trace(text), rules)
    assert redacted(once, rules).body == once.body
    assert once.body.count("\n") == text.count("\n")
    assert A not in once.body and "2026-07-01" not in once.body


SHAPES = [
    "sk-" + "a1B2" * 8,
    "ghp_" + "a1B2c3D4e" * 4,
    "AKIA" + "ABCDEFGH12345678",
    "xoxb-" + "1234567890-abcdef",
    "hf_" + "aBcDeFgHiJ" * 3,
    "AIza" + "aBcDe" * 7,
    "glpat-" + "a1B2c" * 4,
    "-----BEGIN RSA PRIVATE " + "KEY-----",
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0." + "dozjgNryP4J3jVmN",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_looks_like_a_key_is_refused_with_its_line_and_not_shown(shape: str) -> None:
    with pytest.raises(AuthorError) as caught:
        refuse_secrets(f"Question: x\nObservation: {shape}\n".encode(), Path("a.trace"))
    assert str(caught.value).startswith("a.trace:2: this line would hold what looks like")
    assert shape not in str(caught.value)


@pytest.mark.parametrize("name", ["SERVICE_API_KEY", "DB_PASSWORD", "ACCESS_TOKEN", "SECRET", "my_secret_2"])
def test_the_value_of_a_secret_variable_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hunter2-and-more")
    with pytest.raises(AuthorError, match=f"a.trace:1: .* environment variable {name}"):
        refuse_secrets(b"the answer is hunter2-and-more\n", Path("a.trace"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("MONKEY", "hunter2-and-more"), ("KEYBOARD", "hunter2-and-more"), ("SECRET", "short"), ("SECRET", "elsewhere")],
)
def test_other_variables_and_short_values_are_no_secrets(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    refuse_secrets(b"the answer is hunter2-and-more, in short\n", Path("a.trace"))
