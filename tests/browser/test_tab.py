"""The tests' own browser: what a page must not do is noticed."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import watched
from tests.browser.tab import BEYOND, contrast
from tests.commands import MAX_WAIT_S


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<img src='http://198.51.100.7/x.png' alt=''>", "asked for http://198.51.100.7/x.png"),
        (
            "<script>fetch('https://soakwatch.example/').catch(() => {})</script>",
            "asked for https://soakwatch.example/",
        ),
        ("<script>console.error('broken')</script>", "error: broken"),
        ("<script>undefined_word()</script>", "undefined_word"),
        ("<script>setTimeout(() => alert(1))</script>", "dialog alert: 1"),
    ],
)
def test_a_page_that_misbehaves_fails_its_test(browser: Browser, text: str, complaint: str) -> None:
    """Requests beyond this machine, errors and dialogs are complaints, and complaints fail."""
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        misbehave(browser, text)


def misbehave(browser: Browser, text: str) -> None:
    """Show a page until it has misbehaved."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.set_content(f"<title>x</title>{text}")
        deadline = time.monotonic() + MAX_WAIT_S
        while not tab.complaints and time.monotonic() < deadline:
            tab.page.wait_for_timeout(20)


def test_a_page_that_behaves_passes(browser: Browser) -> None:
    """This machine, the page itself and files are not beyond."""
    for address in ("http://127.0.0.1:8720/x", "http://localhost/", "data:,", "blob:null/1", "file:///tmp/x.html"):
        assert not BEYOND.search(address)
    for address in (
        "http://127.0.0.1.example/",
        "https://example.org/127.0.0.1",
        "ws://10.0.0.1/",
        "ftp://localhost.x/",
    ):
        assert BEYOND.search(address)
    with watched(browser) as opens:
        opens().page.set_content("<title>x</title><p>well</p>")


def test_axe_sees_what_is_wrong(browser: Browser) -> None:
    """A picture without words and grey on grey are barriers; the rule is reported with its place."""
    with watched(browser) as opens:
        tab = opens()
        tab.page.set_content(
            "<html lang='en'><title>x</title><img src='data:,'><p style='color:#999;background:#aaa'>some words</p>"
        )
        rules = " ".join(tab.barriers())
        assert "image-alt" in rules
        assert "color-contrast" in rules


def test_contrast_is_that_of_the_guidelines() -> None:
    """Black on white is 21, and a colour on itself 1."""
    assert contrast("#000000", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1
