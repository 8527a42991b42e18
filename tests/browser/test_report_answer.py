"""The first screen of a report: what is inside the window of a desk, a telephone and the first sheet of paper.

What is read is what a person sees without scrolling: elements whose box lies inside the window, not the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.answer_records import fleet_record, process_record
from tests.browser.conftest import watched, write_report
from tests.browser.tab import Tab

DESK, TELEPHONE, SHEET = (1440, 900), (390, 844), (703, 1017)
"""Pixels of a window; of a sheet of A4 without its margins."""
SEEN = """() => {
  const across = (box) => box.left >= -0.5 && box.right <= innerWidth + 0.5;
  const inside = (box) => box.width > 0 && box.top >= 0 && box.bottom <= innerHeight + 0.5 && across(box);
  const texts = [];
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
    const holder = node.parentElement;
    if (node.textContent.trim() === "" || !holder.checkVisibility()) continue;
    if (holder.closest(".unseen, title") !== null) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()];
    if (boxes.length > 0 && boxes.every(inside)) texts.push(node.textContent.trim());
  }
  return texts.join(" ").replace(/\\s+/g, " ");
}"""
BESIDE = """() => [...document.querySelectorAll("svg.proof")].filter((one) => one.checkVisibility()).map((one) => {
  const figure = one.closest("figure").getBoundingClientRect(), card = one.closest(".answer").getBoundingClientRect();
  const names = [...one.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const wrong = [];
  names.forEach(([name, box], n) => {
    if (box.left < figure.left - 1 || box.right > figure.right + 1) wrong.push(`${name} is outside`);
    for (const [other, beside] of names.slice(n + 1)) {
      const over = Math.min(box.right, beside.right) - Math.max(box.left, beside.left);
      const high = Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top);
      if (over > 1 && high > 3) wrong.push(`${name} covers ${other}`);
    }
  });
  for (const entry of one.closest("figure").querySelectorAll(".legend li")) {
    const box = entry.getBoundingClientRect();
    if (box.right > card.right || box.bottom > card.bottom) wrong.push(`${entry.textContent} is outside the card`);
  }
  return wrong;
}).flat()"""

BROKEN_HEADS = """() => [...document.querySelectorAll("thead th")].filter((one) => {
  if (!one.checkVisibility()) return false;
  const range = document.createRange();
  range.selectNodeContents(one);
  const words = one.textContent.trim().split(/\\s+/).length;
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > words;
}).map((one) => one.textContent)"""
"""Heads that stand on more lines than they have words."""
OFF_THE_SHEET = """() => [...document.querySelectorAll("main td, main th, main p, main figure")].filter(
  (one) => one.checkVisibility() && !one.matches(".unseen") && one.getBoundingClientRect().right > innerWidth + 0.5
).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a process that leaks."""
    return write_report(process_record(tmp_path_factory.mktemp("browser") / "leak"))


@pytest.fixture
def shown(browser: Browser) -> Iterator[Tab]:
    """A tab without a network; whatever the pages complain of fails the test."""
    with watched(browser) as opens:
        yield opens(offline=True)


def opened(tab: Tab, report: Path, size: tuple[int, int] = DESK, *, paper: bool = False) -> Page:
    """The report in a window of a size, or on paper."""
    resized(tab.page, size)
    tab.open(report)
    if paper:
        tab.page.emulate_media(media="print")
        tab.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    return tab.page


def resized(page: Page, size: tuple[int, int]) -> None:
    """The same page in a window of another size."""
    page.set_viewport_size({"width": size[0], "height": size[1]})


def seen(page: Page) -> str:
    """The text that is inside the window."""
    return str(page.evaluate(SEEN))


def screens(page: Page, size: tuple[int, int]) -> float:
    """How many windows the page is high."""
    return float(page.evaluate("() => document.documentElement.scrollHeight")) / size[1]


def is_for_everybody(tab: Tab) -> None:
    """Axe finds nothing serious, and nothing scrolls sideways."""
    assert tab.barriers() == []
    assert tab.too_wide() == []


@pytest.mark.parametrize(("size", "paper"), [(DESK, False), (TELEPHONE, False), (SHEET, True)])
def test_the_first_screen_of_a_leak_answers_everything(
    shown: Tab, leak: Path, size: tuple[int, int], *, paper: bool
) -> None:
    """The questions of two minutes, of a process that leaked for 13 minutes: the verdict in a word and in a sentence;
    who, what, how much, since, until; one plot that proves it; what broke first; what differs from the last run;
    whether it can be trusted; what to do next."""
    page = opened(shown, leak, size, paper=paper)
    text = seen(page)
    for said in (
        "fail web 2026-11-20 18:40:00 to 18:53:00 UTC, 13 min; release=7.2",
        "memory of svc.py on web-1 has grown by 52",
        "Who web-1",
        "What memory of svc.py (memory_growth)",
        "How much +52",
        "limit 5 %",
        "Since the first reading, 18:41:00 UTC",
        "Until still so when the run ended",
        "Load a mean of 943 requests/s",
        *("memory of svc.py on web-1, MiB", "baseline", "soak", "recovery", "first third", "last third", "limit 2"),
        "load, requests/s",
        "load of tg, requests/s (right axis)",
        "What broke first, and what followed ✗ from the first reading memory of svc.py has grown by 52",
        "Nothing else failed or warned.",
        "Against the last run This is the first run of this plan in its folder.",
        "Can I trust it? Yes: all 1,560 polls answered",
        "the generator held its load; the record is not sealed.",
        "What to do next Run it for 2 h or more",
    ):
        assert said in text, said
    assert page.evaluate(BESIDE) == []
    assert page.locator(".steps > li").count() <= 5
    if not paper:
        assert screens(page, size) <= 3
        is_for_everybody(shown)


def test_a_reader_elsewhere_sees_his_own_time_beside_utc(shown: Tab, leak: Path) -> None:
    """Below the times of the plot and behind the run's, with the zone; nothing of it where the zone is UTC."""
    page = opened(shown, leak)
    assert page.locator(".local").count() == 0
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    page = opened(shown, leak)
    assert page.locator(".when").inner_text().endswith("release=7.2 (21 Nov 00:10 to 21 Nov 00:23 local, UTC+5:30)")
    utc = page.locator("svg.proof:visible text[data-ms]").all_text_contents()
    own = page.locator("svg.proof:visible text.local").all_text_contents()
    assert (utc[0], own[0]) == ("18:40", "00:10")
    assert len(utc) == len(own)
    assert "UTC+5:30" in page.locator(".legend .local").inner_text()
    assert page.evaluate(BESIDE) == []


