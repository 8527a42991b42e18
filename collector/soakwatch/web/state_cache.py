"""Caches the states of runs for a second, since each open page asks every other second."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from soakwatch.record import SIDE_SUFFIXES, RecordView, record_file
from soakwatch.report.headline import load_then
from soakwatch.report.load import generators
from soakwatch.runs.device_figures import DeviceFigures
from soakwatch.runs.run_state import RunState, StateReader

_MAX_RUNS = 32
_FRESH_NS = 10**9
_TICK_NS = 50_000_000
"""Longer than the resolution of file times (10 ms with CONFIG_HZ=100)."""
Stamp = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Known:
    reader: StateReader
    figures: DeviceFigures
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Stamp = ()
    state: RunState | None = None
    load: tuple[int, str] = (-1, "")  # the time that was last requested, and the load then


class StateCache:
    """The states of the runs requested last. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder: Path, now_ns: int) -> RunState:
        """The state of a run. Raises RecordError for a record that cannot be read."""
        known = self._of(folder)
        with known.lock:
            stamp = stamp_of(folder)
            last = known.state
            # Always refresh an old state: a writer that was killed does not change the file.
            if last is not None and stamp == known.stamp and 0 <= now_ns - last.now_ns < _FRESH_NS:
                return replace(last, now_ns=now_ns)
            known.state, known.stamp = known.reader.read(now_ns), stamp
            # The next write may leave the same file times, and a new log may have the same size.
            if time.time_ns() - max(changed_ns for changed_ns, _ in stamp) < _TICK_NS:
                known.stamp = ()
            return known.state

    def figures(self, folder: Path) -> tuple[str, ...]:
        """One line per device, the most important first; see ``DeviceFigures``."""
        known = self._of(folder)
        with known.lock:
            return known.figures.lines()

    def load_at(self, folder: Path, time_ns: int) -> str:
        """The load at a time, in words. Raises RecordError."""
        known = self._of(folder)
        with known.lock:
            if known.load[0] != time_ns:
                with RecordView.open(folder) as view:
                    known.load = time_ns, load_then(generators(view), time_ns)
            return known.load[1]

    def _of(self, folder: Path) -> _Known:
        with self._lock:
            known = self._known.get(folder) or _Known(StateReader(folder), DeviceFigures(folder, time.monotonic_ns))
            self._known[folder] = known
            self._known.move_to_end(folder)
            while len(self._known) > _MAX_RUNS:
                self._known.popitem(last=False)
            return known


def stamp_of(folder: Path) -> Stamp:
    """Time and size of the record's files: as long as they are the same, so is the record."""
    file = record_file(folder)
    stamp = []
    for suffix in ("", *SIDE_SUFFIXES):
        try:
            status = file.with_name(file.name + suffix).stat()
        except OSError:
            stamp.append((0, 0))
        else:
            stamp.append((status.st_mtime_ns, status.st_size))
    return tuple(stamp)
