"""HTTP models against scripted servers on real sockets. Test ids written-like-this name a public bug report."""

from __future__ import annotations

import email.utils
import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from react_text.errors import AuthorError, ContextOverflow, ServerError, ServerTimeout
from react_text.models import http, wire
from react_text.models.base import Completion, Options, Usage
from react_text.models.http import HTTPModel
from react_text.models.llamacpp import LlamaCpp
from react_text.models.openai import OpenAICompletions

from .fakes import (
    Answer,
    FakeServer,
    Request,
    chunk,
    counts,
    dumps,
    endless,
    error,
    event,
    native,
    native_end,
    reply,
    sse,
)

PROMPT = "Answer with tools.\n\nQuestion: How long is the pier?\nThought:"
TURN = " Look it up.\nAction: lookup[pier]"
STOP = ["\nObservation:", "\nQuestion:"]
SILENT = Answer([], framing="raw", end="hang")
WHOLE = sse(chunk(TURN), chunk("", "stop"), b"[DONE]")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REACT_TEXT_API_KEY", raising=False)


def openai(server: FakeServer, **settings: Any) -> OpenAICompletions:
    return OpenAICompletions(server.url, **{"model": "m", "backoff": 0.005, **settings})


def llamacpp(server: FakeServer, **settings: Any) -> LlamaCpp:
    return LlamaCpp(server.url, **{"backoff": 0.005, **settings})


def ask(model: HTTPModel, prompt: str = PROMPT, **arguments: Any) -> Completion:
    options = Options(**arguments.pop("options", {}))
    return model.complete(prompt, **{"stop": STOP, "options": options, **arguments})


def failure(model: HTTPModel, **arguments: Any) -> ServerError:
    with pytest.raises(ServerError) as caught:
        ask(model, **arguments)
    return caught.value


class Consumer:
    """Collects text as the engine does; says enough when `enough` is in it."""

    def __init__(self, enough: str | None = None) -> None:
        self.pieces: list[str] = []
        self.times: list[float] = []
        self.restarts = 0
        self.enough = enough

    def __call__(self, text: str) -> bool:
        self.pieces.append(text)
        self.times.append(time.monotonic())
        return self.enough is not None and self.enough in "".join(self.pieces)

    def restart(self) -> None:
        self.pieces.clear()
        self.restarts += 1


# What is sent.


def sent_by(make: Callable[..., HTTPModel], answer: Answer, **arguments: Any) -> dict[str, Any]:
    with FakeServer(answer) as server:
        ask(make(server, **arguments.pop("settings", {})), **arguments)
        return {"path": server.requests[0].path, **server.requests[0].json}


def test_openai_request() -> None:
    assert sent_by(openai, WHOLE, options={"seed": 7, "extra": {"top_p": 0.9, "temperature": 0.5}}) == {
        "path": "/v1/completions",
        "model": "m",
        "prompt": PROMPT,
        "max_tokens": 256,
        "temperature": 0.5,
        "seed": 7,
        "stop": STOP,
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_p": 0.9,
    }


def test_llamacpp_request() -> None:
    answer = sse(native_end())
    assert sent_by(llamacpp, answer, options={"max_tokens": 9, "extra": {"cache_prompt": False}}) == {
        "path": "/completion",
        "prompt": PROMPT,
        "n_predict": 9,
        "temperature": 0.0,
        "stop": STOP,
        "stream": True,
        "cache_prompt": False,
        "timings_per_token": True,
    }
    assert sent_by(llamacpp, answer, settings={"model": "m"}, options={"seed": 3})["seed"] == 3


@pytest.mark.parametrize(
    ("stop", "sent"),
    [
        pytest.param(["a", "", "b"], ["a", "b"], id="empty strings are left out"),
        pytest.param(["a", "b", "c", "d", "e"], ["a", "b", "c", "d"], id="at most four"),
        pytest.param([""], None, id="none left"),
        pytest.param([], None, id="none"),
    ],
)
@pytest.mark.parametrize(
    ("make", "answer"),
    [pytest.param(openai, WHOLE, id="openai"), pytest.param(llamacpp, sse(native_end()), id="llamacpp")],
)
def test_stop_strings_sent(make: Callable[..., HTTPModel], answer: Answer, stop: list[str], sent: Any) -> None:
    assert sent_by(make, answer, stop=stop).get("stop") == sent


def test_stop_strings_can_be_switched_off() -> None:
    assert "stop" not in sent_by(openai, WHOLE, settings={"send_stop": False})
    assert "stop" not in sent_by(llamacpp, sse(native_end()), settings={"send_stop": False})


def test_default_max_tokens_sixteen() -> None:
    def sixteen(request: Request) -> Answer:
        words = request.json.get("max_tokens", 16)
        return sse(chunk(" la" * words), chunk("", "length"))

    with FakeServer(sixteen) as server:
        assert ask(openai(server)).text == " la" * 256


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        pytest.param("x\udc9dy", "x\ufffdy", id="lone-surrogates"),
        pytest.param("lamp \ud83d\udca1", "lamp \U0001f4a1", id="halves of a pair"),
        pytest.param("a\u2028b\x00c数", "a\u2028b\x00c数", id="odd characters"),
    ],
)
def test_prompts_that_utf8_cannot_carry(prompt: str, sent: str) -> None:
    assert sent_by(openai, WHOLE, prompt=prompt)["prompt"] == sent


def test_options_that_json_cannot_carry() -> None:
    with FakeServer(WHOLE) as server:
        for value in (object(), float("nan")):
            assert "cannot be sent" in str(failure(openai(server), options={"extra": {"top_p": value}}))
        assert not server.requests


def test_headers() -> None:
    with FakeServer(WHOLE) as server:
        ask(openai(server, api_key="sk-1\n"))
        ask(openai(server))
        first, second = (request.headers for request in server.requests)
    assert first["authorization"] == "Bearer sk-1" and "authorization" not in second
    assert first["accept-encoding"] == "identity"


