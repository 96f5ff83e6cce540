"""Every server against its faithful fake in tests/servers. Test ids written-like-this name a public bug report."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from react_text import Agent, Result, Trace
from react_text.errors import ContextOverflow, ServerError
from react_text.models import KINDS, fit, http
from react_text.models.base import Completion, Options, PromptText, Usage
from react_text.models.detect import SERVERS
from react_text.models.http import HTTPModel
from react_text.models.openai import OpenAICompletions

from .fakes import Answer, FakeServer, chunk, dumps, error, reply, sse
from .servers import TEXT, TURN, Request, Server, pieces, tokens
from .servers.chat import ChatServer
from .servers.koboldcpp import KoboldCppServer
from .servers.llamacpp import LlamaCppServer
from .servers.lmstudio import LMStudioServer
from .servers.ollama import OllamaServer
from .servers.openai import OpenAIServer
from .servers.openrouter import OpenRouterServer
from .servers.sglang import SGLangServer
from .servers.tabbyapi import TabbyAPIServer
from .servers.textgen import TextGenServer
from .servers.tgi import TGIServer
from .servers.vllm import VLLMServer

HEAD = "Answer with tools.\n\nQuestion: How long is the pier?\n"
PROMPT = PromptText(f"{HEAD}Thought:", len(HEAD))
STOP = ["\nObservation:", "\nQuestion:"]
TOKENS = tokens(PROMPT)


@dataclass(frozen=True)
class Case:
    """What to expect of one kind: the whole body of a greedy request, and what of it is different when sampling; what
    is counted; how the model's own end is called; which stop string stays in the text; what the model is called and
    how large its context is."""

    server: type[Server]
    body: dict[str, Any]
    sampled: dict[str, Any]
    usage: Usage
    eos: str = "eos"
    stop_kept: str = ""
    name: str = "m-8b"
    context: int | None = 4096

    def __str__(self) -> str:
        return self.server.kind


def flat(**more: Any) -> dict[str, Any]:
    """The body of a server with the fields of OpenAI."""
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    return {"prompt": PROMPT, "max_tokens": 99, "temperature": 0.0, "stop": STOP, **streamed, **more}


WRITTEN = len(pieces(TURN))
CASES = [
    Case(
        LlamaCppServer,
        {
            "prompt": PROMPT,
            "n_predict": 99,
            "temperature": 0.0,
            "stop": STOP,
            "stream": True,
            "cache_prompt": True,
            "timings_per_token": True,
        },
        {"temperature": 0.7, "seed": 7},
        usage=Usage(TOKENS, WRITTEN, 0),
    ),
    Case(
        VLLMServer,
        flat(model="m-8b", stream_options={"include_usage": True, "continuous_usage_stats": True}),
        {"temperature": 0.7, "seed": 7},
        usage=Usage(TOKENS, WRITTEN),
    ),
    Case(
        OllamaServer,
        {
            "model": "llama3:8b",
            "prompt": PROMPT,
            "raw": True,
            "stream": True,
            "think": False,
            "truncate": False,
            "options": {"num_ctx": 8192, "num_predict": 99, "temperature": 0.0, "stop": STOP},
        },
        {"options": {"num_ctx": 8192, "num_predict": 99, "temperature": 0.7, "seed": 7, "stop": STOP}},
        eos="stop",
        usage=Usage(TOKENS, WRITTEN),
        name="llama3:8b",
        context=8192,
    ),
    Case(
        TGIServer,
        {
            "inputs": PROMPT,
            "parameters": {
                "max_new_tokens": 99,
                "do_sample": False,
                "return_full_text": False,
                "details": True,
                "stop": STOP,
            },
        },
        {
            "parameters": {
                "max_new_tokens": 99,
                "do_sample": True,
                "return_full_text": False,
                "details": True,
                "temperature": 0.7,
                "seed": 7,
                "stop": STOP,
            }
        },
        usage=Usage(TOKENS, len(pieces(f"{TURN}{STOP[0]}"))),
        stop_kept=STOP[0],
        name="org/m-8b",
    ),
    Case(
        SGLangServer,
        {
            "text": PROMPT,
            "sampling_params": {"max_new_tokens": 99, "temperature": 0.0, "stop": STOP},
            "stream": True,
        },
        {"sampling_params": {"max_new_tokens": 99, "temperature": 0.7, "sampling_seed": 7, "stop": STOP}},
        usage=Usage(TOKENS, WRITTEN, 3),
    ),
    Case(
        LMStudioServer,
        flat(model="granite-8b"),
        {"temperature": 0.7, "seed": 7},
        usage=Usage(TOKENS, WRITTEN),
        name="granite-8b",
    ),
    Case(
        KoboldCppServer,
        {
            "prompt": PROMPT,
            "max_length": 99,
            "max_context_length": 4096,
            "temperature": 0.0,
            "trim_stop": True,
            "stop_sequence": STOP,
        },
        {"temperature": 0.7, "sampler_seed": 7},
        usage=Usage(TOKENS + 4),  # what the tokenizer counts, and what the server keeps for itself
    ),
    Case(
        TabbyAPIServer,
        flat(model="m-8b-exl3"),
        {"temperature": 0.7, "seed": 7},
        usage=Usage(TOKENS, WRITTEN),
        name="m-8b-exl3",
    ),
    Case(
        TextGenServer,
        flat(truncation_length=4096),
        {"temperature": 0.7, "seed": 7},
        eos="stop",
        usage=Usage(TOKENS, WRITTEN),
    ),
    Case(
        OpenRouterServer,
        flat(model="org/m-8b", transforms=[], provider={"require_parameters": True}),
        {"temperature": 0.7, "seed": 7},
        eos="stop",
        usage=Usage(TOKENS, WRITTEN),
        name="org/m-8b",
    ),
    Case(
        OpenAIServer,
        flat(model="m-8b"),
        {"temperature": 0.7, "seed": 7},
        eos="stop",
        usage=Usage(TOKENS, WRITTEN),
        context=None,
    ),
    Case(
        ChatServer,
        {
            key: value
            for key, value in flat(
                model="m-8b",
                messages=[
                    {"role": "user", "content": HEAD.rstrip()},
                    {"role": "assistant", "content": "Thought:"},
                ],
                continue_final_message=True,
                add_generation_prompt=False,
            ).items()
            if key != "prompt"
        },
        {"temperature": 0.7, "seed": 7},
        eos="stop",
        usage=Usage(tokens(PROMPT.replace("\nThought", "Thought")), WRITTEN, 1),
        context=None,
    ),
]
every_server = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REACT_TEXT_API_KEY", raising=False)


def model_of(server: Server, **settings: Any) -> HTTPModel:
    """A client of a server, without its warning about a size that it does not tell."""
    if server.kind == "textgen":
        settings = {"num_ctx": server.context, **settings}
    if server.kind == "openrouter":  # a hosted service: its list is not the user's
        settings = {"model": "org/m-8b", **settings}
    return SERVERS[server.kind](server.url, **{"backoff": 0.005, **settings})


def ask(model: HTTPModel, prompt: str = PROMPT, **arguments: Any) -> Completion:
    options = Options(**{"max_tokens": 99, **arguments.pop("options", {})})
    return model.complete(prompt, **{"stop": STOP, "options": options, **arguments})


def failure(model: HTTPModel, prompt: str = PROMPT, **arguments: Any) -> ServerError:
    with pytest.raises(ServerError) as caught:
        ask(model, prompt, **arguments)
    return caught.value


class Enough:
    """A consumer that has had enough when `text` is there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen = ""

    def __call__(self, piece: str) -> bool:
        self.seen += piece
        return self.text in self.seen


