"""Python functions -> `Tool`s that a model can call, loaded from objects or from modules by path."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

from .arguments import Parameter, read_arguments
from .errors import AuthorError, did_you_mean
from .nearmiss import FINISH
from .parse import same_name

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
ToolSource = Function | str | Path | Mapping[str, Function] | Iterable["ToolSource"]

_OPTIONS = "__react_text_options__"


@dataclass(frozen=True)
class ToolOptions:
    """What `@tool` can say about a function.

    name        what the model calls it; the function's own name otherwise
    pure        same arguments, same result, no side effect: an earlier result may be shown again
    repeatable  calling it again with the same arguments makes sense, as when polling
    timeout     seconds for one call; None takes the run's `tool_timeout`
    multiline   its text argument usually has several lines (grammars then allow newlines)
    unsafe      it changes something outside; commands that run tools on their own ask first
    """

    name: str | None = None
    pure: bool = False
    repeatable: bool = False
    timeout: float | None = None
    multiline: bool = False
    unsafe: bool = False


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    pure: bool = False,
    repeatable: bool = False,
    timeout: float | None = None,
    multiline: bool = False,
    unsafe: bool = False,
) -> Callable[[F], F]: ...
def tool(function: Function | None = None, /, **options: Any) -> Any:
    """Mark a function as a tool: `@tool`, or `@tool(name=..., repeatable=True)`; see ToolOptions. The function stays
    an ordinary function."""

    def mark(target: Function) -> Function:
        setattr(target, _OPTIONS, ToolOptions(**options))
        return target

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class Tool:
    """A function as the model sees it: a name, parameters, and the first paragraph of its docstring."""

    name: str
    function: Function
    parameters: tuple[Parameter, ...]
    description: str
    options: ToolOptions

    @cached_property
    def usage(self) -> str:
        """`get_weather[city: str, days: int = 1]`; a single text parameter goes without its type."""
        if len(self.parameters) == 1 and self.parameters[0].annotation is str and self.parameters[0].required:
            return self.form
        return f"{self.name}[{', '.join(map(str, self.parameters))}]"

    @property
    def form(self) -> str:
        """`get_weather[city, days]`: names only."""
        return f"{self.name}[{', '.join(p.name for p in self.parameters)}]"

    def read(self, arguments: str) -> dict[str, Any]:
        """The argument text as values. Raises ArgumentError."""
        return read_arguments(arguments, self.parameters)


ANSWER = Tool(FINISH, lambda answer: answer, (Parameter("answer"),), "give the final answer and end", ToolOptions())
"""How a run ends where its prompt does not say what the answer consists of."""


class Toolbox(Mapping[str, Tool]):
    """The tools of a run, by name and in a fixed order; `finish` is the action that ends it."""

    def __init__(self, tools: Iterable[Tool] = (), finish: Tool = ANSWER) -> None:
        self.finish = finish
        self._tools: dict[str, Tool] = {}
        self._same: dict[str, str] = {same_name(FINISH): FINISH}
        for each in tools:
            if not each.name.strip() or any(c in each.name for c in "[]［］【】\n"):
                raise AuthorError(f"a tool cannot be called {each.name!r}: a name is one line without brackets")
            other = self._same.get(same_name(each.name))
            if other == FINISH:
                raise AuthorError(f"a tool cannot be called {each.name!r}: finish[answer] ends the run")
            if other is not None:
                raise AuthorError(f"tools {other!r} and {each.name!r} differ only in case, '-' or '_'; rename one")
            self._same[same_name(each.name)] = each.name
            self._tools[each.name] = each

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def resolve(self, written: str) -> str | None:
        """The registered name that `written` stands for: exact, or the one that differs only in case, `-` or `_`."""
        return written if written in self._tools else self._same.get(same_name(written))

    def offered(self, allow: Iterable[str] | None, finish: Tool | None = None) -> Toolbox:
        """What a model may call: the tools whose names are in `allow` (None for all), in this box's order."""
        names = set(self if allow is None else allow)
        return Toolbox((each for each in self.values() if each.name in names), finish or self.finish)

    def describe(self) -> str:
        """One line per tool, `usage - description`, and finish last: what a prompt shows."""
        each = [*self.values(), self.finish]
        return "\n".join(f"{tool.usage} - {tool.description}" if tool.description else tool.usage for tool in each)

    def usages(self) -> list[str]:
        """The usage lines, finish last: what an error observation lists."""
        return [each.usage for each in (*self.values(), self.finish)]


