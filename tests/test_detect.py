"""Which server is it, and which spec opens it: against the fakes of tests/servers, which imitate as their models do."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from react_text import Options, ScriptedModel
from react_text.errors import AuthorError, ServerError, ServerTimeout
from react_text.models import KINDS, auto_model, detect, open_model
from react_text.models.chat import Chat
from react_text.models.detect import SERVERS, identify, running
from react_text.models.http import HTTPModel
from react_text.models.koboldcpp import KoboldCpp
from react_text.models.llamacpp import LlamaCpp
from react_text.models.lmstudio import LMStudio
from react_text.models.ollama import Ollama
from react_text.models.openai import OpenAICompletions
from react_text.models.openrouter import OpenRouter
from react_text.models.tabbyapi import TabbyAPI
from react_text.models.vllm import VLLM

from .fakes import Answer, FakeServer, error, reply
from .servers import Server
from .servers.koboldcpp import KoboldCppServer
from .servers.llamacpp import LlamaCppServer
from .servers.lmstudio import LMStudioServer
from .servers.ollama import OllamaServer
from .servers.openai import OpenAIServer
from .servers.sglang import SGLangServer
from .servers.tabbyapi import TabbyAPIServer
from .servers.textgen import TextGenServer
from .servers.tgi import TGIServer
from .servers.vllm import VLLMServer

ROOT = Path(__file__).parents[1]
SILENT = Answer([], framing="raw", end="hang")
PAGE = error(200, "<html>hello</html>")


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REACT_TEXT_API_KEY", "REACT_TEXT_PROBE"):
        monkeypatch.delenv(name, raising=False)


# -- what a server is


@pytest.mark.parametrize(
    ("server", "questions"),
    [
        (LlamaCppServer, 1),
        (VLLMServer, 1),
        (SGLangServer, 1),
        (KoboldCppServer, 1),
        (TabbyAPIServer, 1),
        (OllamaServer, 3),
        (TGIServer, 4),
        (TextGenServer, 6),
        (LMStudioServer, 7),
        (OpenAIServer, 8),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_each_server_is_found_out_with_few_questions(server: type[Server], questions: int) -> None:
    with server() as running_server:
        model = identify(running_server.url, timeout=5)
        assert type(model) is SERVERS[server.kind]
        assert model.client.timeout == 5
        assert len(running_server.gets) == questions
        assert running_server.requests == []


def without_owner(server: type[Server], **more: Answer) -> FakeServer:
    """A server that does not list its models under the owner by which it is known."""
    pages = dict(server().pages())
    return FakeServer(error(404, {}), pages={**pages, "/v1/models": reply({"data": [{"id": "m"}]}), **more})


@pytest.mark.parametrize(
    "server",
    [KoboldCppServer, TabbyAPIServer, SGLangServer, OllamaServer],
    ids=lambda server: server.kind,
)
def test_imitators_are_told_apart_without_the_owner_too(server: type[Server]) -> None:
    """KoboldCpp answers Ollama's paths, TabbyAPI llama.cpp's /props, SGLang ships Ollama's API."""
    with without_owner(server) as running_server:
        assert type(identify(running_server.url)) is SERVERS[server.kind]


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        pytest.param(reply({"data": [{"id": "m", "owned_by": "llamacpp"}]}), LlamaCpp, id="owner"),
        pytest.param(reply({"data": []}, Server="llama.cpp"), LlamaCpp, id="header"),
        pytest.param(error(503, {"error": "Loading model"}, Server="llama.cpp"), LlamaCpp, id="header of an error"),
        pytest.param(error(401, {"error": "no"}, Server="llama.cpp"), LlamaCpp, id="header of a refusal"),
        pytest.param(error(404, "<html>nothing</html>"), OpenAICompletions, id="no list"),
        pytest.param(reply({"data": [7], "models": None}), OpenAICompletions, id="odd list"),
        pytest.param(
            reply({"data": [{"id": "m", "owned_by": "library"}]}), OpenAICompletions, id="no Ollama behind it"
        ),
    ],
)
def test_what_the_first_question_tells(page: Answer, kind: type[HTTPModel]) -> None:
    with FakeServer(reply({}), pages={"/v1/models": page}) as server:
        assert type(identify(server.url)) is kind


@pytest.mark.parametrize("body", [{"router": "x"}, {"software": "TabbyAPI"}, {"result": 7}, {"data": [{"state": 1}]}])
def test_bodies_that_only_resemble_an_answer(body: Any) -> None:
    """Not the status decides: LM Studio answers any path with 200."""
    asked = ("/v1/models", *(path for path, _, _ in detect._QUESTIONS), "/api/version", "/")
    with FakeServer(reply({}), pages=dict.fromkeys(asked, reply(body))) as server:
        assert type(identify(server.url)) is OpenAICompletions


def test_openrouter_is_known_by_its_host() -> None:
    assert type(identify("https://openrouter.ai/api/v1", model="m")) is OpenRouter


