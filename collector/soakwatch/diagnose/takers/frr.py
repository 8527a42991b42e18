"""Asks a daemon of FRR by ``show memory``: its heap, and what it holds by type of object. Nothing is stopped."""

from __future__ import annotations

import re

from soakwatch.core.units import size
from soakwatch.diagnose.allowance import Allowance, Subject, Taken, reason_of
from soakwatch.diagnose.look import Absent, Basis, Heap, Site, SiteKind, Sites, largest
from soakwatch.diagnose.shell import Host, first_line

PART = "show memory"
_TIMEOUT_S = 30.0
_ROW = re.compile(r"^(\S[^:\n]{0,60}?)\s*:\s{1,20}(\d{1,15})\s{1,20}\S{1,20}\s{1,20}(\d{1,18})\b", re.MULTILINE)
_AMOUNT = re.compile(r"^ {2}([A-Z][a-z ]{1,40}): +(?:~ ?)?(\d{1,12} (?:bytes|KiB|MiB|GiB))", re.MULTILINE)


async def take_frr(host: Host, subject: Subject, _: Allowance) -> Taken:
    """The heap and the types, by ``vtysh`` at the daemon's own socket, wherever it has it."""
    pid = subject.pid
    command = (
        "command -v vtysh >/dev/null || exit 127\n"
        f'name=$(basename "$(readlink /proc/{pid}/exe)")\n'
        f"path=$(awk -v name=\"/$name.vty\" 'index($8, name) {{print $8; exit}}' /proc/{pid}/net/unix)\n"
        '[ -n "$path" ] || exit 3\n'
        'vtysh --vty_socket "$(dirname "$path")" -c "show memory $name" 2>&1'
    )
    output, trouble = await host.run(command, _TIMEOUT_S)
    text = output.decode("utf-8", "replace")
    rows = rows_of(text)
    if not rows:
        return Taken(absent=(Absent(PART, reason_of(trouble, output), first_line(output) or trouble),))
    sites = (Sites(PART, Basis.LIVE, largest(rows)),)
    return Taken(heap_of(text), sites=sites, kept={"show_memory.txt": output})


def rows_of(text: str) -> list[Site]:
    """The types that hold something.

    >>> rows_of("BGP route  :       12     72      864       12      864\\n")
    [Site(kind=<SiteKind.TYPE: 'type'>, name='BGP route', bytes=864, count=12, own=True)]
    """
    found = [(name, int(count), int(total)) for name, count, total in _ROW.findall(text)]
    return [Site(SiteKind.TYPE, name, total, count) for name, count, total in found if total]


def heap_of(text: str) -> Heap | None:
    """The account of malloc as FRR prints it; None if the system has none.

    >>> heap_of("  Total heap allocated:  64 KiB\\n  Used ordinary blocks:  60 KiB\\n")
    Heap(in_use=61440, held=65536, in_pieces=None, collected=True)
    """
    amounts = {name: int(size(amount.replace("bytes", "B"))) for name, amount in _AMOUNT.findall(text)}
    if not {"Total heap allocated", "Used ordinary blocks"} <= amounts.keys():
        return None
    mapped = amounts.get("Holding block headers", 0)
    used = amounts["Used ordinary blocks"] + amounts.get("Used small blocks", 0)
    return Heap(used + mapped, amounts["Total heap allocated"] + mapped)
