"""Who owns a growth of memory: owners of a host's memory, or kinds of a process's mappings, by what they grew."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch_model.fact import OwnerGrew
from soakwatch_model.label import label
from soakwatch_model.memory_owners import NO_OWNER, OWNER_BY_NAME
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import net_change
from soakwatch_rules.wording.quantities import percent, quantity

OWNED: Final = "system.memory.owned"
PART: Final = "system.memory.owned.part"
UNOWNED: Final = "system.memory.unowned"
MAPPING: Final = "process.memory.mapping"
LEDGER: Final = (OWNED, PART, UNOWNED)

_SEEN: Final = 0.5  # share of the window that the ledger must cover
_LATE: Final = 0.1  # share of the window: a part whose readings begin later was too small to be named before
_NAMED: Final = 0.05  # share of the growth from which an owner is named
_MOST: Final = 4  # owners that are named
_BULK: Final = 0.8  # share of an owner's growth from which its part stands for it


@dataclass(frozen=True, slots=True)
class _Grown:
    """An owner or part of one, and its growth in bytes."""

    owner: str
    part: str
    grew: float


def owners_of_growth(ledger: Sequence[Series], window: Window) -> tuple[OwnerGrew, ...]:
    """The owners of the growth of a host's memory in use, the largest first; none if it did not grow, or if the ledger
    covers less than half of the window.

    The growth is the sum of what is in use: page cache, reclaimable slab and free memory are not. A part that was too
    small to have a series before counts from zero. Within an owner, what none of its named parts grew is of the owner
    as a whole.

    >>> import numpy as np
    >>> from soakwatch_model.series import trait_of
    >>> time_ns = np.arange(32, dtype=np.int64) * 60 * 10**9
    >>> def of(metric, text, values):
    ...     return Series("dut", metric, text, trait_of(metric), time_ns, values)
    >>> grows, rests = np.linspace(1e9, 2e9, 32), np.full(32, 5e9)
    >>> found = owners_of_growth(
    ...     (
    ...         of(OWNED, "owner=slab", grows), of(PART, "owner=slab,part=kmalloc-512", grows),
    ...         of(OWNED, "owner=page_cache", 3 * grows), of(UNOWNED, "", rests),
    ...     ),
    ...     Window(0, 32 * 60 * 10**9),
    ... )
    >>> [(each.owner, each.part, round(each.share, 2)) for each in found]
    [('slab', 'kmalloc-512', 1.0)]
    """
    ledger = [each for each in (series.finite() for series in ledger) if len(each)]
    whole: dict[str, float] = {}
    parts: dict[str, list[Series]] = {}
    for series in ledger:
        owner = NO_OWNER if series.metric == UNOWNED else label(series.object, "owner") or ""
        known = OWNER_BY_NAME.get(owner)
        if known is None or not known.in_use or series.metric not in LEDGER:
            continue
        if series.metric == PART:
            parts.setdefault(owner, []).append(series)
        elif _covers(series, window):
            whole[owner] = net_change(series.values)
    total = math.fsum(whole.values())
    if NO_OWNER not in whole or not total > 0:
        return ()
    changes = {owner: _changes_of_parts(own, window) for owner, own in parts.items()}
    found = [each for owner, grew in whole.items() for each in _divided(owner, grew, changes.get(owner, {}))]
    return _named(found, total)


def mappings_of_growth(mappings: Sequence[Series], window: Window) -> tuple[OwnerGrew, ...]:
    """The kinds of mappings of one process that grew, the largest first; none if they did not grow in all, or if they
    cover less than half of the window."""
    seen = [each for each in (series.finite() for series in mappings) if len(each) and _covers(each, window)]
    found = [_Grown("", label(each.object, "mapping") or "", net_change(each.values)) for each in seen]
    total = math.fsum(each.grew for each in found)
    return _named(found, total) if total > 0 else ()


def grown_words(grown: Iterable[OwnerGrew]) -> str:
    """What grew, in words for the end of a sentence; empty for nothing.

    >>> grown_words([OwnerGrew("slab", "kmalloc-512", 1.1 * 2**30, 0.92, 1.2 * 2**30)])
    'slab kmalloc-512 +1.1 GiB (92 % of the growth)'
    >>> grown_words([OwnerGrew("", "heap", 2**30, 0.995, 2**30)])
    'heap +1 GiB (all of the growth)'
    """
    texts: list[str] = []
    for each in grown:
        owner = OWNER_BY_NAME.get(each.owner)
        name = each.part if owner is None else owner.phrase(each.part)
        share = "all" if each.share >= 0.985 else percent(round(each.share, 2))
        texts.append(f"{name} +{quantity(each.grew, 'By')} ({share}{'' if texts else ' of the growth'})")
    return ", ".join(texts)


_STEPS: Final[Mapping[str, str]] = {
    "slab": (
        "Find what allocates {part}: bpftrace -e 'tracepoint:kmem:kmem_cache_alloc {{ @[kstack] = count(); }}' on the "
        "host, or boot it with slub_debug=U and read alloc_traces; show kernel, modules and the table of owners to "
        "who maintains them."
    ),
    "vmalloc": "Find what of the kernel or its modules calls {part}: /proc/vmallocinfo has each of its areas.",
    NO_OWNER: (
        "No counter of the kernel names these pages: a driver holds them, or full pipes do. Boot the host with "
        "page_owner=on and compare /sys/kernel/debug/page_owner now and later, or use a kernel with /proc/allocinfo."
    ),
    "shared": "See what fills shared memory {part} (du -sh, ipcs -m, lsof) and which process writes it.",
    "page_tables": "A process maps ever more addresses: compare VmPTE of /proc/PID/status now and later.",
    "kernel_stacks": "Threads are started and do not end: compare the number of threads of each process.",
    "huge_pages": "Huge pages were set aside: see who changes vm.nr_hugepages.",
    "sockets": "Queues of TCP connections fill, for their peers do not read: ss -tm shows which.",
}


def step_for(grew: OwnerGrew) -> str:
    """What to do next about the owner that grew most; empty where the rule's own advice is better.

    >>> step_for(OwnerGrew("processes", "nginx", 1.0, 1.0, 1.0)), step_for(OwnerGrew("shared", "/run", 1.0, 1.0, 1.0))
    ('', 'See what fills shared memory /run (du -sh, ipcs -m, lsof) and which process writes it.')
    """
    owner = OWNER_BY_NAME.get(grew.owner)
    if owner is None or grew.owner not in _STEPS:
        return ""
    return _STEPS[grew.owner].format(part=grew.part or f"its {owner.parts}" if owner.parts else owner.words)


def _covers(series: Series, window: Window) -> bool:
    return int(series.time_ns[-1]) - int(series.time_ns[0]) >= _SEEN * (window.end_ns - window.begin_ns)


def _changes_of_parts(parts: Sequence[Series], window: Window) -> dict[str, float]:
    """The growth of each part of one owner: from zero if it was named later than others, to zero if it is no longer
    named as they are. The parts of an owner are read together, but not at every ledger."""
    first_ns = min(int(each.time_ns[0]) for each in parts)
    last_ns = max(int(each.time_ns[-1]) for each in parts)
    slack = _LATE * (window.end_ns - window.begin_ns)
    changes: dict[str, float] = {}
    for series in parts:
        some = max(1, len(series) // 16)
        first, last = median(series.values[:some]), median(series.values[-some:])
        begun = int(series.time_ns[0]) > first_ns + slack
        ended = int(series.time_ns[-1]) < last_ns - slack
        changes[label(series.object, "part") or ""] = (0.0 if ended else last) - (0.0 if begun else first)
    return changes


def _divided(owner: str, grew: float, parts: Mapping[str, float]) -> list[_Grown]:
    """An owner's growth, divided among its parts that grew; one that grew nearly all of it stands for the owner."""
    rising = {part: change for part, change in parts.items() if change > _NAMED * abs(grew)}
    if not rising or not grew > 0:
        return [_Grown(owner, "", grew)]
    part, most = max(rising.items(), key=lambda item: (item[1], item[0]))
    if len(rising) == 1 and _BULK * grew <= most <= grew / _BULK:
        return [_Grown(owner, part, grew)]
    return [
        *(_Grown(owner, name, change) for name, change in rising.items()),
        _Grown(owner, "", grew - math.fsum(rising.values())),
    ]


def _named(found: Iterable[_Grown], total: float) -> tuple[OwnerGrew, ...]:
    largest = sorted(found, key=lambda each: (-each.grew, each.owner, each.part))
    return tuple(
        OwnerGrew(each.owner, each.part, each.grew, each.grew / total, total)
        for each in largest[:_MOST]
        if each.grew >= _NAMED * total
    )
