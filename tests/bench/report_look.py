"""Length, bytes and paint of the report of one process for 13 minutes and of twenty devices; prints, asserts nothing.

    python tests/bench/report_look.py                    makes the records, judges them, opens their reports in Chromium
    python tests/bench/report_look.py --record runs/last the report of this run instead

A screen is 1440 x 900 or 390 x 844 pixels. "paint" is Chromium's first contentful paint of the file opened from disk
without a network, "usable" when its scripts have run, what is on the first screen is drawn, and the filter answers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.browser.answer_records import fleet_record, process_record
from tests.needs import needs_chromium

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch.report.html import render_html
from soakwatch.runs.catalog import find_run

SCREENS = ((1440, 900), (390, 844))
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
USABLE = """async () => {
  if (document.readyState !== "complete") await new Promise((done) => addEventListener("load", done));
  const asked = document.getElementById("find");
  if (asked !== null) { asked.value = "memory"; asked.dispatchEvent(new Event("input")); }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const now = performance.now();
  if (asked !== null) { asked.value = ""; asked.dispatchEvent(new Event("input")); }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return now;
}"""


def look(browser: Browser, name: str, page: Path, rounds: int) -> None:
    """Print the figures of one report."""
    print(f"{name}: {page.stat().st_size / 1e6:.2f} MB")
    for width, height in SCREENS:
        paints, usable, tall, elements = [], [], 0, 0
        for _ in range(rounds):
            context = browser.new_context(offline=True, viewport={"width": width, "height": height})
            tab = context.new_page()
            tab.goto(page.as_uri(), wait_until="commit")
            usable.append(float(tab.evaluate(USABLE)))
            tab.wait_for_function(f"() => {PAINT.removesuffix('[0].startTime')}.length > 0")
            paints.append(float(tab.evaluate(PAINT)))
            tall = int(tab.evaluate("document.documentElement.scrollHeight"))
            elements = int(tab.evaluate("document.querySelectorAll('*').length"))
            context.close()
        long = f"{tall:6} px, {tall / height:5.1f} screens, {elements:,} elements"
        paint, ready = statistics.median(paints), statistics.median(usable)
        print(f"  {width:4} x {height}: {long}; paint {paint:5.0f} ms (worst {max(paints):.0f}),", end=" ")
        print(f"usable {ready:5.0f} ms (worst {max(usable):.0f})")


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="a run: its report, and no other")
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=needs_chromium(), args=["--no-sandbox"])
        for name, run in _runs(Path(work), options.record).items():
            with RecordView.open(run) as view:
                verdict = judge_record(view)
                begun = time.process_time()
                text = render_html(view, verdict)
            print(f"written in {time.process_time() - begun:.1f} s CPU")
            page = Path(work, f"{name}.html")
            page.write_text(text, encoding="utf-8")
            look(browser, name, page, options.rounds)
        browser.close()


def _runs(work: Path, chosen: Path | None) -> dict[str, Path]:
    if chosen is not None:
        return {chosen.name: find_run(str(chosen))}
    return {"process": process_record(work / "process"), "fleet": fleet_record(work / "fleet")}


if __name__ == "__main__":
    main()
