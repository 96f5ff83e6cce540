"""KoboldCpp's own endpoint. It drops the front of a prompt that does not fit, so each prompt is counted first."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

from ..errors import ServerError
from . import fit
from .base import Completion, Constraint, Finish, Options
from .endpoint import PATIENCE, Piece
from .http import HTTPModel
from .wire import count

_FINISH: dict[str, Finish] = {"stop": "eos", "length": "length"}
_SLACK = 4  # tokens that the server keeps for itself
_MOST_COUNTED = 50_000  # of so many tokens and more the server says that they are 0
_MARGIN = 8  # tokens by which a text that has reached max_tokens may be counted differently


class KoboldCpp(HTTPModel):
    """POST /api/extra/generate/stream of a KoboldCpp at the base URL `url`.

    Its counts of tokens are those of its tokenizer, asked before each completion; /v1 makes some up. The stream has no
    end mark: the connection closes.
    """

    path = "/api/extra/generate/stream"
    optional = ()
    cuts_prompts = True

    @property
    def name(self) -> str:
        """The model given, else what the server runs, else `koboldcpp`."""
        return (self.model or str(self.page("/api/v1/model").get("result") or "koboldcpp")).removeprefix("koboldcpp/")

    def context_size(self, limit: float = math.inf) -> int | None:
        """The context that the server has made, or less if `num_ctx` says so."""
        made = count(self.page("/api/extra/true_max_context_length", limit).get("value"))
        return min(filter(None, (made, self.num_ctx)), default=None)

    def count_tokens(self, prompt: str, limit: float = math.inf) -> int | None:
        """The tokens that the context has to hold for a prompt."""
        try:
            reply = self.client.post(
                "/api/extra/tokencount", {"prompt": prompt}, min(limit, time.monotonic() + PATIENCE)
            )
        except ServerError:
            return None
        tokens = count(reply.json.get("value"))
        if tokens is None or tokens < 0:
            return None
        return (tokens or _MOST_COUNTED) + _SLACK

    def request(self, prompt: Any, stop: Sequence[str], options: Options) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt,
            "max_length": options.max_tokens,
            "temperature": options.temperature,
            "trim_stop": True,
        }
        if size := self.context_size(0):  # asked for before; a smaller default would cut earlier
            body["max_context_length"] = size
        if options.seed is not None:
            body["sampler_seed"] = options.seed
        if stop:
            body["stop_sequence"] = list(stop)
        return body

    def constrained(self, constraint: Constraint) -> dict[str, Any]:
        return {"grammar": constraint.gbnf}

    def read(self, event: dict[str, Any]) -> Piece:
        if "results" in event:  # no stream: a proxy that collects it
            result = event["results"][0]
            return Piece(result.get("text") or "", _FINISH.get(result.get("finish_reason") or "", "stop"))
        return Piece(event.get("token") or "", _FINISH.get(event.get("finish_reason") or ""))

    def checked(self, prompt: str, completion: Completion, plan: fit.Plan) -> Completion:
        """The server says `length` of a text that a stop string has ended, too; counting the text tells."""
        if completion.finish == "length":
            tokens = self.count_tokens(completion.text) if completion.text else 0
            if tokens is not None and tokens + _MARGIN < plan.options.max_tokens:
                completion = dataclasses.replace(completion, finish="stop")
        return super().checked(prompt, completion, plan)
