"""Cisco ASA (and the LINA side of Firepower Threat Defense)."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE, cisco_load, cpu_table

_CORE = re.compile(r"^Core (\d{1,3})\s+([\d.]{1,6}) \([^)]{0,40}\)\s+([\d.]{1,6}) \([^)]{0,40}\)\s+([\d.]{1,6})")
_DATAPATH = re.compile(r"(DATAPATH-\d{1,3})-(\d{1,7})")
_MEMORY = re.compile(r"^(\S.{0,59}?)[: ]\s*(\d{1,18}) bytes")
_CRASH = re.compile(
    r"(?i:crashinfo collected on|crash(?:info)? (?:file )?(?:created|written|saved) (?:on|at)?)\s*(.{0,80})"
)
_THREAD = re.compile(r"(?i:thread name):? *(\S.{0,60})")


@reports("system.cpu.utilization")
def show_cpu(text: str) -> Parsed:
    """``show cpu usage`` and its detailed form: the whole, and each core. Lines on elapsed time are no load."""
    draft = ParsedBuilder()
    section = "total"
    for line in draft.lines(text):
        if (match := _CORE.match(line)) is not None:
            module = f"core {match[1]}"
            draft.share("system.cpu.module.utilization", match[2], module=module)
            draft.share("system.cpu.module.average", match[3], module=module, window="1m")
            draft.share("system.cpu.module.average", match[4], module=module, window="5m")
        elif line.startswith(("Current control point", "CPU utilization of external")):
            section = "other"
        elif line.startswith(("Break down", "Core ")):
            section = "cores"
        elif line.startswith("Total CPU"):
            section = "total"
        elif line.lstrip().startswith(("CPU utilization for", "5 seconds =")):
            if section != "other" and not cisco_load(draft, line):
                draft.odd(line)
        else:
            draft.odd(line)
    return draft.done()


@reports("process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """``show processes cpu-usage``. A datapath's name holds its pid, which is cut off so that its series goes on."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if head is None and line.startswith(("Hardware:", "Cisco ", "ASLR", "Software:")):
            continue
        head = cpu_table(draft, line, head)
    for index, process in enumerate(draft.processes):
        if (match := _DATAPATH.fullmatch(process.name)) is not None:
            draft.processes[index] = type(process)(match[1], int(match[2]), process.cpu, process.memory)
    draft.whole = head is not None
    return draft.done()


@reports("system.memory.usage", "system.memory.limit")
def show_memory(text: str) -> Parsed:
    """Memory in use and in all; where the device tells parts, in use is what is allocated and what is reserved."""
    draft = ParsedBuilder()
    sizes: dict[str, int] = {}
    for line in draft.lines(text):
        if (match := _MEMORY.match(line.strip())) is not None:
            sizes[match[1].strip().rstrip(":").lower()] = int(match[2])
        elif not RULE.match(line) and not line.strip().lower().endswith(("memory:", "usage:")):
            draft.odd(line)
    total = sizes.get("total memory")
    used = sizes.get("used memory")
    if used is None:
        parts = [value for name, value in sizes.items() if "in use" in name or name.startswith("reserved")]
        used = sum(parts) if parts else None
    if total is not None:
        draft.value("system.memory.limit", total)
    if used is not None and (total is None or used <= total):
        draft.value("system.memory.usage", used)
    elif sizes:
        draft.fault("system.memory.usage", "", "the memory in use is not reported, or is more than the total")
    if "free memory" in sizes:
        draft.value("system.memory.available", sizes["free memory"])
    return draft.done()


@reports("process.memory.usage")
def show_processes_memory(text: str) -> Parsed:
    """What each process holds: allocated less freed. One that frees for others holds less than nothing: left out."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        cells = line.split(None, 4)
        if len(cells) == 5 and all(cell.isdecimal() and len(cell) < 20 for cell in cells[:4]):
            held = int(cells[1]) - int(cells[3])
            draft.process(cells[4], memory=held if held >= 0 else None)
        elif not RULE.match(line) and not line.lstrip().startswith(("Allocs", "(bytes)")):
            draft.odd(line)
    draft.whole = bool(draft.processes)
    return draft.done()


@reports("system.memory.pool.usage")
def show_blocks(text: str) -> Parsed:
    """Pools of packet blocks: bytes in use and in all. A pool that ran empty once (LOW is 0) is told."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        cells = line.split()
        if cells[0] == "SIZE":
            continue
        if not (len(cells) >= 4 and all(cell.isdecimal() and len(cell) < 13 for cell in cells[:4])):
            draft.odd(line)
            continue
        size, most, low, free = (int(cell) for cell in cells[:4])
        if size == 0:
            continue  # headers without a buffer: no memory
        draft.value("system.memory.pool.usage", size * max(0, most - free), pool=f"block {size}")
        draft.value("system.memory.pool.limit", size * max(most, free), pool=f"block {size}")
        if low == 0 and most > 0:
            draft.notable("memory.low", f"block {size}", pool=f"block {size}", said=line.strip())
    return draft.done()


def show_crashinfo(text: str) -> Parsed:
    """The crash file, if there is one: when it was written, and which thread crashed."""
    draft = ParsedBuilder()
    when = thread = ""
    for line in draft.lines(text):
        if (match := _CRASH.search(line)) is not None and not when:
            when = match[1] or line
        elif (match := _THREAD.search(line)) is not None and not thread:
            thread = match[1]
    if when or thread:
        draft.notable("device.crash", f"{when} {thread}".strip(), when=when, thread=thread)
    return draft.done()
