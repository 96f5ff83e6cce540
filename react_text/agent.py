"""`Agent`: a prompt, tools and a model, ready to run questions; and `react`, the same for one question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .ask import Show
from .errors import AuthorError
from .examples import read_example
from .gateway import Calls, Gateway, World
from .log import RunLog
from .loop import Run
from .models import open_model
from .models.base import Model
from .observe import Observer
from .prompt import Prompt
from .recorded import recorded_world
from .result import Result, Step
from .scratchpad import run_tools
from .settings import Settings
from .tools import ToolSource, load_tools, make_tool
from .trace import TraceStep


class Agent:
    """A prompt, tools and a model, ready to run questions.

    prompt     a path or a loaded Prompt; the package's base prompt when None
    tools      functions, a dict, module paths, or a list of these; the prompt's own when None
    model      a model, a function `llm(prompt, stop=[...]) -> str`, or a spec for `open_model`
    examples   few-shot traces (paths, or texts with newlines); the prompt's own when None
    settings   any key of a prompt's front matter, and single limits and options: `allow`, `max_steps`, `temperature`...

    An agent holds no state between runs and can be used from many threads. Raises AuthorError for what its author has
    to change.
    """

    def __init__(
        self,
        prompt: str | Path | Prompt | None = None,
        tools: ToolSource | None = None,
        model: str | Model | Callable[..., Any] | None = None,
        *,
        examples: Sequence[str | Path] | None = None,
        **settings: Any,
    ) -> None:
        self.prompt = prompt if isinstance(prompt, Prompt) else Prompt.load(prompt) if prompt else Prompt.base()
        if settings.get("allow") is not None:
            settings["allow"] = _allowed_names(settings["allow"])
        self.overrides = settings
        self.settings: Settings = self.prompt.settings.override(**settings)
        self.tools = run_tools(self.prompt.tools if tools is None else tools, self.settings)
        if model is None:
            raise AuthorError("an agent needs a model: a URL, scripted:FILE.trace, a function or a model object")
        self.model = open_model(model)
        self.examples = None if examples is None else [_example(each) for each in examples]

    def run(
        self,
        question: str | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        log: str | Path | None = None,
        on_text: Show | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> Result:
        """Answer one question (the prompt's default when None).

        `log` is a file for JSON Lines events; `on_text` gets the model's text as it is written, `on_step` each step.
        Raises AuthorError before the first step, and `Interrupted` on Ctrl-C.
        """
        run = self.steps(question, variables=variables, log=log, on_text=on_text)
        for step in run:
            if on_step is not None:
                on_step(step)
        return run.result

    def steps(
        self,
        question: str | None = None,
        *,
        variables: Mapping[str, Any] | None = None,
        log: str | Path | None = None,
        on_text: Show | None = None,
        world: World | None = None,
        past: Sequence[TraceStep] = (),
        calls: Calls | None = None,
        name: str = "",
    ) -> Run:
        """The same as an iterator of steps; its `result` is there after the last one. `world` answers instead of the
        tools; `past` are steps of an earlier run, which come first as they were, without the model and the tools. Runs
        that share `calls`, each under a `name`, do not repeat one another's."""
        settings = self.settings
        past_world = recorded_world(past) if past else None
        gateway = Gateway(self.tools, settings, world=world or past_world, calls=calls, name=name)
        prompt = self.prompt.open(
            question, gateway.allowed, variables=variables, examples=self.examples, settings=settings
        )
        folder = self.prompt.path.parent if self.prompt.path else None
        observer = Observer(gateway.allowed, settings, folder, recorded=world is not None)
        return Run(self.model, prompt, gateway, observer, RunLog(log), self.overrides, on_text, past)


def react(
    question: str,
    llm: str | Model | Callable[..., Any],
    tools: ToolSource | None = None,
    *,
    prompt: str | Path | Prompt | None = None,
    **settings: Any,
) -> Result:
    """Answer `question` with `llm` and `tools`: an Agent for one run. The keywords are those of Agent."""
    return Agent(prompt, tools, llm, **settings).run(question)


def _allowed_names(allow: Any) -> list[str]:
    """Names from `allow=`, which may also hold tool functions and module paths."""
    each_allowed = [allow] if isinstance(allow, (str, Path)) or callable(allow) else allow
    if not isinstance(each_allowed, Iterable):
        raise AuthorError(f"allow must be a list of tools, not {allow!r}")
    names: list[str] = []
    for each in each_allowed:
        if isinstance(each, Path) or (isinstance(each, str) and each.endswith(".py")):
            names += load_tools(each)
        else:
            names.append(make_tool(each).name if callable(each) else str(each))
    return names


def _example(example: str | Path) -> str:
    return example if isinstance(example, str) and "\n" in example else read_example(example)
