"""The page of all runs in a browser: finding, comparing and deleting runs, by mouse and by keyboard."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import Opens, watched
from tests.browser.going import Going
from tests.browser.records import HOSTILE
from tests.browser.tab import Tab, luminance

from soakwatch.core.labels import LABELS_KEY, labels_json
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record
from soakwatch.web.access import Token, derived, one_time_code
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_testing.records import judged_run

SECOND = 10**9
TOKEN = Token("a-token-of-a-test-0123456789")
Links = tuple[str, str]


def make_run(
    folder: Path,
    verdict: str,
    before_s: int,
    name: str = "night",
    reason: str = "",
    labels: dict[str, str] | None = None,
) -> None:
    """A run of two minutes that ended so many seconds ago, its memory a ramp where it failed."""
    begin_ns = time.time_ns() - before_s * SECOND
    with Record.create(folder) as record:
        for key, text in {
            "run": name,
            "start_ns": str(begin_ns),
            "ended_ns": str(begin_ns + 120 * SECOND),
            "verdict": verdict,
            "reason": reason or f"it is a {verdict}",
            **({} if labels is None else {LABELS_KEY: labels_json(labels)}),
        }.items():
            record.set_meta(key, text)
        record.target("fw-7", "dut")
        source = record.source("fw-7", "local", "local", SECOND, required=True).id
        record.begin_phase("soak", begin_ns)
        polls = []
        for second in range(120):
            due = begin_ns + second * SECOND
            value = 40.0 * 2**20 + (second * 2**18 if verdict == "fail" else 0)
            answer = Answer((Sample("system.memory.usage", "", value, due),), (), ())
            polls.append(Poll(source, due, due, 9, PollOutcome.OK, None, answer))
        record.put(polls)
        record.end_phase(begin_ns + 120 * SECOND)
        outcome = Outcome.FAIL if verdict == "fail" else Outcome.PASS
        window = Window(begin_ns, begin_ns + 120 * SECOND)
        finding = Finding(
            "growth", 1, outcome, "fw-7", "system.memory.usage", "", window, "as defined", reason or "so it is", 120
        )
        record.put_findings([finding], live=False, judged_ns=begin_ns + 120 * SECOND)
        record.finish()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs that ended, one with a name that attacks; all with labels. Nothing is deleted here, and none comes."""
    folder = tmp_path_factory.mktemp("pages") / "runs"
    make_run(folder / "a-pass", "pass", 4000, labels={"release": "7.2", "testbed": "rack 3"})
    make_run(folder / "b-fail", "fail", 3000, labels={"release": "7.2.1", "testbed": "rack 3"})
    make_run(
        folder / "c-pass",
        "pass",
        2000,
        labels={name: f"{name} of c" for name in ("one", "two", "three", "e", "f", "g")},
    )
    make_run(folder / "d-hostile", "fail", 1000, HOSTILE[0], HOSTILE[1], {"release": HOSTILE[1], "site": HOSTILE[7]})
    return folder


@contextmanager
def served(folder: Path) -> Iterator[Links]:
    """Links into the page of a folder: one that may act, one that may only view."""
    with serve(WebPlan(listen="127.0.0.1:0"), TOKEN, RunFolder(folder)) as server:
        yield (
            f"{server.url}/enter/{one_time_code(TOKEN, time.time() + 600)}",
            f"{server.url}/view/{derived(TOKEN, 'view')}",
        )


@pytest.fixture(scope="module")
def links(shared: Path) -> Iterator[Links]:
    """Those of the four runs."""
    with served(shared) as both:
        yield both


@pytest.fixture(scope="module")
def once(browser: Browser, links: Links) -> Iterator[Tab]:
    """A tab of someone who may act."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.goto(links[0])
        yield tab


@pytest.fixture
def page(once: Tab, links: Links) -> Iterator[Tab]:
    """The page with all runs, as it is when it is opened."""
    once.page.emulate_media(color_scheme="light")
    once.page.set_viewport_size({"width": 1280, "height": 900})
    yield opened(once, links[0].partition("/enter/")[0] + "/")
    once.check()


@pytest.fixture
def runs(shared: Path, tmp_path: Path) -> Path:
    """The same runs in a folder of the test's own, to which things may be done."""
    return shutil.copytree(shared, tmp_path / "runs")


@pytest.fixture
def own_page(tabs: Opens, runs: Path) -> Iterator[Tab]:
    """The page of these."""
    with served(runs) as both:
        yield opened(tabs(), both[0])


