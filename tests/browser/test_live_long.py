"""The live page for a long time: it complains of nothing, and its memory stays where it was."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from tests.browser.conftest import Opens
from tests.browser.going import Going
from tests.commands import MAX_WAIT_S

_BEFORE_S, _TICKS, _TICK_S, _EACH = 2400, 1200, 10, 30
_MAX_GROWTH = 1.1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_flat_over_three_hours(tabs: Opens, tmp_path: Path) -> None:
    """1,200 times ten seconds of a run, findings that change among them: the second half's heap is that of the first.

    The page's timers are driven by the test, so that hours pass in seconds; the first quarter is for warming up, and so
    long because the heap of 2 MB takes a step of some 50 kB at times, and then stays.
    """
    with Going(tmp_path / "going", _BEFORE_S) as going:
        tab = tabs()
        tab.page.clock.install()
        tab.page.goto(going.link(), wait_until="load")
        session = tab.page.context.new_cdp_session(tab.page)
        heap: list[float] = []
        nodes: list[float] = []
        for tick in range(_TICKS):
            going.go_on(_TICK_S)
            if tick % 6 == 0:
                going.judge(going.leak(reason=f"it grows by {100 + tick} MiB/h"))
            tab.page.clock.run_for(_TICK_S * 1000 // 2)
            tab.page.wait_for_load_state("networkidle")
            tab.page.clock.run_for(_TICK_S * 1000 // 2)
            if tick % _EACH == 0:
                session.send("HeapProfiler.collectGarbage")
                heap.append(float(session.send("Runtime.getHeapUsage")["usedSize"]))
                nodes.append(float(session.send("Memory.getDOMCounters")["nodes"]))
        # It went along; the server draws at most each two seconds of the wall, half a minute of the run.
        deadline, near_ms = time.monotonic() + MAX_WAIT_S, (going.now_ns() - 60 * 10**9) / 1e6
        while (last_ms := max(float(line.time[-1]) for line in tab.lines())) < near_ms and time.monotonic() < deadline:
            tab.page.clock.run_for(2000)
            tab.page.wait_for_load_state("networkidle")
        assert last_ms >= near_ms
        warm = len(heap) // 4
        middle = (len(heap) + warm) // 2
        for kept in (heap, nodes):
            first, second = statistics.median(kept[warm:middle]), statistics.median(kept[middle:])
            assert second <= first * _MAX_GROWTH, [round(heap) for heap in kept]
