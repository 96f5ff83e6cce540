"""Prompt files: a front matter with closed keys, templates in a sandbox, values that are never rendered, the cue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from react_text import Agent, AuthorError, Prompt, load_tools
from react_text.prompt import OpenPrompt

from .harbour import Writer, act, finish, play

CUE = "\nThought:"


class Project:
    """A folder of prompt files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str | bytes, name: str = "p.j2") -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def open(self, text: str | bytes, question: str | None = "Q?", **variables: Any) -> OpenPrompt:
        return Prompt.load(self.write(text)).open(question, load_tools([search]), variables=variables)

    def render(self, text: str | bytes, question: str | None = "Q?", **variables: Any) -> str:
        return self.open(text, question, **variables).text("", "Thought:")

    def fails(self, text: str | bytes, question: str | None = "Q?", **variables: Any) -> str:
        """The error of an author, without the folder."""
        with pytest.raises(AuthorError) as caught:
            self.render(text, question, **variables)
        return str(caught.value).replace(str(self.folder) + "/", "")


def search(query: str) -> str:
    """Search the archive."""
    return query


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


BARE = "Question: {{ question }}\n{{ transcript }}{{ cue }}"


# -- front matter

HEADS = {
    "a misspelt key": ("question: x\nexample: y", "p.j2:3: unknown key 'example' (did you mean examples?)"),
    "an unknown key": ("zzz: y", "p.j2:2: unknown key 'zzz'"),
    "a key twice": ("question: x\ntools: y\nquestion: z", "p.j2:4: key 'question' is given twice"),
    "no mapping": ("- x", "p.j2:2: front matter must be `key: value` lines"),
    "broken YAML": ("question: x\n  y: [", "p.j2:3: front matter: "),
    "an unknown limit": ("\nlimits: {max_step: 3}", "p.j2:3: limits: unknown key 'max_step' (did you mean max_steps?)"),
    "a limit that is none": ("limits: {max_steps: many}", "p.j2:2: limits: max_steps must be a number above 0"),
    "an unknown fault": ("faults: {tool: stop}", "p.j2:2: faults: unknown fault 'tool'"),
    "a choice that is none": ("on_budget: answer", "p.j2:2: on_budget must be stop or finish, not 'answer'"),
    "a flag that is none": ("lenient: maybe", "p.j2:2: lenient must be false or true, not 'maybe'"),
    "labels that are none": ("labels: fancy", "p.j2:2: labels is plain, numbered or a mapping of words"),
    "a label that is no text": ("labels: {thought: 7}", "p.j2:2: labels: thought must be a word"),
    "a list of labels": ("labels: [Thought]", "p.j2:2: labels is plain, numbered or a mapping of words"),
    "repeats that are none": ("repeats: never", "p.j2:2: repeats must be exact, soft or off"),
    "options that are none": ("options: {max_tokens: 0}", "p.j2:2: options: max_tokens must be a whole number above 0"),
    "a mapping for a text": ("question: {a: b}", "p.j2:2: question must be a text"),
    "a mapping for a list": ("tools: {a: b}", "p.j2:2: tools must be a list of texts"),
    "an input that is set by the engine": ("inputs: {step: 1}", "p.j2:2: inputs: 'step' is set by react_text"),
    "an input with an unknown key": ("inputs: {a: {defualt: 1}}", "p.j2:2: inputs: a takes a default value"),
}


@pytest.mark.parametrize(("head", "message"), HEADS.values(), ids=HEADS)
def test_a_front_matter_that_is_wrong_names_its_line(head: str, message: str, project: Project) -> None:
    assert project.fails(f"---\n{head}\n---\n{BARE}").startswith(message)


def test_a_front_matter_without_an_end(project: Project) -> None:
    assert project.fails(f"---\nquestion: x\n{BARE}") == "p.j2:1: the front matter has no closing `---` line"


