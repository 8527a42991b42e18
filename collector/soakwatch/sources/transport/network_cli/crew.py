"""Watched processes in the lists that commands show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.seats import ProcessRow, Seats
from soakwatch.sources.transport.network_cli.parsed import Process
from soakwatch_agent.sample import Event, Fault, Sample, object_text

PIDFILE = "a pidfile cannot be read over a command line: watch the process by its name there"
CUT_LIST = "it is not among the processes that the device shows, which are only the busiest"


@dataclass(slots=True)
class WatchedProcesses:
    """Who is watched, and who sat where. The first command that lists processes says who runs (``up``, ``count``,
    starts and restarts); others only add readings of those."""

    seats: list[Seats]
    source: str = ""
    _was: dict[str, ProcessRow] = field(default_factory=dict)

    def look(
        self, command: str, listed: Sequence[Process], at_ns: int, *, whole: bool
    ) -> tuple[list[Sample], list[Event], list[Fault]]:
        """The samples, events and faults of one list."""
        samples: list[Sample] = []
        events: list[Event] = []
        faults: list[Fault] = []
        if not self.seats or not listed:
            return samples, events, faults
        faces = dict(_faces(listed))
        here = {index: face for index, (face, _) in faces.items()}
        self.source = self.source or command
        if self.source == command:
            known = here if whole else {**self._was, **here}
            for seats in self.seats:
                events += [Event(m.kind, m.seat.thing, at_ns, None, m.detail) for m in seats.look(known)]
            self._was = {} if whole else {s.owner.index: s.owner for one in self.seats for s in one.taken if s.owner}
        for seats in self.seats:
            thing = object_text(process=seats.watch.name)
            if seats.watch.how == "pidfile":
                faults.append(Fault("process.up", thing, PIDFILE))
                continue
            if self.source == command and whole:
                samples.append(Sample("process.count", thing, len(seats.taken) + seats.homeless, at_ns))
            for seat in seats.seats:
                found = faces.get(seat.owner.index) if seat.owner else None
                if self.source == command and (whole or found):
                    samples.append(Sample("process.up", seat.thing, int(found is not None), at_ns))
                if found is None:
                    if not whole and self.source == command:
                        faults.append(Fault("process.up", seat.thing, CUT_LIST))
                    continue
                process = found[1]
                if process.pid is not None and self.source == command:
                    samples.append(Sample("process.pid", seat.thing, process.pid, at_ns))
                if process.cpu is not None:
                    samples.append(Sample("process.cpu.utilization", seat.thing, process.cpu, at_ns))
                if process.memory is not None:
                    samples.append(Sample("process.memory.usage", seat.thing, process.memory, at_ns))
        return samples, events, faults


def crew(watches: Iterable[WatchedProcess]) -> WatchedProcesses:
    """The watches of a plan, with nobody seen yet."""
    return WatchedProcesses([Seats(watch) for watch in watches])


def _faces(listed: Sequence[Process]) -> Iterable[tuple[str, tuple[ProcessRow, Process]]]:
    """Each process under an index that stays its own: the pid, or where none is told its name and turn."""
    turns: Counter[str] = Counter()
    for process in listed:
        index = str(process.pid) if process.pid is not None else f"{process.name}.{turns[process.name]}"
        turns[process.name] += 1
        yield index, (ProcessRow(index, process.name, "", ""), process)
