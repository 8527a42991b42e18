"""Watched processes over SNMP: who runs is found anew at each look, then only the rows of those are asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.asker import Asker
from soakwatch.sources.profiles.compile import NAMED
from soakwatch.sources.profiles.evaluate import FaultError, change, level, raw
from soakwatch.sources.profiles.expression import SECONDS, MissingError, UndefinedError
from soakwatch.sources.profiles.model import Column, Group, Line
from soakwatch.sources.profiles.rows import Rows, by_column
from soakwatch.sources.profiles.seats import Move, ProcessRow, Seat, Seats
from soakwatch.sources.profiles.survey import Cell, Reading, Traced, Want
from soakwatch.sources.profiles.template import Template
from soakwatch.sources.profiles.value import Number, Value
from soakwatch_agent.metric import BY_NAME, COUNTER
from soakwatch_agent.sample import Event, Fault, Sample, object_text

SECOND = 1_000_000_000
PIDFILE = "a pidfile cannot be read over SNMP: watch the process by name or cmdline, or by ssh or the agent"
NO_TABLE = "the device does not tell its processes over SNMP: watch them by ssh or the agent"
_KEYS = ("path", "parameters", "pid")


@dataclass(slots=True)
class Watching:
    """What is watched, and who was there at the look before."""

    seats: list[Seats]
    told: dict[tuple[str, str], str] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)  # that no look has told yet, because it failed


def watching(processes: Iterable[WatchedProcess]) -> Watching:
    """The watches of a plan, with nobody seen yet."""
    return Watching([Seats(watch) for watch in processes])


def key_columns(group: Group) -> tuple[Column, ...]:
    """The columns that say who a process is: those of its name, its path, its parameters and its pid."""
    names = {*_KEYS, *_name(group).names}
    return tuple(column for column in group.columns if column.name in names)


def _name(group: Group) -> Template:
    for line in group.lines:
        for label, template in line.labels:
            if label == NAMED:
                return template
    column = next((column for column in group.columns if column.name == "name"), group.columns[0])
    return Template(f"{{{column.name}}}", ((column.name,),))


def without_table(state: Watching) -> tuple[Fault, ...]:
    """The faults of watches on a device that has no table of processes, told once."""
    faults = []
    for seats in state.seats:
        key = ("process.up", object_text(process=seats.watch.name))
        if key not in state.told:
            state.told[key] = NO_TABLE
            faults.append(Fault(*key, NO_TABLE))
    return tuple(faults)


async def look(asker: Asker, group: Group, state: Watching, now_ns: int) -> Reading:
    """One look at the table of processes. Raises what the asker raises."""
    keys = tuple(dict.fromkeys(oid for column in key_columns(group) for oid in column.oids))
    rows = Rows(group, by_column(keys, await asker.walk(keys)), {})
    rows.settle({})
    name = _name(group)
    faces = {}
    for index in rows.indexes:
        words = name.render(index, lambda key, index=index: rows.text(key, index))  # type: ignore[misc]
        if words:
            faces[index] = ProcessRow(
                index, words, rows.text("path", index), rows.text("parameters", index), rows.text("pid", index)
            )
    for seats in state.seats:
        state.moves += seats.look(faces)
    indexes = [seat.owner.index for seats in state.seats for seat in seats.taken if seat.owner is not None]
    values = await _values(asker, group, rows, keys, indexes)
    one = _Look(group, state, now_ns)
    for move in state.moves:
        one.event(move.kind, move.seat, move.detail)
    state.moves.clear()
    for seats in state.seats:
        one.seats(seats, values)
    return Reading(tuple(one.traced), tuple(one.faults), tuple(one.events))


async def _values(
    asker: Asker, group: Group, rows: Rows, keys: tuple[str, ...], indexes: list[str]
) -> Mapping[str, Value]:
    bases = [oid for column in group.columns for oid in column.oids if oid not in keys]
    wanted = [f"{base}.{index}" for index in dict.fromkeys(indexes) for base in bases]
    whole = [oid for scalar in group.scalars for oid in scalar.oids]
    got = await asker.get((*wanted, *whole)) if indexes and (wanted or whole) else {}
    known = {f"{key}.{index}": rows.tree[key][index] for key in keys for index in indexes if index in rows.tree[key]}
    return {**known, **got}


class _Look:
    """One look under way."""

    def __init__(self, group: Group, state: Watching, now_ns: int) -> None:
        self._group, self._state, self._now_ns = group, state, now_ns
        self.traced: list[Traced] = []
        self.faults: list[Fault] = []
        self.events: list[Event] = []

    def event(self, kind: str, seat: Seat, detail: Mapping[str, str]) -> None:
        """Something that happened to a process since the look before."""
        self.events.append(Event(kind, seat.thing, self._now_ns, None, detail))

    def seats(self, seats: Seats, values: Mapping[str, Value]) -> None:
        """Everything of one watch."""
        thing = object_text(process=seats.watch.name)
        if seats.watch.how == "pidfile":
            self._fault("process.up", thing, PIDFILE)
            return
        if seats.homeless:
            told = f"{len(seats.taken) + seats.homeless} processes match: only {len(seats.taken)} are watched"
            self._fault("process.count", thing, told)
        self._sample("process.count", thing, len(seats.taken) + seats.homeless, ())
        for seat in seats.seats:
            self._sample("process.up", seat.thing, int(seat.owner is not None), ())
            if seat.owner is not None:
                self._sample("process.pid", seat.thing, seat.owner.pid, ())
                for line in self._group.lines:
                    self._line(line, seat, seat.owner, values)

    def _line(self, line: Line, seat: Seat, owner: ProcessRow, values: Mapping[str, Value]) -> None:
        labels = {label: template.render(owner.index, str) for label, template in line.labels if label != NAMED}
        thing = f"{seat.thing},{object_text(**labels)}" if labels else seat.thing
        cells = tuple(cell for name in line.value.names if (cell := self._cell(name, owner.index, values)))
        want = Want(line, thing, cells, line.value)
        try:
            value = self._change(want, seat, values) if line.change else level(want, values)
        except MissingError:
            return
        except (FaultError, UndefinedError) as error:
            self._fault(line.metric, thing, str(error))
            return
        if value is None:
            return
        if BY_NAME[line.metric].kind == COUNTER:
            self._grow(line.metric, seat, owner, value)
        self._sample(line.metric, thing, value, want.oids)

    def _grow(self, metric: str, seat: Seat, owner: ProcessRow, value: Number) -> None:
        """A counter that fell is another process with the same pid and name."""
        if value < seat.grown.get(metric, value):
            self.event("process.restart", seat, {"old_pid": str(owner.pid), "new_pid": str(owner.pid)})
            seat.before.clear()
        seat.grown[metric] = value

    def _cell(self, name: str, index: str, values: Mapping[str, Value]) -> Cell | None:
        for column in (*self._group.columns, *self._group.scalars):
            if column.name == name:
                oids = [f"{oid}.{index}" for oid in column.oids] if column in self._group.columns else column.oids
                oid = next((oid for oid in oids if oid in values), None)
                return Cell(name, oid, column) if oid is not None else None
        return None

    def _change(self, want: Want, seat: Seat, values: Mapping[str, Value]) -> Number | None:
        now = raw(want, values)
        if None in now.values() or len(now) < len([name for name in want.line.value.names if name != SECONDS]):
            raise MissingError(want.line.value.text)
        at, before = seat.before.get(want.line.metric, (self._now_ns, None))
        seat.before[want.line.metric] = (self._now_ns, now)
        if before is None or self._now_ns <= at:
            return None
        return change(want, before, now, (self._now_ns - at) / SECOND)

    def _sample(self, metric: str, thing: str, value: Number, oids: tuple[str, ...]) -> None:
        self.traced.append(Traced(Sample(metric, thing, value, self._now_ns), oids))
        self._state.told.pop((metric, thing), None)

    def _fault(self, metric: str, thing: str, words: str) -> None:
        if self._state.told.get((metric, thing)) != words:
            self._state.told[metric, thing] = words
            self.faults.append(Fault(metric, thing, words))
