"""The `.trace` format: what is written is what is read, to the byte."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Agent, AuthorError, Completion, Labels, Result, Run, ScriptedModel, Trace
from react_text.labels import ARROW, NUMBERED, PLAIN
from react_text.output import without_surrogates
from react_text.prompt import read_example
from react_text.trace import KEYS

TRACES_2022 = Path(__file__).parent / "traces_2022"
OWN = Labels(thought="思考", action="行动", observation="观察", question="问题")
STYLES = {"plain": PLAIN, "numbered": NUMBERED, "own": OWN}
PAIR = "Thought: a\nAction: look[b]\n"

# What has confused parsers of such files: labels, fences, template marks, line ends of all kinds, conflict markers.
LABELS = [
    "Thought: ", "Action: look[x]", "Observation: ", "Question: ", "Thought 2: ", "Action 12:", "Observation 3:",
    "思考: ", "观察:",
]  # fmt: skip
PIECES = [
    "---", "--- ", "...", "{{ x }}", "{% raw %}", "\n", "\n\n", "\r", "\r\n", "\u2028", "\x0b", "\x0c", "\x85", "\0",
    "\x1b[31m", "\ufeff", "\ufffd", "\ud800", '{"a": "\\ud800"}', "<<<<<<< HEAD\n", "=======\n", ">>>>>>> main\n",
    "|||||||", "", " ", "  ", "\t", "a", "é", "😀", "# no comment", "> ", "x" * 3000, "]", "[", "'", '"', ":", "- ",
]  # fmt: skip

pieces = st.sampled_from(LABELS) | st.sampled_from(PIECES) | st.text(max_size=8)
texts = st.builds(str.join, st.sampled_from(["", "\n"]), st.lists(pieces, max_size=8))
meta_values = st.recursive(
    texts | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(texts, each, max_size=3),
    max_leaves=6,
)


def turn(labels: Labels, number: int, thought: str, action: str | None) -> str:
    """A turn as a run keeps it: from its label on."""
    cue = labels.cue(labels.thought, number)
    text = f"{cue} {thought}" if thought else cue
    if action is None:
        return text
    line = f"{labels.cue(labels.action, number)} look[{action}]"
    return f"{text}\n{line}" if thought else line


@st.composite
def recordings(draw: st.DrawFn) -> tuple[str, list[tuple[str, str | None]], Labels]:
    labels = draw(st.sampled_from([*STYLES.values(), ARROW]))
    task = draw(st.just("") | texts.map(lambda text: f"Question: {text}\n"))
    count = draw(st.integers(0, 4))
    if labels == ARROW:
        observations = st.none() | texts.filter(lambda text: not text.startswith(">"))
        return task, [(f">{draw(texts)}", draw(observations)) for _ in range(count)], labels
    turns = [
        (turn(labels, n, draw(texts), draw(st.none() | texts)), draw(st.none() | texts if n % 2 else texts))
        for n in range(1, count + 1)
    ]
    return task, turns, labels


def check_recording(
    task: str, turns: list[tuple[str, str | None]], labels: Labels, meta: dict[str, Any] | None = None
) -> Trace:
    """A recorded trace, read again, has the same parts: all but lone surrogates, which no file can hold."""
    trace = Trace.record(task, turns, labels, meta)
    data = trace.dump()
    read = Trace.load(data)
    assert read.dump() == data
    assert (read.body, read.task, read.labels, read.spans) == (
        trace.body,
        without_surrogates(task),
        labels,
        trace.spans,
    )
    texts = [(without_surrogates(text), o if o is None else without_surrogates(o)) for text, o in turns]
    assert [(step.text, step.observation) for step in read.steps] == texts
    return read


@given(recordings())
def test_what_was_recorded_is_what_is_read(recording: tuple[str, list[tuple[str, str | None]], Labels]) -> None:
    check_recording(*recording)


@given(st.lists(texts, max_size=12).map("\n".join))
def test_a_body_that_loads_is_dumped_with_the_same_parts(body: str) -> None:
    """Any text behind a head: also one that no run has written."""
    data = ("---\nformat: 1\n---\n" + without_surrogates(body)).encode()
    try:
        trace = Trace.load(data)
    except AuthorError as error:
        assert "conflict" in error.message
        return
    assert trace.dump() == data
    again = Trace.load(replace(trace).dump())  # a copy does not remember its file: this is written anew
    assert (again.body, again.steps, again.task) == (trace.body, trace.steps, trace.task)


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([p.encode("utf-8", "replace") for p in LABELS + PIECES])).map(b"".join)
)
def test_any_bytes_are_dumped_as_they_were_loaded_or_are_an_author_error(data: bytes) -> None:
    for content in (data, b"---\n" + data, b"---\nspans: {1: 2}\nhead: 1\n---\n" + data):
        try:
            trace = Trace.load(content)
        except AuthorError as error:
            assert error.message
            continue
        assert trace.dump() == content


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "answer": texts,
            "stop_reason": st.sampled_from(["success", "max_steps"]),
            "tools": st.lists(texts.filter(bool), min_size=1, max_size=3),
            "inputs": st.dictionaries(texts, meta_values, min_size=1, max_size=3),
            "completions": st.dictionaries(st.integers(1, 9), texts, min_size=1, max_size=3),
            "outcomes": st.dictionaries(st.integers(1, 9), texts, min_size=1, max_size=3),
            "finish": st.dictionaries(st.integers(1, 9), st.sampled_from(["length", "eos"]), min_size=1, max_size=3),
        },
    )
)
def test_front_matter_is_read_as_it_was_written(meta: dict[str, Any]) -> None:
    read = check_recording("Question: x\n", [("Thought:", "")], PLAIN, meta)
    assert read.meta == meta
    assert all(type(read.meta[key]) is type(meta[key]) for key in meta)


def test_50000_random_traces() -> None:
    """The same as the properties above, with fewer checks and many more traces."""
    pick = random.Random(2022)
    started = time.monotonic()
    spans = 0
    for _ in range(50_000):
        labels = pick.choice(list(STYLES.values()))

        def text(most: int = 3) -> str:
            chosen = pick.choices(PIECES, k=most)
            chosen[pick.randrange(most)] = pick.choice(LABELS)
            return pick.choice(("", "\n")).join(chosen[pick.randint(0, most) :])

        turns: list[tuple[str, str | None]] = []
        for number in range(1, pick.randint(1, 3)):
            turns.append((turn(labels, number, text(), text(1)), text(4)))
        if pick.random() < 0.5:
            turns.append((turn(labels, len(turns) + 1, text(), text()), None))
        task = f"Question: {text()}\n"
        trace = Trace.record(task, turns, labels)
        data = trace.dump()
        read = Trace.load(data)
        assert read.dump() == data
        assert read.body == trace.body
        assert read.task == without_surrogates(task)
        assert read.observations == [o if o is None else without_surrogates(o) for _, o in turns]
        spans += trace.spans.task is not None or bool(trace.spans.observations or trace.spans.turns)
    print(f"\n50,000 random traces, {spans} of them with spans: no difference, {time.monotonic() - started:.1f} s")
    assert spans > 5_000


# -- spans: only where they are needed


STEP = "Thought: a\nAction: look[b]"
MARKERS = "<<<<<<< a\n=======\n>>>>>>> b"
Turns = list[tuple[str, str | None]]
SPANS: dict[str, tuple[str, Turns, Labels, list[str]]] = {
    "an ordinary run": ("Q: x\n", [(STEP, "plain"), (STEP, None)], PLAIN, []),
    "a label behind the label": ("", [(STEP, "Thought: is no label here")], PLAIN, []),
    "what only resembles labels": ("Q: x\n", [(STEP, "a\n Thought: b\nA thought:\nthought:\nAction 2: c")], PLAIN, []),
    "an observation label": ("Q: x\n", [(STEP, "Observation: a\nObservation: b")], PLAIN, []),
    "a row of equals signs": ("Q: x\n", [(STEP, "a\n=======\nb")], PLAIN, []),
    "a label in an observation": ("Q: x\n", [(STEP, "a\nThought: b"), (STEP, "c")], PLAIN, ["spans: {1: 2}"]),
    "a label in the second one": ("Q: x\n", [(STEP, ""), (STEP, "\nAction:\n")], PLAIN, ["spans: {2: 3}"]),
    "a label in the question": ("Q: x\nAction: do[it]\n\n", [(STEP, "b")], PLAIN, ["head: 3"]),
    "a label in a turn": ("Q: x\n", [("Thought: a\nObservation: b\nAction: c[d]", "e")], PLAIN, ["turns: {1: 3}"]),
    "no observation": ("Q: x\n", [("Thought: a", None), ("Thought: b", None)], PLAIN, ["turns: {1: 1}"]),
    "observations are counted, not turns": (
        "Q: x\n", [("Thought: a", None), ("Thought:", "b\nThought: c")], PLAIN, ["turns: {1: 1}", "spans: {1: 2}"]
    ),
    "numbers": ("Q: x\n", [("Thought 1: a", "Thought 1:\nThought: b")], NUMBERED, ["spans: {1: 2}"]),
    "own labels": ("Q: x\n", [("思考: a", "Thought: b\n行动: c")], OWN, ["spans: {1: 2}"]),
    "arrows": ("Room\n", [("> think: a", None), (">go", "\nb"), ("> look", "")], ARROW, []),
    "an arrow in an observation": ("Room\n", [("> look", "a\n> b")], ARROW, ["spans: {1: 2}"]),
    "an arrow's second line": ("Room\n", [("> say a\nb", "c")], ARROW, ["turns: {1: 2}"]),
    "a conflict in an observation": ("Q: x\n", [(STEP, f"\n{MARKERS}")], PLAIN, ["spans: {1: 4}"]),
    "a conflict in a turn": ("Q: x\n", [(f"Thought: a\n{MARKERS}", "c")], PLAIN, ["turns: {1: 4}"]),
    "a conflict in the question": (f"{MARKERS}\n", [], PLAIN, ["head: 3"]),
    "a conflict across two observations": (
        "Q: x\n", [(STEP, "\n<<<<<<< a\n"), (STEP, "\n=======\n>>>>>>> b")], PLAIN, ["spans: {1: 3}"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SPANS)
def test_spans_are_written_only_where_labels_do_not_tell(case: str) -> None:
    task, turns, labels, spans = SPANS[case]
    head = check_recording(task, turns, labels).dump().decode().partition("\n---\n")[0]
    assert [line for line in head.split("\n") if line.startswith(("head:", "turns:", "spans:"))] == spans


def test_texts_that_cannot_stand_in_one_body_are_an_author_error() -> None:
    with pytest.raises(AuthorError, match="turn 1 does not begin with a label: 'go'"):
        Trace.record("Q: x\n", [("go", None)])
    with pytest.raises(AuthorError, match="observation 1 begins like a turn: '> x'"):
        Trace.record("Room\n", [("> go", "> x")], ARROW)
    with pytest.raises(AuthorError, match="no newline at its end"):
        Trace.record("Q: x", [("Thought: a", None)])


def test_arrows_are_for_traces_only() -> None:
    """A run needs words that a parser can find."""
    with pytest.raises(AuthorError, match="labels is plain, numbered or a mapping of words, not 'arrow'"):
        Agent(None, [look], Recorder([]), labels="arrow")


# -- the file


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("---\nformat: 1\n", "FILE:1: the front matter has no closing `---` line"),
        ("---\nformat: 2\n---\n", "FILE:2: format 2 is not known here, only 1"),
        ("---\nformat: 1\nspan: {1: 2}\n---\n", "FILE:3: unknown key 'span' (did you mean spans?)"),
        ("---\nanswer: a\nanswer: b\n---\n", "FILE:3: key 'answer' is given twice"),
        ("---\nanswer: [unclosed\n---\n", "FILE:3: front matter: "),
        ("---\nanswer: &a b\ntools: *a\n---\n", "FILE:3: front matter: YAML tags and aliases are not used here"),
        (
            "---\nanswer: !!python/name:os.system\n---\n",
            "FILE:2: front matter: YAML tags and aliases are not used here",
        ),
        ("---\ninputs: {a: 1, a: 2}\n---\n", "FILE:2: inputs: 'a' is given twice"),
        ("---\ninputs: {[a]: 1}\n---\n", "FILE:2: inputs: the names in a mapping are single words"),
        ("---\ninputs: " + "[" * 9000 + "\n---\n", "FILE:1: front matter: nested too deeply"),
        ("---\nanswer: \0\n---\n", "FILE:1: front matter: "),
        ("---\neol: crlf\n---\n", "FILE:2: eol must be lf or none, not 'crlf'"),
        ("---\nlabels: roman\n---\n", "FILE:2: labels is plain, numbered or a mapping of words, not 'roman'"),
        ("---\nlabels: {thougt: a}\n---\n", "FILE:2: labels: unknown label 'thougt' (did you mean thought?)"),
        ("---\nfinish: {1: lenght}\n---\n", "FILE:2: finish: unknown word 'lenght' (did you mean length?)"),
        ("---\nfinish: length\n---\n", "FILE:2: finish must map the numbers of steps to words"),
        ("---\noutcomes: {first: empty}\n---\n", "FILE:2: outcomes must map the numbers of steps to words"),
        ("---\nhead: many\n---\n", "FILE:2: head must be the number of lines of the question, not 'many'"),
        ("---\nspans: {0: 1}\n---\n", "FILE:2: spans must map numbers from 1 to numbers of lines"),
        ("---\nturns: {1: yes}\n---\n", "FILE:2: turns must map whole numbers to whole numbers"),
        ("---\nspans: {1: 2}\n---\n" + PAIR + "Observation: a\nb\nc\n", "FILE:6: spans: observation 1 does not end"),
        ("---\nspans: {1: 9}\n---\n" + PAIR + "Observation: a\n", "FILE:6: spans: observation 1 does not end"),
        ("---\nspans: {2: 1}\n---\n" + PAIR + "Observation: a\n", "FILE:4: spans: there is no observation 2"),
        ("---\nturns: {2: 1}\n---\n" + PAIR, "FILE:4: turns: there is no turn 2"),
        ("---\nturns: {1: 1}\n---\nThought: a\nb\n", "FILE:4: turns: turn 1 does not end before a label after 1 lines"),
        ("---\nhead: 1\n---\nQ: a\nb\n" + PAIR, "FILE:4: head: the question does not end before a label after 1 lines"),
        ("---\nhead: 7\n---\nQ: a\n", "FILE:4: head: the question does not end before a label after 7 lines"),
        ("---\n<<<<<<< a\nanswer: 1\n=======\nanswer: 2\n>>>>>>> b\n---\nQ: x\n", "FILE:2: git conflict markers"),
        ("---\nformat: 1\n---\nQ: x\n<<<<<<< a\n=======\n>>>>>>> b\n", "FILE:5: git conflict markers"),
        ("---\n---\n" + PAIR + "Observation: a\n<<<<<<< a\nb\n=======\n>>>>>>> b\n", "FILE:6: git conflict markers"),
        ("<<<<<<< a\n---\nformat: 1\n---\n=======\n>>>>>>> b\n", "FILE:1: git conflict markers"),
        ("---\r\nformat: 1\r\n---\r\nQ: x\n", "FILE:1: some lines end in CRLF and others do not"),
        ("Q: x\n".encode("utf-16"), "FILE:1: this file is UTF-16; save it as UTF-8"),
        ("---\nQ: x\n".encode("utf-16-le"), "FILE:1: this file is UTF-16; save it as UTF-8"),
        ("---\nQ: x\n".encode("utf-16-be"), "FILE:1: this file is UTF-16; save it as UTF-8"),
        ("Q: naïve\n".encode("latin-1"), "FILE:1: this file is not UTF-8 (byte 0xef)"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("FILE") else "",
)
def test_what_an_author_has_to_change_is_named_with_its_line(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.trace"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(AuthorError) as caught:
        Trace.load(path)
    assert str(caught.value).startswith(message.replace("FILE", str(path)))


@pytest.mark.parametrize(
    ("written", "key", "read"),
    [
        ("answer: yes", "answer", "yes"),
        ("answer: 2026-07", "answer", "2026-07"),
        ("answer: 2026-07-01", "answer", "2026-07-01"),
        ("answer: 1,148", "answer", "1,148"),
        ("answer: 007", "answer", "007"),
        ("answer: 1e3", "answer", "1e3"),
        ("answer: off", "answer", "off"),
        ('answer: ""', "answer", ""),
        ("answer: '#1'", "answer", "#1"),
        ("tools: [on, 5, null]", "tools", ["on", "5", "null"]),
        ("inputs: {day: 2026-07-01, sure: yes, id: 007, at: 1:30}", "inputs",
         {"day": "2026-07-01", "sure": "yes", "id": "007", "at": "1:30"}),
        ('inputs: {n: 3, x: 1.5, m: -2, ok: true, none: null, text: "3"}', "inputs",
         {"n": 3, "x": 1.5, "m": -2, "ok": True, "none": None, "text": "3"}),
        ("finish: {2: length}", "finish", {2: "length"}),
        ("test: false", "test", "false"),
    ],
)  # fmt: skip
def test_scalars_are_texts_unless_they_are_plainly_something_else(written: str, key: str, read: Any) -> None:
    trace = Trace.load(f"---\nformat: 1\n{written}\n---\nQ: x\n".encode())
    assert trace.meta[key] == read
    assert repr(trace.meta[key]) == repr(read)
    assert Trace.load(replace(trace).dump()).meta == trace.meta


def test_the_set_of_keys_is_closed_and_in_the_order_in_which_they_are_written() -> None:
    meta = {"answer": "a", "prompt": "p.j2", "match": "answer", "expect": {"max_steps": 3}, "stop_reason": "success"}
    text = Trace.record("Q: x\n", [], PLAIN, meta).dump().decode()
    keys = [line.partition(":")[0] for line in text.split("\n---\n")[0].split("\n")[1:]]
    assert keys == [key for key in KEYS if key in {"format", *meta}]


UNIX = "---\nformat: 1\n---\nQuestion: a\nThought: b\nAction: lookup[tide]\nObservation: c\n"


@pytest.mark.parametrize(
    "data",
    [
        UNIX.encode(),
        b"\xef\xbb\xbf" + UNIX.encode(),
        UNIX.replace("\n", "\r\n").encode(),
        UNIX.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + UNIX.replace("\n", "\r\n").removesuffix("\r\n").encode(),
    ],
    ids=["unix", "byte order mark", "CRLF", "CR", "byte order mark, CRLF, no newline at the end"],
)
def test_a_file_from_any_editor_gives_the_same_prompt(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_bytes(data)
    trace = Trace.load(path)
    assert trace.dump() == data
    assert read_example(path) == Trace.load(UNIX.encode()).body
    assert [(s.thought, s.tool, s.arguments, s.observation) for s in trace.steps] == [("b", "lookup", "tide", "c")]


@pytest.mark.parametrize(
    ("data", "body"),
    [
        ("---\neol: none\n---\nQ: x\nThought: a\n", "Q: x\nThought: a"),
        ("---\neol: none\n---\nQ: x\n\n", "Q: x\n"),
        ("---\neol: none\n---\n\n", ""),
        ("---\neol: none\n---\nQ: x", "Q: x"),
        ("---\nformat: 1\n---\n", ""),
        ("---\n---\n", ""),
        ("---\n---", ""),
        ("Q: x\n", "Q: x\n"),
        ("", ""),
        ("---\n# a comment\nanswer:   b   # here too\n---\nQ: x\r\nb\n", "Q: x\r\nb\n"),
    ],
)
def test_the_body_is_every_byte_behind_the_head(data: str, body: str) -> None:
    trace = Trace.load(data.encode())
    assert trace.body == body
    assert trace.dump() == data.encode()
    assert Trace.load(replace(trace).dump()).body == body


# -- runs


def look(place: str) -> str:
    """Look at a place."""
    answers = {
        "empty": "",
        "labels": "page:\nThought: of the page\nAction: look[x]",
        "conflict": "<<<<<<< a\n=======\n>>>>>>> b",
    }
    if place == "broken":
        raise ValueError("no\nObservation: such place")
    return answers.get(place, f"You see {place}.")


# Each turn is followed by a finish. What is kept of some would be read differently from what was written.
WRITTEN: dict[str, list[str | Completion]] = {
    "a thought and an action": [" I look.\nAction: look[a]"],
    "no thought": ["\nAction: look[a]"],
    "a thought of two lines": [" One.\n\nTwo.\nAction: look[a]"],
    "an invented observation": [" I look.\nAction: look[a]\nObservation: made up\nThought: so"],
    "an invented observation on the same line": [" I look. Action: look[a] Observation: made up"],
    "reasoning": ["<think>\nAction: look[b]\n</think>\n I look.\nAction: look[a]"],
    "reasoning in the middle of a label": [" I look.\nObs<think>y</think>ervation: z\nAction: look[a]"],
    "reasoning that is never closed": [
        Completion("<think> what now", "eos"), Completion("<think> what now", "stop"), " still"
    ],
    "reasoning alone": ["<think>Action: look[b]</think>"],
    "nothing, twice": ["", " \n"],
    "nothing, then an action": ["", " look[a]"],
    "no action": [" I look."],
    "parentheses": [" I look.\nAction: look(a)"],
    "cut off by max_tokens": [Completion(" I look.\nAction: look[a", "length")],
    "cut off by a label": [" I look.\nAction: look[a\nQuestion: b"],
    "special tokens": [" I <|x|>look.\nAct<|y|>ion: look[b]\nAction: look[a]<|im_end|>"],
    "a fence": ["```\nAction: look[a]\n```"],
    "bold labels": [" I look.\n**Action:** look[a]"],
    "an unknown tool": [" I look.\nAction: loook[a]"],
    "bad arguments": [" I look.\nAction: look[]"],
    "a tool that raises": [" I look.\nAction: look[broken]"],
    "an empty result": [" I look.\nAction: look[empty]"],
    "labels in a result": [" I look.\nAction: look[labels]"],
    "conflict markers in a result": [" I look.\nAction: look[conflict]"],
    "a repeat": [" I look.\nAction: look[a]", " Again.\nAction: look[a]"],
    "control characters": [" \0\x0b\u2028\r\nAction: look[\r\n\x0c]"],
    "a lone surrogate": [" \ud800\nAction: look[\udc00]"],
    "a placeholder for an answer": [" Done.\nAction: finish[answer]"],
}  # fmt: skip


class Recorder:
    """A model that writes the given turns and then finishes. It keeps each prompt with the number of its step."""

    def __init__(self, turns: list[str | Completion]) -> None:
        self.prompts: list[tuple[int, str]] = []
        self.turns = iter([*turns, *[" Done.\nAction: finish[end]"] * 2])
        self.run: Run | None = None

    def __call__(self, prompt: str, stop: list[str]) -> str | Completion:
        self.prompts.append((len(self.run.steps) + 1 if self.run else 0, prompt))
        return next(self.turns)


@pytest.mark.parametrize("style", ["plain", "numbered"])
@pytest.mark.parametrize("written", WRITTEN)
def test_each_prompt_is_the_head_and_the_body_up_to_its_turn(written: str, style: str) -> None:
    model = Recorder(WRITTEN[written])
    model.run = run = Agent(None, [look], model, labels=style).steps("What\nis\nthere?")
    steps = list(run)
    trace = Trace.load(run.trace.dump())
    assert trace.task == "Question: What\nis\nthere?\n"
    assert [(s.text, s.observation) for s in trace.steps] == [(s.text, s.observation) for s in steps]
    for number, prompt in model.prompts:
        cue = run.labels.cue(run.labels.thought, number)
        behind = prompt.removeprefix(run.prompt.head + trace.before(number))
        # An empty completion is asked for again at the action; reasoning that a stop string has cut goes on.
        assert behind in (cue, run.labels.cue(run.labels.action, number), f"{cue}<think> what now")
    assert [number for number, _ in model.prompts][-1] == len(steps)
    assert trace.before(len(steps) + 1) == trace.body


def test_a_prompt_that_counts_down_begins_with_the_head_and_the_body(tmp_path: Path) -> None:
    prompt = tmp_path / "p.j2"
    prompt.write_text(
        '---\nquestion: x\n---\n{% extends "react.j2" %}\n'
        "{% block cue %}({{ remaining.steps }} left)\n{{ cue }}{% endblock %}\n"
    )
    model = Recorder([" a\nAction: look[b]"])
    run = Agent(prompt, [look], model).steps()
    list(run)
    heads = [run.prompt.head + run.trace.before(number) for number in (1, 2)]
    assert [text for _, text in model.prompts] == [f"{heads[0]}(8 left)\nThought:", f"{heads[1]}(7 left)\nThought:"]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_recorded_run_is_replayed_to_the_same_bytes(written: str) -> None:
    """The model half of the file is enough for the engine to make the whole file anew."""

    def run(model: Any) -> Result:
        return Agent(None, [look], model).run("x")

    first = run(Recorder(WRITTEN[written]))
    trace = Trace.load(first.trace.dump())
    again = run(ScriptedModel.from_trace(trace))
    assert again.trace.dump() == first.trace.dump()
    assert [step.error for step in again.steps] == [step.error for step in first.steps]
    assert again.stop_reason == "success"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a thought and an action", False),
        ("an invented observation", False),
        ("reasoning", False),
        ("no action", False),
        ("cut off by max_tokens", False),
        ("an invented observation on the same line", True),
        ("reasoning that is never closed", True),
        ("reasoning alone", True),
        ("cut off by a label", True),
    ],
)
def test_what_the_model_wrote_is_kept_only_where_the_turn_does_not_tell(written: str, kept: bool) -> None:
    trace = Agent(None, [look], Recorder(WRITTEN[written])).run("x").trace
    assert (1 in (trace.meta["completions"] or {})) is kept


# -- the traces of 2022: the structures of the first ReAct prompts, with other words

# Name: the initials of the tools, the answer.
NUMBERED_2022 = {
    "short_1": ("SSSF", "1,148 m"),
    "short_2": ("SSLF", "Nordlys"),
    "short_3": ("SSF", "yes"),
    "short_4": ("SSF", "yes"),
    "short_5": ("SSLF", "yes"),
    "short_6": ("SSF", "14"),
    "three_1": ("SSLF", "Eskdale"),
    "three_2": ("SLF", "Lachlan"),
    "three_3": ("SSF", "no"),
    "long_1": ("SSSF", "Marta Lindqvist"),
    "long_2": ("SSF", "flax"),
    "long_3": ("SSF", "Jonas Hebel"),
    "long_4": ("SSF", "the Aske tunnel"),
    "long_5": ("SSLF", "blue"),
    "long_6": ("SSF", "yes"),
    "long_7": ("SSF", "three"),
    "long_8": ("SSF", "Eastern Courier"),
    "act_1": ("SSF", "1,148 m"),
    "act_2": ("SSLF", "Nordlys"),
    "act_3": ("SSF", "yes"),
    "act_4": ("SSF", "yes"),
    "act_5": ("SSF", "yes"),
    "act_6": ("SSF", "14"),
    "claim_1": ("SF", "SUPPORTS"),
    "claim_2": ("SLF", "REFUTES"),
    "claim_3": ("SSF", "NOT ENOUGH INFO"),
    "claim_act_1": ("SF", "SUPPORTS"),
    "claim_act_2": ("SLF", "REFUTES"),
    "claim_act_3": ("SSF", "NOT ENOUGH INFO"),
}  # fmt: skip
# Name: the tools of text games and of a shop; a step that only thinks has none.
UNNUMBERED_2022 = {
    "game_think": ["", "go", "open", "take", "", "go", "wash", "go", "hang"],
    "game_act": ["go", "take", "go", "leave", "look"],
    "game_no_ok": ["", "open", "", "read"],
    "shop_think": ["search", "think", "click", "think", "click", "click"],
    "shop_act": ["search", "click", "click"],
}


def old(name: str) -> Trace:
    return Trace.load(TRACES_2022 / f"{name}.trace")


def test_the_traces_of_2022_are_all_there() -> None:
    names = {path.stem for path in TRACES_2022.glob("*.trace")}
    assert names == {*NUMBERED_2022, *UNNUMBERED_2022}
    assert len(NUMBERED_2022) == 29
    assert sum(len(tools) for tools, _ in NUMBERED_2022.values()) == 92


@pytest.mark.parametrize("name", [*NUMBERED_2022, *UNNUMBERED_2022])
def test_a_trace_of_2022_is_byte_exact(name: str) -> None:
    data = (TRACES_2022 / f"{name}.trace").read_bytes()
    trace = Trace.load(data)
    assert trace.dump() == data
    assert Trace.load(replace(trace).dump()).steps == trace.steps
    assert trace.before(len(trace.steps) + 1) == trace.body


@pytest.mark.parametrize("name", NUMBERED_2022)
def test_the_steps_of_a_numbered_trace_of_2022(name: str) -> None:
    trace = old(name)
    tools, answer = NUMBERED_2022[name]
    assert "".join(str(step.tool)[0] for step in trace.steps) == tools
    assert {step.tool for step in trace.steps} <= {"Search", "Lookup", "Finish"}
    assert trace.steps[-1].arguments == trace.meta["answer"] == answer
    assert [step.observation is None for step in trace.steps] == [False] * (len(tools) - 1) + [True]
    assert all(bool(step.thought) is not name.startswith(("act", "claim_act")) for step in trace.steps)
    assert trace.task.lstrip("\n").startswith("Claim: " if name.startswith("claim") else "Question: ")
    canonical = Trace.record(trace.task, [(step.text, step.observation) for step in trace.steps], trace.labels)
    assert canonical.body == trace.body


@pytest.mark.parametrize("name", UNNUMBERED_2022)
def test_the_steps_of_an_unnumbered_trace_of_2022(name: str) -> None:
    assert [step.tool or "" for step in old(name).steps] == UNNUMBERED_2022[name]


def test_the_irregularities_of_2022_are_read_as_they_stand() -> None:
    assert old("short_1").steps[0].observation == (
        "The Brennhorn cable railway is a funicular that climbs from Underlauen to the Brennhorn plateau. "
    )
    assert old("short_2").steps[0].observation == (
        "Could not find [harbour mural Skarvik]. "
        "Similar: ['Skarvik', 'Skarvik Harbour', 'Harbour mural (art)', 'Mural']."
    )
    assert "na\xc3\x83\xc2\xafvet\xc3\x83\xc2\xa9".encode("latin-1") in (TRACES_2022 / "short_2.trace").read_bytes()
    assert old("short_3").steps[0].observation == (
        "The Copper Tide is a film about a dyke warden\nand her brother. It opened in March 1957. "
    )
    assert old("short_6").task.startswith("\nQuestion: ")
    assert old("claim_2").task.endswith("Pelham?\n")
    assert old("game_act").steps[1].text == ">take lamp 1 from barrel 1"
    assert old("game_act").steps[3].observation == "It rolls off.\n\nThe floor is soft."
    assert old("game_act").steps[-1].observation is None
    assert old("game_no_ok").steps[0].observation is None
    assert old("game_no_ok").steps[2].observation == "OK."
    assert old("game_think").steps[-1].observation == "ladle 1 hangs."
    assert old("game_think").task.endswith("\nYour task is to: hang a clean ladle on the hook.\n")
    assert old("shop_think").steps[0].observation.startswith("\n[Back to Search] \nPage 1 of 3 \n[Next >] \n")  # type: ignore[union-attr]
    assert old("shop_think").steps[1].arguments == "P07ENV31 fits: blue, window, 10.80."
    assert old("shop_act").steps[0].observation.count("\n") == 5  # type: ignore[union-attr]
