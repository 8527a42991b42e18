"""What is on the first screen of a running run: verdict, progress, and the curves that matter most now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route
from tests.browser.conftest import watched
from tests.browser.going import DUT, MEMORY, Going
from tests.browser.tab import Tab

from soakwatch.judge.rates import META, LiveSnapshot, Rate, snapshot_text

_IN_SIGHT = """(selector) => [...document.querySelectorAll(selector)].map((element) => {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
})"""
_TITLES = "() => [...document.querySelectorAll('#key-plots h4')].map((title) => title.textContent)"
_FIGURES = "() => soakwatchProbe.figures()"
_TICKS = "(noon) => soakwatchPlots.figures()[0].words([noon, noon + 300000])"
_NAMES = "() => soakwatchPlots.figures()[0].names"


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Going]:
    """A run of five minutes, judged, with a process that grows."""
    with Going(tmp_path_factory.mktemp("runs") / "going", 300) as run:
        run.judge()
        limit = (4.0 * 2**30, 31 * 3600.0, 25 * 3600.0, 37 * 3600.0)
        rate = Rate(DUT, "process.memory.usage", MEMORY, "By", run.begin_ns, 112.0 * 2**20, 1e8, 1.3e8, *limit)
        run.record.set_meta(META, snapshot_text(LiveSnapshot(run.now_ns(), (rate,))))
        yield run


@pytest.fixture(scope="module")
def once(browser: Browser, going: Going) -> Iterator[Tab]:
    with watched(browser) as opens:
        tab = opens()
        tab.page.set_viewport_size({"width": 1440, "height": 900})
        tab.page.goto(going.link(), wait_until="load")
        tab.page.wait_for_function("() => document.querySelectorAll('#key-plots .uplot').length > 0")
        yield tab


def test_the_curves_that_matter_most_come_before_the_others(browser: Browser, going: Going) -> None:
    """To read all of a long run takes seconds: until then the first curves are there, of few points, above the fold."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.set_viewport_size({"width": 1440, "height": 900})
        held: list[Route] = []
        tab.page.route(re.compile(r"/plots$"), lambda route: held.append(route))  # noqa: PLW0108 - playwright marks it
        tab.page.goto(going.link(), wait_until="load")
        tab.page.locator("#key-plots [id^=first-] .uplot").first.wait_for()
        assert tab.page.evaluate(_TITLES)[0].endswith("Memory per process"), "what grows comes first"
        assert all(tab.page.evaluate(_IN_SIGHT, "#key-plots figure"))
        assert tab.page.locator("#plots .uplot").count() == 0
        assert tab.barriers() == []
        held[0].continue_()
        tab.page.locator("#key-plots [id^=panel-] .uplot").first.wait_for()
        assert tab.page.locator("#key-plots [id^=first-]").count() == 0


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1920, 1080)])
def test_the_curves_that_matter_most_are_above_the_fold(once: Tab, width: int, height: int) -> None:
    once.page.set_viewport_size({"width": width, "height": height})
    once.page.evaluate("() => scrollTo(0, 0)")
    titles = once.page.evaluate(_TITLES)
    assert titles[0].endswith("Memory per process"), "what grows comes first"
    assert any(title.endswith("CPU") for title in titles)
    assert all(once.page.evaluate(_IN_SIGHT, "#key-plots figure"))
    for what in ("#badge", "#phase", "#findings-title", "#counts"):
        assert all(once.page.evaluate(_IN_SIGHT, what)), what


def test_the_trend_and_the_age_of_the_judging_are_told(once: Tab) -> None:
    (grows,) = [figure for figure in once.page.evaluate(_FIGURES) if any("trend" in text for text in figure["legend"])]
    assert any(text.startswith("trend +112 MiB/h, 4 GiB reached in 31 h") for text in grows["legend"])
    assert " ago (" in once.page.inner_text("#counts")
    assert once.page.inner_text("#verdict").casefold().count("no failure so far") == 1


@pytest.mark.parametrize("width", [390, 1440, 1920])
def test_plots_fill_their_cards_and_have_room_for_their_times(once: Tab, width: int) -> None:
    """A time needs some 70 pixels at most; fewer times are asked for where there is less room."""
    once.page.set_viewport_size({"width": width, "height": 900})
    # What a new width brings is done a little later.
    once.page.wait_for_function(
        f"() => ({_FIGURES})().every(({{width, card, ticks}}) => width <= card && width > 0.85 * card"
        " && (ticks === 2 || ticks * 80 <= width))"
    )
    for figure in once.page.evaluate(_FIGURES):
        assert 0.85 * figure["card"] < figure["width"] <= figure["card"]
        assert figure["ticks"] == 2 or figure["ticks"] * 80 <= figure["width"]
    assert once.too_wide() == []
    assert once.barriers() == []


def test_the_readers_own_time_stands_beside_utc(browser: Browser, going: Going, once: Tab) -> None:
    """In the head and below each time of an axis; where his clock is UTC, nothing is added."""
    noon_ms = 1_795_176_000_000
    with watched(browser) as opens:
        page = opens().page
        page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
        page.goto(going.link(), wait_until="load")
        page.wait_for_function("() => document.querySelectorAll('#key-plots .uplot').length > 0")
        assert re.fullmatch(r"live, [\d:]{8} UTC \([\d:]{8} local\)", page.inner_text("#link"))
        assert page.inner_text("#plots-zone") == "Times are UTC, below them yours (UTC+5:30)."
        assert page.evaluate(_TICKS, noon_ms) == ["12:00\n17:30", "12:05\n17:35"]
    assert re.fullmatch(r"live, [\d:]{8} UTC", once.page.inner_text("#link"))
    assert once.page.inner_text("#plots-zone") == "Times are UTC."
    assert once.page.evaluate(_TICKS, noon_ms) == ["12:00", "12:05"]


def test_the_name_of_a_short_last_phase_ends_with_it(browser: Browser, tmp_path: Path) -> None:
    """It began where the phase did, and went over the figures of the load's axis."""
    with Going(tmp_path / "run", 600) as run:
        run.record.end_phase(run.now_ns())
        run.record.begin_phase("recovery", run.now_ns())
        run.go_on(20)
        run.judge()
        with watched(browser) as opens:
            page = opens().page
            page.set_viewport_size({"width": 1440, "height": 900})
            page.goto(run.link(), wait_until="load")
            page.wait_for_function("() => document.querySelectorAll('#key-plots .uplot').length > 0")
            names = page.evaluate(_NAMES)
    assert [name["align"] for name in names] == ["left", "right"]
    assert [name["x"] for name in names] == [names[0]["begin"], names[1]["end"]]
