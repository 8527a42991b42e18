"""Cisco IOS XR."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import cisco_load, cpu_table

_NODE = re.compile(r"(?i:^\s*node:?\s+(?:node)?([\w/]{3,30}?):?\s*)$")
_TIME = re.compile(r"^\w{3} \w{3} +\d+ [\d:.]+ \w+$")


@reports("system.cpu.utilization", "process.cpu.utilization")
def show_processes_cpu(text: str) -> Parsed:
    """The load and each process over one minute, the shortest window there is; of several nodes the first."""
    draft = ParsedBuilder()
    head: list[str] | None = None
    for line in draft.lines(text):
        if not (cisco_load(draft, line) or _NODE.match(line) or _TIME.match(line) or line.startswith("----")):
            head = cpu_table(draft, line, head)
    draft.whole = head is not None
    return draft.done()
