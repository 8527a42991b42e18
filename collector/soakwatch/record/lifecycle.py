"""Whether the run of a record waits, runs, has ended or broke off: told from the record and the lock of its writer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from soakwatch.record.writer_lock import is_written

Lifecycle = Literal["waiting", "running", "ended", "broken off"]


def lifecycle_of(metas: Mapping[str, str], path: Path, now_ns: int | None = None) -> Lifecycle:
    """What became so far of the run whose record, at ``path`` (its folder or file), holds ``metas``.

    It has ended once ``ended_ns`` is written, before it is judged; one without that which nobody writes broke off.
    "waiting" is a run whose start lies behind ``now_ns`` (UTC ns); without ``now_ns`` that counts as running.
    """
    if metas.get("ended_ns"):
        return "ended"
    if not is_written(path):
        return "broken off"
    start = metas.get("start_ns", "")
    return "waiting" if now_ns is not None and start.isdecimal() and now_ns < int(start) else "running"
