"""Cisco IOS XR."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, cisco_load, cpu_table, drop
from soakwatch.sources.transport.network_cli.units import length, size

_NODE = re.compile(r"(?i:^\s*node:?\s+(?:node)?([\w/]{3,30}?):?\s*)$")
_NP = re.compile(r"^\s*NP (\d{1,3}) Drops:")
_DROP = re.compile(r"^\s*([A-Z][\w -]{2,70}?)\s{2,}(\d{1,20})\s*$")
_MEMORY = re.compile(r"^\s*Physical Memory: *(\d{1,12}[KMG]?) total(?: *\((\d{1,12}[KMG]?) available\))?")
_CORE = re.compile(r"(?i:^\s*Core(?: (?:file|for pid.{0,40}?))? *[:=(] *(\S{1,120}))")
_NOISE = re.compile(
    r"^(?:\w{3} \w{3} +\d+ [\d:.]+ \w+|No context|\s*(?:Application|Image|Reserved|IOMem|flashfsys) ?.*)$"
)


@reports("system.uptime")
def show_version(text: str) -> Parsed:
    """Version, model, uptime. 64-bit releases tell no reason of a reload here."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.search(r"IOS XR Software, Version (\S{1,40}?)(?:\[|\s|$)", line)) is not None:
            draft.fact("version", match[1])
        elif (match := re.match(r"^(?:\S{1,64}|System) uptime is (.+)$", line)) is not None:
            draft.uptime = draft.uptime or length(match[1])
        elif (match := re.match(r"^cisco ([\w-]{2,20}(?: Series)?)", line, re.IGNORECASE)) is not None:
            draft.fact("model", match[1])
    return draft.done()


@reports("system.cpu.utilization", "process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """The load and each process over one minute, the shortest window there is; of several nodes the first."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if not (cisco_load(draft, line) or _NODE.match(line) or _NOISE.match(line) or line.startswith("----")):
            head = cpu_table(draft, line, head)
    draft.whole = head is not None
    return draft.done()


@reports("system.memory.pool.usage", "system.memory.pool.limit")
def show_memory_summary(text: str) -> Parsed:
    """Physical memory of each node: in all, and in use."""
    draft = ParsedBuilder()
    node = "active"
    for line in draft.lines(text):
        if (match := _NODE.match(line)) is not None:
            node = match[1]
        elif (match := _MEMORY.match(line)) is not None:
            total = size(match[1])
            draft.value("system.memory.pool.limit", total, pool=node)
            if match[2]:
                draft.value("system.memory.pool.usage", total - size(match[2]), pool=node)
        elif not (RULE.match(line) or _NOISE.match(line)):
            draft.odd(line)
    return draft.done()


def show_drops_np_all(text: str) -> Parsed:
    """Drops of each network processor of each node by reason."""
    draft = ParsedBuilder()
    node = unit = ""
    for line in draft.lines(text):
        if (match := _NODE.match(line)) is not None:
            node = match[1]
        elif (match := _NP.match(line)) is not None:
            unit = match[1]
        elif unit and (match := _DROP.match(line)) is not None:
            drop(draft, f"{node} NP {unit}".strip(), match[1], match[2])
        elif not (RULE.match(line) or _NOISE.match(line) or line.strip().startswith(("No NP", "NP "))):
            draft.odd(line)
    return draft.done()


def show_context(text: str) -> Parsed:
    """Crashes of processes, each once."""
    draft = ParsedBuilder()
    node = process = ""
    for line in draft.lines(text):
        if (match := _NODE.match(line)) is not None:
            node, process = match[1], ""
        elif (match := re.match(r"^\s*(?:Crashed )?[Pp]rocess(?: name)? *[:=] *(\S{1,80})", line)) is not None:
            process = match[1]
        elif (match := _CORE.match(line)) is not None:
            draft.notable("core.dump", f"{node} {match[1]}", node=node, process=process, file=match[1])
    return draft.done()
