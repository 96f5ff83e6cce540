"""`view`: one page that holds everything, whatever bytes the runs are made of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Agent, Completion, ScriptedModel, Trace, Usage
from react_text.charts import chart
from react_text.entries import Entry, entries, read_rates
from react_text.errors import AuthorError
from react_text.pieces import Mark, cut, shown
from react_text.runs import Recorded, read_run
from react_text.sidebyside import rows
from react_text.templates import BUILT_IN
from react_text.view import Comparison, page

from .project import Project

ROOT = Path(__file__).parents[1]
SHIPPED = [*sorted((ROOT / "traces").glob("*.trace")), *sorted((ROOT / "tests" / "traces_2022").glob("*.trace"))]
CLOUD, WRONG, RECOVERY = (ROOT / "traces" / f"cloud_spend{name}.trace" for name in ("", "_wrong", "_recovery"))
TURNS = [" Hall 3.\nAction: crates[3]", " Known.\nAction: finish[41 crates]"]
VOID = {"meta", "link", "input"}


class Parsed(HTMLParser):
    """A page as a browser takes it apart. Fails for tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.append((tuple(self.open), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def all(self, tag: str, word: str = "") -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind, or of those of a class."""
        return [a for t, a in self.tags if t == tag and (not word or word in (a.get("class") or "").split())]

    def inside(self, tag: str) -> list[str]:
        """The texts of all elements of a kind."""
        found: list[str] = []
        for path, text in self.texts:
            if tag in path:
                if path[-1] == tag and not text:
                    found.append("")
                found[-1] += text
        return found


def parsed(*runs: Recorded) -> Parsed:
    return Parsed(page([Entry(run.name, run) for run in runs]))


def recorded(trace: Trace) -> Recorded:
    return Recorded("a.trace", Path("a.trace"), trace)


# -- what is on the page


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_whole_transcript_is_there_line_by_line(path: Path) -> None:
    run = read_run(str(path))
    assert "\n".join(parsed(run).inside("pre")) == run.trace.body.removesuffix("\n")


def test_the_page_is_well_formed_and_asks_for_nothing() -> None:
    html = page(entries([ROOT / "traces", ROOT / "tests" / "traces_2022"]))
    found = Parsed(html)
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    for tag, attributes in found.tags:
        assert "src" not in attributes and "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            href = attributes["href"] or ""
            assert (href == "data:," and tag == "link") or href.removeprefix("#") in ids, href
    assert not re.search(r"https?:|url\(|@import", html)
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    assert found.inside("title")[0] == "traces - react-text"


def test_only_our_style_and_script_may_run() -> None:
    html = page([])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    for tag in ("style", "script"):
        text = html.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy[1]
    assert "default-src &#39;none&#39;" in policy[1]


def test_a_page_is_the_same_every_time() -> None:
    assert page(entries([ROOT / "traces"])) == page(entries([ROOT / "traces"]))


def test_headings_and_names_lead_a_screen_reader() -> None:
    found = Parsed(page(entries([ROOT / "traces"])))
    assert [tag for tag, _ in found.tags if tag in ("h1", "h2")].count("h1") == 1
    headings = {a.get("id") for a in found.all("h2")}
    assert all(a["aria-labelledby"] in headings for a in found.all("article"))
    assert all(a.get("aria-label") for tag in ("nav", "svg", "input") for a in found.all(tag))
    for link in (a for a in found.all("a") if a.get("aria-label")):
        assert link["aria-label"].startswith("step ")  # type: ignore[union-attr]


def test_numbers_of_the_answer_lead_to_where_they_came_from() -> None:
    html = page([Entry("a", read_run(str(CLOUD)))])
    links = dict(re.findall(r'<a class="sourced" href="#(\w+)" title="[^"]*">([^<]+)</a>', html))
    targets = dict(re.findall(r'<span class="source" id="(\w+)" title="[^"]*">([^<]+)</span>', html))
    pairs = [(links[id], targets[id]) for id in links]
    assert ("54,220", "54220") in pairs and ("41,820", "41820") in pairs and ("8.44", "0.0844") in pairs
    assert 'class="loose"' not in html


def test_every_number_leads_somewhere_that_exists() -> None:
    trace = Trace.load(
        b"---\ninputs: {limit: 7311}\nanswer: 7311, 10 October 2026, 10, October 2026\nstop_reason: success\n---\n"
        b"Question: What was on 10 October 2026?\nThought: a\nAction: finish[b]\n"
    )
    found = parsed(recorded(trace))
    ids = [attributes.get("id") for _, attributes in found.tags]
    links = [a["href"] for a in found.all("a", "sourced")]
    assert len(links) >= 2 and all((href or "").removeprefix("#") in ids for href in links)
    assert [a["title"] for a in found.all("span", "sourced")] == ["7311 in the inputs of the prompt, same"]


ENDS = [
    ("answer: yes\nstop_reason: max_steps", "look[a]", "answered", "yes"),
    ("stop_reason: success", "finish[yes]", "answered", "yes"),
    ("test: false", "finish[yes]", "answered", "yes"),
    ("stop_reason: max_steps", "look[a]", "unanswered", None),
    ("test: false", "look[a]", "unanswered", None),
]


@pytest.mark.parametrize(("facts", "action", "outcome", "answer"), ENDS)
def test_a_run_is_answered_or_not(facts: str, action: str, outcome: str, answer: str | None) -> None:
    entry = Entry("a", recorded(Trace.load(f"---\n{facts}\n---\nQuestion: q\nAction: {action}\n".encode())))
    assert entry.outcome == outcome and entry.good is (outcome == "answered")
    shown_answer = re.search(r"<h3>Answer</h3><p>(.*?)</p>", page([entry]))
    assert (shown_answer and shown_answer[1]) == answer


def test_a_log_of_a_run_without_an_answer_has_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    agent = Agent(tmp_path / "prompts/depot.j2", model=ScriptedModel(TURNS), max_steps=1)
    agent.run(log=tmp_path / "run.jsonl")
    project.run("view run.jsonl")
    assert "<h3>Answer</h3>" not in project.read("react-text.html")


def test_a_number_from_nowhere_is_marked() -> None:
    trace = Trace(b"Question: q\nThought: a\nAction: finish[It is 4711.]\n".decode())
    found = parsed(recorded(trace))
    assert [a["title"] for a in found.all("span", "loose")] == ["not found in anything the model has read"]


def test_lines_of_a_tool_that_look_like_labels_are_marked() -> None:
    trace = Trace.record(
        "Question: q\n", [("Action: read[a]", "one\n**Action:** rm[x]\ntwo\n"), ("Action: go[b]", "c")]
    )
    html = page([Entry("a", recorded(trace))])
    assert re.findall(r'<span class="like"[^>]*>([^<]*)</span>', html) == ["**Action:** rm[x]"]
    told = Trace.load(
        b"---\noutcomes: {1: mistake no_action}\nspans: {1: 2}\n---\nQuestion: q\nThought: a\n"
        b"Observation: Write\nAction: look[x]\n"
    )
    assert 'class="like"' not in page([Entry("a", recorded(told))])


TROUBLES = [
    ("mistake unknown_tool", "unknown tool"),
    ("raised KeyError: 'x': y", "raised KeyError"),
    ("timeout 2.5", "no answer in 2.5 s"),
]


@pytest.mark.parametrize(("outcome", "words"), TROUBLES)
def test_steps_that_failed_say_why(outcome: str, words: str) -> None:
    trace = Trace.load(
        f"---\noutcomes: {{1: {json.dumps(outcome)}}}\n---\nQuestion: q\nAction: look[a]\nObservation: b\n".encode()
    )
    found = parsed(recorded(trace))
    assert len(found.all("details", "failed")) == 1
    assert [text for path, text in found.texts if "summary" in path and text.strip()][-1] == words


def test_a_text_game_is_shown_as_well() -> None:
    trace = Trace.load(b"---\nlabels: arrow\n---\nYou are in a room.\n> think: I go.\nOK.\n> go north\nA wall.\n")
    found = parsed(recorded(trace))
    assert "\n".join(found.inside("pre")) == trace.body.removesuffix("\n")
    assert [a["class"] for a in found.all("pre")] == ["question", "thought", "observation", "action", "observation"]


def test_long_steps_are_folded_at_first() -> None:
    trace = Trace.record("Question: q\n", [("Action: a[b]", "x" * 30_000), ("Action: a[b]", "short")])
    assert ["open" in a for a in parsed(recorded(trace)).all("details")] == [False, True]


def test_plans_are_listed_stage_by_stage_and_checked() -> None:
    folder = ROOT / "traces" / "travel"
    listed = [entry for entry in entries([folder], check=True) if ".plan:" in entry.name]
    assert {entry.outcome for entry in listed} == {"passed"}
    assert f"{folder}/japan.plan:synthesise" in {entry.name for entry in listed}


# -- costs


def test_a_log_shows_tokens_and_cache_hits(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [Completion(TURNS[0], usage=Usage(300, 12, 0)), Completion(TURNS[1], usage=Usage(400, 8, 300))]
    Agent(tmp_path / "prompts/depot.j2", model=ScriptedModel(turns)).run(log=tmp_path / "run.jsonl")
    project.run("view run.jsonl")
    html = project.read("react-text.html")
    assert 'aria-label="step 2: tokens: 300 from the cache, 100 read, 8 written"' in html
    assert "tokens per step, at most 408" in html
    assert "400 + 8 tokens, 75 % cached" in html and "720 tokens" in html
    assert len(Parsed(html).all("rect", "cached")) == 1


def test_a_trace_shows_characters() -> None:
    found = parsed(read_run(str(RECOVERY)))
    bars = [a["aria-label"] for a in found.all("a") if (a.get("aria-label") or "").startswith("step ")]
    steps = Trace.load(RECOVERY).steps
    assert bars[1] == (f"step 2: characters: {len(steps[1].text)} turn, {len(steps[1].observation or '')} observation")


def test_the_bars_of_a_chart_fill_its_height_and_no_more() -> None:
    run = read_run(str(CLOUD))
    from react_text.pieces import Sources, steps

    drawn = chart(list(steps(run.trace, Sources(), "r")), ())
    assert drawn is not None
    tops = [min(y for _, y, _ in bar.parts) for bar in drawn.bars]
    assert min(tops) == 0 and all(0 <= y <= drawn.height for y in tops)
    for bar in drawn.bars:
        y, height = bar.parts[0][1:]
        assert y + height == pytest.approx(drawn.height, abs=0.02)
    assert chart([], ()) is None


# -- bytes that are not meant for a page

NASTY = [
    "</script><script>alert(1)</script>", "</pre></details></article>", "<!-- ", "]]>", "&amp;&lt;", '"\'`=', "{{ x }}",
    "{% raw %}", "\x00\x07\x1b[31m\x7f\x9b", "\r", "a\u2028b\u0085c", "\u202eevil\u2066", "\ufffe\uffff", "\n\n", "<b",
    "x" * 5000, "\U0001f600",
]  # fmt: skip


@pytest.mark.parametrize("text", NASTY, ids=ascii)
def test_nothing_in_a_trace_becomes_markup(text: str) -> None:
    turns = [(f"Thought: {text}\nAction: look[{text}]", f"{text}\n{text}"), (f"Action: finish[{text}]", None)]
    trace = Trace.record(f"Question: {text}\n", turns, meta={"answer": text, "prompt": text, "stop_reason": text})
    run = Recorded(f"{text}.trace", Path("a"), trace, model=text, message=text)
    found = Parsed(page([Entry(run.name, run, notices=[text]), Entry(text, error=text)], title=text))
    clean = Parsed(page([Entry("a", recorded(Trace("Question: a\nAction: finish[b]\n")))]))
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in clean.tags} | {"p", "details", "h3"}
    assert len(found.all("script")) == 1
    transcript = "\n".join(found.inside("pre")[:-1])  # the last one is the entry with an error
    assert transcript == shown(trace.body.removesuffix("\n"))
    assert not {c for _, t in found.texts for c in t if (ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0}


@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), min_size=1, max_size=4), st.text(max_size=40))
def test_any_run_makes_a_page(turns: list[tuple[str, str]], answer: str) -> None:
    try:
        trace = Trace.record(
            "Question: q\n", [(f"Thought: {a}", b) for a, b in turns], meta={"answer": answer, "stop_reason": "success"}
        )
    except AuthorError:
        return
    html = page([Entry("a", recorded(trace))])
    html.encode("utf-8")
    assert "\n".join(Parsed(html).inside("pre")) == shown(trace.body.removesuffix("\n"))


def test_lone_surrogates_of_a_log_are_no_obstacle(tmp_path: Path) -> None:
    project = Project(tmp_path)
    Agent(tmp_path / "prompts/depot.j2", model=ScriptedModel(TURNS)).run(log=tmp_path / "run.jsonl")
    text = (
        project.read("run.jsonl")
        .replace("41 crates in hall 3", "41 \\udc80 in hall 3")
        .replace("41 crates]", "\\ud800]")
    )
    project.write("run.jsonl", text.replace('"answer": "41 crates"', '"answer": "\\ud800"'))
    assert project.run("view run.jsonl").code == 0
    assert "41 \ufffd in hall 3" in project.read("react-text.html")


# -- pieces


def test_marks_of_two_layers_may_overlap() -> None:
    pieces = cut("abcdef", [Mark(0, 4, "like", note="n")], [Mark(2, 6, "source", id="i")])
    assert [(p.text, p.kinds, p.id, p.note) for p in pieces] == [
        ("ab", "like", "", "n"), ("cd", "like source", "i", "n"), ("ef", "source", "", ""),
    ]  # fmt: skip
    assert [p.text for p in cut("abc")] == ["abc"] and cut("") == []


MARKS = st.lists(st.integers(0, 30), max_size=8, unique=True).map(sorted)


@given(st.text(alphabet="ab\n", min_size=30, max_size=30), MARKS, MARKS)
def test_pieces_are_the_text_again(text: str, one: list[int], other: list[int]) -> None:
    layers = [[Mark(a, b, "x", id=f"{a}") for a, b in zip(at[::2], at[1::2], strict=False)] for at in (one, other)]
    pieces = cut(text, *layers)
    assert "".join(piece.text for piece in pieces) == text
    for layer in layers:
        covered = sum(mark.end - mark.start for mark in layer)
        assert covered <= sum(len(p.text) for p in pieces if p.kinds)


# -- two runs beside each other


def sides(found: Sequence[object]) -> list[tuple[str | None, str | None]]:
    def text(cell: object) -> str | None:
        return None if cell is None else f"{cell.before}[{cell.changed}]{cell.after}"  # type: ignore[attr-defined]

    return [(text(row.left), text(row.right)) for row in found]  # type: ignore[attr-defined]


ROWS: list[tuple[str, str, list[tuple[str | None, str | None]]]] = [
    ("a\nb", "a\nb", [("a[]", "a[]"), ("b[]", "b[]")]),
    ("a\nb\nc", "a\nc", [("a[]", "a[]"), ("b[]", None), ("c[]", "c[]")]),
    ("", "x", [(None, "x[]")]),
    ("it is 41 now", "it is 42 now", [("it is 4[1] now", "it is 4[2] now")]),
    ("a b", "a  b", [("a·[]b", "a·[·]b")]),
    ("a", "a ", [("a[]", "a[·]")]),
    ("x \x1b", "x y", [("x [␛]", "x [y]")]),
    ("one\ntwo", "three", [("one[]", "three[]"), ("two[]", None)]),
]


@pytest.mark.parametrize(("left", "right", "expected"), ROWS)
def test_lines_stand_beside_each_other(left: str, right: str, expected: list[tuple[str | None, str | None]]) -> None:
    assert sides(rows(left, right)) == expected


def test_long_stretches_that_are_the_same_are_counted() -> None:
    text = "\n".join(map(str, range(100)))
    found = rows(text, f"{text}\nmore")
    assert [row.left_out for row in found if row.left_out] == [94]
    assert [row.right.before for row in found if row.right] == ["0", "1", "2", "97", "98", "99", "more"]


def test_a_comparison_is_aligned_by_step() -> None:
    compared = Comparison.of(read_run(str(CLOUD)), read_run(str(WRONG)))
    assert compared.names == ("cloud_spend.trace", "cloud_spend_wrong.trace")
    assert [(pair.title, pair.same) for pair in compared.pairs[:5]] == [
        ("question", True),
        ("step 1: query_spend[2026-07]", True),
        ("step 2: cloud_spend_wrong.trace has none here", False),
        ("step 3: cloud_spend_wrong.trace has none here", False),
        ("step 4, step 2 of cloud_spend_wrong.trace: get_budget[compute, 2026-07]", False),
    ]
    assert compared.pairs[4].changes == ["the thought differs"]
    changed = compared.pairs[5].rows[0]
    assert changed.left is not None and changed.left.changed == ", less than was spent"
    assert changed.right is not None and changed.right.changed == ""
    assert [row.same for row in compared.pairs[4].rows] == [False, True, True]


def test_the_page_of_two_files_begins_with_what_differs(tmp_path: Path) -> None:
    project = Project(tmp_path, {})
    done = project.run(f"view {CLOUD} {WRONG} -o both.html")
    assert (done.code, done.out, set(done.changed)) == (0, "both.html\n", {"both.html"})
    found = Parsed(project.read("both.html"))
    assert [a["id"] for a in found.all("article")] == ["diff", "r1", "r2"]
    assert ["open" in a for a in found.all("details", "pair")] == [False, False, *[True] * 6]
    project.run(f"view {CLOUD} {CLOUD} -o same.html")
    assert "These two runs are the same." in project.read("same.html")


# -- the command


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    for name in ("depot", "hall", "night"):
        made.record(f"traces/{name}.trace", TURNS)
    return made


def chips(project: Project, name: str = "react-text.html") -> dict[str, str]:
    """The outcome of each trace in the list of a page."""
    html = project.read(name)
    return dict(re.findall(r'class="name">([^<]+)</span><span class="more">(\w+)', html))


def test_view_shows_the_traces_of_the_project_with_what_a_test_says(project: Project) -> None:
    project.edit("traces/hall.trace", "answer: 41 crates", "answer: 42 crates")
    project.edit("traces/night.trace", "format: 1", "format: 1\ntest: false")
    project.write("traces/odd.trace", "---\nprompt: prompts/none.j2\n---\nQuestion: q\nAction: finish[a]\n")
    project.write("traces/broken.trace", "---\nfromat: 1\n---\n")
    done = project.run("view")
    assert done.code == 2 and set(done.changed) == {"react-text.html"}
    assert done.err == (
        "traces/broken.trace:2: unknown key 'fromat' (did you mean format?)\n# 5 runs, 3 failed or without an answer\n"
    )
    assert chips(project) == {
        "broken.trace": "error", "depot.trace": "passed", "hall.trace": "failed", "night.trace": "answered",
        "odd.trace": "error",
    }  # fmt: skip
    page_text = "".join(text for _, text in Parsed(project.read("react-text.html")).texts)
    assert "step 2: answers '41 crates' instead of '42 crates'" in page_text
    assert "there is no prompt prompts/none.j2" in page_text
    assert "unknown key 'fromat'" in page_text


def test_view_can_leave_the_checks_out_and_so_it_does_for_files(project: Project) -> None:
    for command in ("view --no-check", "view traces/depot.trace"):
        assert project.run(command).code == 0
        assert set(chips(project).values()) == {"answered"}


def test_a_run_without_an_answer_says_how_it_ended(project: Project) -> None:
    project.record("traces/short.trace", TURNS, max_steps=1)
    project.run("view --no-check")
    assert chips(project)["short.trace"] == "unanswered"
    assert "unanswered, max_steps, 1 step" in project.read("react-text.html")


def test_files_of_a_folder_that_are_no_logs_are_left_out(project: Project) -> None:
    project.write("traces/data.jsonl", '{"question": "q"}\n')
    assert project.run("view").code == 0
    assert len(chips(project)) == 3
    assert project.run("view traces/data.jsonl").code == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("view nothing", "nothing: no such file"),
        ("view tools", "tools: no traces, plans or logs are here"),
        ("view traces/depot.trace traces/non.trace", "traces/non.trace: no such file"),
        ("view -o setup.cfg", "setup.cfg: is not a page of react-text, and would be overwritten"),
        ("view -o traces", "traces: cannot be overwritten: Is a directory"),
        ("view -o setup.cfg/page.html", "setup.cfg/page.html: cannot be"),
        ("view --rates setup.cfg", "setup.cfg: this is not what `live --json` prints"),
    ],
)
def test_what_cannot_be_done_changes_nothing(project: Project, command: str, message: str) -> None:
    done = project.run(command)
    assert done.code == 2 and done.err.startswith(message)
    assert done.out == "" or "nothing" in command
    assert set(done.changed) <= {"react-text.html"}


def test_view_overwrites_its_own_pages_and_with_force_others(project: Project) -> None:
    assert project.run("view -o page.html").code == project.run("view -o page.html").code == 0
    assert project.run("view -o setup.cfg --force").code == 0
    assert project.read("setup.cfg").startswith("<!DOCTYPE html>")


RATES = {
    "cases": [
        {
            "case": "traces/hall.trace", "variant": "tiny", "passed": 7, "runs": 10,
            "paths": [{"path": ["crates[3]", "finish"], "runs": 10, "passed": 7}],
        }
    ]
}  # fmt: skip


def test_rates_are_shown_with_their_interval(project: Project) -> None:
    project.write("live.json", json.dumps(RATES))
    assert project.run("view --rates live.json").code == 0
    found = "".join(text for _, text in Parsed(project.read("react-text.html")).texts)
    assert found.count("7 of 10 passed, 95 % interval 40 to 89 %") == 2
    assert "10x, 7 passed: crates[3] > finish" in found


def test_rates_are_read_from_what_live_prints(project: Project) -> None:
    project.write("model.trace", project.read("traces/hall.trace"))
    done = project.run("live traces/hall.trace --model scripted:model.trace -n 2 --min 0 --json --unsafe")
    project.write("live.json", done.out)
    rates = read_rates(project.folder / "live.json")
    assert [(rate.passed, rate.runs) for found in rates.values() for rate in found] == [(2, 2)]


@pytest.mark.parametrize("text", ["[]", '{"cases": [{}]}', json.dumps(RATES).replace("7", "11"), '{"cases": 3}', "{"])
def test_rates_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "live.json").write_text(text)
    with pytest.raises(AuthorError, match="this is not what `live --json` prints"):
        read_rates(tmp_path / "live.json")


def test_five_hundred_traces_make_less_than_five_megabytes(tmp_path: Path) -> None:
    shipped = sorted((ROOT / "traces").glob("*.trace"))
    for number in range(500):
        path = shipped[number % len(shipped)]
        (tmp_path / f"{path.stem}_{number:03}.trace").write_bytes(path.read_bytes())
    html = page(entries([tmp_path]))
    assert len(Parsed(html).all("article")) == 500
    assert len(html.encode()) < 5_000_000


# -- colours

PAIRS = [
    ("text", "page"), ("text", "panel"), ("dim", "page"), ("dim", "panel"), ("link", "page"), ("link", "panel"),
    ("bad", "page"), ("bad", "panel"), ("good", "page"), ("good", "panel"), ("text", "like"), ("text", "source"),
    ("text", "old"), ("text", "new"), ("text", "oldmark"), ("text", "newmark"), ("foundtext", "found"),
    ("foundtext", "here"), ("page", "bad"),
]  # fmt: skip


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_its_ground(scheme: str) -> None:
    css = (BUILT_IN / "view" / "page.css").read_text(encoding="utf-8")
    roots = re.findall(r":root \{(.*?)\}", css, re.S)
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", roots[0]))
    if scheme == "dark":
        colours |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", roots[1]))
    for text, ground in PAIRS:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)
