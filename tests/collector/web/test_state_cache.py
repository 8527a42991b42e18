"""The states that pages share: what was written meanwhile is seen, also where the file's times do not show it."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from soakwatch.record import add_outside_event
from soakwatch.web.state_cache import StateCache
from soakwatch_model.event import Event
from soakwatch_testing.records import small_record


def test_an_event_is_seen_that_is_written_within_the_same_tick(tmp_path: Path) -> None:
    """The kernel's clock of files goes in steps of some ms, and a log that is written again from its start keeps its
    size: a state that was read just before the event has the same times and sizes as one just after it."""
    with small_record(tmp_path, 20) as record:
        with sqlite3.connect(record.path) as other:
            other.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        other.close()
        now_ns = time.time_ns() + 60 * 10**9  # a tick that is not over, however long this test takes
        for file in tmp_path.iterdir():
            os.utime(file, ns=(now_ns, now_ns))
        stamps = {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in tmp_path.iterdir()}
        cache = StateCache()
        assert cache.read(tmp_path, now_ns).events == ()
        add_outside_event(tmp_path, "", Event("upgrade", "", "", now_ns, None))
        for file in tmp_path.iterdir():
            os.utime(file, ns=(now_ns, now_ns))
        assert stamps == {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in tmp_path.iterdir()}
        assert [stored.event.kind for stored in cache.read(tmp_path, now_ns).events] == ["upgrade"]
