"""Readings that are imported: nobody owns their series."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record.bulk import PollStretch, Readings
from soakwatch.record.meta import IMPORTED_KEY
from soakwatch_testing.records import SECOND, T0

SWITCHES = SeriesKey("dut", "system.context_switches", "")


def test_imported_files_keep_every_line(tmp_path: Path) -> None:
    """Two files that hold the same series, one after the other: nothing is left out of the second."""
    with Record.create(tmp_path) as record:
        record.target("dut", "dut")
        record.set_meta(IMPORTED_KEY, "[]")
        for begin in (0, 1000):
            source = record.source("dut", "import", f"part {begin}", 10 * SECOND, required=True)
            times = T0 + SECOND * np.arange(begin, begin + 1000, 10)
            positions, values = np.arange(times.size), np.arange(times.size, dtype=np.int64)
            series = Readings(SWITCHES.metric, SWITCHES.object, "1", "counter", positions, times, values)
            record.put_columns(source, PollStretch(times, np.ones(times.size, np.bool_), "", [series]))
        record.finish()
    with RecordView.open(tmp_path) as view:
        switches = view.series(SWITCHES)
    assert ((switches.time_ns - T0) // SECOND).tolist() == list(range(0, 2000, 10))