def test_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACT_TEXT_API_KEY", "sk-env")
    with FakeServer(WHOLE) as server:
        ask(openai(server))
        assert server.requests[0].headers["authorization"] == "Bearer sk-env"


def test_proxies_do_not_stand_before_local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with FakeServer(WHOLE) as server:
        assert ask(openai(server)).text == TURN
        assert ask(OpenAICompletions(server.url.replace("127.0.0.1", "0.0.0.0"), model="m")).text == TURN
    assert "the proxy that the environment names" in str(failure(OpenAICompletions("http://h.invalid", model="m")))


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/completions", "/v1/completions/", "/v1/chat/completions"])
def test_urls_that_go_on_to_an_endpoint(end: str) -> None:
    with FakeServer(WHOLE) as server:
        model = OpenAICompletions(f"{server.url}/base{end}", model="m")
        ask(model)
        assert server.requests[0].path == "/base/v1/completions"
    assert model.url == f"{server.url}/base"


@pytest.mark.parametrize(
    "path",
    ["/completion", "/completions", "/api/generate", "/api/v0/completions", "/generate", "/generate_stream",
     "/api/v1/generate", "/api/extra/generate/stream"],
)  # fmt: skip
def test_endpoints_of_their_own(path: str) -> None:
    assert LlamaCpp(f"http://h:1{path}").url == "http://h:1"


# Streams that are complete.

SPACELESS = Answer([b"data:" + dumps(chunk(TURN)) + b"\n\n", b"data:" + dumps(chunk("", "eos_token")) + b"\n\n"])
NOISY = Answer(
    [
        b": OPENROUTER PROCESSING\n\n",
        b"event: message\nid: 7\nretry: 10\n" + event(chunk(TURN)).replace(b"\n", b"\r\n"),
        b"data:\n\n",
        event(chunk("", "stop")),
    ]
)
EMPTY = sse(chunk(""), chunk(""), {"choices": []}, chunk(None), chunk(TURN), chunk("", "stop"), b"[DONE]")
UNDECIDED = sse(chunk(" Look it", ""), chunk(" up.\nAction: lookup[pier]", "null"), chunk("", "stop"), b"[DONE]")
PLAIN = {"object": "text_completion", **chunk(TURN, "stop", counts(9, 5))}
INDENTED = Answer([json.dumps(PLAIN, indent=2).encode()], headers={"Content-Type": "application/json"})
NO_LAST_NEWLINE = Answer([event(chunk(TURN)), event(chunk("", "stop")).strip()])
MARKED = Answer([b"\xef\xbb\xbf" + event(chunk(TURN)), event(chunk("", "stop"))])
PACKED = zlib.compressobj(wbits=31)
GZIP = {"Content-Encoding": "gzip"}
HALVES = [PACKED.compress(event(chunk(TURN))) + PACKED.flush(zlib.Z_SYNC_FLUSH)]
HALVES += [PACKED.compress(event(chunk("", "stop"))) + PACKED.flush()]
SPLIT = sse(*(b'{"choices": [{"text": "%s"}]}' % half for half in (b" \\ud83c", b"\\udf0a ")), chunk("", "stop"))
WAVE_BYTES = "🌊".encode()
BYTES = sse(
    *(b'{"choices": [{"text": "%s"}]}' % part for part in (b"a " + WAVE_BYTES[:1], WAVE_BYTES[1:3], WAVE_BYTES[3:]))
)
SURROGATE = sse(b'{"choices": [{"text": "x\\udc9dy", "finish_reason": "stop"}]}')
LINE_SEPARATOR = sse(chunk(TURN + "\u2028\u0085"), chunk("", "stop"))


