"""The parts of an owner: slab caches, callers of vmalloc, allocation sites, and mappings of a process; pure parsers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, Mapping, Optional, Tuple

from soakwatch_model.memory_owners import MAPPINGS

_STACK_CALLERS = frozenset(
    ["dup_task_struct", "copy_process", "kernel_clone", "_do_fork", "alloc_thread_stack_node", "fork_idle"]
)
_PAGES = re.compile(r" pages=(\d+) ")
_RECLAIMED = re.compile(
    r"dentry|buffer_head|radix_tree_node|bdev_cache|dax_cache|xfs_(?:buf|ili|inode)|extent_status|ext4_extent_status"
    r"|ext4_(?:groupinfo_\d+k|io_end|free_data)|jbd2_.*|dquot|mb_cache_entry|kmalloc-rcl-.*"
    r"|\w+_inode(?:_cache|_item|_info)?|inode_cache"
)
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ (\S{4}) \S+ \S+ (\d+)[ \t]*(.*)$", re.MULTILINE)
_PSS = re.compile(r"^Pss: +(\d+) kB$", re.MULTILINE)
_ANONYMOUS = re.compile(r"^Anonymous: +(\d+) kB$", re.MULTILINE)
_RSS = re.compile(r"^Rss: +(\d+) kB$", re.MULTILINE)
_SHARED = ("/dev/shm/", "/SYSV", "/memfd:", "/dev/zero", "/drm", "/i915", "anon_inode:")  # noqa: S108 - names of mappings


@dataclass(frozen=True)
class Slab:
    """Bytes of the slab caches, of those that the kernel can give back by themselves, by cache."""

    __slots__ = ("fixed", "reclaimable")
    fixed: Mapping[str, int]
    reclaimable: Mapping[str, int]


def reclaimed_by_name(cache: str) -> bool:
    """Whether the kernel gives a cache back when memory runs short, by its name alone: /proc/slabinfo does not say it.

    >>> reclaimed_by_name("dentry"), reclaimed_by_name("ext4_inode_cache"), reclaimed_by_name("kmalloc-512")
    (True, True, False)
    """
    return _RECLAIMED.fullmatch(cache) is not None


def parse_slabinfo(text: str, page: int, reclaimable: Optional[FrozenSet[str]] = None) -> Slab:
    """Parses /proc/slabinfo; ``reclaimable`` are the caches known to be, None: by their names.

    >>> parse_slabinfo("head\\n# name\\ndentry 40 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\\n", 4096).reclaimable
    {'dentry': 8192}
    """
    fixed: Dict[str, int] = {}
    given: Dict[str, int] = {}
    for line in text.splitlines()[2:]:
        word = line.split()
        if len(word) < 16 or not word[5].isdigit() or not word[14].isdigit():
            continue
        size = int(word[14]) * int(word[5]) * page
        back = reclaimed_by_name(word[0]) if reclaimable is None else word[0] in reclaimable
        (given if back else fixed)[word[0]] = size
    return Slab(fixed, given)


@dataclass(frozen=True)
class Vmalloc:
    """Bytes of pages that vmalloc took, by the function that asked; kernel ``stacks`` apart."""

    __slots__ = ("by_caller", "stacks")
    by_caller: Mapping[str, int]
    stacks: int


def parse_vmallocinfo(text: str, page: int) -> Vmalloc:
    """Parses /proc/vmallocinfo. What only maps memory (ioremap, vmap, per-CPU chunks) has no pages and is left out.

    >>> parse_vmallocinfo("0-1 20480 load_module+0x1/0x2 pages=4 vmalloc\\n1-2 8192 ioremap phys=0\\n", 4096)
    Vmalloc(by_caller={'load_module': 16384}, stacks=0)
    """
    callers: Dict[str, int] = {}
    stacks = 0
    for line in text.splitlines():
        found = _PAGES.search(f"{line} ")
        if found is None:
            continue
        word = line.split(None, 3)
        caller = word[2].partition("+")[0]
        size = int(found[1]) * page
        if caller in _STACK_CALLERS:
            stacks += size
        else:
            callers[caller] = callers.get(caller, 0) + size
    return Vmalloc(callers, stacks)


def parse_allocinfo(text: str) -> Dict[str, int]:
    """Parses /proc/allocinfo (kernel 6.10 on, with CONFIG_MEM_ALLOC_PROFILING): bytes by place in the source.

    >>> parse_allocinfo("allocinfo - version: 1.0\\n#     <size>  <calls> <tag info>\\n  4096  1 mm/a.c:9 func:grow\\n")
    {'mm/a.c:9 grow': 4096}
    """
    sites: Dict[str, int] = {}
    for line in text.splitlines():
        word = line.split()
        if len(word) < 4 or not word[0].isdigit() or not word[1].isdigit():
            continue
        function = next((each[5:] for each in word[3:] if each.startswith("func:")), "")
        if int(word[0]):
            site = f"{word[2]} {function}".strip()
            sites[site] = sites.get(site, 0) + int(word[0])
    return sites


def parse_sysvipc(text: str) -> int:
    """Parses /proc/sysvipc/shm: resident bytes of all segments.

    >>> parse_sysvipc("key shmid perms size rss\\n  0  1  600  9000  8192\\n")
    8192
    """
    lines = text.splitlines()
    names = lines[0].split() if lines else []
    if "rss" not in names:
        return 0
    column = names.index("rss")
    rows = (line.split() for line in lines[1:])
    return sum(int(row[column]) for row in rows if len(row) > column and row[column].isdigit())


def anonymous_of_statm(text: str, page: int) -> Tuple[int, int]:
    """Private and other resident bytes of /proc/PID/statm: anonymous memory is resident less shared.

    >>> anonymous_of_statm("900 50 20 1 0 60 0", 4096)
    (122880, 81920)
    """
    _, resident, shared, *_ = text.split(None, 3)
    return max(int(resident) - int(shared), 0) * page, int(shared) * page


@dataclass(frozen=True)
class Mappings:
    """Bytes of a process by kind of mapping (PSS: a page of several processes counts by its share), of ``MAPPINGS``.

    ``anonymous_rss`` are its resident anonymous pages, those of a forked child counted in full; ``anonymous_pss`` by
    their share.
    """

    __slots__ = ("anonymous_pss", "anonymous_rss", "by_kind")
    by_kind: Mapping[str, int]
    anonymous_pss: int
    anonymous_rss: int


def parse_smaps(text: str) -> Mappings:
    """Parses /proc/PID/smaps.

    >>> parse_smaps("00-10 rw-p 00 00:00 0   [heap]\\nRss:   8 kB\\nPss:   4 kB\\nAnonymous:  8 kB\\n").by_kind["heap"]
    4096
    """
    kinds = dict.fromkeys(MAPPINGS, 0)
    pss_of_anonymous = rss_of_anonymous = 0
    heads = list(_MAPPING.finditer(text))
    for head, after in zip(heads, [*(each.start() for each in heads[1:]), len(text)]):  # noqa: B905
        pss = _PSS.search(text, head.end(), after)
        anonymous = _ANONYMOUS.search(text, head.end(), after)
        rss = _RSS.search(text, head.end(), after)
        if pss is None or rss is None or not int(rss[1]):
            continue
        size, resident = int(pss[1]) * 1024, int(rss[1])
        private = min(int(anonymous[1]), resident) if anonymous is not None else 0
        own = size * private // resident  # of a file's mapping, the pages that were written to are anonymous
        pss_of_anonymous += own
        rss_of_anonymous += private * 1024
        kind = _kind(head[1], int(head[2]), head[3])
        if kind == "file":
            kinds["anonymous"] += own
            kinds["file"] += size - own
        else:
            kinds[kind] += size
    return Mappings(kinds, pss_of_anonymous, rss_of_anonymous)


def _kind(mode: str, inode: int, name: str) -> str:
    if name == "[heap]":
        return "heap"
    if name.startswith("[stack"):
        return "stack"
    if mode.endswith("s") and (not inode or name.startswith(_SHARED)):
        return "shared"
    if name.startswith(_SHARED):
        return "shared"
    return "file" if inode else "anonymous"
