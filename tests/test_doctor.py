"""`doctor`: each thing that a server can get wrong is seen, and a server that gets all right passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from react_text import ServerError, open_model
from react_text.cli import main
from react_text.doctor import Check, examine
from react_text.models.http import HTTPModel

from .fakes import Answer, FakeServer, Request, chunk, counts, endless, error, event, native, native_end, reply, sse

TURN = " The word is oar.\nAction: lookup[oar]"
EOS = "<|im_end|>"
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
NAMES = [
    "server", "context", "stop", "residue", "prefix cache", "cancel", "constraint", "chat template", "special tokens",
    "truncation", "speed",
]  # fmt: skip


class Llama:
    """A llama-server with a token for every character, and with `faults`."""

    def __init__(
        self, *faults: str, size: int = 8192, template: str | None = TEMPLATE, eos: str = "<|im_end|>"
    ) -> None:
        self.faults = faults
        self.size = size
        self.known = ""
        props = {"default_generation_settings": {"n_ctx": size}, "chat_template": template, "eos_token": eos}
        slots = [{"id": 0, "is_processing": "busy" in faults}]
        pages = {"/props": reply(props), "/slots": reply(slots)}
        if "no slots" in faults:
            del pages["/slots"]
        self.server = FakeServer(self.post, pages=pages)

    def post(self, request: Request) -> Answer:
        if request.path == "/tokenize":
            return self.tokenize(**request.json)
        if "dead" in self.faults and "grammar" in request.json:
            return error(500, {"error": {"code": 501, "message": "the slot is gone"}})
        prompt = request.json["prompt"]
        if not isinstance(prompt, str):
            prompt = "".join(part if isinstance(part, str) else chr(part) for part in prompt)
        same = self.known if prompt.startswith(self.known) else ""
        if "control" in self.faults:
            prompt = prompt.replace(EOS, "\x01")
        told = {"prompt": len(prompt), "cached": 0 if "no cache" in self.faults else len(same)}
        if len(prompt) >= self.size and "cuts" not in self.faults:
            message = f"request ({len(prompt)} tokens) exceeds the available context size ({self.size} tokens)"
            numbers = {"n_prompt_tokens": len(prompt), "n_ctx": self.size}
            return error(400, {"error": {"message": message, "type": "exceed_context_size_error", **numbers}})
        if prompt.startswith("Counting") and "brief" not in self.faults:
            return Answer(self.counting(told), headers={"Content-Type": "text/event-stream"}, delay=0.001)
        text, stop_type = self.written(request.json)
        self.known = prompt + text
        return sse(native(text, **told), {**native_end(stop_type), **native("", **told), "stop": True})

    def written(self, request: dict[str, Any]) -> tuple[str, str]:
        if "grammar" in request and "grammar" not in self.faults:
            return " zq07", "eos"
        if "stop" not in request:
            return " so", "limit"
        if "runs on" in self.faults:
            return f"{TURN}\nObservation: found\nThought: The word is net.", "limit"
        if "never stops" in self.faults:
            return " and so on", "limit"
        ends = {"returns stop": "\nObservation:", "residue": "\nObserv"}
        return TURN + next((end for fault, end in ends.items() if fault in self.faults), ""), "word"

    @staticmethod
    def counting(told: dict[str, int]) -> Iterator[bytes]:
        for number in range(13, 2000):
            yield event(native(f" {number},", number, **told))

    def tokenize(self, content: Any, add_special: bool = False, parse_special: bool = True) -> Answer:
        if "no tokenizer" in self.faults:
            return error(404, {"error": {"message": "no such page"}})
        if parse_special and "base model" not in self.faults:
            content = content.replace(EOS, "\x01")
        parts = [content] if isinstance(content, str) else content
        return reply({"tokens": [i for part in parts for i in ([part] if isinstance(part, int) else map(ord, part))]})


def diagnose(server: Llama) -> dict[str, Check]:
    with server.server as running:
        model = open_model(f"llamacpp+{running.url}?retry_seconds=0.1")
        assert isinstance(model, HTTPModel)
        return {check.name: check for check in examine(model)}


def test_a_server_that_does_everything_right_passes() -> None:
    checks = diagnose(Llama())
    assert list(checks) == NAMES
    assert {name: check for name, check in checks.items() if check.verdict != "pass" or check.advice} == {}
    assert checks["context"].found == "8192 tokens"
    assert "is read as text" in checks["special tokens"].found
    assert checks["chat template"].found == "told by the server; <|im_end|> ends a turn"
    assert "for 8192" in checks["truncation"].found
    assert "prompt" in checks["speed"].found and "generation" in checks["speed"].found


@pytest.mark.parametrize(
    ("fault", "name", "verdict", "found"),
    [
        ("runs on", "stop", "fail", "is ignored: the text goes on"),
        ("returns stop", "stop", "warn", "is returned with it"),
        ("never stops", "stop", "warn", 'not seen: the model wrote " and so on"'),
        ("residue", "residue", "warn", r'"\nObserv" is left'),
        ("no cache", "prefix cache", "fail", "0 of the"),
        ("busy", "cancel", "fail", "still at work"),
        ("brief", "cancel", "warn", "stopped by itself"),
        ("grammar", "constraint", "fail", "a grammar in the field 'grammar' is ignored"),
        ("dead", "constraint", "fail", "the slot is gone"),
        ("base model", "chat template", "warn", "which is no token of this model"),
        ("no tokenizer", "special tokens", "warn", "cannot be asked for its tokens"),
        ("control", "special tokens", "fail", "may be read as a control token"),
        ("cuts", "truncation", "fail", "is answered as if it fitted"),
    ],
)
def test_what_is_wrong_is_seen_and_only_that(fault: str, name: str, verdict: str, found: str) -> None:
    checks = diagnose(Llama(fault))
    assert checks[name].verdict == verdict
    assert found in checks[name].found
    assert checks[name].advice
    others = {n for n, check in checks.items() if check.verdict != "pass"} - {name}
    assert others <= {"brief": {"speed"}}.get(fault, set())


def test_a_small_context_is_a_warning() -> None:
    context = diagnose(Llama(size=2200))["context"]
    assert (context.verdict, context.found[:11]) == ("warn", "2200 tokens")


@pytest.mark.parametrize(
    ("template", "verdict", "found"),
    [
        (None, "warn", "the server does not tell"),
        ("{{ raise_exception('not today') }}", "warn", "not today"),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", "pass", "a turn has no end token"),
    ],
)
def test_chat_templates(template: str | None, verdict: str, found: str) -> None:
    check = diagnose(Llama(template=template))["chat template"]
    assert check.verdict == verdict and found in check.found


def test_an_end_token_of_a_shape_that_is_not_known_is_a_failure() -> None:
    check = diagnose(Llama(eos="(the end)"))["special tokens"]
    assert check.verdict == "fail" and "its shape is not known" in check.found


def test_without_slots_the_next_request_shows_whether_the_server_is_free() -> None:
    check = diagnose(Llama("no slots"))["cancel"]
    assert check.verdict == "pass" and "after the connection was closed" in check.found


def plain(request: Request) -> Answer:
    """A server of which nothing is known but that it completes."""
    prompt = request.json["prompt"]
    if prompt.startswith("Counting"):
        return Answer(endless(" 13,"), headers={"Content-Type": "text/event-stream"}, delay=0.001)
    return sse(chunk(TURN), chunk("", "stop", counts(len(prompt), 9)), b"[DONE]")


def test_a_server_that_tells_little_gets_warnings_and_what_to_do() -> None:
    with FakeServer(plain) as server:
        model = open_model(f"openai+{server.url}?model=m")
        assert isinstance(model, HTTPModel)
        checks = {check.name: check for check in examine(model)}
    warned = ["context", "prefix cache", "constraint", "chat template", "special tokens", "truncation"]
    assert [name for name, check in checks.items() if check.verdict == "warn"] == warned
    assert not [name for name, check in checks.items() if check.verdict == "fail"]
    assert all(checks[name].advice for name in warned)
    assert "the server does not tell" in checks["prefix cache"].found


def test_a_server_that_cannot_be_asked_at_all_is_no_list_of_failures() -> None:
    with FakeServer(error(401, {"error": {"message": "who are you?"}})) as server:
        model = open_model(f"openai+{server.url}?model=m")
        assert isinstance(model, HTTPModel)
        with pytest.raises(ServerError, match="who are you"):
            list(examine(model))


# On the command line.


def test_the_screen_and_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with (server := Llama()).server:
        assert main(["doctor", "--model", f"llamacpp+{server.server.url}"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [line[6:21].strip() for line in lines[:11]] == NAMES
    assert lines[11].startswith("# http://127.0.0.1:") and lines[11].endswith(": 11 pass, 0 warn, 0 fail")
    with (server := Llama("grammar")).server:
        assert main(["doctor", "--model", f"llamacpp+{server.server.url}"]) == 1
    assert "                      -> set constrain: off" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    with (server := Llama("base model")).server:
        assert main(["doctor", "--json", "--timeout", "30", "--model", f"llamacpp+{server.server.url}"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["pass"], report["warn"], report["fail"]) == (10, 1, 0)
    assert [check["name"] for check in report["checks"]] == NAMES
    assert set(report["checks"][0]) == {"name", "verdict", "found", "advice"}
    assert report["url"] == server.server.url


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--model", "llamacpp+http://127.0.0.1:9"], 3, "is it running?"),
        ([], 3, "no model server answers at the usual localhost ports"),
        (["--model", "auto"], 3, "no model server answers"),
        (["--model", "scripted:traces/refund.trace"], 2, "has no server that could be examined"),
        (["--model", "nonsense"], 2, "is not understood"),
    ],
)
def test_no_server_to_examine(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setenv("REACT_TEXT_PROBE", "off")
    assert main(["doctor", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == "" and says in err


def test_the_environment_and_the_project_name_the_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with (server := Llama()).server:
        spec = f"llamacpp+{server.server.url}"
        (tmp_path / "setup.cfg").write_text(f"[react_text]\nmodel = {spec}\n")
        assert main(["doctor"]) == 0
        monkeypatch.setenv("REACT_TEXT_MODEL", "llamacpp+http://127.0.0.1:9")
        assert main(["doctor"]) == 3
    assert "is it running?" in capsys.readouterr().err