@pytest.mark.parametrize(
    ("answer", "text", "finish"),
    [
        pytest.param(WHOLE, TURN, "stop", id="usual stream"),
        pytest.param(WHOLE.but(framing="until_close"), TURN, "stop", id="HTTP 1.0 stream without chunks"),
        pytest.param(sse(chunk(TURN), chunk("", "length")), TURN, "length", id="clean-eof-without-done"),
        pytest.param(sse(chunk(TURN), chunk("", "stop"), end="reset"), TURN, "stop", id="reset after the finish"),
        pytest.param(sse(chunk(TURN, "stop"), b"[DONE]"), TURN, "stop", id="finish together with text"),
        pytest.param(SPACELESS, TURN, "eos", id="data without a space"),
        pytest.param(NOISY, TURN, "stop", id="comments, event, id, retry and CRLF"),
        pytest.param(EMPTY, TURN, "stop", id="empty-first-chunks"),
        pytest.param(UNDECIDED, TURN, "stop", id="finish reasons that are none"),
        pytest.param(reply(PLAIN), TURN, "stop", id="plain JSON although a stream was asked for"),
        pytest.param(INDENTED, TURN, "stop", id="plain JSON over many lines"),
        pytest.param(NO_LAST_NEWLINE, TURN, "stop", id="no newline at the end"),
        pytest.param(LINE_SEPARATOR, TURN + "\u2028\u0085", "stop", id="line separators inside JSON"),
        pytest.param(sse(chunk("", "stop")), "", "stop", id="turn-starts-with-stop-word"),
        pytest.param(SURROGATE, "x\ufffdy", "stop", id="lone-surrogates in the answer"),
        pytest.param(SPLIT, " 🌊 ", "stop", id="lone-surrogates in two events"),
        pytest.param(
            sse(b'{"choices": [{"text": "x\\ud83c"}]}', chunk("", "stop")), "x\ufffd", "stop", id="half a pair"
        ),
        pytest.param(BYTES.but(chunks=[*BYTES.chunks, event(chunk(" b", "stop"))]), "a 🌊 b", "stop", id="split bytes"),
        pytest.param(
            sse(b'{"choices": [{"text": "\xff\xf0\x9f"}]}', chunk("", "stop")), "\ufffd\ufffd", "stop", id="no UTF-8"
        ),
        pytest.param(MARKED, TURN, "stop", id="a byte order mark before the first event"),
        pytest.param(Answer(HALVES, headers=GZIP), TURN, "stop", id="compressed unasked"),
        pytest.param(sse(chunk(TURN, "max_tokens")), TURN, "length", id="another word for length"),
    ],
)
def test_complete_streams(answer: Answer, text: str, finish: str) -> None:
    with FakeServer(answer) as server:
        consumer = Consumer()
        completion = ask(openai(server), on_text=consumer)
    assert (completion.text, completion.finish, completion.warnings) == (text, finish, ())
    assert "".join(consumer.pieces) == text and "" not in consumer.pieces
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("choice", "finish"),
    [
        ({"finish_reason": "stop"}, "stop"),
        ({"finish_reason": "length"}, "length"),
        ({"finish_reason": "eos_token"}, "eos"),
        ({"finish_reason": "stop_sequence"}, "stop"),
        ({"finish_reason": "stop", "stop_reason": None}, "eos"),
        ({"finish_reason": "stop", "stop_reason": "\nObservation:"}, "stop"),
        ({"finish_reason": "stop", "matched_stop": None}, "eos"),
        ({"finish_reason": "stop", "matched_stop": 151645}, "eos"),
        ({"finish_reason": "length", "stop_reason": None}, "length"),
        ({"finish_reason": "anything new"}, "stop"),
        ({"finish_reason": "abort"}, None),
        ({"finish_reason": ""}, None),
        ({"finish_reason": "null"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_openai_finish_reasons(choice: dict[str, Any], finish: str | None) -> None:
    assert OpenAICompletions("http://h").read({"choices": [{"text": "", **choice}]}).finish == finish


@pytest.mark.parametrize(
    ("end", "finish"),
    [
        ({"stop_type": "eos"}, "eos"),
        ({"stop_type": "word"}, "stop"),
        ({"stop_type": "limit"}, "length"),
        ({"stop_type": "none"}, "stop"),
        ({"stopped_eos": True, "stopped_word": False, "stopped_limit": False}, "eos"),
        ({"stopped_eos": False, "stopped_word": True, "stopped_limit": False}, "stop"),
        ({"stopped_eos": False, "stopped_word": False, "stopped_limit": True}, "length"),
    ],
    ids=str,
)
def test_llamacpp_finish_reasons(end: dict[str, Any], finish: str) -> None:
    with FakeServer(sse(native(TURN), {"content": "", "stop": True, **end})) as server:
        completion = ask(llamacpp(server))
    assert (completion.text, completion.finish) == (TURN, finish)


def test_llamacpp_counts() -> None:
    with FakeServer(sse(native(" a", 1), native(" b", 2), native_end("word", 3))) as server:
        assert ask(llamacpp(server)).usage == Usage(108, 3, 100)
    with FakeServer(sse(native(" a", 1), native(" b", 2), end="hang")) as server:
        assert ask(llamacpp(server), on_text=Consumer("b")).usage == Usage(108, 2, 100)


def test_llamacpp_progress_events_are_no_end() -> None:
    progress = {"content": "", "tokens": [0], "prompt_progress": {"total": 4, "cache": 0, "processed": 0}}
    with FakeServer(sse(progress, native(TURN), native_end())) as server:
        assert ask(llamacpp(server)).text == TURN


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        pytest.param([chunk("", "stop"), {"choices": [], "usage": counts(9, 5, 4)}], Usage(9, 5, 4), id="after finish"),
        pytest.param([chunk("", "stop", counts(9, 5))], Usage(9, 5), id="with the finish"),
        pytest.param([chunk("", "stop")], Usage(), id="never"),
        pytest.param([chunk("", "stop", {"prompt_tokens": "9", "completion_tokens": True})], Usage(), id="nonsense"),
    ],
)
def test_openai_counts(events: list[Any], usage: Usage) -> None:
    with FakeServer(sse(chunk(TURN), *events, b"[DONE]")) as server:
        assert ask(openai(server)).usage == usage


def test_the_connection_is_not_waited_for_once_all_is_known() -> None:
    with FakeServer(sse(chunk(TURN, "stop", counts(9, 5)), end="hang")) as server:
        started = time.monotonic()
        assert ask(openai(server)).text == TURN
    assert time.monotonic() - started < 1


def test_counts_that_never_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "GRACE", 0.1)
    with FakeServer(sse(chunk(TURN, "stop"), end="hang")) as server:
        assert ask(openai(server)).finish == "stop"


@pytest.mark.parametrize("framing", ["chunked", "until_close"])
def test_text_is_passed_on_while_it_comes(framing: Any) -> None:
    consumer = Consumer()
    with FakeServer(sse(chunk(" a"), chunk(" b"), chunk(" c", "stop"), delay=0.1, framing=framing)) as server:
        ask(openai(server), on_text=consumer)
    assert consumer.times[2] - consumer.times[0] > 0.15


WAVE = 'data: {"choices": [{"text": "Action: search[数码 🌊]", "finish_reason": "stop"}]}\n\n'.encode()


@pytest.mark.parametrize("at", range(len(WAVE) + 1))
def test_multibyte_split_across_chunks(at: int) -> None:
    (found,) = wire.events([WAVE[:at], WAVE[at:]], 1000)
    assert found["choices"][0]["text"] == "Action: search[数码 🌊]"


@pytest.mark.parametrize("framing", ["chunked", "until_close"])
def test_multibyte_split_across_chunks_one_byte_per_read(framing: Any) -> None:
    with FakeServer(Answer([WAVE[i : i + 1] for i in range(len(WAVE))], framing=framing, delay=0.0005)) as server:
        assert ask(openai(server)).text == "Action: search[数码 🌊]"


@pytest.mark.parametrize("size", range(1, 9))
def test_streamed_prefix_of_stop_word(size: int) -> None:
    """Whatever the pieces, the text is that of the plain reply: holding back is left to the reader of the turn."""
    text = "Action: finish[Obsolete chart]\nObservation"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    with FakeServer(sse(*map(chunk, pieces), chunk("", "stop"))) as server:
        assert ask(openai(server)).text == text


# Ended by the client.


