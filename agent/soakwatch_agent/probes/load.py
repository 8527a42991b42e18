"""Load averages, and interrupts served by each core."""

from __future__ import annotations

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_interrupts, read_text
from soakwatch_model.sample import Answer


class LoadProbe:
    """Reads /proc/loadavg each poll and /proc/interrupts, which is long on machines of many cores, every 10 s."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._loadavg, self._interrupts = (
            self._files.reader("/proc/loadavg", whole=True),
            context.path("/proc/interrupts"),
        )
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """Load averages (the kernel updates them every 5 s) and, every 10 s, interrupts."""
        notes = self._notes
        notes.begin(now_ns)
        averages = self._loadavg().split()
        for minutes, average in zip((1, 5, 15), averages):  # noqa: B905
            notes.sample("system.cpu.load", f"minutes={minutes}", float(average))
        if self._slow.due(now_ns):
            try:
                served = parse_interrupts(read_text(self._interrupts))
            except OSError as error:
                notes.fault("system.interrupts", "", f"/proc/interrupts cannot be read: {self._context.why(error)}")
            else:
                for core, count in served.items():
                    notes.sample("system.interrupts", f"core={core}", count)
        return notes.answer()

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> LoadProbe:
    """Opens the probe of a host."""
    return LoadProbe(context)
