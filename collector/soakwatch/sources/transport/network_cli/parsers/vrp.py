"""Huawei VRP."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, cisco_load, pairs
from soakwatch.sources.transport.network_cli.units import length, number

_USAGE = re.compile(r"^\s*(?:System CPU Using Percentage|CPU Usage) *: *(\S{1,8}?)%")
_TASK = re.compile(r"^(\S{1,20})\s+(\d{1,3}(?:\.\d{1,2})?)%\s+\S")
_TOTAL = re.compile(r"(?i:^\s*system total memory(?: is)?: *(.{1,40}?)\s*$)")
_USED = re.compile(r"(?i:^\s*total memory used(?: is)?: *(.{1,40}?)\s*$)")
_SHARE = re.compile(r"(?i:^\s*memory using percentage(?: is)?: *(\S{1,8}?)%)")
_REASON = re.compile(r"(?i:^\s*(?:reset|reboot) (?:reason|cause|type)\s*[:=]\s*(.{1,160})$)")
_ROW = re.compile(r"^\s*(?:\d{1,3}\s+){1,2}([A-Z][\w ()/-]{1,40}?)\s+(\d{4}[/-]\d\d[/-]\d\d \d\d:\d\d:\d\d)")
_QUEUE = re.compile(r"(?i:^\s*queue(?: id| index)?\s*[:=]?\s*(\w{1,12})\s*$)")
_PORT = re.compile(r"(?i:^\s*interface:?\s+(\S{1,60}))")


@reports("system.uptime")
def display_version(text: str) -> Parsed:
    """Version, model and uptime (in whole minutes)."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.search(r"software, Version (\S{1,40}) \(([^)]{1,60})\)", line)) is not None:
            draft.fact("version", f"{match[1]} {match[2]}")
        elif (match := re.match(r"^(?:HUAWEI|Huawei|Quidway) (\S.{0,60}?) uptime is (.+)$", line)) is not None:
            draft.fact("model", match[1])
            draft.uptime = draft.uptime or length(match[2])
    return draft.done()


@reports("system.cpu.utilization")
def display_cpu_usage(text: str) -> Parsed:
    """The load, and each task over the device's cycle (a minute, mostly). The idle task is left out."""
    draft = ParsedBuilder()
    usage: str | None = None
    tasks = False
    for line in draft.lines(text):
        if cisco_load(draft, line):
            continue
        if (match := _USAGE.match(line)) is not None:
            usage = usage or match[1]
        elif line.startswith("TaskName"):
            tasks = True
        elif tasks and (match := _TASK.match(line)) is not None:
            if match[1] not in ("VIDL", "IDLE"):
                draft.process(match[1], None, number(match[2]) / 100)
        elif not (RULE.match(line) or line.lstrip().startswith(("CPU ", "Max CPU", "State"))):
            draft.odd(line)
    if usage is not None and ("system.cpu.utilization", "") not in draft.values:
        draft.share("system.cpu.utilization", usage)
    draft.whole = tasks
    return draft.done()


@reports("system.memory.usage", "system.memory.limit")
def display_memory_usage(text: str) -> Parsed:
    """Memory in use and in all; newer releases tell KiB."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        for pattern, metric in ((_TOTAL, "system.memory.limit"), (_USED, "system.memory.usage")):
            if (match := pattern.match(line)) is not None:
                draft.size(metric, match[1])
                break
        else:
            if (match := _SHARE.match(line)) is not None:
                draft.share("system.memory.utilization", match[1])
            elif not (RULE.match(line) or line.strip().startswith(("Memory utilization", "Memory Usage", "State"))):
                draft.odd(line)
    return draft.done()


def display_reset_reason(text: str) -> Parsed:
    """Why it began anew the last time."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _REASON.match(line) or _ROW.match(line)) is not None:
            draft.fact("reboot_reason", match[1])
    return draft.done()


def display_qos_queue_statistics(text: str) -> Parsed:
    """Packets and drops of each queue. Releases differ: what is told as ``Passed packets: N`` is understood."""
    draft = ParsedBuilder()
    port = queue = ""
    for key, value, line in pairs(draft.lines(text)):
        if (match := _PORT.match(line)) is not None:
            port = match[1]
        elif (match := _QUEUE.match(line)) is not None:
            queue = f"{port} queue {match[1]}".strip()
        elif queue and key in ("passed packets", "forwarded packets", "passed packet"):
            draft.value("queue.packets", value.split(" ")[0], of=port or None, queue=queue)
        elif queue and key in ("dropped packets", "discarded packets", "discard packets", "dropped packet"):
            draft.value("queue.dropped", value.split(" ")[0], of=port or None, queue=queue)
        elif not key and not RULE.match(line):
            draft.odd(line)
    return draft.done()
