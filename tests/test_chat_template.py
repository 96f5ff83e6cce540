"""Chat templates: head and transcript in a model's own format, open at the end, byte for byte append-only."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Agent, AuthorError, Completion, Result, ScriptedModel, ServerError
from react_text.cli import main
from react_text.models.base import PromptText
from react_text.models.chat_template import BUILT_IN, ChatTemplate, TemplateSource, checked, find_template, rendered
from react_text.models.llamacpp import LlamaCpp
from react_text.models.openai import OpenAICompletions
from react_text.models.tabbyapi import TabbyAPI

from .fakes import Answer, FakeServer, Request, chunk, error, native, native_end, reply, sse
from .harbour import Harbour, Writer

ROOT = Path(__file__).parents[1]
HEAD = "Be brief.\n\nQuestion: How long?\n"
TRANSCRIPT = "Thought: a\nAction: b[c]\nObservation: d\nThought:"

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LOOP = "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] }}<|end|>{% endfor %}"


def source(text: str, **more: Any) -> TemplateSource:
    return TemplateSource(text, "<s>", "</s>", **more)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            CHATML, ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"), id="roles and newlines"
        ),
        pytest.param(
            "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content | trim }} [/INST]"
            "{% else %} {{ m.content.strip() }}{{ eos_token }}{% endif %}{% endfor %}",
            ("[INST] ", " [/INST] ", "</s>"),
            id="contents are stripped, the end is the eos token",
        ),
        pytest.param(
            "{%- for m in messages %}\n    {%- if m.role == 'user' %}\n        {{- '<|user|>\\n' + m.content }}\n"
            "    {%- else %}\n        {{- '<|assistant|>\\n' + m.content }}\n    {%- endif %}\n{%- endfor %}\n",
            ("<|user|>\n", "<|assistant|>\n", ""),
            id="no end of turn",
        ),
        pytest.param(
            "{% for m in messages %}\n    {% if m.role == 'user' %}\nU:{{ m.content }}\n    {% else %}\n"
            "A:{{ m.content }}\n    {% endif %}\n{% endfor %}\n",
            ("U:", "\nA:", ""),
            id="blocks are trimmed as HF does",
        ),
        pytest.param(
            "{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% else %}"
            "{% set system = 'You are Tide.' %}{% endif %}<|system|>{{ system }}<|end|>" + LOOP,
            ("<|system|>You are Tide.<|end|><|user|>", "<|end|><|assistant|>", "<|end|>"),
            id="a system message of its own",
        ),
        pytest.param(
            "{% if messages[0].role != 'user' %}{{ raise_exception('roles must alternate') }}{% endif %}" + LOOP,
            ("<|user|>", "<|end|><|assistant|>", "<|end|>"),
            id="raise_exception that is not reached",
        ),
        pytest.param(
            "{% set ns = namespace(n=0) %}{% for m in messages * 2 %}{% set ns.n = ns.n + 1 %}"
            "{% if ns.n > 2 %}{% break %}{% endif %}{% if m.role == 'tool' %}{% continue %}{% endif %}"
            "{{ ns.n }}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}",
            ("1<|user|>", "<|end|>2<|assistant|>", "<|end|>"),
            id="namespace and loop controls",
        ),
        pytest.param(
            "{% for m in messages %}<|{{ m.role }}|>{% generation %}{{ m.content }}<|end|>{% endgeneration %}"
            "{% endfor %}",
            ("<|user|>", "<|end|><|assistant|>", "<|end|>"),
            id="generation marks",
        ),
        pytest.param(
            "{{ {'a': '<é>', 'tools': tools} | tojson }}{{ [1] | tojson(indent=1) }}" + LOOP,
            ('{"a": "<é>", "tools": null}[\n 1\n]<|user|>', "<|end|><|assistant|>", "<|end|>"),
            id="tojson without HTML escapes",
        ),
        pytest.param(
            "{% if tools %}T{% endif %}{{ documents }}{% if enable_thinking is defined and not enable_thinking %}quiet"
            "{% endif %}" + LOOP,
            ("quiet<|user|>", "<|end|><|assistant|>", "<|end|>"),
            id="undefined variables are empty and thinking is off",
        ),
        pytest.param(
            "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% else %}<|assistant|>"
            "<think>\n\n</think>\n\n{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endif %}<|im_end|>\n"
            "{% endfor %}",
            ("<|user|>", "<|im_end|>\n<|assistant|><think>\n\n</think>\n\n", "<|im_end|>"),
            id="a closed reasoning block before the answer",
        ),
    ],
)
def test_a_template_becomes_the_text_around_its_messages(text: str, expected: tuple[str, str, str]) -> None:
    assert rendered(source(text)) == ChatTemplate(*expected)


@pytest.mark.parametrize(
    ("text", "adds_bos", "before"),
    [
        ("{{ bos_token }}" + LOOP, True, "<|user|>"),
        ("{{ bos_token }}" + LOOP, False, "<s><|user|>"),
        ("\n{{ bos_token }}" + LOOP, True, "<|user|>"),
        ("<|begin_of_text|>" + LOOP, True, "<|user|>"),
        ("<｜begin▁of▁sentence｜>" + LOOP, True, "<|user|>"),
        ("<s>" + LOOP, False, "<s><|user|>"),
        (LOOP, True, "<|user|>"),
        ("\n" + LOOP, True, "\n<|user|>"),
    ],
)
def test_bos_is_left_to_the_server_that_adds_it(text: str, adds_bos: bool, before: str) -> None:
    assert rendered(source(text, adds_bos=adds_bos)).before == before


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d %b %Y"])
def test_todays_date_is_there_for_templates_that_want_it(form: str) -> None:
    days = {datetime.now().strftime(form)}
    before = rendered(source(f"{{{{ strftime_now('{form}') }}}}" + LOOP)).before
    assert before.removesuffix("<|user|>") in days | {datetime.now().strftime(form)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{{ raise_exception('no system role') }}", "no system role", id="raises"),
        pytest.param("{% for m in messages %}{{ m.content }}", "Unexpected end of template", id="syntax"),
        pytest.param("{% for t in tools %}{{ t }}{% endfor %}", "NoneType", id="needs tools"),
        pytest.param("{{ messages[0].content }}", "does not insert", id="no assistant"),
        pytest.param("{{ messages[1].content }}", "does not insert", id="no user"),
        pytest.param("{{ messages[1].content }}{{ messages[0].content }}", "does not insert", id="wrong order"),
        pytest.param("{{ messages[0].content * 2 }}{{ messages[1].content }}", "does not insert", id="twice"),
        pytest.param("{{ messages[0].content }}{{ messages[1].content * 2 }}", "does not insert", id="answer twice"),
        pytest.param("hello", "does not insert", id="nothing"),
        pytest.param("{{ messages.append(1) }}" + LOOP, "SecurityError", id="changes its input"),
        pytest.param("{{ ''.__class__.__mro__ }}" + LOOP, "SecurityError", id="leaves the sandbox"),
        pytest.param("{{ 1 / 0 }}" + LOOP, "ZeroDivisionError", id="fails"),
    ],
)
def test_a_template_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(AuthorError, match=message):
        rendered(source(text))


def test_a_template_file_is_reported_with_its_path_and_line(tmp_path: Path) -> None:
    path = tmp_path / "own.jinja"
    path.write_text("{% for m in messages %}\n{% if %}\n{% endfor %}", "utf-8")
    with pytest.raises(AuthorError) as caught:
        find_template(str(path), None)
    assert str(caught.value).startswith(f"{path}:2: chat template: ")
    with pytest.raises(AuthorError, match="no such file"):
        find_template(str(tmp_path / "none.jinja"), None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chatml", "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}"),
        (
            "llama3",
            "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n{}",
        ),
        ("gemma", "<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n{}"),
        ("mistral", "[INST] {}[/INST] {}"),
        ("phi", "<|user|>\n{}<|end|>\n<|assistant|>\n{}"),
    ],
)
def test_built_in_templates(name: str, text: str) -> None:
    wrapped = BUILT_IN[name].wrap(PromptText(HEAD + TRANSCRIPT, len(HEAD)))
    assert wrapped == text.format(HEAD.strip(), TRANSCRIPT)
    assert not any(wrapped.startswith(bos) for bos in ("<s>", "<bos>", "<|begin_of_text|>"))


@given(st.text(max_size=40), st.lists(st.text(max_size=30), min_size=1, max_size=4), st.sampled_from([*BUILT_IN]))
def test_the_wrapped_prompt_is_append_only_and_ends_exactly_in_the_raw_text(
    head: str, pieces: list[str], name: str
) -> None:
    template = BUILT_IN[name]
    transcripts = list(itertools.accumulate(pieces))
    wrapped = [template.wrap(PromptText(head + transcript, len(head))) for transcript in transcripts]
    for earlier, later in itertools.pairwise(wrapped):
        assert later.startswith(earlier) and later.markup == earlier.markup
    for prompt, transcript in zip(wrapped, transcripts, strict=True):
        (start, asked), (between, opened) = prompt.markup
        assert prompt[start:asked] == template.before and prompt[between:opened] == template.between
        assert prompt[asked:between] == head.strip() and prompt[opened:] == transcript


# In a run.

TURNS = (" I search.\nAction: search[pier]", " Once more.\nAction: lookup[tide]", " So.\nAction: finish[240 m]")


def run(model: Any, **settings: Any) -> Result:
    return Agent(tools=Harbour().tools, model=model, **settings).run("How long is the pier?")


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_run_in_a_template_is_the_same_run(name: str) -> None:
    raw, wrapped = Writer(*TURNS), Writer(*TURNS)
    plain, result = run(raw), run(wrapped, chat_template=name)
    assert result.ok and str(result.trace) == str(plain.trace)
    assert result.trace.meta["prompt_hash"] == plain.trace.meta["prompt_hash"]
    template = BUILT_IN[name]
    for prompt, before in zip(wrapped.prompts, raw.prompts, strict=True):
        head, separator, transcript = prompt.partition(template.between)
        assert head.startswith(template.before) and separator
        assert head.removeprefix(template.before) + "\n" + transcript == before
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(wrapped.prompts))


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        ({}, ["\nObservation:", "\nQuestion:", "<|im_end|>"]),
        ({"labels": "numbered"}, ["\nObservation 1:", "\nObservation:", "\nQuestion:", "<|im_end|>"]),
        ({"stop": ["a", "b"]}, ["\nObservation:", "\nQuestion:", "<|im_end|>", "a"]),
    ],
)
def test_the_end_of_a_turn_is_a_stop_string_and_there_are_four_at_most(
    settings: dict[str, Any], stops: list[str]
) -> None:
    model = Writer(" So.\nAction: finish[x]")
    run(model, chat_template="chatml", **settings)
    assert model.stops == [stops]
    run(raw := Writer(" So.\nAction: finish[x]"))
    assert raw.stops == [["\nObservation:", "\nQuestion:"]]


@pytest.mark.parametrize(
    "turn", [" So.\nAction: finish[x]<|im_end|>", " So.\nAction: finish[x]\n<|im_end|>\n<|im_start|>user"]
)
def test_an_end_token_that_comes_back_as_text_is_not_kept(turn: str) -> None:
    result = run(Writer(turn), chat_template="chatml")
    assert result.answer == "x" and "im_end" not in str(result.trace)


def test_the_template_of_a_prompt_file_and_the_keyword_that_overrides_it(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text(LOOP, "utf-8")
    path = tmp_path / "p.j2"
    path.write_text('---\nquestion: x\nchat_template: mine.jinja\n---\n{% extends "react.j2" %}\n', "utf-8")
    for chosen, before in [(None, "<|user|>Answer"), ("gemma", "<start_of_turn>user\n"), ("none", "Answer the")]:
        model = Writer(" So.\nAction: finish[x]")
        Agent(path, tools=[], model=model, **({"chat_template": chosen} if chosen else {})).run()
        assert model.prompts[0].startswith(before)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("chatmll", "p.j2:3: chat_template: unknown name 'chatmll' (did you mean chatml?)"),
        ("Llama", "p.j2:3: chat_template: unknown name 'Llama'"),
        ("[a]", "p.j2:3: chat_template must be a text"),
    ],
)
def test_an_unknown_name_is_an_error_with_its_line(setting: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.j2"
    path.write_text(f'---\nquestion: x\nchat_template: {setting}\n---\n{{% extends "react.j2" %}}\n', "utf-8")
    with pytest.raises(AuthorError) as caught:
        Agent(path, tools=[], model=Writer())
    assert message in str(caught.value)


def test_a_template_file_that_is_missing_stops_before_the_first_step(tmp_path: Path) -> None:
    model = Writer(" So.\nAction: finish[x]")
    with pytest.raises(AuthorError, match="no such file"):
        run(model, chat_template=str(tmp_path / "none.jinja"))
    assert model.prompts == []
    assert checked("templates/x.jinja") == "templates/x.jinja"


# The server's own.


def llama(template: Any = CHATML, *, bos: bool = True) -> Any:
    """Pages and posts of a llama-server with this template."""

    def post(request: Request) -> Answer:
        if request.path == "/tokenize":
            return reply({"tokens": [2] if bos else []})
        return sse(native(" So.\nAction: finish[x]", prompt=400, cached=0), native_end("word"))

    props = {"chat_template": template, "bos_token": "<s>", "eos_token": "</s>"}
    return FakeServer(post, pages={"/props": reply(props)})


def prompts(server: FakeServer) -> list[Any]:
    return [request.json["prompt"] for request in server.requests if request.path == "/completion"]


@pytest.mark.parametrize(("bos", "begins"), [(True, "<|im_start|>user"), (False, "<s><|im_start|>user")])
def test_auto_takes_the_template_of_llama_cpp(bos: bool, begins: str) -> None:
    with llama("{{ bos_token }}" + CHATML, bos=bos) as server:
        result = run(LlamaCpp(server.url), chat_template="auto")
        assert result.answer == "x"
        assert prompts(server)[0].startswith(begins)
        assert prompts(server)[0].endswith("How long is the pier?<|im_end|>\n<|im_start|>assistant\nThought:")


def test_a_file_may_use_the_tokens_that_the_server_tells(tmp_path: Path) -> None:
    path = tmp_path / "own.jinja"
    path.write_text(
        "{{ bos_token }}{% for m in messages %}{{ m.role }} {{ m.content }}{{ eos_token }}{% endfor %}", "utf-8"
    )
    with llama() as server:
        template = find_template(str(path), LlamaCpp(server.url))
    assert template == ChatTemplate("user ", "</s>assistant ", "</s>")


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (llama("{{ raise_exception('broken') }}"), "the chat template of the server cannot be used"),
        (llama(None), "does not tell the chat template of its model"),
        (llama(""), "does not tell the chat template of its model"),
        (FakeServer(error(500, {}), pages={}), "does not tell the chat template of its model"),
    ],
    ids=["it fails", "null", "empty", "no /props"],
)
def test_auto_without_a_usable_template_ends_the_run_before_it_begins(server: FakeServer, says: str) -> None:
    with server:
        result = run(LlamaCpp(server.url), chat_template="auto")
        assert not prompts(server)
    assert (result.stop_reason, result.steps) == ("llm_error", ())
    assert says in result.message and "chatml, llama3, gemma, mistral, phi or a FILE" in result.message


def test_auto_on_a_server_that_does_not_tell_its_template() -> None:
    with FakeServer(sse(chunk(" So.\nAction: finish[x]"), chunk("", "stop"))) as server:
        model = OpenAICompletions(server.url, model="m")
        with pytest.raises(ServerError, match="does not tell"):
            find_template("auto", model)
        assert run(model, chat_template="phi").answer == "x"
        assert server.requests[0].json["prompt"].startswith("<|user|>\n")
        assert "<|end|>" in server.requests[0].json["stop"]


def test_auto_takes_the_template_of_tabbyapi() -> None:
    parameters = {"max_seq_len": 4096, "prompt_template_content": "{{ bos_token }}" + CHATML}
    pages = {"/v1/model": reply({"id": "m", "parameters": parameters})}
    with FakeServer(sse(chunk(" So.\nAction: finish[x]"), chunk("", "stop")), pages=pages) as server:
        assert run(TabbyAPI(server.url), chat_template="auto").answer == "x"
        assert server.requests[0].json["prompt"].startswith("<|im_start|>user\nAnswer")


def test_auto_leaves_functions_raw() -> None:
    model = Writer(*TURNS)
    run(model, chat_template="auto")
    assert model.prompts[0].startswith("Answer the question")


@pytest.mark.parametrize("setting", ["auto", "chatml", "a/template/that/is/not/here.jinja"])
def test_a_script_is_replayed_with_raw_prompts(setting: str) -> None:
    prompts: list[str] = []

    class Script(ScriptedModel):
        def session(self) -> ScriptedModel:
            return self

        def complete(self, prompt: str, **more: Any) -> Completion:
            prompts.append(prompt)
            return super().complete(prompt, **more)

    result = run(Script(TURNS), chat_template=setting)
    assert result.ok and str(result.trace) == str(run(Writer(*TURNS)).trace)
    assert prompts[0].startswith("Answer the question") and prompts[0].endswith("pier?\nThought:")


def test_an_endpoint_that_takes_messages_gets_the_raw_prompt_with_its_parts() -> None:
    asked: list[PromptText] = []

    class Messages:
        name, takes_messages = "messages", True

        def complete(self, prompt: PromptText, **_: Any) -> Completion:
            asked.append(prompt)
            return Completion(" So.\nAction: finish[x]")

    for setting in ("auto", "chatml"):
        run(Messages(), chat_template=setting)
    for prompt in asked:
        assert prompt.startswith("Answer the question") and prompt.markup == ()
        assert prompt[: prompt.head].endswith("Question: How long is the pier?\n")
        assert prompt[prompt.head :] == "Thought:"
    assert len(asked) == 2


# On the command line.


def test_render_shows_the_prompt_in_a_template(capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACT_TEXT_PROBE", "off")
    prompt = str(ROOT / "prompts" / "refund.j2")
    assert main(["render", prompt]) == 0
    raw = capfd.readouterr().out
    asked, _, cue = raw.rpartition("\n")
    assert main(["render", prompt, "--chat-template", "gemma"]) == 0
    assert capfd.readouterr().out == f"<start_of_turn>user\n{asked}<end_of_turn>\n<start_of_turn>model\n{cue}"
    assert main(["render", prompt, "--chat-template", "auto"]) == 0
    assert capfd.readouterr().out == raw
    assert main(["render", prompt, "--chat-template", "gema"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "did you mean gemma?" in err


def test_render_and_run_with_the_template_of_a_server(capfd: Any, tmp_path: Path) -> None:
    prompt, log = str(ROOT / "prompts" / "refund.j2"), str(tmp_path / "log.jsonl")
    with llama() as server:
        arguments = ["--chat-template", "auto", "--model", f"llamacpp+{server.url}"]
        assert main(["render", prompt, *arguments]) == 0
        shown = capfd.readouterr().out
        assert main(["run", prompt, *arguments, "--quiet", "--log", log]) == 0
        assert capfd.readouterr().out == "x\n"
        assert shown.startswith("<|im_start|>user\n") and prompts(server) == [shown]
    assert main(["render", prompt, *arguments]) == 3
    out, err = capfd.readouterr()
    assert out == "" and "is it running?" in err
