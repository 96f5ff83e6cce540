"""One HTTP exchange: open it, read the body as it arrives, keep the time limits, say in plain words what went wrong."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3

from ..errors import AuthorError, ServerError, ServerTimeout, without_password
from . import wire

KEY_VARIABLE = "REACT_TEXT_API_KEY"
LONGEST_REPLY = 16 * 2**20  # bytes; the model list of a hosted service is a megabyte

# What people copy behind a base URL.
_ENDPOINT = re.compile(
    r"(?:/v1(?:/(?:chat/)?completions)?|/completions?|/api/v0/completions|/generate(?:_stream)?"
    r"|/api/(?:v1/|extra/)?generate(?:/stream)?)/*$"
)
_HERE = ("localhost", "localhost.", "::1", "0.0.0.0", "::")

_NETWORK = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)


class Retry(Exception):
    """The request may be made again, not before `after` seconds; `error` is the reason if it is not made again.

    `broken`: the server had the request and then failed in the middle.
    """

    def __init__(self, error: ServerError, *, after: float = 0.0, broken: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.after = after
        self.broken = broken


class Watch:
    """Keeps the time limit of an exchange by shutting its socket down from another thread.

    The time-out of a socket starts anew with every byte, so it never ends a server that sends one now and then, be it
    in the headers or in the body. `limit` is a `time.monotonic()` value, `message` the text of the ServerTimeout.
    """

    def __init__(self, limit: float, message: str) -> None:
        self.connected = False
        self._limit = limit
        self._message = message
        self._expired = False
        self._socket: socket.socket | None = None

    def __enter__(self) -> Watch:
        self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()

    def left(self) -> float:
        """Seconds until the limit; raises ServerTimeout when there are none."""
        left = self._limit - time.monotonic()
        if self._expired or left <= 0:
            raise ServerTimeout(self._message)
        return left

    def shorten(self, seconds: float) -> None:
        """Allow no more than `seconds` from now."""
        self._timer.cancel()
        self._limit = min(self._limit, time.monotonic() + seconds)
        self._start()

    def attach(self, sock: socket.socket) -> None:
        """Take the socket on which the request was sent."""
        self.connected = True
        self._socket = sock
        if self._expired:
            self._expire()

    def _start(self) -> None:
        self._timer = threading.Timer(max(0.0, self._limit - time.monotonic()), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        self._expired = True
        if self._socket:
            with contextlib.suppress(OSError):  # closed by now
                self._socket.shutdown(socket.SHUT_RDWR)


class Reply(NamedTuple):
    """The whole answer to a question. `json` is empty when the body is no JSON object."""

    status: int
    headers: Mapping[str, str]
    json: dict[str, Any]
    body: bytes = b""


class Client:
    """The way to one server: its base URL, the API key, the longest wait for a connection and for the next byte.

    The URL may go on to an endpoint (`/v1`, `/v1/completions`). `url` is how messages name the server: without that,
    and without a user and password that the given URL may hold.
    """

    def __init__(self, url: str, *, api_key: str | None, timeout: float, connect_timeout: float) -> None:
        self._base = _ENDPOINT.sub("", url.rstrip("/")).rstrip("/")
        try:
            parts = urlsplit(self._base)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise AuthorError(f"{without_password(url)!r} is no http:// or https:// URL")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        host = parts.hostname or ""
        local = host in _HERE or host.startswith("127.")
        self._proxies = {"no_proxy": host} if local else None  # this machine's own servers are not behind its proxy
        self.key = (os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key).strip()
        if not (self.key.isascii() and self.key.isprintable()):
            raise AuthorError("the API key holds characters that cannot be sent")  # without showing it
        self.timeout = timeout
        self.connect_timeout = connect_timeout

    @contextlib.contextmanager
    def open(self, method: str, path: str, watch: Watch, body: bytes | None = None) -> Iterator[Answer]:
        """Send a request and wait for the headers of the answer. Leaving the block closes the connection.

        Raises Retry, ServerTimeout or another ServerError. A session for each exchange: most streams are cut, which
        ends their connection, so there is none worth keeping, and threads share nothing.
        """
        left = watch.left()
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, _Adapter(watch))
            try:
                response = session.request(
                    method,
                    self._base + path,
                    data=body,
                    headers={"Accept-Encoding": "identity", "Content-Type": "application/json"},
                    auth=self._authorize if self.key else None,
                    proxies=self._proxies,
                    timeout=(min(self.connect_timeout, left), min(self.timeout, left)),
                    stream=True,
                    allow_redirects=False,  # a redirected POST would become a GET
                )
            except _NETWORK as error:
                raise self.failure(path, error, watch) from error
            with response:
                yield Answer(self, path, response, watch)

    def get(self, path: str, limit: float) -> Reply:
        """One GET, never repeated, until `limit` (a `time.monotonic()` value). Raises ServerError for no answer."""
        return self._ask("GET", path, limit)

    def post(self, path: str, value: Any, limit: float) -> Reply:
        """One POST of `value` as JSON, in all else as `get`: for questions about the model, not for completions."""
        return self._ask("POST", path, limit, json.dumps(value).encode())

    def _ask(self, method: str, path: str, limit: float, sent: bytes | None = None) -> Reply:
        try:
            with (
                Watch(limit, f"{self.url}{path} did not answer in time") as watch,
                self.open(method, path, watch, sent) as answer,
            ):
                body = answer.body(LONGEST_REPLY)
        except Retry as failure:
            raise failure.error from failure.__cause__
        try:
            value = wire.decode(body)
        except wire.Malformed:
            value = {}
        return Reply(answer.status, answer.headers, value, body)

    def hide(self, said: str) -> str:
        """What a server has said without the API key, which some repeat."""
        return said.replace(self.key, "***") if self.key else said

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key. As `auth`, not as a header, since requests lets ~/.netrc overwrite the header."""
        request.headers["Authorization"] = f"Bearer {self.key}"
        return request

    def failure(self, path: str, error: Exception, watch: Watch) -> Exception:
        """What an exception of the network means: too late, not there, not possible, or broken off."""
        try:
            watch.left()
        except ServerTimeout as timeout:
            return timeout
        reason = self.hide(_reason(error))
        if not watch.connected:
            if isinstance(error, requests.exceptions.ProxyError):
                reason = f"by way of the proxy that the environment names: {reason}"
            if isinstance(error, (ValueError, requests.exceptions.SSLError)):
                return ServerError(f"{self.url} cannot be asked: {reason}")
            kind = ServerTimeout if isinstance(error, requests.Timeout) else ServerError
            return Retry(kind(f"no server answers at {self.url}: is it running? ({reason})"))
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)):
            return ServerTimeout(f"{self.url}{path} sent nothing for {self.timeout:g} seconds (timeout)")
        return Retry(ServerError(f"{self.url}{path}: the connection broke off: {reason}"), broken=True)


