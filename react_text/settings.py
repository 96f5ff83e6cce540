"""What an author can set for a run: the typed form of a prompt's front matter and of `Agent(...)` keywords."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jinja2

from .answers import answer_tool
from .errors import AuthorError, did_you_mean
from .frontmatter import Head
from .labels import PLAIN, Labels
from .models.base import Options
from .models.chat_template import checked
from .tools import Tool

_POLICIES = ("observe", "stop")
FAULTS: Mapping[str, tuple[str, ...]] = {
    "invalid_action": _POLICIES,
    "tool_denied": _POLICIES,
    "tool_missing": _POLICIES,
    "tool_bad_args": _POLICIES,
    "tool_error": _POLICIES,
    "tool_timeout": (*_POLICIES, "retry"),
    "empty_result": (*_POLICIES, "adjust"),
    "loop_detected": _POLICIES,
}
"""What may go wrong, and what a prompt may want done about it: `observe` lets the model read it and go on, `stop` ends
the run. `retry` makes the same call once more by itself; `adjust` lets the model try other arguments once. When that
fails as well, the run ends."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "on_budget": ("stop", "finish"),
    "think": ("drop", "keep"),
    "observations": ("verbatim", "guarded"),
    "context": ("verbatim", "elide"),
    "constrain": ("off", "auto", "lazy"),
    "grounding": ("off", "report", "observe", "decode"),
}
"""Settings that are one of a few words, the default first."""
_FLAGS = ("lenient", "scratchpad")


@dataclass(frozen=True)
class Limits:
    """When a run ends, whatever the model does; None means no limit.

    max_steps        turns of the model, finish included
    max_tool_calls   tools executed
    max_seconds      wall time of the whole run
    max_tokens       prompt and completion tokens of all completions together
    max_cost         money, by `prices`
    max_errors       model errors in a row: unreadable turns, unknown or denied tools, bad arguments
    tool_timeout     seconds for one tool call, where the tool does not say otherwise
    max_observation  characters of one observation that the model sees; longer ones lose their middle
    max_context      tokens of prompt and completion together, where the server does not tell or less is wanted
    """

    max_steps: int = 8
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_errors: int | None = 3
    tool_timeout: float | None = 60.0
    max_observation: int | None = None
    max_context: int | None = None


@dataclass(frozen=True)
class Repeats:
    """When a call counts as a repeat of an earlier one.

    `exact` compares the converted arguments; `soft` first trims, collapses and lower-cases texts and, with `round`,
    rounds numbers to its nearest multiple; `off` lets every call through.
    """

    mode: str = "exact"
    round: float | None = None


@dataclass(frozen=True)
class Settings:
    """Everything that steers a run besides prompt text, tools and model."""

    labels: Labels = PLAIN
    allow: tuple[str, ...] | None = None
    answer: Tool | None = None
    limits: Limits = Limits()
    options: Options = field(default_factory=Options)
    prices: Mapping[str, float] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    repeats: Repeats = Repeats()
    on_budget: str = "stop"
    lenient: bool = False
    think: str = "drop"
    observations: str = "verbatim"
    context: str = "verbatim"
    scratchpad: bool = False
    stop: tuple[str, ...] = ()
    prefill: str = ""
    chat_template: str = "none"
    constrain: str = "off"
    grounding: str = "off"

    @property
    def decoding(self) -> str:
        """How completions are constrained: as `constrain` says, but `grounding: decode` needs a grammar."""
        return "auto" if self.grounding == "decode" and self.constrain == "off" else self.constrain

    @classmethod
    def from_head(cls, head: Head) -> Settings:
        """The settings of a prompt's front matter. Raises AuthorError with the line of the key."""
        values: dict[str, Any] = {}
        for key, read in _READERS.items():
            if key in head:
                try:
                    values[key] = read(head, key)
                except AuthorError as error:
                    raise error if error.path else head.error(key, error.message) from None
        return cls(**values)

    def override(self, **changes: Any) -> Settings:
        """These settings with keywords laid over them. Names of limits and options may stand on their own
        (`max_steps=4`, `temperature=0.7`); `max_tokens` alone is that of one completion. Raises AuthorError."""
        values: dict[str, Any] = {}
        limits, options = (_mapping(key, changes.pop(key, None)) for key in ("limits", "options"))
        for key, value in changes.items():
            if key in _OPTIONS:
                options[key] = value
            elif key in _LIMITS:
                limits[key] = value
            elif key in SETTING_KEYS:
                values[key] = _COERCE.get(key, lambda v: v)(value)
            else:
                known = [*SETTING_KEYS, *_LIMITS, *_OPTIONS]
                raise AuthorError(f"unknown setting {key!r}{did_you_mean(key, known)}")
        if limits:
            values["limits"] = make_limits({**dataclasses.asdict(self.limits), **limits})
        if options:
            values["options"] = make_options({**self.options.as_dict(), **options})
        return dataclasses.replace(self, **values)


