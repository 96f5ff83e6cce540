"""Reads the files of one repository and nothing else: the reference system for a short exploration."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "traces" / "debug_ci_repo"
_LARGEST = 20_000


def read_file(path: str) -> str | dict[str, str]:
    """The text of a file of the repository, by its path from the repository's top."""
    file = (ROOT / path).resolve()
    if not file.is_relative_to(ROOT):
        return {"error": f"{path} is outside the repository"}
    if file.is_dir():
        return {"error": f"{path} is a folder with {_names(file)}"}
    if not file.is_file():
        folder = file.parent if file.parent.is_dir() and file.parent.is_relative_to(ROOT) else ROOT
        return {"error": f"no file {path}; that folder has {_names(folder)}"}
    if file.stat().st_size > _LARGEST:
        return {"error": f"{path} is larger than {_LARGEST} bytes"}
    return file.read_text(encoding="utf-8", errors="replace")


def _names(folder: Path) -> str:
    return ", ".join(sorted(each.name + "/" * each.is_dir() for each in folder.iterdir()))
