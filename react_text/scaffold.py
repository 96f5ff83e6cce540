"""A folder -> a project in it: a prompt, its tools, a golden, a few-shot, settings for git, editors and pytest."""

from __future__ import annotations

from pathlib import Path

from .errors import AuthorError
from .files import write
from .frontmatter import read_text
from .templates import BUILT_IN

_SOURCE = BUILT_IN / "project"
# Files that a folder may have already: what they lack is added at their end.
_SHARED = ("setup.cfg", ".gitattributes", ".editorconfig")
# Packaging tools leave files out whose names begin with a dot.
_HIDDEN = ("gitattributes", "editorconfig")


def create(folder: Path) -> list[Path]:
    """Write the files of a new project, and give those that were written. Raises AuthorError, and writes nothing, when
    one of them is there already, unless it is one to which a section can be added."""
    files: dict[Path, bytes] = {}
    for source in sorted(path for path in _SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        name = source.relative_to(_SOURCE).as_posix()
        name = f".{name}" if name in _HIDDEN else name
        path, data = folder / name, source.read_bytes()
        if not path.exists():
            files[path] = data
        elif name not in _SHARED or not path.is_file():
            raise AuthorError("exists already; nothing was written", path=path)
        elif lacking := _lacking(own := read_text(path), data.decode("utf-8")):
            parts = [own, *lacking] if own.strip() else lacking
            files[path] = "".join(f"\n{part.rstrip()}\n" for part in parts)[1:].encode("utf-8")
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, data)
        except OSError as error:
            raise AuthorError(f"cannot be written: {error.strerror}", path=path) from None
    return list(files)


def _lacking(own: str, ours: str) -> list[str]:
    """The paragraphs of our text whose section or pattern (the first word without a comment) a file does not have."""
    begun = {line.split()[0] for line in own.split("\n") if line.strip()}
    return [text for text in ours.split("\n\n") if _first_word(text) not in begun]


def _first_word(paragraph: str) -> str:
    return next(line.split()[0] for line in paragraph.split("\n") if line and not line.startswith("#"))