def test_every_kind_has_a_case() -> None:
    assert tuple(SERVERS) == KINDS
    assert {str(case) for case in CASES} == set(KINDS)


# -- requests


@every_server
def test_the_body_of_a_request(case: Case) -> None:
    """stop-parameter-other-name, raw-prompt-template-mismatch: each server gets its own fields, and no others."""
    with case.server() as server:
        ask(model_of(server))
        assert server.completions[0].json == case.body


@every_server
def test_the_body_of_a_request_that_samples(case: Case) -> None:
    with case.server() as server:
        ask(model_of(server), options={"temperature": 0.7, "seed": 7})
        assert server.completions[0].json.items() >= case.sampled.items()


@every_server
def test_default_max_tokens_sixteen(case: Case) -> None:
    """The server's own default would cut this text, or let it run to the end of the context."""
    with case.server("la " * 400) as server:
        completion = ask(model_of(server), options={"max_tokens": 256})
    assert (len(completion.text), completion.finish) == (4 * 256, "length")


@every_server
def test_at_most_four_stop_strings_are_sent(case: Case) -> None:
    with case.server() as server:
        assert ask(model_of(server), stop=["a!", "b!", "", "c!", *STOP]).text.startswith(TURN)


@every_server
def test_no_stop_strings(case: Case) -> None:
    """send_stop: false."""
    with case.server() as server:
        assert ask(model_of(server, send_stop=False)).text == TEXT
        assert "Observation" not in json.dumps(server.completions[0].json).replace(json.dumps(PROMPT), "")


