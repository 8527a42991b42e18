"""Fortinet FortiOS."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import drop

_COUNT = re.compile(r"\b([a-z_]{3,30})=(\d{1,20})\b")
_LOST = ("memory_tension_drop",)


@reports("system.sessions")
def diagnose_sys_session_stat(text: str) -> Parsed:
    """Entries of the session table, new ones a second, and sessions lost for want of memory."""
    draft = ParsedBuilder()
    counts: dict[str, str] = {}
    for line in draft.lines(text):
        for name, count in _COUNT.findall(line):
            counts.setdefault(name, count)
    if "session_count" in counts:
        draft.value("system.sessions", counts["session_count"], table="sessions")
    else:
        draft.odd(text[:200])
    if "setup_rate" in counts:
        draft.value("system.sessions.rate", counts["setup_rate"], table="sessions")
    for name in _LOST:
        if name in counts:
            drop(draft, "session", name.replace("_", " "), counts[name])
    return draft.done()
