"""The three families of errors: what the model reads, what the author reads, what the server did.

ReactTextError
├── Mistake               the model's mistake or a tool's failure: becomes an observation, never leaves the loop
│   └── ParseError        the turn holds no action that can be read
├── AuthorError           a prompt, tool, trace or setting is wrong: `path:line: message`, exit code 2
└── ServerError           the model server failed: the run ends as llm_error
    ├── ServerTimeout     it did not answer in time: llm_timeout
    └── ContextOverflow   the prompt does not fit its context: context_overflow
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class ReactTextError(Exception):
    """Base of every exception that react_text raises on purpose."""


class Mistake(ReactTextError):
    """Something the model can be told about.

    `message` names the macro of observe.j2 that words it and `fields` are what that macro is given; `fault` is the
    key under which a prompt's `faults:` decides whether the run goes on (`observe`) or ends (`stop`), and
    `stop_reason` is what the result says when it ends.
    """

    def __init__(self, message: str, *, fault: str, stop_reason: str, **fields: Any) -> None:
        detail = ", ".join(f"{key}={value!r}" for key, value in fields.items() if value)
        super().__init__(f"{message}({detail})")
        self.message = message
        self.fault = fault
        self.stop_reason = stop_reason
        self.fields = fields


class ParseError(Mistake):
    """The turn holds no action that can be read.

    `kind` says why (`no_action`, `truncated`, `parentheses`, ...); `text` is what is kept of the turn in the
    transcript; `correction` is the action the model seems to have meant, as `tool[arguments]`, or "".
    """

    def __init__(self, kind: str, *, text: str, correction: str = "", **fields: Any) -> None:
        super().__init__(
            kind, fault="invalid_action", stop_reason=f"invalid_action:{kind}", correction=correction, **fields
        )
        self.kind = kind
        self.text = text
        self.correction = correction


class AuthorError(ReactTextError):
    """A file or setting that its author has to change. Its text is `path:line: message`, as editors understand it."""

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None) -> None:
        self.message = message
        self.path = None if path is None else str(path)
        self.line = line
        place = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(place + message)


class ServerError(ReactTextError):
    """The model server failed or refused; the text names the URL and what can be done. `status` is the HTTP status of a
    refusal."""

    stop_reason = "llm_error"
    status: int | None = None


class ServerTimeout(ServerError):
    """The model server did not answer within the time allowed."""

    stop_reason = "llm_timeout"


SERVER_FAILED = (ServerError.stop_reason, ServerTimeout.stop_reason)
"""Stop reasons of a run whose server is to blame: nothing is wrong with it that going on later would not mend."""


class ContextOverflow(ServerError):
    """The prompt does not fit the model's context. Sizes are in tokens, None where the server did not tell."""

    stop_reason = "context_overflow"

    def __init__(self, message: str, *, prompt_tokens: int | None = None, context_size: int | None = None) -> None:
        super().__init__(message)
        self.prompt_tokens = prompt_tokens
        self.context_size = context_size


def no_such_file(path: str | Path) -> AuthorError:
    """The error for a path where nothing is, with the nearest name beside it."""
    path = Path(path)
    if path.is_symlink():
        return AuthorError("this link leads nowhere", path=path)
    return AuthorError(f"no such file{did_you_mean(path.name, (p.name for p in path.parent.glob('*')))}", path=path)


def without_password(url: str) -> str:
    """A URL, or what was meant to be one, as messages may show it."""
    return re.sub(r"(?<=//)\S*@", "***@", url)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for the known word closest to `word`, or "" when none is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""
