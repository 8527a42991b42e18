"""Caches the runs of a trend, each read again when its record changes, for a limited time per request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from soakwatch.runs.key_figures import FigureSpec
from soakwatch.runs.trend_runs import LeftOut, TrendRun, read_trend_run
from soakwatch.web.summaries import Stamp, stamp_of

_MAX_KEPT = 5000
_Key = tuple[Path, tuple[str, ...]]


class TrendReader:
    """Caches figures of runs by folder, requested figures, and state of the record.

    Thread-safe. Reading that takes longer than ``within_s`` continues at the next call.
    """

    def __init__(
        self,
        read: Callable[[Path, Sequence[FigureSpec]], TrendRun | LeftOut] = read_trend_run,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._now_s = read, now_s
        self._kept: OrderedDict[_Key, tuple[Stamp, TrendRun | LeftOut]] = OrderedDict()
        self._lock = threading.Lock()

    def runs(
        self, folders: Sequence[Path], wanted: Sequence[FigureSpec], within_s: float
    ) -> tuple[list[TrendRun | LeftOut], int]:
        """What is known of these runs in order, and how many are still unread; each call reads at least one."""
        texts = tuple(spec.text for spec in wanted)
        end_s = self._now_s() + within_s
        known: dict[Path, TrendRun | LeftOut] = {}
        read = unread = 0
        for folder in reversed(folders):  # the newest first
            stamp = stamp_of(folder)
            with self._lock:
                kept = self._kept.get((folder, texts))
                if kept is not None and kept[0] == stamp:
                    self._kept.move_to_end((folder, texts))
                    known[folder] = kept[1]
                    continue
            if read and self._now_s() >= end_s:
                unread += 1
                continue
            known[folder] = self._read(folder, wanted)
            read += 1
            with self._lock:
                self._kept[folder, texts] = stamp, known[folder]
                while len(self._kept) > _MAX_KEPT:
                    self._kept.popitem(last=False)
        return [known[folder] for folder in folders if folder in known], unread


TRENDS = TrendReader()
"""The cache of this process."""
