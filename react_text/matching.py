"""The arguments of two calls -> whether they count as the same, by the `match:` rules of a golden and its project."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .arguments import ArgumentError
from .errors import AuthorError, did_you_mean
from .frontmatter import typed
from .parse import same_name
from .tools import Tool
from .trace import TraceStep

MODES = ("exact", "actions", "unordered", "subset", "superset", "answer")
_STEP = re.compile(r"step (\d+)")


@dataclass(frozen=True)
class Matching:
    """How a run is compared with its golden. `steps` and `by_tool` hold rules for arguments where equality is too
    strict; `tools` gives the signatures by which arguments are read.

    A rule is `ignore`, `re:PATTERN` for the whole text, a list of the parameters that count, a number by which figures
    may differ, or a mapping of parameters to such rules.
    """

    mode: str = "exact"
    steps: Mapping[int, Any] = field(default_factory=dict)
    by_tool: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)

    @classmethod
    def of(
        cls, given: Any, by_tool: Mapping[str, Any] | None = None, tools: Mapping[str, Tool] | None = None
    ) -> Matching:
        """A `match:` key: a mode, or `{mode: actions, step 3: {args: ignore}}`. Raises AuthorError."""
        given = {"mode": given or "exact"} if not isinstance(given, Mapping) else given
        mode = str(given.get("mode", "exact"))
        if mode not in MODES:
            raise AuthorError(f"match: {mode!r} is none of {', '.join(MODES)}{did_you_mean(mode, MODES)}")
        steps = {}
        for key, rule in given.items():
            step = _STEP.fullmatch(str(key))
            if key == "mode":
                continue
            if step is None or not isinstance(rule, Mapping) or set(rule) != {"args"}:
                raise AuthorError(f"match: {key!r} is not understood; write `mode: MODE` and `step N: {{args: RULE}}`")
            steps[int(step[1])] = checked_rule(rule["args"], f"match: {key}")
        return cls(mode, steps, by_tool or {}, tools or {})

    def rule(self, step: TraceStep, number: int) -> Any:
        """The rule for the arguments of a golden's step; None where they must be equal."""
        if number in self.steps:
            return self.steps[number]
        return next((r for name, r in self.by_tool.items() if same_name(name) == same_name(step.tool or "")), None)

    def same_call(self, expected: TraceStep, actual: TraceStep, number: int) -> bool:
        """Whether step `number` of the golden and a step of the run make the same call."""
        if expected.tool is None or actual.tool is None:
            return expected.tool == actual.tool
        if same_name(expected.tool) != same_name(actual.tool):
            return False
        one, other = expected.arguments or "", actual.arguments or ""
        rule = self.rule(expected, number)
        if one == other or rule == "ignore":
            return True
        if isinstance(rule, str):
            return re.fullmatch(rule.removeprefix("re:"), other) is not None
        values, others = self._values(expected.tool, one), self._values(expected.tool, other)
        names = rule if isinstance(rule, list) else sorted({*values, *others})
        each = rule if isinstance(rule, Mapping) else dict.fromkeys(names, None if isinstance(rule, list) else rule)
        return all(_same_value(each.get(name), values.get(name), others.get(name)) for name in names)

    def _values(self, name: str, arguments: str) -> Mapping[str, Any]:
        """The arguments by parameter; by "" when there is no signature that they fit."""
        tool = next((tool for tool in self.tools.values() if same_name(tool.name) == same_name(name)), None)
        try:
            return tool.read(arguments) if tool else {"": arguments.strip()}
        except ArgumentError:
            return {"": arguments.strip()}


def checked_rule(rule: Any, place: str) -> Any:
    """A rule for arguments, None for `exact`. Raises AuthorError."""
    if rule == "exact":
        return None
    if isinstance(rule, str) and rule.startswith("re:"):
        try:
            re.compile(rule.removeprefix("re:"))
        except re.error as error:
            raise AuthorError(f"{place}: {error} in {rule!r}") from None
        return rule
    if isinstance(rule, Mapping):
        return {str(name): checked_rule(each, f"{place}: {name}") for name, each in rule.items()}
    if rule == "ignore" or is_number(rule) or (isinstance(rule, list) and all(isinstance(n, str) for n in rule)):
        return rule
    raise AuthorError(
        f"{place}: {rule!r} is not understood; write exact, ignore, re:PATTERN, a list of parameters, a number, "
        "or {parameter: rule}"
    )


def close(one: float, other: float, within: float) -> bool:
    """Whether two figures differ by no more than `within`: 1.01 and 1.0 do by 0.01, whatever binary fractions say."""
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=within * (1 + 1e-9))


def _same_value(rule: Any, one: Any, other: Any) -> bool:
    if one == other or rule == "ignore":
        return True
    if isinstance(rule, str):
        return re.fullmatch(rule.removeprefix("re:"), str(other)) is not None
    one, other = (typed(value) if isinstance(value, str) else value for value in (one, other))
    return is_number(rule) and is_number(one) and is_number(other) and close(one, other, rule)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
