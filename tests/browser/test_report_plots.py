"""The report in a browser without a network: its plots hold what the record holds, and they zoom together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.browser.records import BEGIN, CORES, DROPS, DUT, GENERATOR, LENGTH, SILENT, SPIKE, SPIKING
from tests.browser.tab import Figure, Line, Tab
from tests.commands import wait_until

from soakwatch.record import RecordView
from soakwatch.record.model import SeriesKey

BEGIN_MS = BEGIN / 1e6
DROPPED = (DUT, "system.network.packet.dropped", "interface=eth0,direction=receive")


@pytest.fixture(scope="module")
def record(device_run: Path) -> Iterator[RecordView]:
    """What the plots are compared with."""
    with RecordView.open(device_run) as view:
        yield view


@pytest.fixture(scope="module")
def lines(drawn_once: Tab) -> list[Line]:
    """Every line of the page."""
    return drawn_once.lines()


def readings(record: RecordView, line: Line) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times (ms) and values as they stand in the record, counted into the line's unit; counters as rates."""
    series = record.series(SeriesKey(*line.key))
    time_ms, value = series.time_ns / 1e6, series.value.astype(float)
    if line.rate:
        time_ms, value = time_ms[1:], np.diff(value) / (np.diff(series.time_ns) * 1e-9)
    return time_ms, value * line.factor


def windows(figures: list[Figure]) -> set[tuple[float, float]]:
    """The ranges of the time axes that all plots of a run share."""
    return {(figure.start, figure.end) for figure in figures if figure.axis == "time"}


