"""What a long run still shows of an older result: all that is said about it, whatever form it has."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from react_text import Trace
from react_text.elide import elided
from react_text.lint.caveats import find_caveats
from react_text.observe import Observer
from react_text.settings import Settings
from react_text.tools import Toolbox

ROOT = Path(__file__).parents[1]
PLAIN = "The harbour ledger lists berths, tides and cargo for each quay of the port. "
PAYLOAD = PLAIN * 8
ROWS = [{"berth": f"B{n}", "ship": f"vessel number {n}", "tonnes": n * 130} for n in range(30)]


def mark(left_out: int) -> str:
    return f"[... {left_out:,} characters left out ...]"


def short(text: str) -> str:
    return elided(text, mark)


# -- the caveats that are planted: (text, what has to be left of it)

PROSE = {
    "note": "Note that July, unlike June, excludes the reserved berths, see excl. tables.",
    "warning": "We warn against comparing it with 2025.",
    "flag": "Two of the entries were flagged by the auditor.",
    "count": "In total 41,820 tonnes were moved.",
    "results": "Showing 10 of 240 entries.",
    "more": "There are 17 more rows on page 2.",
    "error": "The gauge at quay 4 failed on Monday.",
    "estimate": "The June figure is estimated (the meter was broken).",
    "missing": "August is missing.",
    "chinese": "Warning：港口关闭。",
}
FIELDS: dict[str, tuple[dict[str, object], list[str]]] = {
    "note": ({"note": "excludes reserved, see [B4]; ask Anna"}, ["excludes reserved, see [B4]; ask Anna"]),
    "long note": ({"note": PLAIN * 4 + "It is net."}, [PLAIN * 4 + "It is net."]),
    "list": ({"warnings": ["disk full, soon", "fan slow"]}, ["disk full, soon", "fan slow"]),
    "nested": ({"error": {"code": 3, "text": "no such quay"}}, ["3", "no such quay"]),
    "flag": ({"is_stale": True, "x": 1}, ["is_stale", "rue"]),
    "camel": ({"totalCount": 61}, ["totalCount", "61"]),
    "snake": ({"row_count": 62, "grand_total": 63}, ["row_count", "62", "grand_total", "63"]),
    "value": ({"entry": {"level": "warning", "text": "the sluice is open"}}, ["warning", "the sluice is open"]),
    "quotes": ({"note": "don't use the ship's \"old\" draught"}, ["don", "t use the ship", "draught"]),
    "inside a text": ({"page": f"{PAYLOAD}Caution: the ebb is early. {PAYLOAD}"}, ["Caution: the ebb is early."]),
}
LINES = {
    "log": (
        "12:01 ERROR cannot open quay.db\n    at store.c:12\n    at main.c:3\n",
        ["quay.db", "store.c:12", "main.c:3"],
    ),
    "traceback": (
        "Traceback (most recent call last):\n  File x\nValueError: bad tide\n",
        ["File x", "ValueError: bad tide"],
    ),
    "heading": ("## Notes\n\nThe ebb is early.\nThe flood is late.\n\n", ["The ebb is early.", "The flood is late."]),
    "bullets": ("Warnings:\n- disk full\n- fan slow\n\n", ["- disk full", "- fan slow"]),
    "yaml": ("note: >\n  the ebb\n  is early\nberth: 4\n", ["the ebb", "is early"]),
    "capitals": ("FATAL: the sluice is open\n", ["FATAL: the sluice is open"]),
    "count": ("35 results found\n", ["35 results found"]),
}


@pytest.mark.parametrize("name", PROSE)
def test_a_sentence_with_a_remark_stays_whole(name: str) -> None:
    text = short(f"{PAYLOAD}{PROSE[name]} {PAYLOAD}")
    assert text == f"{mark(len(PAYLOAD) - 1)} {PROSE[name]} {mark(len(PAYLOAD) - 1)} "


@pytest.mark.parametrize("form", ["repr", "json", "indented"])
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_a_remark_stays_with_its_value(name: str, form: str) -> None:
    fields, left = FIELDS[name]
    value = {"rows": ROWS, **fields, "quay": ROWS}
    text = {"repr": str(value), "json": json.dumps(value), "indented": json.dumps(value, indent=2)}[form]
    shortened = short(text)
    assert len(shortened) < len(text) / 2
    assert "vessel number" not in shortened
    for part in left:
        assert part in shortened


@pytest.mark.parametrize("name", LINES)
def test_a_line_with_a_remark_stays_with_what_belongs_to_it(name: str) -> None:
    lines, left = LINES[name]
    filler = "".join(f"12:00:{n:02} served the page of quay {n}\n" for n in range(40))
    shortened = short(filler + lines + filler)
    assert len(shortened) < len(filler)
    assert shortened.count("served the page") == 0
    for part in left:
        assert f"{part}\n" in shortened


@pytest.mark.parametrize("delimiter", [" | ", "\t", ",", ";", "   "])
def test_a_row_stays_when_its_cell_in_a_column_of_remarks_says_something(delimiter: str) -> None:
    said = {3: "by hand", 7: "yes", 9: "no", 11: "-"}
    rows = [
        ("month", "tonnes", "flag"),
        *((f"month {n}", f"{n * 130} tonnes of coal", said.get(n, "none")) for n in range(40)),
    ]
    shortened = short("\n".join(map(delimiter.join, rows)))
    kept = [number for number in range(40) if f"month {number}{delimiter}" in shortened]
    assert kept == [3, 7]
    assert shortened.startswith(delimiter.join(rows[0]))


def test_a_column_of_counts_does_not_keep_every_row() -> None:
    rows = ["berth,count", *(f"B{n},{n}" for n in range(80))]
    assert short("\n".join(rows)) == "berth,count\n" + mark(len("\n".join(rows[1:])))


def test_a_closed_list_of_counts_ends_where_it_ends() -> None:
    shortened = short(json.dumps({"total": 30, "rows": ROWS}, indent=1))
    assert '"total": 30' in shortened
    assert "vessel" not in shortened


def test_what_has_no_remark_becomes_one_mark() -> None:
    assert short(PAYLOAD) == mark(len(PAYLOAD) - 1) + " "
    assert short("") == ""
    assert short("240 m") == "240 m"


def test_the_marks_account_for_every_character() -> None:
    text = f"{PAYLOAD}\nNote: net.\n{PAYLOAD}\n\n{PAYLOAD}"
    shortened = short(text)
    left_out = [int(word.replace(",", "")) for word in shortened.replace("[...", "").split() if word[0].isdigit()]
    assert sum(left_out) + len(shortened) - sum(len(mark(number)) for number in left_out) == len(text)


def test_all_that_lint_calls_a_caveat_stays_in_the_shipped_traces() -> None:
    seen = 0
    for path in [*ROOT.glob("traces/*.trace"), *ROOT.glob("tests/tasks/*.trace"), *ROOT.glob("tests/lint/*.trace")]:
        try:
            observations = Trace.load(path).observations
        except Exception:
            continue  # some of tests/lint are broken on purpose
        for observation in filter(None, observations):
            shortened = short(observation)
            for caveat in find_caveats(observation):
                seen += 1
                assert observation[caveat.start : caveat.end].strip() in shortened, (path.name, caveat)
    assert seen > 20


WORDS = [
    "note",
    "total",
    "ERROR",
    "excludes x",
    "berth",
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ", ",
    ". ",
    ": ",
    "\n",
    "\\",
    " ",
]


@given(st.lists(st.sampled_from(WORDS), max_size=80).map("".join), st.lists(st.sampled_from(WORDS)).map("".join))
def test_any_text_is_shortened_without_loss_of_remarks(before: str, behind: str) -> None:
    planted = "\nWarning: the sluice is open.\n"
    text = f"{before}{PAYLOAD}{planted}{PAYLOAD}{behind}"
    once = short(text)
    assert once == short(text)
    assert planted.strip() in once
    assert len(once) <= len(text)


@pytest.mark.parametrize(
    "piece",
    ["note", '"', '\\"', "'a", "[", "{", "]", "note:\n", "note,flag\n", ", ", "{'note': [", ". A", "1,", "note. A "],
)
def test_hostile_observations_take_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        short(piece * (length // len(piece)))
        return time.process_time() - started

    seconds(1000)
    assert seconds(200_000) < 12 * seconds(40_000) + 0.1


def test_the_wording_of_the_mark_is_the_project_s(tmp_path: Path) -> None:
    (tmp_path / "observe.j2").write_text("{% macro elided(e) %}<{{ e.left_out }} gone>{% endmacro %}")
    assert Observer(Toolbox(), Settings(), tmp_path).elided(PAYLOAD) == f"<{len(PAYLOAD) - 1} gone> "
    own = Observer(Toolbox(), Settings()).elided(PLAIN * 30)
    assert own == f"[... {len(PLAIN) * 30 - 1:,} characters left out ...] "
