"""Juniper Junos."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, reports
from soakwatch.sources.platforms.parsers.tables import top_of
from soakwatch.sources.platforms.units import length, number

_QUEUE = re.compile(r"^Queue: (\d{1,3}), Forwarding classes: (.{1,80})")
_PORT = re.compile(r"^Physical interface: (\S{1,40}?),")
_COUNT = re.compile(r"^(\S.{1,39}?)\s*:\s+(\d{1,20})\b")
_REBOOT = "last reboot reason"


@reports("system.cpu.utilization", "system.memory.utilization", "system.uptime")
def show_chassis_routing_engine(text: str) -> Parsed:
    """CPU, memory, temperature, uptime and the reason of the last reboot of each routing engine.

    The whole stands for the engine that is master (or the only one).
    """
    draft = ParsedBuilder()
    engines: list[dict[str, str]] = [{}]
    section = ""
    for line in draft.lines(text):
        words = line.strip()
        if (match := re.match(r"^\s+Slot (\d{1,2}):", line)) is not None:
            engines.append({"slot": match[1]})
            section = ""
        elif "CPU utilization" in words:
            section = words.partition("CPU")[0].strip() or "now"
        elif (match := re.match(r"^(\S.{1,40}?)\s{2,}(\S.*)$", words)) is not None:
            name = match[1].lower()
            inside = name in ("user", "background", "kernel", "interrupt", "idle", "real-time")
            engines[-1].setdefault(f"{section} {name}" if inside and section else name, match[2])
        elif not (words.startswith(("Routing Engine status", "Load averages")) or re.match(r"^[\d.\s]+$", words)):
            draft.odd(line)
    present = [engine for engine in engines if "idle" in " ".join(engine) or "uptime" in engine]
    master = next((e for e in present if e.get("current state", "Master").startswith("Master")), None)
    for engine in present:
        _engine(draft, engine, whole=engine is master, alone=len(present) == 1)
    return draft.done()


def _engine(draft: ParsedBuilder, engine: dict[str, str], *, whole: bool, alone: bool) -> None:
    module = f"Routing Engine {engine['slot']}" if "slot" in engine else "Routing Engine"
    windows = [name.removesuffix(" idle") for name in engine if name.endswith(" idle")]
    for index, window in enumerate(windows):
        idle = engine[f"{window} idle"].partition(" ")[0]
        metric = "system.cpu.module.utilization" if index == 0 else "system.cpu.module.average"
        labels = {} if index == 0 else {"window": window.replace(" min", "m").replace(" sec", "s")}
        try:
            busy = 100 - number(idle)
        except ValueError:
            draft.fault(metric, f"module={module}", "its idle share is not a number")
            continue
        draft.share(metric, busy, module=module, **labels)
        if index == 0 and whole:
            draft.share("system.cpu.utilization", busy)
    memory = engine.get("memory utilization", "").partition(" ")[0]
    if memory:
        draft.share("system.memory.pool.utilization", memory, pool=module)
        if whole:
            draft.share("system.memory.utilization", memory)
    for name in ("temperature", "cpu temperature"):
        if name in engine:
            draft.value("system.temperature", engine[name].partition(" ")[0], sensor=f"{module} {name}")
    up = length(engine.get("uptime", ""))
    if up is not None and not alone:
        draft.value("system.module.uptime", up.seconds, module=module)
    if whole:
        draft.uptime = up
        draft.fact("reboot_reason", engine.get(_REBOOT, ""))
        draft.fact("serial", engine.get("serial id"))


@reports("process.cpu.utilization", "process.memory.usage")
def show_system_processes_extensive(text: str) -> Parsed:
    """``top`` of FreeBSD: load, and each process with its CPU (weighted) and resident memory."""
    return top_of(text)


@reports("queue.dropped", "queue.packets")
def show_interfaces_queue(text: str) -> Parsed:
    """Packets and drops of each egress queue of each port: tail, rate-limit and RED drops together."""
    draft = ParsedBuilder()
    port = queue = ""
    drops: dict[str, int] = {}
    sent = False
    for line in draft.lines(text):
        if (match := _PORT.match(line)) is not None:
            _dropped(draft, port, queue, drops)
            port, queue = match[1], ""
        elif (match := _QUEUE.match(line)) is not None:
            _dropped(draft, port, queue, drops)
            queue, sent = f"{port} queue {match[1]}", False
        elif line.strip().startswith("Transmitted"):
            sent = True
        elif line.strip().startswith(("Queued:", "Ingress queues", "Egress queues")):
            sent = False
        elif queue and sent and (match := _COUNT.match(line.strip())) is not None:
            name = match[1].lower()
            if name == "packets":
                draft.value("queue.packets", match[2], of=port, queue=queue)
            elif "dropped packets" in name:
                drops[name] = int(match[2])
        elif not port:
            draft.odd(line)
    _dropped(draft, port, queue, drops)
    return draft.done()


def _dropped(draft: ParsedBuilder, port: str, queue: str, drops: dict[str, int]) -> None:
    if queue and drops:
        total = drops.get("total-dropped packets")
        parts = [drops.get(name, 0) for name in ("tail-dropped packets", "rl-dropped packets", "red-dropped packets")]
        draft.value("queue.dropped", total if total is not None else sum(parts), of=port, queue=queue)
    drops.clear()
