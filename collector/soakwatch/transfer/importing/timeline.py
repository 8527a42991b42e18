"""The phases and events of an imported run, as the user gives them.

Times are ISO 8601 (without a zone: that of ``--tz``), epoch in seconds to ns as in tables, or a duration such as ``2h``
(or a small number of seconds) from the run's first reading.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds
from soakwatch.core.yaml import Plain, parse
from soakwatch.plan.phase import PHASES
from soakwatch.runs.mark_event import MAX_EVENTS, EventRefusedError, EventRequest, check_ask
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options
from soakwatch.sources.tables.times import TimeOptions, time_reading
from soakwatch_model.event import Event
from soakwatch_model.window import Phase, Window

NS = 10**9
_FROM_START = 1e8  # smaller numbers are seconds from the begin, larger ones epoch times, as in tables
_RANGE = ".."
_YAML = (".yaml", ".yml", ".json")
_KEYS = ("kind", "target", "object", "begin", "end", "expect", "within")
_BEGIN = ("begin", "at", "time")
_EXAMPLE_PHASE = "write NAME=BEGIN..END, such as --phase soak=30m..23h30m"


class Moment(NamedTuple):
    """A time in ns, since 1970 UTC or, if ``relative``, from the run's first reading."""

    time_ns: int
    relative: bool

    def absolute(self, start_ns: int) -> int:
        """Since 1970 UTC, for a run that starts at ``start_ns``."""
        return self.time_ns + (start_ns if self.relative else 0)


@dataclass(frozen=True, slots=True)
class GivenPhase:
    """A phase; None stands for the run's begin or end."""

    name: str
    begin: Moment | None
    end: Moment | None


@dataclass(frozen=True, slots=True)
class GivenEvent:
    """An event, and where the user's file has it."""

    source: str
    request: EventRequest
    begin: Moment
    end: Moment | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Phases and events whose times are not resolved yet."""

    phases: tuple[GivenPhase, ...] = ()
    events: tuple[GivenEvent, ...] = ()

    def phases_in(self, start_ns: int, end_ns: int) -> tuple[Phase, ...]:
        """The phases of a run with readings from ``start_ns`` to ``end_ns``, in order. One phase may have no reading
        (the device died before); if none has any, the times are wrong. Raises DataError."""
        phases = sorted(
            (
                Phase(
                    given.name,
                    Window(
                        start_ns if given.begin is None else given.begin.absolute(start_ns),
                        end_ns if given.end is None else given.end.absolute(start_ns),
                    ),
                )
                for given in self.phases
            ),
            key=lambda phase: phase.window.begin_ns,
        )
        for phase in phases:
            if phase.window.end_ns <= phase.window.begin_ns:
                raise DataError(f"--phase {phase.name}: its end is not after its start: correct its times")
        if phases and not any(p.window.begin_ns < end_ns and p.window.end_ns > start_ns for p in phases):
            raise DataError(f"--phase {phases[0].name}: no phase has any sample: is the time zone right (--tz)?")
        for before, after in pairwise(phases):
            if after.window.begin_ns < before.window.end_ns:
                raise DataError(f"--phase {after.name} starts before {before.name} ends: phases follow each other")
        return tuple(phases)

    def events_in(self, start_ns: int, end_ns: int, targets: Iterable[str]) -> tuple[Event, ...]:
        """The events of a run with these targets. Raises DataError."""
        known = sorted(targets)
        events = []
        for given in self.events:
            request = given.request
            begin_ns = given.begin.absolute(start_ns)
            last_ns = begin_ns if given.end is None else given.end.absolute(start_ns)
            if last_ns < begin_ns:
                raise DataError(f"{given.source}: the {request.kind} ends before it starts: correct one of the two")
            if request.target and request.target not in known:
                raise DataError(
                    f"{given.source}: the run has no target {request.target!r}{hint(request.target, known)}"
                )
            if last_ns < start_ns or begin_ns > end_ns:
                raise DataError(
                    f"{given.source}: the {request.kind} is outside the samples: is the time zone right (--tz)?"
                )
            deadline_ns = None if request.within_s is None else begin_ns + round(request.within_s * NS)
            events.append(
                Event(
                    request.kind,
                    request.target,
                    request.object,
                    begin_ns,
                    last_ns,
                    dict(request.labels),
                    dict(request.expect),
                    deadline_ns,
                )
            )
        return tuple(sorted(events, key=lambda event: event.begin_ns))


@dataclass(frozen=True, slots=True)
class ImportOptions(Options):
    """How to read the tables, and the run's phases and events."""

    timeline: Timeline = field(default_factory=Timeline)


def timeline(phases: Iterable[str], events: str | None, zone: str | None) -> Timeline:
    """Parses ``--phase`` texts and the file of ``--events``. Raises DataError."""
    given_phases = tuple(_phase(text, zone) for text in phases)
    return Timeline(given_phases, () if events is None else tuple(_events(events, zone)))