def test_every_point_of_a_line_is_a_reading(record: RecordView, lines: list[Line]) -> None:
    """Nothing is smoothed, shifted, made up or in another unit: each point is a reading at its own time."""
    assert len({line.key for line in lines}) >= CORES + 5
    for line in lines:
        time_ms, value = readings(record, line)
        good = np.isfinite(line.value)
        assert good.sum() >= min(300, time_ms.size // 2), line.key
        index = np.searchsorted(time_ms, line.time[good])
        assert np.array_equal(time_ms[index], line.time[good]), line.key
        assert np.allclose(value[index], line.value[good], rtol=1e-5, atol=1e-6), line.key


def test_no_line_loses_an_extreme(record: RecordView, lines: list[Line]) -> None:
    """However few points are drawn, the highest and the lowest reading are among them, and all are visible."""
    for line in lines:
        _, value = readings(record, line)
        assert line.visible
        assert np.nanmax(line.value) == pytest.approx(float(value.max()), rel=1e-5)
        assert np.nanmin(line.value) == pytest.approx(float(value.min()), rel=1e-5, abs=1e-6)


def test_a_spike_of_one_reading_is_drawn_at_its_second(lines: list[Line]) -> None:
    """100 % of one core for one second, in every plot that shows that core."""
    spiking = [line for line in lines if line.key[2] == SPIKING]
    assert len(spiking) >= 2  # among those that move most, and with all series
    for line in spiking:
        peak = int(np.nanargmax(line.value))
        assert (line.value[peak], line.time[peak]) == (100.0, BEGIN_MS + SPIKE * 1000)


def test_a_counter_is_shown_as_what_it_grew_by(lines: list[Line]) -> None:
    """40 packets a second were lost in one stretch of three seconds, and none in any other."""
    (line, *_) = [line for line in lines if line.key == DROPPED]
    lost = {(float(t) - BEGIN_MS) / 1000: float(v) for t, v in zip(line.time, line.value, strict=True) if v > 0}
    assert set(lost.values()) == {40.0}
    assert set(lost) <= set(map(float, DROPS))


def test_a_silence_is_a_gap_and_never_zero(lines: list[Line]) -> None:
    """No line of the device has a point in the minute without answers, none goes on across it; the load's do."""
    first, last = (BEGIN_MS + silent_s * 1000 for silent_s in (SILENT[0], SILENT[-1]))
    for line in lines:
        inside = np.isfinite(line.value[(line.time >= first) & (line.time <= last)])
        if line.key[0] == GENERATOR:
            assert inside.any(), line.key
            continue
        assert not inside.any(), line.key
        good = np.flatnonzero(np.isfinite(line.value))
        before = int(good[line.time[good] < first][-1])
        assert np.isnan(line.value[before + 1]), line.key


def test_the_load_lies_under_every_plot_of_the_device(lines: list[Line]) -> None:
    """A reader sees at each moment what was asked of the device."""
    of_device = {line.element for line in lines if line.key[0] == DUT}
    loaded = {line.element for line in lines if line.key[:2] == (GENERATOR, "load.request.rate")}
    assert len(of_device) > 5
    assert of_device <= loaded


def test_a_heat_map_shows_the_mean_of_each_stretch(record: RecordView, drawn: Tab) -> None:
    """One row a core in their natural order; each cell is the mean of its readings, none where nothing was read."""
    (heat,) = [heat_map for heat_map in drawn.heat_maps() if heat_map.target == DUT]
    assert [name.rpartition("=")[2].split()[-1] for name in heat.names] == [str(core) for core in range(CORES)]
    bins = heat.cells.shape[1]
    assert (heat.begin, heat.span) == (BEGIN_MS, LENGTH * 1000)
    for core in range(CORES):
        series = record.series(SeriesKey(DUT, "system.cpu.core.utilization", f"core={core}"))
        stretch = ((series.time_ns - BEGIN) * bins // (LENGTH * 10**9)).astype(int)
        number = np.bincount(stretch, minlength=bins)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(stretch, series.value, bins) / number
        # The unit is the heat map's own choice.
        factor = np.nanmean(heat.cells[core]) / np.nanmean(mean)
        assert factor == pytest.approx(100, rel=0.01)
        assert np.array_equal(np.isnan(heat.cells[core]), number == 0)
        assert np.allclose(heat.cells[core] / 100, mean, rtol=1e-4, equal_nan=True)


@pytest.mark.slow
def test_every_canvas_shows_something(drawn: Tab) -> None:
    """Axes, shading, antialiased lines: an empty canvas has one colour."""
    assert min(len(drawn.colours(figure.element)) for figure in drawn.figures()) > 20


def test_a_link_zooms_every_plot_to_its_window(drawn: Tab) -> None:
    """A finding's window is one click away, in all plots of the run; another click shows all of it again."""
    whole = windows(drawn.figures())
    assert whole == {(BEGIN_MS, BEGIN_MS + LENGTH * 1000)}
    links = drawn.page.locator("a[data-zoom]:visible")
    assert links.count() > 2
    asked = {str(links.nth(n).get_attribute("data-zoom")): n for n in range(links.count())}
    begin, end, link = next(
        (begin, end, link)
        for text, link in asked.items()
        for begin, end in [tuple(json.loads(f"[{text}]"))]
        if end - begin < LENGTH * 500
    )
    links.nth(link).click()
    assert windows(drawn.figures()) == {(begin, end)}
    target = str(links.nth(link).get_attribute("href"))
    assert target.startswith("#")
    assert drawn.page.locator(f"[id='{target[1:]}']").is_visible()
    drawn.page.get_by_role("button", name="Whole run").click()
    assert windows(drawn.figures()) == whole


def test_the_mouse_moves_all_plots_in_time(drawn: Tab) -> None:
    """Dragging one plot to the left shows later times in every plot of the run; the tool for zooming narrows all."""
    plot = drawn.page.locator(".plot:visible").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 100
    mouse = drawn.page.mouse

    def is_dragged() -> bool:
        """Where the machine is slow the hand rests at first, and that is no drag: then it is done again."""
        mouse.move(x, y)
        mouse.down()
        mouse.move(x - 20, y)
        mouse.move(x - 200, y)
        mouse.up()
        return min(windows(drawn.figures()))[0] > BEGIN_MS + 60_000

    wait_until(is_dragged, "a drag")
    ((start, end),) = windows(drawn.figures())
    assert end - start == pytest.approx(LENGTH * 1000)
    mouse.move(x, y)
    plot.get_by_title("zoom in", exact=False).first.click()
    ((nearer, farther),) = windows(drawn.figures())
    assert start < nearer < farther < end


def test_one_pointer_goes_through_all_plots(drawn: Tab) -> None:
    """Where the mouse stands in one plot, a line marks the same time in every other."""
    plot = drawn.page.locator(".plot:visible").first
    plot.scroll_into_view_if_needed()
    box = plot.locator(".u-over").bounding_box()
    assert box is not None
    drawn.page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 60)
    drawn.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 60)
    marked = drawn.page.evaluate(
        """() => soakwatchPlots.figures().filter((one) => one.near && one.axis.name === "time")
          .map((one) => one.u.posToVal(one.u.cursor.left, "x"))"""
    )
    assert len(marked) >= 2
    assert marked == pytest.approx([BEGIN_MS + LENGTH * 250] * len(marked), abs=LENGTH * 1000 / 300)


