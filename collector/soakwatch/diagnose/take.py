"""Takes a look at a process: the kernel's account, then its runtime's, each bounded and with what it cost."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from soakwatch.diagnose.allowance import Allowance, Subject, Taken
from soakwatch.diagnose.kernel_account import (
    commands,
    files_by_kind,
    mapped_by_kind,
    runtime_of,
    start_of,
    threads_by_name,
)
from soakwatch.diagnose.look import Absent, Cost, Look, Runtime, Why
from soakwatch.diagnose.shell import TIMES, Host, ask, cpu_seconds
from soakwatch.diagnose.takers.debugger import take_glibc, take_jemalloc, take_python
from soakwatch.diagnose.takers.frr import take_frr
from soakwatch.diagnose.takers.golang import take_go
from soakwatch.diagnose.takers.java import take_java
from soakwatch.diagnose.takers.node import take_node
from soakwatch.diagnose.takers.stacks import take_stacks

_TIMEOUT_S = 30.0
MAX_KEPT: Final = 4 << 20
"""Bytes of what programs wrote that one look keeps."""

_TAKERS: Final[Mapping[Runtime, Callable[[Host, Subject, Allowance], Awaitable[Taken]]]] = {
    Runtime.FRR: take_frr,
    Runtime.GLIBC: take_glibc,
    Runtime.GO: take_go,
    Runtime.JAVA: take_java,
    Runtime.JEMALLOC: take_jemalloc,
    Runtime.NODE: take_node,
    Runtime.PYTHON: take_python,
}


@dataclass(frozen=True, slots=True)
class About:
    """For what a look is taken: its number, the target, the object of the process, and the finding's rule and metric
    ("" by hand)."""

    number: int
    target: str
    process: str
    pid: int
    rule: str = ""
    metric: str = ""


async def take(
    host: Host, about: About, allowed: Allowance, time_ns: int, earlier: Look | None = None
) -> tuple[Look, Mapping[str, bytes]]:
    """One look (for a finding on CPU: stacks), and the files that were written for it.

    Never raises: what could not be had is in ``absent``.
    """
    begin = time.monotonic()
    parts, trouble = await ask(host, commands(about.pid), _TIMEOUT_S)
    start = start_of(parts.get("stat", b""))
    base = Look(
        about.number,
        about.target,
        about.process,
        about.pid,
        start,
        time_ns,
        about.rule,
        about.metric,
        Runtime.OTHER,
        None,
    )
    if not about.pid and base.of_cpu:  # the host as a whole
        taken = await take_stacks(host, Subject(0, 0), Runtime.OTHER)
        kept = _bounded(taken.kept)
        cost = Cost(_since(begin), bytes=sum(len(data) for data in kept.values()))
        return replace(base, sites=taken.sites, absent=taken.absent, cost=cost), kept
    if not start:
        missing = Absent("process", Why.FAILED, trouble or f"pid {about.pid} is gone")
        return replace(base, absent=(missing,), cost=Cost(_since(begin))), {}
    mapped, runtime, absent = mapped_by_kind(parts.get("smaps", b"")), runtime_of(parts), []
    if not mapped:
        denied = b"ermission denied" in parts.get("smaps", b"") or b"annot open" in parts.get("smaps", b"")
        absent.append(Absent("smaps", Why.DENIED if denied else Why.CUT if trouble else Why.FAILED))
    resident = sum(row.resident for row in mapped) if mapped else None
    known = earlier.cost.stopped_s if earlier is not None and earlier.start == start else None
    subject = Subject(about.pid, start, resident or 0, known)
    taker = _TAKERS.get(runtime)
    if base.of_cpu:
        taken = await take_stacks(host, subject, runtime)
    else:
        taken = Taken() if taker is None else await taker(host, subject, allowed)
    kept = _bounded(taken.kept)
    look = replace(
        base,
        runtime=runtime,
        resident=resident,
        mapped=mapped,
        files=files_by_kind(parts),
        threads=threads_by_name(parts.get("threads", b"")),
        heap=taken.heap,
        sites=taken.sites,
        absent=(*absent, *taken.absent),
        cost=Cost(
            _since(begin),
            cpu_seconds(parts.get(TIMES, b"")),
            taken.stopped_s,
            taken.stop_bound_s,
            sum(len(data) for data in kept.values()),
        ),
    )
    return look, kept


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 3)


def _bounded(kept: Mapping[str, bytes]) -> dict[str, bytes]:
    """The smaller files first, for as long as there is room."""
    room, chosen = MAX_KEPT, {}
    for name, data in sorted(kept.items(), key=lambda item: len(item[1])):
        if data and len(data) <= room:
            room -= len(data)
            chosen[name] = data
    return chosen
