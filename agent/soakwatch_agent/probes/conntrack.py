"""Connection tracking: entries in the table and its size."""

from __future__ import annotations

from typing import Callable

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_model.sample import Answer


class ConntrackProbe:
    """Reads /proc/sys/net/netfilter/nf_conntrack_count and _max; reports once that a machine has no tracking."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._count = self._files.reader("/proc/sys/net/netfilter/nf_conntrack_count", whole=True)
        self._limit = self._files.reader("/proc/sys/net/netfilter/nf_conntrack_max", whole=True)
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """The count at each poll, the limit every 10 s."""
        self._notes.begin(now_ns)
        self._read_number("system.conntrack.count", self._count)
        if self._slow.due(now_ns):
            self._read_number("system.conntrack.limit", self._limit)
        return self._notes.answer()

    def _read_number(self, metric: str, read: Callable[[], str]) -> None:
        try:
            value = int(read())
        except OSError as error:
            text = f"the connection table cannot be read: {self._context.why(error)}"
            if isinstance(error, FileNotFoundError) and not self._context.denied(error):
                text = "this machine tracks no connections (nf_conntrack is not loaded)"
            self._notes.fault(metric, "", text)
        else:
            self._notes.sample(metric, "", value)
            self._notes.recovered(metric, "")

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> ConntrackProbe:
    """Opens the probe of a host."""
    return ConntrackProbe(context)
