"""A command -> the same command, ended when it ends or when the process that wanted it is gone.

A program of its own, started by path, which imports nothing of the package. Its standard input is a pipe that nobody
writes to: the system closes the other end whenever and however its owner goes, `kill -9` included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

PATIENCE = 5.0
"""Seconds that the command has to end by itself when it is asked to."""


def main(command: list[str]) -> int:
    """Run `command` and return its exit code, 128 and the number of the signal where one ended it, as shells do."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_follow if os.name == "posix" else None)

    def stop(*_: object) -> None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        process.kill()

    def watch() -> None:
        while os.read(0, 1):
            pass
        stop()

    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=stop).start())
    threading.Thread(target=watch, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _follow() -> None:
    """Have Linux end the command should this program be killed itself."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
