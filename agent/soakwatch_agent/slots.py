"""Instance slots of a watch: which process gets which series, so that one that restarts keeps its own.

The agent, SNMP and network command lines assign with this one algorithm; they differ in what a process is to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Generic, Hashable, Iterable, List, Optional, Tuple, TypeVar

from soakwatch_model.sample import object_text

MAX_SLOTS = 64  # instances of a watch

P = TypeVar("P")


@dataclass
class Slot(Generic[P]):
    """One instance of a watch: one series a metric, whichever process occupies it.

    ``label`` is the object text ``process=WATCH,instance=N``; ``former`` is the process that left last.
    """

    instance: int
    label: str
    owner: Optional[P] = None
    former: Optional[P] = None


@dataclass(frozen=True)
class Assignment(Generic[P]):
    """A process that got a slot, and the one that had it before, if any."""

    __slots__ = ("former", "owner", "slot")
    slot: Slot[P]
    owner: P
    former: Optional[P]


class Slots(Generic[P]):
    """The slots of one watch. Slot 0 exists from the start: what never appeared is visible as down."""

    def __init__(
        self, watch: str, program: Callable[[P], Hashable], kind: Optional[Callable[[P], Hashable]] = None
    ) -> None:
        """``program`` tells which processes run the same program (its command line); a slot never passes from one
        ``kind`` of process to another (None: all are of one kind)."""
        self._watch, self._program, self._kind = watch, program, kind
        self.slots: List[Slot[P]] = []
        self._add()

    @property
    def occupied(self) -> List[Tuple[Slot[P], P]]:
        """The slots that have a process, each with it, in order."""
        return [(slot, slot.owner) for slot in self.slots if slot.owner is not None]

    def release(self, slot: Slot[P]) -> None:
        """Frees a slot: its process has exited."""
        if slot.owner is not None:
            slot.former, slot.owner = slot.owner, None

    def assign(self, processes: Iterable[P]) -> Tuple[List[Assignment[P]], int]:
        """Gives new processes slots; returns the assignments, and how many processes got none.

        First each process whose program a free slot's former process ran, then the others, in the given order, into
        the lowest free slot. A worker never takes the slot of a main process that died, nor the other way round
        (``kind``): neither is a restart of the other. At most ``MAX_SLOTS`` slots are opened.
        """
        assignments, others = [], []
        for process in processes:
            program = self._program(process)
            same = [s for s in self._free(process) if s.former is not None and self._program(s.former) == program]
            if same:
                assignments.append(_occupy(same[0], process))
            else:
                others.append(process)
        for index, process in enumerate(others):
            slot = next(iter(self._free(process)), None)
            if slot is None:
                if len(self.slots) >= MAX_SLOTS:
                    return assignments, len(others) - index
                slot = self._add()
            assignments.append(_occupy(slot, process))
        return assignments, 0

    def _add(self) -> Slot[P]:
        instance = len(self.slots)
        slot: Slot[P] = Slot(instance, object_text(process=self._watch, instance=instance))
        self.slots.append(slot)
        return slot

    def _free(self, process: P) -> List[Slot[P]]:
        kind = self._kind
        return [
            slot
            for slot in self.slots
            if slot.owner is None and (slot.former is None or kind is None or kind(slot.former) == kind(process))
        ]


def _occupy(slot: Slot[P], process: P) -> Assignment[P]:
    slot.owner = process
    return Assignment(slot, process, slot.former)
