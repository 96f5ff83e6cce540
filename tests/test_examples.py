"""Few-shot choice: globs, the most similar questions, and never the question itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Agent, AuthorError, Prompt, ScriptedModel
from react_text.evaluate import evaluate, load_tasks
from react_text.examples import choose, question_of, same_question
from react_text.labels import NUMBERED, PLAIN, Labels
from react_text.models import as_model

from .harbour import Writer
from .project import Project

QUESTIONS = {
    "fee": "What does berth C2 cost per day?",
    "depth": "How deep is berth A1?",
    "flag": "Under which flag does the Curlew sail?",
    "length": "How long is the Heron, in metres?",
    "days": "What do three days at berth B4 cost?",
}
HARBOUR = """\
def berth(name: str) -> str:
    \"\"\"A berth.\"\"\"
    return name
"""


def body(question: str) -> str:
    return f"Question: {question}\nThought: I know.\nAction: finish[{len(question)}]\n"


def prompt(examples: str, *keys: str) -> str:
    head = "\n".join(
        ["question: What do four days at berth C2 cost?", "tools: tools.py", f"examples: {examples}", *keys]
    )
    return f'---\n{head}\n---\n{{% extends "react.j2" %}}\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    files = {f"few/{name}.trace": f"---\nformat: 1\n---\n{body(text)}" for name, text in QUESTIONS.items()}
    return Project(tmp_path, {"setup.cfg": "", "tools.py": HARBOUR, "p.j2": prompt("few/*.trace", "pick: 2"), **files})


def shown(project: Project, *question: str) -> list[str]:
    """The questions in the rendered prompt, the asked one left out."""
    ran = project.run(" ".join(["render", "p.j2", *(f"'{text}'" for text in question)]))
    assert ran.code == 0, ran
    return [line.removeprefix("Question: ") for line in ran.out.split("\n") if line.startswith("Question:")][:-1]


CHOICES = {
    "two words in common beat one": (QUESTIONS["fee"][:-1] + " now?", ["days", "fee"]),
    "rare words count more than common ones": ("How does the Curlew cost?", ["fee", "flag"]),
    "the most similar is the last": ("How deep is the sea at berth A1?", ["length", "depth"]),
    "of equals the first name": ("Nothing alike", ["depth", "days"]),
}


@pytest.mark.parametrize(("question", "expected"), CHOICES.values(), ids=CHOICES)
def test_the_most_similar_are_picked(project: Project, question: str, expected: list[str]) -> None:
    assert shown(project, question) == [QUESTIONS[name] for name in expected]


@pytest.mark.parametrize("question", [QUESTIONS["fee"], "  what does Berth C2 cost per day"])
def test_the_same_question_is_never_picked(project: Project, question: str) -> None:
    assert QUESTIONS["fee"] not in shown(project, question)
    project.write("p.j2", prompt("few/*.trace", "pick: 9"))
    assert sorted(shown(project, question)) == sorted(q for name, q in QUESTIONS.items() if name != "fee")


def test_render_says_which_were_picked_and_prints_the_prompt_alone(project: Project) -> None:
    ran = project.run("render p.j2")
    assert ran.err == "# examples: fee.trace, days.trace (picked from 5; the one most like the question is the last)\n"
    assert "# examples" not in ran.out and ran.out.endswith("\nThought:")


def test_render_says_so_when_nothing_can_be_picked(project: Project) -> None:
    project.write("p.j2", prompt("few/fee.trace", "pick: 1"))
    assert "# examples: none" in project.run(f"render p.j2 '{QUESTIONS['fee']}'").err


def test_without_pick_all_are_shown_in_their_order(project: Project) -> None:
    project.write("p.j2", prompt("[few/length.trace, few/d*.trace]"))
    ran = project.run("render p.j2")
    assert [QUESTIONS[name] for name in ("length", "days", "depth")] == shown(project)
    assert ran.err == ""


def test_a_glob_reaches_other_folders(project: Project) -> None:
    project.write("prompts/q.j2", prompt("../few/f*.trace").replace("tools.py", "../tools.py"))
    assert [path.name for path in Prompt.load(project.folder / "prompts/q.j2").examples] == ["fee.trace", "flag.trace"]


def test_a_run_is_shown_the_same_choice(project: Project) -> None:
    agent = Agent(project.folder / "p.j2", model=ScriptedModel([" x\nAction: finish[y]"]))
    run = agent.steps("How long is the Plover, in metres?")
    assert [path.stem for path in run.prompt.examples][-1] == "length"
    assert QUESTIONS["length"] in run.prompt.head
    assert QUESTIONS["fee"] not in run.prompt.head
    assert agent.steps("How long is the Plover, in metres?").prompt.hash == run.prompt.hash


def test_examples_given_to_an_agent_are_taken_as_they_are(project: Project) -> None:
    agent = Agent(project.folder / "p.j2", model=ScriptedModel([]), examples=[project.folder / "few/flag.trace"])
    assert QUESTIONS["flag"] in agent.steps().prompt.head


@pytest.mark.parametrize(("limit", "expected"), [(None, 2), (1, 1), (5, 2), (0, 0)])
def test_an_evaluation_can_show_fewer(project: Project, limit: int | None, expected: int) -> None:
    project.write("d.yaml", 'prompt: p.j2\ntasks: [{id: a, question: "How deep is berth B2?", answer: x}]\n')
    writer = Writer(" x\nAction: finish[y]")
    evaluate(load_tasks(project.folder / "d.yaml"), as_model(writer), examples=limit)
    assert sum(text in writer.prompts[0] for text in QUESTIONS.values()) == expected
    assert (QUESTIONS["depth"] in writer.prompts[0]) == (expected > 0)


@pytest.mark.parametrize(
    ("examples", "keys", "message"),
    [
        ("no/*.trace", ["pick: 2"], "p.j2:4: examples: no file matches 'no/*.trace'"),
        ("few/*.trace", ["pick: 0"], "p.j2:5: pick must be a whole number above 0, not 0"),
        ("few/*.trace", ["pick: some"], "p.j2:5: pick must be a whole number above 0, not 'some'"),
        ("few/*.trace", ["pick: true"], "p.j2:5: pick must be a whole number above 0, not True"),
        ("", ["pick: 2"], "p.j2:5: pick needs `examples` to pick from"),
        ("[few/fee.trace, few/gone.trace]", ["pick: 1"], "few/gone.trace: no such file"),
    ],
)
def test_mistakes_are_author_errors(project: Project, examples: str, keys: list[str], message: str) -> None:
    project.write("p.j2", prompt(examples, *keys))
    ran = project.run("render p.j2")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


SPOKEN = {
    "plain": ("Question: How deep?\nThought: x\n", PLAIN, "How deep?"),
    "numbered": ("Question: How deep?\nThought 1: x\nAction 1: finish[3]\n", NUMBERED, "How deep?"),
    "another task label": ("Claim: It is deep.\nAction: finish[x]\n", Labels(question="Claim"), "It is deep."),
    "several lines": ("Question: How deep\nis berth A1?\nAction: finish[x]\n", PLAIN, "How deep\nis berth A1?"),
    "no turn": ("Question: How deep?\n", PLAIN, "How deep?"),
}


@pytest.mark.parametrize(("text", "labels", "question"), SPOKEN.values(), ids=SPOKEN)
def test_the_question_of_a_trace(text: str, labels: Labels, question: str) -> None:
    assert question_of(text, labels) == question


def test_scripts_without_blanks_are_compared_by_character(tmp_path: Path) -> None:
    paths = []
    for name, text in {"a": "港は深いですか", "b": "船の旗は何ですか", "c": "料金はいくらですか"}.items():
        paths.append(tmp_path / f"{name}.trace")
        paths[-1].write_text(body(text), encoding="utf-8")
    assert [path.stem for path in choose("船の長さは", paths, 1, PLAIN)] == ["b"]


def test_questions_are_the_same_up_to_case_and_punctuation() -> None:
    assert same_question("How deep is it?", "how deep  is it")
    assert not same_question("How deep is it?", "Is it how deep?")


def test_a_choice_does_not_depend_on_the_order_of_the_files(project: Project) -> None:
    paths = sorted((project.folder / "few").glob("*.trace"))
    for question in [*QUESTIONS.values(), "What?"]:
        assert choose(question, paths, 3, PLAIN) == choose(question, paths[::-1], 3, PLAIN)


def test_a_trace_that_cannot_be_read_is_an_author_error(project: Project) -> None:
    with pytest.raises(AuthorError, match=r"gone\.trace: no such file"):
        choose("x", [project.folder / "few" / "gone.trace"], 1, PLAIN)
