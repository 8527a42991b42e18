"""Cisco IOS and IOS XE."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import cisco_load, cpu_table
from soakwatch.sources.platforms.units import length, number

_VERSION = re.compile(r"(?:Cisco |IOS|Software).{0,120}?Version ([^\s,]{1,40})")
_REASON = re.compile(r"^(?:System returned to ROM by|Last reload reason:|Last reset from) *(.+)$")
_MODEL = re.compile(r"^[Cc]isco (\S{2,40}) .{0,80}(?:processor|bytes of memory|Chassis)")


@reports("system.uptime")
def show_version(text: str) -> Parsed:
    """Version, model, serial number, uptime (in whole minutes), and why it began anew."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.search(r"^\S{1,64} uptime is (.+)$", line)) is not None:
            draft.uptime = draft.uptime or length(match[1])
        elif (match := _REASON.match(line)) is not None:
            reason = re.sub(r" at \d\d:\d\d:\d\d.*$", "", match[1])
            if line.startswith("Last reload"):
                draft.facts.pop("reboot_reason", None)  # the more exact of the two
            draft.fact("reboot_reason", reason)
        elif (match := re.match(r"^Processor board ID (\S{1,40})", line)) is not None:
            draft.fact("serial", match[1])
        elif (match := _MODEL.match(line)) is not None:
            draft.fact("model", match[1])
        elif (match := _VERSION.search(line)) is not None:
            draft.fact("version", match[1])
    return draft.done()


@reports("system.cpu.utilization", "process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """The load and each process over five seconds. On IOS XE this is the IOS daemon's view of one core."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if not cisco_load(draft, line):
            head = cpu_table(draft, line, head)
    draft.whole = head is not None
    return draft.done()


def show_platform_status(text: str) -> Parsed:
    """``show platform software status control-processor brief``: load, memory and cores of each control processor."""
    draft = ParsedBuilder()
    section = ""
    slot = ""
    for line in draft.lines(text):
        cells = line.replace("(", " ").replace("%)", " ").replace(")", " ").split() or [""]
        low = line.strip().lower()
        if low.startswith(("load average", "memory (kb)", "cpu utilization")):
            section = low[:4]
        elif cells[0] == "Slot":
            continue
        elif section == "memo" and len(cells) >= 5 and cells[2].isdecimal() and cells[3].isdecimal():
            draft.value("system.memory.pool.limit", cells[2], 1024, pool=cells[0])
            draft.value("system.memory.pool.usage", cells[3], 1024, pool=cells[0])
        elif section == "cpu " and len(cells) >= 8:
            if not cells[0][0].isdecimal():
                slot, cells = cells[0], cells[1:]
            _core(draft, slot, cells, line)
        elif section == "load" and len(cells) == 5:
            continue
        else:
            draft.odd(line)
    return draft.done()


def _core(draft: ParsedBuilder, slot: str, cells: list[str], line: str) -> None:
    try:
        idle = number(cells[4]) + number(cells[7])
    except (ValueError, IndexError):
        draft.odd(line)
        return
    draft.share("system.cpu.module.utilization", max(0.0, 100 - idle), module=f"{slot} cpu {cells[0]}")
