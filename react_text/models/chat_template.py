"""The head of a prompt as the user's message and its transcript as the open answer: a model's own chat template.

A template is rendered once, around two marks. What stands before, between and behind them is put around head and
transcript as it is, so that the prompt stays append-only, ends exactly in our text, and no template sees or changes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ..errors import AuthorError, ServerError, did_you_mean
from ..frontmatter import read_text, unix_lines
from .base import Model, PromptText
from .special import BEGINNINGS, CONTROL_TOKEN

_USER, _ASSISTANT = "react-text:user", "react-text:assistant"


class TemplateSource(NamedTuple):
    """What a server says about its model's template: the Jinja text and the tokens that it may insert. `adds_bos` is
    whether the server puts the begin-of-text token before every prompt by itself."""

    text: str
    bos: str = ""
    eos: str = ""
    adds_bos: bool = True


@dataclass(frozen=True)
class ChatTemplate:
    """The text that goes `before` the user's message, `between` it and the assistant's, and at the `end` of a turn."""

    before: str
    between: str
    end: str = ""

    @property
    def stop(self) -> tuple[str, ...]:
        """The stop string of a turn: a server that is given stop strings may no longer use those of its model, and a
        base model writes the token as ordinary text."""
        return (self.end,) if self.end else ()

    def wrap(self, prompt: PromptText) -> PromptText:
        """The raw `prompt` inside the template, to be continued where it ends."""
        asked = self.before + prompt[: prompt.head].strip()
        opened = asked + self.between
        markup = [(0, len(self.before)), (len(asked), len(opened))]
        return PromptText(opened + prompt[prompt.head :], len(asked), markup)


# Written from the formats as their makers document them, for servers that do not tell their model's.
BUILT_IN = {
    "chatml": ChatTemplate("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"),
    "llama3": ChatTemplate(
        "<|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    "gemma": ChatTemplate("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n", "<end_of_turn>"),
    "mistral": ChatTemplate("[INST] ", "[/INST] ", "</s>"),
    "phi": ChatTemplate("<|user|>\n", "<|end|>\n<|assistant|>\n", "<|end|>"),
}
CHOICES = ("none", "auto", *BUILT_IN)


def checked(setting: str, folder: Path = Path()) -> str:
    """A `chat_template` setting: `none`, `auto`, a built-in name, or a file as its path from `folder`. Raises
    AuthorError."""
    if setting in CHOICES:
        return setting
    if "/" not in setting and "." not in setting:
        near = did_you_mean(setting, CHOICES)
        raise AuthorError(f"chat_template: unknown name {setting!r}{near}; it is {', '.join(CHOICES)} or a FILE")
    return str(folder / setting)


def find_template(setting: str, model: Model | None) -> ChatTemplate | None:
    """The template to put around the prompts for `model`; None for raw prompts.

    A script or a person has no format to learn (`takes_raw`), an endpoint that takes messages applies the template of
    its model itself (`takes_messages`), and of a plain function there is none to ask. Raises AuthorError for a file
    that is no template, ServerError when the server's cannot be had or used.
    """
    if setting == "none" or getattr(model, "takes_messages", False) or getattr(model, "takes_raw", False):
        return None
    if setting in BUILT_IN:
        return BUILT_IN[setting]
    told = getattr(model, "chat_template", None)
    source: TemplateSource | None = told() if told else None
    if setting != "auto":
        text = unix_lines(read_text(setting))
        return rendered(TemplateSource(text, *source[1:]) if source else TemplateSource(text), Path(setting))
    if told is None:
        return None
    instead = f"set chat_template: none, {', '.join(BUILT_IN)} or a FILE"
    if source is None:
        raise ServerError(f"{getattr(model, 'url', '')} does not tell the chat template of its model; {instead}")
    try:
        return rendered(source)
    except AuthorError as error:
        raise ServerError(f"the chat template of the server cannot be used: {error}; {instead}") from None


def rendered(source: TemplateSource, path: Path | None = None) -> ChatTemplate:
    """A Jinja chat template as the text around its two messages. Raises AuthorError."""
    try:
        template = _environment().from_string(source.text)
        text = _render(template, source)
    except jinja2.TemplateSyntaxError as error:
        raise AuthorError(f"chat template: {error.message}", path=path, line=error.lineno) from None
    except Exception as error:  # a template may do anything
        raise AuthorError(f"chat template: {type(error).__name__}: {error}", path=path) from None
    before, user, rest = text.partition(_USER)
    between, assistant, end = rest.partition(_ASSISTANT)
    if not user or not assistant or _USER in between + end or _ASSISTANT in end:
        raise AuthorError(
            "chat template: it does not insert the user's message once and behind it the assistant's", path=path
        )
    token = CONTROL_TOKEN.match(end.lstrip())
    end = token[0] if token else source.eos if source.eos and end.lstrip().startswith(source.eos) else ""
    return ChatTemplate(_without_bos(before, source), between, end)


def _render(template: jinja2.Template, source: TemplateSource) -> str:
    user = {"role": "user", "content": _USER}
    assistant = {"role": "assistant", "content": _ASSISTANT}
    values = {"bos_token": source.bos, "eos_token": source.eos, "tools": None, "enable_thinking": False}
    return template.render(messages=[user, assistant], add_generation_prompt=False, **values)


def _without_bos(before: str, source: TemplateSource) -> str:
    """A server that adds the token itself would have the model read it twice."""
    own = next((bos for bos in (source.bos, *BEGINNINGS) if bos and before.lstrip().startswith(bos)), "")
    return before.lstrip().removeprefix(own) if own and source.adds_bos else before


class _Generation(Extension):
    """`{% generation %}...{% endgeneration %}` marks the assistant's text for training; here it is only its content."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    """The environment that models' templates are written for; undefined variables are empty in it."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
    return environment


def _tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    """Jinja's own filter escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
