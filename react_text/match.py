"""Golden + actual run -> the list of changes between them, each with its category and step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from .errors import AuthorError, did_you_mean
from .matching import Matching, close, is_number
from .nearmiss import FINISH
from .parse import same_name
from .redact import redacted, redaction_rules
from .trace import Trace, TraceStep, is_finish

# From what a reviewer has to look at most closely to what is safe to wave through.
CATEGORIES = ("new", "prompt", "answer", "path", "tool", "wording", "thought", "format")
EXPECTATIONS = (
    "max_steps", "max_prompt_chars", "no_repeat", "forbid", "require", "answer", "stop_reason",
)  # fmt: skip
FACTS = ("tools", "options", "answer", "stop_reason", "outcomes")
"""What the front matter of a golden says of its run, beside the prompt."""


@dataclass(frozen=True)
class Change:
    """One difference. `step` is the golden's step, the run's own for a step that the golden does not have, and 0 for
    what stands before the first turn or concerns the run as a whole. `message` reads on after "step N: "; `only_in` is
    `golden` or `run` where only one of them has the step."""

    category: str
    step: int
    message: str
    only_in: str = ""

    def __str__(self) -> str:
        return f"{self.category}: step {self.step}: {self.message}" if self.step else f"{self.category}: {self.message}"


def compare(expected: Trace, actual: Trace, *, matching: Matching | None = None) -> list[Change]:
    """What changed from a golden to a run, in the order of its steps. `matching` is what the golden's `match:` key says
    when None. Raises AuthorError when `match:` or `redact:` cannot be read."""
    matching = matching or Matching.of(expected.meta.get("match"))
    rules = redaction_rules(expected.meta.get("redact"))
    if expected.body == actual.body and expected.labels == actual.labels and _same_facts(expected.meta, actual.meta):
        return []
    expected, actual = redacted(expected, rules), redacted(actual, rules)
    return list(_Comparison(expected, actual, matching).changes())


def check_expectations(
    trace: Trace, expect: Mapping[str, Any] | None = None, *, longest_prompt: int | None = None
) -> list[Change]:
    """Where a run breaks the `expect:` of a golden (its own when None); `longest_prompt` is in characters. Raises
    AuthorError for an expectation that cannot be read."""
    given = expectations(trace.meta.get("expect") if expect is None else expect)
    if not given:
        return []
    calls = [step for step in trace.steps if step.tool is not None and not is_finish(step)]
    names = [step.tool or "" for step in calls]
    changes = []

    def broken(category: str, step: int, message: str) -> None:
        changes.append(Change(category, step, message))

    if "max_steps" in given and len(trace.steps) > given["max_steps"]:
        broken("path", given["max_steps"] + 1, f"is one too many: expect says max_steps {given['max_steps']}")
    for number, step in enumerate(trace.steps, 1):
        if step.tool and any(same_name(step.tool) == same_name(name) for name in given.get("forbid", ())):
            broken("path", number, f"calls {step.tool}, which expect forbids")
    for name in given.get("require", ()):
        if not any(same_name(name) == same_name(called) for called in names):
            broken("path", 0, f"never calls {name}, which expect requires")
    if "no_repeat" in given:
        counts = Counter((same_name(step.tool or ""), (step.arguments or "").strip()) for step in calls)
        for (name, arguments), count in counts.items():
            if count > given["no_repeat"]:
                times = f"{count} times: expect says no_repeat {given['no_repeat']}"
                broken("path", 0, f"calls {name}[{arguments}] {times}")
    if "max_prompt_chars" in given and longest_prompt is not None and longest_prompt > given["max_prompt_chars"]:
        message = f"the longest prompt has {longest_prompt} characters: expect says {given['max_prompt_chars']}"
        broken("prompt", 0, message)
    if "stop_reason" in given and given["stop_reason"] != trace.meta.get("stop_reason"):
        broken("answer", 0, f"ends as {trace.meta.get('stop_reason')}: expect says {given['stop_reason']}")
    if "answer" in given and not _answers(given["answer"], trace.meta.get("answer")):
        broken("answer", 0, f"answers {_quoted(trace.meta.get('answer'))}: expect says {given['answer']}")
    return changes


def expectations(given: Any) -> dict[str, Any]:
    """An `expect:` key, checked. Raises AuthorError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise AuthorError(f"expect must be a mapping of {', '.join(EXPECTATIONS)}")
    checked = dict(given)
    for key, value in given.items():
        if key not in EXPECTATIONS:
            raise AuthorError(f"expect: unknown key {key!r}{did_you_mean(str(key), EXPECTATIONS)}")
        if key in ("max_steps", "max_prompt_chars", "no_repeat") and (not isinstance(value, int) or value < 1):
            raise AuthorError(f"expect: {key} must be a whole number above 0, not {value!r}")
        if key in ("forbid", "require"):
            checked[key] = [value] if isinstance(value, str) else value
            if not isinstance(checked[key], list) or not all(isinstance(name, str) for name in checked[key]):
                raise AuthorError(f"expect: {key} must be a list of tools")
        if key == "answer":
            _check_answer(value)
    return checked


