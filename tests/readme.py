"""Writes what README.md shows of the project's own behaviour: the output of its commands and of its Python example, and
the table of modules. `python tests/readme.py` writes, the tests compare.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from react_text.lint import RULES

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

# The order in which data flows: a module imports only from those before it.
MODULES = (  # noqa: SIM905
    "version errors files frontmatter labels numbers claims spellings forms answer_forms examples scan number_forms "
    "pattern_forms notations nearmiss thinking parse output elide conversion arguments subtasks argument_forms tools "
    "answers grammar models.base models.special models.chat_template settings scratchpad plan_settings templates "
    "prompt observe layout trace grounding models.wire models.connection models.fit models.received models.endpoint "
    "models.http models.openai models.llamacpp models.vllm models.ollama models.tgi models.sglang models.lmstudio "
    "models.koboldcpp models.tabbyapi models.textgen models.openrouter models.chat models.detect models.watchdog "
    "models.local models.scripted models.human models ask context repeats worker gateway recorded log result recover "
    "records loop agent plan.options plan.state plan.script plan.goal plan.shares plan.stages plan.run matching "
    "redact match plan.replay plan stats evaluate project doctor display offline library golden diff review unused "
    "fmt lint.words lint.caveats lint.references lint.views lint.context lint.files lint.turns lint.facts "
    "lint.fewshots lint.prompts lint.rules lint fill resume show author scaffold formats formats.langchain "
    "formats.react2022 formats.chat formats.finetune formats.markdown live runs pieces charts sidebyside entries view "
    "pytest_plugin commands.common commands.run commands.plan commands.init commands.author commands.show "
    "commands.view commands.ground commands.convert commands.doctor commands.resume commands.live commands.golden "
    "commands.lint commands.evaluate commands.grammar commands cli"
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


def rule_table() -> str:
    rows = [f"| `{rule.code}` | {rule.severity} | {rule.title} |" for rule in RULES]
    return "\n".join(["| code | weight | what is wrong |", "|---|---|---|", *rows]) + "\n"


def console(block: str) -> str:
    """A block of commands behind `$ ` with what a terminal shows for them, run in order in a copy of the project."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("prompts", "tools", "traces"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.new"))
        shutil.copy(ROOT / "setup.cfg", folder)
        commands = re.findall(r"^\$ (.*(?:\n> .*)*)", block, re.M)
        return "".join(f"$ {command}\n{command_output(command, folder)}" for command in commands)


def command_output(command: str, folder: Path) -> str:
    """What a terminal shows for a command, with `> ` before the lines that go on with it, when no server is running."""
    environment = {k: v for k, v in os.environ.items() if k not in ("REACT_TEXT_MODEL", "CI")}
    environment |= {"XDG_STATE_HOME": str(folder / "state"), "REACT_TEXT_PROBE": "off", "PYTHONPATH": str(ROOT)}
    own = f'react-text() {{ "{sys.executable}" -u -m react_text "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", own + command.replace("\n> ", "\n")],
        cwd=folder,
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
        r"```console\n((?:.*\n)*?)```",
        lambda m: f"```console\n{console(m[1])}```",
        text,
    )
    text = re.sub(
        r"```python\n((?:.*\n)*?)```\n\n```text\n(?:.*\n)*?```",
        lambda m: f"```python\n{m[1]}```\n\n```text\n{python_output(m[1]).rstrip()}\n```",
        text,
    )
    text = re.sub(r"\| code \| weight \| what is wrong \|\n(?:\|.*\n)+", lambda m: rule_table(), text)
    return re.sub(r"\| module \| from -> to \|\n(?:\|.*\n)+", lambda m: module_table(), text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