class Answer:
    """A response of which the headers are known and the body is still to come."""

    def __init__(self, client: Client, path: str, response: requests.Response, watch: Watch) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._client = client
        self._path = path
        self._response = response
        self._watch = watch

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives: `read1` returns what is there, where `iter_lines` waits for a full buffer.

        Raises Retry or ServerTimeout.
        """
        raw = self._response.raw
        # urllib3 has read1 since 2.2; before that the standard library's response below it is asked.
        read1 = getattr(raw, "read1", None) or raw._fp.read1  # type: ignore[union-attr]
        unpacked = _unpacker(self.headers.get("Content-Encoding", ""))
        while True:
            try:
                chunk = read1(2**16)
                text = unpacked(chunk) if chunk else b""
            except (*_NETWORK, zlib.error) as error:
                raise self._client.failure(self._path, error, self._watch) from error
            self._watch.left()  # an expired watch looks like the end of the body
            if not chunk:
                return
            yield text

    def body(self, most: int) -> bytes:
        """The body up to about `most` bytes; what came of it, when it breaks off. Raises nothing."""
        body = bytearray()
        with contextlib.suppress(Retry, ServerTimeout):
            for chunk in self.chunks():
                body += chunk
                if len(body) > most:
                    break
        return bytes(body)


class _Adapter(requests.adapters.HTTPAdapter):
    """Hands the socket of a request to its watch before the answer is waited for."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        pool.ConnectionCls = functools.partial(self._connect, pool.ConnectionCls)
        return pool

    def _connect(self, make: Any, *args: Any, **kwargs: Any) -> Any:
        def response(sock: socket.socket, *args: Any, **kwargs: Any) -> http.client.HTTPResponse:
            self._watch.attach(sock)
            return http.client.HTTPResponse(sock, *args, **kwargs)

        connection = make(*args, **kwargs)
        connection.response_class = response
        return connection


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    """What undoes a Content-Encoding, piece by piece: some proxies compress although they are asked not to."""
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return bytes
    return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress  # of either kind, as the bytes say


def _reason(error: BaseException) -> str:
    """The words of the first exception in a chain: `Connection refused` rather than what three libraries made of it."""
    while error.__context__ is not None:
        error = error.__context__
    if type(error) is ValueError and "base 16" in str(error):  # the size of the next chunk, which there is none of
        return "in the middle of the answer"
    said = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
    return wire.shorten(said)  # a bad status line is quoted whole