def test_a_front_matter_is_optional_and_may_be_empty(project: Project) -> None:
    for head in ("", "---\n---\n", "---\n# nothing but a remark\n---\n", "---\nquestion:\n---\n"):
        assert project.render(head + BARE) == "Question: Q?" + CUE


def test_settings_from_a_front_matter(project: Project) -> None:
    head = """\
labels: numbered
allow: [search, lookup]
limits: {max_steps: 4, max_seconds: none, max_observation: 100}
options: {temperature: 0.5, max_tokens: 99, min_p: 0.1}
prices: {prompt: 2, completion: 8.5}
faults: {tool_error: stop}
repeats: {mode: soft, round: 25}
on_budget: finish
lenient: true
observations: guarded
stop: ["\\n\\n"]
"""
    settings = Prompt.load(project.write(f"---\n{head}---\n{BARE}")).settings
    assert settings.labels.numbered
    assert settings.allow == ("search", "lookup")
    assert (settings.limits.max_steps, settings.limits.max_seconds, settings.limits.max_observation) == (4, None, 100)
    assert settings.options.as_dict() == {"max_tokens": 99, "temperature": 0.5, "min_p": 0.1}
    assert settings.prices == {"prompt": 2, "completion": 8.5}
    assert settings.faults == {"tool_error": "stop"}
    assert (settings.repeats.mode, settings.repeats.round) == ("soft", 25)
    assert (settings.on_budget, settings.lenient, settings.observations) == ("finish", True, "guarded")
    assert settings.stop == ("\n\n",)


def test_texts_stay_as_they_are_written(project: Project) -> None:
    prompt = Prompt.load(project.write(f"---\nquestion: 2026-07-01\nallow: [yes, 007]\nrepeats: off\n---\n{BARE}"))
    assert (prompt.question, prompt.settings.allow, prompt.settings.repeats.mode) == (
        "2026-07-01",
        ("yes", "007"),
        "off",
    )


def test_paths_are_relative_to_the_file(project: Project) -> None:
    (project.folder / "prompts").mkdir()
    head = "---\ntools: [../tools/a.py]\nexamples: ../traces/b.trace\ndemo: ../traces/c.trace\n---\n"
    prompt = Prompt.load(project.write(head + BARE, "prompts/p.j2"))
    assert [path.resolve() for path in (*prompt.tools, *prompt.examples, prompt.demo)] == [  # type: ignore[union-attr]
        project.folder / name for name in ("tools/a.py", "traces/b.trace", "traces/c.trace")
    ]
    assert prompt.project_path == "prompts/p.j2"


# -- variables


def test_all_undefined_variables_are_named_at_once_with_path_and_line(project: Project) -> None:
    text = "---\nquestion: x\n---\n{{ one }}\n{% if two %}x{% endif %}\n" + BARE + "{{ three.four }}"
    assert project.fails(text) == "p.j2:4: undefined variables: one (line 4), two (line 5), three (line 7)"
    assert project.fails("\n{{ one }}" + BARE) == "p.j2:2: undefined variable: one (line 2)"


def test_an_undefined_variable_of_a_parent_names_the_parent(project: Project) -> None:
    project.write("---\n# a head\n---\n{{ city }}\n" + BARE, "base.j2")
    assert project.fails("{% extends 'base.j2' %}") == "base.j2:4: undefined variable: city (line 4)"


def test_an_attribute_that_is_not_there(project: Project) -> None:
    assert project.fails("{{ question.title_ }}" + BARE).startswith("p.j2: template: ")


INPUTS = (
    "---\ninputs:\n  city: Vigo\n  days: {default: 3, help: how many}\n  team:\n---\n{{ city }} {{ days }} {{ team }}\n"
)


