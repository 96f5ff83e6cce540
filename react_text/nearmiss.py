"""Texts that are not `tool[arguments]` but mean it -> the action they mean, for the corrected line of an error.

Everything here reads each character a bounded number of times: the text can be as hostile as any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .labels import AFTER_LABEL, BEFORE_LABEL
from .scan import CLOSERS, closing_bracket, read_object, unfenced, unquoted

FINISH = "finish"

_NAME = r"[^\W\d][\w-]{0,79}"
_CALL = re.compile(rf"({_NAME})[ \t]*[(（]")
_WHOLE_CALL = re.compile(rf"({_NAME})[ \t]*\[(.*)\]", re.S)
_SOFT = re.compile(rf"({_NAME})(?:[ \t]*(?::|[=-]>|=|→|\|)[ \t]*|[ \t]+|(?=\{{[ \t]*[\"']))(\S[^\n]*)")
_BARE_CALL = re.compile(rf"^[ \t*`>-]*(?:action[ \t]*(?:[-–—=][ \t]*)?)?({_NAME})[ \t]*(?=\[)", re.I | re.M)
# Behind a label that is none of the prompt's (`Tool:`, `行动：`), or in a tag.
_OTHER_LABEL = r"[\"']?[^\W\d]\w{0,19}[\"']?[ \t*_]*[:：=-][ \t*_]*|<\w{1,20}>[ \t]*"
_LABELLED_CALL = re.compile(rf"^[ \t*`>#-]*(?:{_OTHER_LABEL})({_NAME})[ \t]*(?=\[)", re.M)
_END_TAG = re.compile(r"</\w{1,20}>[\s*_`]*\Z")
_OBJECT = r"(?:<tool_call>|\[TOOL_CALLS\])?[\s*`]*(?:\[\s*)?(?=\{)"
_BEFORE_OBJECT = re.compile(_OBJECT, re.I)
_BARE_OBJECT = re.compile(rf"^[ \t*`]*{_OBJECT}", re.I | re.M)
_INPUT_LABEL = rf"(?:input|arg(?:ument)?s?|param(?:eter)?s?|query){AFTER_LABEL}[*_`]*"
_INPUT = re.compile(rf"^{BEFORE_LABEL}(?:(?:action|tool)[ _]?)?{_INPUT_LABEL}", re.I | re.M)
_INPUT_BEHIND = re.compile(rf"({_NAME})[ \t*`,;]+action[ _]?{_INPUT_LABEL}", re.I)
_ANSWER_LABEL = rf"(?:final[ \t_]*)?answer{AFTER_LABEL}[*_`]*"
_ANSWER = re.compile(
    rf"^{BEFORE_LABEL}(?:{_ANSWER_LABEL}|<(?:final_?)?answer>|final[ \t_]*answer[ \t*_`]*\r?$)", re.I | re.M
)
_ANSWER_END = re.compile(r"</(?:final_?)?answer>\Z", re.I)
_ANSWER_BEHIND = re.compile(_ANSWER_LABEL, re.I)
_FINAL_ANSWER = re.compile(r"\Afinal[ _]?answer\Z", re.I)
_INPUT_KEYS = ("action_input", "tool_input", "input", "arguments", "args", "parameters", "params")
_WORD = re.compile(r"[\w-]+")
_FINISH = re.compile(rf"{FINISH}[ \t]*\[(.*)\]", re.I | re.S)
_SPACE = re.compile(r"\s*")
LEADING = re.compile(r"[\s*`]*(?:(?<=```)\w+[ \t]*\r?\n[\s*`]*)?")
"""What may stand between an action's label and its call: blanks, marks, and the fence of a code block."""
_MARKS = " \t\r\n*_`"


