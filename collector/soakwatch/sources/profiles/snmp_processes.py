"""Watched processes over SNMP: each poll finds which of them run, then asks for the rows of those only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.compile import NAMED
from soakwatch.sources.profiles.device_survey import NameSource, PollReading, WantedSeries
from soakwatch.sources.profiles.evaluate import FaultError, change, level, raw
from soakwatch.sources.profiles.expression import SECONDS, MissingError, UndefinedError
from soakwatch.sources.profiles.label_template import Template
from soakwatch.sources.profiles.profile_model import MetricGroup, MetricLine, TableColumn
from soakwatch.sources.profiles.rows import GroupRows, by_column
from soakwatch.sources.profiles.value import Asker, Number, Value
from soakwatch.sources.profiles.watched import ProcessChange, ProcessRow, ProcessWatch, Running
from soakwatch_agent.slots import Slot
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.sample import Fault, Sample, object_text

SECOND = 1_000_000_000
PIDFILE = "a pidfile cannot be read over SNMP: watch the process by name or cmdline, or by ssh or the agent"
NO_TABLE = "the device does not list its processes over SNMP: watch them by ssh or the agent"
_KEYS = ("path", "parameters", "pid")


@dataclass(slots=True)
class WatchState:
    """The watches, and what is kept of them from poll to poll."""

    watches: list[ProcessWatch]
    reported: dict[tuple[str, str], str] = field(default_factory=dict)  # faults, by metric and object
    changes: list[ProcessChange] = field(default_factory=list)  # not reported yet, because a poll failed


def watch_state(processes: Iterable[WatchedProcess]) -> WatchState:
    """The watches of a plan before the first poll."""
    return WatchState([ProcessWatch(watch) for watch in processes])


def key_columns(group: MetricGroup) -> tuple[TableColumn, ...]:
    """The columns that identify a process: those of its name, its path, its parameters and its pid."""
    names = {*_KEYS, *_name(group).names}
    return tuple(column for column in group.columns if column.name in names)


def _name(group: MetricGroup) -> Template:
    for line in group.lines:
        for label, template in line.labels:
            if label == NAMED:
                return template
    column = next((column for column in group.columns if column.name == "name"), group.columns[0])
    return Template(f"{{{column.name}}}", ((column.name,),))


def without_table(state: WatchState) -> tuple[Fault, ...]:
    """The faults of watches on a device that has no table of processes, reported once."""
    faults = []
    for watched in state.watches:
        key = ("process.up", object_text(process=watched.watch.name))
        if key not in state.reported:
            state.reported[key] = NO_TABLE
            faults.append(Fault(*key, NO_TABLE))
    return tuple(faults)


async def poll_processes(asker: Asker, group: MetricGroup, state: WatchState, now_ns: int) -> PollReading:
    """One poll of the table of processes. Raises what the asker raises."""
    keys = tuple(dict.fromkeys(oid for column in key_columns(group) for oid in column.oids))
    rows = GroupRows(group, by_column(keys, await asker.walk(keys)), {})
    rows.settle({})
    name = _name(group)
    processes = {}
    for index in rows.indexes:
        words = name.render(index, lambda key, index=index: rows.text(key, index))  # type: ignore[misc]
        if words:
            processes[index] = ProcessRow(
                index, words, rows.text("path", index), rows.text("parameters", index), rows.text("pid", index)
            )
    for watched in state.watches:
        state.changes += watched.update(processes)
    indexes = [running.row.index for watched in state.watches for _, running in watched.slots.occupied]
    values = await _values(asker, group, rows, keys, indexes)
    poll = _ProcessPoll(group, state, now_ns)
    for process_change in state.changes:
        poll.event(process_change.kind, process_change.slot, process_change.detail)
    state.changes.clear()
    for watched in state.watches:
        poll.read(watched, values)
    return PollReading(tuple(poll.samples), tuple(poll.parts), tuple(poll.faults), tuple(poll.events))


async def _values(
    asker: Asker, group: MetricGroup, rows: GroupRows, keys: tuple[str, ...], indexes: list[str]
) -> Mapping[str, Value]:
    bases = [oid for column in group.columns for oid in column.oids if oid not in keys]
    wanted = [f"{base}.{index}" for index in dict.fromkeys(indexes) for base in bases]
    whole = [oid for scalar in group.scalars for oid in scalar.oids]
    got = await asker.get((*wanted, *whole)) if indexes and (wanted or whole) else {}
    known = {f"{key}.{index}": rows.tree[key][index] for key in keys for index in indexes if index in rows.tree[key]}
    return {**known, **got}


class _ProcessPoll:
    """One poll under way: its samples, faults and events."""

    def __init__(self, group: MetricGroup, state: WatchState, now_ns: int) -> None:
        self._group, self._state, self._now_ns = group, state, now_ns
        self.samples: list[Sample] = []
        self.parts: list[WantedSeries | None] = []
        self.faults: list[Fault] = []
        self.events: list[Event] = []

    def event(self, kind: str, slot: Slot[Running], detail: Mapping[str, str]) -> None:
        """Adds what happened to a process since the previous poll."""
        self.events.append(Event(kind, "", slot.label, self._now_ns, None, detail))

    def read(self, watched: ProcessWatch, values: Mapping[str, Value]) -> None:
        """Adds the readings of one watch."""
        label = object_text(process=watched.watch.name)
        if watched.watch.how == "pidfile":
            self._fault("process.up", label, PIDFILE)
            return
        if watched.unassigned:
            kept = len(watched.slots.occupied)
            self._fault("process.count", label, f"{watched.count} processes match: only {kept} are watched")
        self._sample("process.count", label, watched.count)
        for slot in watched.slots.slots:
            self._sample("process.up", slot.label, int(slot.owner is not None))
            if slot.owner is not None:
                self._sample("process.pid", slot.label, slot.owner.row.pid)
                for line in self._group.lines:
                    self._line(line, slot, slot.owner, values)

    def _line(self, line: MetricLine, slot: Slot[Running], running: Running, values: Mapping[str, Value]) -> None:
        index = running.row.index
        labels = {name: template.render(index, str) for name, template in line.labels if name != NAMED}
        label = f"{slot.label},{object_text(**labels)}" if labels else slot.label
        cells = tuple(cell for name in line.value.names if (cell := self._cell(name, index, values)))
        want = WantedSeries(line, label, cells, line.value)
        try:
            value = self._change(want, running, values) if line.change else level(want, values)
        except MissingError:
            return
        except (FaultError, UndefinedError) as error:
            self._fault(line.metric, label, str(error))
            return
        if value is None:
            return
        if BY_NAME[line.metric].kind == COUNTER:
            self._grow(line.metric, slot, running, value)
        self._sample(line.metric, label, value, want)

    def _grow(self, metric: str, slot: Slot[Running], running: Running, value: Number) -> None:
        """A counter that fell is another process with the same pid and name."""
        if value < running.grown.get(metric, value):
            pid = str(running.row.pid)
            self.event("process.restart", slot, {"old_pid": pid, "new_pid": pid})
            running.before.clear()
        running.grown[metric] = value

    def _cell(self, name: str, index: str, values: Mapping[str, Value]) -> NameSource | None:
        for column in (*self._group.columns, *self._group.scalars):
            if column.name == name:
                oids = [f"{oid}.{index}" for oid in column.oids] if column in self._group.columns else column.oids
                oid = next((oid for oid in oids if oid in values), None)
                return NameSource(name, oid, column) if oid is not None else None
        return None

    def _change(self, want: WantedSeries, running: Running, values: Mapping[str, Value]) -> Number | None:
        now = raw(want, values)
        if None in now.values() or len(now) < len([name for name in want.line.value.names if name != SECONDS]):
            raise MissingError(want.line.value.text)
        before_ns, before = running.before.get(want.line.metric, (self._now_ns, None))
        running.before[want.line.metric] = (self._now_ns, now)
        if before is None or self._now_ns <= before_ns:
            return None
        return change(want, before, now, (self._now_ns - before_ns) / SECOND)

    def _sample(self, metric: str, label: str, value: Number, want: WantedSeries | None = None) -> None:
        self.samples.append(Sample(metric, label, value, self._now_ns))
        self.parts.append(want)
        self._state.reported.pop((metric, label), None)

    def _fault(self, metric: str, label: str, text: str) -> None:
        if self._state.reported.get((metric, label)) != text:
            self._state.reported[metric, label] = text
            self.faults.append(Fault(metric, label, text))
