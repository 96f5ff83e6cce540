"""A completion server made of scripted answers, on a real socket: what HTTP clients meet in the wild, in milliseconds.

with FakeServer(sse(chunk(" hi"), chunk("", "stop"))) as server:
    OpenAICompletions(server.url).complete(...)
assert server.requests[0].json["max_tokens"] == 256
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Answer:
    """One answer: `chunks` are the pieces of the body, each written by itself `delay` seconds after the one before.

    framing: `chunked`; `length`, with a Content-Length; `until_close`, as HTTP/1.0 servers do; `raw`, where the chunks
    are all there is, status line included. end: `close` properly, `drop` in the middle, `reset` the connection, or
    `hang`: send nothing more and keep the connection open.
    """

    chunks: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "until_close", "raw"] = "chunked"
    delay: float = 0.0
    end: Literal["close", "drop", "reset", "hang"] = "close"

    def but(self, **changes: Any) -> Answer:
        return dataclasses.replace(self, **changes)


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    left_early: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection before the answer was complete."""

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body.decode("utf-8", "strict"))
        return value


Script = Answer | Callable[[Request], Answer]


class FakeServer:
    """Answers each POST with the next of `script`, the last one again and again; each GET with `pages[path]` or 404."""

    def __init__(self, *script: Script, pages: Mapping[str, Script] | None = None, port: int = 0) -> None:
        self._port = port
        self.requests: list[Request] = []
        self.gets: list[Request] = []
        self._script = list(script)
        self._pages = pages or {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> FakeServer:
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):  # wakes accept()
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(5)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(_Gone):
            request = _read_request(connection)
            self._send(connection, request, self._choose(request))

    def _choose(self, request: Request) -> Answer:
        with self._lock:
            if request.method == "GET":
                self.gets.append(request)
                script = self._pages.get(request.path, error(404, {"error": {"message": "no such page"}}))
            else:
                self.requests.append(request)
                script = self._script[0] if len(self._script) == 1 else self._script.pop(0)
        return script if isinstance(script, Answer) else script(request)

    def _send(self, connection: socket.socket, request: Request, answer: Answer) -> None:
        chunks = answer.chunks
        try:
            if answer.framing == "length":
                chunks = list(chunks)
            if answer.framing != "raw":
                self._write(connection, _head(answer, chunks))
            for chunk in chunks:
                self._pause(connection, answer.delay)
                self._write(connection, b"%X\r\n%b\r\n" % (len(chunk), chunk) if answer.framing == "chunked" else chunk)
            if answer.end == "hang":
                self._pause(connection, 60)
            if answer.end == "close" and answer.framing == "chunked":
                self._write(connection, b"0\r\n\r\n")
        except _Gone:
            request.left_early.set()
            raise
        if answer.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _write(self, connection: socket.socket, data: bytes) -> None:
        try:
            connection.sendall(data)
        except OSError as error:
            raise _Gone from error

    def _pause(self, connection: socket.socket, seconds: float) -> None:
        """Wait, noticing at once when the client goes or the test is over."""
        steps = max(1, int(seconds / 0.02)) if seconds else 0
        for _ in range(steps):
            readable, _, _ = select.select([connection], [], [], min(seconds, 0.02))
            try:
                if self._over.is_set() or (readable and not connection.recv(1)):
                    raise _Gone
            except OSError as error:
                raise _Gone from error


class _Gone(Exception):
    """The client closed its end, or the server is to stop."""


def _read_request(connection: socket.socket) -> Request:
    with connection.makefile("rb") as stream:
        try:
            start = stream.readline().decode("ascii").split()
            lines = iter(lambda: stream.readline().decode("latin-1").strip(), "")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = stream.read(int(headers.get("content-length", 0)))
        except OSError as error:
            raise _Gone from error
        if len(start) < 2:
            raise _Gone
        return Request(start[0], start[1], headers, body)


def _head(answer: Answer, chunks: Iterable[bytes]) -> bytes:
    headers = {"Connection": "close", **answer.headers}
    if answer.framing == "chunked":
        headers["Transfer-Encoding"] = "chunked"
    if answer.framing == "length":
        headers["Content-Length"] = str(sum(map(len, chunks)))
    version = "1.0" if answer.framing == "until_close" else "1.1"
    lines = [f"HTTP/{version} {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


# Answers and events as the servers write them.


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else dumps(value)) + b"\n\n"


def sse(*events: Any, **settings: Any) -> Answer:
    """A stream of events: objects, or bytes to follow `data: `. No charset in the type, as on llama.cpp."""
    return Answer([event(value) for value in events], headers={"Content-Type": "text/event-stream"}).but(**settings)


def chunk(text: str | None = "", finish: str | None = None, usage: Any = None, **more: Any) -> dict[str, Any]:
    """An event of /v1/completions."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, **more}
    return {"object": "text_completion", "choices": [choice], "usage": usage}


def counts(prompt: int, written: int, cached: int | None = None) -> dict[str, Any]:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written, **details}


def native(text: str, n: int = 1, *, prompt: int = 108, cached: int = 100) -> dict[str, Any]:
    """An event of llama.cpp's /completion, asked for with timings_per_token."""
    timings = {"cache_n": cached, "prompt_n": prompt - cached, "predicted_n": n}
    return {"index": 0, "content": text, "tokens": [1], "stop": False, "tokens_predicted": n, "timings": timings}


def native_end(stop_type: str = "eos", n: int = 1, **more: Any) -> dict[str, Any]:
    end = {"stop": True, "stop_type": stop_type, "stopping_word": "", "truncated": False, "tokens_evaluated": 108}
    return {**native("", n), **end, **more}


def reply(value: Any, status: int = 200, **headers: str) -> Answer:
    """A plain JSON body."""
    return Answer([dumps(value)], status, {"Content-Type": "application/json", **headers}, framing="length")


def error(status: int, value: Any, **headers: str) -> Answer:
    """A refusal with a JSON body, or one of HTML when `value` is text."""
    if not isinstance(value, str):
        return reply(value, status, **headers)
    return Answer([value.encode()], status, {"Content-Type": "text/html", **headers}, framing="length")


def endless(text: str) -> Iterator[bytes]:
    while True:
        yield event(chunk(text))
