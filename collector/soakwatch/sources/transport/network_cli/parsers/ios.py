"""Cisco IOS and IOS XE."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, cisco_load, cpu_table, drop
from soakwatch.sources.transport.network_cli.units import length, number, size

_POOL = re.compile(r"^\s*(?:(.{1,40}?) Pool )?Total: *(\d{1,18}),? +Used: *(\d{1,18}),? +Free: *(\d{1,18})")
_VERSION = re.compile(r"(?:Cisco |IOS|Software).{0,120}?Version ([^\s,]{1,40})")
_REASON = re.compile(r"^(?:System returned to ROM by|Last reload reason:|Last reset from) *(.+)$")
_MODEL = re.compile(r"^[Cc]isco (\S{2,40}) .{0,80}(?:processor|bytes of memory|Chassis)")
_PORT = re.compile(r"^ ?([A-Z][A-Za-z-]{1,40}[\d/.:]{1,20})\s*$")
_POLICY = re.compile(r"^\s+Service-policy ?(input|output)?:? *(\S{1,80})")
_CLASS = re.compile(r"^\s+Class-map: *(\S{1,80})")
_DEPTH = re.compile(r"^\s+\(queue depth/total drops/no-buffer drops\) (\d{1,20})/(\d{1,20})/(\d{1,20})")
_PACKETS = re.compile(r"^\s+\(pkts output/bytes output\) (\d{1,20})/(\d{1,20})")
_LIMIT = re.compile(r"^\s+queue limit (\d{1,12}) (packets|bytes|us|ms)")
_QFP = re.compile(r"^(\w{2,60})\s+([\d,]{1,24})\s+([\d,]{1,24})\s*$")


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


@reports("system.memory.usage", "system.memory.limit", "system.memory.pool.usage", "process.memory.usage")
def show_processes_memory(text: str) -> Parsed:
    """The pools and what each process holds. The first pool (Processor) stands for the memory of the device."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        cells = line.split(None, 7)
        if (match := _POOL.match(line)) is not None:
            pool = match[1] or "Processor"
            draft.value("system.memory.pool.limit", match[2], pool=pool)
            draft.value("system.memory.pool.usage", match[3], pool=pool)
            if pool.startswith("Processor"):
                draft.value("system.memory.limit", match[2])
                draft.value("system.memory.usage", match[3])
        elif len(cells) == 8 and all(cell.isdecimal() and len(cell) < 20 for cell in cells[:7]):
            draft.process(cells[7], int(cells[0]), memory=int(cells[4]))
        elif not (RULE.match(line) or "Holding" in line or line.strip().endswith("Total")):
            draft.odd(line)
    draft.whole = bool(draft.processes)
    return draft.done()


def show_policy_map_interface(text: str) -> Parsed:
    """Depth, limit, packets and drops of each class that queues. Of nested policies the innermost class is named."""
    draft = ParsedBuilder()
    port = direction = name = ""
    for line in draft.lines(text):
        if (match := _PORT.match(line)) is not None:
            port, name = match[1], ""
        elif (match := _POLICY.match(line)) is not None:
            direction = match[1] or direction
        elif (match := _CLASS.match(line)) is not None:
            name = match[1]
        elif not port:
            draft.odd(line)
        elif (match := _DEPTH.match(line)) is not None:
            queue = f"{port} {direction} {name or 'priority'}"
            draft.value("queue.depth", match[1], of=port, queue=queue)
            draft.value("queue.dropped", match[2], of=port, queue=queue)
        elif (match := _PACKETS.match(line)) is not None:
            draft.value("queue.packets", match[1], of=port, queue=f"{port} {direction} {name or 'priority'}")
        elif (match := _LIMIT.match(line)) is not None and match[2] == "packets":
            draft.value("queue.limit", match[1], of=port, queue=f"{port} {direction} {name or 'priority'}")
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


def show_platform_resources(text: str) -> Parsed:
    """Control and forwarding processors with their memories."""
    draft = ParsedBuilder()
    slot = part = ""
    for line in draft.lines(text):
        indent = len(line) - len(line.lstrip())
        cells = re.split(r"\s{2,}", line.strip())
        if RULE.match(line) or line.startswith(("**", "Resource")):
            continue
        if len(cells) < 4:
            if indent == 0:
                slot, part = cells[0].partition("(")[0].strip(), ""
            else:
                part = cells[0]
            continue
        owner = " ".join(word for word in (slot, part, cells[0]) if word)
        if cells[1].endswith("%") and "(" not in cells[1]:
            draft.share("system.cpu.module.utilization", cells[1], module=owner)
        elif (match := re.match(r"(\d{1,12})([KMG])B\(", cells[1])) is not None:
            draft.value("system.memory.pool.usage", size(match[1], match[2]), pool=owner)
            if (most := re.match(r"(\d{1,12})([KMG])B$", cells[2])) is not None:
                draft.value("system.memory.pool.limit", size(most[1], most[2]), pool=owner)
    return draft.done()


def show_qfp_drop(text: str) -> Parsed:
    """``show platform hardware qfp active statistics drop``: drops of the forwarding processor by reason."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _QFP.match(line)) is not None:
            drop(draft, "qfp", match[1], match[2])
        elif not (RULE.match(line) or line.startswith(("Last clearing", "Global Drop", "The Global drop"))):
            draft.odd(line)
    return draft.done()