def call(step: TraceStep) -> str:
    """A step's action in one line."""
    if step.tool is None:
        return "no readable action"
    text = f"{step.tool}[{step.arguments}]"
    return text if "\n" not in text and len(text) <= 80 else text.partition("\n")[0][:76] + " ..."


def only_space_differs(one: str, other: str) -> bool:
    """Whether two texts differ in white space alone."""
    return one != other and "".join(one.split()) == "".join(other.split())


def aligned(expected: Trace, actual: Trace, matching: Matching) -> list[tuple[int | None, int | None]]:
    """Which step of the golden stands beside which of the run (both from 1), None where one side has none: so that an
    extra step does not shift all that follow."""
    keys = [_key(step) for step in expected.steps]
    others = []
    for number, step in enumerate(actual.steps, 1):
        # A step that counts as the same call gets the same key, the one at its own place first.
        places = [number, *range(1, len(keys) + 1)] if number <= len(keys) else range(1, len(keys) + 1)
        same = (keys[n - 1] for n in places if matching.same_call(expected.steps[n - 1], step, n))
        others.append(_key(step) if is_finish(step) else next(same, _key(step)))
    pairs: list[tuple[int | None, int | None]] = []
    for _, i, i_end, j, j_end in SequenceMatcher(None, keys, others, autojunk=False).get_opcodes():
        while i < i_end or j < j_end:
            pairs.append((i + 1 if i < i_end else None, j + 1 if j < j_end else None))
            i, j = i + 1, j + 1
    return pairs


def _key(step: TraceStep) -> tuple[str, str]:
    if is_finish(step):
        return FINISH, ""
    return (step.tool, step.arguments or "") if step.tool is not None else ("", step.text)


