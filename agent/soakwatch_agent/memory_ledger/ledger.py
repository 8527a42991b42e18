"""A full ledger, taken now: what memory each owner holds, and the parts that are named within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from soakwatch_agent.memory_ledger.parts import Mappings


@dataclass(frozen=True)
class ProcessMemory:
    """What one process holds, in bytes: ``anonymous`` memory (its own), and ``other``: files and shared memory, which
    count in the page cache and in shared memory. ``mappings`` by kind, where its smaps was read: ``looked`` for this
    ledger, or else for one before."""

    __slots__ = ("anonymous", "looked", "mappings", "name", "other", "pid")
    pid: int
    name: str
    anonymous: int
    other: int
    mappings: Optional[Mappings]
    looked: bool


@dataclass(frozen=True)
class Ledger:
    """All memory of a host by owner, in bytes.

    ``owned`` by owner (``soakwatch_model.memory_owners``) adds up, with what is ``left`` without one, to ``total``
    (MemTotal). ``parts`` of an owner by name are what was read of it: they are at most the owner's. ``unread`` says why
    the parts of an owner could not be read. ``sites`` are the places in the kernel's source that hold memory (of all
    owners), where the kernel keeps such an account; None where it does not.
    """

    __slots__ = ("left", "owned", "parts", "processes", "sites", "total", "unread")
    total: int
    owned: Mapping[str, int]
    left: int
    parts: Mapping[str, Mapping[str, int]]
    processes: Tuple[ProcessMemory, ...]
    sites: Optional[Mapping[str, int]]
    unread: Mapping[str, str]

    @property
    def owned_share(self) -> float:
        """Share of the memory that has an owner, 0 to 1."""
        return 1.0 - abs(self.left) / self.total
