"""The kernel's receive path: softirq work, backlog drops and squeezes of each core."""

from __future__ import annotations

from soakwatch_agent.context import HostContext, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_softnet
from soakwatch_model.metric_queries import brought_by
from soakwatch_model.sample import Answer


class SoftnetProbe:
    """Reads /proc/net/softnet_stat; its counters wrap at 32 bits."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._read = self._files.reader("/proc/net/softnet_stat")
        self._notes = ProbeAnswer()

    def read(self, now_ns: int) -> Answer:
        """Three counters for each core."""
        notes = self._notes
        notes.begin(now_ns)
        try:
            rows = parse_softnet(self._read())
        except OSError as error:
            for metric in brought_by("softnet"):
                notes.fault(metric, "", f"/proc/net/softnet_stat cannot be read: {self._context.why(error)}")
            return notes.answer()
        for row in rows:
            text = f"core={row.core}"
            notes.sample("system.softnet.processed", text, row.processed)
            notes.sample("system.softnet.dropped", text, row.dropped)
            notes.sample("system.softnet.squeezed", text, row.squeezed)
        return notes.answer()

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> SoftnetProbe:
    """Opens the probe of a host."""
    return SoftnetProbe(context)
