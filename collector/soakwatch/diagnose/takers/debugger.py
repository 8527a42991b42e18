"""Asks a process by gdb: the account of malloc, and in a Python a function that counts what it holds.

Only where a debugger is installed and allowed; the process stands while gdb is attached, which is measured.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import replace
from importlib.resources import files
from typing import TypedDict, cast

from soakwatch.diagnose.allowance import Allowance, Subject, Taken, reason_of
from soakwatch.diagnose.look import Absent, Basis, Heap, Site, SiteKind, Sites, Why, largest
from soakwatch.diagnose.shell import Host, first_line

PART = "gdb"
_ANSWER = b"soakwatch-look "
_TIMEOUT_S = 90.0
_BIG = 128 << 10  # free chunks from this size on are whole pages, which malloc_trim gives back
_TOTAL = re.compile(r'<total type="(fast|rest|mmap)" count="(\d{1,20})" size="(\d{1,20})"/>')
_CURRENT = re.compile(r'<system type="current" size="(\d{1,20})"/>')
_SIZES = re.compile(r'<(?:size|unsorted) from="\d{1,20}" to="(\d{1,20})" total="(\d{1,20})" count="\d{1,20}"/>')
_POOLS = re.compile(r"^# bytes in allocated blocks\s*=\s*([\d,]{1,30})$", re.MULTILINE)
_ARENAS = re.compile(r"^\s*\d[\d,]* arenas \* \d[\d,]* bytes/arena\s*=\s*([\d,]{1,30})$", re.MULTILINE)
_WHOLE_POOLS = re.compile(r"^\s*\d[\d,]* unused pools \* \d[\d,]* bytes\s*=\s*([\d,]{1,30})$", re.MULTILINE)


class GdbAnswer(TypedDict):
    """What the script inside gdb prints."""

    texts: dict[str, str]
    failure: str
    stopped_s: float


async def ask_process(
    host: Host, subject: Subject, allowed: Allowance, code: str = ""
) -> tuple[GdbAnswer | None, Absent | None]:
    """Stops the process by gdb, asks it, and lets it go on. One of the two is None."""
    if not allowed.debugger or allowed.stop_s <= 0:
        return None, Absent(PART, Why.NOT_ALLOWED)
    if subject.stopped_s is not None and subject.stopped_s > allowed.stop_s:
        return None, Absent(PART, Why.STOP, f"{subject.stopped_s:.1f} s in the look before")
    text = (files("soakwatch.diagnose.takers") / "inside_gdb.py").read_text("utf-8")
    end = f"SOAKWATCH{secrets.token_hex(6)}"
    call = f"look({subject.pid}, {json.dumps(code)}, {allowed.stop_s!r})"
    run = "gdb -batch -nx -ex 'python exec(open(0).read())' 2>&1"
    command = f"command -v gdb >/dev/null || exit 127\n{run} <<'{end}'\n{text}\n{call}\n{end}\n"
    output, trouble = await host.run(command, _TIMEOUT_S)
    found = output.rpartition(_ANSWER)[2] if _ANSWER in output else b""
    try:
        answer = cast("GdbAnswer", json.loads(found.split(b"\n")[0]))
    except ValueError:
        return None, Absent(PART, reason_of(trouble, output), first_line(output) or trouble)
    if answer["failure"]:
        known = {each.value: each for each in Why}
        return answer, Absent(PART, known.get(answer["failure"], Why.FAILED), answer["texts"].get("error", ""))
    return answer, None


def malloc_heap(text: str) -> Heap | None:
    """The account of ``malloc_info``; None if it cannot be read."""
    tail = text.rpartition("</heap>")[2]
    totals = {kind: int(size) for kind, _, size in _TOTAL.findall(tail)}
    current = _CURRENT.findall(tail)
    if not current or "rest" not in totals:
        return None
    mapped = totals.get("mmap", 0)
    free = totals.get("fast", 0) + totals["rest"]
    small = totals.get("fast", 0) + sum(int(total) for most, total in _SIZES.findall(text) if int(most) < _BIG)
    held = int(current[0]) + mapped
    return Heap(held - free, held, in_pieces=min(small, free))


def python_heap(text: str) -> Heap | None:
    """The account of the small-object allocator of CPython; None if it cannot be read, or is switched off."""
    allocated, arenas = _POOLS.search(text), _ARENAS.search(text)
    if allocated is None or arenas is None:
        return None
    used, held = _count(allocated[1]), _count(arenas[1])
    whole = _WHOLE_POOLS.search(text)
    return Heap(used, held, in_pieces=max(0, held - used - (_count(whole[1]) if whole else 0)))


def _count(text: str) -> int:
    return int(text.replace(",", ""))


def _joined(*heaps: Heap | None) -> Heap | None:
    known = [heap for heap in heaps if heap is not None]
    if not known:
        return None
    pieces = [heap.in_pieces for heap in known if heap.in_pieces is not None]
    return Heap(sum(heap.in_use for heap in known), sum(heap.held for heap in known), sum(pieces) if pieces else None)


async def take_glibc(host: Host, subject: Subject, allowed: Allowance) -> Taken:
    """The account of malloc."""
    answer, absent = await ask_process(host, subject, allowed)
    if answer is None or absent is not None:
        return Taken(
            absent=() if absent is None else (absent,), stopped_s=None if answer is None else answer["stopped_s"]
        )
    text = answer["texts"].get("malloc_info", "")
    heap = malloc_heap(text)
    missing = () if heap is not None else (Absent("malloc_info", Why.FAILED),)
    return Taken(
        heap, absent=missing, stopped_s=answer["stopped_s"], kept={"malloc_info.xml": text.encode()} if text else {}
    )


async def take_jemalloc(host: Host, subject: Subject, allowed: Allowance) -> Taken:
    """The figures of jemalloc."""
    answer, absent = await ask_process(host, subject, allowed)
    stopped_s = None if answer is None else answer["stopped_s"]
    if answer is None or absent is not None:
        return Taken(absent=() if absent is None else (absent,), stopped_s=stopped_s)
    text = answer["texts"].get("mallctl", "")
    heap = jemalloc_heap(text)
    missing = () if heap is not None else (Absent("mallctl", Why.FAILED),)
    return Taken(heap, absent=missing, stopped_s=stopped_s, kept={"mallctl.json": text.encode()} if text else {})


def jemalloc_heap(text: str) -> Heap | None:
    """The account of ``mallctl``; pieces are what lies free in slabs that are in use. None if it cannot be read.

    >>> jemalloc_heap('{"stats.allocated": 10, "stats.active": 16, "stats.resident": 30}')
    Heap(in_use=10, held=30, in_pieces=6, collected=True)
    """
    try:
        figures = cast("dict[str, int]", json.loads(text))
        used, active, resident = (figures[f"stats.{name}"] for name in ("allocated", "active", "resident"))
    except (ValueError, KeyError):
        return None
    return Heap(used, resident, in_pieces=max(0, active - used))


class PythonAnswer(TypedDict, total=False):
    """What the function inside a Python wrote."""

    version: str
    stops: list[float]
    allocator: str
    since_ns: int | None
    traced: int
    own: int  # bytes that tracing takes
    lines: list[tuple[str, int, int]]
    lines_left: bool
    types: list[tuple[str, int, int]] | None
    error: str


async def take_python(host: Host, subject: Subject, allowed: Allowance) -> Taken:
    """The account of malloc and of Python's own allocator; objects by type, and by line what was allocated since the
    first look. The first look begins tracing (tracemalloc), which the last one ends."""
    name = f"soakwatch-{secrets.token_hex(8)}"
    body = (files("soakwatch.diagnose.takers") / "inside_python.py").read_text("utf-8")
    started = f"{body}\nlook({name!r}, {allowed.stop_s!r}, {allowed.last!r})\n"
    code = f"exec(compile({started!r}, 'soakwatch-look', 'exec'), {{'__name__': 'soakwatch-look'}})\n"
    answer, absent = await ask_process(host, subject, allowed, code)
    if answer is None or absent is not None:
        return Taken(
            absent=() if absent is None else (absent,), stopped_s=None if answer is None else answer["stopped_s"]
        )
    texts, fd = answer["texts"], f"/proc/{subject.pid}/fd"
    find = f"ls -l {fd} 2>/dev/null | sed -n 's|.* \\([0-9]*\\) -> /memfd:{name} .*|\\1|p'"
    loop = f'n=0; while [ $((n=n+1)) -lt 40 ]; do f=$({find}); [ -n "$f" ] && break; sleep 1; done'
    wait = f"{loop}; sleep 0.2; cat {fd}/$f"
    output, _ = await host.run(wait, _TIMEOUT_S)
    try:
        account = cast("PythonAnswer", json.loads(output))
    except ValueError:
        missing = Absent("tracemalloc", Why.BUSY)  # somebody holds Python's lock for long
        return Taken(absent=(missing,), stopped_s=answer["stopped_s"])
    heap = _joined(malloc_heap(texts.get("malloc_info", "")), python_heap(account.get("allocator", "")))
    if heap is not None and (own := account.get("own", 0)) < heap.in_use:
        heap = replace(heap, in_use=heap.in_use - own, held=heap.held - own)
    return Taken(
        heap,
        sites=python_sites(account),
        absent=tuple(_python_absent(account)),
        stopped_s=max([answer["stopped_s"], *account.get("stops", [])]),
        kept={"python.json": output},
    )


def python_sites(account: PythonAnswer) -> tuple[Sites, ...]:
    """The lines and types of an answer."""
    sites = []
    if (lines := account.get("lines")) is not None:
        rows = largest(
            [Site(SiteKind.LINE, name, size, count, not name.startswith("<")) for name, size, count in lines]
        )
        sites.append(Sites("tracemalloc", Basis.TRACED, rows, account.get("since_ns")))
    if (types := account.get("types")) is not None:
        rows = largest(
            [Site(SiteKind.TYPE, name, size, count, not name.startswith("builtins.")) for name, size, count in types]
        )
        sites.append(Sites("gc", Basis.LIVE, rows))
    return tuple(sites)


def _python_absent(account: PythonAnswer) -> list[Absent]:
    absent = []
    if account.get("error"):
        absent.append(Absent("tracemalloc", Why.FAILED, account["error"]))
    if account.get("lines_left"):
        absent.append(Absent("tracemalloc", Why.STOP))
    if account.get("types") is None and not account.get("error"):
        absent.append(Absent("gc", Why.STOP))
    return absent
