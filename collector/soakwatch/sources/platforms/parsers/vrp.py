"""Huawei VRP."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import RULE, cisco_load
from soakwatch.sources.platforms.units import number

_USAGE = re.compile(r"^\s*(?:System CPU Using Percentage|CPU Usage) *: *(\S{1,8}?)%")
_TASK = re.compile(r"^(\S{1,20})\s+(\d{1,3}(?:\.\d{1,2})?)%\s+\S")


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