def test_identify_says_what_is_wrong() -> None:
    with pytest.raises(ServerError, match="is it running"):
        identify(f"http://127.0.0.1:{free_port()}")
    with (
        FakeServer(reply({}), pages={"/v1/models": error(401, {"error": "no"})}) as server,
        pytest.raises(ServerError, match="set REACT_TEXT_API_KEY"),
    ):
        identify(server.url)
    with FakeServer(reply({}), pages={"/v1/models": SILENT}) as server, pytest.raises(ServerTimeout):
        identify(server.url, seconds=0.2)


def test_a_question_that_is_not_answered_is_a_no() -> None:
    pages = {"/v1/models": reply({"data": []}), "/info": Answer([], framing="raw")}
    with FakeServer(reply({}), pages=pages) as server:
        assert type(identify(server.url)) is OpenAICompletions


# -- specs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("web", ["http", "https"])
def test_a_server_that_is_named_is_asked_nothing(kind: str, web: str) -> None:
    model = open_model(f"{kind}+{web}://host.invalid:1/base/?model=m&num_ctx=4096&send_stop=false", timeout=9)
    assert type(model) is SERVERS[kind]
    assert isinstance(model, HTTPModel)
    assert model.url == f"{web}://host.invalid:1/base"
    assert (model.model, model.num_ctx, model.send_stop, model.client.timeout) == ("m", 4096, False, 9)


def test_all_settings_of_a_url() -> None:
    query = "timeout=1&connect_timeout=2.5&total_timeout=3&retry_seconds=0&send_stop=true"
    model = open_model(f"vllm+http://h:1?{query}", timeout=9)
    assert isinstance(model, VLLM)
    assert (model.client.timeout, model.client.connect_timeout, model.total_timeout) == (1, 2.5, 3)
    assert (model.retry_seconds, model.send_stop) == (0, True)
    chat = open_model("chat+http://h:1?prefill=false")
    assert isinstance(chat, Chat) and chat.prefill is False


def test_a_plain_url_takes_settings_too() -> None:
    with OllamaServer() as server:
        model = open_model(f"{server.url}/v1?model=phi&num_ctx=2048")
    assert isinstance(model, Ollama)
    assert (model.model, model.num_ctx, model.url) == ("phi", 2048, server.url)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("ollma+http://h", "did you mean ollama+http"),
        ("http://h?modle=x", "unknown setting 'modle' (did you mean model?)"),
        ("vllm+http://h?prefill=false", "unknown setting 'prefill'"),
        ("vllm+http://h?zzz=1", "there are model, num_ctx, send_stop"),
        ("vllm+http://h?num_ctx=4k", "num_ctx cannot be '4k'"),
        ("vllm+http://h?num_ctx=0", "num_ctx is a number of tokens above 0"),
        ("vllm+http://h?send_stop=no", "send_stop cannot be 'no'"),
        ("vllm+http://h?timeout=soon", "timeout cannot be 'soon'"),
        ("vllm+http://h?timeout=0", "positive number of seconds"),
        ("vllm+http://", "names no host"),
        ("localhost:8080", "is not understood (did you mean http://localhost:8080?)"),
        ("vllm+http://[::1", "is no URL"),
        ("auto2", "is not understood"),
    ],
)
def test_specs_that_cannot_be_read(spec: str, said: str) -> None:
    with pytest.raises(AuthorError) as caught:
        open_model(spec)
    assert said in str(caught.value)


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(AuthorError) as caught:
        open_model("vllm+http://user:secret@h?x=1")
    assert "secret" not in str(caught.value)
    for spec in ("htp://user:secret@h", "http://user:secret@", "http://user:secret@h:99999"):
        with pytest.raises(AuthorError) as caught:
            open_model(spec)
        assert "secret" not in str(caught.value)


# -- which model of an Ollama


def test_an_ollama_that_is_not_there() -> None:
    model = open_model(f"ollama+http://127.0.0.1:{free_port()}?retry_seconds=0")
    with pytest.raises(ServerError, match="is it running"):
        model.complete("x", stop=[], options=Options())


@pytest.mark.parametrize(
    ("loaded", "installed", "model"),
    [
        pytest.param({}, ("a:1b",), "a:1b", id="the only one"),
        pytest.param({"b:1b": 4096}, ("a:1b", "b:1b"), "b:1b", id="the loaded one"),
        pytest.param({"a:1b": 4096, "b:1b": 4096}, ("a:1b", "b:1b"), None, id="two are loaded"),
        pytest.param({}, ("a:1b", "b:1b"), None, id="none is loaded"),
        pytest.param({}, (), None, id="there is none"),
    ],
)
def test_an_ollama_chooses_a_model_when_there_is_no_doubt(
    loaded: dict[str, int], installed: tuple[str, ...], model: str | None
) -> None:
    with OllamaServer(loaded=loaded, installed=installed) as server:
        opened = Ollama(server.url)
        assert opened.name == (model or "ollama")
        if model is None:
            with pytest.raises(ServerError) as caught:
                opened.prepare(time.monotonic() + 1)
            assert f"ollama+{server.url}?model=NAME" in str(caught.value)
            assert all(name in str(caught.value) for name in installed)


