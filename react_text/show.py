"""A trace -> what a person wants to see of it: the transcript in colour, and the exact prompt of any of its turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .diff import visible
from .display import printable, styled
from .errors import AuthorError
from .labels import ARROW, Labels, label_line
from .loop import Run
from .models.base import PromptText
from .models.scripted import ScriptedModel
from .prompt import Prompt
from .resume import Resumption
from .trace import Trace


def transcript(trace: Trace, step: int | None = None, *, colour: bool = False) -> str:
    """The body of a trace, or one of its steps, for a terminal: the lines as they stand in the file, but for control
    characters. Raises AuthorError."""
    shown = [printable(trace.task)] if step is None else []
    for number in range(1, len(trace.steps) + 1) if step is None else [step]:
        lines = step_of(trace, number)
        text = trace.steps[number - 1].text
        turn, observation = printable(text), printable(lines[len(text) + 1 :])
        if colour:
            turn = _with_labels(turn, trace.labels)
            observation = _coloured(observation, trace, number)
        shown += [turn, lines[len(text) : len(text) + 1], observation]
    return "".join(shown)


def step_of(trace: Trace, number: int) -> str:
    """The lines of one step, exactly. Raises AuthorError."""
    if not 1 <= number <= len(trace.steps):
        raise AuthorError(f"there is no step {number}: this trace has {len(trace.steps)}", path=trace.path)
    return trace.before(number + 1)[len(trace.before(number)) :]


def prompts(path: str | Path, prompt: Prompt | None = None) -> Iterator[PromptText]:
    """The exact prompt of each turn of a trace, and of the one that would come next, if one would. `prompt` stands in
    for the one that the trace names. Raises AuthorError."""
    run = _past_run(path, prompt)
    steps, labels = iter(run), run.labels
    for number in range(1, len(run.past) + 2):
        if run.stop_reason or run.gateway.spent_budget(len(run.steps), run.usage):
            return
        remaining = run.gateway.remaining(number - 1)
        cue = labels.cue(labels.thought, number, run.prompt.prefill)
        yield run.prompt.text(run.context.transcript, cue, step=number, remaining=remaining, notes=run.notes)
        if number <= len(run.past):
            next(steps, None)


def prompt_of(path: str | Path, number: int, prompt: Prompt | None = None) -> PromptText:
    """The exact prompt of one turn of a trace. Raises AuthorError."""
    count = 0
    for count, text in enumerate(prompts(path, prompt), 1):
        if count == number:
            return text
    raise AuthorError(f"there is no turn {number}: with this prompt, the trace has {count}", path=path)


def head_of(path: str | Path, prompt: Prompt | None = None) -> str:
    """What the prompt of a trace says before the question. Raises AuthorError."""
    return _past_run(path, prompt).prompt.head


def _past_run(path: str | Path, prompt: Prompt | None) -> Run:
    """The run of a trace, to be made again from the file up to its first step without an observation: going on from
    there would run a tool. Raises AuthorError."""
    resumption = Resumption(path, step=1)
    if prompt is not None:
        resumption.case.prompt = prompt  # in place of the one that it would load
    elif not resumption.trace.meta.get("prompt"):
        raise AuthorError("it names no prompt to put before it: add `prompt: FILE`, or give one", path=path)
    trace, agent = resumption.trace, resumption.agent(ScriptedModel(()))
    inputs = trace.meta.get("inputs") or {}
    complete = next((n for n, step in enumerate(trace.steps) if step.observation is None), len(trace.steps))
    question = resumption.case.question(agent, inputs)
    return agent.steps(question, variables=inputs, past=trace.steps[:complete])


def with_marks(text: str) -> str:
    """A text as it can be looked at: blanks and tabs at the ends of lines are marked, and where the text ends."""
    return "\n".join(map(visible, text.split("\n"))) + "␄\n"


def _coloured(observation: str, trace: Trace, number: int) -> str:
    label = trace.labels.cue(trace.labels.observation, number) if trace.labels != ARROW else ""
    result = observation.removeprefix(label).removesuffix("\n")
    refused = trace.steps[number - 1].outcome not in ("", "empty")
    end = "\n" if observation.endswith("\n") else ""
    shown = styled(result, "error" if refused else "observation") if result else ""
    return (styled(label, "label") if label and observation else "") + shown + end


def _with_labels(turn: str, labels: Labels) -> str:
    if labels == ARROW:
        return styled(turn[:1], "label") + turn[1:]
    return label_line(labels.thought, labels.action).sub(lambda found: styled(found[0], "label"), turn)
