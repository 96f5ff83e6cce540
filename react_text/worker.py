"""A call of a tool -> its result, or nothing once its time is over: a call that hangs is left behind in its thread."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, ClassVar

_MOST_IDLE = 8


class Worker:
    """A daemon thread that runs one call at a time, so that a call that hangs can be left behind. Idle ones are kept:
    starting a thread costs more than most calls."""

    _idle: ClassVar[list[Worker]] = []

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True, name="react-text tool").start()

    @classmethod
    def take(cls) -> Worker:
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(self)
        else:
            self._jobs.put(None)

    def run(self, job: Callable[[], Any], timeout: float | None) -> tuple[Any, BaseException | None]:
        """(result, None) or (None, what was raised). Raises TimeoutError after `timeout` seconds; the worker must then
        not be used again."""
        reply: queue.SimpleQueue[Any] = queue.SimpleQueue()
        context = contextvars.copy_context()
        self._jobs.put((lambda: context.run(job), reply))
        try:
            return reply.get(timeout=timeout)  # type: ignore[no-any-return]
        except BaseException as error:
            self._jobs.put(None)
            if isinstance(error, queue.Empty):
                raise TimeoutError from None
            raise

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, reply = job
            try:
                reply.put((work(), None))
            except BaseException as error:  # handed to the caller's thread, which decides
                reply.put((None, error))
            del work, reply, job


if hasattr(os, "register_at_fork"):  # threads do not survive a fork, so that a child may not wait for them
    os.register_at_fork(after_in_child=Worker._idle.clear)
