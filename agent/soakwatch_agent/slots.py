"""Instance slots of a watch: which process gets which series, so that a restarted one keeps its series.

The agent, SNMP and network command lines share this algorithm; each has its own type of process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Generic, Hashable, Iterable, List, Optional, Tuple, TypeVar

from soakwatch_model.sample import object_text

MAX_SLOTS = 64  # instances of a watch

P = TypeVar("P")


@dataclass
class Slot(Generic[P]):
    """One instance of a watch: one series per metric, whichever process occupies it.

    ``label`` is the object text ``process=WATCH,instance=N``; ``former`` is the last process that left.
    """

    instance: int
    label: str
    owner: Optional[P] = None
    former: Optional[P] = None


@dataclass(frozen=True)
class Assignment(Generic[P]):
    """A process that got a slot, and the slot's former process, if any."""

    __slots__ = ("former", "owner", "slot")
    slot: Slot[P]
    owner: P
    former: Optional[P]


class Slots(Generic[P]):
    """The slots of one watch. Slot 0 always exists, so a process that never appeared is visible as down."""

    def __init__(
        self, watch: str, program: Callable[[P], Hashable], kind: Optional[Callable[[P], Hashable]] = None
    ) -> None:
        """``program`` maps a process to what it runs (its command line); a slot keeps to one ``kind`` of process (None:
        all are of one kind)."""
        self._watch, self._program, self._kind = watch, program, kind
        self.slots: List[Slot[P]] = []
        self._add()

    @property
    def occupied(self) -> List[Tuple[Slot[P], P]]:
        """The occupied slots with their processes, in order."""
        return [(slot, slot.owner) for slot in self.slots if slot.owner is not None]

    def release(self, slot: Slot[P]) -> None:
        """Frees a slot whose process has exited."""
        if slot.owner is not None:
            slot.former, slot.owner = slot.owner, None

    def assign(self, processes: Iterable[P]) -> Tuple[List[Assignment[P]], int]:
        """Assigns slots to new processes; returns the assignments and how many processes got none.

        First, a process gets the free slot whose former process ran the same program; then the others get the lowest
        free slots in the given order. A worker never gets the slot of a main process that died, nor the reverse
        (``kind``): that is no restart. At most ``MAX_SLOTS`` slots are opened.
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
