"""Parsers of outputs that neither lines nor JSON of a platform's file describe.

They need products and sums over several lines, as many columns as a device has cores, or a ``top`` of any release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from soakwatch.sources.platforms.cli_units import length, number, size
from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder

RULE = re.compile(r"^[\s=+|*_-]+$")

_TOP_HEAD = re.compile(r"^\s*PID\s+USER(?:NAME)?\b.*\bCOMMAND\s*$")
_TOP_CPU = re.compile(r"^\s*%?Cpu\(s\)\s*:(.*)$")
_TOP_PART = re.compile(r"([\d.]{1,6})\s*%?\s*(us|sy|ni|id|wa|hi|si|st)\b")
_TOP_MEM = re.compile(r"^\s*(?:([KMG]i?B)\s+)?Mem\s*:\s*(.*)$")
_TOP_MEM_PART = re.compile(r"([\d.]{1,20})([kKmMgG]?)\+?\s+(total|free|used|buff/cache|buffers)")
_TOP_AVAIL = re.compile(r"([\d.]{1,20})([kKmMgG]?)\+?\s+avail Mem")
_TOP_TIME = re.compile(r"\d{1,9}(?:[:.]\d{1,2}){1,3}|[\d.]{1,12}[Hhd]")
_TOP_LOADS = re.compile(r"load averages?:\s*([\d.]{1,9}),?\s+([\d.]{1,9}),?\s+([\d.]{1,9})")


class Top:
    """Reads the lines of a ``top`` (procps or BSD) into a draft; ``line`` says whether it knew one."""

    def __init__(self, draft: ParsedBuilder, unit: str = "k") -> None:
        self._draft, self._unit = draft, unit
        self._head: list[str] | None = None
        self._memory: dict[str, int] = {}

    def line(self, line: str) -> bool:
        """One line."""
        draft = self._draft
        if self._head is not None and self._row(line):
            return True
        if _TOP_HEAD.match(line):
            self._head = [word.lower() for word in line.split()]
            draft.whole = True
        elif (match := _TOP_LOADS.search(line)) is not None:
            for minutes, text in zip(("1", "5", "15"), match.groups(), strict=True):
                draft.value("system.cpu.load", text, minutes=minutes)
        elif (match := _TOP_CPU.match(line)) is not None:
            shares = {name: text for text, name in _TOP_PART.findall(match[1])}
            if "id" not in shares:
                return False
            self._busy(shares)
        elif (match := _TOP_MEM.match(line)) is not None and (parts := _TOP_MEM_PART.findall(match[2])):
            self._take_memory(match[1] or "", parts)
        elif (match := _TOP_AVAIL.search(line)) is not None:
            unit = match[2] or line.split(maxsplit=1)[0][:1]
            draft.size("system.memory.available", match[1], unit if unit in "KMGkmg" else "k")
        else:
            return line.lstrip().startswith(("Tasks:", "Swap:", "KiB Swap", "MiB Swap", "Threads:")) or bool(
                re.match(r"\s*(?:\d+ (?:processes|threads):|CPU:|Mem:|ARC:)", line)
            )
        return True

    def _busy(self, parts: dict[str, str]) -> None:
        try:
            idle = number(parts["id"]) + number(parts.get("wa", "0"))
        except ValueError:
            self._draft.fault("system.cpu.utilization", "", "its idle share is not a number")
            return
        self._draft.share("system.cpu.utilization", max(0.0, 100 - idle))

    def _take_memory(self, unit: str, parts: list[tuple[str, str, str]]) -> None:
        base = unit[:1] or "k"
        for text, own, name in parts:
            try:
                self._memory[name] = size(text, own or base)
            except ValueError:
                self._draft.fault("system.memory.usage", "", f"{text!r} is not a size")
        if "total" in self._memory:
            self._draft.value("system.memory.limit", self._memory["total"])
        if "used" in self._memory:
            # The older layout counts buffers as used.
            self._draft.value("system.memory.usage", self._memory["used"] - self._memory.get("buffers", 0))

    def _row(self, line: str) -> bool:
        assert self._head is not None
        # Some systems leave USER (a number without a name) or C (an idle core) empty: then the row is shorter.
        for missing in ("", "user", "username", "c"):
            names = [name for name in self._head if name != missing]
            if (process := _process(line, names, self._unit)) is not None:
                self._draft.process(*process)
                return True
            if missing and missing not in self._head:
                continue
        return False


def _process(line: str, names: list[str], unit: str) -> tuple[str, int, float, int] | None:
    """Name, pid, CPU share and bytes of a row whose cells are those of ``names``, or None if they are not."""
    cells = line.split(None, len(names) - 1)
    if len(cells) != len(names) or not cells[0].isdecimal() or len(cells[0]) > 10:
        return None
    row = dict(zip(names, cells, strict=True))
    time = row.get("time+") or row.get("time") or ""
    state = row.get("s")
    if not _TOP_TIME.fullmatch(time) or (state is not None and not (len(state) == 1 and state.isalpha())):
        return None
    try:
        cpu = number(row.get("%cpu") or row.get("wcpu") or row.get("cpu") or "")
        return row["command"].strip(), int(cells[0]), cpu / 100, size(row["res"], unit)
    except (ValueError, KeyError):
        return None


def top_of(text: str) -> Parsed:
    """The output of a ``top`` and nothing else."""
    draft = ParsedBuilder()
    top = Top(draft)
    for line in draft.lines(text):
        if not top.line(line):
            draft.odd(line)
    return draft.done()


_MEMORY = re.compile(r"^(\S.{0,59}?)[: ]\s*(\d{1,18}) bytes")


def asa_memory(text: str) -> Parsed:
    """Memory in use and in all; where the device tells parts, in use is what is allocated and what is reserved."""
    draft = ParsedBuilder()
    sizes: dict[str, int] = {}
    for line in draft.lines(text):
        if (match := _MEMORY.match(line.strip())) is not None:
            sizes[match[1].strip().rstrip(":").lower()] = int(match[2])
        elif not RULE.match(line) and not line.strip().lower().endswith(("memory:", "usage:")):
            draft.odd(line)
    total = sizes.get("total memory")
    used = sizes.get("used memory")
    if used is None:
        parts = [value for name, value in sizes.items() if "in use" in name or name.startswith("reserved")]
        used = sum(parts) if parts else None
    if total is not None:
        draft.value("system.memory.limit", total)
    if used is not None and (total is None or used <= total):
        draft.value("system.memory.usage", used)
    elif sizes:
        draft.fault("system.memory.usage", "", "the memory in use is not reported, or is more than the total")
    if "free memory" in sizes:
        draft.value("system.memory.available", sizes["free memory"])
    return draft.done()


def asa_blocks(text: str) -> Parsed:
    """Pools of packet blocks: bytes in use and in all. A pool that ran empty once (LOW is 0) is told."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        cells = line.split()
        if cells[0] == "SIZE":
            continue
        if not (len(cells) >= 4 and all(cell.isdecimal() and len(cell) < 13 for cell in cells[:4])):
            draft.odd(line)
            continue
        size, most, low, free = (int(cell) for cell in cells[:4])
        if size == 0:
            continue  # headers without a buffer: no memory
        draft.value("system.memory.pool.usage", size * max(0, most - free), pool=f"block {size}")
        draft.value("system.memory.pool.limit", size * max(most, free), pool=f"block {size}")
        if low == 0 and most > 0:
            draft.notable("memory.low", f"block {size}", pool=f"block {size}", said=line.strip())
    return draft.done()


