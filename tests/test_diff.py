"""What a person sees of a difference: a story, the steps that differ, white space that is visible."""

from __future__ import annotations

import io
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from react_text import Trace
from react_text.diff import coloured, first_divergence, likely_cause, step_diff, story, visible
from react_text.golden import Case
from react_text.match import Change, compare

from .project import Project

QUESTION = "Question: Who?\n"
Turns = Sequence[tuple[str, str | None]]


def trace(turns: Turns) -> Trace:
    return Trace.record(QUESTION, turns)


def search(text: str, seen: str = "found") -> tuple[str, str | None]:
    return f"Thought: I look.\nAction: search[{text}]", seen


def lookup(text: str) -> tuple[str, str | None]:
    return f"Thought: I look.\nAction: lookup[{text}]", "here"


def finish(answer: str) -> tuple[str, str | None]:
    return f"Thought: Known.\nAction: finish[{answer}]", None


GOLDEN = [search("a"), search("b"), search("c"), finish("Ann")]

STORIES: list[tuple[Turns, str]] = [
    (GOLDEN, "as recorded"),
    (
        [search("a"), lookup("b"), search("c"), search("d"), finish("Ann")],
        "step 2: calls lookup[b] instead of search[b]; 1 extra step; same answer",
    ),
    ([search("a"), search("c"), finish("Ann")], "step 2: is missing: search[b]; same answer"),
    ([finish("Ann")], "step 1: is missing: search[a]; 2 more missing steps; same answer"),
    ([search("a", "lost"), *GOLDEN[1:]], "step 1: search answers differently; same path; same answer"),
    (
        [search("a", "x"), search("b", "y"), *GOLDEN[2:]],
        "step 1: search answers differently; 1 more change; same path; same answer",
    ),
    ([*GOLDEN[:3], finish("Bob")], "step 4: answers 'Bob' instead of 'Ann'; same path"),
    ([search("x"), *GOLDEN[1:3], finish("Bob")], "step 1: calls search[x] instead of search[a]; another answer"),
]


@pytest.mark.parametrize(("turns", "expected"), STORIES)
def test_a_story(turns: Turns, expected: str) -> None:
    assert story(compare(trace(GOLDEN), trace(turns))) == expected


def shown(golden: Turns, run: Turns, *, whole: bool = True) -> str:
    one, other = trace(golden), trace(run)
    lines = (step_diff if whole else first_divergence)(one, other, compare(one, other))
    return "\n".join(line.removeprefix("    ") for line in lines)


DIFFS: dict[str, tuple[Turns, Turns, str]] = {
    "an extra step leaves the rest alone": (
        GOLDEN,
        [search("a"), lookup("x"), *GOLDEN[1:]],
        """\
@ 1 step the same
@ step 2 of the run: the golden has none here
+ Thought: I look.
+ Action: lookup[x]
+ Observation: here
@ 3 steps the same""",
    ),
    "a missing step": (
        GOLDEN,
        [*GOLDEN[:2], GOLDEN[3]],
        """\
@ 2 steps the same
@ step 3: the run has none here
- Thought: I look.
- Action: search[c]
- Observation: found
@ 1 step the same""",
    ),
    "what differs in a line is marked": (
        [search("a", "41 crates"), finish("Ann")],
        [search("a", "42 crates"), finish("Ann")],
        """\
@ step 1
  Thought: I look.
  Action: search[a]
- Observation: 41 crates
+ Observation: 42 crates
^               ^
@ 1 step the same""",
    ),
    "a step that has moved": (
        [search("a"), lookup("b")],
        [lookup("x"), search("a"), lookup("b")],
        """\
@ step 1 of the run: the golden has none here
+ Thought: I look.
+ Action: lookup[x]
+ Observation: here
@ 2 steps the same""",
    ),
    "white space at the end of a line": (
        [search("a", "one\ntwo")],
        [search("a", "one  \ntwo\t")],
        """\
@ step 1
  Thought: I look.
  Action: search[a]
- Observation: one
- two
+ Observation: one··
+ two→
^ only white space differs: an editor has trimmed line ends; \
`trim_trailing_whitespace = false` in .editorconfig keeps it from *.trace""",
    ),
    "white space within a line": (
        [search("a", "one two")],
        [search("a", "one\ttwo")],
        """\
@ step 1
  Thought: I look.
  Action: search[a]
- Observation:·one·two
+ Observation:·one→two
^                 ^
^ only white space differs: tabs have become blanks, or blanks tabs""",
    ),
    "a carriage return": (
        [search("a", "one\ntwo")],
        [search("a", "one\r\ntwo")],
        """\
@ step 1
  Thought: I look.
  Action: search[a]
- Observation:·one
+ Observation:·one␍
^                 ^
  two
^ only white space differs: line ends were converted; `*.trace -text` in .gitattributes keeps git from it""",
    ),
    "characters that cannot be seen": (
        [search("a", "one")],
        [search("a", "o\u200bn\u00a0\x1be")],
        """\
@ step 1
  Thought: I look.
  Action: search[a]
- Observation: one
+ Observation: o<U+200B>n<U+00A0>␛e
^               ^^^^^^^^^^^^^^^^^^""",
    ),
    "long unchanged stretches are left out": (
        [search("a", "\n".join(map(str, range(40))))],
        [search("a", "\n".join(map(str, [*range(20), "x", *range(21, 40)])))],
        """\
@ step 1
  Thought: I look.
  ... 18 lines the same
  17
  18
  19
- 20
+ x
  21
  22
  23
  ... 16 lines the same""",
    ),
}