def opened(tab: Tab, link: str) -> Tab:
    """The page behind a link when all four runs are there."""
    tab.page.goto(link)
    tab.page.locator("#rows tr").nth(3).wait_for()
    return tab


def order(tab: Tab) -> list[str]:
    """The runs as they are listed."""
    words = tab.page.locator("#rows tr").all_inner_texts()
    return [next(name for name in ("a-pass", "b-fail", "c-pass", "d-hostile") if name in text) for text in words]


def test_runs_are_sorted_and_the_address_keeps_it(page: Tab) -> None:
    """Newest first; a heading sorts, again turns round, says so to a screen reader, and the address shares it. A failed
    run shows its worst series as a small line."""
    assert order(page) == ["d-hostile", "c-pass", "b-fail", "a-pass"]
    assert page.page.locator("#rows tr", has_text="b-fail").locator("svg path, svg polyline").count() >= 1
    head = page.page.locator("th[data-sort='run']")
    head.get_by_role("button").click()
    assert order(page) == ["a-pass", "b-fail", "c-pass", "d-hostile"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert order(page) == ["d-hostile", "c-pass", "b-fail", "a-pass"]
    head.get_by_role("button").click()
    page.page.reload()
    page.page.locator("#rows tr").nth(3).wait_for()
    assert order(page) == ["a-pass", "b-fail", "c-pass", "d-hostile"]


def test_runs_are_filtered(page: Tab) -> None:
    """By verdict and by text, with the number of hits; the address keeps it; all come back."""
    page.page.get_by_label("Verdict").first.select_option("pass")
    assert sorted(order(page)) == ["a-pass", "c-pass"]
    assert "2 of 4 runs" in page.page.locator("#count").inner_text()
    page.page.keyboard.press("Escape")
    page.page.locator("#clear").click()
    page.page.locator("h1").click()
    page.page.keyboard.press("/")
    page.page.keyboard.type("b-fa")
    assert order(page) == ["b-fail"]
    page.page.reload()
    page.page.locator("#rows tr").first.wait_for()
    assert order(page) == ["b-fail"]


def test_runs_are_filtered_by_their_labels(page: Tab) -> None:
    """Written into the search field, or by a click on one; a second click takes it away again."""
    field = page.page.locator("#q")
    for wish, found in {
        "release:7.2": ["a-pass"],
        "release=7.2*": ["b-fail", "a-pass"],
        'testbed:"RACK 3" release:7.2.1': ["b-fail"],
        "testbed:": ["d-hostile", "c-pass"],
        "release:8": [],
        "rack": ["b-fail", "a-pass"],
        "nobody:7": [],
        'f:"f of c"': ["c-pass"],
    }.items():
        field.fill(wish)
        assert order(page) == found, wish
    page.page.locator("#clear").click()
    chip = page.page.locator("#rows tr", has_text="a-pass").get_by_role("button", name="testbed rack 3")
    assert chip.get_attribute("aria-pressed") == "false"
    chip.click()
    assert (order(page), field.input_value()) == (["b-fail", "a-pass"], 'testbed:"rack 3"')
    page.page.locator("#rows tr", has_text="a-pass").get_by_role("button", name="release 7.2").click()
    assert (order(page), field.input_value()) == (["a-pass"], 'testbed:"rack 3" release:7.2')
    page.page.reload()
    page.page.locator("#rows tr").first.wait_for()
    assert order(page) == ["a-pass"]
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    assert (order(page), field.input_value()) == (["a-pass"], "release:7.2")
    page.page.locator("#clear").click()
    hostile = page.page.locator("#rows tr", has_text="d-hostile").get_by_role("button", name="release")
    assert HOSTILE[1] in hostile.inner_text()
    hostile.click()
    assert order(page) == ["d-hostile"]
    page.page.locator("#release").select_option("7.2.1")
    page.page.locator("#q").fill("")
    assert order(page) == ["b-fail"]
    page.page.locator("#clear").click()
    many = page.page.locator("#rows tr", has_text="c-pass").locator(".labels button")
    assert many.all_inner_texts() == ["one one of c", "two two of c", "three three of c", "e e of c", "+ 2"]
    page.page.get_by_role("button", name="Show 2 more labels of c-pass").press("Enter")
    assert many.all_inner_texts()[4:] == ["f f of c", "g g of c"]
    page.page.keyboard.press("Enter")
    assert (order(page), field.input_value()) == (["c-pass"], 'f:"f of c"')
    assert page.barriers() == []


def test_the_page_of_a_run_shows_its_labels(page: Tab) -> None:
    """Each leads to the runs that have it, too."""
    page.page.locator("#rows tr", has_text="a-pass").get_by_role("link").click()
    page.page.get_by_role("link", name="testbed rack 3").click()
    page.page.locator("#rows tr").first.wait_for()
    assert order(page) == ["b-fail", "a-pass"]
    page.page.locator("#rows tr", has_text="c-pass").wait_for(state="detached")


def test_two_runs_are_compared(page: Tab) -> None:
    """Selected by their boxes, shown side by side, their lines over one another. The changes are those from the
    reference that is chosen, and the address keeps it."""
    for name in ("a-pass", "b-fail"):
        page.page.locator("#rows tr", has_text=name).get_by_role("checkbox").check()
    page.page.locator("#compare").click()
    page.page.wait_for_url("**/compare?*")
    page.page.locator(".plot .uplot").first.wait_for()
    words = page.page.locator("main").inner_text()
    assert "a-pass" in words
    assert "b-fail" in words
    page.draw_all()
    sizes = page.page.evaluate("() => soakwatchProbe.overlaid()")
    assert {(round(float(values[0])), round(float(values[-1]))) for values in sizes} == {(40, 40), (40, 70)}
    assert page.barriers() == []
    page.page.get_by_label("Reference").select_option("b-fail")
    page.page.get_by_role("button", name="Compare").click()
    page.page.wait_for_url("**against=b-fail*")
    assert page.page.locator(".sides .name a, .sides a.name").all_inner_texts() == ["b-fail", "a-pass"]
    row = page.page.locator(".figures tr", has_text="memory in use, at the end")
    assert "-43 %" in row.inner_text()
    assert page.barriers() == []


def test_runs_are_grouped_with_the_course_of_a_figure(page: Tab) -> None:
    """By a label: a row above each group with its verdicts and how a figure went over its runs; folded, the address
    keeps it, and the box of a group selects its runs."""
    page.page.get_by_label("Group by").select_option("testbed")
    heads = page.page.locator("#rows tr.group")
    assert heads.count() == 2
    rack = page.page.locator("#rows tr.group", has_text="rack 3")
    rack.locator("svg").wait_for()
    assert rack.locator("circle").count() == 2
    words = rack.inner_text()
    assert "2 runs" in words
    assert "✗ fail 1" in words
    assert "✓ pass 1" in words
    assert "memory in use, slope: 0 B/h → 900 MiB/h" in words
    assert page.barriers() == []
    rack.get_by_role("checkbox").check()
    assert "2 selected" in page.page.locator("#chosen").inner_text()
    rack.get_by_role("button").click()
    assert sorted(order_of_runs(page)) == ["c-pass", "d-hostile"]
    page.page.get_by_label("Group by").select_option("plan")
    page.page.reload()
    page.page.locator("#rows tr.group").nth(1).wait_for()
    assert "night" in page.page.locator("#rows").inner_text()
    assert HOSTILE[0] in page.page.locator("#rows tr.group bdi").all_inner_texts()


def order_of_runs(tab: Tab) -> list[str]:
    """The runs as they are listed, below whatever groups."""
    return [str(box.get_attribute("data-run")) for box in tab.page.locator("#rows [data-key='box']").all()]


def test_a_run_is_deleted_by_its_name_and_many_by_their_number(own_page: Tab, runs: Path) -> None:
    """One: it tells what is lost; only the typed name deletes, and only that run. All that the filter shows: how many
    they are must be typed; the others stay."""
    page = own_page
    page.page.locator("#rows tr", has_text="b-fail").get_by_role("button").last.click()
    dialog = page.page.locator("#delete")
    assert dialog.is_visible()
    dialog.locator("#delete-lost", has_text="120").wait_for()
    do = page.page.locator("#delete-do")
    assert do.is_disabled()
    page.page.locator("#delete-name").fill("b-fai")
    assert do.is_disabled()
    page.page.keyboard.press("Enter")
    assert (runs / "b-fail").is_dir()
    assert page.barriers() == []
    page.page.locator("#delete-cancel").click()
    assert (runs / "b-fail").is_dir()
    page.page.locator("#rows tr", has_text="b-fail").get_by_role("button").last.click()
    page.page.locator("#delete-name").fill("b-fail")
    page.page.keyboard.press("Enter")
    page.page.locator("#count", has_text="b-fail was deleted").wait_for()
    assert sorted(folder.name for folder in runs.iterdir() if folder.is_dir()) == ["a-pass", "c-pass", "d-hostile"]
    assert sorted(order(page)) == ["a-pass", "c-pass", "d-hostile"]
    page.page.get_by_label("Verdict").first.select_option("pass")
    page.page.get_by_label("Select all runs that are shown").check()
    page.page.locator("#delete-many").click()
    dialog = page.page.locator("#many")
    assert dialog.locator("#many-names li").all_inner_texts() == ["a-pass, pass", "c-pass, pass"]
    do = page.page.locator("#many-do")
    page.page.locator("#many-number").fill("1")
    assert do.is_disabled()
    assert page.barriers() == []
    page.page.locator("#many-number").fill("2")
    page.page.keyboard.press("Enter")
    page.page.locator("#count", has_text="2 runs were deleted").wait_for()
    assert sorted(folder.name for folder in runs.iterdir() if folder.is_dir()) == ["d-hostile"]
    page.page.locator("#clear").click()
    assert sorted(order_of_runs(page)) == ["d-hostile"]


def test_a_running_run_is_listed_first_and_cannot_be_deleted(own_page: Tab, runs: Path) -> None:
    """It comes in without a reload, and says why it cannot be deleted."""
    page = own_page
    with Going(runs / "e-going", 30):
        page.page.evaluate("() => { document.dispatchEvent(new Event('visibilitychange')); }")  # else it asks by itself
        row = page.page.locator("#rows tr", has_text="e-going")
        row.wait_for()
        assert "e-going" in page.page.locator("#rows tr").first.inner_text()
        button = row.get_by_role("button").last
        assert button.is_disabled()
        assert "being written" in (button.get_attribute("title") or "")
        assert (runs / "e-going").is_dir()


def test_a_viewer_deletes_nothing(tabs: Opens, links: Links, shared: Path) -> None:
    """The view link shows no button, and the server refuses."""
    tab = opened(tabs(), links[1])
    assert tab.count("#delete, .danger") == 0
    tab.forgive("status of 403")
    status = tab.page.evaluate(
        "async () => (await fetch('/api/runs/a-pass?confirm=a-pass', {method: 'DELETE'})).status"
    )
    assert status == 403
    assert (shared / "a-pass").is_dir()


def test_the_page_is_for_everybody(page: Tab) -> None:
    """Light and dark without a barrier, by keyboard alone, on a telephone, and names are text."""
    assert page.barriers() == []
    assert page.tour() == []
    page.page.emulate_media(color_scheme="dark")
    assert luminance(page.style("body", "backgroundColor")) < 0.2
    assert page.barriers() == []
    page.page.set_viewport_size({"width": 400, "height": 900})
    assert page.too_wide() == []
    assert HOSTILE[1] in page.page.locator("#rows").inner_text()
    assert page.count("#rows img, #rows script") == 0


def test_the_trend_is_for_everybody(own_page: Tab, runs: Path) -> None:
    """From the list of runs; light and dark without a barrier, by keyboard alone, on a telephone, a point leads on."""
    page = own_page
    for index in range(9):
        judged_run(
            runs / f"run-{index}",
            packets_per_s=(1000.0 + index % 3) * (0.9 if index >= 5 else 1.0),
            begin_ns=time.time_ns() - (20 - index) * 86400 * SECOND,
            release="7.8" if index < 5 else "7.9",
            plan="weekly",
            labels={"note": HOSTILE[0]},
        )
    page.page.get_by_role("link", name="Trend of key figures").click()
    page.page.wait_for_url("**/trend")
    page.page.get_by_label("Plan").select_option("weekly")
    page.page.get_by_role("button", name="Show").click()
    page.page.locator("svg.trend text.turn").first.wait_for()
    page.page.locator("summary", has_text="The runs").click()
    assert page.barriers() == []
    assert page.tour() == []
    page.page.emulate_media(color_scheme="dark")
    assert page.barriers() == []
    page.page.set_viewport_size({"width": 390, "height": 900})
    assert page.too_wide() == []
    assert page.barriers() == []
    assert HOSTILE[0] in page.page.locator("main").inner_text()
    page.page.locator("svg.trend a").first.click()
    page.page.wait_for_url("**/runs/run-0/")