def load_tools(source: ToolSource | None) -> Toolbox:
    """Tools from functions, a dict of functions, module paths, or any nesting of these. Raises AuthorError."""
    return Toolbox(_collect(source))


def make_tool(function: Function, name: str | None = None) -> Tool:
    """One function as a tool. Raises AuthorError for a signature that a text argument cannot fill."""
    options = getattr(function, _OPTIONS, ToolOptions())
    inner = function
    while isinstance(inner, functools.partial):  # it has the names and hints of what it calls, and none of its own
        inner = inner.func
    target = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner).__call__
    name = name or options.name or str(getattr(inner, "__name__", type(inner).__name__))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise AuthorError(f"tool {name}: its signature cannot be read; wrap it in a Python function") from None
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # a name that does not exist, in an annotation: the author's, whatever its type
        raise AuthorError(f"tool {name}: its annotations cannot be read: {error}", **_place(function)) from None
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise AuthorError(f"tool {name}: parameter {parameter.name} is positional-only", **_place(function))
        parameters.append(Parameter(parameter.name, hints.get(parameter.name, str), parameter.default))
    paragraph = (inspect.getdoc(inner) or "").strip().split("\n\n")[0]
    return Tool(name, function, tuple(parameters), " ".join(paragraph.split()), replace(options, name=name))


def load_module(path: str | Path) -> ModuleType:
    """A tools module by its path, under a private name: a project's `tools` folder is never imported as a package.

    Raises AuthorError with the line that failed.
    """
    file = Path(path)
    if not file.is_file():
        near = did_you_mean(file.name, (p.name for p in file.parent.glob("*.py"))) if file.parent.is_dir() else ""
        raise AuthorError(f"no such tools module{near}", path=file)
    spec = importlib.util.spec_from_file_location(f"_react_text_tools_{file.stem}", file.resolve())
    if spec is None or spec.loader is None:
        raise AuthorError("a tools module is a .py file", path=file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look modules up by name
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise AuthorError(f"syntax error: {error.msg}", path=error.filename or file, line=error.lineno) from None
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file.resolve())]
        message = f"loading this tools module raised {type(error).__name__}: {error}"
        raise AuthorError(message, path=file, line=lines[-1] if lines else None) from None
    return module


def _collect(source: ToolSource | None) -> Iterator[Tool]:
    if source is None:
        return
    if isinstance(source, Tool):
        yield source
    elif isinstance(source, Toolbox):
        yield from source.values()
    elif isinstance(source, (str, Path)):
        yield from _public_tools(load_module(source), source)
    elif isinstance(source, ModuleType):
        yield from _public_tools(source, source.__name__)
    elif isinstance(source, Mapping):
        yield from (make_tool(function, name) for name, function in source.items())
    elif callable(source):
        yield make_tool(source)
    else:
        for each in source:
            yield from _collect(each)


def _public_tools(module: ModuleType, path: str | Path) -> Iterator[Tool]:
    """What a module offers: its `__all__`, else the public functions that it defines itself or marks with `@tool`."""
    names = getattr(module, "__all__", None)
    found = 0
    for name, value in vars(module).items():
        if names is not None:
            offered = name in names
        else:
            own = inspect.isfunction(value) and value.__module__ == module.__name__
            offered = not name.startswith("_") and (own or hasattr(value, _OPTIONS))
        if offered and callable(value):
            found += 1
            yield make_tool(value)
    if not found:
        raise AuthorError("this module offers no tools: it has no public function", path=path)


def _place(function: Function) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    return {"path": code.co_filename, "line": code.co_firstlineno} if code else {}