@pytest.mark.parametrize(("status", "said"), [(401, "set REACT_TEXT_API_KEY"), (404, "check the URL"), (503, "busy")])
def test_an_ollama_that_refuses_to_list_its_models(status: int, said: str) -> None:
    refusal = error(status, {"error": "busy"})
    pages = {"/api/ps": refusal, "/api/tags": refusal}
    with FakeServer(refusal, pages=pages) as server, pytest.raises(ServerError, match=said) as caught:
        Ollama(server.url, retry_seconds=0).complete("x", stop=[], options=Options())
    assert "has no model" not in str(caught.value)


# -- auto


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Starts servers on what are the usual ports then, in this order; None for a port where nobody listens."""
    with ExitStack() as stack:

        def start(*servers: FakeServer | None) -> list[str]:
            started = [stack.enter_context(server) if server else None for server in servers]
            urls = [server.url if server else f"http://127.0.0.1:{free_port()}" for server in started]
            monkeypatch.setattr(detect, "USUAL_PORTS", tuple(int(url.rpartition(":")[2]) for url in urls))
            return urls

        yield start


def web(page: Answer) -> FakeServer:
    """Some other web server: it gives the same page for every path."""

    class Pages(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            return page

    return FakeServer(page, pages=Pages())


def test_the_usual_ports() -> None:
    assert sorted(detect.USUAL_PORTS) == [1234, 3000, 5000, 5001, 8000, 8080, 11434, 30000]


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ([None, VLLMServer(), LlamaCppServer()], VLLM),
        ([None, web(PAGE), TabbyAPIServer()], TabbyAPI),
        ([web(error(403, "")), None, KoboldCppServer()], KoboldCpp),
        ([web(reply({"ok": True})), LMStudioServer()], LMStudio),
        ([OpenAIServer(), None], OpenAICompletions),
        ([None, None], None),
        ([web(PAGE), web(error(404, {"error": "no"}))], None),
    ],
    ids=["the first", "a web server", "a port of the system's", "any path", "any /v1", "nobody", "none"],
)
def test_auto_finds_the_first_model_server(usual: Any, servers: list[Any], found: type[HTTPModel] | None) -> None:
    urls = usual(*servers)
    model, complaint = running()
    assert (type(model) if model else None, complaint) == (found, "")
    assert model is None or model.url in urls


def test_auto_takes_no_more_than_its_time(usual: Any) -> None:
    """However many ports hang, and wherever: at the start or in the middle of the questions."""
    silent = [FakeServer(SILENT, pages={"/v1/models": SILENT}) for _ in range(5)]
    late = FakeServer(SILENT, pages={"/v1/models": reply({"data": []}), "/info": SILENT})
    usual(*silent, late, LlamaCppServer())
    started = time.monotonic()
    model, _ = running(seconds=0.6)
    assert time.monotonic() - started < 1
    assert isinstance(model, LlamaCpp)


def test_auto_model_uses_what_is_found(usual: Any) -> None:
    (url,) = usual(OllamaServer(loaded={"b:1b": 4096}, installed=("a:1b", "b:1b")))
    model, notice = auto_model(None, timeout=7)
    assert isinstance(model, Ollama)
    assert (model.name, model.client.timeout, notice) == ("b:1b", 7, f"using the model server at {url}")


def test_auto_model_with_an_ollama_of_many_models(usual: Any) -> None:
    """It says which there are, and plays the demo."""
    demo = ROOT / "traces" / "refund.trace"
    (url,) = usual(OllamaServer(installed=("a:1b", "b:1b")))
    model, notice = auto_model(demo)
    assert isinstance(model, ScriptedModel)
    assert f"the Ollama at {url} has several models (a:1b, b:1b)" in notice
    assert "the turns are scripted" in notice
    with pytest.raises(AuthorError, match="has several models"):
        auto_model(None)


def test_auto_model_asks_nobody_when_it_must_not(usual: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = LlamaCppServer()
    usual(server)
    monkeypatch.setenv("REACT_TEXT_PROBE", "off")
    assert isinstance(auto_model(ROOT / "traces" / "refund.trace")[0], ScriptedModel)
    with pytest.raises(AuthorError, match="no model server found and the prompt has no demo"):
        auto_model(None)
    assert server.gets == []


def test_auto_model_prefers_what_is_configured(usual: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    usual(LlamaCppServer())
    assert isinstance(auto_model(None, "vllm+http://h:1")[0], VLLM)
    monkeypatch.setenv("REACT_TEXT_MODEL", "tabbyapi+http://h:1")
    assert isinstance(auto_model(None, "vllm+http://h:1")[0], TabbyAPI)
    monkeypatch.setenv("REACT_TEXT_MODEL", "auto")
    assert isinstance(auto_model(None)[0], LlamaCpp)
