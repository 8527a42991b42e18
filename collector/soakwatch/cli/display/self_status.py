"""The monitor's own health for the display of its run; neither polled nor recorded."""

from __future__ import annotations

import shutil
import time
from collections import deque
from pathlib import Path

import psutil

from soakwatch.runs.run_status import Status
from soakwatch.runs.status_words import own_words
from soakwatch_agent.context import HostContext, ProcAt
from soakwatch_model.sample import PollOutcome

_INTERVALS = 10


class SelfStatus:
    """Memory, recent lateness of the event loop, missed polls, and free space on the record's disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._here, self._process = folder, HostContext(), psutil.Process()
        self._late: deque[float] = deque(maxlen=_INTERVALS)
        self._shown_s: float | None = None

    def record_lateness(self, every_s: float) -> None:
        """Call after sleeping for ``every_s`` seconds since ``words``."""
        if self._shown_s is not None:
            self._late.append(max(0.0, time.monotonic() - self._shown_s - every_s))
            self._shown_s = None

    def words(self, status: Status) -> str:
        """The health in one line; "" if the system does not provide it."""
        try:
            with ProcAt(self._here):  # a source may have pointed psutil at another machine's files
                memory = float(self._process.memory_info().rss)
            free = float(shutil.disk_usage(self._folder).free)
        except (OSError, psutil.Error):
            return ""
        missed = sum(source.outcomes[PollOutcome.MISSED] for source in status.sources)
        late_s = max(self._late) if self._late else None
        self._shown_s = time.monotonic()
        return own_words(memory, late_s, missed, free)
