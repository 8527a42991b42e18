"""Cisco NX-OS."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, cisco_load, cpu_table
from soakwatch.sources.transport.network_cli.units import length, number

_STATES = re.compile(r"^\s*CPU(\d{0,3}) states? *: *(.+)$")
_UTIL = re.compile(r"^\s*CPU util *: *(.+)$")
_IDLE = re.compile(r"([\d.]{1,6})% idle")
_MEMORY = re.compile(r"^Memory usage: *(\d{1,15})K total, *(\d{1,15})K used, *(\d{1,15})K free")
_LOADS = re.compile(r"^Load average: *1 minute: *(\S{1,9}) +5 minutes: *(\S{1,9}) +15 minutes: *(\S{1,9})")
_EGRESS = re.compile(
    r"(?:Egress|Ingress|Output|Input)? ?[Qq]ueuing(?: for|:)? +(?:interface )?([A-Z][\w-]{0,20}[\d/.]{1,20})"
)
_GROUP = re.compile(r"(?i:(qos group \d{1,3}|control qos group|span qos group|cpu qos group)(?: \d{1,3})?)")
_CELLS = re.compile(r"^\|\s*([A-Za-z][\w &/()-]{0,40}?)\s*\|(.+)\|\s*$")
_HOLDS = re.compile(r"^\s*(\d{1,10})\s+(\d{1,15})\s+\d{1,15}\s+\d{1,15}\s+\S{1,40}\s+(\S{1,60})\s*$")
_CORE = re.compile(r"^\s*(\d{1,3})\s+(\d{1,3})\s+(\d{1,6})\s+(\S{1,60})\s+(\d{1,9})\s+(\S{8,10} \S{5,8})")


@reports("system.uptime")
def show_version(text: str) -> Parsed:
    """Version, model, serial number, uptime and the reason of the last reset."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^\s*Kernel uptime is (.+)$", line)) is not None:
            draft.uptime = length(match[1])
        elif (match := re.match(r"^\s*Reason: *(.+)$", line)) is not None:
            draft.fact("reboot_reason", match[1])
        elif (match := re.match(r"^\s*(?:NXOS|system): +version (\S{1,40})", line)) is not None:
            draft.fact("version", match[1])
        elif (match := re.match(r"^\s+cisco (\S.{1,60}?) *(?:\(|Chassis)", line, re.IGNORECASE)) is not None:
            draft.fact("model", match[1])
        elif (match := re.match(r"^\s*Processor Board ID (\S{1,40})", line)) is not None:
            draft.fact("serial", match[1])
    return draft.done()


@reports("process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """Each process over one or five seconds, and the whole where it is told."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if cisco_load(draft, line):
            continue
        if (match := _UTIL.match(line)) is not None:
            _busy(draft, match[1], "")
        else:
            head = cpu_table(draft, line, head)
    draft.whole = head is not None
    return draft.done()


@reports("process.memory.usage")
def show_processes_memory(text: str) -> Parsed:
    """What each process holds: MemAlloc, in bytes."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _HOLDS.match(line)) is not None:
            draft.process(match[3], int(match[1]), memory=int(match[2]))
        elif not (RULE.match(line) or "MemAlloc" in line):
            draft.odd(line)
    draft.whole = bool(draft.processes)
    return draft.done()


def _busy(draft: ParsedBuilder, parts: str, core: str) -> None:
    match = _IDLE.search(parts)
    metric = "system.cpu.core.utilization" if core else "system.cpu.utilization"
    labels = {"core": core} if core else {}
    if match is None:
        draft.fault(metric, f"core={core}" if core else "", "its idle share is not reported")
        return
    try:
        draft.share(metric, max(0.0, 100 - number(match[1])), **labels)
    except ValueError:
        draft.fault(metric, f"core={core}" if core else "", f"{match[1]!r} is not a number")


@reports("system.cpu.utilization", "system.memory.usage", "system.memory.limit")
def show_system_resources(text: str) -> Parsed:
    """Load, CPU of the whole and of each core, memory."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _STATES.match(line)) is not None:
            _busy(draft, match[2], match[1])
        elif (match := _MEMORY.match(line)) is not None:
            draft.value("system.memory.limit", match[1], 1024)
            draft.value("system.memory.usage", match[2], 1024)
        elif (match := _LOADS.match(line)) is not None:
            for minutes, words in zip(("1", "5", "15"), match.groups(), strict=True):
                draft.value("system.cpu.load", words, minutes=minutes)
        elif (match := re.match(r"^Processes *: *(\d{1,9}) total", line)) is not None:
            draft.value("system.processes", match[1])
        elif (match := re.match(r"^Current memory status: *(\w+)", line)) is not None:
            if match[1] != "OK":
                draft.notable("memory.low", match[1], status=match[1])
        else:
            draft.odd(line)
    return draft.done()


@reports("queue.dropped")
def show_queuing_interface(text: str) -> Parsed:
    """Packets, drops and bytes waiting of each group of each port, for unicast and multicast apart.

    Cards differ in this table: rows are known by their names, columns by their order.
    """
    draft = ParsedBuilder()
    port = group = ""
    kinds: list[str] = []
    for line in draft.lines(text):
        if (match := _EGRESS.search(line)) is not None and not line.startswith("|"):
            port, group = match[1], ""
        elif line.startswith("|") and (match := _GROUP.search(line)) is not None:
            group, kinds = match[0].lower(), []
        elif "Unicast" in line:
            kinds = [cell.strip().lower() for cell in line.strip(" |").split("|") if cell.strip()]
        elif port and group and (match := _CELLS.match(line)) is not None:
            _cells(draft, port, group, kinds, match[1].lower(), match[2].split("|"))
    return draft.done()


def _cells(draft: ParsedBuilder, port: str, group: str, kinds: list[str], name: str, cells: list[str]) -> None:
    metric = {"tx pkts": "queue.packets", "q depth byts": "queue.usage"}.get(name)
    if metric is None and "drop" in name and "pkts" in name:
        metric = "queue.dropped"
    if metric is None:
        return
    for index, cell in enumerate(cells):
        kind = f" {kinds[index]}" if index < len(kinds) else f" {index}" if len(cells) > 1 else ""
        if cell.strip() not in ("", "-", "N/A"):
            draft.value(metric, cell, of=port, queue=f"{port} {group}{kind}")


def show_cores(text: str) -> Parsed:
    """Core files, each once."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _CORE.match(line)) is not None:
            vdc, module, _, process, pid, when = match.groups()
            draft.notable(
                "core.dump", f"{process} {pid} {when}", process=process, pid=pid, when=when, module=module, vdc=vdc
            )
        elif not (RULE.match(line) or line.startswith("VDC")):
            draft.odd(line)
    return draft.done()
