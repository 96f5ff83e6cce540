"""`react-text live` against a real llama-server: rates, intervals and paths are printed, Ctrl-C keeps what there was.

What the small model answers is not judged: a run passes when it gives any answer within its steps.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from react_text import Trace
from react_text.models.local import LlamaServer

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
FEW = [word for pair in ("temperature=0.5", "max_tokens=32", "max_steps=3") for word in ("--set", pair)]


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with LlamaServer() as running:
        yield running


@pytest.fixture
def goldens(tmp_path: Path) -> list[Path]:
    paths = []
    for name in ("debug_ci_recovery", "refund_recovery"):
        trace = Trace.load(ROOT / "traces" / f"{name}.trace")
        paths.append(tmp_path / f"{name}.trace")
        paths[-1].write_bytes(replace(trace, meta={**trace.meta, "match": "answer", "expect": {"answer": "."}}).dump())
    return paths


def live(server: LlamaServer, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "react_text", "live", *map(str, arguments), "--model", server.url, *FEW]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def test_five_runs_of_two_cases(server: LlamaServer, goldens: list[Path], tmp_path: Path) -> None:
    started = time.monotonic()
    process = live(server, *goldens, "-n", 5, "--min", 0, "--out", tmp_path / "samples")
    out, err = process.communicate(timeout=300)
    print(f"\n{err}{out}{time.monotonic() - started:.0f} s")
    assert process.returncode == 0
    assert [line[:6] in ("passed", "failed") for line in err.split("\n")[1:-1]] == [True] * 10
    rates = [line for line in out.split("\n") if line.startswith(str(tmp_path)) and "interval" in line]
    assert [" of 5 passed, 95 % interval " in line for line in rates] == [True, True]
    samples = list((tmp_path / "samples").glob("*.trace"))
    assert samples and all(Trace.load(path).steps for path in samples)


def test_ctrl_c_keeps_what_there_was(server: LlamaServer, goldens: list[Path]) -> None:
    process = live(server, goldens[0], "-n", 500, "--min", 0)
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(2)]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    print(f"\n{''.join(lines)}{err}{out}")
    assert lines[1].startswith(("passed", "failed"))
    assert process.returncode == 130
    assert "interrupted; this is what there was" in err and "Traceback" not in err
    assert " passed, 95 % interval " in out
