"""The live page in a browser: marking, acknowledging, stopping, who may not, and how the end comes in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import ALL_DRAWN, Opens, watched
from tests.browser.going import DUT, MEMORY, Going
from tests.browser.records import HOSTILE
from tests.browser.tab import Tab

from soakwatch.core.event_kinds import ACKNOWLEDGED, STOP
from soakwatch_model.finding import Outcome

BUTTONS = "#mark-button, #stop-button, [data-part='ack']"


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Going]:
    """A run of five minutes so far, with an early warning; it goes on whatever is done to it here."""
    with Going(tmp_path_factory.mktemp("runs") / "going", 300) as run:
        run.judge(run.leak())
        yield run


@pytest.fixture(scope="module")
def once(browser: Browser, going: Going) -> Iterator[Tab]:
    """Its page for someone who may act."""
    with watched(browser) as opens:
        tab = opened(opens(), going.link())
        tab.page.locator("#mark-button").wait_for()  # the state of the run has come: keys are heard from then on
        yield tab


@pytest.fixture
def live(once: Tab) -> Iterator[Tab]:
    """The same for one test, with no dialog open and nothing in focus; what the test before sent has been answered, for
    the answer closes the dialog, whoever has opened it meanwhile."""
    once.page.wait_for_function("() => document.querySelector('dialog button[type=submit]:disabled') === null")
    once.page.evaluate("() => { document.querySelector('dialog[open]')?.close(); document.activeElement.blur(); }")
    yield once
    once.check()


def opened(tab: Tab, link: str) -> Tab:
    """The page behind a link, when it shows the first finding."""
    tab.page.goto(link, wait_until="load")
    tab.page.locator("#findings .finding").first.wait_for()
    return tab


def kinds(tab: Tab) -> str:
    """What the page says of the last events."""
    return tab.page.locator("#events").inner_text()


def test_the_warning_tells_how_long_memory_lasts(live: Tab) -> None:
    """The finding stands there with its limit and the hours until nothing is left."""
    words = live.page.locator("#findings").inner_text()
    assert "31 h" in words
    assert "112 MiB" in words
    assert "httpd" in words


def test_an_event_is_marked_by_a_click(live: Tab, going: Going) -> None:
    """Button, kind, target, note: it is in the record, and on the page without a reload."""
    live.page.get_by_role("button", name="Mark an event").click()
    live.page.locator("#mark-kind").fill("config")
    live.page.get_by_label("Target").select_option(DUT)
    live.page.get_by_label("Note").fill("<b>by hand</b>")
    with live.page.expect_response(lambda answer: answer.url.endswith("/events") and answer.status == 201):
        live.page.get_by_role("button", name="Mark Enter").click()
    (event,) = going.events("config")
    assert (event.target, event.detail["note"]) == (DUT, "<b>by hand</b>")
    assert abs(event.begin_ns - going.now_ns()) < 60 * 10**9
    live.page.locator("#events", has_text="config").wait_for()
    assert "<b>by hand</b>" in kinds(live)


def test_an_event_is_marked_by_keys_alone(live: Tab, going: Going) -> None:
    """m, the kind, Enter; Escape marks nothing."""
    press = live.page.keyboard.press
    press("m")
    live.page.keyboard.type("reboot")
    press("Escape")
    assert live.count("dialog[open]") == 0
    press("m")
    live.page.keyboard.press("Control+a")
    live.page.keyboard.type("upgrade")
    press("Enter")
    live.page.locator("#events", has_text="upgrade").wait_for()
    assert len(going.events("upgrade")) == 1
    assert going.events("reboot") == []


def test_a_refused_mark_is_reported(live: Tab, going: Going) -> None:
    """What the run does not take stays in the dialog with one sentence."""
    live.forgive(r"status of 400")
    live.page.keyboard.press("m")
    live.page.locator("#mark-kind").fill("phase.begin")
    live.page.keyboard.press("Enter")
    alert = live.page.locator("#mark-dialog [role='alert']")
    alert.filter(has_text="Failed").wait_for()
    assert live.count("#mark-dialog[open]") == 1
    assert going.events("phase.begin") == []


def test_a_finding_is_acknowledged_by_keys(live: Tab, going: Going) -> None:
    """j chooses it, a asks for the reason; everybody sees it, and its outcome stays."""
    live.page.keyboard.press("j")
    live.page.keyboard.press("a")
    live.page.keyboard.type("known leak, ticket 4711")
    live.page.keyboard.press("Enter")
    live.page.locator(".finding", has_text="known leak, ticket 4711").wait_for()
    (event,) = going.events(ACKNOWLEDGED)
    assert (event.target, event.object) == (DUT, MEMORY)
    assert event.detail["reason"] == "known leak, ticket 4711"
    assert "warn" in live.page.locator(".finding .badge").first.inner_text()
    assert live.page.evaluate("() => document.activeElement.closest('.finding') !== null"), live.focused()


def test_a_viewer_sees_no_buttons_and_may_not_act(tabs: Opens, going: Going) -> None:
    """The view link shows the same page without its buttons; keys do nothing, and the server refuses too."""
    tab = opened(tabs(), going.link(view_only=True))
    assert tab.count(BUTTONS) == 0
    for key in ("m", "j", "a"):
        tab.page.keyboard.press(key)
    assert tab.count("dialog[open]") == 0
    tab.forgive(r"status of 403")
    status = tab.page.evaluate(
        """async () => (await fetch('/api/runs/last/events', {method: 'POST', body: '{"kind": "takeover"}',
           headers: {'content-type': 'application/json'}})).status"""
    )
    assert status == 403
    assert going.events("takeover") == []
    assert tab.page.evaluate("() => document.cookie") == ""


def test_a_link_that_lets_in_works_once(tabs: Opens, going: Going) -> None:
    """In another browser the used link leads to the entrance, which takes the token."""
    link = going.link()
    opened(tabs(), link)
    other = tabs()
    other.forgive(r"status of 401")
    other.page.goto(link)
    assert other.count("#findings") == 0
    other.page.get_by_label("token").fill("a-token-of-a-test-0123456789")
    other.page.keyboard.press("Enter")
    other.page.locator("#findings .finding").first.wait_for()
    assert other.count("#stop-button") == 1


def test_stopping_asks_first_and_the_end_comes_without_a_reload(tabs: Opens, tmp_path: Path) -> None:
    """Nothing happens until the question is answered; then the record says so, once, with the reason. The verdict
    replaces what was said so far, and the report with its plots is there."""
    with Going(tmp_path / "going", 300) as going:
        going.judge(going.leak())
        live = opened(tabs(), going.link())
        stops_after_the_question(live, going)
        ends_without_a_reload(live, going)


def stops_after_the_question(live: Tab, going: Going) -> None:
    """Two answers are no, the third is yes, with a reason."""
    live.page.get_by_role("button", name="Stop the run…").click()
    dialog = live.page.locator("#stop-dialog")
    assert dialog.is_visible()
    live.page.get_by_role("button", name="Keep running").click()
    assert not dialog.is_visible()
    live.page.get_by_role("button", name="Stop the run…").click()
    live.page.keyboard.press("Escape")
    assert going.events(STOP) == []
    live.page.get_by_role("button", name="Stop the run…").click()
    dialog.get_by_label("Reason").fill("the lab is needed")
    dialog.get_by_role("button", name="Stop the run", exact=True).click()
    live.page.locator("#standing", has_text="stopping").wait_for()
    (event,) = going.events(STOP)
    assert event.detail["reason"] == "the lab is needed"
    assert live.page.locator("#stop-button").is_hidden()


def ends_without_a_reload(live: Tab, going: Going) -> None:
    """The run ends: verdict, and report in its frame."""
    live.page.evaluate("() => { window.sameDocument = true; }")
    going.end()
    live.page.locator("#standing", has_text="ended").wait_for()
    frame = live.page.frame_locator("#report-frame iframe")
    frame.locator("#verdict").wait_for()
    live.page.get_by_role("link", name="Read the report below").click()
    frame.locator("a[href='#findings']").first.click()
    frame.locator("body").evaluate("body => body.querySelectorAll('details').forEach((part) => { part.open = true; })")
    frame.locator(".plot").first.scroll_into_view_if_needed()
    frame.locator(".plot .uplot").first.wait_for()
    assert live.page.locator("#stop-button").is_hidden()
    assert live.page.evaluate("() => window.sameDocument === true")
    with_verdict = json.loads((going.folder / "verdict.json").read_text())["verdict"]
    assert with_verdict in live.page.locator("#badge").inner_text().lower()


def test_a_lost_connection_is_reported_and_comes_back(live: Tab, going: Going) -> None:
    """Old figures are never shown as new ones: the page says since when, and goes on by itself."""
    # A server that ends answers 500 to the plots that it was drawing.
    live.forgive("ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|Failed to fetch|status of 500 .*/plots")
    going.fall_silent()
    lost = live.page.locator("#lost")
    lost.filter(has_text="No connection since").wait_for()
    assert "stale" in (live.page.locator("body").get_attribute("class") or "")
    going.go_on(10)
    going.judge(going.leak(reason="it grows by 114 MiB/h"))
    going.speak_again()
    lost.wait_for(state="hidden")
    live.page.locator("#findings .finding", has_text="114 MiB/h").wait_for()
    live.page.keyboard.press("m")
    live.page.locator("#mark-kind").fill("failover")
    live.page.keyboard.press("Enter")
    live.page.locator("#events", has_text="failover").wait_for()


def test_hostile_names_are_text(tabs: Opens, tmp_path: Path) -> None:
    """Processes, findings and targets whose names attack are shown as they are, and nothing of them is run."""
    with Going(tmp_path / "hostile", 120, HOSTILE) as going:
        bad = [
            going.leak(Outcome.FAIL, object=f"process={name},instance=0", reason=name, doubts=(name,))
            for name in HOSTILE
        ]
        going.judge(*bad)
        tab = opened(tabs(), going.link())
        tab.page.wait_for_function(ALL_DRAWN)
        for fold in tab.page.locator("#findings details summary").all():
            fold.click()
        words = tab.page.locator("#findings").text_content() or ""
        for name in HOSTILE[:6]:
            assert name in words
        assert "خدمة" in words
        assert "👩‍👩‍👧" in words
        assert tab.count("main img, main svg, main script, main iframe") == 0
        for width in (1280, 400):
            tab.page.set_viewport_size({"width": width, "height": 900})
            assert tab.too_wide() == []