def moment_of(text: str, zone: str | None = None) -> Moment:
    """Parses a time. Raises ValueError.

    >>> moment_of("2h"), moment_of("90"), moment_of("1970-01-01T00:00:01Z")
    (Moment(time_ns=7200000000000, relative=True), Moment(time_ns=90000000000, relative=True), \
Moment(time_ns=1000000000, relative=False))
    """
    bare = text.strip().removeprefix("+")
    try:
        number = float(bare)
    except ValueError:
        pass
    else:
        if 0 <= number < _FROM_START:
            return Moment(round(number * NS), relative=True)
    try:
        return Moment(round(seconds(bare) * NS), relative=True)
    except ValueError:
        pass
    wrong = f"{text!r} is not a time: write 2026-11-21T20:00:00Z, epoch seconds, or 2h from the first sample"
    try:
        read = time_reading([bare], TimeOptions(zone=zone), "").read([bare])
    except DataError as error:
        raise ValueError(wrong if "--tz" not in str(error) else str(error)) from None
    if bool(read.bad[0]):
        raise ValueError(wrong)
    return Moment(int(read.time_ns[0]), relative=False)


def _phase(text: str, zone: str | None) -> GivenPhase:
    name, equal, times = text.partition("=")
    name = name.strip()
    begin, dots, end = times.partition(_RANGE)
    if not (equal and dots):
        raise DataError(f"--phase {text}: {_EXAMPLE_PHASE}")
    if name not in PHASES:
        raise DataError(f"--phase {text}: unknown phase {name!r}{hint(name, PHASES)}")
    try:
        edges = [moment_of(part, zone) if part.strip() else None for part in (begin, end)]
    except ValueError as error:
        raise DataError(f"--phase {text}: {error}") from None
    return GivenPhase(name, edges[0], edges[1])


def _events(path: str, zone: str | None) -> Iterator[GivenEvent]:
    """The events of a file: CSV with a header, or YAML (JSON) with a list."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DataError(f"--events {path}: cannot be read: {why}") from None
    rows = list(_of_yaml(text, path) if Path(path).suffix.lower() in _YAML else _of_csv(text, path))
    if len(rows) > MAX_EVENTS:
        raise DataError(f"{path}: {len(rows)} events exceed the limit of {MAX_EVENTS} per run")
    for source, row in rows:
        try:
            yield _event(source, row, zone)
        except (ValueError, EventRefusedError) as error:
            raise DataError(f"{source}: {error}") from None


def _of_csv(text: str, path: str) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    numbers = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    if not lines:
        raise DataError(f"{path} is empty: write a header such as {','.join(_KEYS)}, and a line an event")
    sign = next((sign for sign in "\t;," if sign in lines[0]), ",")
    rows = list(csv.reader(lines, delimiter=sign, skipinitialspace=True))
    header = [cell.strip() for cell in rows[0]]
    if "kind" not in header or not any(word in header for word in _BEGIN):
        raise DataError(f"{path}:{numbers[0]}: the header needs the columns kind and begin; it has {', '.join(header)}")
    for number, row in zip(numbers[1:], rows[1:], strict=False):
        if len(row) > len(header):
            raise DataError(f"{path}:{number}: more cells than the header has: quote cells that contain {sign!r}")
        yield f"{path}:{number}", {name: cell.strip() for name, cell in zip(header, row, strict=False) if cell.strip()}


def _of_yaml(text: str, path: str) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    try:
        document = parse(text, path)
    except SoakwatchError as error:
        raise DataError(str(error)) from None
    data = document.data
    root: tuple[str, ...] = ()
    if isinstance(data, dict) and list(data) == ["events"]:
        data, root = data["events"], ("events",)
    if not isinstance(data, list):
        raise DataError(
            f"{path}: write a list of events, such as - {{kind: upgrade, begin: 2h, expect: {{reboot: 1}}}}"
        )
    for index, row in enumerate(data):
        source = document.where((*root, index)) or path
        if not isinstance(row, dict):
            raise DataError(f"{source}: an event is kind and begin, such as {{kind: upgrade, begin: 2h}}")
        yield source, {key: value for key, value in row.items() if value is not None}


def _event(source: str, row: Mapping[str, Plain], zone: str | None) -> GivenEvent:
    if "kind" not in row:
        raise ValueError("kind is missing: write one such as failover")
    begin = next((row[word] for word in _BEGIN if word in row), None)
    if begin is None:
        raise ValueError(f"the {row['kind']} has no begin: give a time, or 2h from the first sample")
    within_s = None if "within" not in row else seconds(row["within"])
    labels = {key: str(value) for key, value in row.items() if key not in _KEYS and key not in _BEGIN}
    request = EventRequest(
        "mark",
        str(row["kind"]),
        target=str(row.get("target", "")),
        object=str(row.get("object", "")),
        expect=_expected(row.get("expect")),
        within_s=within_s,
        labels=labels,
    )
    check_ask(request)
    return GivenEvent(
        source, request, moment_of(str(begin), zone), moment_of(str(row["end"]), zone) if "end" in row else None
    )


def _expected(given: Plain) -> dict[str, int]:
    """Parses expected events: ``reboot=1 process.restart=2`` or a mapping. Raises ValueError."""
    if given is None:
        return {}
    if isinstance(given, dict):
        pairs = [(key, str(value)) for key, value in given.items()]
    else:
        parts = str(given).replace(";", " ").replace(",", " ").split()
        pairs = [(key, count) for key, _, count in (part.partition("=") for part in parts)]
    for key, count in pairs:
        if not (count.isdecimal() and count.isascii() and len(count) < 10):
            raise ValueError(f"expect: {key} needs a number of times, such as {key or 'reboot'}=1")
    return {key: int(count) for key, count in pairs}
