"""Size, time and memory of the HTML report of a full record, and its first paint in Chromium; prints, asserts nothing.

    python tests/bench/report.py                          makes 72 h x 1000 series x 1 s first: some minutes
    python tests/bench/report.py --keep /tmp/three-days   and leaves record, verdict and report there
    python tests/bench/report.py --record /tmp/three-days
    python tests/bench/report.py --record /tmp/three-days --profile

The report is written by a process of its own, so its figures hold nothing of the making or the judging. The paint is
what Chromium itself says (PerformanceObserver's entries) of the file opened from disk, without a network.
"""

from __future__ import annotations

import argparse
import cProfile
import pickle
import pstats
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.judge import make

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView

TARGET_S, TARGET_MB, TARGET_PAINT_S = 4.0, 2.0, 2.0
VERDICT, PAGE = "verdict.pickle", "report.html"
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PAINTS = "performance.getEntriesByType('paint').find(one => one.name === 'first-contentful-paint').startTime"


def write_here(folder: Path, *, profiled: bool) -> None:
    """Write the report of a record whose verdict lies beside it, and print what it took."""
    from soakwatch.report.html import render_html

    verdict = pickle.loads((folder / VERDICT).read_bytes())  # written by this bench
    profile = cProfile.Profile()
    with RecordView.open(folder) as view:
        counts = view.counts()
        cpu, wall = time.process_time(), time.perf_counter()
        if profiled:
            profile.enable()
        page = render_html(view, verdict)
        profile.disable()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    data = page.encode()
    (folder / PAGE).write_bytes(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{counts.samples:,} samples, {len(verdict.findings)} findings, {page.count('plot-piece')} plots")
    print(f"report   {cpu:6.1f} s CPU, {wall:.1f} s wall; target {TARGET_S:g} s")
    print(f"size     {len(data) / 1e6:6.2f} MB; target {TARGET_MB:g} MB")
    print(f"memory   {peak:6.0f} MB at most")
    if profiled:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(40)


def paint(page: Path, rounds: int) -> None:
    """Print when Chromium first painted something of the page."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("paint    not measured: there is no playwright")
        return
    if CHROMIUM is None:
        print("paint    not measured: there is no chromium")
        return
    first, loaded = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(rounds):
            context = browser.new_context(offline=True)
            shown = context.new_page()
            shown.goto(page.resolve().as_uri(), wait_until="load", timeout=120_000)
            first.append(float(shown.evaluate(PAINTS)))
            loaded.append(float(shown.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")))
            context.close()
        browser.close()
    print(
        f"paint    {statistics.median(first):6.0f} ms first contentful paint, {max(first):.0f} ms at worst of {rounds};"
        f" target {1000 * TARGET_PAINT_S:g} ms; all read after {statistics.median(loaded):.0f} ms"
    )


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="take this record: none is made")
    parser.add_argument("--keep", type=Path, help="make the record in this folder and leave it there")
    parser.add_argument("--hours", type=float, default=72)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="how often the page is opened")
    parser.add_argument("--profile", action="store_true", help="print where the time goes; it takes longer then")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        write_here(options.record, profiled=options.profile)
        return 0
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder: Path = options.record or options.keep or Path(work, "run")
        if options.record is None:
            make(folder, options.hours, options.series, options.interval, options.seed)
        if not (folder / VERDICT).exists():
            with RecordView.open(folder) as view:
                (folder / VERDICT).write_bytes(pickle.dumps(judge_record(view)))
        command = [sys.executable, __file__, "--here", "--record", str(folder)]
        code = subprocess.run([*command, *(["--profile"] if options.profile else [])], check=False).returncode
        if code == 0:
            paint(folder / PAGE, options.rounds)
        return code


if __name__ == "__main__":
    sys.exit(main())
