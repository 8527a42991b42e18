"""Fortinet FortiOS."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import drop
from soakwatch.sources.transport.network_cli.units import length, number

_CPU = re.compile(r"^CPU(\d{0,3}) states: .{0,80}?(\S{1,8})% idle(?: (\S{1,8})% iowait)?")
_MEMORY = re.compile(r"^Memory: *(\d{1,15})k total, *(\d{1,15})k used")
_MEMORY_OLD = re.compile(r"^Memory states: *([\d.]{1,6})% used")
_RATE = re.compile(r"^Average session setup rate: *(\S{1,12}) sessions? per second in last 1 minute")
_TOP = re.compile(r"^\s*(\S.{0,60}?)\s+(\d{1,9})\s+([A-Z]) ?([<N]?)\s+(\S{1,8})\s+(\S{1,8})(?:\s+\d{1,3})?$")
_COUNT = re.compile(r"\b([a-z_]{3,30})=(\d{1,20})\b")
_CRASH = re.compile(r"^\d{1,6}: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) +(.{1,300})$")
_SIGNAL = re.compile(r"\*{2,} ?signal (\d{1,2}) \(([^)]{1,60})\) received")
_APPLICATION = re.compile(r"<(\d{1,9})> application (\S{1,80})")
_LOST = ("memory_tension_drop",)


def get_system_status(text: str) -> Parsed:
    """Version, model, serial number."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^Version: (\S{1,60}) (\S{1,80})", line)) is not None:
            draft.fact("model", match[1])
            draft.fact("version", match[2])
        elif (match := re.match(r"^Serial-Number: (\S{1,40})", line)) is not None:
            draft.fact("serial", match[1])
    return draft.done()


@reports("system.cpu.utilization", "system.memory.usage", "system.memory.limit", "system.uptime")
def get_system_performance_status(text: str) -> Parsed:
    """CPU of the whole and of each core, memory, sessions a second, uptime (in whole minutes)."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _CPU.match(line)) is not None:
            metric = "system.cpu.core.utilization" if match[1] else "system.cpu.utilization"
            labels = {"core": match[1]} if match[1] else {}
            try:
                draft.share(metric, max(0.0, 100 - number(match[2]) - number(match[3] or "0")), **labels)
            except ValueError:
                draft.fault(metric, f"core={match[1]}" if match[1] else "", "its idle share is not a number")
        elif (match := _MEMORY.match(line)) is not None:
            draft.value("system.memory.limit", match[1], 1024)
            draft.value("system.memory.usage", match[2], 1024)
        elif (match := _MEMORY_OLD.match(line)) is not None:
            draft.share("system.memory.utilization", match[1])
        elif (match := _RATE.match(line)) is not None:
            draft.value("system.sessions.rate", match[1], table="sessions")
        elif line.startswith("Uptime:"):
            draft.uptime = length(line.partition(":")[2])
        elif not line.startswith(("Average", "Virus caught", "IPS attacks", "Maximal")):
            draft.odd(line)
    return draft.done()


@reports("process.cpu.utilization")
def diagnose_sys_top(text: str) -> Parsed:
    """The busiest processes: CPU (of one core) only, as memory is told as a share. The list is never whole."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _TOP.match(line)) is not None:
            try:
                draft.process(match[1], int(match[2]), number(match[5]) / 100)
            except ValueError:
                draft.odd(line)
        elif not (line.startswith("Run Time") or re.match(r"^\d{1,3}U, ", line)):
            draft.odd(line)
    return draft.done()


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


def get_system_session_status(text: str) -> Parsed:
    """Sessions of this virtual domain."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^The total number of (\S{1,8}) sessions.{0,60}: *(\d{1,12})$", line)) is not None:
            draft.value("system.sessions", match[2], table=match[1])
        else:
            draft.odd(line)
    return draft.done()


def diagnose_debug_crashlog_read(text: str) -> Parsed:
    """Processes that died of a signal, and the times when memory ran low. Ordinary restarts are passed over.

    Lines are numbered anew as the log turns over: an entry is known by its time and words.
    """
    draft = ParsedBuilder()
    application = pid = ""
    for line in draft.lines(text):
        match = _CRASH.match(line)
        if match is None:
            if not line.startswith("Crash log interval"):
                draft.odd(line)
            continue
        when, words = match.groups()
        if (crash := _APPLICATION.search(words)) is not None:
            pid, application = crash.groups()
        elif (crash := _SIGNAL.search(words)) is not None:
            key = f"{when} {application} {pid} signal {crash[1]}"
            draft.notable(
                "process.crash", key, process=application, pid=pid, signal=f"{crash[1]} {crash[2]}", when=when
            )
        elif "conserve" in words and ("enter" in words or "service=kernel conserve=on" in words):
            draft.notable("memory.low", f"{when} conserve", when=when, said=words)
    return draft.done()
