"""Bytes -> a file that is the old one or the new one, never half of either; and paths as a person would write them."""

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


def from_here(text: str) -> str:
    """A message whose paths start from the working folder, where they lead into it."""
    return text.replace(f"{Path.cwd()}{os.sep}", "")


def common_folder(names: Sequence[str]) -> str:
    """The folders that all names begin with, up to and with a slash; "" where they share none."""
    folders = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "".join(f"{each[0]}/" for each in itertools.takewhile(lambda each: len(set(each)) == 1, folders))
