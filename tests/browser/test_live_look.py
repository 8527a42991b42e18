"""The live page in a browser: light and dark, on a telephone, by keyboard alone, and for a screen reader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import ALL_DRAWN, FROM_THE_TOP, watched
from tests.browser.going import Going
from tests.browser.tab import Tab, luminance

from soakwatch_model.finding import Finding, Outcome


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Going]:
    """A run of five minutes with a warning and a failure."""
    with Going(tmp_path_factory.mktemp("runs") / "going", 300) as run:
        run.judge(run.leak(), lost(run))
        yield run


def lost(going: Going) -> Finding:
    """The failure."""
    return going.leak(Outcome.FAIL, rule="drops", object="queue=tx0", forecast=None, reason="12 packets were lost")


@pytest.fixture(scope="module")
def once(browser: Browser, going: Going) -> Iterator[Tab]:
    """Its page with all plots."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.goto(going.link(), wait_until="load")
        tab.page.wait_for_function(ALL_DRAWN)
        yield tab


@pytest.fixture
def live(once: Tab) -> Tab:
    """The same for one test, light and wide."""
    once.page.emulate_media(color_scheme="light")
    once.page.set_viewport_size({"width": 1280, "height": 900})
    once.page.evaluate("() => scrollTo(0, 0)")
    once.page.evaluate(FROM_THE_TOP)
    return once


def is_dark(tab: Tab) -> bool:
    """Whether page and figures are dark, which must agree; waits for what was changed to be painted."""
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    darkness = {luminance(figure.ground) < 0.2 for figure in tab.figures()} | {
        luminance(tab.style("body", "backgroundColor")) < 0.2
    }
    assert len(darkness) == 1
    return darkness.pop()


def test_the_page_follows_the_wish_and_the_key(live: Tab) -> None:
    """Dark where the reader's system is dark; t turns it round, and again."""
    assert not is_dark(live)
    live.page.emulate_media(color_scheme="dark")
    assert is_dark(live)
    live.page.keyboard.press("t")
    assert not is_dark(live)
    live.page.keyboard.press("t")
    assert is_dark(live)
    live.page.evaluate("() => { localStorage.clear(); delete document.documentElement.dataset.theme; }")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(live: Tab, scheme: str) -> None:
    """Nothing serious, with findings, plots and dialogs."""
    live.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    assert live.barriers() == []
    live.page.locator("#mark-button").wait_for()  # the state of the run has come
    opened = live.page.locator("dialog[open]")
    for key in ("m", "?"):
        live.page.keyboard.press(key)
        opened.wait_for()
        assert live.barriers() == []
        live.page.keyboard.press("Escape")
        opened.wait_for(state="detached")


def test_a_key_counts_where_a_closed_dialog_still_has_the_focus(live: Tab) -> None:
    """A browser moves the focus out of a closed dialog with its next frame: a key before that is no typing."""
    live.page.locator("#mark-button").wait_for()
    live.page.evaluate(
        "() => document.getElementById('mark-kind')"
        ".dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))"
    )
    live.page.locator("#keys-dialog[open]").wait_for()
    live.page.keyboard.press("Escape")
    live.page.locator("dialog[open]").wait_for(state="detached")


def test_a_telephone_scrolls_in_one_direction_only(live: Tab) -> None:
    """Nothing is wider than 400 pixels but what scrolls in its own place."""
    live.page.set_viewport_size({"width": 400, "height": 900})
    assert live.too_wide() == []
    assert live.barriers() == []


def test_every_control_is_reached_by_tab_in_order_and_seen(live: Tab) -> None:
    """Tab visits links, buttons, findings' folds and plots from top to bottom, and shows where it is."""
    assert live.tour() == []


def test_keys_move_among_the_findings(live: Tab, going: Going) -> None:
    """j and k go from the worst on, and stop at either end; failures stand before the warning."""
    going.judge(going.leak(), lost(going))
    shown = live.page.locator("#findings .finding:visible")
    live.page.wait_for_function("() => document.querySelectorAll('#findings .finding').length >= 2")
    last = shown.count() - 1
    assert [shown.nth(n).get_attribute("aria-label").partition(":")[0] for n in (0, last)] == ["fail", "warn"]  # type: ignore[union-attr]
    for key, place in [("j", 0), *(("j", n) for n in range(1, last + 1)), ("j", last), ("k", last - 1)]:
        live.page.keyboard.press(key)
        live.page.wait_for_function(
            "(place) => document.activeElement === [...document.querySelectorAll('#findings .finding')]"
            ".filter((one) => one.offsetParent !== null)[place]",
            arg=place,
        )


def test_what_has_the_focus_keeps_it(live: Tab, going: Going) -> None:
    """New states and findings do not take the focus from what the reader is at, nor close what was opened."""
    live.page.locator("#findings details summary").first.focus()
    live.page.keyboard.press("Enter")
    live.page.evaluate("() => { window.held = document.activeElement; }")
    going.go_on(10)
    worse = going.leak(Outcome.FAIL, rule="core_dump", forecast=None, object="", reason="a core was written")
    going.judge(worse, lost(going), going.leak(reason="it grows by 113 MiB/h"))
    live.page.locator("#findings .finding", has_text="113 MiB/h").wait_for()
    live.page.locator("#findings .finding", has_text="a core was written").wait_for()
    assert live.page.evaluate("() => document.activeElement === window.held && window.held.parentElement.open")


def test_a_finding_shows_its_window_in_the_plots(live: Tab, going: Going) -> None:
    """The link below a finding holds all plots at what it judged."""
    live.page.locator("#findings .finding", has_text="memory_growth").get_by_role(
        "link", name="Show in the plots"
    ).click()
    live.page.wait_for_function("() => document.getElementById('following').textContent.includes('showing')")
    ranges = {(figure.start, figure.end) for figure in live.figures() if figure.axis == "time"}
    assert len(ranges) == 1
    ((start, _),) = ranges
    assert start == going.begin_ns / 1e6
