"""A whole record into a database, from its beginning to its verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soakwatch.plan.sink import Influxdb
from soakwatch.record.backlog import backlog, cursor_numbers
from soakwatch.sinks.feed import Feed, State, UnwantedError
from soakwatch.sinks.influxdb.write import Refused, Writer

_KEPT = 100


@dataclass(frozen=True, slots=True)
class Pushed:
    """What came of it: lines written, lines refused for good (the first hundred with their reasons), and why it was
    given up (None: it was not)."""

    written: int
    rejected: int
    refused: tuple[Refused, ...]
    trouble: str | None


def push(
    path: Path, run: str, to: Influxdb, patience_s: float, shown: Callable[[str], None] = lambda _: None
) -> Pushed:
    """Send everything; give up once the database has taken nothing for so long. ``shown`` is told how far it is.

    Raises RecordError for a record that cannot be read, PlanError for a token that cannot be had.
    """
    refused: list[Refused] = []
    stop = threading.Event()
    timers: list[threading.Timer] = []

    def keep(one: Refused) -> None:
        if len(refused) < _KEPT:
            refused.append(one)

    def heard(state: State) -> None:
        if state.trouble is None:
            while timers:
                timers.pop().cancel()
            sent = sum(cursor_numbers(state.cursor).values())
            shown(f"{sent / total:.0%} sent, {writer.written:,} lines" if total else "")
        elif not timers:  # another trouble is no reason to begin the waiting anew
            shown(f"{state.trouble}; trying again")
            timer = threading.Timer(patience_s, stop.set)
            timer.daemon = True
            timers.append(timer)
            timer.start()

    total = backlog(path, "").polls
    writer = Writer(to, keep)
    feed = Feed(path, run, writer, stop, heard)
    trouble = None
    try:
        feed.finish()
    except UnwantedError:
        trouble = feed.state.trouble or "it was stopped"
    finally:
        while timers:
            timers.pop().cancel()
        writer.close()
    return Pushed(writer.written, writer.refused, tuple(refused), trouble)
