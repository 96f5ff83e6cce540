"""Observation -> the notes, warnings, flags, errors and counts in it, and whether a later text takes notice of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ..numbers import Known, find_numbers, number_words
from .words import content_words, count_words

_KINDS = {
    "note": r"(?:\w{1,30}_)?(?:notes?|caveats?|disclaimers?|limitations?)",
    "warning": r"(?:\w{1,30}_)?(?:warn|warnings?)|deprecated",
    "flag": r"flags?|flagged|truncated|partial|incomplete|estimated|stale|approximate",
    "error": r"(?:\w{1,30}_)?errors?|failures?|failed|exceptions?",
    "count": r"(?:(?:total|results?|rows?|match|matches)_)?count|omitted|skipped|missing|excluded|dropped|remaining",
}
_KEY = f"(?:{'|'.join(f'(?P<{kind}>{words})' for kind, words in _KINDS.items())})(?:_(?:text|message|details?|count))?"
# A key of a dict, of JSON or YAML: `'note': '...'`.
_FIELD = re.compile(
    rf"(?P<quote>[\"']){_KEY}(?P=quote)[ \t]{{0,5}}:[ \t]{{0,5}}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\[[^\]\n]*\]|[^,}\n]*)",
    re.I,
)
# What a line begins with: `Warning: ...`, `error_count = 3`.
_LINE = re.compile(rf"^[ \t*\-#\[(]{{0,8}}{_KEY}[*\])]{{0,3}}[ \t]{{0,5}}[:=]\**[ \t]*(?P<value>[^\n]+)", re.I | re.M)
_LEFT_OUT = re.compile(
    r"\b(?:\d[\d,.]* (?:\w+ ){0,4}(?:left out|omitted|not shown|skipped|hidden)|"
    r"\d[\d,.]* (?:more|further|other) (?:results?|rows?|lines?|items?|entries|records?|match(?:es)?|pages?|files?)|"
    r"(?:showing|first) \d[\d,.]* of \d[\d,.]*)[^\n]{0,60}",
    re.I,
)
_NOTHING = re.compile(r"(?:|none|null|nil|false|no|off|ok|0(?:\.0*)?|n/?a|\[\s*\]|\{\s*\}|-)[\s)\]]*", re.I)
_SET = ("true", "yes", "on", "1")
_TAKES_NOTICE = {
    "note": re.compile(r"\b(?:the|a|this|that|its|one) (?:note|caveat|disclaimer|limitation)", re.I),
    "warning": re.compile(r"\bwarn|\bdeprecat", re.I),
    "flag": re.compile(r"\bflag|\btruncat|\bpartial|\bincomplete|\bestimat|\bstale|\bapprox", re.I),
    "error": re.compile(r"\b(?:no|not|none|never|cannot|unknown|missing|fail|error|without|nothing)\w*|n't\b", re.I),
    "count": re.compile(r"\bcount|\bomit|\bskip|\bmissing|\bexclud|\bdrop|\bremain|\bleft out|\bmore\b", re.I),
}


@dataclass(frozen=True)
class Caveat:
    """A remark about a result, where it stands in the observation. `kind` is `note`, `warning`, `flag`, `error` or
    `count`."""

    kind: str
    text: str
    start: int
    end: int


def find_caveats(observation: str) -> list[Caveat]:
    """The remarks in an observation that say something, in their order: not `errors: []`, and no one-word `flag`, which
    may be that of a ship."""
    found = [*_named(_FIELD, observation), *_named(_LINE, observation)]
    found += [Caveat("count", match[0], *match.span()) for match in _LEFT_OUT.finditer(observation)]
    kept: list[Caveat] = []
    for caveat in sorted(found, key=lambda c: (c.start, -c.end)):
        if not kept or caveat.start >= kept[-1].end:
            kept.append(caveat)
    return kept


class Later:
    """What is said after an observation, made ready for the question whether it takes notice of a caveat."""

    def __init__(self, text: str) -> None:
        self._kinds = {kind for kind, pattern in _TAKES_NOTICE.items() if pattern.search(text)}
        self._words = content_words(text)
        self._numbers = Known([*find_numbers(text), *number_words(text)])

    def mentions(self, caveat: Caveat, said: Counter[str]) -> bool:
        """Whether it names the kind of the caveat, one of its numbers, or a word of it. `said` counts the words so far,
        the caveat's among them: a word that stands elsewhere too proves nothing, unless there is no other."""
        if caveat.kind in self._kinds:
            return True
        own = count_words(caveat.text)
        fresh = {word for word, times in own.items() if said[word] <= times}
        if (fresh or own.keys()) & self._words:
            return True
        return any(number in self._numbers for number in find_numbers(caveat.text))


def _named(pattern: re.Pattern[str], observation: str) -> Iterator[Caveat]:
    for match in pattern.finditer(observation):
        kind = next(kind for kind in _KINDS if match[kind])
        value = match["value"].strip().strip("\"'")
        word = re.fullmatch(r"\w+", value) is not None
        if not _NOTHING.fullmatch(value) and not (kind == "flag" and word and value.lower() not in _SET):
            yield Caveat(kind, value if content_words(value) and value.lower() not in _SET else match[0], *match.span())
