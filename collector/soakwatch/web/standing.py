"""How runs stand, as a page asks it every other second: what was read a moment ago serves everybody who asks now."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from soakwatch.record import SIDE_SUFFIXES, record_file
from soakwatch.runs.state import RunState, StateReader

_MOST_RUNS = 32
_FRESH_NS = 10**9
Stamp = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Known:
    reader: StateReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Stamp = ()
    state: RunState | None = None


class States:
    """The states of the runs that were asked for last. For several threads at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, folder: Path, now_ns: int) -> RunState:
        """How a run stands. Raises RecordError for a record that cannot be read."""
        with self._lock:
            known = self._known.setdefault(folder, _Known(StateReader(folder)))
            self._known.move_to_end(folder)
            while len(self._known) > _MOST_RUNS:
                self._known.popitem(last=False)
        with known.lock:
            stamp = _stamp(folder)
            last = known.state
            # A writer that was killed leaves no trace in the file: what is old is read again all the same.
            if last is not None and stamp == known.stamp and 0 <= now_ns - last.now_ns < _FRESH_NS:
                return replace(last, now_ns=now_ns)
            known.state, known.stamp = known.reader.read(now_ns), stamp
            return known.state


def _stamp(folder: Path) -> Stamp:
    """What changes whenever the record does."""
    file = record_file(folder)
    found = []
    for suffix in ("", *SIDE_SUFFIXES):
        try:
            status = file.with_name(file.name + suffix).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)
