"""Bytes -> a file that is the old one or the new one, never half of either; and paths: where a project is, and how a
person would write them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Write a file in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def setup_cfg(folder: Path) -> Path | None:
    """The nearest setup.cfg in a folder or one above it: where a project says what belongs to it."""
    return next((p / "setup.cfg" for p in (folder, *folder.parents) if (p / "setup.cfg").is_file()), None)


def project_root(folder: Path) -> Path:
    """The project that a folder belongs to: where its setup.cfg is, or else the folder above. The `folder` is
    resolved."""
    found = setup_cfg(folder)
    return found.parent if found else folder.parent


def from_here(text: str) -> str:
    """A message whose paths start from the working folder, where they lead into it."""
    return text.replace(f"{Path.cwd()}{os.sep}", "")


def common_folder(names: Sequence[str]) -> str:
    """The folders that all names begin with, up to and with a slash; "" where they share none."""
    folders = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "".join(f"{each[0]}/" for each in itertools.takewhile(lambda each: len(set(each)) == 1, folders))
