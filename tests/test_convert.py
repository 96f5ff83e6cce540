"""`import` and `export`: prompt files of the ReAct paper's shape, byte for byte, transcripts of other engines, records
for fine-tuning, Markdown. All texts are our own."""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from react_text import Agent, AuthorError, Prompt, ScriptedModel, Trace
from react_text.formats import chat, langchain, react2022
from react_text.formats.markdown import markdown
from react_text.models.base import Completion
from react_text.show import prompts
from react_text.tools import Toolbox

from .project import Project

ROOT = Path(__file__).parents[1]
TRACES = sorted((ROOT / "traces").glob("*.trace"))
TRACES_2022 = sorted((ROOT / "tests" / "traces_2022").glob("*.trace"))


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


# -- the paper's JSON files

HOTPOT = """
Question: Which of two bridges is older, the Long Bridge or the Salt Bridge?
Thought 1: I search the Long Bridge first.\x20
Action 1: Search[Long Bridge]
Observation 1: The Long Bridge (built 1801)
has 12 arches. Could not find [Salt]. Similar: [Salt Bridge, Salt].
Thought 2: 1801. Now the Salt Bridge, the na\u00c3\u00afve way.
Action 2: Search[Salt Bridge]
Observation 2: Question: when? In 1799.
Question: an old joke of the page
Thought 3: 1799 is before 1801.
Action 3: Finish[Salt Bridge]
Question: Is the harbour of Kell deeper than 9 m?
Thought 1: I search it.
Action 1: Search[Kell]
Observation 1: The harbour is 11 m deep.
Action 2: Finish[yes]
"""
FEVER = """Decide whether a Claim is right. Answer SUPPORTS, REFUTES or NOT ENOUGH INFO; {{ claims }} may {% be %} odd.

Claim: The Salt Bridge has 12 arches.
?
Thought 1: I search it.
Action 1: Search[Salt Bridge]
Observation 1: It has 9 arches.
Thought 2: 9 are not 12.
Action 2: Finish[REFUTES]

Claim: Kell has a harbour.
Action 1: Finish[SUPPORTS]


Claim: Kell has two.
Action 1: Finish[NOT ENOUGH INFO]"""
GAME = """You are in a shed. There is a shelf 1 and a box 2.
Your task is to: put the rope on the shelf.
> think: The rope may be in the box.
OK.
>go to box 2
The box 2 is closed.
> open box 2
You open the box 2. In it you see a rope 1.
"""
SHOP = """Shop\x20
Instruction: \x20
A ruler of wood, 50 cm
[Search] \x20

Action: search[wooden ruler]
Observation:\x20
[Back to Search]
[Next >]
[P11RUL02]

Action: think[P11RUL02 may do.]
Observation: OK.

Action: click[Buy Now]
"""
COT = "\nQuestion: 2 boats or 3?\nThought: 3 of them.\nAnswer: 3\n\nQuestion: And 4?\nThought: 4.\nAnswer: 4\n"
VALUES = {"hotpot": HOTPOT, "fever": FEVER, "game_put": GAME, "shop": SHOP, "cot": COT}
STYLES: dict[str, dict[str, Any]] = {
    "one line": {},
    "indented": {"indent": 4},
    "not in ASCII": {"indent": 2, "ensure_ascii": False},
    "by hand": {"separators": (" ,\n", " :\t")},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, {"setup.cfg": "[react_text]\n"})


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES.keys())
@pytest.mark.parametrize("key", VALUES)
def test_a_paper_file_comes_back_byte_for_byte(project: Project, key: str, style: dict[str, Any]) -> None:
    original = json.dumps(VALUES, **style)
    project.write("prompts.json", original)
    taken = project.run(f"import react2022 prompts.json --key {key} --out in")
    assert taken.code == 0, taken
    files = taken.out.split()
    source = next((file for file in files if file.endswith(".j2")), files[0])
    given = project.run(f"export react2022 {source} --key {key} --into prompts.json --out again.json")
    assert (given.code, project.read("again.json")) == (0, original)
    for file in files[:-1]:
        trace = Trace.load(project.folder / file)
        assert trace.dump() == (project.folder / file).read_bytes()
        assert trace.body in VALUES[key]


