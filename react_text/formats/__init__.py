"""Formats of others that traces are made from and turned into, a module for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import AuthorError
from ..files import write
from ..trace import Trace


@dataclass(frozen=True)
class Imported:
    """What a file of another format holds: traces by their names, the text of a prompt that goes with them ("" when
    none does), and what could not be taken over."""

    traces: Mapping[str, Trace]
    prompt_name: str = ""
    prompt: str = ""
    notes: Sequence[str] = ()

    def save(self, folder: Path) -> list[Path]:
        """Write it all to a folder. Raises AuthorError, and writes nothing, when one of the files is there already."""
        files = {folder / f"{file_name(name)}.trace": trace.dump() for name, trace in self.traces.items()}
        if self.prompt:
            files[folder / f"{file_name(self.prompt_name)}.j2"] = self.prompt.encode("utf-8")
        for path in files:
            if path.exists():
                raise AuthorError("exists already; nothing was written (--out DIR names another folder)", path=path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AuthorError(f"cannot be made: {error.strerror}", path=folder) from None
        for path, data in files.items():
            write(path, data)
        return list(files)


def file_name(name: str) -> str:
    """A name as a part of a path."""
    return re.sub(r"[^\w.-]+", "_", name).strip(".") or "trace"


def numbered(name: str, traces: Sequence[Trace]) -> dict[str, Trace]:
    """Traces by name: `name`, or `name_1`, `name_2`, ... when they are several."""
    if len(traces) == 1:
        return {name: traces[0]}
    return {f"{name}_{number}": trace for number, trace in enumerate(traces, 1)}
