"""The one algorithm of instance slots: against the two that it replaced, on random histories of processes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from soakwatch_agent.slots import MAX_SLOTS, Slots


@dataclass(frozen=True)
class Process:
    """A process: the order in which it started, its program, whether it is a worker."""

    started: int
    program: str
    worker: bool


@dataclass
class Seat:
    """A slot of the references."""

    owner: Process | None = None
    former: Process | None = None


@dataclass
class Reference:
    """The agent's old algorithm (workers apart) or that of SNMP (``apart`` False)."""

    apart: bool
    seats: list[Seat] = field(default_factory=lambda: [Seat()])

    def seat(self, waiting: list[Process]) -> int:
        """Gives each a seat; returns how many got none."""
        rest = []
        for process in waiting:
            kin = [s for s in self._free(process) if s.former and s.former.program == process.program]
            if kin:
                kin[0].owner = process
            else:
                rest.append(process)
        for index, process in enumerate(rest):
            free = next(iter(self._free(process)), None)
            if free is None:
                if len(self.seats) >= MAX_SLOTS:
                    return len(rest) - index
                free = Seat()
                self.seats.append(free)
            free.owner = process
        return 0

    def _free(self, process: Process) -> list[Seat]:
        free = [seat for seat in self.seats if seat.owner is None]
        return [s for s in free if not self.apart or s.former is None or s.former.worker == process.worker]


Births = list[tuple[str, bool]]
BIRTHS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40)
DEATHS = st.lists(st.integers(0, 80), max_size=20)


def compare(slots: Slots[Process], reference: Reference, history: list[tuple[Births, list[int]]]) -> None:
    """Both get the same births and deaths; after each round the same process has the same instance."""
    started = 0
    for births, deaths in history:
        processes = []
        for name, is_worker in births:
            started += 1
            processes.append(Process(started, name, is_worker))
        _, unassigned = slots.assign(processes)
        assert unassigned == reference.seat(processes)
        assert [slot.owner for slot in slots.slots] == [seat.owner for seat in reference.seats]
        assert [slot.former for slot in slots.slots] == [seat.former for seat in reference.seats]
        for index in deaths:
            if index < len(slots.slots) and (owner := slots.slots[index].owner) is not None:
                slots.release(slots.slots[index])
                reference.seats[index].former, reference.seats[index].owner = owner, None


def worker(process: Process) -> bool:
    """Whether it is a worker."""
    return process.worker


def program(process: Process) -> str:
    """What it runs."""
    return process.program


@given(st.lists(st.tuples(BIRTHS, DEATHS), max_size=8))
def test_slots_are_given_as_the_agent_gave_them(history: list[tuple[Births, list[int]]]) -> None:
    """Same program first, then the lowest free slot; workers and main processes never share one."""
    compare(Slots("w", program, worker), Reference(apart=True), history)


@given(st.lists(st.tuples(BIRTHS, DEATHS), max_size=8))
def test_slots_are_given_as_snmp_gave_them(history: list[tuple[Births, list[int]]]) -> None:
    """The same without kinds of processes."""
    compare(Slots("w", program), Reference(apart=False), history)


def test_a_restart_names_the_process_before() -> None:
    """An assignment carries the former process of its slot; the labels count the instances."""
    slots = Slots("bgpd", program)
    first, second = Process(1, "bgpd", worker=False), Process(2, "bgpd", worker=False)
    slots.assign([first])
    slots.release(slots.slots[0])
    (assignment,), unassigned = slots.assign([second])
    assert (assignment.former, assignment.owner, unassigned) == (first, second, 0)
    assert assignment.slot.label == "process=bgpd,instance=0"
    assert slots.occupied == [(slots.slots[0], second)]