@pytest.mark.parametrize(
    ("make", "events"),
    [
        pytest.param(openai, [chunk(" Look."), chunk("\nAction: lookup[pier]"), chunk("\nObs")], id="openai"),
        pytest.param(llamacpp, [native(" Look."), native("\nAction: lookup[pier]", 2), native("\nObs")], id="llamacpp"),
    ],
)
def test_stop_ignored_by_endpoint(make: Callable[..., HTTPModel], events: list[Any]) -> None:
    with FakeServer(sse(*events, *[events[-1]] * 500, delay=0.01)) as server:
        started = time.monotonic()
        completion = ask(make(server), on_text=Consumer("]"))
        assert (completion.text, completion.finish) == (" Look.\nAction: lookup[pier]", "cut")
        assert completion.usage.completion_tokens == 2
        assert server.requests[0].left_early.wait(1), "closing the connection is what cancels the work"
    assert time.monotonic() - started < 2


def test_errors_of_the_consumer_are_its_own() -> None:
    def broken(text: str) -> bool:
        raise ValueError("a bug")

    with FakeServer(WHOLE.but(end="hang")) as server:
        with pytest.raises(ValueError, match="a bug"):
            ask(openai(server), on_text=broken)
        assert server.requests[0].left_early.wait(1)


def test_interrupt_closes_the_connection() -> None:
    def interrupt(text: str) -> bool:
        raise KeyboardInterrupt

    with FakeServer(WHOLE.but(end="hang")) as server:
        with pytest.raises(KeyboardInterrupt):
            ask(openai(server), on_text=interrupt)
        assert server.requests[0].left_early.wait(1)


def test_interrupt_while_waiting() -> None:
    with FakeServer(SILENT) as server:
        timer = threading.Timer(0.1, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ask(openai(server))
        timer.join()
        assert server.requests[0].left_early.wait(1)


def test_endless_context_shift() -> None:
    with FakeServer(Answer(endless("la "))) as server:
        completion = ask(openai(server), options={"max_tokens": 10})
        assert server.requests[0].left_early.wait(1)
    assert (completion.finish, len(completion.text)) == ("length", 10 * 32 + 4096)
    assert "past max_tokens" in completion.warnings[0]


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LONGEST_LINE", 10_000)
    with FakeServer(Answer(iter(lambda: b"x" * 1000, b""))) as server:
        assert "more than 10000 bytes" in str(failure(openai(server)))


@pytest.mark.parametrize(
    ("pieces", "passed_on"),
    [
        pytest.param([PROMPT + TURN], [TURN], id="prompt-echoed-in-reply"),
        pytest.param([PROMPT[:9], PROMPT[9:], TURN], [TURN], id="echo in pieces"),
        pytest.param(
            [PROMPT[:9], PROMPT[9:] + " Look", TURN[5:]], [" Look", TURN[5:]], id="echo and text in one piece"
        ),
        pytest.param([PROMPT], [], id="nothing but the echo"),
        pytest.param([f" {PROMPT}{TURN}"], [TURN], id="echo behind a blank"),
        pytest.param([f"<s> {PROMPT}{TURN}"], [TURN], id="echo behind a begin-of-text token"),
        pytest.param(["<|begin_of", f"_text|>{PROMPT[:5]}", PROMPT[5:], TURN], [TURN], id="such an echo in pieces"),
        pytest.param(["<s>", " Look"], ["<s> Look"], id="a begin-of-text token and no echo"),
        pytest.param(["<s"], ["<s"], id="the whole text may begin such a token"),
        pytest.param(["Answer", "ed. ", "Done"], ["Answered. ", "Done"], id="only the first word is the same"),
        pytest.param(["Answer"], ["Answer"], id="the whole text is a beginning of the prompt"),
        pytest.param([" Look", " up"], [" Look", " up"], id="usual text is not delayed"),
    ],
)
def test_prompt_echo(pieces: list[str], passed_on: list[str]) -> None:
    consumer = Consumer()
    with FakeServer(sse(*map(chunk, pieces), chunk("", "stop"))) as server:
        completion = ask(openai(server), on_text=consumer)
    assert consumer.pieces == passed_on and completion.text == "".join(passed_on)


# Streams that break.

HALF = "Thought: ok\nAction: finish[The pier is 24"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(sse(chunk(HALF), end="drop"), id="dropped-stream-taken-as-complete"),
        pytest.param(sse(chunk("Action: lookup[tide]"), end="drop"), id="dropped after a complete action"),
        pytest.param(sse(chunk(HALF), end="reset"), id="reset"),
        pytest.param(sse(chunk(HALF)), id="clean-eof-without-done"),
        pytest.param(sse(chunk(HALF), framing="until_close"), id="end of an HTTP 1.0 stream"),
        pytest.param(sse(chunk(HALF), b"[DONE]"), id="done without a finish reason"),
        pytest.param(sse(chunk(HALF), chunk("", "abort"), b"[DONE]"), id="aborted by the server"),
        pytest.param(sse(chunk(HALF), b'{"choices": [{"te'), id="half an event"),
        pytest.param(sse(chunk(HALF), b"\xff\xfe\xfa"), id="garbage instead of JSON"),
        pytest.param(sse(chunk(HALF), b"[" * 100_000), id="garbage that is deep"),
        pytest.param(sse(chunk(HALF), b'"text"'), id="JSON but no object"),
        pytest.param(sse(chunk(HALF), {"error": {"message": "oops", "code": 500}}), id="error that may pass"),
        pytest.param(reply(PLAIN).but(headers={"Content-Length": "9999"}, framing="until_close"), id="short body"),
        pytest.param(
            Answer([b"5\r\nhello\r\nZZ\r\n"], headers={"Transfer-Encoding": "chunked"}, framing="until_close"),
            id="bad chunk",
        ),
        pytest.param(Answer([], framing="raw"), id="no answer at all"),
        pytest.param(Answer([b"SSH-2.0-OpenSSH\r\n"], framing="raw"), id="not HTTP"),
        pytest.param(Answer([b"HTTP/1.1 200 OK\r\nContent-"], framing="raw"), id="half the headers"),
    ],
)
def test_broken_streams_are_asked_for_again(broken: Answer) -> None:
    consumer = Consumer()
    with FakeServer(broken, broken, WHOLE) as server:
        completion = ask(openai(server), on_text=consumer)
        assert (completion.text, completion.finish) == (TURN, "stop")
        assert len(completion.warnings) == 2 and "asked again" in completion.warnings[0]
        assert "".join(consumer.pieces) == TURN
    with FakeServer(broken) as server:
        assert type(failure(openai(server))) is ServerError
        assert len(server.requests) == 3