@pytest.mark.parametrize(
    ("key", "names", "labels", "steps", "answers"),
    [
        ("hotpot", ["hotpot_1", "hotpot_2"], "Question numbered", [3, 2], ["Salt Bridge", "yes"]),
        ("fever", ["fever_1", "fever_2", "fever_3"], "Claim numbered", [2, 1, 1],
         ["REFUTES", "SUPPORTS", "NOT ENOUGH INFO"]),
        ("game_put", ["game_put"], " plain", [3], [None]),
        ("shop", ["shop"], "Instruction plain", [3], [None]),
        ("cot", ["cot_1", "cot_2"], "Question plain", [1, 1], [None, None]),
    ],
)  # fmt: skip
def test_the_examples_of_a_paper_file_become_traces(
    key: str, names: list[str], labels: str, steps: list[int], answers: list[str | None]
) -> None:
    imported = react2022.split(VALUES[key], key)
    traces = list(imported.traces.values())
    assert list(imported.traces) == names
    assert {f"{t.labels.question} {'numbered' if t.labels.numbered else 'plain'}" for t in traces} == {labels}
    assert [len(trace.steps) for trace in traces] == steps
    assert [trace.meta.get("answer") for trace in traces] == answers


def test_another_value_goes_among_the_keys_of_a_file(project: Project) -> None:
    project.write("prompts.json", '{"a": "\\u0041",\n "b": "x \\" y"}\n')
    project.write("c.trace", "Question: q\nThought: t\n")
    assert project.run("export react2022 c.trace --key b --into prompts.json").out == (
        '{"a": "\\u0041",\n "b": "Question: q\\nThought: t\\n"}\n'
    )
    assert json.loads(project.run("export react2022 c.trace --into prompts.json").out) == {
        "a": "A", "b": 'x " y', "c": "Question: q\nThought: t\n",
    }  # fmt: skip
    assert json.loads(project.run("export react2022 c.trace c.trace").out) == {"c": "Question: q\nThought: t\n" * 2}


def test_the_parts_of_an_example() -> None:
    hotpot = react2022.split(HOTPOT, "k").traces["k_1"]
    assert hotpot.task == "Question: Which of two bridges is older, the Long Bridge or the Salt Bridge?\n"
    assert hotpot.steps[0].text.startswith("Thought 1: I search the Long Bridge first. \n")
    assert hotpot.steps[1].observation == "Question: when? In 1799.\nQuestion: an old joke of the page"
    game = react2022.split(GAME, "k").traces["k"]
    assert [(step.tool, step.arguments, step.observation) for step in game.steps] == [
        (None, None, "OK."),
        ("go", "to box 2", "The box 2 is closed."),
        ("open", "box 2", "You open the box 2. In it you see a rope 1."),
    ]
    shop = react2022.split(SHOP, "k").traces["k"]
    assert shop.steps[0].observation == "\n[Back to Search]\n[Next >]\n[P11RUL02]\n"
    fever = react2022.split(FEVER, "k").traces["k_1"]
    assert fever.task == "Claim: The Salt Bridge has 12 arches.\n?\n"


@pytest.mark.parametrize(
    ("key", "end"),
    [
        ("hotpot", "Action 2: Finish[yes]\nQuestion: How deep?\nThought 1:"),
        ("fever", "Action 1: Finish[NOT ENOUGH INFO]\nClaim: How deep?\nThought 1:"),
        ("shop", "Action: click[Buy Now]\nInstruction: How deep?\nThought:"),
    ],
)
def test_the_imported_prompt_asks_as_the_examples_do(project: Project, key: str, end: str) -> None:
    project.write("prompts.json", json.dumps(VALUES))
    project.run(f"import react2022 prompts.json --key {key} --out in")
    prompt = Prompt.load(project.folder / "in" / f"{key}.j2")
    opened = prompt.open("How deep?", Toolbox())
    cue = prompt.settings.labels.cue(prompt.settings.labels.thought, 1)
    assert opened.text("", cue).startswith(VALUES[key])
    assert opened.text("", cue).endswith(end)


def test_the_traces_of_a_paper_file_can_be_put_together_again(project: Project) -> None:
    """All shapes of the paper, as the traces of test_trace_format have them."""
    for path in TRACES_2022:
        assert react2022.joined([path]) == Trace.load(path).body
    whole = react2022.joined(TRACES_2022[:6])
    project.write("act.json", json.dumps({"act": whole}))
    assert project.run("import react2022 act.json").code == 0
    assert react2022.joined([project.folder / "act.j2"]) == whole
    assert len([name for name in project.files() if name.endswith(".trace")]) == 6


