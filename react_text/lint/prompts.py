"""The rules about prompts: templates, values, what the instructions teach, what a server is sent (RT5xx, RT6xx)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from jinja2 import nodes

from ..ask import MOST_STOPS
from ..errors import AuthorError, ParseError
from ..grammar import Grammar
from ..labels import BEFORE_LABEL, label_line
from ..layout import lines_of
from ..models import open_model
from ..models.http import HTTPModel
from ..observe import label_like
from ..offline import NetworkUsed, offline
from ..parse import parse_turn
from ..project import find_project
from ..prompt import OpenPrompt, Prompt
from ..templates import BUILT_IN
from ..tools import Toolbox
from .context import Found, PromptFile, TraceFile

# Request fields that the engine sets by itself: an option of that name replaces what it sends.
_SENT = (
    "prompt", "inputs", "messages", "stop", "stop_sequence", "stop_sequences", "stream", "stream_options", "n_predict",
    "max_length", "max_new_tokens", "num_predict", "grammar",
)  # fmt: skip
_PER_STEP = ("step", "remaining", "notes")


def tools_not_loadable(file: PromptFile) -> Iterator[Found]:
    """RT301"""
    if isinstance(file.toolbox, AuthorError):
        yield file.at_key("tools", f"the tools cannot be loaded: {file.toolbox}")
        return
    for name in file.prompt.settings.allow or ():
        if name not in file.toolbox:
            yield file.at_key("allow", f"there is no tool {name!r} to allow")


def undefined(file: PromptFile) -> Iterator[Found]:
    """RT501"""
    error = file.opened
    if isinstance(error, AuthorError):
        yield Found(error.line or 1, 1, error.message, Path(error.path) if error.path else None)


def unused_input(file: PromptFile) -> Iterator[Found]:
    """RT502"""
    for name in file.prompt.inputs:
        if name not in file.prompt.names:
            yield file.at_key("inputs", f"the template does not use {name!r}")


def bad_reference(code: str) -> Callable[[PromptFile], Iterator[Found]]:
    """The check of RT503 or RT507."""

    def check(file: PromptFile) -> Iterator[Found]:
        for reference in file.references:
            if reference.code == code:
                yield Found(reference.line, 1, reference.message, reference.path)

    return check


def label_in_value(file: PromptFile) -> Iterator[Found]:
    """RT504"""
    labels = file.prompt.settings.labels
    if label_like(file.prompt.question or "", labels):
        yield file.at_key("question", "a line of the question begins like a label")
    for name, value in file.prompt.inputs.items():
        if label_like(str(value), labels):
            yield file.at_key("inputs", f"a line of {name} begins like a label")


def label_in_trace_value(file: TraceFile) -> Iterator[Found]:
    """RT504"""
    for name, value in file.mapping("inputs").items():
        if label_like(str(value), file.labels):
            yield file.at_key("inputs", f"a line of {name} begins like a label")


def end_of_prompt(file: PromptFile) -> Iterator[Found]:
    """RT505"""
    if not isinstance(file.opened, OpenPrompt):
        return
    if "cue" not in file.prompt.names:
        yield Found(len(lines_of(file.text)), 1, "the template does not end in the cue ({{ cue }})")
        return
    probe = "\ue000"
    text = file.opened.text("", probe)
    if text.count(probe) > 1:
        behind = text[text.index(probe) + 1 : text.rindex(probe)].strip()
        line, path = _where(file.prompt, behind, "cue")
        yield Found(line, 1, f"text stands behind the cue: {behind!r}", path)


def overrides(file: PromptFile) -> Iterator[Found]:
    """RT508"""
    for name in file.prompt.settings.options.extra:
        if name in _SENT:
            yield file.at_key("options", f"options: {name} replaces what the engine itself sends to the server")


def not_append_only(file: PromptFile) -> Iterator[Found]:
    """RT509"""
    opened, prompt = file.opened, file.prompt
    if not isinstance(opened, OpenPrompt):
        return
    labels = prompt.settings.labels
    transcript = ""
    for step in (1, 2, 3):
        cues = [labels.cue(word, step) for word in (labels.thought, labels.action, labels.observation)]
        opened.text(transcript, cues[0], step=step, remaining={"steps": 9 - step}, notes=["note"] * step)
        transcript += f"{cues[0]} a\n{cues[1]} b[c]\n{cues[2]} d\n"
        if opened.lost:
            line, path = _first_use(prompt)
            message = "the prompt of a step does not begin with the one before it: the server reads it all again"
            yield Found(line, 1, message, path)
            return


def rejected_format(file: PromptFile) -> Iterator[Found]:
    """RT602"""
    labels = file.prompt.settings.labels
    for sample in _samples(file.instructions, labels.action):
        try:
            parse_turn(sample, labels=labels)
        except ParseError as error:
            line, path = _where(file.prompt, sample, "")
            yield Found(line, 1, f"the parser does not read {sample!r} as an action ({error.kind})", path)


def no_such_grammar(file: PromptFile) -> Iterator[Found]:
    """RT603, by what the adapter of the configured server knows: nothing is asked over a network."""
    spec = find_project(file.path.parent).model or ""
    constrain, labels = file.prompt.settings.constrain, file.prompt.settings.labels
    kind, plus, _ = spec.partition(":")[0].rpartition("+")
    if constrain == "off" or not plus:
        return
    model = open_model(spec)
    cue = labels.cue(labels.thought, 1)
    constraint = Grammar(file.tools or Toolbox(), labels).after(cue, 1)
    assert isinstance(model, HTTPModel) and constraint
    try:
        with offline("lint"):
            takes_none = not model.constrained(constraint)
    except NetworkUsed:
        takes_none = False  # only the server itself can tell
    if takes_none:
        yield file.at_key("constrain", f"{kind} takes no grammar: the parser alone checks the turns")
    elif constrain == "lazy" and not model.lazy_grammars:
        yield file.at_key("constrain", f"{kind} has no lazy grammars: thoughts are constrained as well")


def stop_strings(file: PromptFile) -> Iterator[Found]:
    """RT604"""
    settings = file.prompt.settings
    room = MOST_STOPS - len(settings.labels.stops(1))
    for number, stop in enumerate(settings.stop):
        if not stop.startswith("\n"):
            yield file.at_key("stop", f"{stop!r} does not begin with a newline: it cuts a thought that mentions it")
        elif number >= room:
            yield file.at_key("stop", f"{stop!r} is not sent: servers take {MOST_STOPS}, and the labels come first")


# -- where in the template files something stands


def _samples(text: str, action: str) -> Iterator[str]:
    """What the instructions show as an action: lines that begin with the label, or with one of another protocol, and
    quoted pieces that do."""
    line = re.compile(rf"^{BEFORE_LABEL}(?:{re.escape(action)}(?: ?input)?|final answer)[ \t*_`]*[:：].*", re.I | re.M)
    quoted = re.compile(rf"[`\"“]({re.escape(action)}[:：][ \t]*[^`\"”\n]+)[`\"”]", re.I)
    lines = [match[0] for match in line.finditer(text)]
    for sample in [*lines, *(match[1] for match in quoted.finditer(text))]:
        label = label_line(action).match(sample)
        if not label or sample[label.end() :].strip(" *_`"):
            yield sample


def _where(prompt: Prompt, text: str, name: str) -> tuple[int, Path | None]:
    """The line and file in which a piece of rendered text, or the first use of a variable, stands."""
    first = text.partition("\n")[0]
    for path, _ in prompt.trees:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), 1):
            if first and first in line:
                return number, Path(path)
    return _uses(prompt, (name,))


def _first_use(prompt: Prompt) -> tuple[int, Path | None]:
    """Where a variable that changes from step to step, or else the transcript, is first used."""
    line, path = _uses(prompt, _PER_STEP)
    known = path is not None and path.parent != BUILT_IN  # the base prompt uses notes where they do no harm
    return (line, path) if known else _uses(prompt, ("transcript",))


def _uses(prompt: Prompt, names: tuple[str, ...]) -> tuple[int, Path | None]:
    for path, tree in prompt.trees:
        lines = [node.lineno for node in tree.find_all(nodes.Name) if node.name in names]
        if lines:
            return min(lines), Path(path)
    return 1, None
