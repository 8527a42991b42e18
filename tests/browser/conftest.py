"""A browser for the tests of pages, and the reports and runs that they look at."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.browser.records import device_record
from tests.browser.tab import Scheme, Tab, open_tab
from tests.commands import MAX_WAIT_S
from tests.needs import needs_chromium

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch.report.html import render_html

ARGUMENTS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--js-flags=--expose-gc",
    "--enable-precise-memory-info",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
"""No sandbox, for the tests may run as root; every name but this machine's is unknown."""

FROM_THE_TOP = """() => {
  const page = document.body;
  page.tabIndex = -1;
  page.focus();
  page.blur();
  page.removeAttribute("tabindex");
}"""
"""Nothing has the focus, and Tab begins at the top, wherever a test before has clicked."""
ALL_DRAWN = """() => soakwatchProbe.models().length > 3
  && document.getElementById("plots-note").textContent === "" """
"""All plots of a live page are there: the coarse ones that come first give way to them."""
Opens = Callable[..., Tab]


_LOOP = pytest.StashKey[asyncio.AbstractEventLoop]()
"""The event loop of the browser's driver."""


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """Debian's Chromium: one for all files, for to start it costs more than most pages."""
    program = needs_chromium()
    with sync_playwright() as playwright:
        loop = pytestconfig.stash[_LOOP] = asyncio.get_running_loop()
        launched = playwright.chromium.launch(
            executable_path=program, args=[*ARGUMENTS], chromium_sandbox=False, timeout=MAX_WAIT_S * 1000
        )
        try:
            yield launched
        finally:
            events._set_running_loop(loop)  # the test before may have been another's
            del pytestconfig.stash[_LOOP]
            launched.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The driver's loop counts as that of the thread during the tests of pages only: others make their own."""
    if item.path.parent != Path(__file__).parent:
        return (yield)
    with _running(item.config.stash.get(_LOOP, None)):
        return (yield)


@contextmanager
def _running(loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    events._set_running_loop(loop)
    try:
        yield
    finally:
        events._set_running_loop(None)


@pytest.fixture
def tabs(browser: Browser) -> Iterator[Opens]:
    """Opens tabs; whatever a page complained of, asked for elsewhere or asked the user fails the test at its end."""
    with watched(browser) as opens:
        yield opens


@pytest.fixture
def offline(tabs: Opens) -> Tab:
    """A tab without a network."""
    return tabs(offline=True)


@contextmanager
def watched(browser: Browser) -> Iterator[Opens]:
    """Opens tabs, and closes them. Raises AssertionError for what went wrong in one and was not forgiven."""
    opened: list[Tab] = []

    def open_one(*, offline: bool = False, scheme: Scheme = "light", width: int = 1280) -> Tab:
        opened.append(open_tab(browser, offline=offline, scheme=scheme, width=width))
        return opened[-1]

    try:
        yield open_one
        complaints = [complaint for tab in opened for complaint in tab.unforgiven()]
        assert complaints == []
    finally:
        for tab in opened:
            tab.page.context.close()


@pytest.fixture(scope="session")
def device_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of an hour of a device that leaks and drops, with its load."""
    return device_record(tmp_path_factory.mktemp("browser") / "device")


@pytest.fixture(scope="session")
def device_report(device_run: Path) -> Path:
    """Its report on disk."""
    return write_report(device_run)


@pytest.fixture(scope="session")
def small_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on disk with few plots."""
    return write_report(device_record(tmp_path_factory.mktemp("browser") / "small", small=True))


@pytest.fixture(scope="module")
def drawn_once(browser: Browser, device_report: Path) -> Iterator[Tab]:
    """The report of the device opened without a network, every plot drawn."""
    with watched(browser) as opens:
        yield _drawn(opens, device_report)


@pytest.fixture
def drawn(drawn_once: Tab) -> Tab:
    """The same for one test, as it was when it was opened."""
    return _fresh(drawn_once)


@pytest.fixture(scope="module")
def small_once(browser: Browser, small_report: Path) -> Iterator[Tab]:
    """The small report opened without a network, every plot drawn."""
    with watched(browser) as opens:
        yield _drawn(opens, small_report)


@pytest.fixture
def small(small_once: Tab) -> Tab:
    """The same for one test, as it was when it was opened."""
    return _fresh(small_once)


def _drawn(opens: Opens, report: Path) -> Tab:
    tab = opens(offline=True)
    tab.open(report)
    tab.unfold()
    tab.draw_all()
    return tab


def _fresh(tab: Tab) -> Tab:
    tab.page.emulate_media(media="screen", color_scheme="light")
    tab.unfold()
    tab.page.evaluate("() => { soakwatchPlots.reset(); scrollTo(0, 0); }")
    tab.page.evaluate(FROM_THE_TOP)
    return tab


def write_report(run: Path) -> Path:
    """Judge a record and write its report beside it."""
    file = run.with_suffix(".html")
    with RecordView.open(run) as view:
        file.write_text(render_html(view, judge_record(view)), encoding="utf-8")
    return file
