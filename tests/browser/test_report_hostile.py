"""The report in a browser: names that attack are text, in the page and in its plots, and ten thousand of them fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import watched, write_report
from tests.browser.records import HOSTILE, hostile_record
from tests.browser.tab import Tab

_LARGEST = 15_000_000


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose target, processes, interfaces, events and faults attack."""
    return write_report(hostile_record(tmp_path_factory.mktemp("browser") / "hostile"))


@pytest.fixture(scope="module")
def page(browser: Browser, attacked: Path) -> Iterator[Tab]:
    """It, opened without a network, all plots drawn, everything unfolded; whatever it asks for fails the tests."""
    with watched(browser) as opens:
        tab = opens(offline=True)
        tab.open(attacked)
        tab.draw_all()
        tab.page.evaluate("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")
        yield tab


def test_names_are_text(page: Tab) -> None:
    """Each can be read as it is, but for signs that would turn the text around it."""
    words = page.page.locator("main").inner_text().replace("\u200b", "").replace("\\", "")  # labels mark their = and ,
    for name in HOSTILE[:6]:
        assert name.replace("\\", "") in words
    assert "خدمة" in words
    assert "\u202e" not in words
    assert "👩‍👩‍👧" in words
    assert HOSTILE[-1] in words


def test_names_make_no_elements(page: Tab) -> None:
    """Nothing stands in the page, nor inside of its figures, that the page itself did not put there."""
    foreign = page.page.evaluate("() => soakwatchProbe.foreign()")
    assert foreign == []
    assert page.count("head script, body script:not([type='application/json'])") <= 4
    assert "owned" not in page.page.title().replace(HOSTILE[2], "")
    assert HOSTILE[0] in page.page.title()


def test_a_tooltip_shows_a_name_as_text(page: Tab) -> None:
    """What stands beside the pointer is text too."""
    line = next(
        line_drawn
        for line_drawn in page.lines()
        if line_drawn.key[1] == "process.memory.usage" and line_drawn.key[0] == HOSTILE[1]
    )
    plot = page.page.locator(f"#{line.element}")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    tips = "() => [...document.querySelectorAll('.plot-tip:not([hidden])')].map((one) => one.textContent).join(' ')"
    seen = ""
    for step in range(1, 40):
        page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + step * 6)
        seen += str(page.page.evaluate(tips))
        if "MiB" in seen:
            break
    assert "MiB" in seen


@pytest.mark.slow
def test_the_page_keeps_its_width(page: Tab) -> None:
    """A name of 500 signs without a space does not push the page sideways, on no screen."""
    for width in (400, 1280):
        page.page.set_viewport_size({"width": width, "height": 900})
        assert page.too_wide() == []


@pytest.mark.slow
def test_axe_finds_no_barrier(page: Tab) -> None:
    """Names from outside do not break what a screen reader relies on."""
    assert page.barriers() == []


@pytest.mark.slow
@pytest.mark.parametrize("dropping", [False, True])
def test_ten_thousand_interfaces_fit(browser: Browser, tmp_path: Path, dropping: bool) -> None:
    """The page of a device with 10,000 interfaces, each of which drops in the worst case, is bounded and opens."""
    file = write_report(hostile_record(tmp_path / "wide", 10_000, 180, dropping=dropping))
    assert file.stat().st_size < _LARGEST
    with watched(browser) as opens:
        tab = opens(offline=True)
        tab.open(file)
        tab.page.locator("#verdict").wait_for()
        tab.draw_all()
        assert len(tab.figures()) < 200
        assert tab.too_wide() == []
