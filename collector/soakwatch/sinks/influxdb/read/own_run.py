"""A run that a sink wrote, as a record again: the same readings, polls and events, and so the same verdict.

What cannot be the same: files that belong to the run and what was said while it went on are not in InfluxDB; counters
beyond 2^53 lose their last digits, for every number there is a float.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from soakwatch.record import Record
from soakwatch.record.bulk import Readings, Stretch, restore_tables
from soakwatch.record.inventory import inventory_of
from soakwatch.record.merge import unified
from soakwatch.record.model import OUTCOME_NUMBERS, Ints, Source, Values
from soakwatch.sinks.influxdb.read.account import Account, read_account
from soakwatch.sinks.influxdb.read.address import Place
from soakwatch.sinks.influxdb.read.asking import Influx
from soakwatch.sinks.influxdb.read.copied import (
    Names,
    PollPoints,
    as_points_hold_it,
    edges_of,
    polls_in,
    position_of,
    readings_in,
    windows,
)
from soakwatch.sources.tables.errors import DataError
from soakwatch_agent.sample import PollOutcome
from soakwatch_rules.rule import Event

ORIGIN_KEY = "read_from"
"""The meta that says where a record was read back from."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OwnRun:
    """What was read: the run's name, how many readings and polls it has, and what their times were cut to."""

    run: str
    readings: int
    polls: int
    grain_ns: int


def read_run(place: Place, folder: Path, progress: Callable[[str], None] | None = None) -> OwnRun:
    """Make the record of ``place.run`` in ``folder``. Raises DataError, also for a run that is not there whole."""
    assert place.run is not None
    say = progress or (lambda _: None)
    with Influx(place) as influx:
        influx.check()
        say(f"asking for {place.run}")
        account = read_account(influx, place.run)
        with Record.create(folder) as record:
            sources = _restore(record, folder, account)
            record.set_meta(ORIGIN_KEY, f"{place.shown}?run={place.run}")
            names = Names(account, sources, place.shown)
            errors = {as_points_hold_it(said): said for said in account.errors}
            copy = _Copy(record, account, sources)
            parts = windows(edges_of(influx, account, place.run))
            for number, window in enumerate(parts):
                say(f"{place.run}: {100 * number // len(parts)} %, {copy.readings} of {account.readings} readings")
                copy.put(
                    polls_in(influx, place.run, names, window, errors),
                    readings_in(influx, account, place.run, names, window),
                )
            copy.end()
            record.finish()
    _check(folder, account, place)
    return OwnRun(account.meta.get("run", place.run), account.readings, account.polls, account.grain_ns)


def _restore(record: Record, folder: Path, account: Account) -> list[Source]:
    """Everything but readings and polls; returns the sources."""
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
    restore_tables(folder, (one[:6] for one in account.series), account.faults, account.errors)
    return sources


@dataclass(slots=True)
class _Copy:
    """Pieces on their way into the record, in order of time. Readings of a source that was not polled in a piece (the
    device's clock is ahead, or a look took long) wait for its next polls."""

    record: Record
    account: Account
    sources: list[Source]
    readings: int = 0
    _waiting: dict[int, tuple[Ints, Values]] = field(default_factory=dict)

    def put(self, polls: dict[int, PollPoints], found: dict[int, tuple[Ints, Values]]) -> None:
        """One piece."""
        self.readings += sum(times.size for times, _ in found.values())
        for number, (times, values) in found.items():
            parts = [self._waiting[number]] if number in self._waiting else []
            parts.append((times, values))
            self._waiting[number] = np.concatenate([one for one, _ in parts]), unified([one for _, one in parts])
        for source in self.sources:
            if source.id in polls:
                self._write(source, polls[source.id])

    def end(self) -> None:
        """What still waits: readings behind the last polls of their source. Raises DataError."""
        left = sorted({self.account.series[number][0] for number in self._waiting})
        if left:
            raise DataError(
                f"there are readings of {', '.join(left[:_SHOWN])} without any poll that brought them: "
                "send the run again with soakwatch sink RUN --to …"
            )

    def _write(self, source: Source, polls: PollPoints) -> None:
        readings = []
        for number in [n for n in self._waiting if self.account.series[n][3] == source.id]:
            times, values = self._waiting.pop(number)
            _, metric, name, _, unit, kind, _, _ = self.account.series[number]
            readings.append(Readings(metric, name, unit, kind, position_of(polls, times), times, values))
        answered = polls.facts.outcome == OUTCOME_NUMBERS[PollOutcome.OK]
        self.record.put_stretch(source, Stretch(polls.due_ns, answered, "", readings, polls.facts))


def _check(folder: Path, account: Account, place: Place) -> None:
    """Nothing is missing and nothing is too much. Raises DataError."""
    inventory = inventory_of(folder)
    polls = sum(inventory.polls.values())
    if polls != account.polls:
        raise DataError(_unlike(place, "polls", polls, account.polls, ""))
    copied = [made.readings + len(account.left_out.get(number, ())) for number, made in enumerate(inventory.series)]
    wrong = [one[1] for one, there in zip(account.series, copied, strict=True) if one[7] != there]
    if wrong:
        named = ", ".join(dict.fromkeys(wrong[: 3 * _SHOWN]))
        there = sum(copied)
        raise DataError(_unlike(place, "readings", there, account.readings, f" ({named})"))


def _unlike(place: Place, what: str, there: int, recorded: int, named: str) -> str:
    if there > recorded:
        return (
            f"{place.shown} holds {there} {what} of the run {place.run!r}, which recorded {recorded}{named}: it goes "
            "on again, or two runs were sent under one name: soakwatch sink RUN --as NAME --to … sends it under another"
        )
    return (
        f"{place.shown} holds {there} of the {recorded} {what} that the run {place.run!r} recorded{named}: send "
        "the run again with soakwatch sink RUN --to …; if the bucket keeps too short, what is gone is gone"
    )
