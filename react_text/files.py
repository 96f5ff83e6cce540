"""Bytes -> a file that is the old one or the new one, never half of either; and paths: where a project is, and how a
person would write them."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import AuthorError, no_such_file


def write(path: Path, data: bytes) -> None:
    """Write a file in one step. A link stays a link, and a file its permissions; a device or a pipe is written to.
    Raises AuthorError."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        if path.exists():
            shutil.copymode(path, temporary)
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


def collect(paths: Iterable[str | Path], suffixes: Sequence[str] = (".trace",)) -> list[Path]:
    """The trace files that are named, and those in the folders that are, or other files by their `suffixes`. Raises
    AuthorError for what is not there, and where there are none."""
    found: dict[Path, None] = {}
    named = [Path(path) for path in paths]
    for path in named:
        if path.is_dir():
            files = (file for suffix in suffixes for file in path.rglob(f"*{suffix}"))
            found.update(dict.fromkeys(sorted(files)))
        elif path.is_file():
            found[path] = None
        else:
            raise no_such_file(path)
    if named and not found:
        raise AuthorError("no traces here", path=named[0])
    return list(found)