@pytest.mark.parametrize("name", DIFFS)
def test_a_difference_shows(name: str) -> None:
    golden, run, expected = DIFFS[name]
    assert shown(golden, run) == expected


def test_the_first_divergence_shows_what_the_model_saw_and_nothing_after() -> None:
    run = [search("a"), lookup("b"), search("c", "lost"), finish("Bob")]
    assert (
        shown(GOLDEN, run, whole=False)
        == """\
@ step 2
  Question: Who?
  Thought: I look.
  Action: search[a]
  Observation: found
  Thought: I look.
- Action: search[b]
- Observation: found
+ Action: lookup[b]
+ Observation: here"""
    )


def test_long_lines_and_big_observations_stay_readable_and_fast() -> None:
    start = time.perf_counter()
    big = [str(n) for n in range(50_000)]
    text = shown([search("a", "\n".join(big))], [search("a", "\n".join([*big[:1000], "new", *big[1001:]]))])
    assert len(text) < 1000 and "- 1000" in text and "+ new" in text
    line = "x" * 500_000
    text = shown([search("a", f"{line}1{line}")], [search("a", f"{line}2{line}")])
    assert "x1x" in text and "x2x" in text and len(text) < 2000
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "a b"), ("a b  ", "a b··"), ("\ta\t", "    a→"), ("a\r", "a␍"), ("a\x1b[31m", "a␛[31m"),
        ("a\u2028b", "a<U+2028>b"), ("a\ufeff", "a<U+FEFF>"), ("思考 ", "思考·"), ("", ""),
    ],
)  # fmt: skip
def test_invisible_characters_are_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


@pytest.mark.parametrize(
    ("golden", "run", "cause"),
    [
        ("a\nb\n", "a \nb\n", "trimmed line ends"),
        ("a\r\nb", "a\nb", "line ends were converted"),
        ("a\n", "a\n\n", "the end of the file"),
        ("a b", "a\tb", "tabs"),
        ("a  b", "a b", ""),
    ],
)
def test_the_likely_cause_of_a_white_space_difference(golden: str, run: str, cause: str) -> None:
    found = likely_cause(golden, run)
    assert cause in found and bool(found) == bool(cause)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = ["a story - of its own", "    - old", "    + new", "      same"]
    assert list(coloured(lines, io.StringIO())) == lines
    assert list(coloured(lines, Terminal())) == [
        lines[0],
        "\x1b[31m    - old\x1b[0m",
        "\x1b[32m    + new\x1b[0m",
        lines[3],
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(coloured(lines, Terminal())) == lines


def test_without_changes_there_is_nothing_to_show() -> None:
    assert shown(GOLDEN, GOLDEN) == shown(GOLDEN, GOLDEN, whole=False) == ""
    assert story([Change("new", 0, "there is no golden of this name yet")]) == "there is no golden of this name yet"


@pytest.mark.skipif(shutil.which("git") is None, reason="asks git")
def test_a_changed_prompt_is_shown_as_git_sees_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.record("traces/run.trace", [" x\nAction: crates[3]", " x\nAction: finish[41]"])
    for command in ("init -q", "add -A", "-c user.name=a -c user.email=a@example.com commit -qm all"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    project.edit("prompts/depot.j2", "from 1 to 9", "from 1 to 12")
    found = project.run("test").out
    assert "    -- Halls are numbered from 1 to 9.\n    +- Halls are numbered from 1 to 12.\n" in found
    assert "@ prompts/depot.j2" in found
    assert Case(tmp_path / "traces" / "run.trace").replay().changes[0].category == "prompt"