def test_a_run_that_passed_says_what_came_nearest(shown: Tab, tmp_path: Path) -> None:
    """Nothing broke: no chain, but the nearest limit with its plot, and nothing to mend; at most three screens."""
    page = opened(shown, write_report(process_record(tmp_path / "calm", leak_mib_h=0)))
    for size in (DESK, TELEPHONE):
        resized(page, size)
        text = seen(page)
        assert "pass web" in text
        assert "Nearest limit " in text
        assert "What to do next Nothing failed, but growth of " in text
        assert "broke first" not in text
        assert screens(page, size) <= 3


def test_a_run_that_could_not_be_judged_says_why_and_what_then(shown: Tab, tmp_path: Path) -> None:
    """The source that was silent, since when, until when; that it cannot be trusted; and the remedy."""
    page = opened(shown, write_report(process_record(tmp_path / "unread", leak_mib_h=0, unread=True)))
    for size in (DESK, TELEPHONE):
        resized(page, size)
        text = seen(page)
        assert "No verdict for web-1 after 13 min under 798 requests/s: " in text
        assert " did not answer for " in text.partition("No verdict")[2][:160]
        assert "Since 18:42:29 UTC" in text
        assert "Can I trust it? No:" in text
        assert "What to do next Fix the source" in text
        assert page.locator("svg.proof:visible rect.silence").count() == 1
        is_for_everybody(shown)


