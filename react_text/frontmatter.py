"""The YAML head of a prompt or trace file -> its keys, each with the line it stands on.

The head lies between a first line that is exactly `---` and the next such line. The set of keys is closed: a
misspelt key is an error with a suggestion, never silently ignored.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .errors import AuthorError, did_you_mean, no_such_file

FENCE = "---"
_UTF_16 = re.compile(rb"(?:-\0){3}|(?:\0-){3}")  # the first line of a file without byte order mark
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,200})(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]{1,2})?")


@dataclass(frozen=True)
class Head:
    """The keys of a front matter as YAML nodes, which still know their lines."""

    path: str | Path | None
    nodes: dict[str, yaml.Node]
    lines: dict[str, int]

    def __contains__(self, key: str) -> bool:
        return key in self.nodes

    def error(self, key: str, message: str) -> AuthorError:
        return AuthorError(message, path=self.path, line=self.lines.get(key))

    def text(self, key: str, default: str = "") -> str:
        """A scalar as it is written: `yes` stays text, `2026-07` is no date."""
        node = self.nodes.get(key)
        if node is None:
            return default
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(key, f"{key} must be a text")
        return str(node.value)

    def texts(self, key: str) -> list[str]:
        """A list of scalars, or one scalar, as they are written."""
        node = self.nodes.get(key)
        if node is None:
            return []
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            raise self.error(key, f"{key} must be a list of texts")
        return [str(item.value) for item in items if item.value != ""]

    def mapping(self, key: str, known: Collection[str] = ()) -> dict[str, Any]:
        """A mapping with typed values; `known` closes its set of keys."""
        value = self.value(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.error(key, f"{key} must be a mapping of names to values")
        for name in value:
            if known and name not in known:
                raise self.error(key, f"{key}: unknown key {name!r}{did_you_mean(name, known)}")
        return value

    def mapping_of_numbers(self, key: str) -> dict[int, int]:
        """A mapping of whole numbers to whole numbers."""
        value = self.value(key)
        given = {} if value is None else value
        if not isinstance(given, dict) or not all(type(n) is int for pair in given.items() for n in pair):
            raise self.error(key, f"{key} must map whole numbers to whole numbers")
        return given

    def choice(self, key: str, options: Collection[str]) -> str:
        """One of `options`; the first one when the key is absent."""
        word = self.text(key, next(iter(options)))
        if word not in options:
            raise self.error(key, f"{key} must be {' or '.join(options)}, not {word!r}")
        return word

    def flag(self, key: str) -> bool:
        return self.choice(key, ("false", "true")) == "true"

    def value(self, key: str) -> Any:
        """The value with its scalars typed (see `typed`); None when the key is absent."""
        node = self.nodes.get(key)
        return None if node is None else self._built(key, node)

    def _built(self, key: str, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return typed(node.value) if not node.style else str(node.value)
        if isinstance(node, yaml.SequenceNode):
            return [self._built(key, item) for item in node.value]
        built: dict[Any, Any] = {}
        for name_node, item in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                raise self.error(key, f"{key}: the names in a mapping are single words")
            name = self._built(key, name_node)
            if name in built:
                raise self.error(key, f"{key}: {name!r} is given twice")
            built[name] = self._built(key, item)
        return built


def typed(scalar: str) -> Any:
    """What an unquoted scalar stands for: null, true, false, a number, else its text. YAML 1.1 would also see booleans
    in `yes` and `off`, numbers in `007` and `1:30`, and a date in `2026-07-01`."""
    if scalar in _WORDS:
        return _WORDS[scalar]
    number = _NUMBER.fullmatch(scalar)
    if number is None:
        return scalar
    return float(scalar) if number["fraction"] or number["exponent"] else int(scalar)


class _Loader(yaml.SafeLoader):
    """YAML without tags and aliases: a head is data, and no bigger than it looks."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            problem = "YAML tags and aliases are not used here"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)


# libyaml, with which PyYAML usually comes, reads heads of these characters as PyYAML itself does, only several times
# faster. No tag and no alias can be written with them.
_FAST: Any = getattr(yaml, "CSafeLoader", None)
_SIMPLE = re.compile(r"""[\w \n.,:;=+()\[\]{}"'/$<~^\\-]{0,10000}""")


