"""Pages in Chromium, as a person uses them: open, fold, search, keys, differences, without script, five hundred traces.

Nothing here is simulated, so it needs the program: without it these tests are skipped, and have shown nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from react_text.entries import Entry, Verdict, entries
from react_text.runs import Recorded, read_run
from react_text.trace import Trace
from react_text.view import Comparison, page

from .chromium import PROGRAM, Chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium (apt-get install chromium)"),
]

ROOT = Path(__file__).parents[1]
NAMES = ["cloud_spend", "cloud_spend_wrong", "debug_ci", "refund", "refund_recovery", "refund_user7"]
TRACES = [ROOT / "traces" / f"{name}.trace" for name in NAMES]
CLOUD, WRONG = TRACES[:2]
CURRENT = "document.querySelector('nav [aria-current]').querySelector('.name').textContent"
VISIBLE = "[...document.querySelectorAll('article:not([hidden])')].map(a => a.id)"
LISTED = "[...document.querySelectorAll('nav li:not([hidden]) .name')].map(e => e.textContent)"
STATUS = "document.querySelector('#status').textContent"
FOCUSED = "document.activeElement.closest('details')?.id ?? document.activeElement.id"
OPEN = "[...document.querySelectorAll('article:not([hidden]) details.step')].map(d => d.open)"
FOUND = "[...(CSS.highlights.get('found') ?? [])].map(String)"
IN_SIGHT = "(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector({}).getBoundingClientRect())"

Open = Callable[[str], Chromium]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    opened = Chromium(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def show(browser: Chromium, tmp_path: Path) -> Iterator[Open]:
    """Opens a page. In the end it must have asked for nothing but itself, and have complained about nothing."""
    addresses = []

    def opened(html: str) -> Chromium:
        path = tmp_path / "page.html"
        path.write_bytes(html.encode())
        addresses.append(path.as_uri())
        browser.open(path.as_uri())
        return browser

    yield opened
    assert browser.errors == []
    assert browser.requests == addresses[-1:]


@pytest.fixture
def traces(show: Open) -> Chromium:
    """The page of six traces."""
    return show(page(entries(TRACES)))


def test_the_page_opens_with_the_first_trace(traces: Chromium) -> None:
    assert traces.run("document.title") == "traces - react-text"
    assert traces.run("document.compatMode") == "CSS1Compat"
    assert traces.run(LISTED) == [path.name for path in TRACES]
    assert traces.run(CURRENT) == "cloud_spend.trace"
    assert traces.run(VISIBLE) == ["r1"]
    assert traces.run(STATUS).startswith("6 traces")


def test_j_and_k_go_through_the_list_and_stay_in_it(traces: Chromium) -> None:
    traces.key("k")
    assert traces.run(CURRENT) == TRACES[0].name
    traces.key("j", "j")
    assert traces.run(CURRENT) == TRACES[2].name and traces.run("location.hash") == "#r3"
    traces.key("k")
    assert traces.run(VISIBLE) == ["r2"]
    traces.key(*"j" * 20)
    assert traces.run(CURRENT) == TRACES[-1].name


def test_the_list_follows(browser: Chromium, show: Open) -> None:
    show(page([entry for _ in range(20) for entry in entries(TRACES)]))
    link = "document.querySelector('nav [aria-current]').getBoundingClientRect()"
    header = "document.querySelector('nav header').getBoundingClientRect()"
    for keys in ("j" * 60, "k" * 30):
        browser.key(*keys)
        assert browser.run(f"{link}.top >= {header}.bottom && {link}.bottom <= innerHeight")


def test_a_click_in_the_list_shows_a_trace(traces: Chromium) -> None:
    traces.click("nav li:nth-child(4) a")
    assert traces.run(VISIBLE) == ["r4"]
    traces.run("history.back(), new Promise(r => setTimeout(r, 200))")
    assert traces.run(STATUS)  # the page is still there


def test_n_and_p_go_through_the_steps(traces: Chromium) -> None:
    traces.key("n")
    assert traces.run(FOCUSED) == "r1s1"
    traces.key("n", "J", "n", "n")
    assert traces.run(FOCUSED) == "r1s5" and traces.run(IN_SIGHT.format("'#r1s5 summary'"))
    traces.key("p", "K")
    assert traces.run(FOCUSED) == "r1s3"


def test_steps_fold_with_o_and_with_a_click(traces: Chromium) -> None:
    assert traces.run(OPEN) == [True] * 7
    traces.key("n", "n", "o")
    assert traces.run(OPEN) == [True, False, *[True] * 5]
    traces.key("O")
    assert traces.run(OPEN) == [False] * 7
    traces.key("O")
    assert traces.run(OPEN) == [True] * 7
    traces.click("#r1s1 summary")
    assert traces.run(OPEN) == [False, *[True] * 6]


def test_search_filters_the_list_and_marks_the_places(traces: Chromium) -> None:
    traces.key("/", *"REFUNDABLE")
    assert traces.run(LISTED) == ["refund.trace", "refund_user7.trace"]
    assert traces.run(STATUS) == "2 of 6"
    assert traces.run(CURRENT) == "refund.trace"
    found = traces.run(FOUND)
    assert found and {text.lower() for text in found} == {"refundable"}
    traces.key("Enter")
    assert traces.run("CSS.highlights.get('here').size") == 1
    traces.key(*["Enter"] * len(found))
    assert traces.run(CURRENT) == "refund_user7.trace"
    traces.key("Escape")
    assert traces.run(STATUS).startswith("6 traces") and traces.run(FOUND) == []
    assert traces.run("document.activeElement === document.body")


def test_search_unfolds_where_something_is_found_and_folds_again(traces: Chromium) -> None:
    traces.key("O", "/", *"excludes")
    assert traces.run(OPEN) == [True, *[False] * 6]
    traces.key("Escape")
    assert traces.run(OPEN) == [False] * 7


def test_search_that_finds_nothing_says_so(traces: Chromium) -> None:
    traces.key("/", *"zzz")
    assert traces.run(LISTED) == [] and traces.run(STATUS) == "0 of 6"
    traces.key("Enter", "Escape", "j")
    assert len(traces.run(LISTED)) == 6


def test_a_number_of_the_answer_leads_to_its_source(traces: Chromium) -> None:
    traces.key("O")
    link = "[...document.querySelectorAll('#r1 a.sourced')].find(a => a.textContent == '54,220')"
    traces.run(f"{link}.click(), new Promise(r => setTimeout(r, 100))")
    target = traces.run("location.hash.slice(1)")
    assert traces.run(f"document.getElementById('{target}').textContent") == "54220"
    assert traces.run(f"document.getElementById('{target}').closest('details').id") == "r1s3"
    assert traces.run(OPEN)[2] and traces.run(IN_SIGHT.format(f"'#{target}'"))


def test_a_bar_of_the_chart_leads_to_its_step(traces: Chromium) -> None:
    traces.run("document.querySelectorAll('#r1 svg a')[6].dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    traces.run("new Promise(r => setTimeout(r, 100))")
    assert traces.run(FOCUSED) == "r1s7"


def test_an_address_may_lead_into_any_trace(browser: Chromium, show: Open, tmp_path: Path) -> None:
    show(page(entries(TRACES)))
    browser.run("location.hash = 'r3s2', new Promise(r => setTimeout(r, 100))")
    assert browser.run(VISIBLE) == ["r3"] and browser.run(FOCUSED) == "r3s2"


def test_question_mark_shows_the_keys_and_no_other_key_counts_then(traces: Chromium) -> None:
    traces.key("?")
    assert traces.run("document.querySelector('#help').open")
    traces.key("j")
    assert traces.run(CURRENT) == TRACES[0].name
    traces.key("Escape")
    assert not traces.run("document.querySelector('#help').open")


def test_f_leaves_only_what_failed(show: Open) -> None:
    bad = Entry("bad.trace", read_run(str(WRONG)), verdicts=[Verdict("replay", "failed", ("why",))])
    browser = show(page([Entry("a.trace", read_run(str(CLOUD))), bad]))
    browser.key("f")
    assert browser.run(LISTED) == ["bad.trace"] and browser.run(CURRENT) == "bad.trace"
    browser.key("f")
    assert browser.run(LISTED) == ["a.trace", "bad.trace"]


def test_two_runs_stand_beside_each_other(show: Open) -> None:
    one, other = read_run(str(CLOUD)), read_run(str(WRONG))
    browser = show(page([Entry(run.name, run) for run in (one, other)], Comparison.of(one, other)))
    assert browser.run(VISIBLE) == ["diff"]
    assert browser.run(OPEN) == [False, False, *[True] * 6]
    sides = browser.run(
        "[...document.querySelectorAll('#diff details:nth-of-type(6) tbody tr:first-child td')]"
        ".map(td => (r => [r.x, r.y, r.width])(td.getBoundingClientRect()))"
    )
    (x, y, width), (own_x, own_y, own_width) = sides
    assert y == own_y and x + width == pytest.approx(own_x, abs=2) and width == pytest.approx(own_width, abs=2)
    browser.key("n", "n", "o")
    assert browser.run(OPEN)[1] is True
    browser.key("j")
    assert browser.run(VISIBLE) == ["r1"]


@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_its_window(show: Open, width: int) -> None:
    trace = Trace.record(f"Question: {'w' * 500}\n", [(f"Action: look[{'x' * 500}]", "y" * 3000)])
    one, other = read_run(str(CLOUD)), Recorded("z" * 300, Path("z"), trace)
    browser = show(page([Entry(run.name, run) for run in (one, other)], Comparison.of(one, other)))
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=1, mobile=False)
    for _ in range(3):
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.key("j")
    browser.send("Emulation.clearDeviceMetricsOverride")


def test_both_colour_schemes_are_followed(browser: Chromium, traces: Chromium) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    browser.send("Emulation.setEmulatedMedia", features=[])
    assert grounds == ["rgb(255, 255, 255)", "rgb(21, 24, 28)"]


def test_without_script_everything_is_there(browser: Chromium, show: Open) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        show(page(entries(TRACES)))
        text = browser.run("document.querySelector('main').textContent")  # what the tests themselves run is still run
        visible = browser.run("[...document.querySelectorAll('article')].filter(a => a.checkVisibility()).length")
        tools = browser.run("document.querySelector('.tools').checkVisibility()")
        browser.click("nav li:nth-child(3) a")
        browser.send("Page.captureScreenshot")  # a frame is drawn
        sight = browser.run("document.elementFromPoint(700, 60).closest('article').innerText")
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert visible == len(TRACES) and not tools
    assert sight.startswith("debug_ci.trace\n") and "node-version: 18" in sight
    for path in TRACES:
        for step in Trace.load(path).steps:
            assert step.text.split("\n")[-1] in text


HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def test_what_a_run_says_is_never_run(show: Open) -> None:
    trace = Trace.record(
        f"Question: {HOSTILE}\n",
        [(f"Thought: {HOSTILE}\nAction: look[{HOSTILE}]", f"\x1b]0;taken\x07{HOSTILE}\u202e\x00")],
        meta={"answer": HOSTILE, "stop_reason": "success", "prompt": HOSTILE},
    )
    run = Recorded(HOSTILE, Path("a"), trace, model=HOSTILE, message=HOSTILE)
    browser = show(page([Entry(HOSTILE, run, notices=[HOSTILE])], Comparison.of(run, run), "mine"))
    assert browser.run("document.title") == "mine - react-text"
    assert browser.run("document.querySelectorAll('script, img').length") == 1
    assert browser.run("document.querySelector('#r1 pre.question').textContent") == trace.task.removesuffix("\n")


def test_the_policy_of_the_page_refuses_other_scripts_and_any_address(browser: Chromium, show: Open) -> None:
    show(page([]))
    browser.run(
        "{ const s = document.createElement('script'); s.textContent = 'window.taken = 1'; document.body.append(s) }"
    )
    browser.run("{ const i = new Image(); i.src = 'https://example.invalid/x.png'; document.body.append(i) }")
    browser.run("new Promise(r => setTimeout(r, 100))")
    assert browser.run("window.taken") is None
    assert len(browser.errors) >= 2 and all("Content Security Policy" in text for text in browser.errors)
    assert browser.requests[1:] == ["https://example.invalid/x.png"]  # wished for, and refused
    browser.errors.clear()
    del browser.requests[1:]


def test_five_hundred_traces_open_within_two_seconds(browser: Chromium, show: Open, tmp_path: Path) -> None:
    for number in range(500):
        path = TRACES[number % len(TRACES)]
        (tmp_path / f"{path.stem}_{number:03}.trace").write_bytes(path.read_bytes())
    html = page(entries([tmp_path]))
    show(html)
    (tmp_path / "page.html").write_bytes(html.encode())
    seconds = min(browser.open((tmp_path / "page.html").as_uri()) for _ in range(3))
    print(f"\n{len(html.encode()) / 1e6:.2f} MB, opened in {seconds:.2f} s")
    painted = browser.run("performance.getEntriesByType('paint').at(-1).startTime")
    assert seconds < 2 and painted < 2000
    started = browser.run("performance.now()")
    browser.key("/", *"budget", "Enter", "Escape", *"jjjjj")
    assert browser.run("performance.now()") - started < 2000
    assert browser.run(VISIBLE) and browser.run("document.querySelectorAll('article').length") == 500
