"""Completion text -> where its reasoning blocks are, which are no part of the turn (the rule THINK)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .labels import Labels, label_line
from .scan import OPENING, Span

# Tags other than `<think>` begin a block at the start of a line only. The last of each kind are those of a raw harmony
# text, whose answer has a header of its own.
_THINK = re.compile(
    r"(?P<open><think>|^[ \t]*(?:<(?:thinking|reasoning|seed:think)>|(?-i:\[THINK\])|◁think▷"
    r"|<\|channel\|>analysis<\|message\|>))"
    r"|</(?:think|thinking|reasoning|seed:think)>|(?-i:\[/THINK\])|◁/think▷"
    r"|<\|end\|><\|start\|>assistant(?:<\|channel\|>final<\|message\|>)?",
    re.I | re.M,
)


def reasoning_spans(text: str, labels: Labels) -> tuple[list[Span], bool]:
    """The spans of reasoning blocks, and whether the last one is still open.

    A block that its prompt has opened shows only its end, and that before any label that ends the turn; so does one
    that goes on behind a block inside it. Tags behind the first action that has a bracket are left alone: they are part
    of its arguments, or behind it and not read.
    """
    action_label, cut = label_line(labels.action), label_line(labels.observation, labels.question)
    spans: list[Span] = []
    opened: int | None = None
    position = 0
    for tag in think_tags(text):
        if tag["open"]:
            if opened is None:
                if _begins_call(text, position, tag.start(), action_label):
                    return spans, False
                opened = tag.start()
        elif opened is not None:
            spans.append((opened, tag.end()))
            opened, position = None, tag.end()
        else:
            if _begins_call(text, position, tag.start(), action_label) or cut.search(text, position, tag.start()):
                return spans, False
            spans[-1:] = [(spans[-1][0] if spans else 0, tag.end())]
            position = tag.end()
    if opened is not None:
        spans.append((opened, len(text)))
    return spans, opened is not None


def think_tags(text: str) -> Iterable[re.Match[str]]:
    """The tags that begin a block (group `open`) or end one."""
    return _THINK.finditer(text) if any(sign in text for sign in ("<", "THINK]", "◁")) else ()


def _begins_call(text: str, start: int, end: int, action_label: re.Pattern[str]) -> bool:
    label = action_label.search(text, start, end)
    return label is not None and OPENING.search(text, label.end(), end) is not None


def without_tags(text: str) -> str:
    """What a reasoning block says."""
    return _THINK.sub("", text)
