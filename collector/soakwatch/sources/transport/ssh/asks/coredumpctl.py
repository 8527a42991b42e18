"""Core dumps that systemd-coredump logged and of which it kept no file (``coredumpctl list``)."""

from __future__ import annotations

from soakwatch.sources.transport.ssh.ask import Ask, parsed, rows, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean

_MAX_DUMPS = 50


class Coredumpctl(Ask):
    """A dump whose file is there is told by the core folders (probe ``core``), so it is left out here. The journal of
    a device that lost power may tell old dumps late; what was listed at the first sight belongs to another run."""

    every_s = 10.0
    present = "coredumpctl --version && coredumpctl --help | grep -q json"
    _known: set[tuple[int, int]] | None = None

    def command(self) -> str:
        """Those of the last day: a list without bounds takes longer with each crash."""
        return "coredumpctl list --json=short --no-pager --quiet --since=-24h || echo '[]'"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Event ``core.dump`` for each new dump without a file."""
        seen: set[tuple[int, int]] = set()
        reported = 0
        for row in rows(parsed(text)):
            pid, time_us = whole(row.get("pid")), whole(row.get("time"))
            if pid is None or time_us is None:
                continue
            seen.add((time_us, pid))
            if self._known is None or (time_us, pid) in self._known or row.get("corefile") == "present":
                continue
            reported += 1
            if reported <= _MAX_DUMPS:
                exe = row.get("exe")
                name = exe.rpartition("/")[2] if isinstance(exe, str) else ""
                notes.event(
                    "core.dump",
                    "",
                    process=clean(name),
                    pid=pid,
                    signal=row.get("sig"),
                    time_s=time_us / 1e6,
                    file=f"{row.get('corefile')}: systemd-coredump did not keep it",
                )
        self._known = seen
