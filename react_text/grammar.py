"""Tools and labels -> the turns that a model may write, as a grammar for constrained decoding.

A turn is free thought and then exactly one action: a tool that is allowed, or finish, with arguments that convert. All
that a grammar lets through is read by `parse_turn` as it was meant: no line of the thought begins with a label, holds a
control token, or an action in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .argument_forms import LineForm, arguments_form
from .arguments import ArgumentError
from .errors import ParseError
from .forms import Form, Rule, alt, any_of, but, many, optional, sentences, seq, some
from .labels import Labels
from .nearmiss import FINISH
from .notations import to_gbnf, to_lark, to_regex
from .parse import parse_turn
from .tools import ANSWER, Tool, Toolbox

Refused = Callable[[Tool, Mapping[str, Any]], bool]
"""Whether a call would be refused, because it was made before."""

# What may stand around the word of a label, see `labels`.
_MARKS = ("-", " \t\xa0\u3000\u200b\u2060\ufeff*_#>`.)", "0-9０-９")
_COLONS = ":："
_TELLING = 3  # letters by which a label is known
_MOST_CALLS = 400  # ways to call one tool, to look through for those that were taken


@dataclass(frozen=True)
class TurnConstraint:
    """What a completion may be, in the languages that servers take; see `models.base.Constraint`."""

    root: Form
    label: Form
    """How an action begins where only the action is constrained."""

    action: Form
    """The action, its label included, as it is constrained there."""

    lazy: bool = False

    @cached_property
    def gbnf(self) -> str:
        return to_gbnf(self.root)

    @cached_property
    def regex(self) -> str:
        return to_regex(self.root)

    @cached_property
    def lark(self) -> str:
        return to_lark(self.root)

    @cached_property
    def lazy_gbnf(self) -> str:
        return to_gbnf(self.action)

    @property
    def trigger(self) -> str:
        # Without the blank behind it: a trigger that ends inside a token makes llama-server fail.
        return f"\n({to_regex(self.label)})"

    def accepts(self, text: str) -> bool:
        """Whether a whole completion keeps to it."""
        if not self.lazy:
            return re.fullmatch(self.regex, text) is not None
        found = re.search(self.trigger, text)
        return found is None or re.fullmatch(to_regex(self.action), text[found.start(1) :]) is not None


class Grammar:
    """The grammar of a run. `tools` are those that the model may call."""

    def __init__(self, tools: Toolbox, labels: Labels, *, lazy: bool = False) -> None:
        self.tools = tools
        self.labels = labels
        self.lazy = lazy
        line = _line_form(labels)
        self._thought = _thought(labels, line)
        self._arguments = {
            each.name: arguments_form(each.parameters, line if each.options.multiline else None)
            for each in tools.values()
            if _can_be_called(each.name, labels)
        }
        self._answer = arguments_form(tools.finish.parameters, line if tools.finish.options.multiline else None)

    def after(
        self, cue: str, step: int, refused: Refused | None = None, answer: Form | None = None
    ) -> TurnConstraint | None:
        """What may follow a prompt that ends in `cue`: the label of a thought, that of an action, or `Action: finish[`.
        None for another ending. Calls that are `refused` are left out where a tool has few. An answer that is any text
        has the form `answer` instead, when given."""
        if answer is None or self.tools.finish is not ANSWER:
            answer = self._answer
        thought_cue = self.labels.cue(self.labels.thought, step)
        if cue.startswith(f"{thought_cue} "):  # and what the prompt has written of the thought
            cue = thought_cue
        action_cue = self.labels.cue(self.labels.action, step)
        call = seq(" ", self._call(refused, answer), optional("\n"))
        forms = {
            thought_cue: seq(self._thought, "\n", action_cue, call),
            action_cue: call,
            f"{action_cue} {FINISH}[": seq(answer, "]", optional("\n")),
        }
        if cue not in forms:
            return None
        # A thought that is left alone may end in a label without its number.
        number = optional(seq(" ", some(any_of("0-9")))) if self.labels.numbered else seq()
        label = seq(self.labels.action, number, ":")
        return TurnConstraint(forms[cue], label, seq(label, call), self.lazy and cue == thought_cue)

    def _call(self, refused: Refused | None, answer: Form) -> Form:
        """One call. Tools with arguments of one form share it."""
        names: dict[Form, list[str]] = {}
        for name, form in self._arguments.items():
            left = self._left(self.tools[name], form, refused) if refused else form
            if left is not None:
                names.setdefault(left, []).append(name)
        names.setdefault(answer, []).append(FINISH)
        return Rule("call", alt(*(seq(alt(*each), "[", form, "]") for form, each in names.items())))

    def _left(self, tool: Tool, form: Form, refused: Refused) -> Form | None:
        """The arguments that would not be refused, None when there are none left."""
        known = sentences(form, _MOST_CALLS)
        if known is None:
            return form
        left = [text for text in known if not _is_refused(tool, text, refused)]
        return form if len(left) == len(known) else alt(*left) if left else None


def _can_be_called(name: str, labels: Labels) -> bool:
    """Whether the parser finds this name in an action: not with a parenthesis in it, and not `none` or `n/a`."""
    try:
        return parse_turn(f"{labels.cue(labels.action, 1)} {name}[]", labels=labels).action.tool == name
    except ParseError:
        return False


def _is_refused(tool: Tool, arguments: str, refused: Refused) -> bool:
    try:
        return refused(tool, tool.read(arguments))
    except ArgumentError:
        return False


def _thought(labels: Labels, line: LineForm) -> Form:
    """Free text in lines, perhaps behind a reasoning block. A `<` may not begin a tag or a control token, and behind a
    colon there is no opening bracket: `I know. Action: search[x] Observation: y` would be an action in the middle."""
    tag = "<|/｜A-Za-z\n"
    before = many(alt(but("<\n", _COLONS), seq("<", but(tag, _COLONS))))
    behind = many(alt(but("<[\n"), seq("<", but(tag, "["))))
    rest = Rule("rest", seq(before, optional(seq(any_of(_COLONS), behind))))
    inside = many(alt(but("<"), seq(some("<"), but("</"))))
    think = Rule("think", seq("<think>", inside, "</think>"))
    more = many(seq("\n", optional("\n"), _other_line(labels, rest)))
    return seq(optional(think), Rule("line", line(rest, without="<")), more, optional("\n"))


def _other_line(labels: Labels, rest: Form) -> Form:
    """A further line of a thought, which is not empty. It does not even begin like a label: a small model that wants to
    write an observation and is stopped at its colon only goes on and on without one (`Observation 1 - `)."""

    def branch(words: set[str], *others: str) -> Form:
        """What may follow where the rest of a label could be one of `words`."""
        heads = sorted({word[0] for word in words})
        forms = [seq(but("<\n", _COLONS, *others, *_spellings(heads)), rest)]
        for head in heads:
            tails = {word[1:] for word in words if word[0] == head}
            if "" not in tails:
                forms.append(seq(any_of(*_spellings([head])), optional(branch(tails))))
        return alt(*forms)

    beginnings = {word.lower()[:_TELLING] for word in _bare(labels) if word}
    return Rule("more", alt(seq(many(any_of(*_MARKS)), branch(beginnings, *_MARKS)), some(any_of(*_MARKS))))


def _line_form(labels: Labels) -> LineForm:
    """Lines that do not begin with a label. Without look-ahead this is told by the first colon: there is none while a
    line begins with the first letter of a label and consists of nothing but the characters of labels."""
    starts = _spellings(word[0] for word in _bare(labels) if word)
    letters = _spellings("".join(_bare(labels)))

    def line(rest: Form, *, without: str, turns: Sequence[Form] = (), blank: bool = True) -> Form:
        outside = ["\n", without, _COLONS, *_MARKS]
        free = seq(alt(but(*outside, *starts), *turns), rest)
        spelled = seq(alt(but(*outside, *letters), *turns), rest)
        body = alt(free, seq(any_of(*starts), many(any_of(*_MARKS, *letters)), optional(spelled)))
        return seq(many(any_of(*_MARKS)), optional(body) if blank else body)

    return line


def _bare(labels: Labels) -> list[str]:
    """The words of the labels without what may stand before any label."""
    words = (labels.thought, labels.action, labels.observation, labels.question)
    return [word.lstrip("".join(filter(any_of(*_MARKS).__contains__, word))) for word in words]


def _spellings(letters: Iterable[str]) -> tuple[str, ...]:
    """The characters that a pattern without regard to case takes for one of `letters`: to it, `ſ` is an `s` too."""
    return tuple(dict.fromkeys(spelling for letter in letters for spelling in _spelled(letter)))


@lru_cache(maxsize=256)
def _spelled(letter: str) -> list[str]:
    return sorted({letter, *re.findall(re.escape(letter), _cased(), re.I)})


@lru_cache(maxsize=1)
def _cased() -> str:
    return "".join(char for char in map(chr, range(0x1F000)) if char.lower() != char or char.upper() != char)
