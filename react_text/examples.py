"""Trace files -> the few-shots of a prompt: all of them, or those whose questions are most like the one asked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from .errors import AuthorError
from .frontmatter import read_text, split_head, unix_lines
from .labels import Labels, label_line

# Robertson and Zaragoza's usual values: how fast repeating a word stops counting, and how much a long question pays.
_K1, _B = 1.2, 0.75
# Scripts without blanks between words are compared by character.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")


def find_examples(patterns: Sequence[str], folder: Path) -> list[Path]:
    """The files that paths and globs, relative to `folder`, stand for; those of a glob in the order of their names.
    Raises AuthorError for a glob without a match."""
    found: list[Path] = []
    for pattern in patterns:
        if not any(sign in pattern for sign in "*?["):
            found.append(folder / pattern)
            continue
        # Not Path.glob, which does not take a pattern that begins with `..` or a root.
        matches = sorted(glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207
        if not matches:
            raise AuthorError(f"examples: no file matches {pattern!r}")
        found += [folder / match for match in matches]
    return list(dict.fromkeys(found))


def choose(question: str, paths: Sequence[Path], count: int, labels: Labels) -> list[Path]:
    """The `count` examples whose questions are most like `question`, the most similar last: what stands nearest to the
    question steers a model most. Never one that asks the same question, which would give the answer away.

    Similarity is BM25 over the words of the questions; of equals the one whose name sorts first is taken. Raises
    AuthorError.
    """
    questions = {path: question_of(read_example(path), labels) for path in paths}
    others = [path for path in paths if not same_question(questions[path], question)]
    scores = _bm25(_words(question), [_words(questions[path]) for path in others])
    ranked = sorted(zip(others, scores, strict=True), key=lambda pair: (-pair[1], pair[0].name, pair[0]))
    return [path for path, _ in reversed(ranked[:count])]


def read_example(path: str | Path) -> str:
    """The body of a trace file as a few-shot example: exactly its text, ending in one newline. Raises AuthorError."""
    _, body, _ = split_head(unix_lines(read_text(path)))
    return body if body.endswith("\n") else body + "\n"


def question_of(body: str, labels: Labels) -> str:
    """The question of a trace's body, without its label."""
    turn = label_line(labels.thought, labels.action).search(body)
    task = body[: turn.start()] if turn else body
    label = label_line(labels.question).match(task)
    return task[label.end() if label else 0 :].strip()


def same_question(one: str, other: str) -> bool:
    """Whether two questions have the same words in the same order."""
    return _words(one) == _words(other)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _bm25(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """The Okapi BM25 score of each document, with the inverse document frequency that is never negative."""
    average = sum(map(len, documents)) / len(documents) if documents else 0.0
    holding = Counter(word for document in documents for word in set(document))

    def score(document: Sequence[str]) -> float:
        counts = Counter(document)
        length = _K1 * (1 - _B + _B * len(document) / average) if average else _K1
        return sum(
            math.log(1 + (len(documents) - holding[word] + 0.5) / (holding[word] + 0.5))
            * counts[word] * (_K1 + 1) / (counts[word] + length)
            for word in sorted(set(query) & counts.keys())
        )  # fmt: skip

    return [score(document) for document in documents]