PIECES = [
    "Question: a", "Claim: b", "Thought 1: c", "Thought 2: d", "Action 1: S[e]", "Action 2: Finish[f]",
    "Observation 1: g", "Thought: h", "Action: s[i]", "Observation:", "> go", "> think: j", "OK.", "", "  ", "{{ k }}",
    "{% raw %}", "{#", "l\r", "\u2028", "Note: m", "---", "<<<<<<< n", "}}", "{% endraw %}",
]  # fmt: skip


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14), st.sampled_from(["", "\n", "\n\n"]))
def test_any_text_comes_back_or_is_refused(lines: list[str], end: str) -> None:
    value = "\n".join(lines) + end
    try:
        imported = react2022.split(value, "k")
    except AuthorError as error:
        assert any(word in error.message for word in ("no line of it begins", "carriage returns", "endraw"))
        return
    with tempfile.TemporaryDirectory() as folder:
        files = imported.save(Path(folder))
        assert react2022.joined(files[-1:] if imported.prompt else files) == value


# -- LangChain

LANGCHAIN = """\


\x1b[1m> Entering new AgentExecutor chain...\x1b[0m
\x1b[32;1m I need the length of the pier.
Action: Search
Action Input: long pier\x1b[0m
Observation: \x1b[36;1mThe pier is 240 m long.
It has two lines.\x1b[0m
Thought:\x1b[32;1m And the weather?
Action: get_weather
Action Input: {"city": "Kell", "days": 2}\x1b[0m
Observation: rain
Thought: I now know the final answer
Final Answer: 240 m [in the rain],
and that is all.

\x1b[1m> Finished chain.\x1b[0m
"""


def test_a_langchain_transcript_becomes_a_trace(project: Project) -> None:
    project.write("run.txt", LANGCHAIN)
    done = project.run("import langchain run.txt --out in")
    assert (done.code, done.out) == (0, "in/run.trace\n")
    assert done.err == "# 1 of 1 runs have no `Question:` line: theirs has to be added\n"
    trace = Trace.load(project.folder / "in/run.trace")
    assert trace.body == (
        "Thought: I need the length of the pier.\nAction: Search[long pier]\n"
        "Observation: The pier is 240 m long.\nIt has two lines.\n"
        'Thought: And the weather?\nAction: get_weather[{"city": "Kell", "days": 2}]\nObservation: rain\n'
        "Thought: I now know the final answer\nAction: finish[240 m [in the rain],\nand that is all.]\n"
    )
    assert trace.meta["answer"] == "240 m [in the rain],\nand that is all."
    assert [step.tool for step in trace.steps] == ["Search", "get_weather", "finish"]


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Action: s\nAction Input: b ] c\nObservation: o\n", 'Action: s["b ] c"]\nObservation: o\n'),
        ("Thought: a\nAction: s\nAction Input:\nObservation: o\n", "Thought: a\nAction: s[]\nObservation: o\n"),
        ('Thought: a\nAction: s\nAction Input: "b"\nObservation: o\n', 'Thought: a\nAction: s["b"]\nObservation: o\n'),
        ("Action: s\nAction Input: b\nFinal Answer: c\n", "Action: s[b]\nAction: finish[c]\n"),
        ("Thought: I do not know.\nObservation: Invalid Format\nThought: a\nFinal Answer: c\n",
         "Thought: I do not know.\nObservation: Invalid Format\nThought: a\nAction: finish[c]\n"),
        ("Thought: a\nThought: b\nFinal Answer: c\n", "Thought: a\nThought: b\nAction: finish[c]\n"),
    ],
    ids=["a bracket in the input", "no input", "quotes", "action and answer", "no action", "two thoughts"],
)  # fmt: skip
def test_odd_langchain_turns(project: Project, text: str, turns: str) -> None:
    project.write("run.txt", f"Question: q\n{text}")
    (trace,) = langchain.read(project.folder / "run.txt").traces.values()
    assert trace.body == f"Question: q\n{turns}"


def test_each_question_of_a_langchain_transcript_is_a_trace(project: Project) -> None:
    project.write("run.txt", "Question: a\nFinal Answer: 1\n\nQuestion: b\nThought: c\nFinal Answer: 2\n")
    traces = langchain.read(project.folder / "run.txt").traces
    assert [(name, trace.task, trace.meta["answer"]) for name, trace in traces.items()] == [
        ("run_1", "Question: a\n", "1"), ("run_2", "Question: b\n", "2"),
    ]  # fmt: skip


# -- chat

CALLS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How long is the pier?"},
    {"role": "assistant", "content": "I ask twice.", "tool_calls": [
        {"id": "1", "function": {"name": "search", "arguments": '{"query": "pier"}'}},
        {"id": "2", "function": {"name": "weather", "arguments": "{}"}},
    ]},
    {"role": "tool", "tool_call_id": "2", "content": "rain"},
    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "240 m"}]},
    {"role": "assistant", "content": "It is 240 m long."},
]  # fmt: skip
SHAREGPT = [
    {"from": "human", "value": "Question: And deep?"},
    {"from": "gpt", "value": "Thought: a\nAction: s\nAction Input: b"},
    {"from": "human", "value": "Observation: c\n"},
    {"from": "gpt", "value": "Thought: I know.\nFinal Answer: 4"},
]


