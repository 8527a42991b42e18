"""Asks a Node by its own inspector: its heap after a collection, and what is held by function since the first look.

The inspector is opened by SIGUSR1 on the loopback of the host, and closed at the last look; where a debugger is not
allowed it is not opened. A program of this Node's own executable talks to it, so nothing is installed.
"""

from __future__ import annotations

import json
import secrets
from importlib.resources import files
from typing import TypedDict, cast

from soakwatch.diagnose.allowance import Allowance, Subject, Taken, reason_of
from soakwatch.diagnose.look import Absent, Basis, Heap, Site, SiteKind, Sites, Why, largest
from soakwatch.diagnose.shell import Host, first_line

PART = "inspector"
_TIMEOUT_S = 90.0
_GRAIN = 32768  # bytes: V8 samples one of so many


class NodeAnswer(TypedDict, total=False):
    """What the program prints."""

    error: str
    since: int
    collected: bool
    stops: list[float]
    heap: dict[str, int]
    memory: dict[str, int]
    lines: list[tuple[str, int]]


async def take_node(host: Host, subject: Subject, allowed: Allowance) -> Taken:
    """The heap, and what is held by function of what was allocated since the first look."""
    if not allowed.debugger or allowed.stop_s <= 0:
        return Taken(absent=(Absent(PART, Why.NOT_ALLOWED),))
    text = (files("soakwatch.diagnose.takers") / "inside_node.js").read_text("utf-8")
    end, pid = f"SOAKWATCH{secrets.token_hex(6)}", subject.pid
    # a program that does not catch SIGUSR1 would die of it
    caught = f"awk '/^SigCgt:/{{print substr($2, length($2)-2, 1)}}' /proc/{pid}/status | grep -q '[2367abefABEF]'"
    command = (
        f"{caught} || {{ echo 'SIGUSR1 is not caught'; exit 3; }}\n"
        f"inner=$(awk '/^NSpid:/{{print $NF}}' /proc/{pid}/status)\n"
        f"set -- {pid} ${{inner:-{pid}}} {allowed.stop_s} {int(allowed.last)}\n"
        f"/proc/{pid}/exe - \"$@\" 2>&1 <<'{end}'\n{text}\n{end}\n"
    )
    output, trouble = await host.run(command, _TIMEOUT_S)
    try:
        reply = cast("NodeAnswer", json.loads(output))
    except ValueError:
        return Taken(absent=(Absent(PART, reason_of(trouble, output), first_line(output) or trouble),))
    if error := reply.get("error"):
        return Taken(absent=(Absent(PART, Why.FAILED, error),))
    return Taken(
        node_heap(reply),
        sites=node_sites(reply),
        stopped_s=round(max(reply.get("stops", []), default=0.0), 4),
        kept={"node.json": output},
    )


def node_heap(reply: NodeAnswer) -> Heap | None:
    """The heap of V8 with the buffers beside it; None if it is not there."""
    heap, memory = reply.get("heap", {}), reply.get("memory", {})
    if not {"used_heap_size", "total_heap_size"} <= heap.keys():
        return None
    beside = heap.get("external_memory", memory.get("external", 0))
    return Heap(heap["used_heap_size"] + beside, heap["total_heap_size"] + beside, None, reply.get("collected", False))


def node_sites(reply: NodeAnswer) -> tuple[Sites, ...]:
    """The functions of an answer; none in the look that began to sample."""
    lines = reply.get("lines")
    if lines is None:
        return ()
    rows = [Site(SiteKind.LINE, name, size, size // _GRAIN, "/" in name) for name, size in lines]
    return (Sites("inspector", Basis.TRACED, largest(rows), reply.get("since", 0) * 10**6, _GRAIN),)