def test_inputs_have_defaults_and_can_be_given(project: Project) -> None:
    assert project.render(INPUTS + BARE, team="A").startswith("Vigo 3 A\n")
    assert project.render(INPUTS + BARE, team="A", city="Porto").startswith("Porto 3 A\n")
    assert project.fails(INPUTS + BARE) == "p.j2: these inputs need a value: team (-v NAME=VALUE)"


def test_variables_need_no_declaration_but_a_use(project: Project) -> None:
    assert project.render("{{ city }}\n" + BARE, city="Vigo").startswith("Vigo\n")
    message = project.fails("{{ city }}\n" + BARE, city="Vigo", cty="x")
    assert message == "p.j2: variable 'cty' is not used by this prompt (did you mean city?)"
    assert "'step' is set by react_text" in project.fails(BARE, step="3")


def test_a_question_is_needed(project: Project) -> None:
    assert project.fails(BARE, None) == "p.j2: no question was given, and the prompt has no default `question`"
    text = "---\nquestion: How deep?\n---\n" + BARE
    assert project.render(text, None) == "Question: How deep?" + CUE
    assert project.render(text, "How long?") == "Question: How long?" + CUE
    assert project.render(text, "") == "Question: " + CUE


# -- values are inserted, never rendered

RAW = "{{ 7*7 }} {% raw %} {# x #} {% include 'p.j2' %} {% endraw %} {{ question }} \\ $1 %s {0}"


def test_values_are_never_rendered(project: Project) -> None:
    example = f"Question: a\nAction: search[{RAW}]\nObservation: {RAW}\nAction: finish[b]\n"

    def look(query: str) -> str:
        return RAW

    look.__doc__ = RAW
    path = project.write("{{ extra }}\n{{ tools.describe() }}\n{% for e in examples %}{{ e }}{% endfor %}" + BARE)
    writer = Writer(act(f"look[{RAW}]"), finish())
    Agent(path, [look], writer, examples=[example]).run(RAW, variables={"extra": RAW})
    first, second = writer.prompts
    assert (
        first
        == f"{RAW}\nlook[query] - {RAW}\nfinish[answer] - give the final answer and end\n{example}Question: {RAW}{CUE}"
    )
    assert second == f"{first} Next.\nAction: look[{RAW}]\nObservation: {RAW}{CUE}"


# -- templates


def test_extends_and_blocks(project: Project) -> None:
    text = project.render(
        "---\nquestion: x\n---\n{% extends 'react.j2' %}\n"
        "{% block intro %}You work in a harbour.{% endblock %}\n"
        "{% block rules %}{{ super() }}\n- Months are written YYYY-MM.\n{% endblock %}\n"
        "{% block question %}Claim: {{ question }}{% endblock %}"
    )
    assert text.startswith("You work in a harbour.\n\nTools:\nsearch[query] - Search the archive.\nfinish[answer]")
    assert "\n- Months are written YYYY-MM.\n\n" in text
    assert "Action: finish[...], with the answer in the brackets.\n- Months" in text
    assert text.endswith("Now the question to answer:\n\nClaim: Q?" + CUE)


@pytest.mark.parametrize("block", ["intro", "tools", "rules", "examples", "question", "transcript", "cue"])
def test_every_block_can_be_overridden(block: str, project: Project) -> None:
    inside = "MARK\n{{ transcript }}" if block == "transcript" else "MARK"
    text = project.render(f"{{% extends 'react.j2' %}}{{% block {block} %}}{inside}{{% endblock %}}")
    assert text.count("MARK") == 1
    assert text.endswith(CUE)


DROPPED = {
    "a text": ("Answer in Dutch.", "p.j2:2: template: what stands outside of blocks is not shown"),
    "a value": ("\n{{ question }}", "p.j2:3: template: what stands outside of blocks is not shown"),
    "an unknown block": ("{% block ruels %}x{% endblock %}", "p.j2:2: template: block 'ruels' is in no template that"),
}


