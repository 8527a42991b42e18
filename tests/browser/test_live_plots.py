"""The live page in a browser: its plots grow with the record without a reload, and zooming shows every reading."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser
from tests.browser.conftest import ALL_DRAWN, watched
from tests.browser.going import MEMORY, Going
from tests.browser.tab import Line, Tab
from tests.commands import wait_until

from soakwatch.record import RecordView
from soakwatch.record.model import SeriesKey

BEFORE_S = 2600
"""More seconds than a line has points, so that a zoom has something to fetch."""
QUEUE = ("fw-7", "queue.depth", "queue=tx0")
LEAK = ("fw-7", "process.memory.usage", MEMORY)
_FULL = """(times) => {
  const [begin, end, name] = times;
  return soakwatchProbe.models().filter((one) => one.name === name && one.glyph === "Line").some(
    (one) => one.time.filter((at) => at >= begin && at <= end).length === Math.round((end - begin) / 1000) + 1);
}"""
_REACHES = """([last, name]) => soakwatchProbe.models().some(
  (one) => one.name === name && one.time[one.time.length - 1] >= last)"""
_BEGINS = """([first, name]) => soakwatchProbe.models().some((one) => one.name === name && one.time[0] === first)"""


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Going]:
    """A run that has gone on for three quarters of an hour."""
    with Going(tmp_path_factory.mktemp("runs") / "going", BEFORE_S) as run:
        yield run


@pytest.fixture(scope="module")
def once(browser: Browser, going: Going) -> Iterator[Tab]:
    """Its page, opened by a link that lets in."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.goto(going.link(), wait_until="load")
        tab.page.wait_for_function(ALL_DRAWN)
        tab.page.evaluate("() => { window.sameDocument = true; }")
        yield tab


@pytest.fixture
def live(once: Tab) -> Tab:
    """The same, following the run."""
    once.page.locator("[data-span='0']").click()
    return once


def name_of(key: tuple[str, str, str]) -> str:
    """As the source of a series is named in the page."""
    return "series:" + str(list(key)).replace("'", '"').replace(", ", ",")


