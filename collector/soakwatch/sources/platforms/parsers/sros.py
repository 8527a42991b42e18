"""Nokia SR OS."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE

_POOL = re.compile(r"^(\S.{0,30}?)\s{2,}(No limit|[\d,]{1,20})\s+([\d,]{1,20})\s+([\d,]{1,20})\s+([\d,]{1,20})\s*$")


@reports("system.memory.usage", "system.memory.limit")
def show_system_memory_pools(text: str) -> Parsed:
    """Bytes in use of each pool and of all; the limit is what is in use and what is available."""
    draft = ParsedBuilder()
    used: float | None = None
    for line in draft.lines(text):
        if (match := _POOL.match(line)) is not None:
            draft.value("system.memory.pool.usage", match[5], pool=match[1])
            if match[2] != "No limit":
                draft.value("system.memory.pool.limit", match[2], pool=match[1])
        elif match := re.match(r"^(Current Total Size|Total In Use|Available Memory)\s*: *(\S{1,24}) bytes", line):
            if match[1] == "Total In Use":
                used = draft.value("system.memory.usage", match[2])
            elif match[1] == "Available Memory":
                free = draft.value("system.memory.available", match[2])
                if free is not None and used is not None:
                    draft.value("system.memory.limit", used + free)
        elif not (RULE.match(line) or line.startswith(("Memory Pools", "Name "))):
            draft.odd(line)
    return draft.done()
