"""Data set -> many runs -> scores: how often a model solves its tasks, and at what cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .agent import Agent
from .errors import AuthorError, did_you_mean
from .frontmatter import read_yaml
from .models.base import Model
from .result import Result

_KEYS = ("id", "question", "answer", "split", "hops", "caveat", "miss", "variables")


@dataclass(frozen=True)
class Task:
    """A question and the pattern that its answer must contain. `split` names the part of the data it belongs to,
    `variables` are those of the prompt."""

    id: str
    question: str
    answer: re.Pattern[str]
    prompt: Path
    split: str = ""
    hops: int = 1
    variables: Mapping[str, Any] = field(default_factory=dict)

    def solved_by(self, result: Result) -> bool:
        """Whether a run finished with an answer that contains the pattern."""
        return result.ok and self.answer.search(result.answer or "") is not None


@dataclass(frozen=True)
class Score:
    """One task and the run that tried it."""

    task: Task
    result: Result

    @property
    def solved(self) -> bool:
        return self.task.solved_by(self.result)

    @property
    def generated(self) -> int:
        return self.result.usage.completion_tokens or 0

    @property
    def evaluated(self) -> int:
        """Prompt tokens that the server had to read: those not in its cache."""
        return (self.result.usage.prompt_tokens or 0) - (self.result.usage.cached_tokens or 0)


def load_tasks(path: str | Path) -> list[Task]:
    """The tasks of a YAML file: `prompt:` and a list of `tasks:`. Raises AuthorError."""
    path = Path(path)
    data = read_yaml(path)
    if not isinstance(data, dict) or not isinstance(data.get("tasks"), list) or "prompt" not in data:
        raise AuthorError("a data set needs `prompt:` and a list of `tasks:`", path=path)
    return [_task(entry, path.parent / str(data["prompt"]), path) for entry in data["tasks"]]


def evaluate(
    tasks: Iterable[Task],
    model: Model,
    *,
    examples: int | None = None,
    jobs: int = 1,
    on_score: Callable[[Score], None] | None = None,
    **settings: Any,
) -> list[Score]:
    """Run every task once. `examples` shows only so many few-shots of each prompt; `settings` are those of Agent.

    Raises AuthorError before the first run.
    """
    tasks = list(tasks)
    agents = {prompt: _agent(prompt, model, examples, settings) for prompt in dict.fromkeys(t.prompt for t in tasks)}

    def run(task: Task) -> Score:
        return Score(task, agents[task.prompt].run(task.question, variables=task.variables))

    scores: list[Score] = []
    with ThreadPoolExecutor(jobs) as pool:
        for score in pool.map(run, tasks) if jobs > 1 else map(run, tasks):
            scores.append(score)
            if on_score is not None:
                on_score(score)
    return scores


def summary(scores: Sequence[Score]) -> dict[str, Any]:
    """The figures of an evaluation: tasks solved, in all and by their `hops`, and the steps and tokens of all tasks for
    each one solved."""
    solved = sum(score.solved for score in scores)
    hops: dict[int, list[bool]] = {}
    for score in scores:
        hops.setdefault(score.task.hops, []).append(score.solved)
    per = max(solved, 1)
    return {
        "tasks": len(scores),
        "solved": solved,
        "by_hops": {n: f"{sum(outcomes)} of {len(outcomes)}" for n, outcomes in sorted(hops.items())},
        "steps_per_solved": round(sum(len(score.result.steps) for score in scores) / per, 1),
        "generated_per_solved": round(sum(score.generated for score in scores) / per),
        "evaluated_per_solved": round(sum(score.evaluated for score in scores) / per),
        "stop_reasons": _counted(score.result.stop_reason for score in scores),
        "errors": _counted(step.error for score in scores for step in score.result.steps if step.error),
    }


def _agent(prompt: Path, model: Model, examples: int | None, settings: dict[str, Any]) -> Agent:
    agent = Agent(prompt, model=model, **settings)
    if examples is None:
        return agent
    if agent.prompt.pick and examples:
        return Agent(replace(agent.prompt, pick=min(examples, agent.prompt.pick)), model=model, **settings)
    return Agent(agent.prompt, model=model, examples=list(agent.prompt.examples[:examples]), **settings)


def _task(entry: Any, prompt: Path, path: Path) -> Task:
    if not isinstance(entry, dict) or not {"id", "question", "answer"} <= set(entry):
        raise AuthorError(f"a task needs id, question and answer: {entry!r}", path=path)
    for key in entry:
        if key not in _KEYS:
            raise AuthorError(f"task {entry['id']}: unknown key {key!r}{did_you_mean(str(key), _KEYS)}", path=path)
    try:
        answer = re.compile(str(entry["answer"]))
    except re.error as error:
        raise AuthorError(f"task {entry['id']}: answer is no regular expression: {error}", path=path) from None
    variables = entry.get("variables") or {}
    if not isinstance(variables, dict):
        raise AuthorError(f"task {entry['id']}: variables must be a mapping of names to values", path=path)
    question, hops = str(entry["question"]), int(entry.get("hops", 1))
    return Task(str(entry["id"]), question, answer, prompt, str(entry.get("split", "")), hops, variables)


def _counted(words: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def wanted(tasks: Iterable[Task], split: str | None) -> Iterator[Task]:
    """The tasks of one split, or all."""
    return (task for task in tasks if split is None or task.split == split)
