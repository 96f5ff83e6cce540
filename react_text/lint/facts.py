"""The rules about what a trace says: where its numbers, names and answers come from, and what was not read (RT4xx)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..labels import label_line
from ..numbers import Known, Number, find_numbers, number_words
from .caveats import Caveat, Later, find_caveats
from .context import Found, TraceFile
from .turns import misspelt_label
from .views import View
from .words import content_words, count_words

# Answers that are a judgement: no observation has to say them.
_VERDICT = re.compile(r"(?:yes|no|true|false|maybe|unknown|supports|refutes|not enough info)\W*", re.I)
_STEP = re.compile(r"\b(?:step|turn|observation|thought|action|day)s? \Z", re.I)
# Counting and percentages bring these in without any tool.
_FREE = ("0", "1", "100")


def ungrounded_answer(file: TraceFile) -> Iterator[Found]:
    """RT401"""
    for view in file.views:
        if view.turn and view.answer is not None and not _grounded(file, view.answer):
            yield file.at(view, view.turn.action.arguments_span[0], "no observation holds anything of this answer")


def invisible_argument(file: TraceFile) -> Iterator[Found]:
    """RT402"""
    seen = content_words(_given(file))
    for view in file.views:
        if view.turn and not view.finishes and not view.notice and view.verdict is None:
            arguments = view.turn.action.arguments
            words = content_words(arguments)
            if words and not find_numbers(arguments) and not words & seen:
                at = view.turn.action.arguments_span[0]
                yield file.at(view, at, f"nothing before this turn leads to {arguments!r}")
        seen |= content_words(view.step.observation or "")


def repeated_action(file: TraceFile) -> Iterator[Found]:
    """RT403"""
    for view in file.views:
        if view.turn and view.verdict and view.verdict.message == "repeat":
            at = view.turn.action.tool_span[0]
            yield file.at(view, at, f"the same call as in step {view.verdict.fields['step']}")


def large_observation(file: TraceFile) -> Iterator[Found]:
    """RT408"""
    for view in file.views:
        length = len(view.step.observation or "")
        if length * 2 > len(file.trace.body):
            line = file.trace.line_of(view.number, observation=True)
            yield Found(line, 1, f"{length} of {len(file.trace.body)} characters are this observation")


def by_hand(file: TraceFile) -> Iterator[Found]:
    """RT409"""
    marked = file.trace.meta.get("hand") or []
    for view in file.views:
        if str(view.number) in map(str, marked if isinstance(marked, list) else [marked]):
            yield Found(file.trace.line_of(view.number, observation=True), 1, "no tool has given this observation")


def unread_caveat(file: TraceFile) -> Iterator[Found]:
    """RT410"""
    said = count_words(file.trace.task)
    for view in file.views:
        observation = view.step.observation or ""
        said += count_words(view.step.text) + count_words(observation)
        # The engine's answers to a mistake are read by doing better; what a tool reports is not.
        if view.verdict is not None and view.verdict.fault != "tool_error":
            continue
        later = Later("\n".join(other.says for other in file.views[view.number :]))
        unread: dict[str, Caveat] = {}
        for caveat in find_caveats(observation):
            if caveat.kind not in unread and not later.mentions(caveat, said):
                unread[caveat.kind] = caveat  # one of each kind: a log may have thousands
        for kind, caveat in unread.items():
            message = f"no later thought or answer mentions this {kind}: {caveat.text!r}"
            yield file.at(view, caveat.start, message, observation=True)


def arithmetic_in_the_head(file: TraceFile) -> Iterator[Found]:
    """RT411"""
    known = _numbers(_given(file))
    for view in file.views:
        for number, place in _written(file, view):
            free = place != "answer" and number.text in _FREE
            step = number.text.isdigit() and _STEP.search(view.step.text[max(0, number.start - 20) : number.start])
            if not free and not step and number not in known:
                message = f"{number.text} in this {place} is in no earlier observation and not in the question"
                yield file.at(view, number.start, message)
                known.add([number])  # said once is enough
        known.add(_all(view.step.observation or ""))


def label_like(file: TraceFile) -> Iterator[Found]:
    """RT412"""
    labels = file.labels
    label = label_line(labels.thought, labels.action, labels.observation, labels.question)
    meant = {found.line for found in misspelt_label(file)}
    for view in file.views:
        if view.notice or view.verdict is not None:
            continue
        if match := label.search(view.step.observation or ""):
            message = f"this line of tool output begins like the label {match['word']}"
            found = file.at(view, match.start("word"), message, observation=True)
            if found.line not in meant:
                yield found


# -- what a trace is given, and what it says


def _given(file: TraceFile) -> str:
    """What is known before the first turn: the question, the rules and tools of the prompt, and its variables."""
    shown = file.trace.meta.get("inputs") or ""
    return f"{file.prompt.instructions if file.prompt else ''}\n{shown}\n{file.trace.task}"


def _grounded(file: TraceFile, answer: str) -> bool:
    """Whether an observation holds a number or a word of the answer that the question does not."""
    without_tools = file.prompt is not None and file.prompt.tools is not None and not file.prompt.tools
    if without_tools or _VERDICT.fullmatch(answer.strip()):
        return True
    observations = "\n".join(view.step.observation or "" for view in file.views)
    words = content_words(answer)
    fresh = words - content_words(file.trace.task) or words
    numbers = find_numbers(answer)
    if not fresh and not numbers:
        return True
    known = _numbers(observations)
    return bool(fresh & content_words(observations)) or any(number in known for number in numbers)


def _written(file: TraceFile, view: View) -> Iterator[tuple[Number, str]]:
    """The numbers that a turn says, with the kind of place. Those of an answer of which nothing is grounded belong to
    RT401."""
    if view.turn is None:
        return
    for span, place in (
        (view.turn.thought_span, "thought"),
        (view.turn.action.arguments_span, "answer" if view.finishes else "argument"),
    ):
        if place == "argument" and (view.notice or view.verdict is not None):
            continue  # a mistake that is shown, and answered
        if view.answer is not None and place == "answer" and not _grounded(file, view.answer):
            continue
        for number in find_numbers(view.step.text[slice(*span)]):
            yield Number(number.text, number.start + span[0], number.end + span[0], number.readings), place


def _numbers(text: str) -> Known:
    return Known(_all(text))


def _all(text: str) -> list[Number]:
    return [*find_numbers(text), *number_words(text)]
