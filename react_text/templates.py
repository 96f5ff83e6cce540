"""The one place where Jinja environments are made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .errors import did_you_mean
from .frontmatter import read_text, split_head, unix_lines

BUILT_IN = Path(__file__).parent / "templates"


class Loader(jinja2.BaseLoader):
    """Templates from folders, first match wins. A front matter becomes a comment of as many lines, so that Jinja's
    line numbers are those of the file."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        path = self._find(template)
        if path is None:
            raise jinja2.TemplateNotFound(template)
        changed = path.stat().st_mtime_ns
        # A template of the same name in an earlier folder makes this one stale, too.
        return (
            without_head(read_text(path)),
            str(path),
            lambda: self._find(template) == path and path.stat().st_mtime_ns == changed,
        )

    def _find(self, template: str) -> Path | None:
        return next((path for folder in self.folders if (path := folder / template).is_file()), None)


def references(tree: nodes.Template) -> Iterator[tuple[int, list[str], bool]]:
    """For each tag that extends, includes or imports a template by a constant name: its line, the names of which the
    first that exists is taken, and whether there may be none (`ignore missing`)."""
    tags: tuple[type[nodes.Node], ...] = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)
    for tag in tree.find_all(tags):
        given = getattr(tag, "template", None)
        each = given.items if isinstance(given, (nodes.List, nodes.Tuple)) else [given]
        names = [name.value for name in each if isinstance(name, nodes.Const) and isinstance(name.value, str)]
        if names:
            yield tag.lineno, names, getattr(tag, "ignore_missing", False)


def never_shown(tree: nodes.Template, known: Collection[str]) -> Iterator[tuple[int, str]]:
    """What a template says below its `extends` and Jinja drops without a word: (line, what it is). `known` are the
    blocks of the templates that it is put together with."""
    body = iter(tree.body)
    extends = next((node for node in body if isinstance(node, nodes.Extends)), None)
    if extends is None or not isinstance(extends.template, (nodes.Const, nodes.List, nodes.Tuple)):
        return
    called = {node.attr for node in tree.find_all(nodes.Getattr)}  # {{ self.name() }}
    for node in body:
        if isinstance(node, nodes.Block) and node.name not in (*known, *called):
            near = did_you_mean(node.name, known)
            yield node.lineno, f"block {node.name!r} is in no template that this one extends{near}, so it is not shown"
        for text in node.nodes if isinstance(node, nodes.Output) else ():
            data = text.data if isinstance(text, nodes.TemplateData) else "{{"
            if data.strip():
                blank = data[: len(data) - len(data.lstrip())]
                yield text.lineno + blank.count("\n"), "what stands outside of blocks is not shown: put it into a block"


def find_source(env: jinja2.Environment, name: str) -> tuple[str, str] | None:
    """(the text of a template, its path), or None when there is none of that name. Raises AuthorError."""
    assert env.loader is not None
    try:
        source, path, _ = env.loader.get_source(env, name)
    except jinja2.TemplateNotFound:
        return None
    return source, str(path)


def without_head(text: str) -> str:
    """The template text of a prompt file."""
    text = unix_lines(text)
    head, body, line = split_head(text)
    return body if head is None else "{#" + "\n" * (line - 1) + "#}" + body


@lru_cache(maxsize=1)
def page_environment() -> jinja2.Environment:
    """For pages of HTML, and the only one that escapes: what a model or a tool wrote must not become markup."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(BUILT_IN / "view"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=32)
def environment(*folders: Path) -> jinja2.Environment:
    """Sandboxed, strict about undefined variables, no escaping, newlines kept; looks in `folders`, then in the
    package. Values are only ever inserted, never rendered: a trace that contains `{{ x }}` stays as it is."""
    return ImmutableSandboxedEnvironment(
        loader=Loader([*folders, BUILT_IN]),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
