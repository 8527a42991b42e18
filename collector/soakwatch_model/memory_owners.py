"""Who owns a host's memory: the kinds of owners whose sums are all of it, and what is left over."""

from __future__ import annotations

from dataclasses import dataclass

NO_OWNER = "none"
"""The remainder: pages that no counter of the kernel names, such as those that a driver took."""


@dataclass(frozen=True)
class MemoryOwner:
    """One kind of owner: the ``name`` in the label ``owner``, and the ``words`` that people read.

    ``parts`` is what is named within it, in the label ``part`` ("cache", "process"; empty: nothing is). ``estimated``
    says what of it is an estimate; empty: the kernel counts it.
    """

    __slots__ = ("estimated", "name", "parts", "words")
    name: str
    words: str
    parts: str
    estimated: str

    @property
    def in_use(self) -> bool:
        """False of what can be had when a program needs memory: what is free, and what the kernel gives back for it."""
        return self.name not in _CAN_BE_HAD

    def phrase(self, part: str) -> str:
        """The owner, with one of its parts, as it stands in a sentence.

        >>> MemoryOwner("slab", "slab", "cache", "").phrase("kmalloc-512")
        'slab kmalloc-512'
        """
        words = "process" if part and self.name == "processes" else self.words
        return f"{words} {part}" if part else words


_CAN_BE_HAD = frozenset(["reclaimable_slab", "reclaimable_kernel", "page_cache", "buffers", "free"])
_STATM = "by name an estimate: resident less shared memory of each, corrected by smaps of the biggest in turns"
_LEFT = "pages that no counter of the kernel names: of drivers, in full pipes, in buffers of XFS"

OWNERS: tuple[MemoryOwner, ...] = (
    MemoryOwner("processes", "processes", "process", _STATM),
    MemoryOwner("shared", "shared memory", "tmpfs", ""),
    MemoryOwner("huge_pages", "huge pages", "", ""),
    MemoryOwner("slab", "slab", "cache", ""),
    MemoryOwner("vmalloc", "vmalloc", "caller", "less the kernel stacks, which are counted by themselves"),
    MemoryOwner("percpu", "per-CPU", "", ""),
    MemoryOwner("page_tables", "page tables", "", ""),
    MemoryOwner("kernel_stacks", "kernel stacks", "", ""),
    MemoryOwner("sockets", "TCP buffers", "", "at most what no other counter names: a part of them is slab"),
    MemoryOwner("page_pools", "page pools", "interface", "at most what no other counter names"),
    MemoryOwner("compressed_swap", "compressed swap", "", ""),
    MemoryOwner("swap_cache", "swap cache", "", "the pages that no process maps"),
    MemoryOwner("memory_map", "memory map", "", "what was added after the boot"),
    MemoryOwner(NO_OWNER, "no owner: driver pages", "site", _LEFT),
    MemoryOwner("reclaimable_slab", "reclaimable slab", "cache", ""),
    MemoryOwner("reclaimable_kernel", "reclaimable kernel pages", "", ""),
    MemoryOwner("page_cache", "page cache", "", ""),
    MemoryOwner("buffers", "buffers", "", ""),
    MemoryOwner("free", "free", "", "with the pages that each CPU keeps at hand"),
)
"""In the order in which they are drawn, from below: what is in use, what is left over, what can be had back."""

OWNER_BY_NAME: dict[str, MemoryOwner] = {owner.name: owner for owner in OWNERS}

MAPPINGS: tuple[str, ...] = ("heap", "anonymous", "file", "stack", "shared")
"""Kinds of a process's mappings: brk heap; other private memory without a file (arenas, mmap); files (page cache);
stacks; memory shared with other processes (tmpfs, memfd, System V)."""
