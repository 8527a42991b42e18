"""Cisco NX-OS."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import cisco_load, cpu_table
from soakwatch.sources.platforms.units import number

_UTIL = re.compile(r"^\s*CPU util *: *(.+)$")
_IDLE = re.compile(r"([\d.]{1,6})% idle")
_EGRESS = re.compile(
    r"(?:Egress|Ingress|Output|Input)? ?[Qq]ueuing(?: for|:)? +(?:interface )?([A-Z][\w-]{0,20}[\d/.]{1,20})"
)
_GROUP = re.compile(r"(?i:(qos group \d{1,3}|control qos group|span qos group|cpu qos group)(?: \d{1,3})?)")
_CELLS = re.compile(r"^\|\s*([A-Za-z][\w &/()-]{0,40}?)\s*\|(.+)\|\s*$")


@reports("process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """Each process over one or five seconds, and the whole where it is told."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if cisco_load(draft, line):
            continue
        if (match := _UTIL.match(line)) is not None:
            _busy(draft, match[1])
        else:
            head = cpu_table(draft, line, head)
    draft.whole = head is not None
    return draft.done()


def _busy(draft: ParsedBuilder, parts: str) -> None:
    match = _IDLE.search(parts)
    if match is None:
        draft.fault("system.cpu.utilization", "", "its idle share is not reported")
        return
    try:
        draft.share("system.cpu.utilization", max(0.0, 100 - number(match[1])))
    except ValueError:
        draft.fault("system.cpu.utilization", "", f"{match[1]!r} is not a number")


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
