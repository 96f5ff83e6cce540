"""What a run leaves behind: its steps, its answer, and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .labels import Labels
from .models.base import Usage
from .trace import Trace


@dataclass(frozen=True)
class Step:
    """One turn of the model and what came of it.

    `text` is the turn as the transcript holds it, `completion` what the model really wrote; `tool` and `arguments` are
    None when no action could be read; `observation` is None after finish. `error` names the mistake (`bad_arguments`,
    `no_action`, ...) or is "". `outcome` tells what a tool did when it gave no result: `empty`, `raised TYPE: TEXT`,
    `timeout SECONDS`, or `nothing RESULT` where the prompt has a policy for empty results. `lossy` says that `text`
    alone would be read as another turn than `completion` was. Times are in seconds.
    """

    number: int
    text: str
    thought: str
    tool: str | None
    arguments: str | None
    observation: str | None
    error: str = ""
    outcome: str = ""
    args_hash: str | None = None
    completion: str = ""
    finish: str = "stop"
    lossy: bool = False
    usage: Usage = field(default_factory=Usage)
    model_seconds: float = 0.0
    tool_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.error

    @property
    def came_to(self) -> str:
        """The `outcome` as traces record it: also `mistake KIND` where the engine itself has worded the observation."""
        return self.outcome or (f"mistake {self.error}" if self.error else "")


@dataclass(frozen=True)
class Result:
    """What a run came to. `answer` is None unless the model finished; `values` are its fields where the prompt says in
    `answer:` what it consists of; `notes` are what the model wrote on its scratchpad; `message` explains a stop reason
    to people; `ungrounded` are numbers of the answer without a source, where the prompt asks for them (`grounding`)."""

    answer: str | None
    stop_reason: str
    steps: tuple[Step, ...]
    trace: Trace
    usage: Usage
    message: str = ""
    cost: float = 0.0
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    ungrounded: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.stop_reason == "success"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run: the run is closed as `interrupted`, and its result is on the exception."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


def trace_of(
    task: str,
    steps: Sequence[Step],
    labels: Labels,
    facts: Mapping[str, Any],
    answer: str | None = None,
    stop_reason: str = "",
) -> Trace:
    """A run as a trace. `facts` is the front matter that was known before its first step."""
    meta = {
        **facts,
        "answer": answer,
        "stop_reason": stop_reason or None,
        "completions": {step.number: step.completion for step in steps if step.lossy} or None,
        "finish": {step.number: step.finish for step in steps if step.finish not in ("stop", "cut")} or None,
        "outcomes": {step.number: step.came_to for step in steps if step.came_to} or None,
    }
    return Trace.record(task, [(step.text, step.observation) for step in steps], labels, meta)


def explain(stop_reason: str, stops: Sequence[str] = ()) -> str:
    """A stop reason in a sentence for people; "" for a success. `stops` are the stop strings that were in force."""
    kind, _, name = stop_reason.partition(":")
    if stop_reason == "invalid_action:empty":
        listed = ", ".join(map(repr, stops))
        return f"the model gave only empty completions; it may begin its turns with a stop string ({listed})"
    if stop_reason == "invalid_action:repeated":
        return "too many turns in a row were mistakes; their observations say what was wrong"
    if kind in ("tool_denied", "tool_missing", "tool_bad_args", "tool_error", "empty_result", "invalid_action"):
        return f"{_SENTENCES[kind]}: {name}"
    return _SENTENCES.get(kind, "")


_SENTENCES = {
    "max_steps": "the model did not finish within its steps",
    "max_tool_calls": "all tool calls were used up",
    "max_seconds": "the time for the run was over",
    "max_tokens": "the tokens for the run were used up",
    "max_cost": "the money for the run was used up",
    "loop_detected": "the model kept making the same call",
    "tool_denied": "the model called a tool that the prompt does not allow",
    "tool_missing": "the model called a tool that does not exist",
    "tool_bad_args": "the model gave arguments that do not fit",
    "tool_error": "a tool failed",
    "empty_result": "a tool found nothing, twice",
    "invalid_action": "the model wrote no action that can be read",
    "interrupted": "the run was interrupted",
}
