"""HPE and H3C Comware."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE

_SLOT = re.compile(r"(?i:^\s*(?:===== )?((?:chassis \d+ )?(?:slot|unit) ?\d{0,3}(?: cpu ?\d{0,2})?)(?: cpu usage)?:?)")
_USAGE = re.compile(r"(?i:^\s*([\d.]{1,6})% in last (\d{1,2}) (seconds?|minutes?))")
_MEM = re.compile(r"^Mem:\s+(\d{1,15})\s+(\d{1,15})\s+(\d{1,15})")
_OLD = re.compile(r"(?i:^\s*(system total memory|total used memory)\(bytes\): *(\d{1,15}))")
_MEASURED = re.compile(r"(?i:measured in (KB|MB|bytes))")
_UNITS = {"kb": 1024, "mb": 1024**2, "bytes": 1}


@reports("system.cpu.module.utilization")
def display_cpu_usage(text: str) -> Parsed:
    """Each processor over the shortest window, and its longer ones. One processor alone stands for the device too."""
    draft = ParsedBuilder()
    module = ""
    fresh: dict[str, str] = {}
    for line in draft.lines(text):
        if (match := _USAGE.match(line)) is not None:
            window = f"{match[2]}{match[3][0].lower()}"
            name = module or "system"
            if name not in fresh:
                fresh[name] = match[1]
                draft.share("system.cpu.module.utilization", match[1], module=name)
            else:
                draft.share("system.cpu.module.average", match[1], module=name, window=window)
        elif (match := _SLOT.match(line)) is not None:
            module = " ".join(match[1].lower().split())
        else:
            draft.odd(line)
    if len(fresh) == 1:
        draft.share("system.cpu.utilization", next(iter(fresh.values())))
    return draft.done()


@reports("system.memory.pool.usage", "system.memory.pool.limit")
def display_memory(text: str) -> Parsed:
    """Memory of each slot; in use is what the device says is used, with its caches left out where it tells so."""
    draft = ParsedBuilder()
    slot, scale = "", 1024
    sizes: dict[str, tuple[str, str]] = {}
    old: dict[str, str] = {}
    for line in draft.lines(text):
        if (match := _MEASURED.search(line)) is not None:
            scale = _UNITS[match[1].lower()]
        elif (match := _MEM.match(line)) is not None:
            sizes[slot or "system"] = (match[1], match[2])
        elif (match := re.match(r"^-/\+ Buffers/Cache:\s+(\d{1,15})\s+\d{1,15}", line)) is not None:
            total = sizes.get(slot or "system")
            if total is not None:
                sizes[slot or "system"] = (total[0], match[1])
        elif (match := _OLD.match(line)) is not None:
            old[match[1].lower()] = match[2]
        elif (match := _SLOT.match(line)) is not None:
            slot = " ".join(match[1].lower().split())
        elif not (RULE.match(line) or line.lstrip().startswith(("Total", "Swap:", "Used Rate", "Memory"))):
            draft.odd(line)
    for name, (total_kb, used_kb) in sizes.items():
        draft.value("system.memory.pool.limit", total_kb, scale, pool=name)
        draft.value("system.memory.pool.usage", used_kb, scale, pool=name)
    whole = next(iter(sizes.values())) if len(sizes) == 1 else None
    if whole is not None:
        draft.value("system.memory.limit", whole[0], scale)
        draft.value("system.memory.usage", whole[1], scale)
    elif old:
        draft.value("system.memory.limit", old.get("system total memory", "not reported"))
        draft.value("system.memory.usage", old.get("total used memory", "not reported"))
    return draft.done()
