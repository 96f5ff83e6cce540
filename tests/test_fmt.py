"""`fmt`: the front matter in its usual form, the body untouched, no comment lost."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from react_text import AuthorError, Labels, Trace
from react_text.fmt import formatted
from react_text.lint import lint
from react_text.output import without_surrogates
from react_text.trace import KEYS

from .project import Project
from .test_trace_format import recordings, texts

ABOVE = st.sampled_from(["", "#~above\n", "\n", "#~a\n\n#~b: c\n", "#\n"])
BEHIND = st.sampled_from(["", "  #~behind", " #~x, y"])
BODY = "Question: x\nThought: a\nAction: look[b]\nObservation: c\nThought: d\nAction: finish[e]\n"
PAGE = "Question: x\nAction: look[b]\nObservation: a page with\nThought: of its own\nAction: finish[e]\n"
# name of the behaviour -> (the head that is written by hand, the head that comes of it)
HEADS = {
    "the keys of a trace have one order": (
        "answer: e\nprompt: p.j2\nformat: 1\n",
        "format: 1\nprompt: p.j2\nanswer: e\n",
    ),
    "a comment stays with the key below it": (
        "# the answer\n# in two lines\nanswer: e\n# where it belongs\nprompt: p.j2\nformat: 1\n# the end\n",
        "format: 1\n# where it belongs\nprompt: p.j2\n# the answer\n# in two lines\nanswer: e\n# the end\n",
    ),
    "a title stays at the top": (
        "# By hand, 2026.\n\n# the answer\nanswer: e\nformat: 1\n",
        "# By hand, 2026.\n\nformat: 1\n# the answer\nanswer: e\n",
    ),
    "a comment behind a value stays behind it": (
        "answer: e  # short\nformat: 1 # the only one\n",
        "format: 1 # the only one\nanswer: e  # short\n",
    ),
    "values stay as they are written": (
        "answer: 'e'\ntools:\n  - look\n  # - open\n  - finish\n  # the end\n# labels\nlabels: plain\nformat: 1\n",
        "format: 1\ntools:\n  - look\n  # - open\n  - finish\n  # the end\n# labels\nlabels: plain\nanswer: 'e'\n",
    ),
    "a hash within a text is no comment": (
        'answer: "e # f"\nformat: 1\n',
        'format: 1\nanswer: "e # f"\n',
    ),
    "a block of text keeps its lines": (
        "lint: {ignore: [RT402]}\nanswer: |\n  e\n  # f\n\nprompt: p.j2\n",
        "format: 1\nprompt: p.j2\nanswer: |\n  e\n  # f\n\nlint: {ignore: [RT402]}\n",
    ),
    "spans that are not needed go, their comments stay": (
        "# page\nspans: {1: 1}  # one line\nanswer: e\n",
        "format: 1\nanswer: e\n# page\n# one line\n",
    ),
    "a key without a value stays": (
        "hand:\nprompt: p.j2\n",
        "format: 1\nprompt: p.j2\nhand:\n",
    ),
    "no head at all": ("", "format: 1\n"),
}


def trace_with(head: str, body: str = BODY) -> Trace:
    return Trace.load(f"---\n{head}---\n{body}".encode())


@pytest.mark.parametrize(("head", "usual"), HEADS.values(), ids=HEADS.keys())
def test_the_head_gets_its_usual_form(head: str, usual: str) -> None:
    data = formatted(trace_with(head))
    assert data.decode() == f"---\n{usual}---\n{BODY}"
    assert formatted(Trace.load(data)) == data


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        (BODY, f"---\nformat: 1\n---\n{BODY}"),
        (BODY.removesuffix("\n"), f"---\nformat: 1\neol: none\n---\n{BODY}"),
        (f"---\nformat: 1\neol: none\n---\n{BODY}\n", f"---\nformat: 1\n---\n{BODY}"),
        (f"\ufeff---\nformat: 1\n---\n{BODY}".replace("\n", "\r\n"), f"---\nformat: 1\n---\n{BODY}"),
        (f"---\nformat: 1\n---\n{BODY}a\rb\n", f"---\nformat: 1\n---\n{BODY}a\rb\n"),
        (f"---\nspans: {{1: 2}}\n---\n{PAGE}", f"---\nformat: 1\nspans: {{1: 2}}\n---\n{PAGE}"),
    ],
    ids=["no front matter", "no newline at the end", "eol says none but there is one", "CRLF and a byte order mark",
         "a carriage return is content", "a span that is needed"],
)  # fmt: skip
def test_the_body_says_what_it_said(text: str, usual: str) -> None:
    trace = Trace.load(text.encode())
    assert formatted(trace).decode() == usual
    assert Trace.load(usual.encode()).body == trace.body


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("{format: 1, prompt: p.j2}\n", "a.trace:2: each key of the front matter needs a line of its own"),
        ("prompt: p.j2\nspans: {3: 1}\n", "a.trace:5: spans: there is no observation 3"),
    ],
    ids=["keys in one line", "a stale span"],
)
def test_what_cannot_be_formatted_is_left_alone(head: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_text(f"---\n{head}---\n{BODY}")
    with pytest.raises(AuthorError) as caught:
        formatted(Trace.load(path))
    assert str(caught.value) == f"{tmp_path}/{message}"


@settings(max_examples=settings().max_examples // 2)
@given(recordings(), st.data())
def test_a_head_in_disorder_keeps_its_meaning_and_its_comments(
    recording: tuple[str, list[tuple[str, str | None]], Labels], data: st.DataObject
) -> None:
    task, turns, labels = recording
    meta = {"answer": "yes: #1", "tools": ["look", "# no"], "expect": {"max_steps": 3}}
    trace = Trace.record(task, turns, labels, meta)
    # A span for every observation, needed or not, and the lines in any order with comments between and behind them.
    counts = {
        n: 1 + o.count("\n") for n, o in enumerate((step.observation for step in trace.steps), 1) if o is not None
    }
    everywhere = dict(enumerate(counts.values(), 1))
    head, _, body = (
        dataclasses.replace(trace, spans=dataclasses.replace(trace.spans, observations=everywhere))
        .dump()[len("---\n") :]
        .decode()
        .partition("---\n")
    )
    lines = data.draw(st.permutations(head.split("\n")[:-1]))
    noted = "".join(f"{data.draw(ABOVE)}{line}{data.draw(BEHIND)}\n" for line in lines) + "#~end\n"
    own = Trace.load(f"---\n{noted}---\n{body}".encode())
    result = formatted(own)
    written = result.decode().removesuffix(body)
    again = Trace.load(result)
    assert written + body == result.decode()
    assert (again.body, again.meta, again.labels, again.steps) == (own.body, own.meta, own.labels, own.steps)
    assert again.spans == trace.spans
    assert sorted(re.findall(r"#~\w+", written)) == sorted(re.findall(r"#~\w+", noted))
    keys = [word for line in written.split("\n") if (word := line.partition(":")[0]) in KEYS]
    assert keys == sorted(keys, key=KEYS.index)
    assert formatted(again) == result


@given(st.lists(texts, max_size=12).map("\n".join))
def test_any_body_stays_as_it_is(body: str) -> None:
    data = f"---\nanswer: e\nformat: 1\n---\n{without_surrogates(body)}".encode()
    try:
        trace = Trace.load(data)
    except AuthorError as error:
        assert "conflict" in error.message
        return
    again = Trace.load(formatted(trace))
    assert (again.body, again.steps, again.meta) == (trace.body, trace.steps, trace.meta)


# -- the command


def test_fmt_changes_what_is_not_in_its_usual_form_and_says_so(tmp_path: Path) -> None:
    usual = f"---\nformat: 1\nanswer: e\n---\n{BODY}"
    project = Project(tmp_path, {"traces/a.trace": usual, "traces/b.trace": f"---\nanswer: e\n---\n{BODY}"})
    checked = project.run("fmt --check traces")
    assert (checked.code, checked.out, checked.changed) == (1, "would change traces/b.trace\n", {})
    done = project.run("fmt traces")
    assert (done.code, done.out, done.changed) == (0, "changed traces/b.trace\n", {"traces/b.trace": usual})
    assert project.run("fmt --check traces").code == 0


def test_fmt_goes_on_behind_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.trace": "---\nanswr: e\n---\n", "b.trace": f"---\nanswer: e\n---\n{BODY}"})
    done = project.run("fmt a.trace b.trace")
    assert done.code == 2
    assert done.err == "a.trace:2: unknown key 'answr' (did you mean answer?)\n"
    assert set(done.changed) == {"b.trace"}


def test_what_is_formatted_breaks_no_rule_about_form(tmp_path: Path) -> None:
    project = Project(
        tmp_path, {"traces/a.trace": f"---\nspans: {{1: 1}}\nanswer: e\ntest: false\n---\n{BODY}".removesuffix("\n")}
    )
    before = {finding.rule.code for finding in lint([tmp_path / "traces"], select=["RT1"]).findings}
    project.run("fmt traces")
    assert before == {"RT105", "RT108"}
    assert not lint([tmp_path / "traces"], select=["RT1"]).findings