def plain_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of an Agent as files can hold them; those that are None are not set."""
    return {
        key: dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
        for key, value in settings.items()
        if value is not None
    }


def make_limits(values: Mapping[str, Any]) -> Limits:
    """Limits from a mapping; `none` lifts one. Raises AuthorError for unknown names and for what is no number."""
    checked: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _LIMITS:
            raise AuthorError(f"limits: unknown key {name!r}{did_you_mean(name, _LIMITS)}")
        if value is None or value == "none":
            if name == "max_steps":
                raise AuthorError("limits: max_steps cannot be lifted; set a high one")
            checked[name] = None
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise AuthorError(f"limits: {name} must be a number above 0, or none, not {value!r}")
        elif "int" in str(_LIMITS[name]) and value != int(value):
            raise AuthorError(f"limits: {name} must be a whole number, not {value!r}")
        else:
            checked[name] = value
    return Limits(**checked)


def make_options(values: Mapping[str, Any]) -> Options:
    """Sampling options; names that react_text does not know go to the server as they are. Raises AuthorError."""
    own = {key: value for key, value in values.items() if key in _OPTIONS}
    max_tokens, temperature = own.get("max_tokens", 256), own.get("temperature", 0.0)
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise AuthorError(f"options: max_tokens must be a whole number above 0, not {max_tokens!r}")
    if isinstance(temperature, bool) or not isinstance(temperature, (int, float)) or temperature < 0:
        raise AuthorError(f"options: temperature must be a number from 0 up, not {temperature!r}")
    if not isinstance(own.get("seed", 0), (int, type(None))):
        raise AuthorError(f"options: seed must be a whole number, not {own['seed']!r}")
    return Options(**own, extra={key: value for key, value in values.items() if key not in _OPTIONS})


def _mapping(key: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise AuthorError(f"{key} must be a mapping, not {value!r}")
    return dict(value or {})


def _faults(value: Any) -> dict[str, str]:
    faults = _mapping("faults", value)
    for fault, policy in faults.items():
        if fault not in FAULTS:
            raise AuthorError(f"faults: unknown fault {fault!r}{did_you_mean(str(fault), FAULTS)}")
        if policy not in FAULTS[fault]:
            raise AuthorError(f"faults: {fault} must be {' or '.join(FAULTS[fault])}, not {policy!r}")
    return faults


def _repeats(value: Any) -> Repeats:
    if isinstance(value, Repeats):
        return value
    given = dict(value) if isinstance(value, Mapping) else {"mode": value}
    mode = given.get("mode", "soft")
    given["mode"] = "off" if mode is False else mode  # YAML reads a bare `off` as false
    nearest = given.get("round")
    usable = nearest is None or (type(nearest) in (int, float) and nearest > 0)
    if set(given) - {"mode", "round"} or given["mode"] not in ("exact", "soft", "off") or not usable:
        raise AuthorError("repeats must be exact, soft or off, or {mode: soft, round: NUMBER}")
    return Repeats(**given)


def _choice(key: str, value: Any) -> str:
    if value not in CHOICES[key]:
        raise AuthorError(f"{key} must be {' or '.join(CHOICES[key])}, not {value!r}")
    return str(value)


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise AuthorError(f"{key} must be true or false, not {value!r}")
    return value


def _prefill(value: Any) -> str:
    try:
        jinja2.Environment().parse(str(value))
    except jinja2.TemplateSyntaxError as error:
        raise AuthorError(f"prefill: {error.message}") from None
    return str(value)


def _prices(value: Any) -> dict[str, float]:
    prices = _mapping("prices", value)
    if set(prices) - {"prompt", "completion"} or not all(isinstance(p, (int, float)) for p in prices.values()):
        raise AuthorError("prices must be {prompt: X, completion: Y}, in money per million tokens")
    return prices


def _stop(value: Any) -> tuple[str, ...]:
    strings = (value,) if isinstance(value, str) else value
    if not isinstance(strings, Iterable) or not all(isinstance(each, str) for each in strings):
        raise AuthorError(f"stop must be a list of texts, not {value!r}")
    return tuple(strings)


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    items = [value] if isinstance(value, str) or callable(value) else value
    return tuple(item if isinstance(item, str) else str(getattr(item, "__name__", item)) for item in items)


_LIMITS = {f.name: f.type for f in dataclasses.fields(Limits)}
_OPTIONS = [f.name for f in dataclasses.fields(Options) if f.name != "extra"]
_COERCE: dict[str, Any] = {
    "labels": Labels.of,
    "allow": _names,
    "answer": answer_tool,
    "faults": _faults,
    "repeats": _repeats,
    "prices": _prices,
    "stop": _stop,
    "prefill": _prefill,
    "chat_template": lambda value: checked(str(value)),
    **{key: partial(_choice, key) for key in CHOICES},
    **{key: partial(_flag, key) for key in _FLAGS},
}
_READERS: dict[str, Any] = {
    "labels": lambda head, key: Labels.of(head.value(key)),
    "allow": lambda head, key: tuple(head.texts(key)),
    "answer": lambda head, key: answer_tool(head.mapping(key)),
    "limits": lambda head, key: make_limits(head.mapping(key)),
    "options": lambda head, key: make_options(head.mapping(key)),
    "prices": lambda head, key: _prices(head.mapping(key)),
    "faults": lambda head, key: _faults(head.mapping(key)),
    "repeats": lambda head, key: _repeats(head.value(key)),
    "stop": lambda head, key: tuple(head.texts(key)),
    "prefill": lambda head, key: _prefill(head.text(key)),
    "chat_template": lambda head, key: checked(head.text(key), Path(head.path or "").parent),
    **{key: lambda head, key: head.choice(key, CHOICES[key]) for key in CHOICES},
    **{key: lambda head, key: head.flag(key) for key in _FLAGS},
}
SETTING_KEYS = tuple(_READERS)
