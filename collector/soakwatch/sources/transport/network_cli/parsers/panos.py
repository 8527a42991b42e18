"""Palo Alto Networks PAN-OS."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, drop, pairs, top_of
from soakwatch.sources.transport.network_cli.units import length

_COUNTER = re.compile(r"^(\w{3,60})\s+(\d{1,20})\s+(\d{1,20})\s+(\w+)\s+(\w+)\s+(\w+)\s+(.{0,200})$")
_FACTS = {"sw-version": "version", "model": "model", "serial": "serial"}
_SESSIONS = {
    "number of allocated sessions": "sessions",
    "number of active tcp sessions": "tcp",
    "number of active udp sessions": "udp",
    "number of active icmp sessions": "icmp",
}


@reports("system.uptime")
def show_system_info(text: str) -> Parsed:
    """Version, model, serial number and uptime of the management plane."""
    draft = ParsedBuilder()
    for key, value, _ in pairs(draft.lines(text)):
        if key == "uptime":
            draft.uptime = length(value)
        elif key in _FACTS:
            draft.fact(_FACTS[key], value)
    return draft.done()


@reports("system.cpu.utilization", "system.memory.usage", "process.cpu.utilization", "process.memory.usage")
def show_system_resources(text: str) -> Parsed:
    """``top`` of the management plane."""
    return top_of(text)


@reports("system.sessions", "system.sessions.limit")
def show_session_info(text: str) -> Parsed:
    """The session table, and how fast it fills."""
    draft = ParsedBuilder()
    for key, value, _ in pairs(draft.lines(text)):
        plain = value.split(" ")[0]
        if key in _SESSIONS:
            draft.value("system.sessions", plain, table=_SESSIONS[key])
        elif key == "number of sessions supported":
            draft.value("system.sessions.limit", plain, table="sessions")
        elif key == "session table utilization":
            draft.share("system.sessions.utilization", plain, table="sessions")
        elif key == "new connection establish rate":
            draft.value("system.sessions.rate", plain, table="sessions")
    return draft.done()


@reports("system.forwarding.dropped", "system.forwarding.denied")
def show_counter_global(text: str) -> Parsed:
    """Global counters of drops since the boot of the dataplane, by name."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _COUNTER.match(line)) is not None:
            if match[4] == "drop":
                drop(draft, "dataplane", match[1], match[2])
        elif not (
            RULE.match(line)
            or line.startswith(("Global counters", "Elapsed time", "name ", "Total counters", "Target"))
        ):
            draft.odd(line)
    return draft.done()


@reports("system.cpu.module.utilization", "system.sessions.utilization")
def show_running_resource_monitor(text: str) -> Parsed:
    """Each core of each dataplane over the last second, and how full its session table and buffers are."""
    draft = ParsedBuilder()
    plane, section, cores = "dp0", "", list[str]()
    for line in draft.lines(text):
        words = line.split()
        low = line.strip().lower()
        if (match := re.match(r"^DP (\S{1,20}?):", line)) is not None:
            plane, section = match[1], ""
        elif low.startswith("cpu load (%)"):
            section, cores = "cores", []
        elif low.startswith(("cpu load sampling", "resource utilization", "resource monitoring")):
            section = "passed over"
        elif re.match(r"^[a-z][a-z ()-]{3,40}:$", low):
            section = low.rstrip(":")
        elif words[0] == "core":
            cores, section = words[1:], "cores"
        elif section == "cores" and cores and len(words) >= len(cores):
            for core, text_ in zip(cores, words, strict=False):
                if text_ != "*":  # a core that forwards nothing shows a star
                    draft.share("system.cpu.module.utilization", text_, module=f"{plane} core {core}")
            section = "passed over"
        elif section == "session" and words[0].isdecimal():
            draft.share("system.sessions.utilization", words[0], table=plane)
            section = "passed over"
        elif section.startswith("packet ") and words[0].isdecimal():
            draft.share("system.memory.pool.utilization", words[0], pool=f"{plane} {section}")
            section = "passed over"
        elif section != "passed over" and not RULE.match(line):
            draft.odd(line)
    return draft.done()
