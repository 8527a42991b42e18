"""Sockets: how many are in use, what their queues hold, TCP connections that are closing, and the kernel's limits."""

from __future__ import annotations

import os
from typing import Mapping, Optional

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_sockstat, read_line
from soakwatch_model.metric_queries import brought_by
from soakwatch_model.sample import Answer

_PROTOCOLS = ("tcp", "udp")
_OF_TCP = {"orphans": "orphan", "time_wait": "tw", "allocated": "alloc"}
"""Last word of a TCP metric -> the kernel's word."""


class SocketsProbe:
    """Reads /proc/net/sockstat and sockstat6 each poll, the limits every 10 s.

    IPv4 and IPv6 are summed. Sockets in use or TIME-WAIT are those of the network namespace; memory, orphans and
    allocated sockets those of the whole machine.
    """

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._sockstat = self._files.reader("/proc/net/sockstat", whole=True)
        self._sockstat6 = self._files.reader("/proc/net/sockstat6", whole=True)
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """One poll; what this kernel does not count is left out."""
        notes = self._notes
        notes.begin(now_ns)
        name = "sockstat"
        try:
            tables = parse_sockstat(self._sockstat())
            name = "sockstat6"
            tables6 = self._tables6()
        except OSError as error:
            for metric in brought_by("sockets"):
                notes.fault(metric, "", f"/proc/net/{name} cannot be read: {self._context.why(error)}")
            return notes.answer()
        for metric in brought_by("sockets"):
            notes.recovered(metric, "")
        tcp, everything = tables.get("TCP", {}), tables.get("sockets", {})
        if "used" in everything:
            notes.sample("system.sockets.allocated", "", everything["used"])
        for protocol in _PROTOCOLS:
            table, table6 = tables.get(protocol.upper(), {}), tables6.get(f"{protocol.upper()}6", {})
            if "inuse" in table:
                used = table["inuse"] + table6.get("inuse", 0)
                notes.sample("system.sockets.usage", f"protocol={protocol}", used)
            if "mem" in table:
                notes.sample("system.sockets.memory", f"protocol={protocol}", table["mem"] * self._page)
        for word, key in _OF_TCP.items():
            if key in tcp:
                notes.sample(f"system.tcp.{word}", "", tcp[key])
        if self._slow.due(now_ns):
            self._read_limits()
        return notes.answer()

    def _read_limits(self) -> None:
        for protocol in _PROTOCOLS:
            most = self._last_number(f"/proc/sys/net/ipv4/{protocol}_mem")
            if most is not None:
                self._notes.sample("system.sockets.memory.limit", f"protocol={protocol}", most * self._page)
        orphans = self._last_number("/proc/sys/net/ipv4/tcp_max_orphans")
        if orphans is not None:
            self._notes.sample("system.tcp.orphans.limit", "", orphans)

    def _last_number(self, path: str) -> Optional[int]:
        """The last number of a setting (of low, pressure, max); None if a container does not have it."""
        words = (read_line(self._context.path(path)) or "").split()
        return int(words[-1]) if words and words[-1].isdigit() else None

    def _tables6(self) -> Mapping[str, Mapping[str, int]]:
        """Empty if the kernel has no IPv6. Raises OSError if the file exists but cannot be read."""
        try:
            return parse_sockstat(self._sockstat6())
        except FileNotFoundError:
            return {}

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> SocketsProbe:
    """Opens the probe of a host."""
    return SocketsProbe(context)
