"""The rules about files: encoding, line ends, spans, keys of the front matter (RT1xx)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..errors import AuthorError
from ..fmt import with_needed_spans
from ..trace import KEYS
from .context import File, Found, PromptFile, TraceFile

_BOM = b"\xef\xbb\xbf"


def encoding(file: File) -> Iterator[Found]:
    """RT101"""
    if file.data.startswith(_BOM):
        yield Found(1, 1, "the file begins with a byte order mark")
    yield from not_loaded("RT101")(file)


def crlf(file: File) -> Iterator[Found]:
    """RT102"""
    line_ends = file.data.count(b"\n")
    if line_ends and file.data.count(b"\r\n") == line_ends:
        yield Found(1, file.data.index(b"\r") + 1, f"every line ends in CRLF ({line_ends} lines)")


def mixed_line_ends(file: File) -> Iterator[Found]:
    """RT103"""
    returns = file.data.count(b"\r")
    if returns and not (returns == file.data.count(b"\r\n") == file.data.count(b"\n")):
        at = file.data.index(b"\r")
        before = file.data[:at].rpartition(b"\n")[2]
        line = file.data.count(b"\n", 0, at) + 1
        column = len(before.decode("utf-8", "replace")) + 1
        yield Found(line, column, "a carriage return among plain line ends is content")


def not_loaded(code: str) -> Callable[[File], Iterator[Found]]:
    """The check of a rule that is broken when a file cannot be loaded for this reason: RT104, RT106, RT107."""

    def check(file: File) -> Iterator[Found]:
        if file.problem and file.problem[0] == code:
            error = file.problem[1]
            yield Found(error.line or 1, 1, error.message)

    return check


def canonical(file: TraceFile) -> Iterator[Found]:
    """RT105"""
    needed, given = with_needed_spans(file.trace).spans, file.trace.spans
    if given.task is not None and needed.task is None:
        yield file.at_key("head", "head is not needed: no line of the question looks like a label")
    for key, extents, wanted in (
        ("turns", given.turns, needed.turns),
        ("spans", given.observations, needed.observations),
    ):
        for number in sorted(extents.keys() - wanted.keys()):
            yield file.at_key(key, f"{key}: {number} is not needed: labels alone tell where it ends")
    order = list(file.head.nodes)
    for key, wanted_key in zip(order, sorted(order, key=KEYS.index), strict=True):
        if key != wanted_key:
            yield file.at_key(key, f"{key} stands where {wanted_key} belongs: keys have one order")
            return


def conflict_in_prompt(file: PromptFile) -> Iterator[Found]:
    """RT107"""
    if file.conflict is not None:
        yield Found(file.conflict + 1, 1, "git conflict markers")


def end_of_file(file: TraceFile) -> Iterator[Found]:
    """RT108"""
    last = file.text.count("\n") + (not file.text.endswith("\n"))
    if not file.text.endswith("\n"):
        yield Found(last, len(file.text.rpartition("\n")[2]) + 1, "the file does not end in a newline")
    elif file.head.text("eol") == "none" and file.trace.body.endswith("\n"):
        yield file.at_key("eol", "eol: none, but the body ends in a newline of its own")


def front_matter(file: File) -> Iterator[Found]:
    """RT106"""
    yield from not_loaded("RT106")(file)
    for key, codes in file.suppression.items():
        for code in codes:
            if not re.fullmatch("RT[0-9]{0,3}", code):
                yield file.at_key("lint", f"lint: {key}: {code!r} is no code; codes look like RT402")
    if isinstance(file, TraceFile) and file.loaded:
        for key in ("inputs", "settings"):
            if file.trace.meta.get(key) and not file.mapping(key):
                yield file.at_key(key, f"{key} must be a mapping of names to values")
        if isinstance(file.own_settings, AuthorError):
            yield file.at_key("settings", file.own_settings.message)
