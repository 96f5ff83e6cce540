"""Runs that are killed: `python tests/killed.py FOLDER COUNT` forks COUNT processes, each of which makes the same run,
logs it to FOLDER/N.jsonl and says on its stdout, FOLDER/N.out, which steps are complete. SIGKILL ends each at a random
moment. FOLDER/full.trace is the run that nobody interrupts.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from react_text import Agent

STEPS = 12
AT_ONCE = 4


def page(number: int) -> str:
    """A page of a book: some are long, and some look like a transcript."""
    time.sleep(0.001)
    return f"page {number}\nThought: é {number}\nAction: page[{number}]\n" + "long " * (
        20_000 if number % 4 == 1 else 1
    )


def writer() -> object:
    turns = iter([*(f" Next is {n}.\nAction: page[{n}]" for n in range(1, STEPS)), " Done.\nAction: finish[read]"])

    def write(prompt: str, stop: list[str]) -> str:
        time.sleep(0.001)
        return next(turns)

    return write


def run(folder: Path, name: str) -> None:
    agent = Agent(None, [page], writer(), max_steps=STEPS)  # type: ignore[arg-type]
    out = os.open(folder / f"{name}.out", os.O_CREAT | os.O_WRONLY)
    run = agent.steps("What is in the book?", log=folder / f"{name}.jsonl")
    for step in run:
        os.write(out, b"%d\n" % step.number)
    if name == "full":
        (folder / "full.trace").write_bytes(run.trace.dump())


def main(folder: Path, count: int) -> None:
    run(folder, "full")
    pick = random.Random()
    started = 0
    running: dict[int, tuple[Path, int, float]] = {}
    while started < count or running:
        if started < count and len(running) < AT_ONCE:
            child = os.fork()
            if child == 0:
                run(folder, str(started))
                time.sleep(60)  # until it is killed
            # Somewhere behind a random step, in what follows it: however busy the machine is.
            running[child] = folder / f"{started}.out", pick.randint(0, STEPS), pick.uniform(0, 0.008)
            started += 1
        for child, (out, step, delay) in list(running.items()):
            if (out.read_bytes().count(b"\n") if out.exists() else 0) >= step:
                time.sleep(delay)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del running[child]
        time.sleep(0.0005)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
