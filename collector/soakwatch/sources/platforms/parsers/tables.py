"""Tables that several systems share: processes by CPU, ``top``, ``key: value`` lines, and what a drop means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from soakwatch.sources.drop_reasons import refused_on_purpose
from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder
from soakwatch.sources.platforms.units import number, size

RULE = re.compile(r"^[\s=+|*_-]+$")
_PAIR = re.compile(r"^\s*([A-Za-z][^:=]{0,80}?)\s*[:=]\s*(.*)$")
_CPU_HEADS = ("5sec", "1sec", "1min")


def pairs(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Lines as (key in lower case, value, line); lines without a key have an empty one."""
    for line in lines:
        match = _PAIR.match(line)
        yield (match[1].lower(), match[2].strip(), line) if match else ("", "", line)


def drop(draft: ParsedBuilder, location: str, reason: str, count: str) -> None:
    """One counter of drops."""
    metric = "system.forwarding.denied" if refused_on_purpose(reason) else "system.forwarding.dropped"
    draft.value(metric, count, place=location, reason=reason)


def cpu_table(draft: ParsedBuilder, line: str, head: list[str] | None) -> list[str] | None:
    """One line of a table of processes by CPU with a head as Cisco's systems have it; returns the head in force.

    A cell that is no number makes the line unknown.
    """
    words = line.split()
    low = [word.lower() for word in words]
    if "process" in low and any(each in low for each in _CPU_HEADS):
        return low
    if head is None:
        draft.odd(line)
        return None
    position = head.index("process")
    cells = line.split(None, position)
    column = next(head.index(each) for each in _CPU_HEADS if each in head)
    try:
        if len(cells) <= position or RULE.match(line):
            raise ValueError("no row")  # noqa: TRY301
        name = cells[position].strip()
        pid = int(number(cells[head.index("pid")])) if "pid" in head else None
        draft.process(name, pid, number(cells[column]) / 100)
    except ValueError:
        if not RULE.match(line):
            draft.odd(line)
    return head


def cisco_load(draft: ParsedBuilder, line: str) -> bool:
    """``CPU utilization for five seconds: 5%/2%; one minute: 6%; five minutes: 7%`` and its like."""
    match = _LOAD.search(line)
    if match is None:
        return False
    parts = [(window.lower(), text) for window, text in _WINDOW.findall(line[match.start() : match.start() + 200])]
    if not parts:
        return False
    draft.share("system.cpu.utilization", parts[0][1])
    for window, text in parts[1:] if len(parts) > 1 else ():
        draft.share("system.cpu.module.average", text, module="system", window=_SHORT.get(window, window))
    return True


_LOAD = re.compile(r"(?i:cpu utilization for|^\s*5 seconds =)")
_WINDOW = re.compile(r"((?:five|one|fifteen|5|1|15) (?:seconds?|minutes?)) ?[:=] ?([\d.]{1,6})%")
_SHORT = {
    "one minute": "1m",
    "five minutes": "5m",
    "fifteen minutes": "15m",
    "1 minute": "1m",
    "5 minutes": "5m",
    "15 minutes": "15m",
    "five seconds": "5s",
    "5 seconds": "5s",
    "1 minutes": "1m",
}

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
