"""Arista EOS, which answers in JSON where it is asked to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from soakwatch.sources.drop_reasons import refused_on_purpose
from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.transport.network_cli.parsers.tables import RULE, Top, drop
from soakwatch.sources.transport.network_cli.units import Length, length, size

_HARDWARE = re.compile(r"^([ACP])\s+(\S{1,20})\s+(\S.{0,80}?)\s*:\s*(\d{1,20})\s*:")
_ALONE = re.compile(r"^-{3,}$")


def _json(draft: ParsedBuilder, text: str) -> Mapping[str, object] | None:
    """The object in a text, or None (counted as unknown) if there is none."""
    index = text.find("{")
    try:
        document = json.loads(text[index : text.rfind("}") + 1]) if index >= 0 else None
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        return document
    draft.odd(text[:200])
    return None


def _sub(branch: object, *path: str) -> Mapping[str, object]:
    for key in path:
        branch = branch.get(key) if isinstance(branch, Mapping) else None
    return branch if isinstance(branch, Mapping) else {}


def _take(
    draft: ParsedBuilder, metric: str, reported: object, scale: float = 1, of: str | None = None, **labels: str
) -> None:
    if isinstance(reported, int | float | str) and not isinstance(reported, bool):
        draft.value(metric, reported if not isinstance(reported, float) else float(reported), scale, of, **labels)


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] == "{"


@reports("system.uptime", "system.memory.limit")
def show_version(text: str) -> Parsed:
    """Version, model, serial number, uptime, memory (free memory without what caches hold)."""
    draft = ParsedBuilder()
    if not _is_json(text):
        for line in draft.lines(text):
            if (match := re.match(r"^Arista (\S{1,40})", line)) is not None:
                draft.fact("model", match[1])
            elif (match := re.match(r"^(Software image version|Serial number|Uptime): *(.{1,80})$", line)) is not None:
                if match[1] == "Uptime":
                    draft.uptime = length(match[2])
                else:
                    draft.fact("serial" if match[1].startswith("Ser") else "version", match[2])
            elif (match := re.match(r"^(Total|Free) memory: *(\d{1,12}) kB", line)) is not None:
                metric = "system.memory.limit" if match[1] == "Total" else "system.memory.available"
                draft.value(metric, match[2], 1024)
        return draft.done()
    document = _json(draft, text) or {}
    for name, key in (("version", "version"), ("model", "modelName"), ("serial", "serialNumber")):
        draft.fact(name, str(document.get(key) or ""))
    up = document.get("uptime")
    if isinstance(up, int | float) and 0 <= up < 1e10:
        draft.uptime = Length(float(up), 1)
    _take(draft, "system.memory.limit", document.get("memTotal"), 1024)
    _take(draft, "system.memory.available", document.get("memFree"), 1024)
    return draft.done()


@reports("system.cpu.utilization", "system.memory.usage", "process.cpu.utilization", "process.memory.usage")
def show_processes_top(text: str) -> Parsed:
    """CPU, load, memory, and each process with its CPU and resident memory."""
    draft = ParsedBuilder()
    if not _is_json(text):
        top = Top(draft)
        for line in draft.lines(text):
            if not top.line(line):
                draft.odd(line)
        return draft.done()
    document = _json(draft, text) or {}
    cpu = _sub(document, "cpuInfo", "%Cpu(s)") or _sub(document, "cpuInfo", "Cpu(s)")
    idle, wait = cpu.get("idle"), cpu.get("ioWait", cpu.get("iowait", 0))
    if isinstance(idle, int | float) and isinstance(wait, int | float):
        draft.share("system.cpu.utilization", max(0.0, 100.0 - idle - wait))
    elif cpu:
        draft.fault("system.cpu.utilization", "", "its idle share is not a number")
    loads = _sub(document, "timeInfo").get("loadAvg")
    if isinstance(loads, list) and len(loads) == 3:
        for minutes, load in zip(("1", "5", "15"), loads, strict=True):
            _take(draft, "system.cpu.load", load, minutes=minutes)
    memory = _sub(document, "memInfoV2", "physicalMem") or _sub(document, "memInfo", "physicalMem")
    unit = memory.get("memUnit")
    scale = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}.get(unit if isinstance(unit, str) else "KiB", 1024)
    _take(draft, "system.memory.limit", memory.get("memTotal"), scale)
    _take(draft, "system.memory.usage", memory.get("memUsed"), scale)
    for pid, process in _rows(_sub(document, "processes")):
        _process(draft, pid, process)
    draft.whole = bool(draft.processes)
    return draft.done()


def _rows(table: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for key, row in table.items():
        if isinstance(row, Mapping):
            yield str(key), row


def _process(draft: ParsedBuilder, pid: str, process: Mapping[str, object]) -> None:
    share, resident = process.get("cpuPct"), process.get("residentMem")
    try:
        memory = size(str(resident), "k") if resident is not None else None
    except ValueError:
        memory = None
    cpu = share / 100 if isinstance(share, int | float) and 0 <= share < 1e5 else None
    name = str(process.get("cmd") or "")
    if name and pid.isdecimal() and len(pid) < 12:
        draft.process(name, int(pid), cpu, memory)
    else:
        draft.odd(f"process {pid} {name}")


def show_reload_cause(text: str) -> Parsed:
    """Why it was reloaded last."""
    draft = ParsedBuilder()
    if _is_json(text):
        causes = (_json(draft, text) or {}).get("resetCauses")
        first = causes[0] if isinstance(causes, list) and causes else None
        if isinstance(first, Mapping):
            draft.fact("reboot_reason", str(first.get("description") or ""))
        return draft.done()
    heading = False
    for line in draft.lines(text):
        if line.startswith("Reload Cause"):
            heading = True
        elif heading and not _ALONE.match(line):
            draft.fact("reboot_reason", line)
            heading = False
    return draft.done()


@reports("system.network.packet.dropped")
def show_interfaces_counters_discards(text: str) -> Parsed:
    """Discards of each port in both directions."""
    draft = ParsedBuilder()
    if _is_json(text):
        for port, row in _rows(_sub(_json(draft, text), "interfaces")):
            for key, direction in (("inDiscards", "receive"), ("outDiscards", "transmit")):
                _take(
                    draft, "system.network.packet.dropped", row.get(key), 1, port, interface=port, direction=direction
                )
        return draft.done()
    for line in draft.lines(text):
        cells = line.split()
        if len(cells) == 3 and all(cell.isdecimal() and len(cell) < 21 for cell in cells[1:]):
            if cells[0] != "Totals":
                for cell, direction in zip(cells[1:], ("receive", "transmit"), strict=True):
                    draft.value(
                        "system.network.packet.dropped", cell, of=cells[0], interface=cells[0], direction=direction
                    )
        elif not (RULE.match(line) or cells[0] == "Port"):
            draft.odd(line)
    return draft.done()


def show_interfaces_counters_queue(text: str) -> Parsed:
    """Packets and drops of each queue of each port: a table with a head (``Port TxQ Counter/pkts ... Drop/pkts``)."""
    draft = ParsedBuilder()
    head: list[str] = []
    for line in draft.lines(text):
        cells = line.split()
        low = [cell.lower() for cell in cells]
        if low[0] == "port" and len(low) > 2:
            head = low
        elif head and len(cells) == len(head) and cells[2].replace(",", "").isdecimal():
            queue = f"{cells[0]} {cells[1]}"
            for name, cell in list(zip(head, cells, strict=True))[2:]:
                if "drop" in name and "byte" not in name and "octet" not in name:
                    draft.value("queue.dropped", cell, of=cells[0], queue=queue)
                elif "pkt" in name or "packet" in name:
                    draft.value("queue.packets", cell, of=cells[0], queue=queue)
        elif not RULE.match(line):
            draft.odd(line)
    return draft.done()


def show_hardware_counter_drop(text: str) -> Parsed:
    """Drops of each chip by counter. Those of the packet processor that rules make are refused on purpose."""
    draft = ParsedBuilder()
    if _is_json(text):
        for chip, row in _rows(_sub(_json(draft, text), "dropEvents")):
            events = row.get("dropEvent")
            for event in events if isinstance(events, list) else ():
                if isinstance(event, Mapping):
                    _hardware(draft, chip, str(event.get("counterName") or ""), event.get("dropCount"))
        return draft.done()
    for line in draft.lines(text):
        if (match := _HARDWARE.match(line)) is not None:
            drop(draft, match[2], match[3], match[4])
        elif not (RULE.match(line) or line.startswith(("Summary", "Total ", "Type"))):
            draft.odd(line)
    return draft.done()


def _hardware(draft: ParsedBuilder, chip: str, name: str, count: object) -> None:
    metric = "system.forwarding.denied" if refused_on_purpose(name) else "system.forwarding.dropped"
    if name:
        _take(draft, metric, count, place=chip, reason=name)