@pytest.mark.parametrize(("below", "message"), DROPPED.values(), ids=DROPPED)
def test_what_jinja_would_drop_below_extends_is_an_error(below: str, message: str, project: Project) -> None:
    assert project.fails("{% extends 'react.j2' %}\n" + below).startswith(message)


def test_what_stands_outside_of_blocks_and_is_of_use(project: Project) -> None:
    text = "{% extends 'react.j2' %}{# why #}{% set x = 'X' %}{% block own %}OWN{% endblock %}"
    assert "OWN" in project.render(text + "{% block rules %}{{ self.own() }}{% endblock %}")


def test_a_template_beside_the_prompt_is_found_first(project: Project) -> None:
    project.write("mine\n" + BARE, "react.j2")
    assert project.render("{% extends 'react.j2' %}").startswith("mine\n")
    project.write("part {{ question }}\n", "_part.j2")
    assert project.render("{% include '_part.j2' %}" + BARE).startswith("part Q?\n")


SYNTAX = {
    "an unknown tag": ("{% whatever %}", "p.j2:5: template: Encountered unknown tag 'whatever'"),
    "an open block": ("{% if x %}", "p.j2:5: template: Unexpected end of template"),
    "an unknown filter": ("{{ question | reverze }}", "p.j2:5: template: No filter named 'reverze'"),
    "an open tag": ("{{ question", "p.j2:5: template: "),
}


@pytest.mark.parametrize(("line", "message"), SYNTAX.values(), ids=SYNTAX)
def test_a_syntax_error_names_the_line_of_the_file(line: str, message: str, project: Project) -> None:
    for newline in ("\n", "\r\n"):
        text = f"---\nquestion: x\n---\nfirst\n{line}".replace("\n", newline)
        assert project.fails(text.encode()).startswith(message)


def test_a_syntax_error_of_a_parent_names_the_parent(project: Project) -> None:
    project.write("---\nquestion: x\n---\n\n{% whatever %}", "base.j2")
    assert project.fails("{% extends 'base.j2' %}").startswith("base.j2:5: template: ")


def test_a_parent_that_is_not_there(project: Project) -> None:
    message = "template 'reacts.j2' is not found (did you mean react.j2?)"
    assert project.fails("{% extends 'reacts.j2' %}") == f"p.j2: {message}"


ESCAPES = [
    "{{ question.__class__.__mro__ }}",
    "{{ tools.describe.__func__.__globals__ }}",
    "{{ ''.__class__.__base__.__subclasses__() }}",
    "{{ '{0.__class__.__mro__}'.format(question) }}",
    "{{ examples.append('x') }}",
    "{{ label.__globals__ }}",
]


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_way_out_of_the_sandbox(escape: str, project: Project) -> None:
    assert project.fails(escape + BARE).startswith("p.j2: template: ")


RUNTIME = ["{{ 1 / 0 }}", "{{ question + 1 }}", "{{ question | int | batch }}", "{{ [1, 2] | sum(attribute='x') }}"]


@pytest.mark.parametrize("expression", RUNTIME)
def test_an_expression_that_fails_is_an_error_of_the_author(expression: str, project: Project) -> None:
    assert project.fails(expression + BARE).startswith("p.j2: template: ")


def test_a_file_that_includes_itself_ends(project: Project) -> None:
    assert project.fails("{% include 'p.j2' %}" + BARE).startswith("p.j2: template: ")


# -- bytes

LF = "---\nquestion: x\n---\n{{ question }}\n\n{{ transcript }}{{ cue }}\n"


@pytest.mark.parametrize("data", [LF, LF.replace("\n", "\r\n"), LF.replace("\n", "\r"), "\ufeff" + LF])
def test_line_ends_and_byte_order_marks_are_gone(data: str, project: Project) -> None:
    assert project.render(data.encode()) == "Q?\n" + CUE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\nb\xe9\n", "p.j2:2: this file is not UTF-8 (byte 0xe9)"),
        (BARE.encode("utf-16"), "p.j2:1: this file is UTF-16; save it as UTF-8"),
        (BARE.encode("utf-16-be").join([b"\xfe\xff", b""]), "p.j2:1: this file is UTF-16; save it as UTF-8"),
    ],
)
def test_other_encodings_are_named(data: bytes, message: str, project: Project) -> None:
    assert project.fails(data) == message


