"""Prompt file + variables + example traces -> the exact text that a model continues.

A prompt file is YAML front matter and a Jinja template. Values are inserted, never rendered. The text always ends
with the cue (`Thought:`) and no blank behind it: a trailing blank would change how the next word is tokenised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes

from .errors import AuthorError, did_you_mean
from .examples import choose, find_examples, read_example
from .files import project_root
from .frontmatter import Head, read_head, read_text, split_head, unix_lines
from .models.base import PromptText
from .output import without_surrogates
from .plan_settings import PlanSettings
from .settings import SETTING_KEYS, Limits, Settings
from .templates import BUILT_IN, environment, find_source, never_shown, references
from .tools import Toolbox

KEYS = ("question", "tools", "examples", "pick", "demo", "inputs", "lint", "plan", *SETTING_KEYS)
_PER_STEP = frozenset(["step", "remaining", "notes", "elided"])
_OWN = {"question", "tools", "examples", "transcript", "limits", "labels", "label", "cue", "trace_begins", *_PER_STEP}

# Stand-ins for what changes from step to step: the template is rendered around them once, and each prompt is then
# put together from the pieces, however long the transcript has grown.
_BEGINS, _TRANSCRIPT, _CUE = "\0begins\0", "\0transcript\0", "\0cue\0"


@dataclass(frozen=True)
class Prompt:
    """A loaded prompt file. Paths in it are relative to the file's folder; `trees` are the syntax trees of the template
    and of all that it extends or includes, each with its path. With `pick`, a run is shown so many of the `examples`,
    those most like its question."""

    template: jinja2.Template
    trees: tuple[tuple[str, nodes.Template], ...] = ()
    settings: Settings = field(default_factory=Settings)
    path: Path | None = None
    question: str | None = None
    tools: tuple[Path, ...] = ()
    examples: tuple[Path, ...] = ()
    pick: int | None = None
    demo: Path | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    plan: PlanSettings | None = None

    @classmethod
    def load(cls, path: str | Path) -> Prompt:
        """Read and check a prompt file. Raises AuthorError."""
        path = Path(path)
        text = unix_lines(read_text(path))
        if path.suffix == ".trace":
            raise AuthorError("this is a trace, and a prompt is needed here", path=path)
        head_text, _, _ = split_head(text)
        if head_text is None and text.startswith("---\n"):
            raise AuthorError("the front matter has no closing `---` line", path=path, line=1)
        head = read_head(head_text, KEYS, path)
        env = environment(path.parent)
        try:
            template = env.get_template(path.name)
            trees = tuple(_chain(env, path.name))
        except jinja2.TemplateSyntaxError as error:
            raise AuthorError(f"template: {error.message}", path=error.filename or path, line=error.lineno) from None
        except jinja2.TemplateNotFound as error:
            near = did_you_mean(str(error.name), (p.name for p in [*path.parent.glob("*.j2"), *BUILT_IN.glob("*.j2")]))
            raise AuthorError(f"template {str(error.name)!r} is not found{near}", path=path) from None
        for name, tree in trees:
            others = {block.name for _, each in trees if each is not tree for block in each.find_all(nodes.Block)}
            for line, message in never_shown(tree, others):
                raise AuthorError(f"template: {message}", path=name, line=line)
        return cls(
            template=template,
            trees=trees,
            settings=Settings.from_head(head),
            path=path,
            question=head.text("question") if "question" in head else None,
            tools=tuple(path.parent / each for each in head.texts("tools")),
            examples=_examples(head, path.parent),
            pick=_pick(head),
            demo=path.parent / head.text("demo") if "demo" in head else None,
            inputs=_inputs(head),
            plan=PlanSettings.from_head(head) if "plan" in head else None,
        )

    @staticmethod
    @cache
    def base() -> Prompt:
        """The package's own `react.j2`, for runs without a prompt file."""
        return Prompt.load(BUILT_IN / "react.j2")

    @property
    def project_path(self) -> str | None:
        """The file relative to its project: what a trace may hold, since it is the same on every machine."""
        if self.path is None or self.path.parent == BUILT_IN:
            return None
        path = self.path.resolve()
        return path.relative_to(project_root(path.parent)).as_posix()

    def open(
        self,
        question: str | None,
        tools: Toolbox,
        *,
        variables: Mapping[str, Any] | None = None,
        examples: Sequence[str] | None = None,
        settings: Settings | None = None,
    ) -> OpenPrompt:
        """The prompt of one run. `examples` are trace bodies (the prompt's own when None). Raises AuthorError."""
        question = self.question if question is None else question
        if question is None:
            raise AuthorError("no question was given, and the prompt has no default `question`", path=self.path)
        settings = settings or self.settings
        shown = self.examples_for(question) if examples is None else ()
        values = {
            **self._inputs_with(variables or {}),
            "question": question,
            "tools": tools,
            "examples": [read_example(path) for path in shown] if examples is None else list(examples),
            "limits": settings.limits,
            "labels": settings.labels,
            "label": settings.labels.cue,
        }
        used = {"notes": settings.scratchpad, "elided": settings.context == "elide"}
        varying = [name for name in _PER_STEP if used.get(name, True)]
        return OpenPrompt(self, values, variables or {}, shown, varying, settings.prefill)

    def examples_for(self, question: str) -> tuple[Path, ...]:
        """The few-shots that a run with this question is shown, in their order. Raises AuthorError."""
        if self.pick is None:
            return self.examples
        return tuple(choose(question, self.examples, self.pick, self.settings.labels))

    def _inputs_with(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        for name in variables:
            if name in _OWN:
                raise AuthorError(f"{name!r} is set by react_text and cannot be given as a variable", path=self.path)
            if name not in self.inputs and name not in self.names:
                known = [*self.inputs, *(self.names - _OWN)]
                message = f"variable {name!r} is not used by this prompt{did_you_mean(name, known)}"
                raise AuthorError(message, path=self.path)
        missing = [name for name, default in self.inputs.items() if default is None and name not in variables]
        if missing:
            raise AuthorError(f"these inputs need a value: {', '.join(missing)} (-v NAME=VALUE)", path=self.path)
        return {**self.inputs, **variables}

    @cached_property
    def names(self) -> set[str]:
        """The variables that the template, everything it extends or includes, and `prefill` refer to."""
        trees = [tree for _, tree in self.trees]
        if self.settings.prefill:
            trees.append(self.template.environment.parse(self.settings.prefill))
        return {name for tree in trees for name in _free_variables(tree)}

    @cached_property
    def inserts_transcript(self) -> bool:
        """Whether the transcript is only ever printed, so that the text around it can be rendered once."""
        used = printed = 0
        for _, tree in self.trees:
            used += sum(name.name == "transcript" for name in tree.find_all(nodes.Name))
            for output in tree.find_all(nodes.Output):
                printed += sum(isinstance(n, nodes.Name) and n.name == "transcript" for n in output.nodes)
        return used == printed

    def undefined(self, known: Mapping[str, Any]) -> AuthorError:
        """One error that names every variable without a value, with path and line of the first."""
        places: dict[str, tuple[str, int]] = {}
        for path, tree in self.trees:
            unknown = _free_variables(tree) - known.keys()
            for name in tree.find_all(nodes.Name):
                if name.name in unknown:
                    places.setdefault(name.name, (path, name.lineno))
        listed = ", ".join(f"{name} (line {line})" for name, (_, line) in places.items())
        path, line = next(iter(places.values()), (str(self.path), 1))
        return AuthorError(f"undefined variable{'s' * (len(places) > 1)}: {listed}", path=path, line=line)


class OpenPrompt:
    """The prompt of one run: `text(...)` gives the exact prompt of each step.

    `head` is everything before the question line, `task` the question line; a trace's body is `task` + transcript.
    `path` is the file within its project, `variables` what was given beside the question, `examples` the files of its
    few-shots, `prefill` how every thought begins, `lost` how many bytes of the last step's stable part (all before the
    cue) the prompts of the newest step do not begin with: a cache has to read them again.
    """

    def __init__(
        self,
        prompt: Prompt,
        values: Mapping[str, Any],
        variables: Mapping[str, Any],
        examples: Sequence[Path] = (),
        varying: Collection[str] = _PER_STEP,
        prefill: str = "",
    ) -> None:
        self.path = prompt.project_path
        self.variables = dict(variables)
        self.examples = tuple(examples)
        self._prompt = prompt
        self._values = values
        self._dynamic = bool(prompt.names.intersection(varying)) or not prompt.inserts_transcript
        self._before, self._step = "", 0
        self.lost = 0
        self._all = _all_of(values["limits"])
        self.head, self.task, self._tail = self._pieces(1, self._all, (), 0, "")
        if self.task and not self.task.endswith("\n"):
            raise AuthorError("the transcript must begin on a line of its own, below the question", path=prompt.path)
        self.prefill = self._line(prefill) if prefill else ""

    @property
    def hash(self) -> str:
        """A short SHA-256 of the head: it changes when the rendered prompt does, whatever the question, unless the
        question picks the examples."""
        return hashlib.sha256(self.head.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def text(
        self,
        transcript: str,
        cue: str,
        *,
        step: int = 1,
        remaining: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        elided: int = 0,
    ) -> PromptText:
        """The prompt whose transcript so far is `transcript`, ending in `cue`; `elided` is the number of observations
        that it shows shortened. Raises AuthorError."""
        head, task, tail = self.head, self.task, self._tail
        known = len(head) + len(task)
        if self._dynamic:
            head, task, tail = self._pieces(step, remaining or self._all, notes, elided, transcript)
            if self._prompt.inserts_transcript:
                known = len(head) + len(task)
            else:
                transcript = ""  # the template has put it where it wants it
        stable = f"{head}{task}{transcript}"
        self.lost = _lost(self._before, stable) + (self.lost if step == self._step else 0)
        self._before, self._step = stable, step
        if tail == _CUE:
            return PromptText(f"{stable}{cue}", known)
        end = tail.replace(_CUE, cue)
        if end.rstrip().endswith(cue):
            end = end.rstrip()
        else:
            end += cue if not end or end.endswith("\n") else f"\n{cue}"
        return PromptText(f"{stable}{end}", known)

    def now(self, **values: Any) -> None:
        """Values that have changed since the last step, for what the template shows behind the transcript. A trace
        keeps those that the run began with."""
        self._values = {**self._values, **values}
        self._dynamic = True

    def _pieces(
        self, step: int, remaining: Mapping[str, Any], notes: Sequence[str], elided: int, transcript: str
    ) -> tuple[str, str, str]:
        """(head, task, tail): what comes before the question line, up to the transcript, and after it."""
        insert = self._prompt.inserts_transcript
        values = {
            **self._values,
            "step": step,
            "remaining": remaining,
            "notes": notes,
            "elided": elided,
            "transcript": _TRANSCRIPT if insert else transcript,
            "cue": _CUE,
            "trace_begins": _BEGINS,
        }
        text = self._render(values)
        if not insert:
            # The template does something with the transcript itself: everything is rendered anew at each step.
            before, cue, behind = text.rpartition(_CUE)
            before, tail = (before, cue + behind) if cue else (text, "")
        elif text.count(_TRANSCRIPT) != 1:
            message = f"the prompt must insert the transcript once, not {text.count(_TRANSCRIPT)} times"
            raise AuthorError(message, path=self._prompt.path)
        else:
            before, _, tail = text.partition(_TRANSCRIPT)
        head, begins, task = before.partition(_BEGINS)
        if not begins:
            head, task = before, ""
        return head, task, tail.rstrip() if tail.rstrip().endswith(_CUE) else tail

    def _line(self, source: str) -> str:
        """A template of one line, rendered; white space in its values, line breaks too, becomes one blank."""
        with self._errors("prefill"):
            text = self._prompt.template.environment.from_string(source).render(self._values)
        return " ".join(without_surrogates(text).split())

    def _render(self, values: Mapping[str, Any]) -> str:
        with self._errors("template"):
            try:
                return without_surrogates(self._prompt.template.render(values))
            except jinja2.UndefinedError:
                if self._prompt.names - values.keys():
                    raise self._prompt.undefined(values) from None
                raise

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Whatever goes wrong in rendering is for the author to mend."""
        try:
            yield
        except jinja2.UndefinedError as error:
            raise AuthorError(f"{what}: {error.message}", path=self._prompt.path) from None
        except RecursionError:
            raise AuthorError(f"{what}: it includes or calls itself without end", path=self._prompt.path) from None
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
            raise AuthorError(f"{what}: {type(error).__name__}: {error}", path=self._prompt.path) from None


def _all_of(limits: Limits) -> dict[str, Any]:
    """What remains of the budgets before the first step."""
    left = {"steps": limits.max_steps, "tool_calls": limits.max_tool_calls, "seconds": limits.max_seconds}
    return {name: value for name, value in left.items() if value is not None}


def _lost(before: str, now: str) -> int:
    """Bytes of `before` behind the longest beginning that it shares with `now`."""
    if now.startswith(before):
        return 0
    low, high = 0, len(before)
    while low < high:  # the shared beginning by bisection: comparing prefixes is fast, single characters are not
        middle = (low + high + 1) // 2
        low, high = (middle, high) if now.startswith(before[:middle]) else (low, middle - 1)
    return len(before[low:].encode())


def _free_variables(tree: nodes.Template) -> set[str]:
    """The variables that a template needs. Jinja also counts those that it sets in one branch of an `if` only."""
    own = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}
    return meta.find_undeclared_variables(tree) - own


def _examples(head: Head, folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(find_examples(head.texts("examples"), folder))
    except AuthorError as error:
        raise head.error("examples", error.message) from None


def _pick(head: Head) -> int | None:
    number = head.value("pick")
    if "pick" in head and "examples" not in head:
        raise head.error("pick", "pick needs `examples` to pick from")
    if number is not None and (type(number) is not int or number < 1):
        raise head.error("pick", f"pick must be a whole number above 0, not {number!r}")
    return number


def _inputs(head: Head) -> dict[str, Any]:
    """Declared variables and their defaults; None where a value must be given."""
    inputs = {}
    for name, value in head.mapping("inputs").items():
        if name in _OWN:
            raise head.error("inputs", f"inputs: {name!r} is set by react_text")
        if isinstance(value, dict):
            if set(value) - {"default", "help"}:
                raise head.error("inputs", f"inputs: {name} takes a default value, or {{default: ..., help: ...}}")
            value = value.get("default")
        inputs[name] = value
    return inputs


def _chain(env: jinja2.Environment, name: str) -> Iterator[tuple[str, nodes.Template]]:
    """The template and all that it extends, includes or imports by a constant name: (path, syntax tree)."""
    waiting, seen = [([name], False)], set()
    while waiting:
        names, optional = waiting.pop(0)
        found = next(filter(None, (find_source(env, each) for each in names)), None)
        if found is None and not optional:
            raise jinja2.TemplateNotFound(names[0])
        if found is None or found[1] in seen:
            continue
        source, path = found
        seen.add(path)
        tree = env.parse(source, names[0], path)
        waiting += [(each, may_be_missing) for _, each, may_be_missing in references(tree)]
        yield path, tree
