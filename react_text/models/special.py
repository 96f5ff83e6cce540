"""Text that a server would read as a control token of its model: found in a prompt's data, and broken up.

A server reads `<|im_end|>` in a prompt as the end of a message, even where it stands in what a tool returned.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from .base import PromptText

# The shapes that control tokens have. No server lists its model's own, and a text that only looks like one does no harm
# by being kept as text, so the list is generous; HTML and generics (`<div>`, `List<int>`) are not on it.
CONTROL_TOKEN = re.compile(
    r"<[|｜][^|｜<>\n]{1,64}[|｜]>"  # <|im_end|> and most others; DeepSeek has full-width bars
    r"|<\|[\w/\"]{1,32}>|<[\w/\"]{1,32}\|>"  # Gemma 4: <|turn> <turn|>
    r"|</?(?:s|bos|eos|eod|pad|unk|mask|cls|sep|sop|eop|eot|eom|eoa|eoh|EOT|PRE|SUF|MID)>"
    r"|<(?:start|end)_of_\w{1,32}>"  # Gemma
    r"|<(?:unused|reserved|SPECIAL|extra_id|TOKENS_UNUSED)_?\d{1,6}>|<\w{1,16}_soft_token>"
    r"|<(?:BOS|EOS|PAD|UNK|MASK|CLS|SEP|EOP)_TOKEN>"
    r"|<(?:fim_(?:prefix|middle|suffix|pad)|repo_name|reponame|file_sep|gh_stars|(?:issue|jupyter|commit)_\w{1,16})>"
    r"|<seed:\w{1,32}>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|ARGS"
    r"|IMG|IMG_BREAK|IMG_END|AUDIO|PREFIX|MIDDLE|SUFFIX|THINK|BOS|EOS|EOT|PAD|UNK|CLS|SEP|MASK|gMASK|sMASK)\]"
    r"|\[\|\w{1,32}\|\]"  # EXAONE: [|user|]
    r"|\]~!?b[\[\]]|\[e~\["  # MiniMax
)
BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<｜begin▁of▁sentence｜>", "<BOS_TOKEN>", "[BOS]")
"""How models write their begin-of-text token, which servers put before every prompt themselves."""


def control_tokens(prompt: PromptText) -> Iterator[re.Match[str]]:
    """The texts in the shape of a control token in a prompt's data."""
    for start, end in _data(prompt):
        yield from CONTROL_TOKEN.finditer(prompt, start, end)


def first_token(prompt: PromptText) -> str:
    """The first of these texts, "" when there is none: the same one for as long as the prompt only grows."""
    return next((found[0] for found in control_tokens(prompt)), "")


def doubled_beginning(prompt: PromptText) -> str:
    """The begin-of-text token that an author has put at the start of a raw prompt, "" when there is none."""
    raw = not prompt.markup
    return next((bos for bos in BEGINNINGS if raw and prompt.startswith(bos)), "")


def broken_up(prompt: PromptText) -> PromptText:
    """The prompt with a blank inside each such text of its data: `< |im_end|>` is no control token to any server."""
    at = [found.start() + 1 for found in control_tokens(prompt)]
    if not at:
        return prompt

    def moved(place: int) -> int:
        return place + bisect_left(at, place)

    pieces = [prompt[start:end] for start, end in zip([0, *at], [*at, len(prompt)], strict=True)]
    markup = [(moved(start), moved(end)) for start, end in prompt.markup]
    return broken_up(PromptText(" ".join(pieces), moved(prompt.head), markup))  # two may have shared a character


def _data(prompt: PromptText) -> Iterator[tuple[int, int]]:
    """What is left of a prompt without a chat template's own text."""
    end = 0
    for start, stop in prompt.markup:
        yield end, start
        end = stop
    yield end, len(prompt)