def test_chat_transcripts_become_traces(project: Project) -> None:
    project.write("c.jsonl", json.dumps({"messages": CALLS}) + "\n\n" + json.dumps({"conversations": SHAREGPT}) + "\n")
    done = project.run("import chat c.jsonl")
    assert (done.code, done.out) == (0, "c_1.trace\nc_2.trace\n")
    assert done.err == "# 1 system messages were left out: they belong into a prompt file\n"
    assert Trace.load(project.folder / "c_1.trace").body == (
        "Question: How long is the pier?\n"
        'Thought: I ask twice.\nAction: search[{"query": "pier"}]\nObservation: 240 m\n'
        "Action: weather[]\nObservation: rain\nAction: finish[It is 240 m long.]\n"
    )
    assert Trace.load(project.folder / "c_2.trace").body == (
        "Question: And deep?\nThought: a\nAction: s[b]\nObservation: c\n\nThought: I know.\nAction: finish[4]\n"
    )


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_trace_goes_through_chat_unchanged(project: Project, path: Path) -> None:
    done = project.run(f"export chat {path} --out c.jsonl")
    assert done.code == 0
    record = json.loads(project.read("c.jsonl"))
    assert [message["role"] for message in record["messages"][:3]] == ["system", "user", "assistant"]
    (trace,) = chat.read(project.folder / "c.jsonl").traces.values()
    own = Trace.load(path)
    assert (trace.body, trace.meta["answer"]) == (own.body, own.meta.get("answer"))


def test_numbered_traces_go_through_chat_unchanged(project: Project) -> None:
    for path in TRACES_2022:
        own = Trace.load(path)
        if own.labels.numbered and own.labels.question == "Question":
            project.write("c.jsonl", json.dumps({"messages": chat.messages_of(own)}))
            (trace,) = chat.read(project.folder / "c.jsonl").traces.values()
            assert trace.body == own.body, path


