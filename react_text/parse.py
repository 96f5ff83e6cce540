"""Completion text -> `Turn(thought, action)`, or a `ParseError` that the model can act on.

The text is what a model wrote after the cue `Thought:`. It is read by five rules, each in linear time:

    THINK   reasoning blocks are not part of the turn
    CUT     the turn ends before a line that starts with an observation or question label
    LABEL   an action needs its label at a line start, outside a fence unless every action is fenced
    FIRST   the first complete action counts; nothing behind its closing bracket is read or kept
    CLOSE   the closing bracket is found by one balanced scan; a missing one is never guessed
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from .errors import ParseError
from .labels import PLAIN, Labels, label_beginning, label_line
from .nearmiss import LEADING, answer_line, bare_call, bare_object, labelled_call, misplaced_call, near_miss
from .scan import OPENING, Span, closing_bracket
from .thinking import reasoning_spans, think_tags, without_tags

# What a raw endpoint may repeat of the way in which a turn of the model begins.
_BEGINNING = re.compile(
    r"(?:\s*(?:\ufeff|<s>|<bos>|\[BOS\]|<\|(?:begin_of_text|startoftext)\|>|<｜begin▁of▁sentence｜>"
    r"|<\|im_start\|>(?:assistant\n)?|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model\n"
    r"|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>))+"
)
_FENCE = r"^[ \t]*(?:```+|~~~+)[ \t]*(?:[\w+-]+[ \t]*)?\r?$"
# What chat models say when their turn is over; raw endpoints often return it as text.
_END_OF_TURN = (
    r"<\|(?:im_end|eot_id|eom_id|eot|end|return|endoftext|end_of_text|end_of_turn|END_OF_TURN_TOKEN)\|>"
    r"|</s>|<end_of_turn>|<turn\|>|<eos>|<｜end▁of▁sentence｜>"
)
_OVER = re.compile(_END_OF_TURN, re.I)
_SPECIAL_TOKEN = re.compile(r"<\|[^|<>\n]{1,64}\|>")
_NONE = re.compile(
    r"[\[(]?(?:(?:none|nothing|not)(?: (?:needed|required|necessary))?|null|nil|n/?a|无|[-–—]+)"
    r"[ \t)]*(?:[.,;\])(\[].*)?"
    r"|no (?:further |more )?(?:action|tool)s?\b.*",
    re.I,
)
_MARKS = " \t\r*_`"
_WORD = re.compile(r"[\w-]+")
_LONGEST_NAME = 80
_EXECUTABLE = frozenset(
    ["parentheses", "action_input", "bracketed_name", "json", "inline", "answer_label", "bare_call"]
)


@dataclass(frozen=True)
class Action:
    """`tool[arguments]` as the model wrote it; the spans are offsets into the completion."""

    tool: str
    arguments: str
    tool_span: Span = (0, 0)
    arguments_span: Span = (0, 0)

    def __str__(self) -> str:
        return f"{self.tool}[{self.arguments}]"


@dataclass(frozen=True)
class Turn:
    """One turn of the model.

    `text` is the prefix of the completion up to the action's closing bracket; `clean` is the same as the transcript
    keeps it behind the cue: no reasoning block, no repeated `Thought:`, no white space at either end.
    """

    thought: str
    action: Action
    text: str
    clean: str
    thought_span: Span = (0, 0)


def parse_turn(text: str, *, labels: Labels = PLAIN, truncated: bool = False, lenient: Collection[str] = ()) -> Turn:
    """Read one turn.

    `truncated` says that the server stopped at max_tokens, so that an open bracket is explained to the model as
    such, and no bracket before that place is taken for the closing one. `lenient` names tools whose unambiguous near
    misses (`search(x)`, `Action Input:`, `Final Answer:`) are read as if they were well formed; without it they are
    errors that carry the corrected line.

    Raises ParseError, and nothing else, for a text without a readable action.
    """
    return _Reader(text, labels, truncated=truncated).turn({same_name(name): name for name in lenient})


def turn_end(text: str, labels: Labels = PLAIN) -> int | None:
    """Where a turn that is still being written has ended, so that no more of it is needed: behind the closing bracket
    of its first action, or before a label that ends it. None while what follows could still matter."""
    reader = _Reader(text, labels, growing=True)
    call, _ = reader.first_call()
    if call and call.closing is not None and not call.fenced:
        return call.closing + 1
    return reader.end if reader.cut_label and not reader.open_think else None


def is_empty(text: str, labels: Labels = PLAIN) -> bool:
    """Whether nothing is left of a completion after CUT, and no reasoning block is in it."""
    if any(think_tags(text)):
        return False
    reader = _Reader(text, labels)
    return not text[reader.beginning : reader.end].strip()


def has_open_think(text: str, labels: Labels = PLAIN) -> bool:
    """Whether a completion ends inside a reasoning block."""
    return any(think_tags(text)) and _Reader(text, labels).open_think


def reasoning(text: str, labels: Labels = PLAIN) -> str:
    """The closed reasoning blocks of a completion as they were written, for transcripts that keep them."""
    reader = _Reader(text, labels)
    closed = reader.hidden[:-1] if reader.open_think else reader.hidden
    return "".join(text[slice(*span)] for span in closed if span[0] < reader.end).strip()


def same_name(name: str) -> str:
    """What two spellings of one tool name have in common: they may differ in case, `-` and `_`."""
    return name.casefold().replace("-", "").replace("_", "")


@dataclass(frozen=True)
class _Call:
    """What stands behind an action label: a name and an opening bracket, perhaps closed."""

    label: int
    name: Span
    opening: int
    closing: int | None
    fenced: bool


class _Reader:
    """One reading of one completion. Offsets always refer to the completion as it came."""

    def __init__(self, text: str, labels: Labels, *, growing: bool = False, truncated: bool = False) -> None:
        self.text = text
        self.growing, self.truncated = growing, truncated
        self.labels = labels
        self.label = label_line(labels.thought, labels.action, labels.observation, labels.question)
        self.hidden, self.open_think = reasoning_spans(text, labels)
        # Hidden stretches become blanks, so that offsets stay and a label right behind `</think>` starts its line.
        beginning = _BEGINNING.match(text)
        self.beginning = beginning.end() if beginning else 0
        self.visible = _blanked(text, [(0, self.beginning), *self.hidden])
        self.folded = self.visible.casefold()
        self.end, self.cut_label = self._cut()
        while self.cut_label and self.hidden and self.hidden[-1][0] > self.end:
            self.hidden.pop()  # a block that begins behind the end of the turn
            self.open_think = False
        self._next_label = (-1, -1)

    def turn(self, lenient: dict[str, str]) -> Turn:
        call, attempt = self.first_call()
        if call and call.closing is not None:
            turn = self._turn(call)
            if lenient and same_name(turn.action.tool) not in lenient:
                name = (_WORD.findall(turn.action.tool) or [""])[-1]
                if same_name(name) in lenient:  # `Use search[...]`
                    return self._rewritten(call.label, f"{name}[{turn.action.arguments}]")
            return turn
        error = self._error(call, attempt)
        if error.correction and error.kind in _EXECUTABLE:
            name = error.correction.partition("[")[0]
            if same_name(name) in lenient:
                return self._rewritten(error.fields["start"], error.correction)
        raise error

    # -- CUT and LABEL

    def _cut(self) -> tuple[int, str]:
        """Where the turn ends, and the label that ended it ("" when none did)."""
        words = (self.labels.observation, self.labels.question)
        match = self._mentions(*words) and label_line(*words).search(self.visible)
        if match:
            return match.start(), match["word"]
        written = len(self.visible.rstrip())
        last = self.visible.rfind("\n", 0, written) + 1
        if not self.growing and label_beginning(*words).fullmatch(self.visible, last, written):
            return last, ""  # a stop string that the server began to write, such as `Observ`
        return len(self.visible), ""

    def _mentions(self, *words: str) -> bool:
        """Whether a word occurs at all: far cheaper to ask than to look for it at each of a million line starts."""
        return any(word.casefold() in self.folded for word in words)

    def first_call(self) -> tuple[_Call | None, int | None]:
        """The call that counts, and the offset behind the first action label that holds something else."""
        pattern = _landmarks(self.labels.action)
        fenced: _Call | None = None
        attempt: int | None = None
        inside_fence = missed_in_fence = False
        if not self._mentions(self.labels.action):
            self._end_at_token(0)
            return None, None
        position = self._first_landmark()
        last_opening = max(self.visible.rfind(bracket) for bracket in "[［【")
        while match := pattern.search(self.visible, position, self.end):
            position = max(match.end(), position + 1)
            if match["fence"]:
                inside_fence = not inside_fence
            elif match["over"]:
                self.end = match.start()
            elif not (inside_fence and (fenced or missed_in_fence)):
                call = self._call(match.start(), match.end(), inside_fence) if position <= last_opening else None
                if call is None:
                    if attempt is None and self._holds_something(match.end()):
                        attempt = match.end()
                        if near_miss(self.visible, attempt, self.end, self.label, certain=True):
                            # An action in another form is an action all the same: what follows is not the first.
                            if not inside_fence:
                                break
                            missed_in_fence = True
                elif inside_fence:
                    fenced = call
                    position = position if call.closing is None else call.closing
                else:
                    return call, attempt
        self._end_at_token(position)
        return fenced, attempt

    def _end_at_token(self, position: int) -> None:
        """End the turn at the next token that ends a turn."""
        token = _OVER.search(self.visible, position, self.end)
        if token:
            self.end = token.start()

    def _first_landmark(self) -> int:
        """Where the search may start: with no fence and no token in the text, at the line of the first mention."""
        if any(sign in self.visible for sign in ("```", "~~~", "<")):
            return 0
        mention = re.compile(re.escape(self.labels.action), re.I).search(self.visible)
        return self.visible.rfind("\n", 0, mention.start()) + 1 if mention else 0

    def _holds_something(self, position: int) -> bool:
        if self.visible[position : _line_end(self.visible, position, self.end)].strip(_MARKS):
            return True
        blank = LEADING.match(self.visible, position, self.end)
        if blank is not None and self.visible.startswith("{", blank.end(), self.end):
            return True
        return near_miss(self.visible, position, self.end, self.label, certain=True) is not None

    def _call(self, label: int, position: int, fenced: bool) -> _Call | None:
        """The call behind a label, on its line or, when that is empty, on the next one that is not."""
        blank = LEADING.match(self.visible, position, self.end)
        start = blank.end() if blank else position
        line_start = self.visible.rfind("\n", position, start) + 1
        if line_start and self.label.match(self.visible, line_start, self.end):
            return None
        line_end = _line_end(self.visible, start, self.end)
        opening = OPENING.search(self.visible, start, line_end)
        if opening is None:
            return None
        name_end = opening.start()
        token = _SPECIAL_TOKEN.search(self.text, start, name_end)
        name = self.text[start : token.start() if token else name_end].rstrip(" \t\r*`\\\xa0\u3000")
        if not name or len(name) > _LONGEST_NAME or "(" in name or _NONE.fullmatch(name):
            return None
        closing = self._closing(opening.start())
        return _Call(label, (start, start + len(name)), opening.start(), closing, fenced)

    # -- CLOSE

    def _closing(self, opening: int) -> int | None:
        balanced = closing_bracket(self.text, opening, self.end, self._label_after, growing=self.growing)
        if balanced is not None or self.growing:
            return balanced
        before_label = min(self._label_after(opening), self.end)
        if self.truncated and before_label == len(self.text):  # max_tokens cut the text inside of the bracket
            return None
        last = max(self.text.rfind(closer, opening, before_label) for closer in "]］】")
        return last if last > opening else None

    def _label_after(self, position: int) -> int:
        """The start of the next label line after `position`; asked for growing positions, so each line is read once."""
        asked, found = self._next_label
        if not asked <= position < found:
            match = self.label.search(self.visible, position, self.end)
            found = match.start() if match else self.end
            self._next_label = (position, found)
        return found

    # -- what is kept

    def _turn(self, call: _Call) -> Turn:
        assert call.closing is not None
        early = misplaced_call(self.visible, call.label, self.labels.action, self.labels.observation)
        if early and early[0] == "invented":  # a call and its result on one line: what follows rests on nothing
            raise self._misplaced(early)
        name = self.text[slice(*call.name)]
        escaped = self.text[call.opening - 1] == self.text[call.closing - 1] == "\\"  # as Markdown writes brackets
        arguments = (call.opening + 1, call.closing - escaped)
        action = Action(name, self.text[slice(*arguments)], call.name, arguments)
        clean = self._kept(call.closing + 1, call.opening, dropped=(call.name[1], call.opening), fenced=call.fenced)
        thought = self._kept(call.label, call.label, fenced=call.fenced)
        start = self.text.find(thought, 0, call.label) if thought else 0
        return Turn(thought, action, self.text[: call.closing + 1], clean, (start, start + len(thought)))

    def _rewritten(self, label: int, canonical: str) -> Turn:
        """The turn with a near miss replaced by its canonical line."""
        tool, _, rest = canonical.partition("[")
        thought = self._kept(label, label)
        line = f"{self.labels.action}: {canonical}"
        clean = f"{thought}\n{line}" if thought else line
        return Turn(thought, Action(tool, rest[:-1]), self.text[: self.end], clean, (0, len(thought)))

    def _kept(self, end: int, tokens_until: int, dropped: Span = (0, 0), fenced: bool = False) -> str:
        """`text[:end]` as the transcript keeps it. Special tokens are dropped up to `tokens_until`: a server could
        read them as control tokens when they come back in the next prompt."""
        spans = [span for span in [(0, self.beginning), *self.hidden] if span[0] < end]
        if "<|" in self.text:
            spans += [match.span() for match in _SPECIAL_TOKEN.finditer(self.text, 0, tokens_until)]
            if _SPECIAL_TOKEN.search(self.text, *dropped):
                spans.append(dropped)
        kept = _without(self.text[:end], spans).strip()
        if fenced:
            kept = re.sub(r"\A(?:```+|~~~+)[^\n]*(?:\n\s*|\Z)", "", kept)
        label = label_line(self.labels.thought).match(kept)
        return kept[label.end() :].lstrip() if label else kept

    # -- what went wrong

    def _error(self, call: _Call | None, attempt: int | None) -> ParseError:
        text = self._kept(self.end, self.end)
        if call:
            why = "length" if self.truncated else "label" if self.cut_label else "open"
            tool = self.text[slice(*call.name)]
            return ParseError("truncated", text=text, tool=tool, why=why, label=self.cut_label)
        if self.open_think:
            return ParseError("open_think", text=text, truncated=self.truncated)
        if not text:
            blocks = [without_tags(self.text[slice(*span)]) for span in self.hidden]
            inside = any(label_line(self.labels.action).search(block) for block in blocks)
            return ParseError("in_think" if inside else "empty", text=text)
        if attempt is not None:
            line = self.visible[attempt : _line_end(self.visible, attempt, self.end)].strip(_MARKS)
            if _NONE.fullmatch(line):
                return ParseError("no_tool", text=text)
            miss = near_miss(self.visible, attempt, self.end, self.label)
            kind, correction = miss or ("not_a_call", "")
            start = self.visible.rfind("\n", 0, attempt) + 1
            first = _WORD.search(line)
            return ParseError(kind, text=text, correction=correction, start=start, tool=first[0] if first else "")
        misplaced = self._mentions("[") and misplaced_call(
            self.visible, self.end, self.labels.action, self.labels.observation
        )
        if misplaced:
            return self._misplaced(misplaced)
        finders = (("answer_label", "answer", answer_line), ("bare_call", "[", bare_call), ("json", "{", bare_object))
        for kind, sign, find in finders:
            found = self._mentions(sign) and find(self.visible, self.end, self.label)
            if found:
                return ParseError(kind, text=text, correction=found[1], start=found[0])
        if self.truncated:
            return ParseError("truncated", text=text, tool="", why="length", label="")
        return ParseError("no_action", text=text, correction=labelled_call(self.visible, self.end))

    def _misplaced(self, found: tuple[str, int, int, str]) -> ParseError:
        kind, start, end, correction = found
        return ParseError(kind, text=self._kept(end, end), correction=correction, start=start)


def _blanked(text: str, spans: list[Span]) -> str:
    if not any(end for _, end in spans):
        return text
    pieces, position = [], 0
    for start, end in spans:
        start = max(start, position)
        pieces += [text[position:start], " " * (end - start)]
        position = max(position, end)
    return "".join([*pieces, text[position:]])


def _without(text: str, spans: list[Span]) -> str:
    if not spans:
        return text
    pieces, position = [], 0
    for start, end in sorted(spans):
        if start >= position:
            pieces.append(text[position:start])
        position = max(position, end)
    return "".join([*pieces, text[position:]])


def _line_end(text: str, position: int, end: int) -> int:
    found = text.find("\n", position, end)
    return end if found < 0 else found


@lru_cache(maxsize=16)
def _landmarks(action_label: str) -> re.Pattern[str]:
    """Fence lines, tokens that end a turn, and action labels: whatever decides which call is the first."""
    label = label_line(action_label).pattern
    return re.compile(f"(?P<over>{_END_OF_TURN})|(?P<fence>{_FENCE})|{label}", re.I | re.M)
