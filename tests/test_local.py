"""`local`: a llama-server of our own, there once it is wanted, gone when its process is, whatever ended that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from react_text import AuthorError, Options, ServerError, open_model
from react_text.cli import main
from react_text.models import local, watchdog
from react_text.models.local import LlamaServer, find_model, find_server, shared_server

ROOT = Path(__file__).parents[1]


class Fake:
    """The fake llama-server: its folder, and what was started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "tiny.gguf"
        self.model.write_bytes(b"GGUF and more")
        self.mode("")

    def mode(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    @property
    def starts(self) -> list[dict[str, Any]]:
        file = self.folder / "starts"
        return [json.loads(line) for line in file.read_text().split("\n") if line] if file.exists() else []

    def arguments(self, number: int = -1) -> dict[str, str]:
        """The options of one start, by name."""
        given = self.starts[number]["arguments"]
        return dict(zip(given[::2], given[1::2], strict=False))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n" + (ROOT / "tests" / "llama_server.py").read_text("utf-8"), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("LLAMA_SERVER", str(program))
    monkeypatch.setenv("FAKE_LLAMA", str(tmp_path))
    monkeypatch.setattr(local, "_running", running := dict[str, LlamaServer]())
    yield Fake(tmp_path)
    for server in running.values():
        server.close()


def alive(pid: int) -> bool:
    """Whether a process is there; a zombie, which only waits to be reaped, is not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def eventually(true: Callable[[], bool], seconds: float = 8.0) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def test_a_model_that_is_ready_when_it_is_there(fake: Fake) -> None:
    model = open_model(f"local:{fake.model}")
    done = model.complete("Question: x\nThought:", stop=[], options=Options())
    assert (done.text, model.name) == (" Known.\nAction: finish[done]", "tiny")
    given = fake.arguments()
    assert given["--host"] == "127.0.0.1" and given["-m"] == str(fake.model)
    assert (given["-c"], given["-np"]) == ("4096", "1") and int(given["-t"]) >= 1


def test_context_and_threads(fake: Fake) -> None:
    open_model(f"local:{fake.model}?ctx=8192&threads=3")
    assert (fake.arguments()["-c"], fake.arguments()["-t"]) == ("8192", "3")


def test_local_alone_takes_the_model_of_the_extra(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    (fake.folder / "tiny_models.py").write_text(f"def assemble():\n    return {str(fake.model)!r}\n")
    monkeypatch.syspath_prepend(fake.folder)
    monkeypatch.setattr(local, "_MODEL_PACKAGE", "tiny_models")
    open_model("local?ctx=512")
    assert (fake.arguments()["-m"], fake.arguments()["-c"]) == (str(fake.model), "512")
    monkeypatch.setattr(local, "_MODEL_PACKAGE", "no_such_models")
    with pytest.raises(ServerError, match=r"give local:FILE.gguf, or install react-text\[local\]"):
        find_model()


def test_one_server_for_a_process_and_a_file_however_many_ask(fake: Fake) -> None:
    other = fake.folder / "other.gguf"
    other.write_bytes(b"GGUF")
    with ThreadPoolExecutor(6) as pool:
        urls = list(pool.map(lambda _: shared_server(str(fake.model)).url, range(6)))
    assert len(set(urls)) == len(fake.starts) == 1
    assert shared_server(str(other)).url != urls[0]
    assert shared_server(f"{fake.model}?ctx=512").url != urls[0]
    assert len(fake.starts) == 3


def test_a_server_that_has_died_is_started_again(fake: Fake) -> None:
    first = shared_server(str(fake.model))
    os.kill(fake.starts[0]["pid"], signal.SIGKILL)
    assert eventually(lambda: not first.alive)
    assert shared_server(str(fake.model)).alive and len(fake.starts) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("local:none.gguf", "none.gguf: No such file"),
        ("local:.", "Is a directory"),
        (f"local:{__file__}", "this is no GGUF file"),
        ("local:x.gguf?context=1", "unknown setting 'context'"),
        ("local?thread=1", "unknown setting 'thread' (did you mean threads?)"),
        ("local?ctx=0", "ctx must be a whole number above 0, not '0'"),
        ("local?ctx=", "ctx must be"),
        ("local?threads=-1", "threads must be"),
        ("locale:x", "is not understood (did you mean local?)"),
    ],
)
def test_a_spec_that_is_wrong_starts_nothing_and_has_exit_code_2(
    spec: str, message: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(ROOT / "prompts" / "refund.j2"), "--model", spec]) == 2
    assert message in capsys.readouterr().err
    assert fake.starts == []


# What goes wrong when it starts.


def test_a_server_that_does_not_come_up_says_why(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    fake.mode("refuse")
    with pytest.raises(ServerError) as caught:
        open_model(f"local:{fake.model}")
    assert str(caught.value).endswith("llama-server ended with code 3: error: [31munknown model [0m architecture")
    assert main(["run", str(ROOT / "prompts" / "refund.j2"), "--model", f"local:{fake.model}"]) == 3
    assert "ended with code 3" in capsys.readouterr().err


def test_a_server_that_never_gets_ready_is_stopped(fake: Fake) -> None:
    fake.mode("silent")
    with pytest.raises(ServerError, match=r"did not come up within 0.8 seconds: it said nothing"):
        LlamaServer(fake.model, wait=0.8)
    assert eventually(lambda: not alive(fake.starts[0]["pid"]))


def test_a_machine_without_the_instructions_it_announces_gets_a_second_start(fake: Fake) -> None:
    fake.mode("illegal")
    with LlamaServer(fake.model) as server:
        assert server.alive
    assert ["--no-repack" in start["arguments"] for start in fake.starts] == [False, True]


def test_a_llama_server_that_cannot_be_run(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in (str(fake.model), str(fake.folder / "nowhere")):
        monkeypatch.setenv("LLAMA_SERVER", named)
        with pytest.raises(ServerError, match="which is no program that can be run"):
            open_model(f"local:{fake.model}")


def test_no_llama_server_at_all(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMA_SERVER")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(local, "_SERVER_PACKAGE", "no_such_server")
    with pytest.raises(ServerError, match="put one on PATH, set LLAMA_SERVER, or install"):
        find_server()


def test_a_llama_server_on_the_path(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMA_SERVER")
    monkeypatch.setenv("PATH", str(fake.folder))
    assert find_server()[0] == fake.folder / "llama-server"


def test_a_proxy_does_not_stand_in_between(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert LlamaServer(fake.model, wait=5).alive


# How it ends.

OWNER = """
import os, signal, sys, threading, time
from react_text import open_model
starter = threading.Thread(target=open_model, args=("local:" + sys.argv[1],))
starter.start()
starter.join()
print("ready", flush=True)
input()
{end}
time.sleep(60)
"""


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", id="kill -9"),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", id="terminated"),
        pytest.param("os.kill(os.getpid(), signal.SIGHUP)", id="the terminal is closed"),
        pytest.param("os.kill(os.getpid(), signal.SIGINT)", id="interrupted"),
        pytest.param("os._exit(1)", id="exit without clean-up"),
        pytest.param("raise SystemExit", id="exit"),
        pytest.param("1 / 0", id="an exception"),
        pytest.param("os.abort()", id="a crash"),
    ],
)
def test_the_server_ends_with_the_process_that_started_it(fake: Fake, end: str) -> None:
    """Started in a thread that is over by then: the server lives as long as the process, and no longer."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(end=end), str(fake.model)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    pid = fake.starts[0]["pid"]
    assert alive(pid)
    process.communicate(b"\n", timeout=20)
    assert eventually(lambda: not alive(pid))


def test_a_server_that_ignores_the_polite_signal_is_killed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.mode("stubborn")
    monkeypatch.setattr(watchdog, "PATIENCE", 0.4)  # how long `close` waits for the watchdog, which is killed then
    server = LlamaServer(fake.model)
    server.close()
    assert not server.alive and eventually(lambda: not alive(fake.starts[0]["pid"]))
    server.close()


if sys.platform == "linux":  # elsewhere there is no parent-death signal

    def test_a_watchdog_that_is_killed_itself_takes_the_server_along(fake: Fake) -> None:
        server = LlamaServer(fake.model)
        server._process.kill()
        assert eventually(lambda: not alive(fake.starts[0]["pid"]))
        server.close()


def test_a_watchdog_that_is_terminated_ends_the_server_first(fake: Fake) -> None:
    server = LlamaServer(fake.model)
    server._process.terminate()
    assert server._process.wait(10) == 128 + signal.SIGTERM
    assert not alive(fake.starts[0]["pid"])
    server.close()


def test_ctrl_c_at_the_terminal_does_not_reach_the_server(fake: Fake) -> None:
    with LlamaServer(fake.model):
        assert os.getsid(fake.starts[0]["pid"]) != os.getsid(0)


def test_a_fork_does_not_stop_the_server_of_its_parent(fake: Fake) -> None:
    code = """
import os, sys
from react_text.models.local import shared_server
server = shared_server(sys.argv[1])
if os.fork() == 0:
    sys.exit()
os.wait()
sys.exit(0 if server.alive else 9)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(fake.model)], cwd=ROOT, timeout=30)
    assert done.returncode == 0
    assert eventually(lambda: not alive(fake.starts[0]["pid"]))


def test_leaving_the_block_stops_it_and_the_url_is_dead(fake: Fake) -> None:
    with LlamaServer(fake.model) as server:
        assert server.alive and alive(fake.starts[0]["pid"])
    assert not server.alive and not alive(fake.starts[0]["pid"])
    with pytest.raises(ServerError, match="is it running"):
        open_model(f"llamacpp+{server.url}?retry_seconds=0.1").complete("x", stop=[], options=Options())


def test_a_run_on_the_command_line(fake: Fake, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["run", str(ROOT / "prompts" / "refund.j2"), "--log", str(tmp_path / "log.jsonl"), "--quiet"]
    assert main([*arguments, "--model", f"local:{fake.model}"]) == 0
    assert capsys.readouterr().out == "done\n"


def test_a_model_file_that_is_named_wrong_is_an_author_error(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match=r"none\.gguf"):
        shared_server(str(tmp_path / "none.gguf"))
