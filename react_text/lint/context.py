"""A file -> what the rules look at: its bytes and front matter, the trace or prompt in it, and where things stand.

Nothing here raises for what a rule reports: what could not be loaded is in `problem`, with the code of its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import AuthorError
from ..examples import question_of
from ..frontmatter import Head, read_bytes, read_head, split_head, unix_lines
from ..labels import ARROW, Labels
from ..layout import NO_SPANS, find_conflict, lines_of
from ..nearmiss import FINISH
from ..parse import same_name
from ..prompt import KEYS as PROMPT_KEYS
from ..prompt import OpenPrompt, Prompt
from ..scratchpad import run_tools
from ..settings import Settings
from ..tools import Toolbox
from ..trace import KEYS as TRACE_KEYS
from ..trace import Trace
from .references import BadReference, find_references
from .views import View, stand_ins, views_of

LINT_KEYS = ("ignore", "expect")
# Errors of the front matter as a whole.
_NOT_A_KEY = ("front matter", "CRLF")


@dataclass(frozen=True)
class Found:
    """Where a rule is broken, and how. `path` is the file when it is not the one that was linted."""

    line: int
    column: int
    message: str
    path: Path | None = None


class File:
    """A file and its front matter."""

    keys: tuple[str, ...] = ()

    def __init__(self, path: Path, library: Library) -> None:
        self.path = path
        self.library = library
        self.data = read_bytes(path)
        self.text = unix_lines(self.data.decode("utf-8", "replace"))
        self.head_text, self.body, self.first_line = split_head(self.text)
        self.problem = self._problem()

    def _problem(self) -> tuple[str, AuthorError] | None:
        """The rule that a file breaks which cannot be loaded, and the error. Raises one that no rule is about."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            return "RT101", AuthorError(f"byte {self.data[error.start]:#04x} is not UTF-8", line=line)
        try:
            self.load()
        except AuthorError as error:
            code = self.code_of(error)
            if code is None:
                raise AuthorError(error.message, path=error.path or self.path, line=error.line) from None
            return code, error
        return None

    def code_of(self, error: AuthorError) -> str | None:
        """The rule that an error in loading is about: a key of the front matter. None for one that no rule is about."""
        in_head = error.path in (None, str(self.path)) and error.line is not None and error.line < self.first_line
        return "RT106" if in_head and not any(word in error.message for word in _NOT_A_KEY) else None

    def load(self) -> None:
        """Load what is in the file. Raises AuthorError."""
        self.head.mapping("lint", LINT_KEYS)

    @property
    def loaded(self) -> bool:
        """Whether there is a trace or prompt to look at."""
        return self.problem is None

    @cached_property
    def head(self) -> Head:
        """The front matter. Raises AuthorError."""
        return read_head(self.head_text, self.keys, self.path)

    @property
    def suppression(self) -> Mapping[str, list[str]]:
        """What the front matter's `lint:` says: codes to ignore, and codes that must be found."""
        if self.problem:
            return {}
        given = self.head.mapping("lint")
        return {key: [str(code) for code in (v if isinstance(v, list) else [v])] for key, v in given.items()}

    def at_key(self, key: str, message: str) -> Found:
        """A finding at a key of the front matter."""
        return Found(self.head.lines.get(key, 1), 1, message)


class TraceFile(File):
    """A trace, with the prompt and the tools it belongs to."""

    keys = TRACE_KEYS
    trace: Trace

    def load(self) -> None:
        self.trace = Trace.load(self.path)
        _ = self.trace.steps  # finds spans that do not fit
        super().load()

    def code_of(self, error: AuthorError) -> str | None:
        if error.message == "git conflict markers":
            return "RT107"
        in_body = self.head_text is not None and (error.line or 1) >= self.first_line
        return "RT104" if in_body else super().code_of(error)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping of the front matter, {} for anything else."""
        value = self.trace.meta.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def labels(self) -> Labels:
        return self.trace.labels

    @property
    def question(self) -> str:
        """The question without its label."""
        return question_of(self.trace.task, self.labels)

    @cached_property
    def prompt(self) -> PromptFile | None:
        """The prompt that the front matter names, found from any folder above: paths in traces start at the project.
        None where it is not there or cannot be loaded."""
        name = str(self.trace.meta.get("prompt") or "")
        path = next((p / name for p in self.path.resolve().parents if name and (p / name).is_file()), None)
        try:
            prompt = self.library.prompt(path) if path else None
        except AuthorError:
            return None
        return prompt if prompt and prompt.loaded else None

    @cached_property
    def own_settings(self) -> Settings | AuthorError:
        """The settings of the prompt with those of the trace laid over them, or what is wrong with these."""
        settings = self.prompt.prompt.settings if self.prompt else Settings()
        try:
            return settings.override(**{**self.mapping("settings"), "labels": self.labels})
        except AuthorError as error:
            return error

    @property
    def settings(self) -> Settings:
        return self.own_settings if isinstance(self.own_settings, Settings) else Settings(labels=self.labels)

    @property
    def tools(self) -> Toolbox | None:
        """The real tools, allowed or not: those of the prompt. None when they are not known."""
        return self.prompt.all_tools if self.prompt else None

    @cached_property
    def names(self) -> list[str] | None:
        """The tools that the front matter declares."""
        given = self.trace.meta.get("tools")
        return [str(name) for name in given] if isinstance(given, list) else None

    @property
    def never_finishes(self) -> bool:
        """Whether the trace declares tools without finish, so that it ends with any of them."""
        return self.names is not None and not any(same_name(name) == FINISH for name in self.names)

    @cached_property
    def views(self) -> list[View]:
        """The steps. The traces of text games have none: their commands are no turns of the protocol."""
        return self.views_with(self.tools)

    def views_with(self, tools: Toolbox | None) -> list[View]:
        """The steps as a run with these tools sees them; with none, those of which the trace has the names."""
        if self.labels == ARROW:
            return []
        called = [step.tool for step in self.trace.steps if step.tool]
        box = stand_ins(called if self.names is None else self.names) if tools is None else tools
        return list(views_of(self.trace, self.settings, box, self.prompt.path.parent if self.prompt else None))

    def position(self, view: View, offset: int, *, observation: bool = False) -> tuple[int, int]:
        """(line, column) of an offset into the text of a step or its observation."""
        text = (view.step.observation or "") if observation else view.step.text
        row = text.count("\n", 0, offset)
        line = self.trace.line_of(view.number, observation=observation) + row
        column = offset - (text.rfind("\n", 0, offset) + 1)
        if observation and row == 0:
            whole = self.body.split("\n")[line - self.first_line]
            column += len(whole) - len(text.partition("\n")[0])
        return line, column + 1

    def at(self, view: View, offset: int, message: str, *, observation: bool = False) -> Found:
        """A finding at an offset into a step's text or observation."""
        return Found(*self.position(view, offset, observation=observation), message)


class PromptFile(File):
    """A prompt, with its tools and examples."""

    keys = PROMPT_KEYS
    prompt: Prompt
    references: tuple[BadReference, ...] = ()

    def load(self) -> None:
        super().load()
        self.references = find_references(self.path)
        if not self.references:
            self.prompt = Prompt.load(self.path)
            if isinstance(self.opened, AuthorError) and not self.undefined:
                raise self.opened

    def code_of(self, error: AuthorError) -> str | None:
        return super().code_of(error) if self.conflict is None else "RT107"

    @property
    def conflict(self) -> int | None:
        """The line (from 0) where the markers of a git conflict begin."""
        return find_conflict(lines_of(self.text), [], NO_SPANS)

    @property
    def undefined(self) -> bool:
        """Whether it cannot be rendered for want of a variable."""
        return isinstance(self.opened, AuthorError) and self.opened.message.startswith("undefined variable")

    @property
    def loaded(self) -> bool:
        return super().loaded and not self.references

    @cached_property
    def toolbox(self) -> Toolbox | AuthorError:
        """The tools, or why they cannot be loaded."""
        try:
            return run_tools(self.prompt.tools, self.prompt.settings)
        except AuthorError as error:
            return error

    @property
    def all_tools(self) -> Toolbox | None:
        return self.toolbox if isinstance(self.toolbox, Toolbox) else None

    @property
    def tools(self) -> Toolbox | None:
        """The tools that the model may call; None when they cannot be loaded."""
        settings, tools = self.prompt.settings, self.all_tools
        return tools if tools is None else tools.offered(settings.allow, settings.answer)

    @cached_property
    def opened(self) -> OpenPrompt | AuthorError:
        """The rendered prompt, without its few-shots and with their names for variables that have no value; or why it
        cannot be rendered."""
        try:
            # One empty example: with none at all the base prompt shows one of its own.
            return self.open([""])
        except AuthorError as error:
            return error

    def open(self, examples: Sequence[str], question: str | None = None) -> OpenPrompt:
        """The prompt with these few-shots, for its own question unless another is given. Raises AuthorError."""
        stand_ins = {name: name for name, value in self.prompt.inputs.items() if value is None}
        question = question or self.prompt.question or "A question?"
        return self.prompt.open(question, self.tools or Toolbox(), variables=stand_ins, examples=examples)

    @property
    def instructions(self) -> str:
        """The rules and tools as the model reads them, "" when they cannot be rendered."""
        return self.opened.head if isinstance(self.opened, OpenPrompt) else ""

    @cached_property
    def examples(self) -> list[TraceFile]:
        """The few-shots that can be read."""
        return [each for each in map(self.library.trace, self.prompt.examples) if each.loaded]


class Library:
    """Prompts and traces by path, each read once. Files have the paths by which they were `named`; others, which these
    refer to, have theirs from the current folder. Raises AuthorError for what cannot be read."""

    def __init__(self, named: Iterable[Path] = ()) -> None:
        self._named = {path.resolve(): path for path in named}
        self._files: dict[Path, Any] = {}

    def file(self, path: Path) -> TraceFile | PromptFile:
        return self.trace(path) if path.suffix == ".trace" else self.prompt(path)

    def trace(self, path: Path) -> TraceFile:
        return self._read(path, TraceFile)  # type: ignore[no-any-return]

    def prompt(self, path: Path) -> PromptFile:
        return self._read(path, PromptFile)  # type: ignore[no-any-return]

    def _read(self, path: Path, kind: type[File]) -> Any:
        key = path.resolve()
        if key not in self._files:
            here = Path.cwd()
            own = key.relative_to(here) if key.is_relative_to(here) else key
            self._files[key] = kind(self._named.get(key, own), self)
        return self._files[key]
