"""Whether the run of a record waits, runs, has ended or broke off, by the record and the lock of its writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from soakwatch.record.writer_lock import is_written

Lifecycle = Literal["waiting", "running", "ended", "broken off"]


def lifecycle_of(metas: Mapping[str, str], path: Path, now_ns: int | None = None) -> Lifecycle:
    """The state of the run whose record at ``path`` (its folder or file) holds ``metas``.

    A run has ended once ``ended_ns`` is written, which is before it is judged. A run without ``ended_ns`` whose record
    nobody writes broke off. A run is waiting if its start is after ``now_ns`` (UTC ns); without ``now_ns`` it counts as
    running.
    """
    if metas.get("ended_ns"):
        return "ended"
    if not is_written(path):
        return "broken off"
    start = metas.get("start_ns", "")
    return "waiting" if now_ns is not None and start.isdecimal() and now_ns < int(start) else "running"