def test_a_consumer_without_restart_gets_the_pieces_again() -> None:
    pieces: list[str] = []

    def take(text: str) -> bool:
        pieces.append(text)
        return False

    with FakeServer(sse(chunk(" Look"), end="drop"), WHOLE) as server:
        ask(openai(server), on_text=take)
    assert pieces == [" Look", TURN]


# Errors.

OVERFLOW = {
    "code": 400,
    "message": "request (4390 tokens) exceeds the available context size (4096 tokens)",
    "type": "exceed_context_size_error",
    "n_prompt_tokens": 4390,
    "n_ctx": 4096,
}
OVERFLOW_200 = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}}
OLD_STYLE = Answer([b"error: " + dumps(OVERFLOW_200["error"]) + b"\n\n"])


@pytest.mark.parametrize(
    ("answer", "sizes"),
    [
        pytest.param(error(400, {"error": OVERFLOW}), (4390, 4096), id="context-error-shapes 400"),
        pytest.param(
            error(500, {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}),
            (None, None),
            id="context-error-shapes 500",
        ),
        pytest.param(
            error(
                400,
                {
                    "object": "error",
                    "message": "This model's maximum context length is 4096 tokens, you requested 4390",
                    "code": 400,
                },
            ),
            (4390, 4096),
            id="context-error-shapes flat",
        ),
        pytest.param(reply(OVERFLOW_200), (14429, 8192), id="error-body-with-status-200"),
        pytest.param(sse(OVERFLOW_200), (14429, 8192), id="error-body-with-status-200 as an event"),
        pytest.param(OLD_STYLE, (14429, 8192), id="error-body-with-status-200 as an error line"),
        pytest.param(sse(chunk("a"), {"error": {**OVERFLOW, "code": 500}}), (4390, 4096), id="in the middle, code 500"),
        pytest.param(error(400, {"error": json.dumps({"error": OVERFLOW})}), (4390, 4096), id="JSON inside a text"),
    ],
)
def test_context_overflow(answer: Answer, sizes: tuple[int | None, int | None]) -> None:
    with FakeServer(answer) as server:
        caught = failure(openai(server))
        assert len(server.requests) == 1, "the same prompt again is hopeless"
    assert isinstance(caught, ContextOverflow)
    assert (caught.prompt_tokens, caught.context_size) == sizes
    assert server.url in str(caught)


@pytest.mark.parametrize(
    ("message", "sizes"),
    [
        (
            "You passed 4000 input tokens and requested 500 output tokens. However, the model's context length is only "
            "4096 tokens, resulting in a maximum input length of 3596 tokens.",
            (4000, 4096),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4390 tokens (4134 in your "
            "prompt; 256 for the completion).",
            (4134, 4096),
        ),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", (5000, 4096)),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
            "4390 tokens: 4134 tokens from the input messages and 256 tokens for the completion.",
            (4134, 4096),
        ),
        ("Prompt length 5000 exceeds the available context size of 4096 tokens", (5000, 4096)),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4390 `inputs` tokens and 20", (4390, 4096)),
        ("`inputs` must have less than 1024 tokens. Given: 2000", (2000, 1024)),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure", (5000, 4096)),
        ("Prompt length of 5000 is longer than the maximum model length of 4096.", (5000, 4096)),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 "
            "tokens and your request has 1043 input tokens (4096 > 4096 - 1043).",
            (1043, 4096),
        ),
        ("max_tokens must be at least 1, got -904.", (None, None)),
        ("Requested tokens (5000) exceed context window of 4096", (5000, 4096)),
        ("Input length (5000 tokens) exceeds the maximum allowed length (4095 tokens).", (5000, 4095)),
        ("Context length 5000 is greater than max_seq_len 4096", (5000, 4096)),
        ("the input length exceeds the context length", (None, None)),
        ("prompt is too long: 5000 tokens > 4096 maximum", (5000, None)),
        ("Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not support", (None, 4096)),
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens",
            (5000, 4096),
        ),
    ],
)
def test_sizes_in_the_wording_of_servers(message: str, sizes: tuple[int | None, int | None]) -> None:
    problem = wire.problem_in({"error": {"message": message}})
    assert problem and problem.overflow
    assert (problem.prompt_tokens, problem.context_size) == sizes


