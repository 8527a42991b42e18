"""The report in a browser: light and dark, on paper, on a telephone, by keyboard alone, and for a screen reader."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import Opens
from tests.browser.tab import Tab, contrast, luminance
from tests.commands import wait_until

from soakwatch.report.palette import DARK, GROUND


def becomes(tab: Tab, *, dark: bool) -> None:
    """Waits until page and every figure, down to the pixels of the first, are dark, or light."""
    # What nobody sees is painted when it comes into view.
    tab.page.locator(f"#{tab.figures()[0].element}").scroll_into_view_if_needed()
    wait_until(lambda: _darkness(tab) == {dark}, "page and figures dark" if dark else "page and figures light")


UNPAINTED = """() => [...document.querySelectorAll(".plot")].filter((one) => {
  const canvas = one.querySelector("canvas");
  if (canvas === null) return true;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size < 8;
}).map((one) => one.id)"""
"""The plots without a picture. How many pictures a PDF holds tells nothing: Chromium prints fresh ones as lines."""


def _darkness(tab: Tab) -> set[bool]:
    settled(tab.page)
    figures = tab.figures()
    grounds = [tab.style("body", "backgroundColor"), tab.colours(figures[0].element)[0]]
    grounds += [colour for figure in figures for colour in (figure.ground, figure.border)]
    return {luminance(ground) < 0.2 for ground in grounds}


def toggle(tab: Tab) -> None:
    """Press the button for light and dark."""
    tab.page.locator("#theme").click()


def settled(page: Page) -> None:
    """Wait until what was changed is painted."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_page_is_dark_where_the_reader_wishes_it(small: Tab) -> None:
    """Page and figures follow the wish of the system, both ways, and lines and labels stay readable."""
    becomes(small, dark=False)
    small.page.emulate_media(color_scheme="dark")
    becomes(small, dark=True)
    assert {figure.ground for figure in small.figures()} == {DARK[GROUND]}
    heat = {heat_map.element for heat_map in small.heat_maps()}  # its load lies on the colours, with an edge of its own
    for figure in small.figures():
        assert figure.element in heat or all(contrast(line, figure.ground) >= 3 for line in figure.lines), figure
        assert contrast(figure.labels, figure.ground) >= 4.5, figure
    small.page.emulate_media(color_scheme="light")
    becomes(small, dark=False)
    assert {figure.ground for figure in small.figures()} == {GROUND}
    assert all(contrast(line, figure.ground) >= 2 for figure in small.figures() for line in figure.lines)


@pytest.mark.slow
def test_paper_is_always_light(small: Tab) -> None:
    """Printing a dark page does not drown it in ink, and no bar covers it."""
    small.page.emulate_media(color_scheme="dark")
    becomes(small, dark=True)
    small.page.emulate_media(media="print")
    becomes(small, dark=False)
    assert contrast(small.style("main", "color"), small.style("body", "backgroundColor")) >= 7
    stuck = small.page.evaluate(
        "() => [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && e.clientHeight > 0 && "
        "['sticky', 'fixed'].includes(getComputedStyle(e).position)).length"
    )
    assert stuck == 0
    small.page.emulate_media(media="screen")
    settled(small.page)
    for event, ground in (("beforeprint", GROUND), ("afterprint", DARK[GROUND])):  # a browser tells of it in both ways
        small.page.evaluate("(name) => dispatchEvent(new Event(name))", event)
        assert {figure.ground for figure in small.figures()} == {ground}


def test_all_plots_are_on_paper(tabs: Opens, small_report: Path) -> None:
    """Before a page is printed every plot is painted, also those never scrolled to and those in what is folded."""
    tab = tabs(offline=True)
    tab.open(small_report)
    assert tab.page.evaluate(UNPAINTED) != []
    tab.page.pdf(format="A4")
    assert tab.page.evaluate(UNPAINTED) == []


def test_the_button_turns_light_to_dark_and_is_remembered(tabs: Opens, small_report: Path) -> None:
    """What the reader chose holds against the wish of the system, and for the next time."""
    tab = tabs(offline=True)
    tab.open(small_report)
    tab.unfold()
    tab.draw_all()
    toggle(tab)
    becomes(tab, dark=True)
    tab.page.reload()
    tab.unfold()
    tab.draw_all()
    becomes(tab, dark=True)
    tab.page.emulate_media(color_scheme="dark")
    toggle(tab)
    becomes(tab, dark=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(small: Tab, scheme: Literal["light", "dark"]) -> None:
    """Names, roles, contrast, order of headings: nothing serious, in light and dark."""
    small.page.emulate_media(color_scheme=scheme)
    settled(small.page)
    assert small.barriers() == []


def test_a_telephone_scrolls_in_one_direction_only(tabs: Opens, small_report: Path) -> None:
    """Nothing is wider than 400 pixels but what scrolls in its own place, and nothing is a barrier there."""
    tab = tabs(offline=True, width=400)
    tab.open(small_report)
    tab.draw_all()
    assert tab.too_wide() == []
    assert tab.barriers() == []


def test_the_first_key_offers_the_way_past_the_contents(small: Tab) -> None:
    """Tab shows a link, Enter goes to the verdict, and the next Tab is behind it."""
    press = small.page.keyboard.press
    press("Tab")
    first = small.page.locator(":focus")
    assert first.get_attribute("href") == "#verdict"
    box = first.bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["x"] >= 0
    press("Enter")
    assert small.page.url.endswith("#verdict")
    press("Tab")
    assert small.page.evaluate(
        "() => !!(document.getElementById('verdict').compareDocumentPosition(document.activeElement)"
        " & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY))"
    )


def test_every_control_is_reached_by_tab_in_order_and_seen(small: Tab) -> None:
    """Tab visits links, buttons, folds and plots from top to bottom, shows where it is, and is never caught."""
    assert small.tour() == []


def test_a_fold_opens_by_keyboard(small: Tab) -> None:
    """Enter on its summary opens what is folded away, and closes it again."""
    fold = small.page.locator("details:visible").first
    handle = fold.element_handle()
    handle.evaluate("(e) => { e.open = false; }")
    fold.locator("summary").first.focus()
    small.page.keyboard.press("Enter")
    small.page.wait_for_function("(e) => e.open", arg=handle)
    small.page.keyboard.press("Enter")
    small.page.wait_for_function("(e) => !e.open", arg=handle)
