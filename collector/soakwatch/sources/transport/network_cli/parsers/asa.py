"""Cisco ASA (and the LINA side of Firepower Threat Defense)."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, cisco_load, cpu_table, drop
from soakwatch.sources.transport.network_cli.units import length

_SECTION = re.compile(r"^(Frame|Flow) drop:", re.IGNORECASE)
_DROP = re.compile(r"^\s+(\S.{0,300}?)\s{2,}(-?[\d,]{1,24})$")
_REASON = re.compile(r"\(([\w.:-]{1,80})\)?$")
_CORE = re.compile(r"^Core (\d{1,3})\s+([\d.]{1,6}) \([^)]{0,40}\)\s+([\d.]{1,6}) \([^)]{0,40}\)\s+([\d.]{1,6})")
_DATAPATH = re.compile(r"(DATAPATH-\d{1,3})-(\d{1,7})")
_MEMORY = re.compile(r"^(\S.{0,59}?)[: ]\s*(\d{1,18}) bytes")
_COUNT = re.compile(r"^\s*(?:([A-Za-z][\w -]{0,40}): )?(\d{1,12}) in use, (\d{1,12}) most used")
_CRASH = re.compile(
    r"(?i:crashinfo collected on|crash(?:info)? (?:file )?(?:created|written|saved) (?:on|at)?)\s*(.{0,80})"
)
_THREAD = re.compile(r"(?i:thread name):? *(\S.{0,60})")
_FAILOVER = re.compile(r"(?i:last failover at): *(\S.{0,60})")
_STATE = re.compile(r"^\s*This host: *(.{1,60})")
_STATEFUL = re.compile(r"^\s*(Recv|Xmit) Q:\s+(\d{1,12})\s+(\d{1,12})\s+(\d{1,20})")


@reports("system.uptime")
def show_version(text: str) -> Parsed:
    """Version, model, serial number and uptime. The device does not tell here why it began anew."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^(.{0,80}?)Software,? Version (\S{1,40})", line)) is not None:
            draft.fact("version", match[2])
        elif (match := re.match(r"^Hardware: +([^,]{1,60}),", line)) is not None:
            draft.fact("model", match[1])
        elif (match := re.match(r"^Serial Number: *(\S{1,40})", line)) is not None:
            draft.fact("serial", match[1])
        elif (match := re.match(r"^(?!failover|Start-up)\S{1,64} up (\d.*)$", line)) is not None:
            draft.uptime = draft.uptime or length(match[1])
        elif (match := re.match(r"^(?:Last reload reason|Reload reason):? *(.+)$", line, re.IGNORECASE)) is not None:
            draft.fact("reboot_reason", match[1])
    return draft.done()


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


@reports("system.forwarding.dropped", "system.forwarding.denied")
def show_asp_drop(text: str) -> Parsed:
    """Drops of the accelerated path by section (frame, flow) and reason, whatever reasons there are.

    The device cuts long names (the bracket is missing then), and uses ``acl-drop`` in both sections.
    """
    draft = ParsedBuilder()
    section = ""
    for line in draft.lines(text):
        if (match := _SECTION.match(line)) is not None:
            section = match[1].lower()
        elif section and (match := _DROP.match(line)) is not None:
            words = match[1]
            reason = _REASON.search(words)
            drop(draft, section, reason[1] if reason else words, match[2])
        elif not line.startswith("Last clearing"):
            draft.odd(line)
    return draft.done()


def _count(text: str, table: str) -> Parsed:
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _COUNT.match(line)) is not None:
            draft.value("system.sessions", match[2], table=f"{table} {match[1]}" if match[1] else table)
        elif not line.lstrip().startswith(("preserve-connection", "Cluster", "Inspect", "fwd ", "dir ", "centralized")):
            draft.odd(line)
    return draft.done()


@reports("system.sessions")
def show_conn_count(text: str) -> Parsed:
    """Connections now."""
    return _count(text, "connections")


@reports("system.sessions")
def show_xlate_count(text: str) -> Parsed:
    """Translations now."""
    return _count(text, "translations")


@reports("system.sessions", "system.sessions.limit")
def show_resource_usage(text: str) -> Parsed:
    """Tables, limits and what a limit denied, by resource (and context, on a device with several)."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        cells = line.rsplit(None, 5)
        if line.startswith(("Resource", "S =")) or "Combined context" in line:
            continue
        if len(cells) != 6 or not cells[4].isdecimal():
            draft.odd(line)
            continue
        name, current, _, limit, denied, context = cells
        table = name if context == "System" else f"{name} {context}"
        if "[rate]" in name:
            draft.value("system.sessions.rate", current, table=table.replace(" [rate]", ""))
        else:
            draft.value("system.sessions", current, table=table)
            if limit.isdecimal():
                draft.value("system.sessions.limit", limit, table=table)
        draft.value("system.forwarding.dropped", denied, place="resource limit", reason=table)
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


def show_failover(text: str) -> Parsed:
    """The state of this unit, its queues of updates, and a failover when the time of the last one changes."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _FAILOVER.search(line)) is not None:
            draft.notable("failover", match[1], index=match[1])
        elif (match := _STATE.match(line)) is not None:
            draft.fact("failover", match[1])
        elif (match := _STATEFUL.match(line)) is not None:
            draft.value("queue.depth", match[2], queue=f"failover {match[1].lower()}")
    return draft.done()
