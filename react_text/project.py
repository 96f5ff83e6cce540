"""The `[react_text]` sections of a project's setup.cfg: defaults that belong to a project and not to one prompt."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import AuthorError, did_you_mean
from .files import setup_cfg
from .frontmatter import read_head
from .matching import checked_rule

_KEYS = ("model", "timeout")


@dataclass(frozen=True)
class Project:
    """`model` is a spec for `open_model`; `timeout` the longest silence of a server, in seconds; `match`, from the
    section `[react_text.match]`, holds rules for the arguments of single tools when runs are compared with goldens."""

    model: str | None = None
    timeout: float | None = None
    match: Mapping[str, Any] = field(default_factory=dict)


def find_project(start: Path) -> Project:
    """The defaults from the nearest setup.cfg in `start` or a folder above. Raises AuthorError."""
    path = setup_cfg(start.resolve())
    if path is None:
        return Project()
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names of tools keep their case
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise AuthorError(str(error).splitlines()[0], path=path, line=getattr(error, "lineno", None)) from None
    section = dict(parser["react_text"]) if parser.has_section("react_text") else {}
    for key in section:
        if key not in _KEYS:
            raise AuthorError(f"[react_text]: unknown key {key!r}{did_you_mean(key, _KEYS)}", path=path)
    try:
        timeout = float(section["timeout"]) if section.get("timeout") else None
    except ValueError:
        raise AuthorError(f"[react_text]: timeout must be seconds, not {section['timeout']!r}", path=path) from None
    return Project(section.get("model") or None, timeout, _match(parser, path))


def _match(parser: configparser.ConfigParser, path: Path) -> dict[str, Any]:
    rules = {}
    for name, text in (parser["react_text.match"] if parser.has_section("react_text.match") else {}).items():
        place = f"[react_text.match]: {name}"
        try:
            rules[name] = checked_rule(read_head(f"rule: {text}", ("rule",)).value("rule"), place)
        except AuthorError as error:
            message = error.message.removeprefix("front matter: ")
            raise AuthorError(message if message.startswith(place) else f"{place}: {message}", path=path) from None
    return rules
