"""Data sets: loading, scoring, and that every shipped task can be solved with the shipped tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from react_text import Agent, AuthorError, ScriptedModel
from react_text.evaluate import Task, evaluate, load_tasks, summary, wanted

DATA = sorted((Path(__file__).parent / "tasks").glob("*.yaml"))
TASKS = [task for path in DATA for task in load_tasks(path)]
YES_OR_NO = ("closed-berth", "not-for-loan", "enough-in-stock", "sold-out")

GOOD = "prompt: p.j2\ntasks:\n- {id: a, question: How, answer: '4'}\n"


def test_the_data_set_is_large_and_halved() -> None:
    assert len(TASKS) == 36
    assert len(list(wanted(TASKS, "dev"))) == len(list(wanted(TASKS, "held"))) == 18
    assert {task.hops for task in TASKS} == {1, 2, 3}
    assert len({task.id for task in TASKS}) == 36


def test_no_task_shares_its_question_with_a_few_shot() -> None:
    for task in TASKS:
        agent = Agent(task.prompt, model=ScriptedModel([]))
        assert task.question not in agent.steps(task.question).prompt.head


@pytest.mark.parametrize("task", [task for task in TASKS if task.id in YES_OR_NO], ids=lambda task: task.id)
def test_a_lookup_that_found_nothing_is_no_answer_to_a_yes_or_no_question(task: Task) -> None:
    for answer in ("There is no ship called C1.", "no book called Keeper", "An anchor is not sold here.", "Yes."):
        assert not task.answer.search(answer)
    assert task.answer.search("No, not today.")


def test_a_solved_and_a_missed_task_are_counted() -> None:
    tasks = [task for task in TASKS if task.id in ("berth-of-a-ship", "length-of-a-ship")]
    model = ScriptedModel([" x\nAction: find_ship[Kestrel]", " y\nAction: finish[It lies at B4.]"])
    figures = summary(evaluate(tasks, model))
    assert (figures["tasks"], figures["solved"], figures["steps_per_solved"]) == (2, 1, 4.0)
    assert figures["by_hops"] == {1: "1 of 2"}


def test_an_answer_that_is_not_finished_counts_for_nothing() -> None:
    task = next(task for task in TASKS if task.id == "berth-of-a-ship")
    scores = evaluate([task], ScriptedModel([" It lies at B4."] * 8))
    assert not scores[0].solved


def test_a_task_sets_variables_of_its_prompt(tmp_path: Path) -> None:
    (tmp_path / "p.j2").write_text('---\ninputs: {port: none}\n---\n{% extends "react.j2" %}')
    (tmp_path / "tasks.yaml").write_text(GOOD.replace("id: a", "id: a, variables: {port: Skerry}"))
    (score,) = evaluate(load_tasks(tmp_path / "tasks.yaml"), ScriptedModel([" x\nAction: finish[4]"]))
    assert score.solved and score.result.trace.meta["inputs"] == {"port": "Skerry"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [", ":1: not YAML"),
        ("[" * 3000, "not YAML: nested too deeply"),
        ("tasks: []", "needs `prompt:`"),
        (GOOD.replace("answer", "anwser"), "needs id, question and answer"),
        (GOOD.replace("'4'", "'('"), "no regular expression"),
        (GOOD.replace("id: a", "id: a, hop: 2"), "did you mean hops?"),
        (GOOD.replace("id: a", "id: a, variables: port"), "variables must be a mapping"),
    ],
)
def test_a_wrong_data_set_is_an_author_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    with pytest.raises(AuthorError) as error:
        load_tasks(path)
    assert message in str(error.value) and str(path) in str(error.value)
