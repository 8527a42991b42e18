"""Packet processing (VPP): drops and errors of each node, memory of the main heap, and vector rates."""

from __future__ import annotations

import re

from soakwatch.sources.drop_reasons import refused_on_purpose
from soakwatch.sources.transport.ssh.ask import Ask, lines, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_SEVERITIES = ("error", "warn", "info")
_USED = re.compile(r"total: (?P<total>[\d.]+)(?P<tu>[KMGT]?), used: (?P<used>[\d.]+)(?P<uu>[KMGT]?)")
_THREAD = re.compile(r"Thread \d+ (?P<name>\S+)")
_RATE = re.compile(r"vector rate (?P<rate>[\d.e+-]{1,20})")
_UNIT = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MARKS = ("%%%% errors", "%%%% memory", "%%%% runtime")


class Vpp(Ask):
    """What an access list refused is told apart from losses. A node's line with severity ``info`` is left out; versions
    before 20.05 give no severity, and every line counts. Heap sizes are rounded by VPP to three or four digits. ``show
    errors`` may be set back to 0 by ``clear errors``. The vector rate of each thread (packets a call) is kept as a
    gauge of an exporter."""

    metrics = (
        "system.forwarding.dropped",
        "system.forwarding.denied",
        "system.memory.pool.usage",
        "system.memory.pool.limit",
        "exporter.gauge",
    )
    every_s = 10.0
    present = "vppctl show version"

    def command(self) -> str:
        """Three commands that only read."""
        return (
            f"echo '{_MARKS[0]}'; vppctl show errors; echo '{_MARKS[1]}'; vppctl show memory main-heap; "
            f"echo '{_MARKS[2]}'; vppctl show runtime max"
        )

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes drops, heap and rates."""
        part, thread = "", ""
        dropped: dict[str, int] = {}
        for line in lines(text.replace("\r", "")):
            if line in _MARKS:
                part = line
            elif part == _MARKS[0]:
                object_label, count = _error(line)
                if object_label:
                    dropped[object_label] = dropped.get(object_label, 0) + count  # a line a thread
            elif part == _MARKS[1] and (match := _USED.search(line)) is not None:
                pool = object_text(pool="vpp main heap")
                notes.sample("system.memory.pool.usage", pool, _bytes(match["used"], match["uu"]))
                notes.sample("system.memory.pool.limit", pool, _bytes(match["total"], match["tu"]))
                part = ""  # the heap's own parts follow
            elif part == _MARKS[2]:
                if (match := _THREAD.match(line)) is not None:
                    thread = match["name"]
                elif (match := _RATE.search(line)) is not None:
                    name = object_text(name="vpp.vector.rate", labels=clean(thread or "vpp_main"))
                    notes.sample("exporter.gauge", name, float(match["rate"]))
        for object_label, count in dropped.items():
            reason = object_label.partition(",reason=")[2]
            notes.sample(
                "system.forwarding.denied" if refused_on_purpose(reason) else "system.forwarding.dropped",
                object_label,
                count,
            )


def _error(line: str) -> tuple[str, int]:
    """The object and count of a line of ``show errors``; no object for a line that tells no loss."""
    count, node, reason = [*line.split(None, 2), "", "", ""][:3]
    severity = reason.rpartition(" ")[2]
    if severity in _SEVERITIES:
        reason = reason[: -len(severity)]
    value = whole(count)
    if value is None or value >= 2**64 or not reason.strip() or severity == "info":
        return "", 0
    return object_text(place=clean(f"vpp {node}"), reason=clean(reason.strip()[:200])), value


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNIT[unit])
