"""The rules about single traces: turns of the protocol, and tools (RT2xx, RT3xx)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache

from ..labels import ARROW, Labels, label_line
from ..layout import behind_cue
from ..nearmiss import FINISH
from ..parse import same_name
from ..scan import closing_bracket
from .context import Found, TraceFile
from .views import View

_WORD = re.compile(r"[ \t*_#>`-]*(?P<word>[^\W\d_]{3,20})(?: [0-9]+)?[ \t*_`]*[:：]")


def no_action(file: TraceFile) -> Iterator[Found]:
    """RT201"""
    if not file.trace.steps:
        yield Found(file.first_line, 1, "the trace has no turn")
    for view in file.views:
        if view.turn is None and not view.notice:
            kind = view.verdict.message if view.verdict else "no_action"
            yield file.at(view, 0, f"this turn holds no action that can be read ({kind})")


def second_action(file: TraceFile) -> Iterator[Found]:
    """RT202"""
    for view in file.views:
        start, rest = _behind(view)
        if view.finishes or not rest.strip() or _begins(rest, file.labels.thought):
            continue
        if _begins(rest, file.labels.action):
            yield file.at(view, start + _content(rest), "a turn has one action: this is another one")
        elif "]" not in rest.partition("\n")[0]:
            yield file.at(view, start + _content(rest), "a turn ends with its action: this text is never kept")


def no_observation(file: TraceFile) -> Iterator[Found]:
    """RT203"""
    for view in file.views:
        start, rest = _behind(view)
        if view.turn is None or same_name(view.turn.action.tool) == FINISH:
            continue
        last = view.number == len(file.views) and file.never_finishes
        if _begins(rest, file.labels.thought):
            yield file.at(view, start + _content(rest), "the observation before this turn is missing")
        elif view.step.observation is None and not last:
            yield file.at(view, view.turn.action.tool_span[0], f"no observation follows {view.turn.action.tool}")
        elif view.step.observation == "":
            yield file.at(view, 0, "the observation is empty", observation=True)


def after_finish(file: TraceFile) -> Iterator[Found]:
    """RT204"""
    for view in file.views:
        if not view.finishes:
            continue
        start, rest = _behind(view)
        if rest.strip():
            yield file.at(view, start + _content(rest), "the run is over with finish: nothing follows it")
        elif view.step.observation is not None:
            yield Found(file.trace.line_of(view.number, observation=True), 1, "finish has no observation")
        elif view.number < len(file.views):
            yield Found(file.trace.line_of(view.number + 1), 1, "the run is over with finish: this turn never came")
        return


def misspelt_label(file: TraceFile) -> Iterator[Found]:
    """RT205"""
    task = file.trace.task if file.labels != ARROW and file.trace.spans.task is None else ""
    for offset, word in _slips(task, file.labels):  # of a first turn that became a part of the question
        line = file.first_line + task.count("\n", 0, offset)
        yield Found(line, 1, f"write this label as `{word}:`, at the start of its line")
    for view in file.views:
        arguments = view.turn.action.arguments_span if view.turn else (0, 0)
        for offset, word in _slips(view.step.text, file.labels):
            if not arguments[0] <= offset < arguments[1]:
                yield file.at(view, offset, f"write this label as `{word}:`, at the start of its line")
        if not view.notice and view.number < len(file.views):
            yield from _slips_in_observation(file, view, file.views[view.number])


def numbering(file: TraceFile) -> Iterator[Found]:
    """RT206"""
    if not file.labels.numbered:
        return
    words = "|".join(map(re.escape, (file.labels.thought, file.labels.action, file.labels.observation)))
    label = re.compile(f"^(?:{words}) ([0-9]+):", re.M)
    lines = file.body.split("\n")
    for view in file.views:
        row = file.trace.line_of(view.number) - file.first_line
        observation = file.trace.line_of(view.number, observation=True) - file.first_line
        last = observation + (view.step.observation is not None)
        for index in range(row, min(last, len(lines))):
            match = label.match(lines[index])
            if match and int(match[1]) != view.number:
                message = f"this label has the number {match[1]} in turn {view.number}"
                yield Found(file.first_line + index, match.start(1) + 1, message)


def stop_inside(file: TraceFile) -> Iterator[Found]:
    """RT208"""
    for view in file.views:
        for stop in [*file.labels.stops(view.number), *file.settings.stop]:
            cue = len(view.step.text) - len(behind_cue(view.step.text, file.labels))
            at = view.step.text.find(stop, cue)
            if at >= 0:
                offset = at + (len(stop) - len(stop.lstrip("\n")))
                yield file.at(view, offset, f"the stop string {stop!r} is in this turn: no model could have written on")


def unknown_tool(file: TraceFile) -> Iterator[Found]:
    """RT301"""
    if file.trace.meta.get("prompt") and file.prompt is None:
        yield file.at_key("prompt", f"{file.trace.meta['prompt']} is not there or cannot be loaded, nor can its tools")
    for name in file.names or ():
        if file.tools is not None and file.tools.resolve(name) is None:
            yield file.at_key("tools", f"the prompt has no tool {name!r}")
    for view in file.views:
        if view.turn is None or view.notice:
            continue
        tool = view.turn.action.tool
        at = view.turn.action.tool_span[0]
        if view.verdict and view.verdict.message in ("unknown_tool", "denied_tool", "missing_tool"):
            yield file.at(view, at, f"there is no tool {tool!r} to give this observation")
        elif file.names is not None and not view.finishes and tool not in file.names and view.verdict is None:
            yield file.at(view, at, f"{tool} is not among the `tools:` of this trace")


def bad_arguments(file: TraceFile) -> Iterator[Found]:
    """RT302"""
    for view in file.views:
        if view.turn is None or view.verdict is None or view.notice:
            continue
        at = view.turn.action.arguments_span[0]
        if view.verdict.message == "bad_arguments":
            fields = view.verdict.fields
            yield file.at(view, at, f"{fields['problem']}; usage: {fields['usage']}")
        elif view.verdict.message in ("empty_answer", "placeholder_answer"):
            yield file.at(view, at, "finish holds no answer")


def ambiguous_bracket(file: TraceFile) -> Iterator[Found]:
    """RT303"""
    for view in file.views:
        if view.turn is None:
            continue
        _, rest = _behind(view)
        opening, closing = view.turn.action.arguments_span
        unbalanced = closing_bracket(view.step.text, opening - 1, closing + 1) is None
        if unbalanced or "]" in rest.partition("\n")[0]:
            yield file.at(view, closing, "brackets in these arguments do not pair up: where they end is a guess")


def old_wording(file: TraceFile) -> Iterator[Found]:
    """RT304"""
    for view in file.views:
        if file.tools is None or not view.notice or view.expected is None or view.step.observation is None:
            continue
        old, new = view.step.observation.split("\n"), view.expected.split("\n")
        if old != new:
            pairs = enumerate(zip(old, new, strict=False))
            row = next((row for row, (one, other) in pairs if one != other), min(len(old), len(new)))
            now = repr(new[row]) if row < len(new) else "nothing more"
            line, _ = file.position(view, 0, observation=True)
            yield Found(line + row, 1, f"the engine words this differently now: {now}")


def other_answer(file: TraceFile) -> Iterator[Found]:
    """RT305"""
    answer = file.trace.meta.get("answer")
    given = next((view.answer for view in file.views if view.finishes), None)
    if answer is not None and given is not None and given.strip() != str(answer).strip():
        yield file.at_key("answer", f"finish gives another answer: {given!r}")


# -- what stands in a turn


def _behind(view: View) -> tuple[int, str]:
    """What follows the action in the text of a turn: (its offset, the text)."""
    end = len(view.turn.text) if view.turn else len(view.step.text)
    return end, view.step.text[end:]


def _content(text: str) -> int:
    """The offset of the first character that is not white space."""
    return len(text) - len(text.lstrip())


def _begins(text: str, word: str) -> bool:
    """Whether the first line with something on it begins with a label."""
    return text.startswith("\n") and label_line(word).match(text.lstrip("\n")) is not None


def _slips(text: str, labels: Labels) -> Iterator[tuple[int, str]]:
    """Lines whose label is not written as it should be: (offset, the word that is meant)."""
    words = [labels.thought, labels.action, labels.observation]
    exact, tolerant, colon = _label_patterns(labels)
    offset = 0
    for line in text.split("\n"):
        found = tolerant.match(line)
        misspelt = _WORD.match(line)
        if found and not exact.match(line):
            yield offset, next(word for word in words if word.casefold() == found["word"].casefold())
        elif not found and (missing := colon.match(line)):
            yield offset, missing[1]
        elif not found and misspelt:
            known = {word.casefold(): word for word in words}
            near = difflib.get_close_matches(misspelt["word"].casefold(), list(known), n=1, cutoff=0.8)
            if near and near[0] != misspelt["word"].casefold():
                yield offset, known[near[0]]
        offset += len(line) + 1


@lru_cache(maxsize=16)
def _label_patterns(labels: Labels) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    words = (labels.thought, labels.action, labels.observation)
    number = "(?: [0-9]+)" if labels.numbered else ""
    exact = re.compile(f"(?:{'|'.join(map(re.escape, words))}){number}:")
    colon = re.compile(rf"({re.escape(labels.action)})(?: [0-9]+)?[ \t]+[\w-]+\[")
    return exact, label_line(*words), colon


def _slips_in_observation(file: TraceFile, view: View, following: View) -> Iterator[Found]:
    """A misspelt `Thought:` below an observation makes the thought a part of it. It is one when the next turn lacks its
    thought; other lines that look like labels are what the tool returned."""
    observation = view.step.observation or ""
    if following.turn is None or following.turn.thought or file.labels.thought in _first_word(following.step.text):
        return
    for offset, word in _slips(observation, file.labels):
        if word == file.labels.thought and offset:
            yield file.at(view, offset, f"write this label as `{word}:`, at the start of its line", observation=True)
            return


def _first_word(text: str) -> str:
    return text.partition(":")[0]
