"""A trace -> the same trace without what changes from run to run, or an error where it would give a secret away."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import AuthorError, did_you_mean
from .trace import Trace

# Where a pattern has a group, the group is what is replaced: a port without its host.
BUILT_IN = {
    "date": r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?",
    "uuid": r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    "path": r"(?<![\w/.:<])/[\w.+@~-]+(?:/[\w.+@~-]+)+/?|\b[A-Za-z]:\\[\w.+@~\\-]+",
    "port": r"(?:\blocalhost|\b\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]{2,39}\]):(\d{2,5})\b",
    "address": r"\b0x[0-9a-fA-F]{4,16}\b",
}

_KEY_SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----",
    "an API key (sk-...)": r"\bsk-[A-Za-z0-9_-]{20,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
_SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.I)
_SHORTEST_SECRET = 8
_OF_THE_RUN = ("answer", "completions", "outcomes")


def redaction_rules(given: Any) -> dict[str, re.Pattern[str]]:
    """The patterns of a `redact:` key: built-in names, or a mapping of own names to patterns. Raises AuthorError."""
    if isinstance(given, str):
        given = [given]
    named = given if isinstance(given, Mapping) else dict.fromkeys(given or (), True)
    rules = {}
    for name, pattern in named.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z_-]*", str(name)):
            raise AuthorError(f"redact: {name!r} must be a word, it becomes <{name}1>")
        if pattern is True or pattern is None:
            if name not in BUILT_IN:
                known = ", ".join(BUILT_IN)
                raise AuthorError(f"redact: {name!r} is not built in{did_you_mean(name, BUILT_IN)}; there are {known}")
            pattern = BUILT_IN[name]
        try:
            rules[name] = re.compile(str(pattern))
        except re.error as error:
            raise AuthorError(f"redact: {name}: {error} in {pattern!r}") from None
    return rules


def redacted(trace: Trace, rules: Mapping[str, re.Pattern[str]]) -> Trace:
    """The trace with `<name1>`, `<name2>`, ... for what the rules match: equal values get equal numbers, wherever they
    stand. Line by line, so that the lines of the trace stay as many as they were."""
    if not rules:
        return trace
    numbers: dict[str, dict[str, int]] = {name: {} for name in rules}
    placeholder = f"<(?:{'|'.join(map(re.escape, rules))})[0-9]+>"
    # A placeholder that is already there counts as a value of its own, so that redacting twice changes nothing.
    patterns = {n: re.compile(f"(?:{rule.pattern})|(?P<given_>{placeholder})", rule.flags) for n, rule in rules.items()}

    def clean(text: str) -> str:
        for name, pattern in patterns.items():
            text = pattern.sub(_numbering(name, numbers[name]), text)
        return text

    body = "\n".join(map(clean, trace.body.split("\n")))
    meta = {key: _deep(value, clean) if key in _OF_THE_RUN else value for key, value in trace.meta.items()}
    return dataclasses.replace(trace, body=body, meta=meta)


def _deep(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep(item, clean) for key, item in value.items()}
    return clean(value) if isinstance(value, str) else value


def _numbering(name: str, numbers: dict[str, int]) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        if match["given_"] and match["given_"].rstrip("0123456789>") != f"<{name}":
            return match[0]
        group = 1 if match.re.groups > 1 and match[1] is not None and not match["given_"] else 0
        number = numbers.setdefault(match[group], len(numbers) + 1)
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return f"{match[0][:start]}<{name}{number}>{match[0][end:]}"

    return replaced


def refuse_secrets(data: bytes, path: Path) -> None:
    """Raises AuthorError when a file would hold a secret: it is not written. Masking it unnoticed would be a trace that
    no run has made. The secret itself is never shown."""
    text = data.decode("utf-8", "replace")
    for what, found in _secrets(text):
        line = text.count("\n", 0, found) + 1
        raise AuthorError(f"this line would hold {what}; the file was not written", path=path, line=line)


def _secrets(text: str) -> Iterator[tuple[str, int]]:
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET and (found := text.find(value)) >= 0:
            yield f"the value of the environment variable {name}", found
    for what, shape in _KEY_SHAPES.items():
        if match := re.search(shape, text):
            yield f"what looks like {what}", match.start()
