"""Models without a server: fixed turns for tests and demos, and plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ReactTextError, ServerError, ServerTimeout
from ..parse import has_open_think, is_empty
from .base import Completion, Constraint, Model, OnText, Options

if TYPE_CHECKING:
    from ..trace import Trace


class ScriptedModel:
    """Replays fixed turns, whatever the prompt.

    A turn is the text that the model "writes" after the cue `Thought:`, or a `Completion` where the way it ended
    matters. Each run replays the script from its first turn; a run that asks for more turns than there are ends with
    a ServerError that says so.
    """

    takes_raw = True
    """No chat template is put around the prompts: they make no difference."""

    def __init__(self, turns: Iterable[str | Completion], name: str = "scripted") -> None:
        self.turns = tuple(turn if isinstance(turn, Completion) else Completion(turn) for turn in turns)
        self.name = name
        self._next = 0

    @classmethod
    def from_trace(cls, source: str | Path | Trace, first: int = 1) -> ScriptedModel:
        """The model half of a trace, from step `first` on. Raises AuthorError."""
        from ..trace import Trace

        trace = source if isinstance(source, Trace) else Trace.load(source)
        turns: list[Completion] = []
        for number, text in enumerate(trace.completions[first - 1 :], first):
            completion = Completion(text, trace.finishes.get(number, "stop"))
            turns.append(completion)
            # What makes the engine ask once more was recorded after the second answer.
            if is_empty(text, trace.labels):
                turns.append(completion)
            elif completion.finish == "stop" and has_open_think(text, trace.labels):
                turns.append(Completion("", "stop"))
        return cls(turns, name=f"scripted:{trace.path.name if trace.path else 'a trace'}")

    def session(self) -> ScriptedModel:
        """A copy that begins at the first turn: what one run plays from."""
        return ScriptedModel(self.turns, self.name)

    def complete(
        self,
        prompt: str,
        *,
        stop: Sequence[str],
        options: Options,
        on_text: OnText | None = None,
        deadline: float | None = None,
        constraint: Constraint | None = None,
    ) -> Completion:
        if self._next >= len(self.turns):
            raise ServerError(f"the script of {self.name} has {len(self.turns)} turns, and the run asked for one more")
        turn = self.turns[self._next]
        self._next += 1
        return turn


class CallableModel:
    """A plain function `llm(prompt, stop=[...]) -> str` as a model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def complete(
        self,
        prompt: str,
        *,
        stop: Sequence[str],
        options: Options,
        on_text: OnText | None = None,
        deadline: float | None = None,
        constraint: Constraint | None = None,
    ) -> Completion:
        try:
            text = self.function(prompt, stop=list(stop))
        except ReactTextError:
            raise
        except TimeoutError as error:
            raise ServerTimeout(f"the model function {self.name} timed out: {error}") from error
        except Exception as error:
            raise ServerError(f"the model function {self.name} raised {type(error).__name__}: {error}") from error
        if isinstance(text, Completion):
            return text
        if not isinstance(text, str):
            raise ServerError(f"the model function {self.name} returned {type(text).__name__}, not a text")
        return Completion(text.removeprefix(prompt))  # some libraries give the prompt back with its continuation


def as_model(model: Model | Callable[..., Any]) -> Model:
    """A model object as it is, a plain function wrapped."""
    return model if hasattr(model, "complete") else CallableModel(model)  # type: ignore[return-value]
