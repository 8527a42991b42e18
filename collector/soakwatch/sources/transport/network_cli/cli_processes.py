"""Watched processes in the lists that the commands of a network system show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.platforms.parsed import Process
from soakwatch.sources.profiles.watched import ProcessRow, ProcessWatch
from soakwatch_model.event import Event
from soakwatch_model.sample import Fault, Sample, object_text

PIDFILE = "a pidfile cannot be read over a command line: watch the process by its name there"
CUT_LIST = "it is not among the processes that the device shows, which are only the busiest"


class WatchedProcesses:
    """The watches of a plan, from poll to poll. The first command that lists processes decides which of them run
    (``up``, ``count``, starts and restarts); others only add readings of those."""

    def __init__(self, watches: Iterable[WatchedProcess]) -> None:
        self._watches = [ProcessWatch(watch) for watch in watches]
        self._command = ""
        self._previous: dict[str, ProcessRow] = {}

    def take(
        self, command: str, listed: Sequence[Process], time_ns: int, *, whole: bool
    ) -> tuple[list[Sample], list[Event], list[Fault]]:
        """The samples, events and faults of one list; ``whole`` is False for a list of the busiest processes only."""
        samples: list[Sample] = []
        events: list[Event] = []
        faults: list[Fault] = []
        if not self._watches or not listed:
            return samples, events, faults
        processes = dict(_indexed(listed))
        self._command = self._command or command
        decides = self._command == command
        if decides:
            events = self._starts_and_exits({index: row for index, (row, _) in processes.items()}, time_ns, whole=whole)
        for watched in self._watches:
            label = object_text(process=watched.watch.name)
            if watched.watch.how == "pidfile":
                faults.append(Fault("process.up", label, PIDFILE))
                continue
            if decides and whole:
                samples.append(Sample("process.count", label, watched.count, time_ns))
            for slot in watched.slots.slots:
                _, process = processes.get(slot.owner.row.index, (None, None)) if slot.owner else (None, None)
                if decides and (whole or process is not None):
                    samples.append(Sample("process.up", slot.label, int(process is not None), time_ns))
                elif decides:
                    faults.append(Fault("process.up", slot.label, CUT_LIST))
                if process is not None:
                    samples += _readings(process, slot.label, time_ns, with_pid=decides)
        return samples, events, faults

    def _starts_and_exits(self, rows: Mapping[str, ProcessRow], time_ns: int, *, whole: bool) -> list[Event]:
        """What started and exited. Of a list of the busiest alone a process that is missing goes on."""
        known = rows if whole else {**self._previous, **rows}
        events = [
            Event(each.kind, "", each.slot.label, time_ns, None, each.detail)
            for watched in self._watches
            for each in watched.update(known)
        ]
        running = [owner.row for watched in self._watches for _, owner in watched.slots.occupied]
        self._previous = {} if whole else {row.index: row for row in running}
        return events


def _readings(process: Process, label: str, time_ns: int, *, with_pid: bool) -> Iterator[Sample]:
    if process.pid is not None and with_pid:
        yield Sample("process.pid", label, process.pid, time_ns)
    if process.cpu is not None:
        yield Sample("process.cpu.utilization", label, process.cpu, time_ns)
    if process.memory is not None:
        yield Sample("process.memory.usage", label, process.memory, time_ns)


def _indexed(listed: Sequence[Process]) -> Iterable[tuple[str, tuple[ProcessRow, Process]]]:
    """Each process under an index that stays its own: the pid, or without one its name and number of that name."""
    turns: Counter[str] = Counter()
    for process in listed:
        index = str(process.pid) if process.pid is not None else f"{process.name}.{turns[process.name]}"
        turns[process.name] += 1
        yield index, (ProcessRow(index, process.name, "", ""), process)
