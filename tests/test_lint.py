"""Lint: every rule on a file that breaks it and on one that does not; rules that read texts on many; the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Trace
from react_text.errors import AuthorError
from react_text.lint import RULES, lint
from react_text.lint.caveats import find_caveats

from .project import Project

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "lint"
CODES = [rule.code for rule in RULES]


def example(code: str, kind: str) -> Path:
    found = [path for path in FOLDER.glob(f"{code}.{kind}.*") if path.suffix in (".trace", ".j2")]
    assert len(found) == 1, f"{code} needs one {kind} example under tests/lint"
    return found[0]


# -- every rule


@pytest.mark.parametrize("code", CODES)
def test_the_bad_example_breaks_its_rule_and_no_other(code: str) -> None:
    """The place stands in the example itself: `# expect: LINE:COLUMN`, or `FILE:LINE:COLUMN` for another file."""
    path = example(code, "bad")
    expect = re.search(r"^# expect: (?:(\S+):)?([0-9]+):([0-9]+)\r?$", path.read_bytes().decode("utf-8-sig"), re.M)
    assert expect is not None
    place = (path.with_name(expect[1]) if expect[1] else path, int(expect[2]), int(expect[3]))
    report = lint([path])
    found = [(each.rule.code, (each.path.resolve(), each.line, each.column)) for each in report.findings]
    assert found == [(code, place)]
    assert not report.unusable


@pytest.mark.parametrize("code", CODES)
def test_the_good_example_breaks_no_rule(code: str) -> None:
    report = lint([example(code, "good")])
    assert (report.findings, report.unusable, report.files) == ((), (), 1)


def test_every_example_has_a_rule() -> None:
    named = {path.name[:5] for path in FOLDER.glob("RT*")}
    assert named == set(CODES)
    assert len(CODES) == len(set(CODES))


@pytest.mark.parametrize("rule", RULES, ids=CODES)
def test_every_rule_is_in_the_readme(rule: object) -> None:
    from react_text.lint import Rule

    assert isinstance(rule, Rule)
    assert f"| `{rule.code}` |" in (ROOT / "README.md").read_text("utf-8")
    assert rule.title and rule.help and rule.severity in ("error", "warning", "info")


# -- this repository


def test_the_prompts_and_traces_of_this_repository_are_clean() -> None:
    report = lint([ROOT / "prompts", ROOT / "traces"])
    assert [str(found) for found in report.findings] == []
    assert report.files >= 14 and not report.unusable


def test_the_run_that_ignores_the_note_is_caught_at_its_line() -> None:
    path = ROOT / "traces" / "cloud_spend_wrong.trace"
    report = lint([path], suppress=False)
    assert [found.rule.code for found in report.findings] == ["RT410"]
    line = path.read_text("utf-8").split("\n")[report.findings[0].line - 1]
    assert line[report.findings[0].column - 1 :] == "'note': 'excludes reserved instances'}"
    assert lint([ROOT / "traces" / "cloud_spend.trace"], suppress=False).findings == ()


# -- rules that read texts


def run_of(observation: str, *, question: str = "How much?", thought: str = "So it is.", answer: str = "Done") -> str:
    return (
        f"---\nformat: 1\n---\nQuestion: {question}\nThought: I ask.\nAction: ask[it]\nObservation: {observation}\n"
        f"Thought: {thought}\nAction: finish[{answer}]\n"
    )


def codes(folder: Path, text: str, *select: str) -> list[str]:
    """What is found in a trace; these short ones often consist of one observation."""
    path = folder / "x.trace"
    path.write_bytes(text.encode())
    report = lint([path], select=select, ignore=["RT408"])
    assert not report.unusable
    return [found.rule.code for found in report.findings]


UNREAD = {
    "a note in a dict": ("{'total': 3, 'note': 'excludes spare parts'}", "So it is 3."),
    "a warning in JSON": ('{"total": 3, "warnings": ["prices are of last year"]}', "So it is 3."),
    "a nested error": ("{'rows': [{'id': 4, 'error': 'no access'}]}", "So it is 4."),
    "an error count": ("{'rows': 3, 'error_count': 12}", "There are 3 rows."),
    "a flag that is set": ("{'rows': 3, 'truncated': True}", "There are 3 rows."),
    "a count": ("{'rows': ['a', 'b'], 'total_count': 250}", "The rows are a and b."),
    "what was left out": ("a\nb\n[200 rows omitted]", "They are a and b."),
    "a line of text": ("3 m\nNote: measured at low tide", "It is 3 m."),
    "a loud line of text": ("3 m\n**WARNING:** the sensor drifts", "It is 3 m."),
    "a log": ("total = 3\nerrors = 2", "The total is 3."),
    "only a word that the question has too": ("{'a': 3, 'note': 'cost of spares is missing'}", "The cost is 3."),
}
READ = {
    "a note in other words": ("{'total': 3, 'note': 'excludes spare parts'}", "3, but spares are not in it."),
    "the note by name": ("{'total': 3, 'note': 'gross'}", "3, and the note says before tax."),
    "a warning": ('{"total": 3, "warnings": ["prices are of last year"]}', "3 at the prices of last year."),
    "an error by saying no": ("{'error': 'there is no berth D9'}", "No such berth."),
    "a count by its number": ("{'rows': ['a'], 'total_count': 250}", "a is one of 250."),
    "a count in words": ("{'rows': ['a'], 'total_count': 2}", "a is one of two."),
    "a flag": ("{'rows': 3, 'truncated': True}", "The list is truncated."),
    "nothing to read: empty": ("{'rows': 3, 'errors': [], 'warning': None, 'note': ''}", "There are 3."),
    "nothing to read: zero": ("rows: 3\nerror_count: 0\nerrors: none", "There are 3."),
    "the flag of a ship": ("{'ship': 'Kestrel', 'flag': 'NO'}", "It is the Kestrel."),
    "a notebook": ("{'notebook': 'blue', 'price': 3}", "It costs 3."),
    "a field that begins with note": ("{'note_id': 'zzz', 'price': 3}", "It costs 3."),
}


@pytest.mark.parametrize(("observation", "thought"), UNREAD.values(), ids=UNREAD)
def test_a_caveat_that_nobody_mentions(tmp_path: Path, observation: str, thought: str) -> None:
    text = run_of(observation, question="What is the cost?", thought=thought, answer="Known")
    assert codes(tmp_path, text, "RT410") == ["RT410"]


@pytest.mark.parametrize(("observation", "thought"), READ.values(), ids=READ)
def test_a_caveat_that_is_read_or_none(tmp_path: Path, observation: str, thought: str) -> None:
    text = run_of(observation, question="What is the cost?", thought=thought, answer="Known")
    assert codes(tmp_path, text, "RT410") == []


def test_a_caveat_is_read_in_the_answer_too(tmp_path: Path) -> None:
    text = run_of("{'total': 3, 'note': 'excludes spare parts'}", thought="So it is 3.", answer="3 without spares")
    assert codes(tmp_path, text, "RT410") == []


def test_what_was_said_before_does_not_count(tmp_path: Path) -> None:
    text = run_of("{'total': 3, 'note': 'excludes spare parts'}", thought="So it is 3.")
    assert codes(tmp_path, text.replace("I ask.", "I ask for the spare parts."), "RT410") == ["RT410"]


def test_a_tool_that_raised_is_to_be_mentioned_and_an_answered_mistake_is_not(tmp_path: Path) -> None:
    failed = "Error: ask failed with OSError: the disk is gone\nTry other arguments or another tool, or finish."
    outcome = 'format: 1\noutcomes: {1: "raised OSError: gone"}\n'
    text = run_of(failed, thought="So it is 3.").replace("format: 1\n", outcome)
    assert codes(tmp_path, text, "RT410") == ["RT410"]
    unknown = 'Error: there is no tool called "ask".\nTools: look[text]; finish[answer]'
    text = run_of(unknown, thought="So it is 3.").replace("format: 1\n", "format: 1\ntools: [look, finish]\n")
    assert codes(tmp_path, text, "RT410") == []


@pytest.mark.parametrize("piece", ["note: ", "'note': '", "error", "a_", "showing 1 of ", "note", "1 more ", "[", "* "])
def test_caveats_of_a_large_observation_take_linear_time(piece: str) -> None:
    import time

    def seconds(length: int) -> float:
        started = time.perf_counter()
        find_caveats(piece * (length // len(piece)))
        return time.perf_counter() - started

    seconds(1000)
    assert seconds(200_000) < 12 * seconds(40_000) + 0.1


IN_THE_HEAD = {
    "a difference": ("{'spent': 54220, 'budget': 50000}", "4220 too much.", "See above"),
    "a difference in the answer": ("{'spent': 54220, 'budget': 50000}", "Too much.", "4,220 of 54,220 too much"),
    "a percentage": ("{'spent': 54220, 'budget': 50000}", "That is 8.44 percent more.", "See above"),
    "a slip of the pen": ("{'spent': 54220}", "54202 were spent.", "See above"),
    "a count": ("['a', 'b', 'c']", "There are 3.", "See above"),
}
FROM_A_TOOL = {
    "as it is": ("{'spent': 54220}", "54220 were spent.", "54,220 USD"),
    "a share": ("0.0844", "That is 8.44 percent.", "8.4 percent"),
    "rounded": ("{'spent': 54220.37}", "About 54,000.", "54,220"),
    "from the question": ("fine", "17 crates, as it says.", "fine: 17"),
    "in words in the question": ("fine", "2 days.", "fine: 2 days"),
    "a month of the question": ("fine", "That is 2026-07.", "fine in 2026-07"),
    "a step": ("fine", "In step 1 I asked.", "fine"),
    "a name with digits": ("fine", "It is B4 or v2.", "fine"),
    "what everybody has": ("fine", "1 thing of 100.", "fine"),
}


@pytest.mark.parametrize(("observation", "thought", "answer"), IN_THE_HEAD.values(), ids=IN_THE_HEAD)
def test_a_number_from_nowhere(tmp_path: Path, observation: str, thought: str, answer: str) -> None:
    question = "Did 17 crates fit for two days in July 2026?"
    text = run_of(observation, question=question, thought=thought, answer=answer)
    assert codes(tmp_path, text, "RT411") == ["RT411"]


@pytest.mark.parametrize(("observation", "thought", "answer"), FROM_A_TOOL.values(), ids=FROM_A_TOOL)
def test_a_number_with_a_source(tmp_path: Path, observation: str, thought: str, answer: str) -> None:
    question = "Did 17 crates fit for two days in July 2026?"
    text = run_of(observation, question=question, thought=thought, answer=answer)
    assert codes(tmp_path, text, "RT411") == []


def test_a_number_in_an_argument_is_looked_at_and_an_observation_counts_only_afterwards(tmp_path: Path) -> None:
    text = run_of("12").replace("ask[it]", "ask[12 * 7]")
    (tmp_path / "x.trace").write_text(text)
    found = lint([tmp_path / "x.trace"], select=["RT411"]).findings
    assert [(f.line, f.column, f.message.partition(" ")[0]) for f in found] == [(6, 13, "12"), (6, 18, "7")]


def test_a_number_is_reported_once(tmp_path: Path) -> None:
    assert codes(tmp_path, run_of("fine", thought="It is 9, 9 and 9.", answer="fine: 9"), "RT411") == ["RT411"]


GROUNDED = {
    "a word": ("Tides were named by Richard Nixon.", "Richard Nixon", []),
    "none of its words": ("Nothing about it.", "Richard Nixon", ["RT401"]),
    "a number": ("{'spent': 54220}", "54,220 USD", []),
    "another number": ("{'spent': 54220}", "54,221", ["RT401"]),
    "a name with digits": ("{'shelf': 'F1'}", "F1", []),
    "another name": ("{'shelf': 'F1'}", "F2", ["RT401"]),
    "a judgement": ("It was in 1904.", "yes", []),
    "the label of a claim": ("It was in 1904.", "NOT ENOUGH INFO", []),
}


@pytest.mark.parametrize(("observation", "answer", "expected"), GROUNDED.values(), ids=GROUNDED)
def test_an_answer_needs_a_source(tmp_path: Path, observation: str, answer: str, expected: list[str]) -> None:
    assert codes(tmp_path, run_of(observation, answer=answer), "RT4") == expected


# -- files

RUN = run_of("fine").encode()


def with_head(line: str) -> bytes:
    return RUN.replace(b"format: 1\n", f"format: 1\n{line}\n".encode())


FILES = {
    "as it should be": (RUN, []),
    "latin-1": (RUN.replace(b"fine", b"f\xefne"), ["RT101"]),
    "UTF-16": (RUN.decode().encode("utf-16"), ["RT101"]),
    "a mark and plain text": (b"\xef\xbb\xbf" + RUN, ["RT101"]),
    "two line ends of Windows": (RUN.replace(b"fine\n", b"fine\r\n"), ["RT103"]),
    "a carriage return in a line": (RUN.replace(b"fine", b"10 %\r20 %"), ["RT103"]),
    "a span for an observation that is not there": (with_head("spans: {3: 1}"), ["RT104"]),
    "a question that is longer than the file": (with_head("head: 40"), ["RT104"]),
    "spans that are no numbers": (with_head("spans: {1: x}"), ["RT106"]),
    "a question that needs no span": (with_head("head: 1"), ["RT105"]),
    "a turn that needs no span": (with_head("turns: {1: 2}"), ["RT105"]),
    "keys out of their order": (with_head("test: false\nanswer: Done"), ["RT105"]),
    "a key twice": (with_head("format: 1"), ["RT106"]),
    "a setting that there is not": (with_head("settings: {max_stepz: 3}"), ["RT106"]),
    "settings that are a list": (with_head("settings: [3]"), ["RT106"]),
    "inputs that are a list": (with_head("inputs: [3]"), ["RT106"]),
    "a code that is none": (with_head("lint: {expect: [unread]}"), ["RT106"]),
    "an input with a label": (with_head('inputs: {about: "x\\nThought: y"}'), ["RT504"]),
    "conflict markers in the head": (with_head("<<<<<<< a\ntest: false\n=======\n>>>>>>> b"), ["RT107"]),
    "no newline needed at the end": (with_head("eol: none") + b"\n", ["RT108"]),
    "a prompt that is not there": (with_head("prompt: prompts/none.j2"), ["RT301"]),
}


@pytest.mark.parametrize(("data", "expected"), FILES.values(), ids=FILES)
def test_files(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    (tmp_path / "x.trace").write_bytes(data)
    report = lint([tmp_path], ignore=["RT401"])
    assert ([found.rule.code for found in report.findings], report.unusable) == (expected, ())


# -- turns

TURN = """\
---
format: 1
---
Question: Is it so, or more of old?
Thought: a
Action: ask[it]
Observation: it is so
Thought: b
Action: finish[so]
"""
AGAIN = "Action: ask[it]\nObservation: it is so\nAction: finish[so]"
TURNS = {
    "as it should be": ([], []),
    "no turn at all": ([(TURN[TURN.index("Thought") :], "")], ["RT201"]),
    "an action in another form": ([("ask[it]", "ask(it)")], ["RT201"]),
    "an action in another form, answered": (
        [("ask[it]\nObservation: it is so", "ask(it)\nObservation: Error: arguments stand in square brackets, not in "
          "parentheses. Write:\nAction: ask[it]"), ("format: 1\n", "format: 1\nspans: {1: 2}\n")], [],
    ),
    "text behind the action": ([("ask[it]", "ask[it] and wait")], ["RT202"]),
    "a second action": ([("ask[it]", "ask[it]\nAction: ask[more]")], ["RT202"]),
    "a second turn without an observation": ([("ask[it]", "ask[it]\nThought: c\nAction: ask[more]")], ["RT203"]),
    "no observation at the end": ([("Action: finish[so]", "Action: ask[more]")], ["RT203"]),
    "an empty observation": ([("Observation: it is so", "Observation:")], ["RT203"]),
    "no finish among the tools": (
        [("Action: finish[so]", "Action: ask[more]"), ("format: 1\n", "format: 1\ntools: [ask]\n")], [],
    ),
    "an observation of finish": ([("finish[so]", "finish[so]\nObservation: done")], ["RT204"]),
    "a turn after finish": ([("finish[so]", "finish[so]\nThought: c\nAction: ask[more]")], ["RT204"]),
    "finish without an answer": ([("finish[so]", "finish[]")], ["RT302"]),
    "a misspelt thought": ([("Thought: b", "Thoght: b")], ["RT205"]),
    "a first turn in small letters": (
        [("Thought: a\nAction: ask[it]\nObs", "thought: a\naction: ask[it]\nObs")],
        ["RT205", "RT205"],
    ),
    "a bold thought": ([("Thought: b", "**Thought:** b")], ["RT205"]),
    "a misspelt action": ([("Action: ask", "Acton: x\nAction: ask")], ["RT205"]),
    "an indented action": ([("Action: ask", "  Action: ask")], ["RT205"]),
    "an action without its colon": ([("Action: ask[it]", "Action ask[it]\nAction: ask[it]")], ["RT205"]),
    "a number in plain labels": ([("Action: ask", "Action 1: ask")], ["RT205"]),
    "a word that is near a label, in prose": ([("Thought: a", "Thought: a\nThoughtful as ever: b")], []),
    "a label in what a tool returned": ([("it is so", "it is so\n **Thought:** x")], ["RT412"]),
    "a bracket too many": ([("ask[it]", "ask[it]]")], ["RT303"]),
    "a bracket too few": ([("ask[it]", "ask[a [it]")], ["RT303"]),
    "brackets in pairs": ([("ask[it]", "ask[a [it]]")], []),
    "a tool that is not declared": ([("format: 1\n", "format: 1\ntools: [look, finish]\n")], ["RT301"]),
    "the same call again": ([("Action: finish[so]", AGAIN)], ["RT403"]),
    "several lines of arguments": ([("ask[it]", "ask[it\nAction of old]")], []),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), TURNS.values(), ids=TURNS)
def test_turns(tmp_path: Path, changes: list[tuple[str, str]], expected: list[str]) -> None:
    text = TURN
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert codes(tmp_path, text) == expected


def test_traces_of_text_games_are_looked_at_as_files_only(tmp_path: Path) -> None:
    text = "---\nformat: 1\nlabels: arrow\n---\nYou are in a room.\n> think: where?\nOK.\n> go north\nA wall.\n"
    assert Trace.load(text.encode()).steps
    assert codes(tmp_path, text) == []
    assert codes(tmp_path, text.replace("arrow\n", "arrow\nspans: {1: 1}\n")) == ["RT105"]


# -- prompts

BASE = '{% extends "react.j2" %}\n'
OWN = "{{ trace_begins }}{{ question }}\n%s{{ cue }}\n"


def prompt(*keys: str, rules: str = "", template: str = BASE) -> str:
    """A prompt file with these keys in its front matter and these lines among its rules."""
    block = f"{{% block rules %}}{{{{ super() }}}}\n{rules}\n{{%- endblock %}}\n" if rules else ""
    return "\n".join(["---", "question: What is it?", "tools: shelf.py", *keys, "---", template + block])


def server(kind: str) -> str:
    return f"[react_text]\nmodel = {kind}+http://127.0.0.1:9\n"


CUE_AND_MORE = BASE + "{% block cue %}{{ cue }} I{% endblock %}\n"
PROMPTS = {
    "as it should be": ({"p.j2": prompt()}, []),
    "a tool to allow that is not there": ({"p.j2": prompt("allow: [shelf, shell]")}, ["RT301"]),
    "tools that cannot be loaded": ({"p.j2": prompt(), "shelf.py": "import nowhere\n"}, ["RT301"]),
    "a misspelt setting": ({"p.j2": prompt("limits: {max_step: 3}")}, ["RT106"]),
    "a code that is none": ({"p.j2": prompt("lint: {ignore: [E501]}")}, ["RT106"]),
    "an unknown lint key": ({"p.j2": prompt("lint: {skip: [RT4]}")}, ["RT106"]),
    "conflict markers": ({"p.j2": prompt() + "<<<<<<< a\n=======\n>>>>>>> b\n"}, ["RT107"]),
    "conflict markers in the head": ({"p.j2": prompt("<<<<<<< a", "=======", ">>>>>>> b")}, ["RT107"]),
    "a partial that is there": ({"p.j2": prompt(rules='{% include "_x.j2" %}'), "_x.j2": "- x"}, []),
    "a partial that may be missing": ({"p.j2": prompt(rules='{% include "_x.j2" ignore missing %}')}, []),
    "one of two partials": ({"p.j2": prompt(rules='{% include ["_y.j2", "_x.j2"] %}'), "_x.j2": "- x"}, []),
    "neither of two partials": ({"p.j2": prompt(rules='{% include ["_y.j2", "_x.j2"] %}')}, ["RT507"]),
    "a circle": ({"p.j2": prompt(rules='{% include "_x.j2" %}'), "_x.j2": '{% include "p.j2" %}'}, ["RT507"]),
    "undefined in a partial": ({"p.j2": prompt(rules='{% include "_x.j2" %}'), "_x.j2": "{{ y }}"}, ["RT501"]),
    "a parenthesis in the instructions": ({"p.j2": prompt(rules="- Write `Action: shelf(3)`.")}, ["RT602"]),
    "another protocol": ({"p.j2": prompt(rules="\nAction Input: 3\nFinal Answer: x")}, ["RT602", "RT602"]),
    "bold labels, which the parser reads": ({"p.j2": prompt(rules="\n**Action:** shelf[3]")}, []),
    "text behind the cue": ({"p.j2": prompt(template=CUE_AND_MORE)}, ["RT505"]),
    "the transcript in other letters": ({"p.j2": prompt(template=OWN % "{{ transcript | lower }}")}, []),
    "the end of the transcript only": ({"p.j2": prompt(template=OWN % "{{ transcript[-40:] }}")}, ["RT509"]),
    "a server without grammars": ({"p.j2": prompt("constrain: auto"), "setup.cfg": server("chat")}, ["RT603"]),
    "a server with grammars": ({"p.j2": prompt("constrain: auto"), "setup.cfg": server("vllm")}, []),
    "a server without lazy ones": ({"p.j2": prompt("constrain: lazy"), "setup.cfg": server("vllm")}, ["RT603"]),
    "a server with lazy ones": ({"p.j2": prompt("constrain: lazy"), "setup.cfg": server("llamacpp")}, []),
    "a server that has to be asked": ({"p.j2": prompt("constrain: auto"), "setup.cfg": server("openai")}, []),
    "no server": ({"p.j2": prompt("constrain: auto"), "setup.cfg": ""}, []),
    "a stop string too many": ({"p.j2": prompt('stop: ["\\nA", "\\nB", "\\nC"]')}, ["RT604"]),
}


@pytest.mark.parametrize(("files", "expected"), PROMPTS.values(), ids=PROMPTS)
def test_prompts(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    for name, text in {"shelf.py": (FOLDER / "shelf.py").read_text("utf-8"), **files}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = lint([tmp_path])
    assert ([found.rule.code for found in report.findings], report.unusable) == (expected, ())


def test_a_golden_whose_question_is_an_example_is_a_leak(tmp_path: Path) -> None:
    for name in ("shelf.py", "few_run.trace", "few_total.trace"):
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    (tmp_path / "p.j2").write_text(prompt('examples: "few_*.trace"'))
    golden = (tmp_path / "few_run.trace").read_text().replace("tests/lint/shelf.j2", "p.j2")
    (tmp_path / "golden.trace").write_text(golden)
    assert [found.rule.code for found in lint([tmp_path / "golden.trace"]).findings] == ["RT407"]
    (tmp_path / "p.j2").write_text(prompt('examples: "few_*.trace"', "pick: 1"))
    assert lint([tmp_path / "golden.trace"]).findings == ()


# -- suppression, and the command


@pytest.fixture
def project(tmp_path: Path) -> Project:
    names = ("shelf.py", "few_run.trace", "few_total.trace", "few_missing.trace", "few_wrong.trace")
    files = {f"prompts/{name}": (FOLDER / name).read_text("utf-8") for name in names}
    files = {name: text.replace("tests/lint/shelf.j2", "prompts/p.j2") for name, text in files.items()}
    head = "question: What?\ntools: shelf.py\nexamples: few_*.trace"
    files["prompts/p.j2"] = f'---\n{head}\n---\n{{% extends "react.j2" %}}\n'
    files["traces/x.trace"] = run_of("{'n': 3, 'note': 'without spares'}", thought="It is 3 of 4.", answer="3 of 4")
    return Project(tmp_path, {"setup.cfg": "", **files})


def test_findings_are_printed_with_their_help(project: Project) -> None:
    ran = project.run("lint")
    assert ran.code == 1
    assert ran.out.split("\n")[:4] == [
        "prompts/few_wrong.trace:7:9: RT601 a grammar made from the tools of p.j2 rejects this action",
        "    help: write the action as the tool's usage line says",
        "prompts/few_wrong.trace:7:15: RT302 number must be int (a whole number), not 'number 204'; usage: "
        "shelf[number: int]",
        "    help: write them as the usage line says, or let the engine's answer to the mistake follow",
    ]
    assert "traces/x.trace:7:23: RT410 no later thought or answer mentions this note: 'without spares'\n" in ran.out
    assert ran.err == "# 6 files: 2 errors, 2 warnings\n"


def test_warnings_fail_when_strict(project: Project) -> None:
    assert project.run("lint traces").code == 0
    assert project.run("lint traces --strict").code == 1


def test_a_clean_folder(project: Project) -> None:
    ran = project.run("lint prompts/few_run.trace --strict")
    assert (ran.code, ran.out, ran.err) == (0, "", "# 1 file: nothing found\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--select RT4", ["RT410", "RT411"]),
        ("--select RT410,RT6", ["RT410", "RT601"]),
        ("--select RT410 --select RT302", ["RT302", "RT410"]),
        ("--ignore RT4", ["RT302", "RT601"]),
        ("--select RT4 --ignore RT411", ["RT410"]),
    ],
)
def test_rules_can_be_chosen(project: Project, options: str, expected: list[str]) -> None:
    found = json.loads(project.run(f"lint --format json {options}").out)
    assert sorted(each["code"] for each in found) == expected


def test_json(project: Project) -> None:
    found = json.loads(project.run("lint traces --format json --select RT410").out)
    assert found == [
        {
            "path": "traces/x.trace",
            "line": 7,
            "column": 23,
            "code": "RT410",
            "severity": "warning",
            "message": "no later thought or answer mentions this note: 'without spares'",
            "help": "let a thought say what it means for the result, and act on it",
        }
    ]


def test_github(project: Project) -> None:
    project.edit("traces/x.trace", "'without spares'", "'100% without: a, b'")
    assert project.run("lint traces --format github --select RT410").out == (
        "::warning file=traces/x.trace,line=7,col=23,title=RT410::no later thought or answer mentions this note: "
        "'100%25 without: a, b'\n"
    )


def test_a_file_can_ignore_rules(project: Project) -> None:
    project.edit("traces/x.trace", "format: 1\n", "format: 1\nlint: {ignore: [RT411]}\n")
    project.edit("prompts/few_wrong.trace", "p.j2\n", "p.j2\nlint: {ignore: RT302}\n")
    project.edit("prompts/p.j2", "question", "lint: {ignore: [RT6]}\nquestion")
    assert [each["code"] for each in json.loads(project.run("lint --format json").out)] == ["RT410"]
    every = [each["code"] for each in json.loads(project.run("lint --format json --all").out)]
    assert sorted(every) == ["RT302", "RT410", "RT411", "RT601"]


def test_an_example_can_ignore_what_its_prompt_finds_in_it(project: Project) -> None:
    project.edit("prompts/few_wrong.trace", "p.j2\n", "p.j2\nlint: {ignore: [RT601]}\n")
    assert "RT601" not in project.run("lint prompts/p.j2").out


def test_a_file_can_promise_to_break_a_rule(project: Project) -> None:
    project.edit("traces/x.trace", "format: 1\n", "format: 1\nlint: {expect: [RT410, RT411]}\n")
    assert project.run("lint traces").code == 0
    project.edit("traces/x.trace", "It is 3 of 4.", "It is 3 of 4 without the spares.")
    ran = project.run("lint traces")
    assert (ran.code, ran.out.split("\n")[0]) == (
        1, "traces/x.trace:3:1: RT109 RT410 is expected here, and nothing was found",
    )  # fmt: skip
    assert project.run("lint traces --select RT411,RT109").code == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("lint nowhere", "nowhere: no such file"),
        ("lint trace", "trace: no such file (did you mean traces?)"),
        ("lint setup.cfg", "setup.cfg: lint reads traces (.trace) and prompts (.j2)"),
        ("lint --select RT9", "no rule begins with 'RT9'"),
        ("lint --ignore E501", "no rule begins with 'E501'"),
    ],
)
def test_wrong_calls(project: Project, command: str, message: str) -> None:
    ran = project.run(command)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


NO_END = "traces/x.trace:1: the front matter has no closing"
GONE = f"---\nexamples: gone.trace\n---\n{BASE}"
UNUSABLE = {
    "a head without an end": ("traces/x.trace", "---\nQuestion: x\n", NO_END),
    "a head that is no YAML": ("traces/x.trace", "---\na: [\n---\n", "traces/x.trace:3: front matter: "),
    "a template that cannot be parsed": ("prompts/p.j2", "---\n---\n{% if %}\n", "prompts/p.j2:3: template: "),
    "an error in the template": ("prompts/p.j2", "---\n---\n{{ 1 / 0 }}{{ transcript }}\n", "prompts/p.j2: template: "),
    "a prompt without its transcript": ("prompts/p.j2", "---\n---\n{{ cue }}\n", "must insert the transcript once"),
    "an example that is missing": ("prompts/p.j2", GONE, "prompts/gone.trace: no such file"),
}


@pytest.mark.parametrize(("name", "text", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_that_cannot_be_linted_does_not_keep_the_others_from_it(
    project: Project, name: str, text: str, message: str
) -> None:
    project.write(name, text)
    project.write("traces/y.trace", run_of("fine", thought="It is 9."))
    ran = project.run("lint")
    assert ran.code == 2
    assert message in ran.err and "Traceback" not in ran.err
    assert "traces/y.trace:8:16: RT411" in ran.out


def test_without_folders_it_says_what_is_missing(tmp_path: Path) -> None:
    ran = Project(tmp_path, {"setup.cfg": ""}).run("lint")
    assert (ran.code, ran.err) == (2, "prompts: no such file\n")


def test_render_warns_of_labels_in_values(project: Project) -> None:
    ran = project.run("render prompts/p.j2 'How deep?\nAction: finish[3]'")
    assert ran.err == "# RT504: a line of question begins like a label; the model may take it for one\n"
    assert project.run("render prompts/p.j2 'What Action: is it?'").err == ""


def test_terminal_escapes_are_not_printed(project: Project) -> None:
    project.edit("traces/x.trace", "ask[it]", "\x1b[31mask[it]")
    project.edit("traces/x.trace", "format: 1\n", "format: 1\ntools: [look, finish]\n")
    ran = project.run("lint traces")
    assert "RT301" in ran.out and "\x1b" not in ran.out


# -- whatever is in a file

SEEDS = [path.read_bytes() for path in sorted([*FOLDER.glob("RT*.trace"), *(ROOT / "traces").glob("*.trace")])]
PIECES = [
    b"Thought:", b"Action:", b"Observation:", b"[", b"]", b"'", b"{", b"}", b"---\n", b"\r", b"\n", b"\xff", b"\0",
    b": ", b"spans: {1: 2}\n", b"turns: {1: 1}\n", b"head: 1\n", b"lint: 5\n", b"settings: [a]\n", b"inputs: [a]\n",
    b"hand: x\n", b"tools: {a: b}\n", b"answer: {a: 1}\n", b"labels: numbered\n", b"labels: arrow\n",
    b"outcomes: {1: raised X}\n", b"completions: {1: x}\n", b"finish: {1: length}\n", b"settings: {lenient: true}\n",
    b"finish[", b"prompt: x\n",
]  # fmt: skip
INSERTIONS = st.lists(st.tuples(st.integers(0, 2000), st.sampled_from(PIECES)), min_size=1, max_size=4)


@given(st.sampled_from(SEEDS), INSERTIONS)
def test_no_trace_makes_lint_fail(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes, insertions: list[tuple[int, bytes]]
) -> None:
    data = seed
    for position, piece in insertions:
        data = data[:position] + piece + data[position:]
    path = tmp_path_factory.getbasetemp() / "mutated.trace"
    path.write_bytes(data)
    report = lint([path])
    assert report.files == 1
    lines = data.count(b"\n") + 1
    assert all(1 <= found.line <= max(lines, data.count(b"\r") + 1) for found in report.findings)
    assert all(isinstance(error, AuthorError) and error.path == str(path) for error in report.unusable)
