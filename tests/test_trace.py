"""Traces: the body is what the model saw, files are read and written byte for byte, labels inside texts do no harm."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from react_text import AuthorError, Completion, Trace
from react_text.labels import NUMBERED, PLAIN, Labels

from .harbour import act, finish, play

OWN = Labels(thought="思考", action="行动", observation="观察", question="问题")
OWN_NUMBERED = dataclasses.replace(OWN, numbered=True)


def rebuilt(trace: Trace) -> bytes:
    """What `dump` writes for a trace of which the file is forgotten."""
    return dataclasses.replace(trace).dump()


def loads(text: str) -> Trace:
    return Trace.load(text.encode())


def fails(text: str | bytes, tmp_path: Path) -> str:
    path = tmp_path / "a.trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(AuthorError) as caught:
        Trace.load(path).steps  # noqa: B018
    return str(caught.value).replace(str(path), "a.trace")


# -- reading

HAND = """\
---
# A remark.
format: 1
tools: [search, lookup]
answer: yes
spans: {2: 4}
---
Question: Who was it named after?
Thought: I search.
Action: search[Milhouse]
Observation: A recurring character.
Thought: Look for it.
Action: lookup[named after]
Observation: quoted page:
Thought: this line is page text
Action: nor is this[an action]

Thought: Named after Richard Nixon.
Action: finish[Richard Nixon]
"""


def test_a_trace_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "hand.trace").write_bytes(HAND.encode())
    trace = Trace.load(tmp_path / "hand.trace")
    assert trace.dump() == HAND.encode()
    assert str(trace) == trace.body == HAND.partition("spans: {2: 4}\n---\n")[2]
    assert trace.task == "Question: Who was it named after?\n"
    assert (trace.meta["tools"], trace.meta["answer"]) == (["search", "lookup"], "yes")
    first, second, third = trace.steps
    assert (first.text, first.observation) == ("Thought: I search.\nAction: search[Milhouse]", "A recurring character.")
    assert (first.thought, first.tool, first.arguments) == ("I search.", "search", "Milhouse")
    assert second.observation == "quoted page:\nThought: this line is page text\nAction: nor is this[an action]\n"
    assert (third.observation, third.tool, third.arguments) == (None, "finish", "Richard Nixon")
    assert trace.completions[0] == " I search.\nAction: search[Milhouse]"


STYLES = {
    "no head": ("Question: a\nAction: b[c]\nObservation: d\n", PLAIN, ["d"]),
    "no observation": ("Question: a\nAction: b[c]\n", PLAIN, [None]),
    "an empty observation": ("Question: a\nAction: b[c]\nObservation:\nThought:\n", PLAIN, ["", None]),
    "an observation on its own lines": ("Question: a\nAction: b[c]\nObservation:\nd\n\ne\n", PLAIN, ["\nd\n\ne"]),
    "two blanks before an observation": ("Question: a\nAction: b[c]\nObservation:  d\n", PLAIN, [" d"]),
    "another task label": ("Claim: a\nThought: b\nAction: c[d]\nObservation: e\n", PLAIN, ["e"]),
    "a task of several lines": ("Question: a\nb\n\nThought: c\n", PLAIN, [None]),
    "numbered": (
        "---\nlabels: numbered\n---\nQuestion: a\nThought 1: b\nAction 1: c[d]\nObservation 1: e\nThought 2: f\n",
        NUMBERED,
        ["e", None],
    ),
    "own labels": (
        "---\nlabels: {thought: 思考, action: 行动, observation: 观察, question: 问题}\n---\n"
        "问题: a\n行动: b[c]\n观察: d\n",
        OWN,
        ["d"],
    ),
    "a label in the middle of a line": (
        "Question: a\nAction: b[c]\nObservation: x Thought: y\n",
        PLAIN,
        ["x Thought: y"],
    ),
    "an indented label": ("Question: a\nAction: b[c]\nObservation: x\n  Thought: y\n", PLAIN, ["x\n  Thought: y"]),
    "a number where none belongs": (
        "Question: a\nAction: b[c]\nObservation: x\nThought 2: y\n",
        PLAIN,
        ["x\nThought 2: y"],
    ),
}


@pytest.mark.parametrize(("text", "labels", "observations"), STYLES.values(), ids=STYLES)
def test_styles(text: str, labels: Labels, observations: list[str | None]) -> None:
    trace = loads(text)
    assert trace.labels == labels
    assert [step.observation for step in trace.steps] == observations
    assert trace.dump() == text.encode()
    assert trace.task + "".join(trace.body.removeprefix(trace.task)) == trace.body


WRONG = {
    "an unknown key": ("---\nformat: 1\nanwser: x\n---\nQ\n", "a.trace:3: unknown key 'anwser' (did you mean answer?)"),
    "another format": ("---\nformat: 2\n---\nQ\n", "a.trace:2: format 2 is not known here, only 1"),
    "labels that are none": (
        "---\nlabels: bold\n---\nQ\n",
        "a.trace:2: labels is plain, numbered or a mapping of words",
    ),
    "spans that are none": ("---\nspans: {1: x}\n---\nQ\n", "a.trace:2: spans must map"),
    "a span of no lines": ("---\nspans: {1: 0}\n---\nQ\n", "a.trace:2: spans must map"),
    "finish that is none": ("---\nfinish: length\n---\nQ\n", "a.trace:2: finish must map the numbers of steps"),
    "a head that is none": ("---\nhead: x\n---\nQ\n", "a.trace:2: head must be the number of lines"),
    "no end of the front matter": ("---\nformat: 1\nQ\n", "a.trace:1: the front matter has no closing `---` line"),
    "UTF-16": ("Question: a".encode("utf-16"), "a.trace:1: this file is UTF-16; save it as UTF-8"),
    "no UTF-8": (b"Question: \xe9\n", "a.trace:1: this file is not UTF-8 (byte 0xe9)"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_trace_that_is_wrong_names_its_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    assert fails(text, tmp_path).startswith(message)


def test_a_span_that_does_not_fit_cannot_pass(tmp_path: Path) -> None:
    for stale in ("{2: 3}", "{2: 7}", "{2: 9}", "{3: 1}"):
        message = fails(HAND.replace("{2: 4}", stale), tmp_path)
        assert message.startswith("a.trace:")
        assert "spans: " in message


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "pier.trace").write_text("Q\n")
    with pytest.raises(AuthorError, match=r"pierr\.trace: no such file \(did you mean pier\.trace\?\)"):
        Trace.load(tmp_path / "pierr.trace")


# -- recording

NASTY = [
    "", " ", "\n", "\n\n", "x\n", "\nx", "a\r\nb", "a\rb\r", "a\u2028b\u0085c\x0bd\x0ce", "---", "x\n---\n---\nx",
    "Thought: x", "x\nThought: y\nAction: z[a]", "x\nObservation: y\n", "x\nAction: y", "{{ 7*7 }}{% raw %}",
    "x\n\n\nThought:", "Observation:", "x\nThought 3: y", "x\n行动: y", "\x1b[31m", "a\tb  ", "\ufeffx",
    "Question: x", "x\nQuestion: y",
]  # fmt: skip


@pytest.mark.parametrize(
    "labels", [PLAIN, NUMBERED, OWN, OWN_NUMBERED], ids=["plain", "numbered", "own", "own-numbered"]
)
@pytest.mark.parametrize("observation", NASTY)
def test_an_observation_is_read_as_it_was_recorded(observation: str, labels: Labels) -> None:
    thought, action = labels.cue(labels.thought, 1), labels.cue(labels.action, 1)
    turns: list[tuple[str, str | None]] = [
        (f"{thought} a\n{action} b[c]", observation),
        (f"{action} d[e]", "plain"),
        (f"{thought} f", None),
    ]
    recorded = Trace.record(f"{labels.question}: q\n", turns, labels)
    loaded = Trace.load(recorded.dump())
    assert (loaded.body, loaded.labels, loaded.task) == (recorded.body, labels, f"{labels.question}: q\n")
    assert [(step.text, step.observation) for step in loaded.steps] == turns
    assert rebuilt(loaded) == recorded.dump()


tasks = st.lists(st.sampled_from(["Question: a", "Thought: x", "---", "", "Observation: b", "\r", "x"]), max_size=3)
observations = st.none() | st.lists(st.sampled_from([*NASTY, "\n", "x"]), max_size=4).map("".join)
words = st.lists(st.sampled_from(["x", "\n", "Thought:", "Action:", " ", "a[b]", "---\n", "\r"]), max_size=5).map(
    "".join
)
turn_texts = st.builds(lambda cue, text: cue + text, st.sampled_from(["Thought:", "Action:"]), words)


@given(tasks.map(lambda lines: "".join(f"{line}\n" for line in lines)), st.lists(st.tuples(turn_texts, observations)))
@example("Thought: x\nQuestion: a\n", [("Thought:", None)])
@example("Question: a\n", [("Thought: x", "y\nAction: z"), ("Action: a[b]", "Thought:")])
def test_any_recorded_trace_is_read_as_it_was_recorded(task: str, turns: list[tuple[str, str | None]]) -> None:
    turns = [
        (text.rstrip(), "" if found is None and turn < len(turns) else found)
        for turn, (text, found) in enumerate(turns, 1)
    ]
    recorded = Trace.record(task, turns)
    data = recorded.dump()
    loaded = Trace.load(data)
    assert loaded.body == recorded.body
    assert loaded.task == task
    assert [(step.text, step.observation) for step in loaded.steps] == turns
    assert rebuilt(loaded) == data


@given(
    st.lists(st.sampled_from(["---\n", "a: b\n", "format: 1\n", "Question: x\n", "Thought: y\n", "\r\n", "\n", "z"]))
)
def test_any_file_that_can_be_read_is_written_as_it_was(pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    try:
        trace = Trace.load(data)
    except AuthorError:
        return
    assert trace.dump() == data


META = {
    "prompt": "prompts/p.j2",
    "inputs": {
        "team": "0042",
        "month": "2026-07",
        "day": "2026-07-01",
        "flag": "yes",
        "off": "off",
        "null": "null",
        "empty": "",
        "number": 5,
        "real": 0.5,
        "true": True,
        "nothing": None,
        "tricky": 'a: "b" #c\n\u2028{x}',
        "time": "12:30",
    },
    "settings": {"repeats": "off", "max_steps": 4, "allow": ["a", "no"]},
    "tools": ["search", "finish"],
    "options": {"max_tokens": 256, "temperature": 0.0, "stop_at": 1e-05},
    "answer": 'It is 54,220: "4,220" over\n(8.44 %)',
    "stop_reason": "tool_denied:search",
    "finish": {1: "length"},
}


def test_a_front_matter_is_read_as_it_was_recorded() -> None:
    recorded = Trace.record("Question: q\n", [("Thought:", None)], meta=META)
    loaded = Trace.load(recorded.dump())
    assert dict(loaded.meta) == META
    assert rebuilt(loaded) == recorded.dump()


@pytest.mark.parametrize(
    "answer", ["yes", "54220", "2026-07-01", "", " x ", "- x", "# x", "a: b", "💡", "null", "Null", "12:30", "'x'"]
)
def test_an_answer_stays_a_text(answer: str) -> None:
    loaded = Trace.load(Trace.record("Question: q\n", [], meta={"answer": answer}).dump())
    assert loaded.meta["answer"] == answer


def test_a_body_that_ends_without_a_newline() -> None:
    text = "---\nformat: 1\neol: none\n---\nQuestion: a\nThought: b\n"
    assert loads(text).body == "Question: a\nThought: b"
    assert rebuilt(loads(text)) == text.encode()


# -- the trace of a run


def test_the_trace_of_a_run() -> None:
    turns = (" Look.\nAction: search[pier]", " I wonder", Completion("Action: search[x", "length"), finish("240 m"))
    trace = play(*turns, allow=["search"], temperature=0.5).result.trace
    loaded = Trace.load(trace.dump())
    assert loaded.steps[0].observation == "The pier is 240 m long."
    assert [step.tool for step in loaded.steps] == ["search", None, None, "finish"]
    assert loaded.meta["tools"] == ["search", "finish"]
    assert (loaded.meta["answer"], loaded.meta["stop_reason"]) == ("240 m", "success")
    assert loaded.meta["options"] == {"max_tokens": 256, "temperature": 0.5}
    assert loaded.finishes == {3: "length"}


def test_two_runs_have_one_trace_and_nothing_volatile_is_in_it() -> None:
    def data() -> bytes:
        return play(act("search[pier]"), finish("240 m")).result.trace.dump()

    assert data() == data()
    for word in (b"seconds", b"usage", b"Writer"):
        assert word not in data()


def test_a_trace_names_its_prompt_within_the_project(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("")
    (tmp_path / "prompts").mkdir()
    path = tmp_path / "prompts" / "p.j2"
    path.write_text("{{ trace_begins }}Claim: {{ question }}\n{{ transcript }}{{ cue }}")
    trace = play(finish("yes"), prompt=path).result.trace
    assert trace.meta["prompt"] == "prompts/p.j2"
    assert trace.task == "Claim: How long is the pier?\n"
    assert str(tmp_path).encode() not in trace.dump()


@pytest.mark.parametrize("found", [item for item in NASTY if item], ids=repr)
def test_what_a_tool_returned_is_in_the_trace_as_the_model_saw_it(found: Any) -> None:
    def search(query: str) -> str:
        return found

    played = play(act("search[a]"), finish(), tools=[search])
    loaded = Trace.load(played.result.trace.dump())
    assert loaded.steps[0].observation == played.result.steps[0].observation
    assert loaded.body.removesuffix("Thought: That is all.\nAction: finish[end]\n") == played.prompts[1].removeprefix(
        played.prompts[0].removesuffix("Question: How long is the pier?\nThought:")
    ).removesuffix("Thought:")
