"""Summaries of all runs in a folder, read again by background threads when a record has changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.catalog import RunLine, folders_of, unreadable
from soakwatch.runs.read_once import Stamp, stamp_of
from soakwatch.runs.summary import RunSummary, summary_of

THREADS = 2
_REST_S, _REST_PER_WORK = 5.0, 20.0
"""Pause before a running run, which changes every second, is read again: at least the first, or the second times the
reading time."""


@dataclass(frozen=True, slots=True)
class _Entry:
    stamp: Stamp
    summary: RunSummary
    read_at: float
    took_s: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The summaries known now, sorted by name, and the number of runs still to be read."""

    summaries: tuple[RunSummary, ...]
    unread: int

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.summaries) + self.unread


class Summaries:
    """Summaries of the runs in a folder. ``overview`` returns what is known, and starts reading the rest.

    Thread-safe. The threads end when there is nothing left to read.
    """

    def __init__(
        self, runs: Path, read: Callable[[Path], RunSummary] = summary_of, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._runs, self._read, self._now_s = runs, read, now_s
        self._known: dict[str, _Entry] = {}
        self._waiting: dict[str, Stamp] = {}
        self._working: set[str] = set()
        self._threads = 0
        self._change = threading.Condition()

    def overview(self, wait_s: float = 0.0) -> Overview:
        """What is known of all runs, waiting up to ``wait_s`` seconds for runs not read yet."""
        stamps = {name: stamp_of(self._runs / name) for name in self._names()}
        with self._change:
            self._forget(stamps)
            for name, stamp in stamps.items():
                if self._stale(name, stamp):
                    self._waiting[name] = stamp
            self._start_threads()
            self._change.wait_for(lambda: not any(name not in self._known for name in stamps), wait_s)
            known = [self._known[name].summary for name in sorted(stamps) if name in self._known]
        return Overview(tuple(map(_with_current_state, known)), len(stamps) - len(known))

    def _names(self) -> list[str]:
        try:
            return [folder.name for folder in folders_of(self._runs)]
        except OSError:
            return []

    def _forget(self, there: Mapping[str, Stamp]) -> None:
        for name in self._known.keys() - there.keys():
            del self._known[name]
        for name in self._waiting.keys() - there.keys():
            del self._waiting[name]

    def _stale(self, name: str, stamp: Stamp) -> bool:
        entry = self._known.get(name)
        if entry is None or name in self._working:
            return name not in self._working
        if entry.stamp == stamp:
            return False
        rest_s = max(_REST_S, _REST_PER_WORK * entry.took_s) if entry.summary.line.state == "running" else 0.0
        return self._now_s() - entry.read_at >= rest_s

    def _start_threads(self) -> None:
        while self._threads < min(THREADS, len(self._waiting)):
            self._threads += 1
            threading.Thread(target=self._work, name="summaries", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._waiting:
                    self._threads -= 1
                    return
                name = max(self._waiting)  # the newest first
                stamp = self._waiting.pop(name)
                self._working.add(name)
            began = self._now_s()
            try:
                summary = self._read(self._runs / name)
                entry = _Entry(stamp, summary, self._now_s(), self._now_s() - began)
            except Exception as error:  # noqa: BLE001 - one unforeseen record must not hide all others
                summary = RunSummary(_internal_error(self._runs / name, error))
                entry = _Entry(stamp, summary, self._now_s(), 0.0)
            with self._change:
                self._working.discard(name)
                self._known[name] = entry
                self._change.notify_all()


def _internal_error(folder: Path, error: Exception) -> RunLine:
    return unreadable(folder, f"internal error while reading it: {type(error).__name__}")


def _with_current_state(summary: RunSummary) -> RunSummary:
    """The summary with the run's current state: a killed run does not change its record."""
    if summary.line.state not in {"running", "broken off"}:
        return summary
    state = lifecycle_of({}, summary.line.folder)
    return summary if state == summary.line.state else replace(summary, line=replace(summary.line, state=state))
