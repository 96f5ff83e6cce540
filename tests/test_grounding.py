"""Where the numbers of an answer came from: which are traced, which are told of, and what `grounding` does about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from react_text import Trace
from react_text.grounding import Source, ground

ROOT = Path(__file__).parents[1]
SHIPPED = sorted(
    path for folder in ("traces", "tests/tasks", "tests/traces_2022") for path in (ROOT / folder).rglob("*.trace")
)

# name: (what a tool returned, an answer with that number, an answer with one that has no source)
CASES = {
    "as it stands": ("{'total_usd': 41820}", "41820 USD", "41821 USD"),
    "thousands with commas": ("54220", "54,220 USD", "54,320 USD"),
    "thousands with blanks": ("54220", "54 220 USD", "54 221 USD"),
    "thousands with narrow blanks": ("54220", "54\u202f220 USD", "54\u202f221 USD"),
    "thousands with apostrophes": ("54220", "54'220 CHF", "54'221 CHF"),
    "thousands and cents": ("1234.5", "1,234.50 USD", "1,234.60 USD"),
    "millions with points": ("1234567", "1.234.567 Euro", "1.234.568 Euro"),
    "points that separate thousands only perhaps": ("1.234", "1.234 kg", "1234 kg"),
    "separators that come off": ("1,234,567 people", "1234567 people", "1234576 people"),
    "no list": ("12 of 400 and 12400", "12,400", "12,401"),
    "a list that would be a number": ("12 and 400", "12, 400", "12,400"),
    "currency sign": ("{'price': 49}", "It costs $49.", "It costs $94."),
    "currency sign behind": ("49.00 USD", "49 €", "49.90 €"),
    "currency word glued": ("{'price': 49}", "USD49", "USD59"),
    "currency of a country": ("1200.5", "US$1,200.50", "US$1,300.50"),
    "percent of a ratio": ("0.0844", "8.44 percent", "8.54 percent"),
    "percent of a ratio, rounded": ("0.0844", "8.4 %", "8.5 %"),
    "percent of a ratio, rounded to a whole": ("0.248", "25%", "24%"),
    "ratio of a percentage": ("20 %", "a share of 0.2", "a share of 0.3"),
    "rounded to a whole": ("54219.6", "54,220 USD", "54,219 USD"),
    "rounded to one place": ("3.14159", "3.1", "3.2"),
    "rounded to two places": ("2.71828", "2.72", "2.73"),
    "rounded to hundreds": ("54219.6", "about 54,200", "about 54,300"),
    "rounded to thousands": ("{'total': 54219}", "some 54,000", "some 55,000"),
    "scale in words": ("1300000", "1.3 million", "1.4 million"),
    "a scale is no number": ("1.3 million", "1300000", "1,000,000"),
    "a word behind a number": ("2026: 7 ships", "in 2026 seven ships", "in 2026 eight ships"),
    "scale as a letter": ("54000", "54k", "55k"),
    "unit glued": ("{'length_km': 5}", "5km", "6km"),
    "unit glued in the source": ("it is 240m long", "240 metres", "250 metres"),
    "currency glued behind": ("49.00 USD", "49USD", "48USD"),
    "a minus": ("-8180", "8,180 under", "8,190 under"),
    "a real minus sign": ("-12.5 degrees", "\u221212.5 degrees", "\u221212.6 degrees"),
    "ISO date as it stands": ("due 2026-07-12", "2026-07-12", "2026-07-13"),
    "ISO date in words": ("{'due': '2026-07-12'}", "on 12 July 2026", "on 12 June 2026"),
    "American date": ("{'due': '2026-07-12'}", "July 12, 2026", "July 13, 2026"),
    "ordinal in a date": ("{'due': '2026-07-12'}", "the 12th of July", "the 11th of July"),
    "month": ("{'month': '2026-07'}", "in July 2026", "in August 2026"),
    "month as a date": ("July 2026", "2026-07", "2026-08"),
    "date with slashes": ("{'due': '2026-07-12'}", "12/07/2026", "13/07/2026"),
    "date with points": ("{'due': '2026-07-12'}", "12.07.2026", "12.08.2026"),
    "year of a date": ("{'due': '2026-07-12'}", "in 2026", "in 2025"),
    "a year is not rounded": ("2026-07-12 and 2400 USD", "2,400", "2,000"),
    "other parts of other dates": ("2026-07-12 and 2025-08-14", "14 August 2025", "14 July 2026"),
    "a month is no number": ("2026-07-12 and 7 ships", "7 ships", "8 ships"),
    "month only as a date": ("2026-09", "2026-09", "9 ships"),
    "date from a month and a day": ("in July 2026, on day 12", "July 12", "July 13"),
    "day of another number": ("2026-07-12 and 21 ships", "12 July", "21 July"),
    "month in words and a year": ("{'year': 2026}, in July", "July 2026", "August 2026"),
    "date from its parts": ("{'day': 12, 'month': 7, 'year': 2026}", "2026-07-12", "2026-07-13"),
    "date behind a clock": ("2026-07-12T09:30:00", "9:30 on 12 July", "9:40 on 12 July"),
    "time": ("departs 18:05", "18:05", "18:15"),
    "time in the afternoon": ("departs 18:05", "6:05 pm", "6:15 pm"),
    "full hour": ("opens 14:00", "2 pm", "3 pm"),
    "word in the answer": ("{'in_stock': 7}", "seven buoys", "eight buoys"),
    "word in the source": ("three days", "3 days", "4 days"),
    "long words": ("2304", "two thousand three hundred and four", "two thousand three hundred and five"),
    "dozen": ("12 eggs", "a dozen eggs", "two dozen eggs"),
    "ordinal": ("{'floor': 3}", "the 3rd floor", "the 4th floor"),
    "ordinal word in the source": ("on the second floor", "floor 2", "floor 3"),
    "code": ("{'id': 'L269'}", "book L269", "book L296"),
    "code in small letters": ("{'berth': 'B1'}", "berth b1", "berth b2"),
    "part of a code": ("refund-v3: 14 days", "by refund-v3", "by refund-v4"),
    "no digits of a code": ("{'id': 'L269'}", "L269", "269 books"),
    "version": ("\"version\": \"1.4.0\"", "version 1.4.0", "version 1.4.1"),
    "version with its letter": ("actions/checkout@v4", "version 4", "version 5"),
    "address": ("192.168.0.12", "192.168.0.12", "192.168.0.13"),
    "digits of another script": ("２０２６ saw 41 ships", "41 ships", "２０２５"),
    "list of an itinerary": ("fare 850", "1. Fly for 850.\n2. Rest.\n3. Go.", "1. Fly for 850.\n2. Rest.\n7. Go."),
    "days of an itinerary": ("fare 850", "Day 1: fly for 850\nDay 2: rest", "Day 1: fly for 860\nDay 2: rest"),
    "nothing": ("no flights found", "There are 0 flights.", "There are 3 flights."),
    "among brackets": ("[100, 200]", "100 (or 200)", "100 (or 300)"),
}  # fmt: skip


def trace_of(observation: str, answer: str, question: str = "What is it?", call: str = "look[it]") -> Trace:
    return Trace.record(
        f"Question: {question}\n",
        [(f"Thought: So.\nAction: {call}", observation), (f"Thought: Yes.\nAction: finish[{answer}]", None)],
        meta={"answer": answer, "stop_reason": "success"},
    )


def without_source(*given: Any, **more: Any) -> list[str]:
    return [number.text for number in ground(trace_of(*given, **more)).ungrounded]


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize(("observation", "good", "bad"), CASES.values(), ids=CASES)
def test_a_number_that_was_seen_has_a_source(observation: str, good: str, bad: str) -> None:
    grounding = ground(trace_of(observation, good))
    assert grounding.numbers and grounding.ungrounded == ()
    for number in grounding.numbers:
        assert good[number.start : number.end] == number.text
        assert number.source and number.source.text == observation
        assert number.source.step == 1 and number.source.where == "observation"


@pytest.mark.parametrize(("observation", "good", "bad"), CASES.values(), ids=CASES)
def test_a_number_that_was_not_seen_has_none(observation: str, good: str, bad: str) -> None:
    assert len(without_source(observation, bad)) == 1


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_traces_give_no_false_alarm(path: Path) -> None:
    trace = Trace.load(path)
    known = "RT411" in trace.meta.get("lint", {}).get("ignore", ())  # its author says that a number comes from nowhere
    assert known or ground(trace).ungrounded == ()


NOT_CLAIMED = {
    "words that refer to what was named": "all three files, these two, the other four, one of them",
    "words of language": "both, once, twice, double",
    "numbering": "1. First\n2. Then\n3. Last",
    "numbering with brackets": "(1) First\n2) Then",
    "numbering in bold": "**1.** First\n**2.** Then",
    "steps": "Step 1: go\nStep 2: come",
    "two lists": "1. a\n2. b\n\n1. c\n2. d",
    "may and second": "It may take a second.",
    "a month alone": "in July",
}


@pytest.mark.parametrize("answer", NOT_CLAIMED.values(), ids=NOT_CLAIMED)
def test_what_is_no_claim(answer: str) -> None:
    assert ground(trace_of("nothing", answer)).numbers == ()


@pytest.mark.parametrize("answer", ["45. Yes", "2. Then\n3. Last", "seven buoys", "1) a\n3) b", "the 5 files"])
def test_what_only_looks_like_numbering_is_a_claim(answer: str) -> None:
    assert without_source("ships", answer)


# -- what is a source


def test_a_source_is_a_place_in_the_question_or_an_observation() -> None:
    numbers = ground(Trace.load(ROOT / "traces" / "cloud_spend.trace")).numbers
    task = "Question: Did we overspend on cloud compute in July 2026, and by how much?\n"
    assert numbers[0].source == Source("question", 0, task, 47, 56, "same")
    assert [number.source.step for number in numbers if number.source] == [0, 3, 1, 2, 4, 5, 6]
    assert numbers[-1].source == Source("observation", 6, "0.0844", 0, 6, "percent of a ratio")


HOW = {
    "same": ("54220", "54,220"),
    "rounded": ("54219.6", "54,220"),
    "percent of a ratio": ("0.0844", "8.44 %"),
    "percent of a ratio, rounded": ("0.0844", "8.4 %"),
    "ratio of a percentage": ("20 %", "0.2"),
    "put together": ("{'day': 12, 'month': 7, 'year': 2026}", "2026-07-12"),
}


@pytest.mark.parametrize(("how", "pair"), HOW.items(), ids=HOW)
def test_how_a_number_was_changed(how: str, pair: tuple[str, str]) -> None:
    (number,) = ground(trace_of(*pair)).numbers
    assert number.source and number.source.how == how


def test_the_first_place_and_the_least_change_count() -> None:
    (number,) = ground(trace_of("about 54219.6, that is 54220 or 54220", "54,220")).numbers
    assert number.source and number.source.start == 23


@pytest.mark.parametrize(
    ("outcome", "known"),
    [
        ("mistake bad_arguments", False),
        ("mistake ungrounded", False),
        ("raised ValueError: 77", False),
        ("timeout 77", False),
        ("mistake repeat", True),
        ("nothing {'max': 77}", True),
        ("", True),
    ],
)
def test_what_the_engine_says_about_a_mistake_is_no_source(outcome: str, known: bool) -> None:
    meta = {"answer": "77", "outcomes": {1: outcome}} if outcome else {"answer": "77"}
    turns = [("Action: look[it]", "Error: 77, in step 3"), ("Action: finish[77]", None)]
    grounding = ground(Trace.record("Question: x?\n", turns, meta=meta))
    assert bool(grounding.ungrounded) != known


def test_the_number_of_the_step_that_a_repeat_names_is_no_source() -> None:
    meta = {"answer": "3", "outcomes": {1: "mistake repeat"}}
    turns = [("Action: look[it]", "Error: called in step 3. Its result was: 77"), ("Action: finish[3]", None)]
    assert ground(Trace.record("Question: x?\n", turns, meta=meta)).ungrounded


ECHOES = {
    "a number in an argument": ("look[4711]", "{'id': 4711, 'hits': 'many'}", "4711", False),
    "written otherwise": ("look[4711]", "4,711 asked for", "4711", False),
    "a date": ("look[2026-07-12]", "12 July 2026: open", "2026-07-12", True),
    "a time": ("look[18:05]", "at 18:05: open", "18:05", True),
    "a code": ("look[X99]", "X99: open", "X99", True),
    "beside one that is new": ("look[4711]", "4711 has 12 hits", "12", True),
    "of the question": ("look[2026]", "2026: 12 hits", "2026", True),
    "an expression": ("calculator[3 + 4]", "3 + 4 = 7", "4", False),
    "a result": ("calculator[3 + 4]", "3 + 4 = 7", "7", True),
    "a result that was put in": ("calculator[4711]", "4711", "4711", False),
}  # fmt: skip


@pytest.mark.parametrize(("call", "observation", "answer", "known"), ECHOES.values(), ids=ECHOES)
def test_what_a_tool_repeats_from_its_arguments_is_no_source(
    call: str, observation: str, answer: str, known: bool
) -> None:
    assert bool(without_source(observation, answer, "What was it in 2026?", call)) != known


def test_inputs_of_the_prompt_are_a_source() -> None:
    meta = {"inputs": {"goal": {"budget": 3000}}, "answer": "3,000 USD"}
    (number,) = ground(Trace.record("Question: x?\n", [("Action: finish[3,000 USD]", None)], meta=meta)).numbers
    assert number.source == Source("inputs", 0, '{"goal": {"budget": 3000}}', 20, 24, "same")


def test_thoughts_and_arguments_are_no_source() -> None:
    turns = [("Thought: It is 77.\nAction: look[77]", "yes"), ("Thought: 77\nAction: finish[77]", None)]
    assert ground(Trace.record("Question: x?\n", turns)).ungrounded


@pytest.mark.parametrize(
    ("last", "answer"),
    [
        ("Action: finish[41]", "41"),
        ('Action: Finish["41"]', "41"),
        ("Action: finish[]", ""),
        ("Action: look[41]", None),
        ("Thought: 41", None),
    ],
)
def test_the_answer_of_a_trace_that_does_not_name_it(last: str, answer: str | None) -> None:
    assert ground(Trace.record("Question: x?\n", [(last, None)])).answer == answer


@pytest.mark.parametrize("stop_reason", ["max_steps", "tool_bad_args:finish"])
def test_a_run_without_an_answer_has_none(stop_reason: str) -> None:
    meta = {"answer": None, "stop_reason": stop_reason}  # as the trace of a run has it
    for run in (meta, {"stop_reason": stop_reason}):
        assert ground(Trace.record("Question: x?\n", [("Action: finish[answer]", None)], meta=run)).answer is None


@pytest.mark.parametrize(
    "piece", ["1", "1,", "1,000 ", "2026-07-", "12:05 ", "1.1.", "July ", "a1", "\n1. ", "seven ", "step 1 ", "- - "]
)
def test_a_large_trace_takes_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        text = "".join(f"{piece}{number} " for number in range(length // (len(piece) + 4)))
        trace = trace_of(text, text.replace("[", ""), call=f"look[{text}]")
        times = []
        for _ in range(2):
            started = time.process_time()
            ground(trace)
            times.append(time.process_time() - started)
        return min(times)

    seconds(1000)
    assert seconds(12_000) < 10 * seconds(3_000) + 0.1
