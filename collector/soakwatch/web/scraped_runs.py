"""What /metrics shows of a run: its state and the newest reading of each series; if it is over, the last ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from soakwatch.runs.run_state import RunState
from soakwatch.web.openmetrics import Reading
from soakwatch.web.series_reader import SeriesReader
from soakwatch.web.state_cache import Stamp, StateCache, stamp_of
from soakwatch_model.roles import MONITOR

GOING_ON = frozenset({"running", "waiting"})
_MAX_RUNS = 64


@dataclass(frozen=True, slots=True)
class ScrapedRun:
    """A run as it is exposed; ``left`` counts series beyond the limit."""

    state: RunState
    readings: tuple[Reading, ...]
    left: int


class ScrapedRuns:
    """Reads runs, and keeps those that are over as long as their records do not change. Thread-safe."""

    def __init__(self, states: StateCache, reader: SeriesReader) -> None:
        self._states, self._reader = states, reader
        self._over: OrderedDict[tuple[Path, int], tuple[Stamp, ScrapedRun]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder: Path, now_ns: int, limit: int) -> ScrapedRun:
        """A run with at most ``limit`` series. Raises RecordError."""
        stamp = stamp_of(folder)
        with self._lock:
            known = self._over.get((folder, limit))
        if known is not None and known[0] == stamp:
            return known[1]
        state = self._states.read(folder, now_ns)
        # What no longer came a minute before the end is not how the device was at the end.
        until_ns = now_ns if state.standing in GOING_ON or state.last_ns is None else state.last_ns
        newest, left = self._reader.newest(folder, until_ns, limit)
        readings = tuple(
            Reading(key, known_.unit, known_.kind, value) for key, known_, value in newest if key.target != MONITOR
        )
        run = ScrapedRun(state, readings, left)
        if state.standing not in GOING_ON:
            with self._lock:
                self._over[folder, limit] = stamp, run
                while len(self._over) > _MAX_RUNS:
                    self._over.popitem(last=False)
        return run
