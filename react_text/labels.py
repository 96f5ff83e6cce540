"""The words that start the lines of the protocol: `Thought:`, `Action:`, `Observation:`, `Question:`.

A label counts only at the start of a line; white space and the marks ``* _ # > - ` `` may stand before it, a number
after it (`Action 2:`), and its colon may be full-width: models copy all of these from what they have read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from .errors import AuthorError, did_you_mean

# One run of marks, an optional number, one more run: no two neighbouring runs can share a character, so that the
# match stays linear on `Action` + 100,000 blanks. The first run is atomic (a look-ahead and what it found; Python
# 3.10 has no `*+`): giving back its marks one by one could never help.
# A number is written in ASCII or full-width digits: a grammar has to list whatever can stand here.
_NUMBER = "[0-9０-９]+"
_INVISIBLE = "\u200b\u2060\ufeff"  # zero-width blanks, and the byte order mark that some servers leave in their text
BEFORE_LABEL = rf"(?=(?P<marks>[ \t\xa0\u3000{_INVISIBLE}*_#>`\-]*))(?P=marks)(?:{_NUMBER}[.)][ \t*_`]*)?"
AFTER_LABEL = rf"[ \t\xa0\u3000*_`#]*(?:{_NUMBER}[ \t*_`]*)?[:：]"


@dataclass(frozen=True)
class Labels:
    """The bare words of one label set (no colon), and whether they carry the number of the step."""

    thought: str = "Thought"
    action: str = "Action"
    observation: str = "Observation"
    question: str = "Question"
    numbered: bool = False

    @classmethod
    def of(cls, setting: str | Mapping[str, str] | Labels) -> Labels:
        """`plain`, `numbered`, or a mapping of own words; raises AuthorError for anything else."""
        if isinstance(setting, Labels):
            return setting
        if setting in ("plain", "numbered"):
            return cls(numbered=setting == "numbered")
        if not isinstance(setting, Mapping):
            raise AuthorError(f"labels is plain, numbered or a mapping of words, not {setting!r}")
        words = {field.name for field in fields(cls)}
        for key, word in setting.items():
            if key not in words:
                raise AuthorError(f"labels: unknown label {key!r}{did_you_mean(str(key), words)}")
            if key != "numbered" and (not isinstance(word, str) or not word.strip(" :：") or "\n" in word):
                raise AuthorError(f"labels: {key} must be a word, not {word!r}")
        own = {key: word.strip().rstrip(":：").rstrip() for key, word in setting.items() if key != "numbered"}
        return cls(**own, numbered=str(setting.get("numbered", "")).lower() == "true")

    def cue(self, word: str, step: int, prefill: str = "") -> str:
        """The label as it is written: `Thought:`, or `Thought 3:` in a numbered set; behind it the `prefill`, where the
        prompt has one."""
        label = f"{word} {step}:" if self.numbered else f"{word}:"
        return f"{label} {prefill}" if prefill else label

    def stops(self, step: int) -> list[str]:
        """The stop strings that a server is asked to honour at `step`: label lines that the model must not write.

        They begin with a newline, because a stop string in the middle of a line would cut a thought that speaks
        about an observation.
        """
        plain = [f"\n{self.observation}:", f"\n{self.question}:"]
        return [f"\n{self.observation} {step}:", *plain] if self.numbered else plain


PLAIN = Labels()
NUMBERED = Labels(numbered=True)
# How traces of text games are written: `> go north`, and the bare lines below it are what came of it. A trace can be in
# this style; a prompt cannot, because the parser needs words.
ARROW = Labels(thought=">", action=">", observation="", question="")


@lru_cache(maxsize=64)
def label_line(*words: str) -> re.Pattern[str]:
    """A pattern that finds the next line that starts with one of `words` as a label; group `word` is what it says."""
    return re.compile(f"^{BEFORE_LABEL}(?P<word>{'|'.join(map(re.escape, words))}){AFTER_LABEL}[*_`]*", re.I | re.M)


@lru_cache(maxsize=64)
def label_beginning(*words: str) -> re.Pattern[str]:
    """A pattern for a whole line that is only the beginning of one of these labels: `Observ`, `Observation 2`."""
    starts = (re.escape(word[:n]) for word in words for n in range(len(word), 0, -1))
    return re.compile(f"{BEFORE_LABEL}(?:{'|'.join(starts)})[ \\t\\r*_`]*(?:\\d+[ \\t\\r]*)?", re.I)