class _Comparison:
    """One golden beside one run."""

    def __init__(self, expected: Trace, actual: Trace, matching: Matching) -> None:
        self.expected, self.actual, self.matching = expected, actual, matching
        self.exact = matching.mode == "exact"
        self.lifted = False  # whether a rule has let pass what is another text

    def changes(self) -> Iterator[Change]:
        found = [*self._head(), *self._steps(), *self._end()]
        if not found and self.exact and not self.lifted and self.expected.body != self.actual.body:
            found.append(Change("format", 0, "the text differs"))
        yield from found

    def _head(self) -> Iterator[Change]:
        if self.expected.labels != self.actual.labels:
            yield Change("prompt", 0, "the labels are other words now")
        elif self.expected.task != self.actual.task:
            category = "format" if only_space_differs(self.expected.task, self.actual.task) else "prompt"
            yield Change(category, 0, "the question line differs")
        for key in ("tools", "options") if self.exact else ():
            if key in self.expected.meta and self.expected.meta[key] != self.actual.meta.get(key):
                yield Change("format", 0, f"front matter: {key} was {self.expected.meta[key]}")

    def _steps(self) -> Iterator[Change]:
        mode = self.matching.mode
        if mode in ("unordered", "subset", "superset"):
            yield from self._calls(missing=mode != "subset", extra=mode != "superset")
        elif mode != "answer":
            for number, own in aligned(self.expected, self.actual, self.matching):
                yield from self._pair(number, own)

    def _pair(self, number: int | None, own: int | None) -> Iterator[Change]:
        if number is None or own is None:
            if own is not None:
                yield Change("path", own, f"is an extra step: {call(self.actual.steps[own - 1])}", "run")
            elif number is not None:
                yield Change("path", number, f"is missing: {call(self.expected.steps[number - 1])}", "golden")
            return
        one, other = self.expected.steps[number - 1], self.actual.steps[own - 1]
        same = self.matching.same_call(one, other, number)
        if not same and not (is_finish(one) and is_finish(other)):
            yield Change("path", number, f"{_calls(other)} instead of {call(one)}")
        elif self.exact:  # another call has another observation: that says nothing more
            if same and one.text != other.text:
                yield from self._text(number, one, other)
            yield from self._observation(number, one, other)

    def _text(self, number: int, one: TraceStep, other: TraceStep) -> Iterator[Change]:
        if only_space_differs(one.text, other.text):
            yield Change("format", number, "only white space differs in the turn")
        elif one.thought != other.thought:
            yield Change("thought", number, "the thought differs")
        elif self.matching.rule(one, number) is None:
            yield Change("format", number, "the same call is written differently")
        else:
            self.lifted = True

    def _observation(self, number: int, one: TraceStep, other: TraceStep) -> Iterator[Change]:
        before, now = one.outcome, other.outcome
        refused, tool = before.startswith("mistake "), other.tool or one.tool or "the tool"
        engine = now.startswith("mistake ") or (bool(now) and now == before)
        if one.observation is None or other.observation is None:
            if one.observation is not None:
                yield Change("wording" if engine or refused else "tool", number, "has no observation now")
            elif other.observation is not None:
                yield Change("wording" if engine else "tool", number, "has an observation now")
        elif refused and not now:
            message = f"the engine no longer refuses this turn ({before.removeprefix('mistake ')}): the call is made"
            yield Change("wording", number, message)
        elif one.observation != other.observation:
            if only_space_differs(one.observation, other.observation):
                yield Change("format", number, "only white space differs in the observation")
            elif now.startswith("mistake ") and now != before:
                message = f"the engine answers this turn itself ({now.removeprefix('mistake ')})"
                yield Change("wording", number, message)
            elif engine:
                yield Change("wording", number, "the engine words this observation differently")
            else:
                yield Change("tool", number, f"{tool} answers differently")

    def _calls(self, *, missing: bool, extra: bool) -> Iterator[Change]:
        """Calls of the golden that the run does not make, and the other way round, whatever their order."""
        left = [(n, step) for n, step in enumerate(self.actual.steps, 1) if step.tool and not is_finish(step)]
        for number, step in enumerate(self.expected.steps, 1):
            if step.tool is None or is_finish(step):
                continue
            found = next((pair for pair in left if self.matching.same_call(step, pair[1], number)), None)
            if found:
                left.remove(found)
            elif missing:
                yield Change("path", number, f"is missing: {call(step)}", "golden")
        for number, step in left if extra else ():
            yield Change("path", number, f"is an extra call: {call(step)}", "run")

    def _end(self) -> Iterator[Change]:
        """Answer and stop reason. An answer that `expect:` describes need not be the same text, but in exact mode."""
        expected, actual = self.expected.meta, self.actual.meta
        described = "answer" in expectations(expected.get("expect"))
        if self.exact or not described:
            one, other = self.expected.answer, self.actual.answer
            if one != other:
                yield Change("answer", len(self.expected.steps), f"answers {_quoted(other)} instead of {_quoted(one)}")
        stops, wanted = actual.get("stop_reason"), expected.get("stop_reason")
        if "stop_reason" in expected and stops is None:
            yield Change("path", len(self.actual.steps), f"goes on where the golden ends as {wanted}")
        elif "stop_reason" in expected and stops != wanted:
            yield Change("answer", len(self.actual.steps), f"ends as {stops} instead of {wanted}")


def _same_facts(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Whether a run repeats what its golden's front matter says of it."""
    return all(expected[key] == actual.get(key) for key in FACTS if key in expected)


def _calls(step: TraceStep) -> str:
    return f"calls {call(step)}" if step.tool is not None else "has no readable action"


def _quoted(answer: Any) -> str:
    return "nothing" if answer is None else repr(str(answer)) if len(str(answer)) <= 80 else f"{str(answer)[:76]!r} ..."


def _check_answer(given: Any) -> None:
    if isinstance(given, Mapping):
        if "number" in given and not set(given) - {"number", "within"} and all(map(is_number, given.values())):
            return
        raise AuthorError("expect: answer takes a pattern, a number, or {number: X, within: Y}")
    if is_number(given):
        return
    try:
        re.compile(str(given))
    except re.error as error:
        raise AuthorError(f"expect: answer: {error} in {given!r}") from None


def _answers(given: Any, answer: Any) -> bool:
    """Whether an answer is what `expect:` describes: a pattern found in it, or a number that it names."""
    if answer is None:
        return False
    if isinstance(given, Mapping) or is_number(given):
        number, within = (given["number"], given.get("within", 0)) if isinstance(given, Mapping) else (given, 0)
        figures = re.findall(r"-?\d[\d,]*(?:\.\d+)?", str(answer))
        return any(close(float(figure.replace(",", "")), number, within) for figure in figures)
    return re.search(str(given), str(answer)) is not None