_EGRESS = re.compile(
    r"(?:Egress|Ingress|Output|Input)? ?[Qq]ueuing(?: for|:)? +(?:interface )?([A-Z][\w-]{0,20}[\d/.]{1,20})"
)
_GROUP = re.compile(r"(?i:(qos group \d{1,3}|control qos group|span qos group|cpu qos group)(?: \d{1,3})?)")
_CELLS = re.compile(r"^\|\s*([A-Za-z][\w &/()-]{0,40}?)\s*\|(.+)\|\s*$")


def nxos_queuing(text: str) -> Parsed:
    """Packets, drops and bytes waiting of each group of each port, for unicast and multicast apart.

    Cards differ in this table: rows are known by their names, columns by their order.
    """
    draft = ParsedBuilder()
    port = group = ""
    kinds: list[str] = []
    for line in draft.lines(text):
        if (match := _EGRESS.search(line)) is not None and not line.startswith("|"):
            port, group = match[1], ""
        elif line.startswith("|") and (match := _GROUP.search(line)) is not None:
            group, kinds = match[0].lower(), []
        elif "Unicast" in line:
            kinds = [cell.strip().lower() for cell in line.strip(" |").split("|") if cell.strip()]
        elif port and group and (match := _CELLS.match(line)) is not None:
            _cells(draft, port, group, kinds, match[1].lower(), match[2].split("|"))
    return draft.done()


