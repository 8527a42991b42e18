"""First paint, zooms and memory of the live page in Chromium; prints, asserts nothing.

    python tests/bench/page.py                           makes 72 h x 1000 series x 1 s first: some minutes
    python tests/bench/page.py --record /tmp/three-days  one that judge.py, report.py or zoom.py left behind
    python tests/bench/page.py --no-record --ticks 360   memory only: an hour in ticks of ten seconds

The page is that of ``soakwatch run``. A zoom is from the moment it is asked for, through its pause of 150 ms and the
server's answer, until the new lines are painted. Memory is that of the page's heap after a collection, over an hour of
a run whose clock, like the page's timers, is driven by this bench: it takes a few minutes.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.judge import make
from tests.browser.conftest import ARGUMENTS
from tests.browser.going import Going
from tests.browser.tab import open_tab
from tests.needs import needs_chromium

from soakwatch.plan.web import WebPlan
from soakwatch.record import RecordView
from soakwatch.web.access import Token, one_time_code
from soakwatch_testing.served import serve_run

TARGET_PAINT_MS, TARGET_CURVES_MS, TARGET_ZOOM_MS = 2000.0, 1000.0, 300.0
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
CURVES = "performance.getEntriesByName('first curves')[0].startTime"
SIZE = """() => [document.documentElement.scrollHeight,
  performance.getEntriesByType("resource").reduce((sum, one) => sum + one.encodedBodySize, 0)]"""
DRAWN = "() => document.querySelector('[id^=panel-] .uplot') !== null"
ZOOM = """async ([begin, end]) => {
  performance.clearResourceTimings();
  const started = performance.now();
  soakwatchPlots.zoom(begin, end);
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  await frame();
  const moved = performance.now() - started;
  const asked = () => performance.getEntriesByType("resource").filter((one) => one.name.endsWith("/series/data"));
  while (asked().length === 0 && performance.now() - started < 10000) await new Promise((done) => setTimeout(done, 5));
  await frame();
  const [answer] = asked();
  return [moved, answer === undefined ? NaN : answer.responseEnd - answer.startTime, performance.now() - started];
}"""
_LONG_MS = 120_000


def paint_and_zoom(browser: Browser, folder: Path, rounds: int, seed: int) -> None:
    """Print when the page of a record is there, and how long its zooms take."""
    with RecordView.open(folder) as view:
        window, series = view.window(), len(view.keys())
    begin_ms, end_ms = window.begin_ns / 1e6, window.end_ns / 1e6
    print(f"record   {(end_ms - begin_ms) / 3.6e6:.1f} h, {series} series")
    with serve_run(WebPlan(listen="127.0.0.1:0"), folder, lambda: window.end_ns) as served:
        assert served.token_file is not None
        token = Token(served.token_file.read_text(encoding="ascii").strip())
        paints: list[float] = []
        first: list[float] = []
        drawn: list[float] = []
        for _ in range(rounds):
            tab = open_tab(browser)
            began = time.perf_counter()
            tab.page.goto(f"{served.url}/enter/{one_time_code(token, time.time() + 60)}", timeout=_LONG_MS)
            paints.append(float(tab.page.evaluate(PAINT)))
            tab.page.wait_for_function(DRAWN, timeout=_LONG_MS)
            first.append(float(tab.page.evaluate(CURVES)))
            drawn.append((time.perf_counter() - began) * 1000)
            if len(paints) < rounds:
                tab.page.context.close()
        tell("paint", paints, f"target {TARGET_PAINT_MS:g} ms")
        tell("curves", first, f"from the link to the first curves; target {TARGET_CURVES_MS:g} ms")
        tell("plots", drawn, "from the link to all plots")
        height, sent = tab.page.evaluate(SIZE)
        print(f"size     {height:.0f} px long, {sent / 2**20:.1f} MiB sent")
        zooms(tab.page, begin_ms, end_ms, rounds, seed)
        print(f"plots    {len(tab.figures())} figures, {len(tab.lines())} lines; {len(tab.unforgiven())} complaints")
        tab.page.context.close()


def zooms(page: Page, begin_ms: float, end_ms: float, rounds: int, seed: int) -> None:
    """Print how long zooms to stretches of two hours at random take."""
    page.locator(".plot").first.scroll_into_view_if_needed()
    draw = random.Random(seed)
    moved: list[float] = []
    answered: list[float] = []
    shown: list[float] = []
    span = min(7.2e6, (end_ms - begin_ms) / 10)
    for _ in range(3 * rounds):
        begin = draw.uniform(begin_ms, end_ms - span)
        latencies: list[float] = page.evaluate(ZOOM, [begin, begin + span])
        for kept, value in zip((moved, answered, shown), latencies, strict=True):
            kept.append(value)
    tell("zoom", moved, "until the plots have moved")
    tell("", answered, f"the server's answer; target {TARGET_ZOOM_MS:g} ms")
    tell("", shown, "until every reading is painted, the pause of 150 ms included")


def memory(browser: Browser, ticks: int) -> None:
    """Print the heap of the page of a run that goes on, ten seconds a tick."""
    heap: list[float] = []
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, Going(Path(work, "run"), 3600) as going:
        tab = open_tab(browser)
        tab.page.clock.install()
        tab.page.goto(going.link(), timeout=_LONG_MS)
        session = tab.page.context.new_cdp_session(tab.page)
        for tick in range(ticks):
            going.go_on(10)
            if tick % 6 == 0:
                going.judge(going.leak(reason=f"it grows by {100 + tick} MiB/h"))
            for _ in range(2):
                tab.page.clock.run_for(5000)
                tab.page.wait_for_load_state("networkidle")
            if tick % 10 == 9:
                session.send("HeapProfiler.collectGarbage")
                heap.append(float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6)
        tab.page.context.close()
    tenths = [f"{heap_mb:.1f}" for heap_mb in heap[:: max(1, len(heap) // 10)]]
    half = len(heap) // 2
    print(f"memory   MB of heap over {ticks / 360:.1f} h: {', '.join(tenths)}")
    if half:
        ratio = statistics.median(heap[half:]) / statistics.median(heap[:half])
        print(f"         second half to first: {ratio:.2f}; {len(tab.unforgiven())} complaints")


def tell(name: str, times_ms: Sequence[float], what: str) -> None:
    """One line of the table."""
    print(f"{name:8} {statistics.median(times_ms):6.0f} ms in the median, {max(times_ms):6.0f} ms at worst; {what}")


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="take this record: none is made")
    parser.add_argument("--no-record", action="store_true", help="measure the memory only")
    parser.add_argument("--hours", type=float, default=72)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5, help="how often the page is opened")
    parser.add_argument("--ticks", type=int, default=360, help="of ten seconds each, for the memory; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder: Path = options.record or Path(work, "run")
        if options.record is None and not options.no_record:
            make(folder, options.hours, options.series, 1.0, options.seed)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=needs_chromium(), args=[*ARGUMENTS])
            if not options.no_record:
                paint_and_zoom(browser, folder, options.rounds, options.seed)
            if options.ticks:
                memory(browser, options.ticks)
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
