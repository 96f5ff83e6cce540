"""The one place where Jinja environments are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .frontmatter import read_text, split_head, unix_lines

BUILT_IN = Path(__file__).parent / "templates"


class Loader(jinja2.BaseLoader):
    """Templates from folders, first match wins. A front matter becomes a comment of as many lines, so that Jinja's
    line numbers are those of the file."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        for folder in self.folders:
            path = folder / template
            if path.is_file():
                changed = path.stat().st_mtime_ns
                return without_head(read_text(path)), str(path), lambda: path.stat().st_mtime_ns == changed
        raise jinja2.TemplateNotFound(template)


def without_head(text: str) -> str:
    """The template text of a prompt file."""
    text = unix_lines(text)
    head, body, line = split_head(text)
    return body if head is None else "{#" + "\n" * (line - 1) + "#}" + body


@lru_cache(maxsize=32)
def environment(*folders: Path) -> jinja2.Environment:
    """Sandboxed, strict about undefined variables, no escaping, newlines kept; looks in `folders`, then in the
    package. Values are only ever inserted, never rendered: a trace that contains `{{ x }}` stays as it is."""
    return ImmutableSandboxedEnvironment(
        loader=Loader([*folders, BUILT_IN]),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - text for a model, not HTML
    )
