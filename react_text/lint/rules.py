"""The table of rules: what each code means, how much it weighs, what to do about it, and the checks that find it.

Hundreds: RT1 files, RT2 turns, RT3 tools, RT4 what a trace says and where it has that from, RT5 prompts, RT6 the format
that a prompt teaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import facts, fewshots, files, prompts, turns
from .context import Found

ERROR, WARNING, INFO = "error", "warning", "info"

Check = Callable[[Any], Iterable[Found]]


@dataclass(frozen=True)
class Rule:
    """One rule. `trace` and `prompt` are its checks of these files; `unloaded` says that it can look at a file that
    cannot be loaded."""

    code: str
    severity: str
    title: str
    help: str
    trace: Check | None = None
    prompt: Check | None = None
    unloaded: bool = False


def _file_rule(code: str, severity: str, title: str, help: str, check: Check, **checks: Check) -> Rule:
    return Rule(code, severity, title, help, **{"trace": check, "prompt": check, **checks}, unloaded=True)


EXPECTED = Rule(
    "RT109", ERROR, "a code that `lint: {expect: [...]}` promises is not found",
    "correct the file or the list: a run that is wrong on purpose has to prove its rule",
)  # fmt: skip

RULES = (
    _file_rule(
        "RT101", ERROR, "not UTF-8, or a byte order mark",
        "save the file as UTF-8 without a byte order mark", files.encoding,
    ),
    _file_rule(
        "RT102", ERROR, "every line ends in CRLF",
        "put `*.trace -text` into .gitattributes, so that git does not change line ends", files.crlf,
    ),
    _file_rule(
        "RT103", INFO, "mixed line ends: a carriage return is content",
        "nothing to do if the tool wrote it; otherwise save the file with plain line ends", files.mixed_line_ends,
    ),
    _file_rule(
        "RT104", ERROR, "a span does not end at a label, or names what is not there",
        "count the lines again: a span goes from its label to the next turn", files.not_loaded("RT104"),
    ),
    Rule(
        "RT105", ERROR, "a span that is not needed, or keys out of their order",
        "leave out spans that labels make clear, and keep the order of the keys", files.canonical,
    ),
    _file_rule(
        "RT106", ERROR, "unknown, repeated or mistyped key of the front matter",
        "README.md lists the keys", files.front_matter,
    ),
    _file_rule(
        "RT107", ERROR, "git conflict markers",
        "resolve the conflict; markers that a tool returned need a span", files.not_loaded("RT107"),
        prompt=files.conflict_in_prompt,
    ),
    Rule(
        "RT108", WARNING, "`eol` disagrees with the end of the file",
        "end the file in a newline; `eol: none` says that it is not the body's", files.end_of_file,
    ),
    EXPECTED,
    Rule(
        "RT201", ERROR, "a turn without an action",
        "write one line `Action: tool[arguments]`, or let the engine's answer to the mistake follow", turns.no_action,
    ),
    Rule(
        "RT202", ERROR, "a second action in a turn, or text behind the action",
        "the model is stopped at the first closing bracket: give each action its own turn", turns.second_action,
    ),
    Rule(
        "RT203", ERROR, "the observation of an action is missing",
        "put `Observation:` and what the tool returned behind the action", turns.no_observation,
    ),
    Rule(
        "RT204", ERROR, "text after the finish action",
        "cut the trace behind the bracket of finish", turns.after_finish,
    ),
    Rule(
        "RT205", WARNING, "a label that is misspelt, bold, indented or without its colon",
        "models copy what they see: write labels exactly as the engine does", turns.misspelt_label,
    ),
    Rule(
        "RT206", WARNING, "a gap or a restart in numbered labels",
        "number the turns from 1, all labels of a turn alike", turns.numbering,
    ),
    Rule(
        "RT207", WARNING, "the blank behind `Thought:` differs from that of the other examples",
        "use one blank in all examples: it is part of the first token that the model writes",
        prompt=fewshots.blank_behind_cue,
    ),
    Rule(
        "RT208", WARNING, "a stop string inside a turn",
        "reword the turn: generation would have ended there", turns.stop_inside,
    ),
    Rule(
        "RT301", ERROR, "a tool that is not in `tools`, or cannot be loaded",
        "name a tool of the prompt, or let the engine's answer to the mistake follow", turns.unknown_tool,
        prompts.tools_not_loadable,
    ),
    Rule(
        "RT302", ERROR, "arguments that do not fit the tool's signature",
        "write them as the usage line says, or let the engine's answer to the mistake follow", turns.bad_arguments,
    ),
    Rule(
        "RT303", ERROR, "a bracket makes the end of the arguments ambiguous",
        "balance the brackets, or put the text that holds one in quotes", turns.ambiguous_bracket,
    ),
    Rule(
        "RT304", WARNING, "an error of the engine in other words than today's",
        "record the run again, so that the model learns the words it will read", turns.old_wording,
    ),
    Rule(
        "RT305", WARNING, "finish gives another answer than `answer:`",
        "make the two the same", turns.other_answer,
    ),
    Rule(
        "RT401", WARNING, "an answer of which nothing is in any observation",
        "let a tool return what the answer says: an example without that teaches to invent", facts.ungrounded_answer,
    ),
    Rule(
        "RT402", WARNING, "an argument that nothing before it leads to",
        "let the question, the rules or an observation mention it", facts.invisible_argument,
    ),
    Rule(
        "RT403", WARNING, "the same action again",
        "leave the repeat out: the engine does not run it", facts.repeated_action,
    ),
    Rule(
        "RT404", WARNING, "all examples have the same number of steps or the same first tool",
        "vary the examples: models copy their length and their first move", prompt=fewshots.monotonous,
    ),
    Rule(
        "RT405", WARNING, "a tool that no example uses",
        "add an example, or take the tool from `allow`", prompt=fewshots.unused_tool,
    ),
    Rule(
        "RT406", WARNING, "no example recovers from an error",
        "add a trace in which an error observation is followed by the right call", prompt=fewshots.no_recovery,
    ),
    Rule(
        "RT407", WARNING, "an example asks the question of the test",
        "take another example, or `pick:`, which never takes the same question", fewshots.leaked_test, fewshots.leak,
    ),
    Rule(
        "RT408", INFO, "one observation is more than half of the example",
        "a shorter result leaves more of the context to the run", facts.large_observation,
    ),
    Rule(
        "RT409", INFO, "an observation written by hand (`hand:`)",
        "let the real tool fill it", facts.by_hand,
    ),
    Rule(
        "RT410", WARNING, "a note, warning, flag, error or count that no later thought or answer mentions",
        "let a thought say what it means for the result, and act on it", facts.unread_caveat,
    ),
    Rule(
        "RT411", WARNING, "arithmetic in the head: a number that is in no earlier observation and not in the question",
        "let a tool work it out", facts.arithmetic_in_the_head,
    ),
    Rule(
        "RT412", WARNING, "tool output with a line that looks like a label",
        "let the tool return something else, or set `observations: guarded`", facts.label_like,
    ),
    Rule(
        "RT413", WARNING, "a thought of an example that does not begin with the `prefill` of the prompt",
        "begin it so: the model goes on as the examples do", prompt=fewshots.other_beginning,
    ),
    Rule(
        "RT501", ERROR, "undefined variable",
        "declare it under `inputs:`, or correct its name", prompt=prompts.undefined,
    ),
    Rule(
        "RT502", WARNING, "an input that the template does not use",
        "use it or take it out", prompt=prompts.unused_input,
    ),
    Rule(
        "RT503", ERROR, "a trace pulled in by a template tag instead of as a value",
        "list it under `examples:`: a tag renders what looks like Jinja in it",
        prompt=prompts.bad_reference("RT503"), unloaded=True,
    ),
    Rule(
        "RT504", WARNING, "a value with a label at the start of a line",
        "indent such lines: the model cannot tell them from the protocol", prompts.label_in_trace_value,
        prompts.label_in_value,
    ),
    Rule(
        "RT505", WARNING, "the template does not end in the cue",
        "end the template in {{ cue }}, and write nothing behind it", prompt=prompts.end_of_prompt,
    ),
    Rule(
        "RT506", WARNING, "doubled or missing newline between examples",
        "insert each example as it is, with one empty line between two of them", prompt=fewshots.gaps_between,
    ),
    Rule(
        "RT507", ERROR, "a template that is missing, or includes itself",
        "correct the name; templates are looked for beside the prompt, then in the package",
        prompt=prompts.bad_reference("RT507"), unloaded=True,
    ),
    Rule(
        "RT508", WARNING, "an option silently replaces what the engine sends",
        "use the key that is meant for it: stop strings go to `stop:`", prompt=prompts.overrides,
    ),
    Rule(
        "RT509", WARNING, "the prompt is not append-only",
        "put what changes from step to step behind the transcript, so that the server's cache holds",
        prompt=prompts.not_append_only,
    ),
    Rule(
        "RT601", ERROR, "an example turn that the grammar of the tools rejects",
        "write the action as the tool's usage line says", prompt=fewshots.rejected_by_grammar,
    ),
    Rule(
        "RT602", WARNING, "the instructions show a format that the parser rejects",
        "show actions as `Action: tool[arguments]`", prompt=prompts.rejected_format,
    ),
    Rule(
        "RT603", WARNING, "a grammar that the configured server does not take",
        "set `constrain: off`, or `model` in setup.cfg to a server that takes one", prompt=prompts.no_such_grammar,
    ),
    Rule(
        "RT604", WARNING, "a stop string that does not begin a line, or is not sent",
        'begin it with a newline ("\\n..."), and keep to four in all', prompt=prompts.stop_strings,
    ),
)  # fmt: skip
