"""Writes what README.md shows of the project's own behaviour: the output of its commands and of its Python example, and
the table of modules. `python tests/readme.py` writes, the tests compare.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

# The order in which data flows: a module imports only from those before it.
MODULES = (
    "version errors frontmatter labels scan nearmiss parse output arguments tools models.base settings templates prompt "
    "observe trace models.wire models.connection models.http models.openai models.llamacpp models.detect models.local "
    "models.scripted models ask gateway log result loop agent project display commands.common "
    "commands.run commands cli"
).split()


def module_file(name: str) -> Path:
    path = ROOT / "react_text" / name.replace(".", "/")
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"


def first_sentence(name: str) -> str:
    docstring = ast.get_docstring(ast.parse(module_file(name).read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?: |$)", paragraph)[0]


def module_table() -> str:
    rows = [f"| `{name.replace('.', '/')}` | {first_sentence(name)} |" for name in MODULES]
    return "\n".join(["| module | from -> to |", "|---|---|", *rows]) + "\n"


def command_output(line: str) -> str:
    """What a terminal shows for a `react-text` command in the root of the project, when no server is running."""
    arguments = shlex.split(line)
    assert arguments[0] == "react-text"
    with tempfile.TemporaryDirectory() as state:
        environment = {k: v for k, v in os.environ.items() if k != "REACT_TEXT_MODEL"}
        environment |= {"XDG_STATE_HOME": state, "REACT_TEXT_PROBE": "off"}
        done = subprocess.run(
            [sys.executable, "-m", "react_text", *arguments[1:]],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
    return done.stdout


def python_output(code: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    return printed.getvalue()


def written(text: str) -> str:
    """README.md with its generated parts made anew."""
    text = re.sub(
        r"```console\n\$ (.*)\n(?:.*\n)*?```",
        lambda m: f"```console\n$ {m[1]}\n{command_output(m[1])}```",
        text,
    )
    text = re.sub(
        r"```python\n((?:.*\n)*?)```\n\n```text\n(?:.*\n)*?```",
        lambda m: f"```python\n{m[1]}```\n\n```text\n{python_output(m[1]).rstrip()}\n```",
        text,
    )
    return re.sub(r"\| module \| from -> to \|\n(?:\|.*\n)+", lambda m: module_table(), text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
