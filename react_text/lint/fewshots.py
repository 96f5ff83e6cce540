"""The rules about the examples of a prompt taken together, and about traces that a prompt gives away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ..examples import read_example, same_question
from ..grammar import Grammar
from ..prompt import OpenPrompt
from .caveats import find_caveats
from .context import Found, PromptFile, TraceFile
from .views import View


def blank_behind_cue(file: PromptFile) -> Iterator[Found]:
    """RT207"""
    gaps: list[tuple[TraceFile, View, str]] = []
    for example in file.examples:
        cue = re.compile(rf"{re.escape(example.labels.thought)}(?: [0-9]+)?:([^\S\n]*)(?=\S)")
        for view in example.views:
            if match := cue.match(view.step.text):
                gaps.append((example, view, match[1]))
    usual = Counter(gap for _, _, gap in gaps).most_common(1)
    for example, view, gap in gaps:
        if gap != usual[0][0]:
            line = example.trace.line_of(view.number)
            message = f"{len(gap)} blanks behind this label, {len(usual[0][0])} in most examples"
            yield Found(line, view.step.text.index(":") + 2, message, example.path)


def monotonous(file: PromptFile) -> Iterator[Found]:
    """RT404"""
    runs = [example.views for example in file.examples if example.views]
    if len(runs) < 2 or not file.tools:  # without tools there is one turn
        return
    if len({len(views) for views in runs}) == 1:
        yield file.at_key("examples", f"all {len(runs)} examples have {len(runs[0])} steps")
    first = {views[0].step.tool for views in runs}
    if len(first) == 1 and len(file.tools or ()) > 1:
        yield file.at_key("examples", f"all {len(runs)} examples begin with {first.pop()}")


def unused_tool(file: PromptFile) -> Iterator[Found]:
    """RT405"""
    tools = file.tools
    if not file.examples or tools is None:
        return
    used = {tools.resolve(view.step.tool) for example in file.examples for view in example.views if view.step.tool}
    for name in tools:
        if name not in used:
            yield file.at_key("examples", f"no example uses {name}")


def no_recovery(file: PromptFile) -> Iterator[Found]:
    """RT406"""
    if file.examples and file.tools and not any(_recovers(file, example) for example in file.examples):
        yield file.at_key("examples", "no example goes on after an error")


def other_beginning(file: PromptFile) -> Iterator[Found]:
    """RT413"""
    if not file.prompt.settings.prefill or not isinstance(file.opened, OpenPrompt):
        return
    for example in file.examples:
        labels, prefill = example.labels, file.open([""], example.question).prefill
        for view in example.views:
            if not view.step.text.startswith(labels.cue(labels.thought, view.number, prefill)):
                message = f"this thought does not begin like those of the model: {labels.thought}: {prefill}"
                yield Found(example.trace.line_of(view.number), 1, message, example.path)
                break


def leak(file: PromptFile) -> Iterator[Found]:
    """RT407"""
    if file.prompt.question is None or file.prompt.pick is not None:
        return
    for example in file.examples:
        if _asks_the_same(example, file.prompt.question):
            yield file.at_key("question", f"{example.path.name} asks the same and shows the answer")


def leaked_test(file: TraceFile) -> Iterator[Found]:
    """RT407"""
    prompt = file.prompt
    if prompt is None or prompt.prompt.pick is not None:
        return
    for example in prompt.examples:
        if example.path.resolve() != file.path.resolve() and _asks_the_same(example, file.question):
            yield Found(file.first_line, 1, f"{example.path.name}, an example of {prompt.path.name}, asks the same")


def gaps_between(file: PromptFile) -> Iterator[Found]:
    """RT506"""
    if not isinstance(file.opened, OpenPrompt):
        return
    bodies = [read_example(example.path) for example in file.examples]
    head = file.open(bodies).head
    end = 0
    for number, (example, body) in enumerate(zip(file.examples, bodies, strict=True)):
        start = head.find(body.strip("\n"), end)
        if start < 0:
            return  # the template does not insert them as they are
        newlines = head.count("\n", end, start) if head[end:start].strip() == "" else 2
        if number and newlines not in (1, 2):
            what = "no newline" if newlines < 1 else f"{newlines} newlines"
            names = f"{file.examples[number - 1].path.name} and {example.path.name}"
            yield file.at_key("examples", f"{what} between {names}")
            return
        end = start + len(body.strip("\n"))


def rejected_by_grammar(file: PromptFile) -> Iterator[Found]:
    """RT601"""
    if file.tools is None:
        return
    grammar = Grammar(file.tools, file.prompt.settings.labels)
    for example in file.examples:
        for view in example.views_with(file.all_tools):
            # A mistake that the engine has answered is there to be seen.
            if not view.notice and (part := _rejected_part(grammar, view)):
                offset = view.turn.action.tool_span[0] if view.turn and part == "action" else 0
                line, column = example.position(view, offset)
                message = f"a grammar made from the tools of {file.path.name} rejects this {part}"
                yield Found(line, column, message, example.path)


def _asks_the_same(example: TraceFile, question: str) -> bool:
    """Whether an example gives the answer to a question away. The same question about other variables is another."""
    return same_question(example.question, question) and not example.trace.meta.get("inputs")


def _recovers(file: PromptFile, example: TraceFile) -> bool:
    """Whether a run goes on after an error of the engine or of a tool."""
    views = example.views_with(file.all_tools)
    return any(
        view.notice or any(caveat.kind == "error" for caveat in find_caveats(view.step.observation or ""))
        for view in views[:-1]
    )


def _rejected_part(grammar: Grammar, view: View) -> str:
    """What of a turn a constrained model could not have written: its `turn` as a whole, its `action`, or nothing."""
    text, labels = view.step.text, grammar.labels
    for word in (labels.thought, labels.action):
        cue = labels.cue(word, view.number)
        constraint = grammar.after(cue, view.number)
        if constraint and text.startswith(cue):
            break
    else:
        return "turn"
    if constraint.accepts(text[len(cue) :]):
        return ""
    action = labels.cue(labels.action, view.number)
    call, at = grammar.after(action, view.number), text.rfind(f"\n{action}") + 1
    return "turn" if call and call.accepts(text[at + len(action) :]) else "action"
