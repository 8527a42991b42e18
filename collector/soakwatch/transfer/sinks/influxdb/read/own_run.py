"""Rebuilds the record of a run that a sink wrote: same readings, polls and events, and so the same verdict.

Two things are lost: files that belong to the run and findings reported while it ran are not in InfluxDB, and counters
beyond 2^53 lose their last digits, as every number there is a float.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from soakwatch.record import Record
from soakwatch.record.bulk import PollStretch, Readings, restore_tables
from soakwatch.record.inventory import inventory_of
from soakwatch.record.merge import unified
from soakwatch.record.model import OUTCOME_NUMBERS, Ints, Source, Values
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks.influxdb.read.account import Account, read_account
from soakwatch.transfer.sinks.influxdb.read.address import Database
from soakwatch.transfer.sinks.influxdb.read.asking import Influx
from soakwatch.transfer.sinks.influxdb.read.copied import (
    Names,
    PollPoints,
    as_points_hold_it,
    edges_of,
    polls_in,
    position_of,
    readings_in,
    windows,
)
from soakwatch_model.event import Event
from soakwatch_model.sample import PollOutcome

ORIGIN_KEY = "read_from"
"""Record meta: where the record was read from."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OwnRun:
    """What was read: the run's name, how many readings and polls, and the precision of its times."""

    run: str
    readings: int
    polls: int
    grain_ns: int


def read_run(database: Database, folder: Path, progress: Callable[[str], None] | None = None) -> OwnRun:
    """Make the record of ``database.run`` in ``folder``. Raises DataError, also if the run is incomplete there."""
    assert database.run is not None
    say = progress or (lambda _: None)
    with Influx(database) as influx:
        influx.check()
        say(f"asking for {database.run}")
        account = read_account(influx, database.run)
        with Record.create(folder) as record:
            sources = _restore(record, folder, account)
            record.set_meta(ORIGIN_KEY, f"{database.shown}?run={database.run}")
            names = Names(account, sources, database.shown)
            errors = {as_points_hold_it(original): original for original in account.errors}
            copy = _Copy(record, account, sources)
            parts = windows(edges_of(influx, account, database.run))
            for number, window in enumerate(parts):
                say(f"{database.run}: {100 * number // len(parts)} %, {copy.readings} of {account.readings} samples")
                copy.put(
                    polls_in(influx, database.run, names, window, errors),
                    readings_in(influx, account, database.run, names, window),
                )
            copy.end()
            record.finish()
    _check(folder, account, database)
    return OwnRun(account.meta.get("run", database.run), account.readings, account.polls, account.grain_ns)


def _restore(record: Record, folder: Path, account: Account) -> list[Source]:
    """Restore everything but readings and polls; returns the sources."""
    for name, value in account.meta.items():
        record.set_meta(name, value)
    for target, role in account.targets.items():
        record.target(target, role)
    sources = []
    for number, target, name, label, interval_ns, required, _ in account.sources:
        source = record.source(target, name, label, interval_ns, required)
        if source.id != number:
            raise DataError(f"the account of this run is out of order: source {number} would be {source.id}")
        sources.append(source)
    for name, begin_ns, end_ns in account.phases:
        record.begin_phase(name, begin_ns)
        if end_ns is not None:
            record.end_phase(end_ns)
    for begin_ns, end_ns in account.spans:
        record.begin_span(begin_ns)
        record.heartbeat(end_ns)
    for _, origin, target, kind, name, begin_ns, end_ns, detail, expect, deadline_ns in account.events:
        event = Event(kind, target, name, begin_ns, end_ns, detail, expect, deadline_ns)
        record.add_event(target, event, origin)
    restore_tables(folder, (series[:6] for series in account.series), account.faults, account.errors)
    return sources


@dataclass(slots=True)
class _Copy:
    """Writes time windows into the record in order. Readings of a source that was not polled in a window (the device's
    clock is ahead, or a poll took long) wait for its next polls."""

    record: Record
    account: Account
    sources: list[Source]
    readings: int = 0
    _waiting: dict[int, tuple[Ints, Values]] = field(default_factory=dict)

    def put(self, polls: dict[int, PollPoints], readings: dict[int, tuple[Ints, Values]]) -> None:
        """Write one time window."""
        self.readings += sum(times.size for times, _ in readings.values())
        for number, (times, values) in readings.items():
            parts = [self._waiting[number]] if number in self._waiting else []
            parts.append((times, values))
            self._waiting[number] = (
                np.concatenate([part_ns for part_ns, _ in parts]),
                unified([part for _, part in parts]),
            )
        for source in self.sources:
            if source.id in polls:
                self._write(source, polls[source.id])

    def end(self) -> None:
        """Raise DataError if readings are left behind the last polls of their source."""
        left = sorted({self.account.series[number][0] for number in self._waiting})
        if left:
            raise DataError(
                f"there are samples of {', '.join(left[:_SHOWN])} without the polls that they belong to: "
                "send the run again with soakwatch sink RUN --to …"
            )

    def _write(self, source: Source, polls: PollPoints) -> None:
        readings = []
        for number in [n for n in self._waiting if self.account.series[n][3] == source.id]:
            times, values = self._waiting.pop(number)
            _, metric, name, _, unit, kind, _, _ = self.account.series[number]
            readings.append(Readings(metric, name, unit, kind, position_of(polls, times), times, values))
        answered = polls.facts.outcome == OUTCOME_NUMBERS[PollOutcome.OK]
        self.record.put_columns(source, PollStretch(polls.due_ns, answered, "", readings, polls.facts))


def _check(folder: Path, account: Account, database: Database) -> None:
    """Raise DataError if the number of polls or readings differs from the account."""
    inventory = inventory_of(folder)
    polls = sum(inventory.polls.values())
    if polls != account.polls:
        raise DataError(_unlike(database, "polls", polls, account.polls, ""))
    copied = [series.readings + len(account.left_out.get(number, ())) for number, series in enumerate(inventory.series)]
    wrong = [row[1] for row, there in zip(account.series, copied, strict=True) if row[7] != there]
    if wrong:
        named = ", ".join(dict.fromkeys(wrong[: 3 * _SHOWN]))
        there = sum(copied)
        raise DataError(_unlike(database, "readings", there, account.readings, f" ({named})"))


def _unlike(database: Database, what: str, there: int, recorded: int, named: str) -> str:
    if there > recorded:
        return (
            f"{database.shown} holds {there} {what} of the run {database.run!r}, not {recorded}{named}: "
            "it is running again, or two runs have one name: send one with soakwatch sink RUN --as NAME --to …"
        )
    return (
        f"{database.shown} holds {there} of the {recorded} {what} that the run {database.run!r} recorded{named}: send "
        "the run again with soakwatch sink RUN --to …; what the bucket no longer retains is lost"
    )
