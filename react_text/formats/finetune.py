"""Traces -> records for training a completion model: what it was sent, and exactly what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..prompt import Prompt
from ..show import prompts
from ..trace import Trace


def records(path: Path, prompt: Prompt | None = None) -> Iterator[dict[str, str]]:
    """A record for each turn of a trace: `prompt` is the exact prompt, `completion` the exact text of the model. The
    loss belongs on the completion alone. Raises AuthorError."""
    for text, completion in zip(prompts(path, prompt), Trace.load(path).completions, strict=False):
        yield {"prompt": str(text), "completion": completion}