# -- what cannot be read


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("react2022 f --key b", '{"a": "Thought 1: x", "c": ""}', "f: there is no key 'b'; there are a, c"),
        ("react2022 f", '{"a": "Thought 1: x", "c": ""}', "f: which key? --key NAME; there are a, c"),
        ("react2022 f", '{"a": "hello"}', "f: a: no line of it begins like a turn"),
        ("react2022 f", '{"a": "b\\r\\nQuestion: x\\nThought: y\\n"}', "f: a: a template cannot hold the"),
        ("react2022 f", '{"a": 1}', "f: this is not a JSON object of texts"),
        ("react2022 f", '["a"]', "f: this is not a JSON object of texts"),
        ("react2022 f", '{"a":\n b}', "f:2: this is not JSON"),
        ("react2022 f", "[" * 100_000, "f: this JSON is nested too deeply"),
        ("langchain f", "hello\n", "f: no `Action:` with an `Action Input:` and no `Final Answer:`"),
        ("langchain f", "Final Answer: a\nObservation: b\nObservation: c\n", "f:3: an observation of no turn"),
        ("langchain f", 'Action: s\nAction Input: a" ] "b\n', "f:1: the input of 's' cannot stand in square brackets"),
        ("langchain f", "Action: s[a]\n", "f:1: 's[a]' is not the name of a tool, and no `Action Input:` line follows"),
        ("langchain f --key a", "", "--key belongs to react2022"),
        ("chat f", "\n", "f: it holds no conversation"),
        ("chat f", "\n{", "f:2: this line is not JSON"),
        ("chat f", "{}", "f:1: this line has no list of `messages`"),
        ("chat f", '{"messages": [{"role": "wizard", "content": ""}]}', "f:1: a message has the role 'wizard'"),
        ("chat f", '{"messages": [{"role": "user", "content": 3}]}', "f:1: a message has something other than text"),
        ("chat f", '{"messages": [{"role": "user", "content": "a"}]}', "f:1: this conversation has no message"),
        ("chat f", '[{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}]', "f:1: this conversation"),
        ("chat f", '[{"role": "assistant", "tool_calls": [{}]}]', "f:1: a call has no function with a name"),
        ("chat none", "", "none: no such file"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_an_author_error(project: Project, command: str, text: str, message: str) -> None:
    project.write("f", text)
    done = project.run(f"import {command}")
    assert (done.code, done.out, done.changed) == (2, "", {})
    assert done.err.startswith(message)


def test_import_overwrites_nothing(project: Project) -> None:
    project.write("run.txt", "Question: a\nFinal Answer: 1\nQuestion: b\nFinal Answer: 2\n")
    project.write("run_2.trace", "mine")
    done = project.run("import langchain run.txt")
    assert (done.code, done.changed) == (2, {})
    assert done.err == "run_2.trace: exists already; nothing was written (--out DIR names another folder)\n"


# -- fine-tuning


class Watching(ScriptedModel):
    """Replays turns and keeps what it is sent."""

    def __init__(self, turns: list[str]) -> None:
        super().__init__(turns)
        self.prompts: list[str] = []

    def session(self) -> Watching:
        return self

    def complete(self, prompt: str, **options: Any) -> Completion:
        self.prompts.append(prompt)
        return super().complete(prompt, **options)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_record_is_what_the_model_was_sent_and_what_it_wrote(project: Project, path: Path) -> None:
    trace = Trace.load(path)
    project.run(f"export completions {path} --out t.jsonl")
    records = json_lines(project.read("t.jsonl"))
    model = Watching(trace.completions)
    question = trace.task.removeprefix("Question: ").removesuffix("\n")
    Agent(ROOT / str(trace.meta["prompt"]), model=model, **(trace.meta.get("settings") or {})).run(question)
    assert [record["prompt"] for record in records] == model.prompts
    assert [record["completion"] for record in records] == trace.completions
    for record, following in pairwise(records):
        assert following["prompt"].startswith(record["prompt"] + record["completion"])


def test_the_exact_text_of_the_model_is_exported_and_not_what_was_kept_of_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    written = " I count.\\nAction: crates[3]\\nObservation: 12"  # as it stands in YAML
    project.write(
        "traces/a.trace",
        f'---\nprompt: prompts/depot.j2\ncompletions: {{1: "{written}"}}\n---\n'
        "Question: q\nThought: I count.\nAction: crates[3]\nObservation: 41\nThought: 41.\nAction: finish[41]\n",
    )
    first, second = json_lines(project.run("export completions traces/a.trace").out)
    assert first["completion"] == written.replace("\\n", "\n")
    assert second["prompt"] == first["prompt"] + " I count.\nAction: crates[3]\nObservation: 41\nThought:"


def test_a_prompt_can_be_put_before_traces_that_name_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("a.trace", "Question: q\nAction: crates[3]\nObservation: 1\nAction: finish[1]\n")
    refused = project.run("export completions a.trace")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("a.trace: it names no prompt to put before it")
    records = json_lines(project.run("export completions a.trace --prompt prompts/depot.j2").out)
    assert records[1]["prompt"].endswith("Question: q\nAction: crates[3]\nObservation: 1\nThought:")
    assert records[0]["prompt"].startswith("Answer the question with the help of the tools.")
    (record,) = json_lines(project.run("export chat a.trace").out)
    assert [message["role"] for message in record["messages"]] == ["user", "assistant", "user", "assistant"]


def test_export_runs_no_tool(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.edit("tools/depot.py", '    return f"{len(crate)', '    raise SystemExit\n    return f"{len(crate)')
    project.write("a.trace", "---\nprompt: prompts/depot.j2\n---\nQuestion: q\nAction: weigh[1]\n")
    assert len(list(prompts(project.folder / "a.trace"))) == 1


# -- Markdown


def test_markdown() -> None:
    trace = Trace.load(
        b"Question: Is 2 * 3 > 5?\nThought: I *work* it out.\nAction: calc[2 * 3]\nObservation: 6\n```\nx\n```\n"
        b"Thought: oops\nObservation: Error: no\nThought: 6 is more.\nAction: finish[yes]\n"
    )
    assert markdown(trace) == (
        "## Question: Is 2 \\* 3 \\> 5?\n\n"
        "### Step 1\n\nI \\*work\\* it out.\n\n```\ncalc[2 * 3]\n```\n\n"
        "Observation:\n\n````text\n6\n```\nx\n```\n````\n\n"
        "### Step 2\n\n```\nThought: oops\n```\n\nObservation:\n\n```text\nError: no\n```\n\n"
        "### Step 3\n\n6 is more.\n\n**Answer:** yes\n"
    )


def test_markdown_of_several_traces(project: Project) -> None:
    done = project.run(f"export markdown {ROOT}/traces/refund.trace {ROOT}/tests/traces_2022/game_think.trace")
    assert done.code == 0
    assert done.out.count("\n## ") == 1 and done.out.startswith("## Question: User 42 asks")
    assert "```\n> open crate 1\n```" in done.out
