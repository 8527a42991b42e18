"""Nokia SR OS."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, pairs
from soakwatch.sources.transport.network_cli.units import length, number

_TASK = re.compile(r"^(\S.{0,37}?)\s{2,}([\d,]{1,20})\s+(~?[\d.]{1,8})%\s+(~?[\d.]{1,8})%")
_WHOLE = re.compile(r"^\s*(Total|Idle|Usage|Busiest Core Utilization)\s+([\d,]{1,20})\s+(\S{1,8})%")
_POOL = re.compile(r"^(\S.{0,30}?)\s{2,}(No limit|[\d,]{1,20})\s+([\d,]{1,20})\s+([\d,]{1,20})\s+([\d,]{1,20})\s*$")
_TEMPERATURE = re.compile(r"^\s*Temperature\s*: *(\d{1,3}) ?C\b")


@reports("system.cpu.utilization", "system.cpu.module.utilization")
def show_system_cpu(text: str) -> Parsed:
    """The whole, the busiest core, and each group of tasks (as a share of all cores)."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _WHOLE.match(line)) is not None:
            if match[1] == "Usage":
                draft.share("system.cpu.utilization", match[3])
            elif match[1].startswith("Busiest"):
                draft.share("system.cpu.module.utilization", match[3], module="busiest core")
        elif (match := _TASK.match(line)) is not None:
            try:
                draft.process(match[1], None, number(match[3]) / 100)
            except ValueError:
                draft.odd(line)
        elif not (RULE.match(line) or line.startswith(("CPU Utilization", "Name ")) or "(uSec)" in line):
            draft.odd(line)
    draft.whole = bool(draft.processes)
    return draft.done()


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


@reports("system.uptime")
def show_uptime(text: str) -> Parsed:
    """How long the system is up."""
    draft = ParsedBuilder()
    for key, value, line in pairs(draft.lines(text)):
        if key == "system up time":
            draft.uptime = length(value)
        else:
            draft.odd(line)
    return draft.done()


def show_system_information(text: str) -> Parsed:
    """Type, version and uptime."""
    draft = ParsedBuilder()
    for key, value, _ in pairs(draft.lines(text)):
        if key == "system type":
            draft.fact("model", value)
        elif key == "system version":
            draft.fact("version", value)
        elif key == "system up time":
            draft.uptime = length(value)
    return draft.done()


def show_version(text: str) -> Parsed:
    """Version and model."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^(TiMOS-\S{1,40}) \S{1,40} (?:Nokia|ALCATEL) (.{1,40}?) Copyright", line)) is not None:
            draft.fact("version", match[1])
            draft.fact("model", match[2])
    return draft.done()


def show_card_detail(text: str) -> Parsed:
    """Temperature of each card, and why it was booted last, where it tells."""
    draft = ParsedBuilder()
    card = ""
    for line in draft.lines(text):
        if (match := re.match(r"^(Card \w{1,4})\b", line)) is not None:
            card = match[1]
        elif card and (match := _TEMPERATURE.match(line)) is not None:
            draft.value("system.temperature", match[1], sensor=card)
    return draft.done()
