"""README.md tells the truth: its examples are run, its tables are compared with the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from react_text import settings
from react_text.cli import parser
from react_text.prompt import KEYS
from react_text.settings import FAULTS
from react_text.trace import KEYS as TRACE_KEYS

from . import readme

TEXT = readme.README.read_text(encoding="utf-8")
PACKAGE = readme.ROOT / "react_text"


def test_generated_parts_of_the_readme_are_up_to_date() -> None:
    assert readme.written(TEXT) == TEXT, "run: python tests/readme.py"


def test_the_module_table_lists_every_module() -> None:
    shipped = PACKAGE / "templates"  # files of the project that `init` lays out
    modules = (path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(shipped))
    files = {str(path.relative_to(PACKAGE)) for path in modules} - {"__init__.py", "__main__.py"}
    assert {str(readme.module_file(name).relative_to(PACKAGE)) for name in readme.MODULES} == files


@pytest.mark.parametrize("name", readme.MODULES)
def test_a_module_imports_only_from_those_before_it(name: str) -> None:
    known = set(readme.MODULES[: readme.MODULES.index(name)])
    path = readme.module_file(name)
    package = name.split(".")[:-1] if path.name != "__init__.py" else name.split(".")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        targets = [node.module] if node.module else [alias.name for alias in node.names]
        for target in targets:
            full = ".".join([*base, target])
            allowed = full in known or (node.module and any(f"{full}.{a.name}" in known for a in node.names))
            assert allowed, f"{name} imports {full}"


@pytest.mark.parametrize("key", [*KEYS, *TRACE_KEYS])
def test_every_key_of_prompts_and_traces_is_in_the_readme(key: str) -> None:
    assert f"`{key}`" in TEXT


def test_every_limit_and_fault_is_in_the_readme() -> None:
    for name in [*settings.Limits.__dataclass_fields__, *FAULTS]:
        assert name in TEXT


def test_every_command_and_option_is_in_the_readme() -> None:
    commands = next(a for a in parser()._actions if hasattr(a, "choices") and a.choices).choices
    assert commands
    for name, command in commands.items():
        assert f"react-text {name}" in TEXT
        for action in command._actions:
            for option in action.option_strings:
                assert option in TEXT or option in ("-h", "--help", "--var"), option
            assert action.help, f"{name} {action.dest} has no help"


def test_lines_are_split_at_newlines_only() -> None:
    """`splitlines` also breaks at U+2028, form feeds and CR, which are content here."""
    for path in PACKAGE.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            assert not re.search(r"\.splitlines\(", line) or "str(error)" in line, f"{path.name}:{number}"


def test_shipped_files_name_no_path_of_a_machine() -> None:
    for folder in ("prompts", "tools", "traces", "react_text"):
        for path in (readme.ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".j2", ".py", ".trace"):
                assert "/home/" not in path.read_text(encoding="utf-8"), path


def test_the_license_is_there() -> None:
    assert "Apache License" in (readme.ROOT / "LICENSE").read_text(encoding="utf-8")
    assert Path(readme.ROOT / "CHANGELOG.md").is_file()