def test_truncated_text_is_a_context_overflow() -> None:
    props = reply({"default_generation_settings": {"n_ctx": 256}})
    with FakeServer(sse(native(TURN), native_end("limit", truncated=True)), pages={"/props": props}) as server:
        caught = failure(llamacpp(server))
    assert isinstance(caught, ContextOverflow) and (caught.prompt_tokens, caught.context_size) == (108, 256)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "it is so", "type": "x", "param": None, "code": 400}},
        {"error": "it is so"},
        {"error": "it is so", "error_type": "validation"},
        {"object": "error", "message": "it is so", "type": "BadRequestError", "param": None, "code": 400},
        {"detail": "it is so"},
        {"detail": {"msg": "it is so", "type": "service_unavailable"}},
        {"detail": [{"loc": ["body", "top_k"], "msg": "it is so", "type": "value_error"}]},
        "<html><head><title>it is so</title></head>\n<body>" + "<hr>" * 9999 + "</body></html>",
    ],
    ids=lambda body: str(body)[:60],
)
@pytest.mark.parametrize("status", [400, 404, 418, 422, 501])
def test_error_shapes(body: Any, status: int) -> None:
    with FakeServer(error(status, body)) as server:
        text = str(failure(openai(server)))
        assert len(server.requests) == 1, "never again"
    assert f"{server.url}/v1/completions answered {status}: it is so" in text
    assert len(text) < 400 and "<" not in text


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(reply({"error": "it is so"}), id="plain"),
        pytest.param(sse({"error": {"object": "error", "message": "it is so", "code": 400}}, b"[DONE]"), id="event"),
        pytest.param(sse(chunk("a"), {"error": {"message": "it is so"}}), id="in the middle"),
        pytest.param(Answer([b'{"error": "it is so"}\n']), id="line of JSON"),
        pytest.param(Answer([b'error: {"message": "it is so"}\n\n']), id="error line"),
        pytest.param(error(200, "<html>it is so</html>"), id="web page"),
        pytest.param(Answer([b"event: error\n" + event({"message": "it is so", "type": "x"})]), id="error event"),
        pytest.param(Answer([b"event: error\n" + event({"message": "it is so", "n": 1})]), id="error event of its own"),
        pytest.param(Answer([b"event: error\n" + event("it is so")]), id="error event with a text"),
        pytest.param(sse({"choices": [{"text": "", "error": {"message": "it is so"}}]}), id="inside a choice"),
    ],
)
def test_errors_with_status_200(answer: Answer) -> None:
    with FakeServer(answer) as server:
        assert "it is so" in str(failure(openai(server)))
        assert len(server.requests) == 1


def test_what_the_provider_of_a_gateway_said() -> None:
    raw = '{"message": "This model\'s maximum context length is 4096 tokens. However, you requested 4390 tokens"}'
    said = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "P"}}
    with FakeServer(error(400, {"error": said})) as server:
        caught = failure(openai(server))
    assert isinstance(caught, ContextOverflow) and (caught.prompt_tokens, caught.context_size) == (4390, 4096)


@pytest.mark.parametrize("code", [502, "502"])
def test_an_error_in_a_stream_that_may_pass(code: Any) -> None:
    with FakeServer(sse(chunk(" a"), {"error": {"code": code, "message": "Provider disconnected"}}), WHOLE) as server:
        assert ask(openai(server)).text == TURN


def test_errors_are_unpacked() -> None:
    body = gzip.compress(dumps({"error": "it is so"}))
    with FakeServer(Answer([body], 400, {"Content-Encoding": "gzip"}, framing="length")) as server:
        assert "answered 400: it is so" in str(failure(openai(server)))


def test_a_count_of_nothing_is_no_count() -> None:
    with FakeServer(sse(chunk(TURN, "stop", counts(0, 5)))) as server:
        completion = ask(openai(server), PROMPT * 20)
    assert (completion.usage.prompt_tokens, completion.warnings) == (None, ())


@pytest.mark.parametrize("field", ["delta", "message"])
def test_an_answer_of_chat_messages_is_no_empty_completion(field: str) -> None:
    with FakeServer(sse({"choices": [{field: {"content": TURN}, "finish_reason": "stop"}]})) as server:
        assert "a raw completion endpoint is required" in str(failure(openai(server)))
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            error(
                404,
                {
                    "error": {
                        "message": "This is a chat model and not supported in the v1/completions endpoint.",
                        "type": "invalid_request_error",
                        "param": "model",
                    }
                },
            ),
            id="completions-endpoint-refused",
        ),
        pytest.param(error(404, "<html>Not Found</html>"), id="completions-endpoint-refused HTML"),
        pytest.param(error(405, {"detail": "Method Not Allowed"}), id="completions-endpoint-refused 405"),
    ],
)
def test_chat_only_endpoints(answer: Answer) -> None:
    with FakeServer(answer) as server:
        text = str(failure(openai(server)))
        assert [request.path for request in server.requests] == ["/v1/completions"]
    assert f"{server.url}/v1/completions" in text and "raw completion endpoint is required" in text


def test_refused_keys() -> None:
    with FakeServer(lambda request: error(401, {"error": f"bad {request.headers.get('authorization')}"})) as server:
        assert "set REACT_TEXT_API_KEY" in str(failure(openai(server)))
        caught = failure(openai(server, api_key="sk-secret"))
        assert "change REACT_TEXT_API_KEY" in str(caught) and "sk-secret" not in str(caught)
    with pytest.raises(AuthorError) as refused:
        OpenAICompletions(server.url, api_key="sk-sécret")
    assert "cret" not in str(refused.value)
    assert "sk-secret" not in repr(openai(server, api_key="sk-secret"))
    for damaged in (Answer([b"data: sk-secret\n\n"]), Answer([b"sk-secret\r\n\r\n"], framing="raw")):
        with FakeServer(damaged) as server:
            assert "***" in str(failure(openai(server, api_key="sk-secret")))


@pytest.mark.parametrize(
    "message", ["model name is missing from the request", "you must provide a model parameter", "model is required"]
)
def test_a_server_that_wants_to_be_told_the_model(message: str) -> None:
    with FakeServer(error(400, {"error": {"message": message}})) as server:
        assert "?model=NAME" in str(failure(llamacpp(server)))
        assert "?model=NAME" not in str(failure(llamacpp(server, model="m")))


def test_passwords_in_urls_are_not_shown() -> None:
    model = OpenAICompletions("http://user:secret@127.0.0.1:1", model="m", retry_seconds=0)
    assert "secret" not in str(failure(model)) + repr(model) + model.url
    for url in ("http://user:secret@h:99999", "http://user:sec/secret@h", "ftp://user:secret@h"):
        with pytest.raises(AuthorError) as caught:
            LlamaCpp(url)
        assert "secret" not in str(caught.value)


def test_redirects_are_not_followed() -> None:
    with FakeServer(Answer([], 301, {"Location": "https://me:pw@elsewhere.example/"}, framing="length")) as server:
        assert "https://***@elsewhere.example/" in str(failure(openai(server)))
        assert len(server.requests) == 1