def test_keys_move_and_zoom_a_plot_that_has_the_focus(drawn: Tab) -> None:
    """Arrows go along the time, plus and minus zoom, 0 shows all; its label says so."""
    plot = drawn.page.locator(".plot:visible").first
    plot.focus()
    assert plot.evaluate("(plot) => document.activeElement === plot")
    assert "Arrow keys" in (plot.get_attribute("aria-label") or "")
    press = drawn.page.keyboard.press
    press("+")
    ((start, end),) = windows(drawn.figures())
    assert end - start == pytest.approx(LENGTH * 500)
    press("ArrowRight")
    ((later, _),) = windows(drawn.figures())
    assert later == pytest.approx(start + LENGTH * 100)
    press("0")
    assert windows(drawn.figures()) == {(BEGIN_MS, BEGIN_MS + LENGTH * 1000)}


def test_a_line_is_hidden_by_its_number_and_by_the_legend(drawn: Tab) -> None:
    """What hides others can be put away and comes back; the legend says which it is."""
    plot = drawn.page.locator(".plot:visible").first
    element = str(plot.get_attribute("id"))
    item = plot.locator(".plot-legend button").first

    def seen() -> bool:
        return next(line for line in drawn.lines() if line.element == element and line.key[0] == DUT).visible

    def press() -> None:
        drawn.page.keyboard.press("1")

    def click() -> None:
        item.click()

    plot.focus()
    for hide in (press, click):
        assert (seen(), item.get_attribute("aria-pressed")) == (True, "true")
        hide()
        assert (seen(), item.get_attribute("aria-pressed")) == (False, "false")
        hide()


def test_a_stretch_is_chosen_by_drawing_over_it(drawn: Tab) -> None:
    """With Shift, or by the tool: all plots show what lies below the hand."""
    plot = drawn.page.locator(".plot:visible").first
    plot.scroll_into_view_if_needed()
    box = plot.locator(".u-over").bounding_box()
    assert box is not None
    mouse, keyboard = drawn.page.mouse, drawn.page.keyboard
    for by_tool in (False, True):
        if by_tool:
            plot.hover()
            plot.get_by_title("Zoom to a stretch", exact=False).click()
        else:
            keyboard.down("Shift")
        mouse.move(box["x"] + box["width"] / 4, box["y"] + 50)
        mouse.down()
        mouse.move(box["x"] + box["width"] / 3, box["y"] + 50)
        mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
        mouse.up()
        keyboard.up("Shift")
        ((start, end),) = windows(drawn.figures())
        assert (start - BEGIN_MS, end - BEGIN_MS) == pytest.approx((LENGTH * 250, LENGTH * 500), abs=LENGTH * 10)
        drawn.page.evaluate("() => soakwatchPlots.reset()")


def test_a_plot_is_saved_as_a_picture(drawn: Tab) -> None:
    """A PNG of what is seen."""
    plot = drawn.page.locator(".plot:visible").first
    plot.hover()
    with drawn.page.expect_download() as download:
        plot.get_by_title("Save as a picture").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_zoom_holds_for_plots_that_are_drawn_later(offline: Tab, small_report: Path) -> None:
    """Who follows a link before all is drawn finds the other plots at the same time."""
    offline.page.goto(small_report.as_uri(), wait_until="domcontentloaded")
    zoomed = BEGIN_MS + 6e5, BEGIN_MS + 9e5
    drawn_before = offline.page.evaluate(
        "(zoom) => { soakwatchPlots.zoom(...zoom); return soakwatchPlots.figures().length; }", zoomed
    )
    offline.draw_all()
    assert drawn_before < len(offline.figures())
    assert windows(offline.figures()) == {zoomed}