@pytest.mark.parametrize(
    ("server", "extra", "place"),
    [
        (OllamaServer, {"top_p": 0.9, "keep_alive": "10m"}, {"options": {"top_p": 0.9}, "keep_alive": "10m"}),
        (TGIServer, {"top_p": 0.9}, {"parameters": {"top_p": 0.9}}),
        (SGLangServer, {"top_p": 0.9, "lora_path": "x"}, {"sampling_params": {"top_p": 0.9}, "lora_path": "x"}),
        (KoboldCppServer, {"top_p": 0.9}, {"top_p": 0.9}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_options_of_the_author_stand_where_the_server_reads_them(
    server: type[Server], extra: dict[str, Any], place: dict[str, Any]
) -> None:
    with server() as running:
        ask(model_of(running), options={"extra": extra})
        body = running.completions[0].json
    for name, value in place.items():
        assert body[name].items() >= value.items() if isinstance(value, dict) else body[name] == value


# -- answers


@every_server
def test_a_turn(case: Case) -> None:
    with case.server() as server:
        model = model_of(server)
        completion = ask(model)
        assert completion == Completion(TURN + case.stop_kept, "stop", case.usage)
        assert len(server.completions) == 1
        assert (model.name, model.context_size()) == (case.name, case.context)


@every_server
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_multibyte_split_across_chunks(case: Case, size: int) -> None:
    """Whatever the boundaries of the chunks, inside characters, lines and events: the text is the same."""
    with case.server(split=size) as server:
        assert ask(model_of(server)).text == TURN + case.stop_kept


@every_server
def test_the_end_of_the_model_itself(case: Case) -> None:
    with case.server(TURN) as server:
        completion = ask(model_of(server))
    assert (completion.text, completion.finish, completion.warnings) == (TURN, case.eos, ())


@every_server
def test_a_text_that_is_too_long(case: Case) -> None:
    with case.server() as server:
        completion = ask(model_of(server), options={"max_tokens": 5})
    assert (completion.text, completion.finish) == (TURN[:20], "length")


@every_server
def test_the_stream_is_cut(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that goes on for ever: the connection is closed as soon as the turn is over, which cancels the work."""
    monkeypatch.setattr(SERVERS[case.server.kind], "linger", 0.05)
    with case.server(TURN + " la" * 2000, delay=0.003) as server:
        started = time.monotonic()
        completion = ask(model_of(server), on_text=Enough("]"), options={"max_tokens": 1900})
        until = WRITTEN  # the piece with the bracket in it is the last
        assert (completion.text, completion.finish) == ("".join(pieces(TURN + " la" * 9)[:until]), "cut")
        assert completion.usage.completion_tokens == until
        assert server.completions[0].left_early.wait(1)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("server", [OllamaServer, LMStudioServer, OpenRouterServer], ids=lambda server: server.kind)
def test_a_server_that_counts_at_the_end_gets_the_time_for_it(server: type[Server]) -> None:
    """The stop string comes right behind the turn, and with it the counts that tell whether the prompt was cut."""
    with server(delay=0.002) as running:
        completion = ask(model_of(running), on_text=Enough("]"))
    assert (completion.text, completion.finish) == (TURN, "cut")
    assert completion.usage == Usage(TOKENS, WRITTEN)


@every_server
def test_a_stream_of_empty_pieces(case: Case) -> None:
    """turn-starts-with-stop-word: an empty text is an answer like any other."""
    with case.server(TEXT[len(TURN) :]) as server:
        completion = ask(model_of(server))
    assert (completion.text.strip(), completion.finish) == (case.stop_kept.strip(), "stop")


@pytest.mark.parametrize(
    "settings",
    [{}, {"increments": True}, {"leaks": True}],
    ids=["whole texts", "increments", "half a stop string leaks"],
)
def test_sglang_sends_the_whole_text_so_far(settings: dict[str, Any]) -> None:
    with SGLangServer(**settings) as server:
        consumer = Enough("never")
        completion = ask(model_of(server), on_text=consumer)
    assert completion.text == consumer.seen == TURN + "\nObs" * bool(settings.get("leaks"))


def test_sglang_aborts() -> None:
    said = "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
    reason = {"type": "abort", "message": said, "status_code": 400, "err_type": "BadRequestError"}
    abort = sse({"text": "", "meta_info": {"finish_reason": reason, "prompt_tokens": 0}}, b"[DONE]")
    with SGLangServer(faults=[abort]) as server:
        caught = failure(model_of(server))
    assert isinstance(caught, ContextOverflow)
    assert (caught.prompt_tokens, caught.context_size) == (5000, 4096)


def test_ollama_may_end_without_done() -> None:
    lines = [{"response": TURN, "done": False}, {"response": "", "done_reason": "length", "eval_count": 3}]
    with OllamaServer(faults=[Answer([dumps(line) + b"\n" for line in lines])]) as server:
        completion = ask(model_of(server))
    assert (completion.text, completion.finish) == (TURN, "length")


def test_sglang_aborts_while_its_queue_is_full() -> None:
    reason = {"type": "abort", "message": "The request queue is full.", "status_code": 503}
    with SGLangServer(faults=[sse({"text": "", "meta_info": {"finish_reason": reason}}, b"[DONE]")]) as server:
        completion = ask(model_of(server))
    assert completion.text == TURN and "queue is full" in completion.warnings[0]


def test_sglang_has_half_a_character_first() -> None:
    whole = {"type": "stop", "matched": 2}
    texts = [(" a \ufffd", None), (" a 🌊", None), (" a 🌊 b", whole)]
    with SGLangServer(faults=[sse(*({"text": t, "meta_info": {"finish_reason": f}} for t, f in texts))]) as server:
        assert ask(model_of(server)).text == " a 🌊 b"


PLAIN: dict[type[Server], Any] = {
    LlamaCppServer: {"content": TURN, "stop": True, "stop_type": "word"},
    VLLMServer: {"choices": [{"text": TURN, "finish_reason": "stop", "stop_reason": STOP[0]}]},
    OllamaServer: {"response": TURN, "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 8},
    TGIServer: {"generated_text": TURN, "details": {"finish_reason": "stop_sequence"}},
    SGLangServer: {"text": TURN, "meta_info": {"finish_reason": {"type": "stop", "matched": STOP[0]}}},
    KoboldCppServer: {"results": [{"text": TURN, "finish_reason": "length"}]},
    ChatServer: {"choices": [{"message": {"role": "assistant", "content": TURN}, "finish_reason": "stop"}]},
}


@pytest.mark.parametrize("server", PLAIN, ids=lambda server: server.kind)
def test_a_whole_answer_instead_of_a_stream(server: type[Server]) -> None:
    """As a proxy gives it that collects streams."""
    with server(faults=[reply(PLAIN[server])]) as running:
        completion = ask(model_of(running))
    assert (completion.text, completion.finish) == (TURN, "stop")


def test_tokens_that_are_not_text_are_left_out() -> None:
    """TGI marks the token that ends the turn."""
    with TGIServer(TURN) as server:
        assert ask(model_of(server), stop=[]).text == TURN


# -- errors


@every_server
@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_refusals_are_shown_and_never_repeated(case: Case, status: int) -> None:
    with case.server() as server:
        server.faults = [server.refuse(status, "it is so")] * 9
        said = str(failure(model_of(server)))
        assert f"{server.url}{case.server.path} answered {status}: it is so" in said
        assert len(server.completions) == 1


@every_server
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(case: Case, status: int) -> None:
    with case.server() as server:
        server.faults = [server.refuse(status, "it is so")] * 2
        completion = ask(model_of(server))
    assert completion.text == TURN + case.stop_kept
    assert "it is so (asked again)" in completion.warnings[0]


@every_server
def test_an_error_in_the_middle_of_a_stream(case: Case) -> None:
    with case.server() as server:

        def damage(answer: Answer) -> Answer:
            return answer.but(chunks=[*list(answer.chunks)[:4], server.failing("it is so")])

        server.faults = [damage]
        assert str(failure(model_of(server))).endswith(": it is so")
        assert len(server.completions) == 1


@every_server
@pytest.mark.parametrize("end", ["close", "drop", "reset"])
def test_dropped_stream_taken_as_complete(case: Case, end: Any) -> None:
    """clean-eof-without-done: a stream that ends in the middle is no turn; it is asked for again."""

    def damage(answer: Answer) -> Answer:
        return answer.but(chunks=list(answer.chunks)[:6], end=end)

    with case.server(faults=[damage]) as server:
        completion = ask(model_of(server))
        assert completion.text == TURN + case.stop_kept
        assert "(asked again)" in completion.warnings[0]
    with case.server(faults=[damage] * 3) as server:
        assert type(failure(model_of(server))) is ServerError
        assert len(server.completions) == 3


@every_server
def test_a_stream_that_is_never_ended(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is there, and the connection stays open."""
    monkeypatch.setattr(http, "GRACE", 0.1)
    with case.server(faults=[lambda answer: answer.but(end="hang")]) as server:
        started = time.monotonic()
        assert ask(model_of(server)).text == TURN + case.stop_kept
    assert time.monotonic() - started < 1


def test_ollama_aborts_a_text_that_repeats_itself_without_an_end() -> None:
    def guard(answer: Answer) -> Answer:
        return answer.but(chunks=list(answer.chunks)[:-1])

    with OllamaServer(faults=[guard] * 3) as server:
        assert "ended without a finish reason" in str(failure(model_of(server)))


# -- prompts that do not fit

LONG = PromptText("x y " * 600 + PROMPT, 2400 + len(HEAD))  # one token a word here, 615 in all
LOUD = [
    LlamaCppServer,
    VLLMServer,
    OllamaServer,
    TGIServer,
    SGLangServer,
    LMStudioServer,
    TabbyAPIServer,
    OpenRouterServer,
]


@pytest.mark.parametrize("server", LOUD, ids=lambda server: server.kind)
def test_context_error_shapes(server: type[Server]) -> None:
    """The refusal of each server in its own words, with the sizes in them; never asked again unchanged."""
    with server(context=512) as running:
        caught = failure(model_of(running, num_ctx=512), LONG)
        assert isinstance(caught, ContextOverflow)
        assert (caught.prompt_tokens, caught.context_size) == (tokens(LONG), 512)
        assert len(running.completions) == 1


def test_context_error_of_an_older_vllm() -> None:
    with VLLMServer(context=512, old=True) as server:
        caught = failure(model_of(server), LONG)
    assert isinstance(caught, ContextOverflow)
    assert (caught.prompt_tokens, caught.context_size) == (tokens(LONG), 512)


@every_server
def test_a_prompt_that_cannot_fit_is_not_sent(case: Case) -> None:
    """Where the server says how large its context is, or the user does."""
    words = PromptText(" ".join(map(str, range(3000))) + PROMPT, 9)  # 13,890 characters
    with case.server(context=512) as server:
        caught = failure(model_of(server, num_ctx=512), words)
        assert isinstance(caught, ContextOverflow)
        assert "not sent" in str(caught)
        assert caught.context_size == 512
        assert caught.prompt_tokens and caught.prompt_tokens > 512
        assert server.completions == []


@pytest.mark.parametrize(
    "server",
    [VLLMServer, TGIServer, SGLangServer, KoboldCppServer, TextGenServer],
    ids=lambda server: server.kind,
)
def test_max_tokens_is_lowered_to_what_fits(server: type[Server]) -> None:
    """Prompt and max_tokens have to fit together there."""
    with server(context=660) as running:
        completion = ask(model_of(running), LONG)
        body = running.completions[-1].json
    assert completion.text.startswith(TURN[:40])
    assert any("max_tokens is lowered" in warning for warning in completion.warnings)
    slack = 4 * (server is KoboldCppServer)
    nested = body.get("parameters") or body.get("sampling_params") or body
    sent = next(nested[name] for name in ("max_tokens", "max_new_tokens", "max_length") if name in nested)
    assert sent == 660 - tokens(LONG) - slack


@pytest.mark.parametrize("server", [VLLMServer, KoboldCppServer, TextGenServer], ids=lambda server: server.kind)
def test_max_tokens_is_not_lowered_to_nothing(server: type[Server]) -> None:
    with server(context=tokens(LONG) + 8) as running:
        caught = failure(model_of(running), LONG)
        assert isinstance(caught, ContextOverflow)
        assert caught.context_size == tokens(LONG) + 8
        assert len(running.completions) == (server is VLLMServer)


@pytest.mark.parametrize(("cuts", "counted"), [("full", 512), ("half", 258)], ids=["before 0.30", "since 0.30"])
def test_server_truncates_silently(cuts: str, counted: int) -> None:
    """An Ollama that does not know `truncate: false` cuts the front off and answers as if nothing was."""
    with OllamaServer("It seems you sent a list of numbers.", cuts=cuts) as server:
        caught = failure(model_of(server, num_ctx=512), LONG)
        assert isinstance(caught, ContextOverflow)
        assert f"counts {counted} tokens" in str(caught)
        assert (caught.prompt_tokens, caught.context_size) == (tokens(LONG), 512)


def test_half_window_after_overflow() -> None:
    """3898, 4049, then 2050 tokens, while the prompt only grew: the third turn is not used."""
    prompts = ["a b " * size + "Thought:" for size in (3896, 4047, 4300)]
    with OllamaServer(cuts="half") as server:
        run = model_of(server, num_ctx=4096).session()
        assert [ask(run, prompt).usage.prompt_tokens for prompt in prompts[:2]] == [3898, 4049]
        caught = failure(run, prompts[2])
    assert isinstance(caught, ContextOverflow)
    assert "counts 2050 tokens" in str(caught)
    assert caught.context_size == 4096


def test_a_count_that_shrinks_is_enough() -> None:
    """A server that cuts in some third way."""
    counted = iter([3898, 4049, 1000])

    def tell(answer: Answer) -> Answer:
        *lines, last = answer.chunks
        return answer.but(chunks=[*lines, dumps({**json.loads(last), "prompt_eval_count": next(counted)})])

    with OllamaServer(faults=[tell] * 3) as server:
        run = model_of(server, num_ctx=4096).session()
        for size in (3896, 4047):
            ask(run, "a b " * size + "Thought:")
        assert "4049 before, for a prompt that has only grown" in str(failure(run, "a b " * 4090 + "Thought:"))


def test_an_ollama_that_counts_only_what_was_not_cached() -> None:
    """As in 2024: counts that fall and are far below the prompt are no cut there. The run goes on, with a note."""
    with OllamaServer(cached=True) as server:
        run = model_of(server).session()
        completions = [ask(run, "a b " * size + "Thought:") for size in (600, 700, 720)]
    assert [completion.usage.prompt_tokens for completion in completions] == [602, 100, 20]
    assert [bool(completion.warnings) for completion in completions] == [False, True, True]
    assert "counts fewer tokens than the prompt can have" in completions[2].warnings[0]


def test_runs_do_not_share_what_they_remember() -> None:
    """A short prompt of one run after a long one of another is no cut."""
    with OllamaServer() as server:
        model = model_of(server)
        first, second = model.session(), model.session()
        for prompt in ("a b " * 900, "a b " * 20):
            assert ask(model, prompt).warnings == ()
        assert ask(first, "a b " * 900).warnings == ask(second, "a b " * 20).warnings == ()


def test_the_context_stays_the_same_through_a_run() -> None:
    """Another num_ctx would load the model anew."""
    with OllamaServer(loaded={"llama3:8b": 16384}) as server:
        run = model_of(server).session()
        ask(run)
        server.loaded["llama3:8b"] = 2048
        ask(run)
        assert [request.json["options"]["num_ctx"] for request in server.completions] == [16384, 16384]


def test_num_ctx_among_the_options_is_the_same_setting() -> None:
    with OllamaServer(cuts="full") as server:
        run = model_of(server).session()
        for extra in ({"num_ctx": 2048}, {"num_ctx": 2048, "top_k": 1}):
            ask(run, options={"extra": extra})
        assert [request.json["options"]["num_ctx"] for request in server.completions] == [2048, 2048]
        assert isinstance(failure(run, "a b " * 2100, options={"extra": {"num_ctx": 2048}}), ContextOverflow)


def test_a_context_that_the_model_cannot_have() -> None:
    with OllamaServer(trained=2048, cuts="full") as server:
        run = model_of(server, num_ctx=32768).session()
        completion = ask(run)
        assert completion.warnings == (f"{server.url} runs llama3:8b with a context of 2048 tokens, not num_ctx 32768",)
        assert ask(run).warnings == ()
        assert isinstance(failure(run, "a b " * 2100), ContextOverflow), (
            "measured by what is, not by what was asked for"
        )


def test_num_ctx_ignored_on_openai_path() -> None:
    """The user says 32768, the server behind /v1 has 512 and drops the rest: its counts give it away."""
    silent = [sse(*[{"choices": [{"text": TURN, "finish_reason": "stop"}]}], usage(512))]

    with OpenAIServer(faults=silent) as server:
        completion = ask(model_of(server, num_ctx=32768), "a b c " * 1000)
        assert "num_ctx" not in server.completions[0].json
    assert "seems to have cut the prompt without a word: it counts 512 tokens, at least 750 are in it" in str(
        completion.warnings
    )


def usage(prompt: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 5}}


def test_a_count_that_shrinks_on_openai_path() -> None:
    whole = [sse({"choices": [{"text": TURN, "finish_reason": "stop"}]}, usage(prompt)) for prompt in (4049, 2050)]
    with OpenAIServer(faults=whole) as server:
        run = model_of(server).session()
        assert ask(run, "a b " * 3000).warnings == ()
        assert "4049 before, for a prompt that has only grown" in ask(run, "a b " * 3001).warnings[0]


@pytest.mark.parametrize("way", ["400", "200", "empty", "cut"])
def test_lm_studio_has_four_ways_with_a_prompt_that_is_too_long(way: str) -> None:
    prompt = "a b c d " * 600
    with LMStudioServer(context=1024, overflows=way) as server:
        caught = failure(model_of(server), prompt)
    assert isinstance(caught, ContextOverflow) == (way != "empty")
    if way == "empty":
        assert "ended without a finish reason" in str(caught)


def test_lm_studio_has_no_room_for_the_text() -> None:
    full = {**chunk(" Look", "length"), "stats": {"stop_reason": "contextLengthReached"}}
    with LMStudioServer(faults=[sse(chunk(" I"), full)]) as server:
        caught = failure(model_of(server))
    assert isinstance(caught, ContextOverflow)
    assert caught.context_size == 4096


def test_koboldcpp_drops_the_front_of_a_prompt() -> None:
    """It answers as if nothing was, so the prompt is counted before it is sent."""
    with KoboldCppServer(context=512) as server:
        caught = failure(model_of(server), LONG)
        assert isinstance(caught, ContextOverflow)
        assert (caught.prompt_tokens, caught.context_size) == (tokens(LONG) + 4, 512)
        assert server.completions == []
    with KoboldCppServer(context=4096) as server:  # less than the server has, if the user wants so
        assert isinstance(failure(model_of(server, num_ctx=512), LONG), ContextOverflow)
    with KoboldCppServer(counts=-1) as server:  # a tokenizer that fails is no reason to stop
        assert ask(model_of(server), LONG).text == TURN
    with KoboldCppServer(counts=0) as server:  # what it says of 50,000 tokens and more
        assert failure(model_of(server), LONG).prompt_tokens == 50_004  # type: ignore[attr-defined]


@pytest.mark.parametrize("loader", ["llama.cpp", "Transformers"])
def test_textgen_with_a_known_context(loader: str) -> None:
    with TextGenServer(context=512, loader=loader) as server:
        assert isinstance(failure(model_of(server), LONG), ContextOverflow)
        assert server.completions == []


def test_textgen_answers_a_prompt_that_is_too_long_with_nothing() -> None:
    """At status 200: an empty text that ends as too long."""
    with TextGenServer(context=512) as server:
        caught = failure(model_of(server, num_ctx=None), LONG)
    assert isinstance(caught, ContextOverflow)
    assert caught.prompt_tokens == tokens(LONG)


def test_textgen_does_not_tell_its_context() -> None:
    with TextGenServer() as server:
        completion = ask(model_of(server, num_ctx=None))
    assert completion.warnings == (f"{server.url} does not tell the size of its context: give it as ?num_ctx=TOKENS",)


def test_openrouter_squeezes_no_prompt() -> None:
    with OpenRouterServer() as server:
        ask(model_of(server))
        assert server.completions[0].json["transforms"] == []


@pytest.mark.parametrize(
    ("text", "least", "about"),
    [
        ("", 0, 0),
        ("The pier is 240 m long. " * 100, 300, 600),
        (" " * 4000, 0, 1000),  # runs of blanks are one token in some vocabularies
        ("栈桥长二百四十米。" * 100, 337, 675),
    ],
)
def test_estimates(text: str, least: int, about: int) -> None:
    assert (fit.least_tokens(text), fit.about_tokens(text)) == (least, about)


# -- special cases of text


def test_raw_mode_thinking_eats_text() -> None:
    """A model that thinks when it is not told not to: it is told. One that thinks all the same leaves no text, and that
    is said; the thought is never read for an action."""
    with OllamaServer(TURN, thinks="unless told") as server:
        assert ask(model_of(server)).text == TURN
    with OllamaServer(TURN, thinks="always") as server:
        completion = ask(model_of(server))
    assert completion.text == ""
    assert completion.warnings == (
        f"{server.url}/api/generate: empty text, {len(TURN)} characters in the thinking field",
    )


def test_reasoning_of_a_chat_model() -> None:
    with ChatServer(TURN, thinks=True) as server:
        completion = ask(model_of(server))
    assert completion.text == ""
    assert f"empty text, {len(TURN)} characters in the thinking field" in completion.warnings[0]


LEAKS = {
    "user-stop-replaces-default-stop": (
        "Thought: ok\nAction: finish[12 m]<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThanks",
        "Thought: ok\nAction: finish[12 m]",
    ),
    "stop-cannot-match-special-token": ("Action: finish[12 m]" + "<|eot_id|>" * 50, "Action: finish[12 m]"),
    "im-end-in-answer": (
        "Thought: Good.\nAction: finish[Pier 240 m]<|im_end|>",
        "Thought: Good.\nAction: finish[Pier 240 m]",
    ),
    "in a thought": (" I am done.<end_of_turn>\n<start_of_turn>user", " I am done."),
    "at the very end": (" I am done.</s>", " I am done."),
    "quoted in an argument": ("Action: search[what <|im_end|> means]", "Action: search[what <|im_end|> means]"),
    "HTML": ("Action: finish[<s>12</s> 14]", "Action: finish[<s>12</s> 14]"),
    "HTML in a thought": (" It says <s>12</s> 14.", " It says <s>12</s> 14."),
    "nearly one": (" 3 <|eot| 4 <", " 3 <|eot| 4 <"),
}


@pytest.mark.parametrize(("text", "kept"), LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("size", [1, 4, 999])
def test_leaked_end_tokens(text: str, kept: str, size: int) -> None:
    events = [{"choices": [{"text": text[at : at + size]}]} for at in range(0, len(text), size)]
    consumer = Enough("never")
    with OpenAIServer(faults=[sse(*events, {"choices": [{"text": "", "finish_reason": "stop"}]}, b"[DONE]")]) as server:
        completion = ask(model_of(server), on_text=consumer)
    assert completion.text == consumer.seen == kept


def test_a_leaked_end_token_ends_the_stream() -> None:
    """Behind it a model would go on with somebody else's turn up to max_tokens."""
    with OpenAIServer(" Done.<|im_end|>" + "<|im_end|>" * 500, delay=0.003) as server:
        completion = ask(model_of(server), options={"max_tokens": 2000})
        assert (completion.text, completion.finish) == (" Done.", "eos")
        assert server.completions[0].left_early.wait(1)


def test_stop_ignored_by_endpoint_is_said() -> None:
    ignored = sse(
        *[{"choices": [{"text": piece}]} for piece in pieces(TEXT)], {"choices": [{"finish_reason": "length"}]}
    )
    returned = sse({"choices": [{"text": TURN + "\nObservation:", "finish_reason": "stop_sequence"}]})
    with OpenAIServer(faults=[ignored, returned]) as server:
        model = model_of(server)
        assert "does not honour stop strings" in ask(model).warnings[0]
        assert ask(model).warnings == (), "stop-word-returned: the string itself at the end is no fault"


# -- chat


@pytest.mark.parametrize("way", ["vllm", "llama.cpp", "echo", "strict"])
@pytest.mark.parametrize(
    "transcript", ["", "Thought: one.\nAction: lookup[a]\nObservation: b\n"], ids=["first", "later"]
)
def test_chat_continues_the_open_message(way: str, transcript: str) -> None:
    """Whether the server repeats it, has to be told to continue it, or refuses to be told."""
    prompt = PromptText(f"{HEAD}{transcript}Thought:", len(HEAD))
    with ChatServer(way=way) as server:
        model = model_of(server)
        consumer = Enough("never")
        completion = ask(model, prompt, on_text=consumer)
        assert completion.text == consumer.seen == TURN
        assert completion.warnings == ()
        messages = server.completions[-1].json["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"]
        assert messages[1]["content"] == f"{transcript}Thought:"
        ask(model, prompt)
        assert len(server.completions) == (4 if way == "strict" else 2), (
            "a field that is refused is left out from then on"
        )


def test_an_answer_that_only_resembles_the_open_message_is_kept() -> None:
    prompt = PromptText(f"{HEAD}Thought: one.\nAction: lookup[a]\nObservation: b\nThought:", len(HEAD))
    text = "Thought: one.\nAction: lookup[b]"
    with ChatServer(text) as server:
        assert ask(model_of(server), prompt).text == text


def test_chat_with_a_text_without_known_parts() -> None:
    with ChatServer() as server:
        ask(model_of(server), str(PROMPT))
        assert [m["content"] for m in server.completions[0].json["messages"]] == [HEAD.rstrip(), "Thought:"]


def test_chat_without_a_prefill() -> None:
    with ChatServer(way="strict") as server:
        assert ask(model_of(server, prefill=False)).text == TURN
        assert server.completions[0].json["messages"] == [{"role": "user", "content": PROMPT}]


@every_server
def test_a_run(case: Case) -> None:
    """Question to answer over each server: two steps, each prompt the beginning of the next, no complaints."""
    calls: list[str] = []

    def lookup(keyword: str) -> str:
        """Look a keyword up."""
        calls.append(keyword)
        return "240 m"

    second = " Known.\nAction: finish[240 m]\nObservation: "
    with case.server(TEXT, second) as server:
        result = Agent(None, [lookup], model_of(server)).run("How long is the pier?")
        sent = [read_prompt(request) for request in server.completions]
    assert (result.answer, result.stop_reason, result.warnings) == ("240 m", "success", ())
    assert calls == ["pier 🌊"]
    assert len(sent) == 2
    assert sent[1].startswith(sent[0] + TURN + "\nObservation: 240 m\nThought:")


def read_prompt(request: Request) -> str:
    body = request.json
    if "messages" in body:
        return "\n".join(str(message["content"]) for message in body["messages"])
    return str(body.get("prompt") or body.get("inputs") or body.get("text"))


# -- runs in which a server misbehaves


def run(server: Server, *tools: Any, log: Path | None = None, **settings: Any) -> Result:
    return Agent(None, tools or [lookup], model_of(server, **settings)).run("How long is the pier?", log=log)


def lookup(keyword: str) -> str:
    """Look a keyword up."""
    return "240 m"


@pytest.mark.parametrize("server", [OllamaServer, TGIServer, SGLangServer, VLLMServer], ids=lambda server: server.kind)
def test_stop_parameter_refused(server: type[Server]) -> None:
    """Wherever the field stands: it is left out, the client cuts alone, and the setting is named once."""
    with server(TEXT, " Known.\nAction: finish[240 m]\n") as running:
        running.faults = [running.refuse(400, "Unsupported parameter: 'stop' is not supported with this model.")]
        result = run(running)
        assert (result.answer, len(running.completions)) == ("240 m", 3)
        sent = [json.dumps(request.json) for request in running.completions]
    assert ['"stop"' in body for body in sent] == [True, False, False]
    assert len(result.warnings) == 1
    assert "?send_stop=false" in result.warnings[0]


def test_stop_ignored_by_endpoint() -> None:
    """Three turns of a server that has never heard of stop: each is cut at its first action, with one warning."""
    turns = [
        f" Look.\nAction: lookup[tide {n}]\nObservation: high\nAction: finish[high]\n\nQuestion: next" for n in "ab"
    ]
    whole = [reply({"choices": [{"text": text, "finish_reason": "length"}]}) for text in turns]
    with OpenAIServer(" Known.\nAction: finish[240 m]", faults=whole) as server:
        result = run(server)
    assert [step.arguments for step in result.steps] == ["tide a", "tide b", "240 m"]
    assert result.answer == "240 m"
    assert result.warnings == (f"{server.url}/v1/completions does not honour stop strings: the text is cut here",)


def test_server_truncates_silently_in_a_run() -> None:
    """The turn that was made from a cut prompt calls no tool: the run is over, with the numbers."""
    sizes = iter([3300, 200, 300, 1])

    def describe(part: str) -> str:
        """Describe a part."""
        return "a b " * next(sizes)

    turns = [f" Look.\nAction: describe[{n}]\nObservation:" for n in range(9)]
    with OllamaServer(*turns, cuts="half") as server:
        result = run(server, describe, num_ctx=4096)
        assert len(server.completions) == 4
    assert (result.stop_reason, len(result.trace.steps)) == ("context_overflow", 3)
    assert "it counts 2050 tokens" in result.message
    assert next(sizes) == 1, "the tool was not called once more"


def test_raw_mode_thinking_eats_text_in_a_run() -> None:
    with OllamaServer(" I should search.\nAction: lookup[pier]", thinks="always") as server:
        result = run(server)
    assert result.stop_reason == "invalid_action:empty"
    assert "characters in the thinking field" in result.warnings[0]
    assert [step.tool for step in result.steps] == [None] * 3


def test_nul_and_control_bytes() -> None:
    """A server that refuses NUL is sent none: what a tool returned is cleaned once, for transcript and request."""

    def strict(request: Request) -> Answer:
        if "\\u0000" in request.body.decode():
            return error(400, {"error": {"message": "invalid byte sequence"}})
        return next(answers)

    def lookup(keyword: str) -> str:
        """Look a keyword up."""
        return "depth\x00 12 m\x07"

    answers = iter([sse(chunk(TURN, "stop")), sse(chunk(" Known.\nAction: finish[12 m\0]", "stop"))])
    with FakeServer(strict) as server:
        result = Agent(None, [lookup], OpenAICompletions(server.url, model="m")).run("How deep?")
        sent = server.requests[1].json["prompt"]
    assert result.answer == "12 m\ufffd"
    assert "Observation: depth\ufffd 12 m\ufffd\nThought:" in sent
    assert result.trace.body[: -len("Thought: Known.\nAction: finish[12 m\ufffd]\n")] + "Thought:" in sent


def test_trailing_space_in_prompt() -> None:
    with VLLMServer(" Known.\nAction: finish[240 m]") as server:
        result = run(server)
        assert server.completions[0].json["prompt"].endswith("Question: How long is the pier?\nThought:")
    assert result.trace.body == "Question: How long is the pier?\nThought: Known.\nAction: finish[240 m]\n"


def test_progress_lost_on_rate_limit() -> None:
    """Four steps, then only 429: the result has the four, and a run goes on from its trace without their tools."""
    calls: list[str] = []

    def lookup(keyword: str) -> str:
        """Look a keyword up."""
        calls.append(keyword)
        return f"{keyword} is 60 m"

    turns = [f" Next.\nAction: lookup[part {n}]\nObservation:" for n in range(4)]
    with OpenAIServer(*turns) as server:
        busy = server.refuse(429, "slow down")
        agent = Agent(None, [lookup], model_of(server, retry_seconds=0.05))
        steps = agent.steps("How long is the pier?")
        for step in steps:
            if step.number == 4:
                server.faults = [busy] * 99
    assert (steps.result.stop_reason, len(steps.result.steps)) == ("llm_error", 4)
    assert "answered 429: slow down" in steps.result.message
    trace = Trace.load(steps.result.trace.dump())
    with OpenAIServer(" Known.\nAction: finish[240 m]") as server:
        again = Agent(None, [lookup], model_of(server)).steps("How long is the pier?", past=trace.steps)
        list(again)
        assert again.result.answer == "240 m"
        assert server.completions[0].json["prompt"].endswith(trace.body + "Thought:")
    assert calls == [f"part {n}" for n in range(4)]


KINDS_OF_CASES = (
    "stop-", "silent-truncation", "context-error", "empty-completion", "timeout-server", "server-busy",
    "connection-drop", "chat-only-endpoint", "prompt-echo", "special-tokens", "bos-and-spaces", "runaway-generation",
    "max-tokens-default", "encoding",
)  # fmt: skip
FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    "case",
    [
        case["id"]
        for case in yaml.safe_load((FOLDER / "cases.yaml").read_text("utf-8"))
        if case["kind"].startswith(KINDS_OF_CASES)
    ],
)
def test_every_public_report_about_servers_has_a_test_of_its_name(case: str) -> None:
    files = [*FOLDER.glob("test_*.py"), FOLDER / "case_expectations.yaml"]
    assert any(case in text or case.replace("-", "_") in text for text in (f.read_text("utf-8") for f in files))
