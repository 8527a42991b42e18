"""MikroTik RouterOS and Check Point Gaia, which tell what is free of the memory and not what is used."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE, pairs
from soakwatch.sources.platforms.units import length, size

_GAIA_CPU = re.compile(r"^\|?CPU (User|System|Idle|Usage) ?(?:Time )?\(%\)[:|]\s*(\d{1,3})")
_GAIA_MEMORY = re.compile(r"^\|?(Total|Active|Free) Real Memory \(Bytes\)[:|]\s*(\d{1,18})")


@reports("system.cpu.utilization", "system.memory.usage", "system.memory.limit", "system.uptime")
def routeros_resource(text: str) -> Parsed:
    """``/system resource print``: CPU, memory, disk, uptime, version and board."""
    draft = ParsedBuilder()
    free: int | None = None
    total: int | None = None
    for key, value, line in pairs(draft.lines(text)):
        if key == "uptime":
            draft.uptime = length(value)
        elif key == "cpu-load":
            draft.share("system.cpu.utilization", value)
        elif key in ("free-memory", "total-memory"):
            try:
                bytes_ = size(value)
            except ValueError:
                draft.fault("system.memory.usage", "", f"{value!r} is not a size")
                continue
            free, total = (bytes_, total) if key == "free-memory" else (free, bytes_)
        elif key in ("version", "board-name"):
            draft.fact("version" if key == "version" else "model", value)
        elif not key:
            draft.odd(line)
    if total is not None:
        draft.value("system.memory.limit", total)
        if free is not None:
            draft.value("system.memory.usage", total - free)
    return draft.done()


@reports("system.cpu.utilization", "system.memory.usage", "system.memory.limit")
def gaia_performance(text: str) -> Parsed:
    """``cpstat os -f perf``: CPU and real memory."""
    draft = ParsedBuilder()
    memory: dict[str, int] = {}
    for line in draft.lines(text):
        if (match := _GAIA_CPU.match(line)) is not None:
            if match[1] == "Usage":
                draft.share("system.cpu.utilization", match[2])
        elif (match := _GAIA_MEMORY.match(line)) is not None:
            memory[match[1]] = int(match[2])
        elif not (RULE.match(line) or ":" in line or "|" in line):
            draft.odd(line)
    if "Total" in memory:
        draft.value("system.memory.limit", memory["Total"])
        if "Free" in memory:
            draft.value("system.memory.usage", memory["Total"] - memory["Free"])
    return draft.done()