def near_miss(
    text: str, start: int, end: int, label: re.Pattern[str], *, certain: bool = False
) -> tuple[str, str] | None:
    """What `text[start:end]`, which follows an action label, means: (kind, `tool[arguments]`), or None.

    `label` finds label lines. `certain` leaves out the forms that may as well be prose.
    """
    start = LEADING.match(text, start, end).end()  # type: ignore[union-attr]  # it matches the empty string too
    while start < end and text[start] in _MARKS:
        start += 1
    following = label.search(text, start, end)
    end = following.start() if following else end
    line_end = text.find("\n", start, end)
    line_end = end if line_end < 0 else line_end
    line = text[start:line_end].rstrip(_MARKS)
    if call := _CALL.match(text, start, line_end):
        closing = closing_bracket(text, call.end() - 1, end)
        if closing is None:
            closing = text.rfind(CLOSERS[text[call.end() - 1]], call.end(), line_end)
        if closing >= 0:
            return "parentheses", action(call[1], text[call.end() : closing])
    if (before := _BEFORE_OBJECT.match(text, start, end)) and (meant := _json_action(text, before.end(), end)):
        return "json", meant
    if line.startswith("["):
        inner = _in_brackets(text, start, end)
        if inner:
            return "bracketed_name", inner
    if answer := _ANSWER_BEHIND.match(text, start, line_end):
        return ("answer_label", finish_of(text[answer.end() : end])) if text[answer.end() : end].strip() else None
    if given := _INPUT_BEHIND.match(text, start, line_end):
        return "action_input", action(given[1], unfenced(text[given.end() : end].strip()))
    next_text = _SPACE.match(text, line_end, end).end()  # type: ignore[union-attr]  # it matches the empty string too
    given = _INPUT.match(text, text.rfind("\n", start, next_text) + 1, end)
    if given and 0 < len(line) <= 80:
        return "action_input", action(
            _FINAL_ANSWER.sub(FINISH, line.strip("[] ")), unfenced(text[given.end() : end].strip())
        )
    if text.startswith("[", next_text) and re.fullmatch(_NAME, line):
        closing = closing_bracket(text, next_text, end)
        return ("not_a_call", action(line, text[next_text + 1 : closing])) if closing else None
    if not certain and (soft := _SOFT.fullmatch(line)):
        return "not_a_call", action(soft[1], soft[2])
    return None


def answer_line(text: str, end: int, label: re.Pattern[str]) -> tuple[int, str] | None:
    """A line `Answer: ...` or `Final Answer: ...`: (its offset, the finish action), or None."""
    found = _ANSWER.search(text, 0, end)
    if not found:
        return None
    following = label.search(text, found.end(), end)
    answer = _ANSWER_END.sub("", text[found.end() : following.start() if following else end].strip()).strip()
    return (found.start(), finish_of(answer)) if answer else None


def finish_of(answer: str) -> str:
    """The finish action for an answer, which may be written as one already."""
    finish = _FINISH.fullmatch(answer.strip())
    return f"{FINISH}[{finish[1] if finish else answer.strip()}]"


def bare_object(text: str, end: int, _: re.Pattern[str]) -> tuple[int, str] | None:
    """A call as a JSON object without its label: (its offset, the action), or None."""
    found = _BARE_OBJECT.search(text, 0, end)
    meant = found and _json_action(text, found.end(), end)
    return (found.start(), meant) if found and meant else None


def named_tool(written: str, is_tool: Callable[[str], bool]) -> str:
    """The tool that the words before a bracket speak of, or "": `Use search`, `functions.search`, `get weather`,
    `search tool`, `final answer`."""
    words = _WORD.findall(written)
    together = "".join(words)
    if together.casefold().replace("_", "") in ("answer", "finalanswer"):
        words.append(FINISH)
    known = [word for word in (together, *words[-1:]) if is_tool(word)]
    return next(iter(known or {word for word in words if is_tool(word)}), "")


def bare_call(text: str, end: int, _: re.Pattern[str]) -> tuple[int, str] | None:
    """A last line that is `tool[arguments]` without its label: (its offset, the action), or None."""
    return _last_call(_BARE_CALL, text, end)


def labelled_call(text: str, end: int) -> str:
    """The action of a last line that has another label, or stands in a tag; "" for others."""
    found = _last_call(_LABELLED_CALL, text, end)
    return found[1] if found else ""


