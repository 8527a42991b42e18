"""Asks a JVM by ``jcmd``: its heap and its objects by type. The stop is measured by the JVM's own safepoint counter."""

from __future__ import annotations

import re

from soakwatch.diagnose.allowance import Allowance, Subject, Taken, reason_of
from soakwatch.diagnose.look import Absent, Basis, Heap, Site, SiteKind, Sites, Why, largest
from soakwatch.diagnose.shell import Host, ask, first_line

PART = "jcmd"
_TIMEOUT_S = 60.0
_WALK = 400e6
"""Bytes of a heap that a JVM collects and counts a second, at least."""
_HEAP = re.compile(r"total (\d{1,15})K, used (\d{1,15})K")
_ZHEAP = re.compile(r"ZHeap\s+used (\d{1,9})M, capacity (\d{1,9})M")
_ROW = re.compile(r"^\s*\d{1,7}:\s+(\d{1,15})\s+(\d{1,18})\s+(\S+)(?: \((\S+)\))?", re.MULTILINE)
_LIBRARY = ("[", "java.", "javax.", "jdk.", "sun.", "com.sun.")
_COUNTER = re.compile(r"^sun\.(rt\.safepointTime|os\.hrt\.frequency)=(\d{1,20})\s*$", re.MULTILINE)
_FIND = 'j=$(command -v jcmd || echo "$(dirname "$(readlink /proc/{pid}/exe)")/jcmd"); [ -x "$j" ] || exit 127; '


async def take_java(host: Host, subject: Subject, allowed: Allowance) -> Taken:
    """The heap after a collection, and what is reachable by type."""
    find, pid = _FIND.format(pid=subject.pid), subject.pid
    command = f'{find}"$j" {pid} GC.heap_info 2>&1'
    before, trouble = await host.run(command, _TIMEOUT_S)
    heap = heap_of(before.decode("utf-8", "replace"))
    if heap is None:
        return Taken(absent=(Absent(PART, reason_of(trouble, before), first_line(before) or trouble),))
    expected_s = heap.in_use / _WALK if subject.stopped_s is None else 1.5 * subject.stopped_s
    if expected_s > allowed.stop_s:
        missing = Absent("GC.class_histogram", Why.STOP, f"about {expected_s:.1f} s")
        return Taken(Heap(heap.in_use, heap.held, collected=False), absent=(missing,), kept={"heap_info.txt": before})
    counters = f'"$j" {pid} PerfCounter.print 2>/dev/null | grep -E "safepointTime=|hrt.frequency="'
    parts, trouble = await ask(
        host,
        {
            "before": f"{find}{counters}",
            "types": f'"$j" {pid} GC.class_histogram 2>&1 | head -n 3000',
            "after": counters,
            "heap": f'"$j" {pid} GC.heap_info 2>&1',
            "native": f'"$j" {pid} VM.native_memory summary 2>&1',
        },
        _TIMEOUT_S,
    )
    types = parts.get("types", b"")
    rows = rows_of(types.decode("utf-8", "replace"))
    kept = {"heap_info.txt": parts.get("heap", b""), "class_histogram.txt": types}
    native = parts.get("native", b"")
    if b"Total: reserved" in native:
        kept["native_memory.txt"] = native
    after = heap_of(parts.get("heap", b"").decode("utf-8", "replace")) or heap
    if rows:  # what is reachable; the heap has what was allocated since as well
        after = Heap(sum(row.bytes for row in rows), max(after.held, after.in_use))
    return Taken(
        after,
        sites=(Sites("GC.class_histogram", Basis.LIVE, largest(rows)),) if rows else (),
        absent=() if rows else (Absent("GC.class_histogram", reason_of(trouble, types), first_line(types) or trouble),),
        stopped_s=_stopped(parts.get("before", b""), parts.get("after", b"")),
        kept=kept,
    )


def heap_of(text: str) -> Heap | None:
    """The heap of ``GC.heap_info``, whichever collector it has; None if it cannot be read.

    >>> heap_of(" garbage-first heap   total 40K, used 11K [0x0, 0x1)")
    Heap(in_use=11264, held=40960, in_pieces=None, collected=True)
    """
    if zheap := _ZHEAP.search(text):
        return Heap(int(zheap[1]) << 20, int(zheap[2]) << 20)
    spaces = _HEAP.findall(text.partition("Metaspace")[0])
    return (
        Heap(sum(int(used) for _, used in spaces) << 10, sum(int(total) for total, _ in spaces) << 10)
        if spaces
        else None
    )


def rows_of(text: str) -> list[Site]:
    """The types of a class histogram.

    >>> rows_of("   4:          9600         153600  Leak$Entry\\n")
    [Site(kind=<SiteKind.TYPE: 'type'>, name='Leak$Entry', bytes=153600, count=9600, own=True)]
    """
    return [
        Site(SiteKind.TYPE, _shown(name), int(size), int(count), not module and not name.startswith(_LIBRARY))
        for count, size, name, module in _ROW.findall(text)
    ]


_ARRAYS = {"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long", "S": "short", "Z": "boolean"}


def _shown(name: str) -> str:
    """A type as a Java program writes it: ``[B`` is ``byte[]``."""
    depth = len(name) - len(name.lstrip("["))
    if not depth:
        return name
    inner = name[depth:]
    return (inner[1:].rstrip(";") if inner.startswith("L") else _ARRAYS.get(inner, inner)) + "[]" * depth


def _stopped(before: bytes, after: bytes) -> float | None:
    """Seconds at safepoints between two prints of counters; None if unknown."""
    counted = [dict(_COUNTER.findall(text.decode("ascii", "replace"))) for text in (before, after)]
    try:
        ticks = int(counted[1]["rt.safepointTime"]) - int(counted[0]["rt.safepointTime"])
        return round(ticks / int(counted[1]["os.hrt.frequency"]), 4)
    except (KeyError, ZeroDivisionError):
        return None
