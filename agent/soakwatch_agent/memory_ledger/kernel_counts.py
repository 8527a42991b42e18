"""What the kernel's own counters say of its memory: owners that do not overlap, as a pure function of a few files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from soakwatch_agent.procfs import parse_keyed_kib, parse_sockstat, parse_words

_PCP = re.compile(r"^ +count: +(\d+)$", re.MULTILINE)
_PLAIN = {
    "processes": "AnonPages",
    "shared": "Shmem",
    "huge_pages": "Hugetlb",
    "slab": "SUnreclaim",
    "percpu": "Percpu",
    "page_tables": "PageTables",
    "kernel_stacks": "KernelStack",
    "reclaimable_slab": "SReclaimable",
    "buffers": "Buffers",
}
"""Owners that one line of /proc/meminfo counts. What a kernel does not count has no owner, and is no zero."""
_NEEDED = ("MemTotal", "MemFree", "AnonPages", "Cached", "Slab")


@dataclass(frozen=True)
class KernelCounts:
    """The texts of the kernel's files: /proc/meminfo, vmstat, zoneinfo and net/sockstat; "" where one is missing."""

    __slots__ = ("meminfo", "sockstat", "vmstat", "zoneinfo")
    meminfo: str
    vmstat: str
    zoneinfo: str
    sockstat: str


@dataclass(frozen=True)
class Owned:
    """Bytes of ``total`` (MemTotal) by owner, and those that are ``left`` without one.

    ``left`` is negative by a little where counters were read while memory moved from one to another.
    """

    __slots__ = ("by_owner", "left", "total")
    total: int
    by_owner: Mapping[str, int]
    left: int


def pages_of_cpus(zoneinfo: str) -> int:
    """Free pages that each CPU keeps at hand, which MemFree leaves out.

    >>> pages_of_cpus("  pagesets\\n    cpu: 0\\n      count:    12\\n  vm stats\\n    cpu: 1\\n      count:    3\\n")
    15
    """
    return sum(map(int, _PCP.findall(zoneinfo)))


def owned_by_kernel_counts(
    counts: KernelCounts,
    page: int,
    *,
    socket_page: int,
    stacks_in_vmalloc: bool = True,
    page_pools: Optional[int] = None,
) -> Owned:
    """Divides MemTotal among its owners. Raises ValueError if /proc/meminfo lacks one of those that hold most.

    Each page counts once: shared memory is in Cached, System V, memfd and tmpfs are shared memory; the kernel's stacks
    are allocated by vmalloc on kernels of today (``stacks_in_vmalloc``); mapped swap cache is in AnonPages; TCP buffers
    and ``page_pools`` are pages without another counter, so they are never more than what the others leave.
    ``socket_page`` is the size of a page in the text on sockets.
    """
    info = parse_keyed_kib(counts.meminfo)
    missing = [key for key in _NEEDED if key not in info]
    if missing:  # what is left would be no remainder
        raise ValueError(f"/proc/meminfo has no {missing[0]}")
    vmstat = parse_words(counts.vmstat, "nr_")
    total = info["MemTotal"]
    owned: Dict[str, int] = {name: info[key] for name, key in _PLAIN.items() if key in info}
    if "SUnreclaim" not in info and "Slab" in info:
        owned["slab"] = info["Slab"]
    if "VmallocUsed" in info:
        stacks = min(info.get("KernelStack", 0), info["VmallocUsed"])
        owned["vmalloc"] = info["VmallocUsed"] - (stacks if stacks_in_vmalloc else 0)
    if "SecPageTables" in info:
        owned["page_tables"] = owned.get("page_tables", 0) + info["SecPageTables"]
    if "Hugetlb" not in info and "Hugepagesize" in info:
        owned["huge_pages"] = info.get("HugePages_Total", 0) * info["Hugepagesize"]
    if "nr_zspages" in vmstat or "Zswap" in info:
        owned["compressed_swap"] = max(vmstat.get("nr_zspages", 0) * page, info.get("Zswap", 0))
    if "SwapCached" in info:
        owned["swap_cache"] = min(max(_on_no_list(info), 0), info["SwapCached"])
    if "nr_memmap_pages" in vmstat:
        owned["memory_map"] = vmstat["nr_memmap_pages"] * page
    if "KReclaimable" in info:
        owned["reclaimable_kernel"] = max(info["KReclaimable"] - info.get("SReclaimable", 0), 0)
    if "Cached" in info:
        owned["page_cache"] = max(info["Cached"] - info.get("Shmem", 0), 0)
    owned["free"] = info["MemFree"] + pages_of_cpus(counts.zoneinfo) * page
    left = total - sum(owned.values())
    tcp = parse_sockstat(counts.sockstat).get("TCP", {}).get("mem")
    for name, most in (("page_pools", page_pools), ("sockets", None if tcp is None else tcp * socket_page)):
        if most is not None:
            owned[name] = max(min(most, left), 0)
            left -= owned[name]
    return Owned(total, owned, left)


def _on_no_list(info: Mapping[str, int]) -> int:
    """Pages that wait to be swapped but belong to no process, file or shared memory; all of the swap cache where the
    kernel does not count its lists."""
    if not {"Active", "Inactive", "Unevictable"} <= info.keys():
        return info["SwapCached"]
    counted = info.get("AnonPages", 0) + info.get("Cached", 0) + info.get("Buffers", 0)
    return info["Active"] + info["Inactive"] + info["Unevictable"] - counted
