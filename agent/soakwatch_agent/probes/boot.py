"""Boot: uptime, time of boot and the kernel's boot id."""

from __future__ import annotations

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.kept_files import KeptFiles
from soakwatch_agent.procfs import read_line
from soakwatch_model.sample import Answer


def boot_number(boot_id: str) -> int:
    """The first 48 bits of a boot id, which a float holds exactly.

    >>> boot_number("00000000-00ff-4000-8000-000000000000")
    255
    """
    return int(boot_id.replace("-", "")[:12], 16)


class BootProbe:
    """Reports the boot time that HostContext read once: the kernel's own moves whenever the clock is set."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._files = KeptFiles(context)
        self._uptime = self._files.reader("/proc/uptime", whole=True)
        self._boot_id = context.path("/proc/sys/kernel/random/boot_id")
        self._notes = ProbeAnswer()
        self._slow = Periodic(60)

    def read(self, now_ns: int) -> Answer:
        """Uptime at each poll, the rest every 60 s."""
        notes = self._notes
        notes.begin(now_ns)
        notes.sample("system.uptime", "", float(self._uptime().split()[0]))
        if self._slow.due(now_ns):
            boot_s, boot_id = self._context.boot_s(), read_line(self._boot_id)
            if boot_s is None:
                notes.fault("system.boot.time", "", "the kernel does not report its boot time")
            else:
                notes.sample("system.boot.time", "", boot_s)
            if boot_id is None:
                notes.fault("system.boot.id", "", "the kernel does not report its boot id")
            else:
                notes.sample("system.boot.id", "", boot_number(boot_id))
        return notes.answer()

    def close(self) -> None:
        """Closes the kernel's file."""
        self._files.close()


def open_probe(context: HostContext) -> BootProbe:
    """Opens the probe of a host."""
    return BootProbe(context)
