"""Seats for the processes of one watch, so that a process that restarts keeps one series."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Set, Tuple

from soakwatch_agent.procfs import PidStat
from soakwatch_agent.sample import object_text
from soakwatch_agent.watching import Identity, Portrait

MOST = 64  # instances a watch


@dataclass
class Owner:
    """The process in a slot, and what was last seen of it."""

    identity: Identity
    cmdline: str
    stat: PidStat
    seen_ns: Optional[int] = None  # when ``stat`` was read; None before the first look at it
    child: bool = False  # of another process of the watch: a worker of a pool, a session


@dataclass
class Slot:
    """One instance of a watch: one series a metric, whoever sits in it."""

    instance: int
    thing: str
    user_text: str
    system_text: str
    owner: Optional[Owner] = None
    former: Optional[Owner] = None
    zombie: Optional[Identity] = None  # a zombie that still shows its state
    next_expensive_ns: int = 0  # when PSS and USS are due again


@dataclass(frozen=True)
class Seating:
    """A process that got a slot, and who sat there before."""

    __slots__ = ("former", "slot")
    slot: Slot
    former: Optional[Owner]


@dataclass
class Slots:
    """The slots of one watch. Slot 0 is there from the start: what never appeared is visible as down."""

    watch: str
    slots: List[Slot] = field(default_factory=list)
    taken: Dict[Identity, Slot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Opens slot 0."""
        self._open()

    def _open(self) -> Slot:
        thing = object_text(process=self.watch, instance=len(self.slots))
        slot = Slot(len(self.slots), thing, f"{thing},mode=user", f"{thing},mode=system")
        self.slots.append(slot)
        return slot

    def release(self, slot: Slot, *, zombie: bool) -> None:
        """The owner of a slot died."""
        if slot.owner is not None:
            del self.taken[slot.owner.identity]
            slot.zombie = slot.owner.identity if zombie else None
            slot.former, slot.owner = slot.owner, None

    def seat(self, births: Iterable[Portrait]) -> Tuple[List[Seating], int]:
        """Gives each new process a slot; returns the seatings and how many found none.

        First those whose command line a free slot's former owner had, then the others in order of their start into
        the lowest free slot. No child takes the slot of a main process that died, nor a main process that of a child:
        one is no restart of the other.
        """
        waiting = sorted(births, key=lambda p: (p.stat.start, p.pid))
        pids = {pid for pid, _ in self.taken} | {face.pid for face in waiting}
        seatings, rest = [], []
        for face in waiting:
            kin = [s for s in self._free(face, pids) if s.former and s.former.cmdline == face.cmdline]
            if kin:
                seatings.append(self._sit(kin[0], face, pids))
            else:
                rest.append(face)
        for at, face in enumerate(rest):
            free = next(iter(self._free(face, pids)), None)
            if free is None:
                if len(self.slots) >= MOST:
                    return seatings, len(rest) - at
                free = self._open()
            seatings.append(self._sit(free, face, pids))
        return seatings, 0

    def _free(self, face: Portrait, pids: Set[int]) -> List[Slot]:
        child = face.stat.parent in pids
        return [s for s in self.slots if s.owner is None and (s.former is None or s.former.child == child)]

    def _sit(self, slot: Slot, face: Portrait, pids: Set[int]) -> Seating:
        slot.owner = Owner(face.identity, face.cmdline, face.stat, child=face.stat.parent in pids)
        slot.zombie, slot.next_expensive_ns = None, 0
        self.taken[face.identity] = slot
        return Seating(slot, slot.former)
