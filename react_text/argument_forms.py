"""Parameters -> the form of the argument texts that `arguments` reads: each annotation as narrow as it can be told.

The opposite direction of `arguments.read_arguments`. A form may be narrower than what the reader takes, never wider:
whatever has it is read, and its values convert.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from .arguments import Parameter, read_arguments
from .conversion import Pattern, Range, convert
from .errors import ReactTextError
from .forms import SPACE, Form, Rule, alt, any_of, but, many, may_be_empty, may_hold, optional, seq, some
from .number_forms import DATE, DATETIME, number, whole_number
from .pattern_forms import pattern_form
from .scan import closing_bracket

_BLANKS = " \t\xa0\u3000"
_QUOTES = "\"'“”‘’"
_BRACKETS = 2  # how deep brackets may be nested inside brackets of a text
_NAMES = re.compile('[^"]*(?::\\s|：)')
_JSON_DEPTH = 1  # how deep lists and objects may be nested inside a JSON value


class LineForm(Protocol):
    """Makes the form of a line, within a text, that does not begin with a label.

    rest     what may follow once the line can no longer become a label
    without  characters that may not begin this rest
    turns    other forms that may begin it
    blank    whether the line may be empty
    """

    def __call__(self, rest: Form, *, without: str, turns: Sequence[Form] = (), blank: bool = True) -> Form: ...


def arguments_form(parameters: Sequence[Parameter], line: LineForm | None = None) -> Form:
    """What may stand between the brackets of a tool with these parameters. `line` is given for tools whose texts may
    have several lines."""
    if not parameters:
        return seq()
    if len(parameters) == 1:
        form = _Alone(parameters[0], line).form(parameters[0].annotation)
        return form if parameters[0].required else optional(form)
    place = _Listed(line)
    first, *others = (seq(optional(f"{each.name}="), place.form(each.annotation)) for each in parameters)
    needed = max((count for count, each in enumerate(parameters, 1) if each.required), default=0)
    # A JSON object on its own would be read as parameters by name.
    least = max(needed, 2) if may_hold(first, "{", edge=0) else needed
    rest = seq()
    for count in range(len(parameters), 1, -1):
        rest = seq(",", optional(" "), others[count - 2], rest)
        rest = rest if count <= least else optional(rest)
    return seq(first, rest) if needed else optional(seq(first, rest))


# -- texts


def free_text(line: LineForm | None = None) -> Form:
    """A text that is the only argument. Its brackets are balanced.

    What counts as a quoted string depends on the characters around it (see `scan`), and brackets inside of one do not
    count. So that none can begin at one depth and end at another, quotes stand outside of inner brackets only, or one
    kind of them inside only.
    """
    bare = but("[]\n", _QUOTES)
    inner = many(bare)
    for _ in range(_BRACKETS):
        inner = many(alt(bare, seq("[", inner, "]")))
    texts = [_text("text", Rule("nested", seq("[", inner, "]")), "", line)]
    for name, quote in (("single", "'"), ("double", '"')):
        item = alt(seq(quote, many(but("[]\n\\", _QUOTES)), quote), many(but(",[]\n", _QUOTES)))
        group = Rule(f"nested-{name}", seq("[", item, many(seq(",", many(" "), item)), "]"))
        texts.append(_text(f"text-{name}", group, quote, line))
    return alt(*texts)


def _text(name: str, group: Form, without: str, line: LineForm | None) -> Form:
    # A blank or `=` is always followed by something: an empty text, or `query=`, would be a missing argument.
    unit = seq(many(any_of(_BLANKS, "=")), alt(but(SPACE, "=[]", without), group))
    text = Rule(name, some(unit))
    if line is None:
        return text
    without += SPACE + "=[]"
    turns = (group, seq("=", unit))
    below = many(seq("\n", line(many(unit), without=without, turns=turns)))
    opened = seq("\n", line(many(unit), without=without, turns=turns, blank=False))
    return Rule(f"{name}-lines", seq(alt(text, opened), below))


def _listed_text(line: LineForm | None) -> Form:
    """A text among several arguments: bare words, or in double quotes."""
    # An apostrophe stands inside a word only, where it opens no string. No colon and blank: small models copy the usage
    # of a tool, `team: str, month: str`.
    word = but(SPACE, _QUOTES, "[]［【(){}=,，:：")
    bare = seq(word, many(alt(word, any_of("'’"), seq(some(" "), word), seq(":", word))))
    escape = seq("\\", but("\n"))
    rest = many(alt(but('"\\\n'), escape))
    below = many(seq("\n", line(rest, without='"\\', turns=(escape,)))) if line else seq()
    return alt(Rule("words", bare), Rule("quoted-lines" if line else "quoted", seq('"', rest, below, '"')))


_JSON_TEXT = Rule("json-text", seq('"', many(alt(but('"\\\x00-\x1f'), seq("\\", any_of('"\\/bfnrt')))), '"'))


# -- values


class _Place:
    """Where a value stands, which decides how a text is written there."""

    text: Form
    none = "None"
    reserved: str | None
    """Characters that a text without quotes cannot hold here; None where all texts stand in quotes."""

    def read(self, written: str, annotation: Any) -> Any:
        """What becomes of a value that is written like this. Raises ReactTextError or ValueError."""
        raise NotImplementedError

    def object(self, value: Form) -> Form:
        """A JSON object with such values."""
        return _object(value)

    def form(self, annotation: Any, rules: Sequence[Any] = ()) -> Form:
        """The texts that convert to `annotation` and keep to its `rules`."""
        origin, options = typing.get_origin(annotation), typing.get_args(annotation)
        kind = origin or annotation
        if origin is typing.Annotated:
            return self.form(options[0], [*rules, *options[1:]])
        if origin in (typing.Union, types.UnionType):
            return self._union(options, rules)
        if origin is typing.Literal:
            return self._choice(annotation, {str(option): option for option in options})
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return self._choice(annotation, {str(member.value): member for member in annotation})
        if kind in (list, set, tuple):
            return _array(JSON.form(options[0] if options else str))
        if kind is dict:
            return self.object(JSON.form(options[1]) if options else _json(_JSON_DEPTH))
        if kind in (int, float):
            form = whole_number if kind is int else number
            return form(*_ends(rules))
        if kind in (datetime.date, datetime.datetime):
            return self._written(DATE if kind is datetime.date else DATETIME) or self.text
        if kind is bool:
            return alt("true", "false")
        if kind in (None, type(None)):
            return seq(self.none)
        patterns = [pattern_form(rule.compiled) for rule in rules if isinstance(rule, Pattern)]
        plain = patterns[0] if kind is str and len(patterns) == 1 else None
        return (plain and self._written(plain)) or self.text

    def _union(self, options: Sequence[Any], rules: Sequence[Any]) -> Form:
        if str in options and not rules:
            return self.text
        only = len([option for option in options if option is not type(None)]) == 1
        return alt(*(self.form(option, rules if only else ()) for option in options))

    def _choice(self, annotation: Any, values: dict[str, Any]) -> Form:
        """One of these values, each in the first way of writing it that is read as this value again."""
        written = [self._readable(text, annotation, value) for text, value in values.items()]
        return alt(*filter(None, written)) if any(written) else self.text

    def _readable(self, text: str, annotation: Any, value: Any) -> str | None:
        quoted = json.dumps(text, ensure_ascii=False)
        for candidate in [quoted] if self.reserved is None else [text, quoted]:
            inner = f"[{candidate}]"
            if "\n" not in candidate and closing_bracket(inner, 0, len(inner)) == len(inner) - 1:
                try:
                    if self.read(candidate, annotation) is value:
                        return candidate
                except (ReactTextError, ValueError):
                    continue
        return None

    def _written(self, form: Form) -> Form | None:
        """Texts of this form, in quotes where they need them; None where they cannot be written."""
        edges = " \t\x1c\xa0\u2003\u3000"
        blank = any(may_hold(form, edges, edge=edge) for edge in (0, -1))
        if self.reserved is not None and not may_be_empty(form) and not blank and not may_hold(form, self.reserved):
            return form
        return None if may_hold(form, '"\\' + _CONTROLS) else seq('"', form, '"')


_CONTROLS = "".join(map(chr, range(32)))


class _Alone(_Place):
    """The only argument: the text between the brackets is the value."""

    reserved = _QUOTES + "[]{=\n"

    def __init__(self, parameter: Parameter, line: LineForm | None) -> None:
        self.text = free_text(line)
        self.parameter = parameter

    def read(self, written: str, annotation: Any) -> Any:
        return read_arguments(written, [replace(self.parameter, annotation=annotation)])[self.parameter.name]

    def object(self, value: Form) -> Form:
        # An object with the parameter's name as its key would be read as the parameter by name.
        return _object(value, other_than=self.parameter.name)


class _Listed(_Place):
    """One of several arguments, between commas."""

    reserved = _QUOTES + "[]{}()=,，\n"

    def __init__(self, line: LineForm | None) -> None:
        self.text = _listed_text(line)

    def read(self, written: str, annotation: Any) -> Any:
        if _NAMES.match(written):  # and might name another parameter
            return None
        values = read_arguments(f"{written}, {written}", [Parameter("a", annotation), Parameter("b", annotation)])
        return values["a"] if values["a"] is values["b"] else None


class _Json(_Place):
    """A value inside a JSON list or object."""

    text = _JSON_TEXT
    none = "null"
    reserved = None

    def read(self, written: str, annotation: Any) -> Any:
        return convert(json.loads(written), annotation)


JSON = _Json()


def _ends(rules: Sequence[Any]) -> tuple[float | None, float | None]:
    """Where all the ranges among `rules` overlap."""
    ranges = [rule for rule in rules if isinstance(rule, Range)]
    low = max((rule.low for rule in ranges if rule.low is not None), default=None)
    high = min((rule.high for rule in ranges if rule.high is not None), default=None)
    return low, high


def _json(depth: int) -> Form:
    """Any JSON value, with lists and objects in it down to `depth`."""
    simple = alt(_JSON_TEXT, number(), "true", "false", "null")
    if not depth:
        return Rule("json-simple", simple)
    inner = _json(depth - 1)
    return Rule(f"json-{depth}", alt(simple, _array(inner), _object(inner)))


def _array(item: Form) -> Form:
    return seq("[", optional(seq(item, many(seq(",", optional(" "), item)))), "]")


def _object(value: Form, other_than: str | None = None) -> Form:
    key: Form = _JSON_TEXT
    if other_than is not None:
        plain = '"\\\x00-\x1f'
        inner = some(but(plain))
        for char in reversed(other_than):
            inner = optional(alt(seq(but(plain, char), many(but(plain))), seq(char, inner)))
        key = seq('"', inner, '"')
    pairs = many(seq(",", optional(" "), _JSON_TEXT, ":", optional(" "), value))
    return seq("{", optional(seq(key, ":", optional(" "), value, pairs)), "}")
