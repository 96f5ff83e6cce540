"""Result or mistake -> the exact text appended to the transcript. All wording is in `observe.j2`."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from .elide import elided
from .errors import AuthorError, Mistake
from .labels import Labels, label_line
from .output import sendable
from .settings import Settings
from .templates import BUILT_IN, environment
from .tools import Toolbox

_FILE = "observe.j2"
_SPECIAL_TOKEN = re.compile(r"<\|[^|<>\n]{1,64}\|>")


class Observer:
    """Words what a run tells its model. `folder` may hold an `observe.j2` that overrides single macros. Results that
    are `recorded` have been shortened or guarded before."""

    def __init__(
        self, tools: Toolbox, settings: Settings, folder: Path | None = None, *, recorded: bool = False
    ) -> None:
        self.labels = settings.labels
        self.settings = settings
        self.recorded = recorded
        self._tools = tools
        self._values = {"tools": tools.usages(), "labels": settings.labels, "limits": settings.limits}
        self._path = folder / _FILE if folder and folder != BUILT_IN else None
        self._own: list[Any] = []
        if folder and self._path and self._path.is_file():
            self._own.append(_module(environment(folder), self._values, self._path))

    @cached_property
    def _modules(self) -> list[Any]:
        """The macros, a project's own before the package's; made only when there is something to say."""
        return [*self._own, _module(environment(), self._values, None)]

    def mistake(self, mistake: Mistake) -> str:
        """The observation for a mistake."""
        form = next((tool.form for tool in self._tools.values()), self._tools.finish.form)
        correction = mistake.fields.get("correction") or ""
        names = (mistake.fields.get("tool") or "", correction.partition("[")[0])
        tried = next(filter(None, map(self._tools.resolve, names)), None)
        if tried:
            form = self._tools[tried].form if tried in self._tools else self._tools.finish.form
        if mistake.message == "repeat" and mistake.fields["result"] is not None:
            mistake.fields["result"] = self.result(mistake.fields["result"])  # as it was shown the first time
        absent = {"correction": "", "last": False, "run": ""}
        fields = {"form": form, "max_tokens": self.settings.options.max_tokens, **absent, **mistake.fields}
        if mistake.message == "tool_raised":
            fields["text"] = self._fitted(fields["text"])
        if not self._callable(correction) or correction.endswith("[]"):
            fields["correction"] = form if self._callable(correction) else ""
        return self._say(mistake.message, _without_special_tokens(fields))

    def result(self, text: str) -> str:
        """The observation for a tool's result: verbatim, but for an empty one and what the prompt has opted into."""
        if not text:
            return self._say("no_output", {})
        return text if self.recorded else self._fitted(text)

    def _fitted(self, text: str) -> str:
        """What a tool said, as the prompt wants it to be shown."""
        limit = self.settings.limits.max_observation
        if limit is not None and len(text) > limit:
            head = (limit + 1) // 2
            tail = text[len(text) - (limit - head) :] if limit > head else ""
            note = self._say("shortened", {"left_out": len(text) - limit, "length": len(text)})
            text = f"{text[:head]}\n{note}\n{tail}"
        return guarded(text, self.labels) if self.settings.observations == "guarded" else text

    def elided(self, text: str) -> str:
        """What a long run shows of an older result: its remarks, and a mark for each stretch that is left out."""
        return elided(text, lambda left_out: self._say("elided", {"left_out": left_out}))

    def _callable(self, correction: str) -> bool:
        """Whether a corrected line names something that can be called: a wrong guess is worse than none."""
        return self._tools.resolve(correction.partition("[")[0].strip()) is not None

    def _say(self, name: str, fields: dict[str, Any]) -> str:
        module = next(module for module in self._modules if hasattr(module, name))
        try:
            return sendable(str(getattr(module, name)(fields)))
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
            path = self._path if module in self._own else BUILT_IN / _FILE
            raise AuthorError(f"template: macro {name}: {error}", path=path) from None


def frame(observation: str, cue: str) -> str:
    """The line or lines of an observation as they stand in the transcript. Loading a trace undoes exactly this."""
    gap = "" if not observation or observation.startswith("\n") else " "
    return f"{cue}{gap}{observation}\n"


def guarded(text: str, labels: Labels) -> str:
    """`text` with two blanks before every line that would otherwise begin with a label."""
    pattern = label_line(labels.thought, labels.action, labels.observation, labels.question)
    return pattern.sub(lambda match: "  " + match[0], text)


def label_like(text: str, labels: Labels) -> bool:
    """Whether a line of a tool's output begins like a line of the protocol."""
    return bool(label_line(labels.thought, labels.action, labels.observation, labels.question).search(text))


def _module(env: jinja2.Environment, values: dict[str, Any], path: Path | None) -> Any:
    try:
        return env.get_template(_FILE).make_module(values)
    except jinja2.TemplateSyntaxError as error:
        raise AuthorError(f"template: {error.message}", path=error.filename or path, line=error.lineno) from None
    except jinja2.TemplateError as error:
        raise AuthorError(f"template: {error.message}", path=path) from None


def _without_special_tokens(fields: dict[str, Any]) -> dict[str, Any]:
    """What the model wrote is quoted without `<|...|>`, which a server could read as a control token."""
    return {k: _SPECIAL_TOKEN.sub("", v) if isinstance(v, str) else v for k, v in fields.items()}
