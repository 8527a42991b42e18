"""Seats for the processes of one watch, so that a process that restarts keeps one series."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Tuple

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


@dataclass
class Slot:
    """One instance of a watch: one series a metric, whoever sits in it."""

    instance: int
    thing: str
    user_text: str
    system_text: str
    owner: Optional[Owner] = None
    former: Optional[Owner] = None
    corpse: Optional[Identity] = None  # a zombie that still shows its state
    dear_ns: int = 0  # when PSS and USS are due again


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

    def release(self, slot: Slot, *, corpse: bool) -> None:
        """The owner of a slot died."""
        if slot.owner is not None:
            del self.taken[slot.owner.identity]
            slot.corpse = slot.owner.identity if corpse else None
            slot.former, slot.owner = slot.owner, None

    def seat(self, births: Iterable[Portrait]) -> Tuple[List[Seating], int]:
        """Gives each new process a slot; returns the seatings and how many found none.

        First those whose command line a free slot's former owner had, then the others in order of their start into
        the lowest free slot.
        """
        waiting = sorted(births, key=lambda p: (p.stat.start, p.pid))
        seatings, rest = [], []
        for face in waiting:
            kin = [s for s in self.slots if s.owner is None and s.former and s.former.cmdline == face.cmdline]
            if kin:
                seatings.append(self._sit(kin[0], face))
            else:
                rest.append(face)
        for at, face in enumerate(rest):
            free = next((s for s in self.slots if s.owner is None), None)
            if free is None:
                if len(self.slots) >= MOST:
                    return seatings, len(rest) - at
                free = self._open()
            seatings.append(self._sit(free, face))
        return seatings, 0

    def _sit(self, slot: Slot, face: Portrait) -> Seating:
        slot.owner, slot.corpse, slot.dear_ns = Owner(face.identity, face.cmdline, face.stat), None, 0
        self.taken[face.identity] = slot
        return Seating(slot, slot.former)