def _compose(text: str) -> yaml.Node | None:
    if _FAST is not None and _SIMPLE.fullmatch(text):
        with contextlib.suppress(yaml.YAMLError):  # what is wrong is said in PyYAML's words, always the same
            return yaml.compose(text, Loader=_FAST)
    return yaml.compose(text, Loader=_Loader)


def split_head(text: str) -> tuple[str | None, str, int]:
    """(the head's YAML or None, the body, the line number on which the body begins)."""
    if not text.startswith(FENCE + "\n"):
        return None, text, 1
    if text.startswith(FENCE, len(FENCE) + 1) and text[len(FENCE) * 2 + 1 : len(FENCE) * 2 + 2] in ("\n", ""):
        return "", text[len(FENCE) * 2 + 2 :], 3
    end = text.find(f"\n{FENCE}\n", len(FENCE))
    if end < 0 and text.endswith(f"\n{FENCE}"):
        end = len(text) - len(FENCE) - 1
    if end < 0:
        return None, text, 1
    head = text[len(FENCE) + 1 : end + 1]
    return head, text[end + len(FENCE) + 2 :], head.count("\n") + 3


def read_head(yaml_text: str | None, known: Collection[str], path: str | Path | None = None) -> Head:
    """The keys of a head, checked against `known`. Raises AuthorError."""
    try:
        root = _compose(yaml_text or "")
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        raise AuthorError(f"front matter: {error.problem}", path=path, line=line) from None
    except yaml.YAMLError as error:
        raise AuthorError(f"front matter: {error}", path=path, line=1) from None
    except RecursionError:
        raise AuthorError("front matter: nested too deeply", path=path, line=1) from None
    if root is None:
        return Head(path, {}, {})
    if not isinstance(root, yaml.MappingNode):
        raise AuthorError("front matter must be `key: value` lines", path=path, line=2)
    nodes: dict[str, yaml.Node] = {}
    lines: dict[str, int] = {}
    for key_node, node in root.value:
        key, line = str(key_node.value), key_node.start_mark.line + 2
        if key not in known:
            raise AuthorError(f"unknown key {key!r}{did_you_mean(key, known)}", path=path, line=line)
        if key in nodes:
            raise AuthorError(f"key {key!r} is given twice", path=path, line=line)
        if not (isinstance(node, yaml.ScalarNode) and not node.style and typed(node.value) is None):
            nodes[key], lines[key] = node, line
    return Head(path, nodes, lines)


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a file. Raises AuthorError, with the nearest name when there is no such file."""
    try:
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise AuthorError("this is a folder, not a file", path=path) from None
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise AuthorError(str(error.strerror), path=path) from None


def decoded(data: bytes, path: str | Path | None = None) -> str:
    """UTF-8 bytes as text, with their own line ends. Raises AuthorError that names file and encoding."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or _UTF_16.match(data):
        raise AuthorError("this file is UTF-16; save it as UTF-8", path=path, line=1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise AuthorError(f"this file is not UTF-8 (byte {data[error.start]:#04x})", path=path, line=line) from None


def read_text(path: str | Path) -> str:
    """A UTF-8 file as text. Raises AuthorError."""
    return decoded(read_bytes(path), path)


def read_yaml(path: str | Path, load: Callable[[str], Any] = yaml.safe_load) -> Any:
    """What `load` makes of the text of a YAML file. Raises AuthorError, with the line where there is one."""
    text = read_text(path)
    try:
        return load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise AuthorError(f"not YAML: {error.problem}", path=path, line=line) from None
    except yaml.YAMLError as error:  # such as a character that YAML does not have
        problem, _, _ = str(error).partition("\n")
        raise AuthorError(f"not YAML: {problem}", path=path) from None
    except RecursionError:
        raise AuthorError("not YAML: nested too deeply", path=path) from None


def unix_lines(text: str) -> str:
    """`text` without byte order mark and, where an editor wrote every line end as CRLF or as CR, with plain newlines.
    A file that mixes them keeps its bytes: there a CR is content."""
    text = text.removeprefix("\ufeff")
    if "\r" not in text:
        return text
    crlf = text.count("\r\n")
    if crlf == text.count("\n") == text.count("\r"):
        return text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if "\n" not in text else text