def test_files_that_cannot_be_read(project: Project) -> None:
    project.write(BARE)
    with pytest.raises(AuthorError, match=r"q\.j2: no such file \(did you mean p\.j2\?\)"):
        Prompt.load(project.folder / "q.j2")
    with pytest.raises(AuthorError, match="this is a folder"):
        Prompt.load(project.folder)
    with pytest.raises(AuthorError, match=r"none\.trace: no such file"):
        project.render("---\nexamples: none.trace\n---\n" + BARE)


# -- the cue and the transcript

ENDINGS = ["{{ cue }}", "{{ cue }}\n", "{{ cue }} \n\n", "", "{{ cue }}{# the end #}"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_cue_is_always_at_the_end(ending: str, project: Project) -> None:
    opened = project.open("Question: {{ question }}\n{{ transcript }}" + ending)
    assert opened.text("", "Thought:") == "Question: Q?" + CUE
    grown = "Thought: a\nAction: b[c]\nObservation: d \n"
    assert opened.text(grown, "Action:") == f"Question: Q?\n{grown}Action:"


def test_what_changes_with_the_step_comes_after_the_transcript(project: Project) -> None:
    text = "{{ question }}\n{{ transcript }}Step {{ step }}, {{ remaining.steps }} left.\n{{ cue }}"
    played = play(act("search[a]"), finish(), prompt=project.write(text), max_steps=8)
    head = "How long is the pier?\n"
    assert played.prompts[0] == f"{head}Step 1, 8 left.{CUE}"
    grown = "Thought: Next.\nAction: search[a]\nObservation: The pier is 240 m long.\n"
    assert played.prompts[1] == f"{head}{grown}Step 2, 7 left.{CUE}"


def test_a_transcript_that_the_template_works_on(project: Project) -> None:
    text = "Q\n{% if transcript %}{{ transcript }}{% endif %}{{ cue }}"
    played = play(act("search[a]"), finish(), prompt=project.write(text))
    assert played.prompts[0] == "Q" + CUE
    assert played.prompts[1] == f"Q{CUE} Next.\nAction: search[a]\nObservation: The pier is 240 m long.{CUE}"


@pytest.mark.parametrize(("text", "times"), [("{{ question }}\n{{ cue }}", 0), (BARE + BARE, 2)])
def test_the_transcript_is_inserted_once(text: str, times: int, project: Project) -> None:
    assert project.fails(text) == f"p.j2: the prompt must insert the transcript once, not {times} times"


def test_the_task_is_what_a_trace_begins_with(project: Project) -> None:
    opened = project.open("Rules.\n{{ trace_begins }}Claim: {{ question }}\n{{ transcript }}{{ cue }}")
    assert (opened.head, opened.task) == ("Rules.\n", "Claim: Q?\n")
    assert opened.text("", "Thought:") == "Rules.\nClaim: Q?" + CUE


def test_the_hash_is_that_of_the_head(project: Project) -> None:
    text = "{{ city }}\n{{ trace_begins }}{{ question }}\n{{ transcript }}{{ cue }}"
    first = project.open(text, "A?", city="Vigo")
    assert first.hash == project.open(text, "B?", city="Vigo").hash
    assert first.hash != project.open(text, "A?", city="Porto").hash


def test_numbered_labels_in_the_base_prompt() -> None:
    prompt = play(finish(), labels="numbered").prompts[0]
    assert "\nThought 2: lantern has 7 letters." in prompt
    assert "\nAction 3: finish[breakwater" in prompt
    assert prompt.endswith("\nThought 1:")
