"""Palo Alto Networks PAN-OS."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE, top_of


@reports("system.cpu.utilization", "system.memory.usage", "process.cpu.utilization", "process.memory.usage")
def show_system_resources(text: str) -> Parsed:
    """``top`` of the management plane."""
    return top_of(text)


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
