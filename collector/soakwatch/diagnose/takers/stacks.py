"""Where CPU time goes for some seconds: stacks of a Python by py-spy, of any other program and of a host by perf.

Neither stops the process: py-spy reads its memory beside it (``--nonblocking``), perf interrupts a core 49 times a
second.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from soakwatch.diagnose.allowance import Subject, Taken, reason_of
from soakwatch.diagnose.look import MAX_SITES, Absent, Basis, Runtime, Site, SiteKind, Sites
from soakwatch.diagnose.shell import Host, first_line

SECONDS: Final = 10
"""How long stacks are sampled."""
_RATE = 49  # a second: beside the usual ticks of 100, not with them
_MOST_LINES = 12_000
_RAW = re.compile(r"^(.+) (\d{1,9})$", re.MULTILINE)
_FRAME = re.compile(r"^(?P<function>.+) \((?P<place>[^()]+:\d+)\)$")
_PERF = re.compile(r"^\s+[0-9a-f]+ (.+)$")
_UNKNOWN = "[unknown]"


async def take_stacks(host: Host, subject: Subject, runtime: Runtime) -> Taken:
    """Stacks of a process, or of all of the host where the pid is 0."""
    if runtime is Runtime.PYTHON and subject.pid:
        taken = await _by_py_spy(host, subject.pid)
        if taken.sites:
            return taken
    whom = f"-p {subject.pid}" if subject.pid else "-a"
    record = f"perf record -q -F {_RATE} -g {whom} -o - -- sleep {SECONDS} 2>/dev/null"
    shown = f"perf script -i - -F comm,ip,sym 2>&1 | head -n {_MOST_LINES}"
    command = f"command -v perf >/dev/null || exit 127; {record} | {shown}"
    output, trouble = await host.run(command, 3.0 * SECONDS)
    sites = perf_sites(output.decode("utf-8", "replace"))
    if not sites:
        return Taken(absent=(Absent("perf", reason_of(trouble, output), first_line(output) or trouble),))
    return Taken(sites=(Sites("perf", Basis.SAMPLED, sites),), kept={"stacks.txt": output})


async def _by_py_spy(host: Host, pid: int) -> Taken:
    record = f"py-spy record --nonblocking -d {SECONDS} -r 20 -f raw -o /dev/stdout -p {pid} 2>/dev/null"
    output, trouble = await host.run(f"command -v py-spy >/dev/null || exit 127; {record}", 3.0 * SECONDS)
    sites = py_spy_sites(output.decode("utf-8", "replace"))
    if not sites:
        return Taken(absent=(Absent("py-spy", reason_of(trouble, output), first_line(output) or trouble),))
    return Taken(sites=(Sites("py-spy", Basis.SAMPLED, sites),), kept={"stacks.txt": output})


def py_spy_sites(text: str) -> tuple[Site, ...]:
    """The lines at which time was spent, by samples.

    >>> [(site.name, site.count) for site in py_spy_sites("main (a.py:7);hot (a.py:4) 39\\nmain (a.py:7) 1\\n")]
    [('a.py:4 in hot', 39), ('a.py:7 in main', 1)]
    """
    seen: Counter[str] = Counter()
    for stack, count in _RAW.findall(text):
        frames = [match for frame in stack.split(";") if (match := _FRAME.match(frame.strip()))]
        if frames:
            seen[f"{frames[-1]['place']} in {frames[-1]['function']}"] += int(count)
    return _ranked(seen)


def perf_sites(text: str) -> tuple[Site, ...]:
    """The functions in which time was spent, by samples; of a stack the innermost that has a name.

    >>> perf_sites("app \\n\\t  1a hot\\n\\t  2b main\\n\\n")
    (Site(kind=<SiteKind.LINE: 'line'>, name='hot in app', bytes=0, count=1, own=True),)
    """
    seen: Counter[str] = Counter()
    for block in text.split("\n\n"):
        head, *frames = block.strip("\n").split("\n")
        names = [match[1].strip() for frame in frames if (match := _PERF.match(frame))]
        if names and not head.startswith(("\t", " ")):
            seen[f"{next((name for name in names if name != _UNKNOWN), 'no name')} in {head.strip()}"] += 1
    return _ranked(seen)


def _ranked(seen: Counter[str]) -> tuple[Site, ...]:
    rows = sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:MAX_SITES]
    return tuple(Site(SiteKind.LINE, name, 0, count) for name, count in rows)