@pytest.mark.slow
def test_a_fleet_has_all_devices_on_the_first_screen(shown: Tab, tmp_path: Path) -> None:
    """Twenty rows, outliers first; what failed is open, and a plot is drawn when its part is opened, not before."""
    page = opened(shown, write_report(fleet_record(tmp_path / "fleet")))
    text = seen(page)
    rows = page.locator(".matrix tbody tr th").all_inner_texts()
    assert len(rows) == 20
    assert {row.split()[-1] for row in rows[:3]} == {"fw-07", "fw-12", "fw-15"}
    assert all(row.split()[-1] in text for row in rows)
    assert "fw-07, fw-12, fw-15 (3 of 20 devices)" in text
    assert "What to do next" in text
    for size, most in ((TELEPHONE, 5), (DESK, 2.7)):
        resized(page, size)
        assert screens(page, size) <= most
        is_for_everybody(shown)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
        assert page.evaluate(BROKEN_HEADS) == []
    for target in (7, 12, 15):
        assert page.locator(f"#target-{target}[open] article.card.fail").first.is_visible()
    heads = [words.split(maxsplit=3)[2:] for words in page.locator("details.device[open] > summary").all_inner_texts()]
    assert heads == [
        ["fw-15", "dropped packets"],
        ["fw-12", "rebooted"],
        ["fw-07", "memory of routed has grown by 200 MiB/h"],
    ]
    assert page.locator(".uplot").count() == 0
    page.emulate_media(media="print")
    resized(page, SHEET)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(OFF_THE_SHEET) == []
    assert page.locator(".fleet .matrix thead th:visible").count() == 6
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    resized(page, TELEPHONE)
    page.locator(".matrix a", has_text="fw-07").click()
    page.locator("details.device[open] details.evidence > summary").first.click()
    page.wait_for_function("() => document.querySelector('details.evidence[open] .uplot') !== null")
    resized(page, TELEPHONE)
    shown.unfold()
    assert shown.barriers() == []


def test_what_a_reader_does_with_a_report(shown: Tab, leak: Path) -> None:
    """Filter it, copy it as an issue, open the exact definition of a rule."""
    page = opened(shown, leak)
    finds_what_is_folded_and_puts_it_back(page)
    copies_the_facts_as_an_issue(page)
    opens_the_definition(page)


def finds_what_is_folded_and_puts_it_back(page: Page) -> None:
    """A setting deep in the set-up is found, alone; Escape empties the filter, and all is folded as before."""
    before = page.locator("details[open]").count()
    page.locator("#find").fill("setting_77")
    page.wait_for_function("() => document.getElementById('found').textContent === '2 found'")
    assert page.locator("text=setting_77").first.is_visible()
    assert not page.locator("text=setting_11").first.is_visible()
    assert page.locator("#parts > section:visible").count() == 1
    page.locator("#find").press("Escape")
    assert page.locator("details[open]").count() == before
    assert page.locator("#parts > section:visible").count() > 5
    page.locator("#find").fill("no such word")
    page.wait_for_function("() => document.getElementById('found').textContent === '0 found'")
    page.locator("#find").press("Escape")


def copies_the_facts_as_an_issue(page: Page) -> None:
    """One press puts plain text with the facts on the clipboard, and says so."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#copy").click()
    page.wait_for_function("() => document.getElementById('copied').textContent !== ''")
    assert page.locator("#copied").inner_text().startswith("Copied")
    text = page.evaluate("() => navigator.clipboard.readText()")
    assert text.startswith("FAIL: memory of svc.py on web-1 has grown by 52")
    assert "How much: +52" in text
    assert "What to do next: Run it for 2 h or more" in text
    assert "Rule memory_growth (version " in text


def opens_the_definition(page: Page) -> None:
    """Fails when, misses, which parameter: three plain lines; the exact definition opens with the evidence."""
    card = page.locator("article.card.fail").first
    for name in ("Fails when", "Misses", "Change it with"):
        assert card.locator("dt", has_text=name).is_visible()
    assert not card.locator("text=Definition.").is_visible()
    card.locator("details.evidence > summary").click()
    assert card.locator("text=Definition.").is_visible()
