"""The `[react_text]` section of a project's setup.cfg: defaults that belong to a project and not to one prompt."""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path

from .errors import AuthorError, did_you_mean

_KEYS = ("model", "timeout")


@dataclass(frozen=True)
class Project:
    """`model` is a spec for `open_model`; `timeout` the longest silence of a server, in seconds."""

    model: str | None = None
    timeout: float | None = None


def find_project(start: Path) -> Project:
    """The defaults from the nearest setup.cfg in `start` or a folder above. Raises AuthorError."""
    folder = start.resolve()
    path = next((p / "setup.cfg" for p in [folder, *folder.parents] if (p / "setup.cfg").is_file()), None)
    if path is None:
        return Project()
    parser = configparser.ConfigParser(interpolation=None)
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
    return Project(section.get("model") or None, timeout)
