"""Code -> the same code without a network: what a replay runs must not depend on the world."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from .errors import ReactTextError

_EVENTS = frozenset(
    ["socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.sendto"]
)


class NetworkUsed(ReactTextError):
    """Raised in the code that tried to use the network."""


@dataclass
class Offline:
    """A stretch of code without a network. `where` is what is going on, for the report; `attempts` what was tried: code
    may swallow the exception, but not this."""

    where: str = ""
    attempts: list[str] = field(default_factory=list)


# A context variable, and not a global one: other threads of a test run may use the network as they like, while the
# worker threads that the engine starts for tools inherit it.
_current: ContextVar[Offline | None] = ContextVar("offline", default=None)
_installed = False


@contextmanager
def offline(where: str) -> Iterator[Offline]:
    """Within it every use of the network raises NetworkUsed and is noted."""
    global _installed
    if not _installed:  # only when first needed: an audit hook cannot be taken away again
        _installed = True
        sys.addaudithook(_guard)
    stretch = Offline(where)
    token = _current.set(stretch)
    try:
        yield stretch
    finally:
        _current.reset(token)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    stretch = _current.get()
    if stretch is None:
        return
    target = arguments[0] if event != "socket.connect" and event != "socket.sendto" else arguments[1]
    host = ":".join(map(str, target[:2])) if isinstance(target, tuple) else str(target)
    if event == "socket.getaddrinfo" and arguments[1] is not None:
        host += f":{arguments[1]}"
    stretch.attempts.append(f"{stretch.where} tried to reach {host}")
    raise NetworkUsed(f"no network in a replay ({host})")
