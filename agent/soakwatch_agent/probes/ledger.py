"""Who owns the memory: all of it by owner, and what is named within each: processes, slab caches, tmpfs, callers."""

from __future__ import annotations

from typing import Dict, Mapping, Optional

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.memory_ledger.ledger import Ledger
from soakwatch_agent.memory_ledger.take import LEDGER_S, LedgerReader
from soakwatch_agent.procfs import clean
from soakwatch_model.memory_owners import NO_OWNER, OWNERS
from soakwatch_model.sample import Answer, object_text

_MOST = {"processes": 32, "slab": 24, "reclaimable_slab": 16, "vmalloc": 12, "shared": 16, "page_pools": 16}
_MOST_SITES = 16


def smallest_named(total: int) -> int:
    """Bytes from which a part of an owner has a series: 1/2000 of the memory, at least 1 MiB.

    >>> smallest_named(24 << 30) >> 20
    12
    """
    return max(total // 2000, 1 << 20)


class NamedParts:
    """Which parts of an owner have a series: those that were large once; at most ``most``, so that names that come and
    go cannot fill a record."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: Dict[str, None] = {}

    def of(self, parts: Mapping[str, int], least: int) -> Dict[str, int]:
        """The sizes of the named parts now: 0 of one that is gone."""
        for name, size in sorted(parts.items(), key=lambda item: -item[1]):
            if size < least:
                break
            if name in self._named:
                continue
            if len(self._named) >= self._most:
                smallest = min(self._named, key=lambda each: parts.get(each, 0))
                if parts.get(smallest, 0) * 4 > size:
                    break
                del self._named[smallest]
            self._named[name] = None
        return {name: parts.get(name, 0) for name in self._named}


class LedgerProbe:
    """Takes a ledger each minute; what is expensive to read in turns (see ``LedgerReader``)."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._reader = LedgerReader(context)
        self._turn = Periodic(LEDGER_S)
        self._named = {owner: NamedParts(most) for owner, most in _MOST.items()}
        self._sites = NamedParts(_MOST_SITES)

    def read(self, now_ns: int) -> Answer:
        """One poll; empty but once a minute."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._turn.due(now_ns):
            return notes.answer()
        watched = self._context.shared.watched
        try:
            ledger = self._reader.read(now_ns, first=watched)
        except (OSError, ValueError) as error:
            reason = self._context.why(error) if isinstance(error, OSError) else str(error)
            notes.fault("system.memory.owned", "", f"the memory of the machine cannot be read: {reason}")
            return notes.answer()
        notes.recovered("system.memory.owned", "")
        self._report_owners(ledger)
        least = smallest_named(ledger.total)
        for owner, parts in ledger.parts.items():
            self._report_parts(owner, self._named[owner].of(parts, least))
        if ledger.sites is not None:
            self._report_parts(NO_OWNER, self._sites.of(ledger.sites, least))
        for process in ledger.processes:
            label = watched.get(process.pid)
            if label is not None and process.mappings is not None and process.looked:
                for kind, size in process.mappings.by_kind.items():
                    notes.sample("process.memory.mapping", f"{label},mapping={kind}", size)
        return notes.answer()

    def _report_owners(self, ledger: Ledger) -> None:
        notes = self._notes
        for owner in OWNERS:
            size: Optional[int] = ledger.owned.get(owner.name)
            if size is not None:
                notes.sample("system.memory.owned", f"owner={owner.name}", size)
        notes.sample("system.memory.unowned", "", max(ledger.left, 0))
        for name in ("processes", "slab", "vmalloc"):  # one file has both kinds of slab
            label, why = f"owner={name}", ledger.unread.get(name)
            if why is None:
                notes.recovered("system.memory.owned.part", label)
            else:
                notes.fault("system.memory.owned.part", label, why)

    def _report_parts(self, owner: str, parts: Mapping[str, int]) -> None:
        for name, size in parts.items():
            self._notes.sample("system.memory.owned.part", object_text(owner=owner, part=clean(name)), size)

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> LedgerProbe:
    """Opens the probe of a host."""
    return LedgerProbe(context)
