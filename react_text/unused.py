"""A folder of traces -> those that nothing refers to any more, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .files import collect
from .golden import Case
from .library import Library
from .review import find_pending


def unused(paths: Iterable[str | Path]) -> list[tuple[Path, str]]:
    """Examples that no prompt shows, goldens whose prompt or tools are gone, pending files whose golden is gone. Raises
    AuthorError when a prompt cannot be read: then nobody knows what it refers to."""
    paths, library = list(paths), Library()
    cases = [Case(path, library) for path in collect(paths)]
    shown = _referred_to(cases, library)
    found: list[tuple[Path, str]] = []
    for case in cases:
        if not case.is_test:
            if case.path.resolve() not in shown:
                found.append((case.path, "an example that no prompt shows"))
        elif not case.prompt_path.is_file():
            found.append((case.path, f"its prompt {case.golden.meta['prompt']} is gone"))
        elif gone := [tools.name for tools in case.prompt.tools if not tools.is_file()]:
            found.append((case.path, f"its tools module {gone[0]} is gone"))
    folders = [path for path in map(Path, paths) if path.is_dir()]
    return [*found, *((p.path, "its golden is gone") for p in find_pending(folders) if not p.golden.is_file())]


def _referred_to(cases: Iterable[Case], library: Library) -> set[Path]:
    """The traces that prompts name: those in `prompts` folders, and those beside the prompts of goldens."""
    folders = {case.root / "prompts" for case in cases}
    folders |= {case.prompt_path.parent for case in cases if case.golden.meta.get("prompt")}
    traces: set[Path] = set()
    for file in sorted(file for folder in folders if folder.is_dir() for file in folder.rglob("*.j2")):
        if file.name == "observe.j2" or file.name.startswith("_"):
            continue
        prompt = library.prompt(file)
        traces.update(path.resolve() for path in (*prompt.examples, *([prompt.demo] if prompt.demo else [])))
    return traces
