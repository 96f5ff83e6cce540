"""A trace -> its transcript in pieces that a page can mark: labels, what looks like them, numbers of the answer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .display import printable
from .grounding import Grounding
from .labels import ARROW, Labels, label_line
from .match import call
from .output import without_surrogates
from .trace import Trace, TraceStep, is_finish

# They turn the direction of the text behind them, so that a line seems to say what it does not.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Mark:
    """A stretch of a text. `kind` is `label`, `like`, `source`, `sourced` or `loose`; `id` is what a link to it says,
    `link` where it leads to, `note` what there is to say about it."""

    start: int
    end: int
    kind: str
    id: str = ""
    link: str = ""
    note: str = ""


@dataclass(frozen=True)
class Piece:
    """A text in which nothing changes: it is under all of `kinds`, a list of words, or under none."""

    text: str
    kinds: str = ""
    id: str = ""
    link: str = ""
    note: str = ""


@dataclass(frozen=True)
class Block:
    """Some lines of a transcript: a `question`, `thought`, `action` or `observation`."""

    kind: str
    pieces: Sequence[Piece]

    @property
    def long(self) -> bool:
        """Whether it may have to be scrolled, which has to work from the keyboard as well."""
        return sum(len(piece.text) + 80 * piece.text.count("\n") for piece in self.pieces) > 2000


@dataclass(frozen=True)
class StepView:
    """One step. `title` is its action in one line, `trouble` what went wrong in it; `id` is where links lead to."""

    number: int
    id: str
    title: str
    trouble: str
    blocks: Sequence[Block]
    characters: tuple[int, int]
    finish: bool = False


@dataclass
class Sources:
    """Where the numbers of an answer came from: marks for the answer, and for the texts they came from by step."""

    answer: list[Mark] = field(default_factory=list)
    by_step: dict[int, list[Mark]] = field(default_factory=dict)


def shown(text: str) -> str:
    """A text as a page can hold it: control characters, lone surrogates and what turns the direction of writing become
    visible signs."""
    return _TURNING.sub(lambda found: f"<U+{ord(found[0]):04X}>", printable(without_surrogates(text)))


def cut(text: str, *layers: Iterable[Mark]) -> list[Piece]:
    """A text in pieces, by several layers of marks; those of one layer do not overlap."""
    sorted_layers = [sorted(layer, key=lambda mark: mark.start) for layer in layers]
    every = [mark for layer in sorted_layers for mark in layer]
    bounds = sorted({0, len(text), *(m.start for m in every), *(m.end for m in every)})
    places = [0] * len(sorted_layers)
    pieces = []
    for start, end in itertools.pairwise(bounds):
        over = []
        for number, layer in enumerate(sorted_layers):
            while places[number] < len(layer) and layer[places[number]].end <= start:
                places[number] += 1
            if places[number] < len(layer) and layer[places[number]].start <= start:
                over.append(layer[places[number]])
        pieces.append(_piece(text[start:end], start, over))
    return pieces


def sources(grounding: Grounding, run: str) -> Sources:
    """The marks for the numbers of an answer. `run` is what the ids of its page begin with."""
    found = Sources()
    ids: dict[tuple[int, int, int], Mark] = {}
    for number in grounding.numbers:
        source = number.source
        if source is None:
            found.answer.append(
                Mark(number.start, number.end, "loose", note="not found in anything the model has read")
            )
            continue
        said = source.text[source.start : source.end]
        if source.where == "inputs":  # which the page does not show
            note = f"{said} in the inputs of the prompt, {source.how}"
            found.answer.append(Mark(number.start, number.end, "sourced", note=note))
            continue
        key = source.step, source.start, source.end
        marks = found.by_step.setdefault(source.step, [])
        overlaps = any(m.start < source.end and source.start < m.end for m in marks)
        if key not in ids and not overlaps:
            id = f"{run}n{len(ids) + 1}"
            ids[key] = Mark(source.start, source.end, "source", id=id, note=f"{number.text} in the answer")
            marks.append(ids[key])
        target = ids[key].id if key in ids else f"{run}s{source.step}"
        place = f"observation of step {source.step}" if source.step else "question"
        note = f"{said} in the {place}, {source.how}"
        found.answer.append(Mark(number.start, number.end, "sourced", link=target, note=note))
    return found


def steps(trace: Trace, found: Sources, run: str) -> Iterator[StepView]:
    """The steps of a trace. Raises AuthorError."""
    for number, step in enumerate(trace.steps, 1):
        turn, result = trace.shown(number)
        blocks = [*_turn(turn, step, trace.labels)]
        if step.observation is not None:
            blocks.append(_observation(result, step, trace.labels, found.by_step.get(number, ())))
        title = shown(call(step) if step.tool is not None else _first_line(step.thought or step.text))
        sizes = len(step.text), len(step.observation or "")
        yield StepView(number, f"{run}s{number}", title, shown(trouble(step)), blocks, sizes, is_finish(step))


def question(trace: Trace, found: Sources) -> Block:
    """What stands before the first step. The marks of its numbers are those of step 0."""
    text = trace.task.removesuffix("\n")
    return Block("question", cut(text, _label(text, trace.labels.question, trace.labels), found.by_step.get(0, ())))


def trouble(step: TraceStep) -> str:
    """What went wrong in a step, in a few words, or ""."""
    how, _, what = step.outcome.partition(" ")
    words = {"raised": f"raised {what.partition(':')[0]}", "timeout": f"no answer in {what} s", "mistake": what}
    text = words.get(how, "").replace("_", " ")
    cut_off = "cut off at max_tokens" if step.finish == "length" else ""
    return ", ".join(filter(None, [text or ("no action" if step.tool is None and not step.thought else ""), cut_off]))


def _turn(text: str, step: TraceStep, labels: Labels) -> Iterator[Block]:
    """The thought and the action of a turn."""
    start = _action_start(text, step, labels)
    if start > 0:
        thought = text[:start] if start == len(text) else text[:start].removesuffix("\n")
        yield Block("thought", cut(thought, _label(thought, labels.thought, labels)))
    if start < len(text) or not text:
        yield Block("action", cut(text[start:], _label(text[start:], labels.action, labels)))


def _action_start(text: str, step: TraceStep, labels: Labels) -> int:
    if step.tool is None:
        return len(text)
    found = None if labels == ARROW else label_line(labels.action).search(text)
    return found.start() if found else 0


def _observation(lines: str, step: TraceStep, labels: Labels, marks: Sequence[Mark]) -> Block:
    """An observation behind its label. Lines that look like labels are marked in what a tool has said, not in what the
    engine has."""
    text = step.observation or ""
    behind = len(lines) - len(text)
    own = [] if step.outcome.startswith("mistake") else _like(text, labels)
    pieces = [Piece(shown(lines[:behind]), "label")] if behind else []
    return Block("observation", [*pieces, *cut(text, own, marks)])


def _like(text: str, labels: Labels) -> list[Mark]:
    words = (labels.thought, labels.action, labels.observation, labels.question)
    pattern = re.compile("^>", re.M) if labels == ARROW else label_line(*words)
    note = "the tool's output has a line that looks like a label"
    found = []
    for match in pattern.finditer(text):
        end = text.find("\n", match.end())
        found.append(Mark(match.start(), len(text) if end < 0 else end, "like", note=note))
    return found


def _label(text: str, word: str, labels: Labels) -> list[Mark]:
    if labels == ARROW:
        return [Mark(0, 1, "label")] if text.startswith(">") else []
    found = label_line(word).match(text)
    return [Mark(found.start(), found.end(), "label")] if found else []


def _piece(text: str, start: int, over: Sequence[Mark]) -> Piece:
    """A piece of what stands from `start` on; a mark that began before gives it no id again."""
    return Piece(
        shown(text),
        " ".join(mark.kind for mark in over),
        next((mark.id for mark in over if mark.id and mark.start == start), ""),
        next((mark.link for mark in over if mark.link), ""),
        shown("; ".join(mark.note for mark in over if mark.note)),
    )


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 80 else line[:76] + " ..."