def _last_call(pattern: re.Pattern[str], text: str, end: int) -> tuple[int, str] | None:
    last = None
    for last in pattern.finditer(text, 0, end):  # noqa: B007
        pass
    if last is None:
        return None
    closing = closing_bracket(text, last.end(), end)
    if closing is None or _END_TAG.sub("", text[closing + 1 : end]).strip(_MARKS):
        return None
    return last.start(), action(last[1], text[last.end() + 1 : closing])


def misplaced_call(text: str, end: int, action_label: str, observation_label: str) -> tuple[str, int, int, str] | None:
    """The first `Action: tool[arguments]` in the middle of a line: (kind, start, end, the action), or None.

    The kind is `invented` when an observation follows on the same line, otherwise `inline`. An invented one is
    preferred over an earlier inline one.
    """
    call_pattern, observation = _inline(action_label, observation_label)
    inline = None
    position, line_end, last_observation = 0, -1, -1
    while call := call_pattern.search(text, position, end):
        if call.start() > line_end:
            line_end = text.find("\n", call.end(), end)
            line_end = end if line_end < 0 else line_end
            last_observation = max((o.start() for o in observation.finditer(text, call.end(), line_end)), default=-1)
        closing = closing_bracket(text, call.end() - 1, line_end)
        if closing is None:
            position = line_end
            continue
        position = closing + 1
        found = (call.start(), position, action(call[1], text[call.end() : closing]))
        if last_observation >= position:
            return ("invented", *found)
        inline = inline or ("inline", *found)
    return inline


def action(tool: str, arguments: str) -> str:
    """`tool[arguments]`; for finish without the parameter's name and the quotes that a Python call needs. Arguments may
    be written as the whole call."""
    arguments = arguments.strip()
    if arguments.startswith(f"{tool}[") and arguments.endswith("]"):
        arguments = arguments[len(tool) + 1 : -1].strip()
    if tool.casefold() == FINISH:
        arguments = re.sub(r"\Aanswer[ \t]*=[ \t]*", "", arguments)
        arguments = unquoted(arguments)[0]
    return f"{tool}[{arguments}]"


def _in_brackets(text: str, start: int, end: int) -> str | None:
    """`[search][ferry]` and `[search[ferry]]`."""
    closing = closing_bracket(text, start, end)
    if closing is None:
        return None
    inner = text[start + 1 : closing].strip()
    if text[closing + 1 : closing + 2] in ("[", "("):
        last = closing_bracket(text, closing + 1, end)
        return action(inner, text[closing + 2 : last]) if last and re.fullmatch(_NAME, inner) else None
    return inner if re.match(rf"{_NAME}\[", inner) and inner.endswith("]") else None


def _json_action(text: str, start: int, end: int) -> str | None:
    """`{"action": "search", "action_input": "ferry"}` and its common variants."""
    closing = closing_bracket(text, start, end)
    value = read_object(text[start : closing + 1]) if closing else None
    return _object_action(value) if value else None


def _object_action(value: dict[str, Any]) -> str | None:
    name = next((value[key] for key in ("action", "tool", "function", "name") if key in value), None)
    if isinstance(name, dict):
        return _object_action(name)
    if not isinstance(name, str):
        return None
    if call := _WHOLE_CALL.fullmatch(name):
        return action(call[1], call[2])
    given = next((value[key] for key in _INPUT_KEYS if key in value), "")
    name = _FINAL_ANSWER.sub(FINISH, name)
    if not re.fullmatch(_NAME, name):
        return None
    return action(name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))


@lru_cache(maxsize=16)
def _inline(action_label: str, observation_label: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    call = rf"(?<=[^\s*_#>`-])[ \t]+[*_`]*{re.escape(action_label)}{AFTER_LABEL}[ \t*_`]*({_NAME})[ \t]*\["
    return re.compile(call, re.I), re.compile(rf"{re.escape(observation_label)}{AFTER_LABEL}", re.I)