def test_events_of_unknown_form() -> None:
    with FakeServer(sse({"choices": "x"})) as server:
        assert "unknown form" in str(failure(openai(server)))


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://h", "http://", "http://[", "http://h:99999"])
def test_wrong_urls(url: str) -> None:
    with pytest.raises(AuthorError, match="no http:// or https:// URL"):
        LlamaCpp(url)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_wrong_timeouts(seconds: float) -> None:
    with pytest.raises(AuthorError, match="positive number of seconds"):
        LlamaCpp("http://h", timeout=seconds)


# Fields that a server refuses.


def refusing(field: str, body: dict[str, Any], status: int = 400) -> Callable[[Request], Answer]:
    return lambda request: error(status, body) if field in request.json else WHOLE


def test_stop_parameter_refused() -> None:
    message = "Unsupported parameter: 'stop' is not supported with this model."
    body = {"error": {"message": message, "param": "stop", "code": "unsupported_parameter"}}
    with FakeServer(refusing("stop", body)) as server:
        model = openai(server)
        for _ in range(2):
            completion = ask(model)
            assert completion.text == TURN and "?send_stop=false" in completion.warnings[0]
        assert ["stop" in request.json for request in server.requests] == [True, False, False]
        assert ask(openai(server, send_stop=False)).warnings == ()


def test_stop_parameter_refused_to_two_threads_at_once() -> None:
    both = threading.Barrier(2, timeout=5)

    def answer(request: Request) -> Answer:
        if "stop" not in request.json:
            return WHOLE
        both.wait()
        return error(400, {"error": {"message": "no", "param": "stop"}})

    with FakeServer(answer) as server, ThreadPoolExecutor(2) as pool:
        model = openai(server)
        assert [each.result().text for each in [pool.submit(ask, model) for _ in range(2)]] == [TURN, TURN]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(400, {"error": {"message": "Unknown parameter: stream_options"}}, id="unknown parameter"),
        pytest.param(
            422,
            {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
            id="strict schema",
        ),
    ],
)
def test_stream_options_refused(status: int, body: dict[str, Any]) -> None:
    with FakeServer(refusing("stream_options", body, status)) as server:
        completion = ask(openai(server))
        assert (completion.text, completion.warnings) == (TURN, ())
        assert len(server.requests) == 2 and server.requests[1].json["stop"] == STOP


def test_a_field_is_dropped_only_once() -> None:
    with FakeServer(error(400, {"error": {"message": "'stop' is not supported", "param": "stop"}})) as server:
        assert "'stop' is not supported" in str(failure(openai(server)))
        assert len(server.requests) == 2


# Trying again.


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_statuses_that_pass(status: int) -> None:
    busy = error(status, {"error": {"message": "Loading model", "type": "unavailable_error", "code": status}})
    with FakeServer(busy, busy, busy, busy, WHOLE) as server:
        completion = ask(openai(server))
    assert completion.text == TURN and len(completion.warnings) == 4 and "Loading model" in completion.warnings[0]


@pytest.mark.parametrize("in_stream", [False, True])
def test_a_grammar_that_fails_would_fail_again(in_stream: bool) -> None:
    said = {"error": {"code": 500, "message": "got exception: Unexpected empty grammar stack", "type": "server_error"}}
    with FakeServer(sse(chunk(" a"), said) if in_stream else error(500, said)) as server:
        assert "grammar stack" in str(failure(llamacpp(server)))
        assert len(server.requests) == 1


def test_progress_lost_on_rate_limit() -> None:
    with FakeServer(error(429, {"error": {"message": "slow down"}})) as server:
        started = time.monotonic()
        text = str(failure(openai(server, retry_seconds=0.2)))
        assert "answered 429: slow down" in text and len(server.requests) > 2
    assert time.monotonic() - started < 1