def stored(going: Going, key: tuple[str, str, str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times (ms) and values in the record."""
    with RecordView.open(going.folder) as view:
        series = view.series(SeriesKey(*key))
        return series.time_ns / 1e6, series.value.astype(float)


def line_of(tab: Tab, key: tuple[str, str, str]) -> Line:
    """The line of a series."""
    return next(line for line in tab.lines() if line.key == key and line.glyph == "Line")


def shown(tab: Tab) -> tuple[float, float]:
    """The stretch that all plots show, ms."""
    ((start, end),) = {(figure.start, figure.end) for figure in tab.figures() if figure.axis == "time"}
    return start, end


def scroll_to(tab: Tab, key: tuple[str, str, str]) -> None:
    """Look at the plot of a series."""
    tab.page.locator(f"#{line_of(tab, key).element}").scroll_into_view_if_needed()


def agrees(line: Line, going: Going) -> None:
    """Every point is a reading of the record."""
    time_ms, value = stored(going, line.key)
    good = np.isfinite(line.value)
    index = np.searchsorted(time_ms, line.time[good])
    assert np.array_equal(time_ms[index], line.time[good])
    assert np.allclose(value[index] * line.factor, line.value[good], rtol=1e-5)


def test_the_page_shows_the_record(live: Tab, going: Going) -> None:
    """Memory, CPU, queue and load are drawn, from the first reading on, and nothing that is not in the record."""
    scroll_to(live, LEAK)
    live.page.wait_for_function(_BEGINS, arg=[going.begin_ns / 1e6, name_of(LEAK)])
    live.page.wait_for_function(_REACHES, arg=[(going.now_ns() - 60e9) / 1e6, name_of(LEAK)])
    lines = {line.key: line for line in live.lines()}
    assert {key[1] for key in lines} >= {"process.memory.usage", "system.cpu.utilization", "queue.depth"}
    for line in lines.values():
        agrees(line, going)


def test_the_load_has_an_axis_of_its_own(live: Tab) -> None:
    """46 requests/s fill their axis beside 120 MiB of memory: no other line stretches it."""
    for key in (LEAK, QUEUE):
        scroll_to(live, key)
    live.page.wait_for_function("() => soakwatchProbe.figures().some((one) => one.load > 0)")
    ends = live.page.evaluate("() => soakwatchProbe.figures().map((one) => one.load).filter((end) => !isNaN(end))")
    assert len(ends) >= 2
    assert all(46 < end < 2 * 46 for end in ends), ends


def test_lines_grow_without_a_reload(live: Tab, going: Going) -> None:
    """New readings are at the end of the lines that are seen, and the time axis goes along."""
    scroll_to(live, LEAK)
    _, before = shown(live)
    going.go_on(30)
    last_ms = (going.now_ns() - 10**9) / 1e6
    live.page.wait_for_function(_REACHES, arg=[last_ms, name_of(LEAK)])
    live.page.wait_for_function(
        "(last) => soakwatchProbe.figures().every((one) => one.axis !== 'time' || one.end >= last)", arg=last_ms
    )
    assert shown(live)[1] > before
    agrees(line_of(live, LEAK), going)
    assert live.page.evaluate("() => window.sameDocument === true")


def test_a_zoom_fetches_every_reading_and_is_kept(live: Tab, going: Going) -> None:
    """What was thinned comes in full resolution; new readings do not move the reader away from the section in view."""
    scroll_to(live, QUEUE)
    assert line_of(live, QUEUE).time.size < BEFORE_S
    begin = going.begin_ns / 1e6 + 1000e3
    with live.page.expect_response(lambda answer: answer.url.endswith("/series/data")):
        live.page.evaluate("(range) => soakwatchPlots.zoom(...range)", [begin, begin + 300e3])
    live.page.wait_for_function(_FULL, arg=[begin, begin + 300e3, name_of(QUEUE)])
    agrees(line_of(live, QUEUE), going)
    going.go_on(20)
    for _ in range(2):
        with live.page.expect_response("**/state?*"):
            pass
    assert shown(live) == (begin, begin + 300e3)
    assert "showing" in live.page.locator("#following").inner_text()
    live.page.keyboard.press("f")
    live.page.wait_for_function("() => document.getElementById('following').textContent.includes('following')")
    assert shown(live)[1] > begin + 300e3


def test_the_mouse_holds_what_it_moved_to(live: Tab) -> None:
    """Dragging a plot shows another stretch in all of them, and they stay there until the reader lets them follow."""
    scroll_to(live, QUEUE)
    box = live.page.locator(f"#{line_of(live, QUEUE).element}").bounding_box()
    assert box is not None
    start, _ = shown(live)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 3

    def is_dragged() -> bool:
        """Where the machine is slow the hand rests at first, and that is no drag: then it is done again."""
        live.page.mouse.move(x, y)
        live.page.mouse.down()
        live.page.mouse.move(x + 20, y)
        live.page.mouse.move(x + 200, y)
        live.page.mouse.up()
        return shown(live)[0] < start - 60e3

    wait_until(is_dragged, "a drag")
    assert "showing" in live.page.locator("#following").inner_text()
    live.page.locator("#follow-button").click()
    assert "following" in live.page.locator("#following").inner_text()


def test_the_last_five_minutes_follow_the_run(live: Tab, going: Going) -> None:
    """A button shows the newest stretch, which moves on with the run."""
    scroll_to(live, LEAK)
    live.page.locator("[data-span='300']").scroll_into_view_if_needed()
    live.page.locator("[data-span='300']").click()
    start, end = shown(live)
    assert end - start == pytest.approx(300e3, abs=2e3)
    going.go_on(15)
    live.page.wait_for_function(
        "(end) => soakwatchProbe.figures().every((one) => one.axis !== 'time' || one.end > end)", arg=end
    )
    later, _ = shown(live)
    assert later > start
