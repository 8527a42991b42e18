"""Pressure stall information: time in which work waited for CPU, memory or I/O, or was held up by interrupts."""

from __future__ import annotations

import errno

from soakwatch_agent.context import HostContext, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import parse_pressure
from soakwatch_model.sample import Answer, object_text

_RESOURCES = ("cpu", "memory", "io", "irq")
_WITHOUT = frozenset([errno.ENOENT, errno.EOPNOTSUPP])  # built without PSI, or started with psi=0


class PressureProbe:
    """Reads the totals of /proc/pressure; their rate is the share of time, of which the averages there are a smoothing.
    They count stalls on the whole machine, even if a container reads them.

    A kernel without pressure stall information (before 4.20; ``irq`` before 6.1) has no reading and no fault: nobody
    could mend it. ``full`` of the CPU is left out: for a whole machine it is undefined, and the kernel writes 0.
    """

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._readers = {name: self._files.reader(f"/proc/pressure/{name}", whole=True) for name in _RESOURCES}
        self._notes = ProbeAnswer()

    def read(self, now_ns: int) -> Answer:
        """Seconds since boot, by resource and extent."""
        notes = self._notes
        notes.begin(now_ns)
        for name, read in self._readers.items():
            try:
                spent = parse_pressure(read())
            except OSError as error:
                if error.errno not in _WITHOUT or self._context.denied(error):
                    why = self._context.why(error)
                    notes.fault("system.pressure.time", "", f"/proc/pressure/{name} cannot be read: {why}")
                continue
            for extent, microseconds in spent.items():
                if (name, extent) != ("cpu", "full"):
                    text = object_text(resource=name, extent=extent)
                    notes.sample("system.pressure.time", text, microseconds / 1e6)
        return notes.answer()

    def close(self) -> None:
        """Closes the kernel's files."""
        self._files.close()


def open_probe(context: HostContext) -> PressureProbe:
    """Opens the probe of a host."""
    return PressureProbe(context)
