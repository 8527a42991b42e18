"""Memory: size, huge pages of each size and node, and the modules (DIMMs) that the firmware lists (SMBIOS type 17)."""

from __future__ import annotations

import re
import struct
from typing import Dict, Iterator, List, Optional, Tuple

from soakwatch_agent.facts.machine import Machine, Notes
from soakwatch_agent.procfs import clean, parse_keyed_kib
from soakwatch_model.tree import Tree

_HUGE = re.compile(r"hugepages-(\d+)kB")
_NODES = "/sys/devices/system/node"
_TABLES = "/sys/firmware/dmi/tables/DMI"
_MAX_TABLES = 1 << 20
_KINDS = {
    0x0F: "SDRAM",
    0x12: "DDR",
    0x13: "DDR2",
    0x18: "DDR3",
    0x1A: "DDR4",
    0x1E: "LPDDR4",
    0x22: "DDR5",
    0x23: "LPDDR5",
}


def memory(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    """Sizes in bytes; huge pages (total, free) by page size and node."""
    facts: Dict[str, Tree] = {}
    info = parse_keyed_kib(machine.text("/proc/meminfo"))
    notes.put(facts, "total_bytes", info.get("MemTotal"), "the size of the memory is not known")
    notes.put(facts, "swap_bytes", info.get("SwapTotal"))
    notes.put(facts, "hugepages", info.get("HugePages_Total"))
    notes.put(facts, "hugepage_bytes", info.get("Hugepagesize"))
    for key, name in (("transparent_hugepages", "enabled"), ("transparent_hugepages_defrag", "defrag")):
        notes.put(facts, key, machine.line(f"/sys/kernel/mm/transparent_hugepage/{name}"))
    nodes = [name for name in machine.names(_NODES) if re.fullmatch(r"node\d+", name)]
    notes.put(facts, "numa_nodes", len(nodes) or None)
    notes.put(facts, "huge_pages", _huge_pages(machine, nodes) or None)
    modules, why = dimms(machine)
    if modules:
        facts["dimms"] = modules
    else:
        notes.add(f"the memory modules (DIMMs) are not known: {_TABLES}: {why}")
    return facts


def _huge_pages(machine: Machine, nodes: List[str]) -> Dict[str, Tree]:
    """By page size and node; on a kernel without nodes those of the whole machine, as node ``all``."""
    places = [(node, f"{_NODES}/{node}/hugepages") for node in nodes] or [("all", "/sys/kernel/mm/hugepages")]
    sizes: Dict[str, Dict[str, Tree]] = {}
    for node, folder in places:
        for name in machine.names(folder):
            size = _HUGE.fullmatch(name)
            if size is None:
                continue
            pages: Dict[str, Tree] = {}
            for key, file in (("total", "nr_hugepages"), ("free", "free_hugepages")):
                number = machine.whole(f"{folder}/{name}/{file}")
                if number is not None:
                    pages[key] = number
            sizes.setdefault(_size_words(int(size[1])), {})[node] = pages
    return dict(sizes)


def _size_words(kib: int) -> str:
    """A page size in words.

    >>> _size_words(2048), _size_words(1048576), _size_words(64)
    ('2 MiB', '1 GiB', '64 KiB')
    """
    for shift, unit in ((20, "GiB"), (10, "MiB")):
        if kib >> shift and kib % (1 << shift) == 0:
            return f"{kib >> shift} {unit}"
    return f"{kib} KiB"


def dimms(machine: Machine) -> Tuple[List[Tree], str]:
    """The memory modules that are plugged in; if none are known, why."""
    why = machine.why_not(_TABLES)
    if why:
        return [], why
    try:
        with open(machine.path(_TABLES), "rb") as file:
            table = file.read(_MAX_TABLES)
    except OSError:
        return [], "it cannot be read"
    modules: List[Tree] = []
    for kind, data, texts in _structures(table):
        module = _dimm(data, texts) if kind == 17 else None
        if module is not None:
            modules.append(module)
    return modules, "" if modules else "it lists none"


def _structures(table: bytes) -> Iterator[Tuple[int, bytes, List[bytes]]]:
    """The structures of an SMBIOS table (DMTF DSP0134): type, formatted part, strings."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            return
        yield kind, table[at : at + length], table[at + length : end].split(b"\0")
        at = end + 2
        if kind == 127:
            return


def _dimm(data: bytes, texts: List[bytes]) -> Optional[Dict[str, Tree]]:
    """One memory device; None for an empty slot."""

    def text(offset: int) -> str:
        number = data[offset] if offset < len(data) else 0
        found = texts[number - 1].decode("ascii", "backslashreplace") if 0 < number <= len(texts) else ""
        return clean(found.strip())

    def word(offset: int) -> int:
        return struct.unpack_from("<H", data, offset)[0] if offset + 2 <= len(data) else 0

    size = word(0x0C)
    if size in (0, 0xFFFF):
        return None
    if size == 0x7FFF and len(data) >= 0x20:
        size_bytes = (struct.unpack_from("<I", data, 0x1C)[0] & 0x7FFFFFFF) << 20
    else:
        size_bytes = (size & 0x7FFF) << (10 if size & 0x8000 else 20)
    module: Dict[str, Tree] = {"name": " ".join(filter(None, (text(0x11), text(0x10)))) or "a slot without a name"}
    module["size_bytes"] = size_bytes
    kind = data[0x12] if len(data) > 0x12 else 0
    module["type"] = _KINDS.get(kind, f"type {kind}")
    speeds = {"speed_mts": word(0x15), "configured_mts": word(0x20)}
    module.update({key: value for key, value in speeds.items() if value not in (0, 0xFFFF)})
    for key, offset in (("manufacturer", 0x17), ("part", 0x1A)):
        if text(offset):
            module[key] = text(offset)
    rank = data[0x1B] & 0x0F if len(data) > 0x1B else 0
    if rank:
        module["rank"] = rank
    return module
