"""llama.cpp's own endpoint, which tells more than its /v1: whether a stop string or the model's own end was met."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from ..errors import ContextOverflow, ServerError
from .base import Constraint, Finish, Options, PromptText, Usage
from .chat_template import TemplateSource
from .endpoint import PATIENCE, Piece
from .http import HTTPModel
from .special import control_tokens
from .wire import count

_FINISH: dict[str, Finish] = {"eos": "eos", "word": "stop", "limit": "length"}
_BETWEEN = -1  # no token, but the server passes ids through: where one text ends and the next begins


class LlamaCpp(HTTPModel):
    """POST /completion of a llama-server at the base URL `url`. `model` picks one where the server holds several."""

    path = "/completion"
    lazy_grammars = True

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **settings)
        self._as_text: dict[str, list[int]] = {}

    @property
    def name(self) -> str:
        """The model given, else what the server calls its model, else `llamacpp`."""
        props = {} if self.model else self._props()
        known = self.model or str(props.get("model_alias") or props.get("model_path") or "llamacpp")
        return known.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf")

    def context_size(self, limit: float = math.inf) -> int | None:
        """Tokens of one slot, which is less than the -c of a server with several."""
        settings = self._props(limit).get("default_generation_settings")
        return (count(settings.get("n_ctx")) if isinstance(settings, dict) else None) or self.num_ctx

    def chat_template(self) -> TemplateSource | None:
        """The template in the model's file; chatml, which llama-server says where that has none."""
        props = self._props()
        if not props:
            # To say why, when there is no answer.
            self.client.get(self._of_model("/props"), time.monotonic() + PATIENCE)
        text = props.get("chat_template")
        if not isinstance(text, str) or not text:
            return None
        adds_bos = self.tokens("", add_special=True) != []
        return TemplateSource(text, str(props.get("bos_token") or ""), str(props.get("eos_token") or ""), adds_bos)

    def _of_model(self, path: str) -> str:
        """A path to be asked about the model, which a server that holds several wants to be named."""
        return f"{path}?model={quote(self.model, safe='')}" if self.model else path

    def _props(self, limit: float = math.inf) -> dict[str, Any]:
        return self.page(self._of_model("/props"), limit)

    def tokens(self, text: str | Sequence[str | int], *, limit: float = math.inf, **how: bool) -> list[int] | None:
        """The token ids of a text, or of a list of texts and ids; None when the server does not tell. Never raises."""
        asked = {"content": text, **({"model": self.model} if self.model else {}), **how}
        try:
            reply = self.client.post("/tokenize", asked, min(limit, time.monotonic() + PATIENCE))
        except ServerError:
            return None
        ids = reply.json.get("tokens")
        return ids if reply.status == 200 and isinstance(ids, list) else None

    def slots(self) -> list[dict[str, Any]] | None:
        """What GET /slots says about the work in hand; None where that is switched off. Never raises."""
        with contextlib.suppress(ServerError, ValueError):
            value = json.loads(self.client.get(self._of_model("/slots"), time.monotonic() + PATIENCE).body)
            return value if isinstance(value, list) else None
        return None

    def encode(self, prompt: PromptText, limit: float) -> Any:
        """Texts, and between them the token ids of what must not be read as a control token.

        The server reads control tokens in texts; ids are taken as they are. The texts and ids in front stay the same
        while a prompt grows, so the prefix cache holds, and nothing is asked for twice.
        """
        found = list(control_tokens(prompt))
        if not found:
            return prompt
        if not self._learn({each[0] for each in found}, limit):
            return super().encode(prompt, limit)
        parts: list[str | int] = []
        end = 0
        for each in found:
            # The first part is a text, be it empty: the server puts the begin-of-text token before a text only.
            parts += [prompt[end : each.start()], *self._as_text[each[0]]]
            end = each.end()
        return [*parts, prompt[end:]]

    def _learn(self, texts: Iterable[str], limit: float) -> bool:
        """Ask for the token ids of those texts that are not known, all at once. False when that cannot be done."""
        new = sorted({*texts} - self._as_text.keys())
        # A single id is the token itself: builds before mid-2025 do not know parse_special, and tokens that a model's
        # maker has added as words are read even so. The two halves of a text never are.
        for cut in (0, 1):
            if new:
                lists = self._lists([[part for part in (text[:cut], text[cut:]) if part] for text in new], limit)
                self._as_text.update({text: ids for text, ids in zip(new, lists, strict=False) if len(ids) > 1})
                new = [text for text in new if text not in self._as_text]
        return not new

    def _lists(self, groups: list[list[str]], limit: float) -> list[list[int]]:
        """The token ids of each group of texts, no control token read in them; [] when the server does not tell."""
        content: list[str | int] = []
        for group in groups:
            content += [*group, _BETWEEN]
        ids = self.tokens(content, limit=limit, add_special=False, parse_special=False) or []
        ends = [-1, *(place for place, each in enumerate(ids) if each == _BETWEEN)]
        lists = [ids[start + 1 : end] for start, end in itertools.pairwise(ends)]
        return lists if len(lists) == len(groups) else []

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt,
            "n_predict": options.max_tokens,
            "temperature": options.temperature,
            "stream": True,
            "cache_prompt": True,
            "timings_per_token": True,  # with every event, so that a stream that is cut has told its counts too
        }
        if options.seed is not None:
            body["seed"] = options.seed
        if stop:
            body["stop"] = list(stop)
        if self.model:
            body["model"] = self.model
        return body

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        """GBNF. A lazy grammar begins with its trigger, which is a pattern (type 2) for the text so far."""
        if not constraint.lazy:
            return {"grammar": constraint.gbnf}
        trigger = {"type": 2, "value": constraint.trigger}
        return {"grammar": constraint.lazy_gbnf, "grammar_lazy": True, "grammar_triggers": [trigger]}

    def read(self, event: dict[str, Any]) -> Piece:
        timings = event.get("timings") or {}
        cached, evaluated = count(timings.get("cache_n")), count(timings.get("prompt_n"))
        whole = count(event.get("tokens_evaluated"))
        prompt_tokens = whole if cached is None or evaluated is None else cached + evaluated
        written = count(event.get("tokens_predicted"))
        usage = Usage(prompt_tokens, count(timings.get("predicted_n")) if written is None else written, cached)
        if event.get("truncated"):  # a part of the prompt or of the text is gone; no server option makes that harmless
            raise ContextOverflow(
                f"{self.url}{self.path}: the context of the model was full before the text ended",
                prompt_tokens=usage.prompt_tokens,
                context_size=self.context_size(),
            )
        return Piece(event.get("content") or "", _finish(event) if event.get("stop") else None, usage)


def _finish(event: dict[str, Any]) -> Finish:
    """Why the text ended: `stop_type`, or the three booleans of builds before December 2024."""
    old = next((reason for reason in _FINISH if event.get(f"stopped_{reason}")), "")
    return _FINISH.get(event.get("stop_type") or old, "stop")
