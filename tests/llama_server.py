"""A llama-server for tests, named by LLAMA_SERVER: takes its arguments, says when it is healthy, writes one turn.

FAKE_LLAMA is a folder: `starts` gets a line of JSON for each start (process id and arguments), and `mode` says what is
wrong: `refuse` ends at once, `silent` never becomes healthy, `illegal` dies of an illegal instruction unless it is told
--no-repack, `stubborn` ignores SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TURN = {"content": " Known.\nAction: finish[done]", "stop": True, "stop_type": "eos", "tokens_evaluated": 9}


class Handler(BaseHTTPRequestHandler):
    started = time.monotonic()

    def do_GET(self) -> None:
        loading = time.monotonic() - self.started < 0.05 or mode == "silent"
        pages = {
            "/health": (503, {"error": {"message": "Loading model"}}) if loading else (200, {"status": "ok"}),
            "/props": (200, {"model_path": "/models/tiny.gguf", "default_generation_settings": {"n_ctx": 4096}}),
        }
        self.answer(*pages.get(self.path, (404, {})))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, TURN)

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    folder = Path(os.environ["FAKE_LLAMA"])
    mode = (folder / "mode").read_text()
    with (folder / "starts").open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "arguments": sys.argv[1:]}) + "\n")
    if mode == "refuse":
        print("error: \x1b[31munknown model\x1b[0m architecture", file=sys.stderr)
        sys.exit(3)
    if mode == "illegal" and "--no-repack" not in sys.argv:
        os.kill(os.getpid(), signal.SIGILL)
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer((sys.argv[sys.argv.index("--host") + 1], port), Handler).serve_forever()