def test_no_retry_at_all() -> None:
    with FakeServer(error(503, {"error": "busy"})) as server:
        failure(openai(server, retry_seconds=0))
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "header", ["0.2", email.utils.formatdate(time.time() + 10_000, usegmt=True)], ids=["seconds", "date"]
)
def test_retry_after(header: str) -> None:
    with FakeServer(error(429, {"error": "slow down"}, **{"Retry-After": header}), WHOLE) as server:
        started = time.monotonic()
        if header == "0.2":
            assert ask(openai(server)).text == TURN
            assert time.monotonic() - started > 0.2
        else:  # longer than retry_seconds: no use in waiting
            failure(openai(server))
            assert time.monotonic() - started < 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("-3", 0.0), ("", 0.0), ("soon", 0.0), ("nan", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_retry_after_header(header: str, seconds: float) -> None:
    assert http._retry_after(header) == seconds


def test_waiting_never_passes_the_deadline() -> None:
    with FakeServer(error(503, {"error": "busy"}, **{"Retry-After": "30"})) as server:
        started = time.monotonic()
        assert "busy" in str(failure(openai(server), deadline=started + 5))
    assert time.monotonic() - started < 1


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    for model in (LlamaCpp(url, retry_seconds=0.1, backoff=0.01), OpenAICompletions(url, retry_seconds=0)):
        assert f"no server answers at {url}: is it running? (Connection refused)" in str(failure(model))
    assert "no server answers" in str(failure(LlamaCpp("http://no-such-host.invalid", retry_seconds=0)))


def test_a_server_that_starts_late() -> None:
    port = free_port()
    done: list[Completion] = []
    model = OpenAICompletions(f"http://127.0.0.1:{port}", backoff=0.02)
    thread = threading.Thread(target=lambda: done.append(ask(model)))
    thread.start()
    time.sleep(0.1)
    with FakeServer(WHOLE, pages={"/v1/models": reply({"data": [{"id": "late"}]})}, port=port) as server:
        thread.join(5)
        assert server.requests[0].json["model"] == "late"
    assert done[0].text == TURN


# Time limits.

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def trickle(data: bytes) -> Answer:
    return Answer([data[i : i + 1] for i in range(len(data))] + [b" "] * 10_000, framing="raw", delay=0.05)


@pytest.mark.parametrize("limit", ["deadline", "total_timeout"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(SILENT, id="request-without-timeout"),
        pytest.param(trickle(b"HTTP/1.1 200 OK\r\nX-Long: "), id="request-without-timeout trickling headers"),
        pytest.param(sse(*[chunk("")] * 1000, delay=0.05), id="request-without-timeout trickling empty events"),
        pytest.param(Answer([b":"] * 1000, delay=0.05), id="request-without-timeout trickling bytes"),
        pytest.param(
            Answer([HEADERS, b"0", *[b"0"] * 1000], framing="raw", delay=0.05), id="trickling size of a chunk"
        ),
        pytest.param(sse(chunk(" a"), end="hang"), id="silent after the first word"),
        pytest.param(error(503, {"error": "busy"}), id="always busy"),
        pytest.param(Answer([b"{"], 500, end="hang"), id="an error without end"),
    ],
)
def test_limits_of_the_whole(answer: Answer, limit: str) -> None:
    with FakeServer(answer) as server:
        started = time.monotonic()
        if limit == "deadline":
            caught = failure(openai(server), deadline=started + 0.25)
        else:
            caught = failure(openai(server, total_timeout=0.25))
        assert time.monotonic() - started < 1
    if answer.status == 200:
        assert isinstance(caught, ServerTimeout) and f"{server.url}/v1/completions did not finish" in str(caught)


def test_the_deadline_holds_while_the_model_is_looked_up() -> None:
    with FakeServer(SILENT, pages={"/v1/models": SILENT}) as server:
        started = time.monotonic()
        assert isinstance(failure(openai(server, model=None), deadline=started + 0.2), ServerTimeout)
        assert time.monotonic() - started < 1 and not server.requests


def test_a_deadline_that_is_over() -> None:
    with FakeServer(WHOLE) as server:
        assert isinstance(failure(openai(server), deadline=time.monotonic() - 1), ServerTimeout)
        assert not server.requests


@pytest.mark.parametrize(
    "answer",
    [pytest.param(SILENT, id="from the start"), pytest.param(sse(chunk(" a"), end="hang"), id="in the middle")],
)
def test_longest_silence(answer: Answer) -> None:
    with FakeServer(answer) as server:
        caught = failure(openai(server, timeout=0.2))
        assert isinstance(caught, ServerTimeout)
        assert "sent nothing for 0.2 seconds (timeout)" in str(caught)
        assert len(server.requests) == 1, "a second request would only queue behind the first"
        assert server.requests[0].left_early.wait(1)


def test_pings_are_no_silence() -> None:
    pings = [b": ping\n\n"] * 8
    with FakeServer(Answer([*pings, event(chunk(TURN, "stop"))], delay=0.05)) as server:
        assert ask(openai(server, timeout=0.2)).text == TURN


def test_connecting_takes_too_long() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for connection in waiting:  # nobody accepts, so the queue is full and the next connection hangs
            connection.setblocking(False)
            connection.connect_ex(full.getsockname())
        caught = failure(LlamaCpp(f"http://127.0.0.1:{full.getsockname()[1]}", connect_timeout=0.2, retry_seconds=0))
        for connection in waiting:
            connection.close()
    assert isinstance(caught, ServerTimeout) and "no server answers" in str(caught)


# Names and sizes.


def test_llamacpp_name_and_context() -> None:
    props = {"default_generation_settings": {"n_ctx": 8192}, "model_path": "/models/qwen2.5-0.5b-q4.gguf"}
    with FakeServer(WHOLE, pages={"/props": reply(props)}) as server:
        model = llamacpp(server)
        assert (model.name, model.context_size(), model.name) == ("qwen2.5-0.5b-q4", 8192, "qwen2.5-0.5b-q4")
        assert len(server.gets) == 1, "asked once"
    assert llamacpp(server).name == "llamacpp" and llamacpp(server).context_size() is None
    assert llamacpp(server, model="given").name == "given"


def test_a_llamacpp_with_several_models_is_asked_about_one() -> None:
    props = reply({"default_generation_settings": {"n_ctx": 2048}, "chat_template": "{{ messages }}"})
    empty = reply({"default_generation_settings": {"n_ctx": 0}})
    with FakeServer(reply({"tokens": [1, 2]}), pages={"/props": empty, "/props?model=a%2Fb%3A1": props}) as server:
        assert llamacpp(server).context_size() is None
        model = llamacpp(server, model="a/b:1")
        assert (model.name, model.context_size(), model.tokens("x")) == ("b:1", 2048, [1, 2])
        assert model.chat_template() and server.requests[0].json == {"content": "x", "model": "a/b:1"}


def test_openai_model() -> None:
    page = reply({"object": "list", "data": [{"id": "first", "max_model_len": 4096}, {"id": "second"}]})
    with FakeServer(WHOLE, pages={"/v1/models": page}) as server:
        model = OpenAICompletions(server.url + "/v1/")
        ask(model)
        ask(model)
        assert [request.json["model"] for request in server.requests] == ["first", "first"]
        assert (model.name, model.context_size(), len(server.gets)) == ("first", 4096, 1)
        assert OpenAICompletions(server.url, model="second").context_size() is None
    with FakeServer(WHOLE) as server:
        ask(OpenAICompletions(server.url))
        assert "model" not in server.requests[0].json
    assert OpenAICompletions(server.url).name == "completions"


# The rest.


def test_many_threads_share_a_model() -> None:
    def answer(request: Request) -> Answer:
        return sse(*[chunk(letter) for letter in request.json["prompt"][::-1]], chunk("", "stop"))

    prompts = [f"prompt {number}" for number in range(12)]
    with FakeServer(answer) as server, ThreadPoolExecutor(12) as pool:
        model = openai(server)
        texts = [completion.text for completion in pool.map(lambda prompt: ask(model, prompt), prompts)]
    assert texts == [prompt[::-1] for prompt in prompts]


def test_nothing_is_left_running() -> None:
    with FakeServer(WHOLE) as server:
        ask(openai(server))
    time.sleep(0.05)
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_importing_the_seam_is_cheap() -> None:
    code = "import sys, react_text.models.base; sys.exit('requests' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