def _cells(draft: ParsedBuilder, port: str, group: str, kinds: list[str], name: str, cells: list[str]) -> None:
    metric = {"tx pkts": "queue.packets", "q depth byts": "queue.usage"}.get(name)
    if metric is None and "drop" in name and "pkts" in name:
        metric = "queue.dropped"
    if metric is None:
        return
    for index, cell in enumerate(cells):
        kind = f" {kinds[index]}" if index < len(kinds) else f" {index}" if len(cells) > 1 else ""
        if cell.strip() not in ("", "-", "N/A"):
            draft.value(metric, cell, of=port, queue=f"{port} {group}{kind}")


_SLOT = re.compile(r"(?i:^\s*(?:===== )?((?:chassis \d+ )?(?:slot|unit) ?\d{0,3}(?: cpu ?\d{0,2})?)(?: cpu usage)?:?)")
_MEM = re.compile(r"^Mem:\s+(\d{1,15})\s+(\d{1,15})\s+(\d{1,15})")
_OLD = re.compile(r"(?i:^\s*(system total memory|total used memory)\(bytes\): *(\d{1,15}))")
_MEASURED = re.compile(r"(?i:measured in (KB|MB|bytes))")
_UNITS = {"kb": 1024, "mb": 1024**2, "bytes": 1}


def comware_memory(text: str) -> Parsed:
    """Memory of each slot; in use is what the device says is used, with its caches left out where it tells so."""
    draft = ParsedBuilder()
    slot, scale = "", 1024
    sizes: dict[str, tuple[str, str]] = {}
    old: dict[str, str] = {}
    for line in draft.lines(text):
        if (match := _MEASURED.search(line)) is not None:
            scale = _UNITS[match[1].lower()]
        elif (match := _MEM.match(line)) is not None:
            sizes[slot or "system"] = (match[1], match[2])
        elif (match := re.match(r"^-/\+ Buffers/Cache:\s+(\d{1,15})\s+\d{1,15}", line)) is not None:
            total = sizes.get(slot or "system")
            if total is not None:
                sizes[slot or "system"] = (total[0], match[1])
        elif (match := _OLD.match(line)) is not None:
            old[match[1].lower()] = match[2]
        elif (match := _SLOT.match(line)) is not None:
            slot = " ".join(match[1].lower().split())
        elif not (RULE.match(line) or line.lstrip().startswith(("Total", "Swap:", "Used Rate", "Memory"))):
            draft.odd(line)
    for name, (total_kb, used_kb) in sizes.items():
        draft.value("system.memory.pool.limit", total_kb, scale, pool=name)
        draft.value("system.memory.pool.usage", used_kb, scale, pool=name)
    whole = next(iter(sizes.values())) if len(sizes) == 1 else None
    if whole is not None:
        draft.value("system.memory.limit", whole[0], scale)
        draft.value("system.memory.usage", whole[1], scale)
    elif old:
        draft.value("system.memory.limit", old.get("system total memory", "not reported"))
        draft.value("system.memory.usage", old.get("total used memory", "not reported"))
    return draft.done()


_QUEUE = re.compile(r"^Queue: (\d{1,3}), Forwarding classes: (.{1,80})")
_PORT = re.compile(r"^Physical interface: (\S{1,40}?),")
_COUNT = re.compile(r"^(\S.{1,39}?)\s*:\s+(\d{1,20})\b")
_REBOOT = "last reboot reason"


def junos_routing_engine(text: str) -> Parsed:
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


def junos_queues(text: str) -> Parsed:
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


def panos_monitor(text: str) -> Parsed:
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


PARSERS: Mapping[str, Callable[[str], Parsed]] = {
    "top": top_of,
    "asa_memory": asa_memory,
    "asa_blocks": asa_blocks,
    "comware_memory": comware_memory,
    "junos_queues": junos_queues,
    "junos_routing_engine": junos_routing_engine,
    "nxos_queuing": nxos_queuing,
    "panos_monitor": panos_monitor,
}
"""By the names that files have for them (``parse``)."""
