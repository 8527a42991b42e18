"""The kernel log of a device: records that mean trouble are handed on to the agent's probe, each once."""

from __future__ import annotations

from soakwatch_agent.kernlog import alarm_of, parse_record


class KernelLog:
    """Remembers the last record that was seen, so that a line that was cut loses none and tells none twice."""

    def __init__(self) -> None:
        self._last = -1
        self._boot = ""
        self.begun = False

    def take(self, text: bytes, boot_id: str) -> bytes:
        """The new records that mean trouble, one a line; of the first look none: they belong to another run."""
        first, self.begun = not self.begun, True
        if boot_id != self._boot:
            if self._boot:
                first = False
            self._boot, self._last = boot_id, -1
        alarms = []
        for raw in text.decode("utf-8", "surrogateescape").split("\n"):
            record = parse_record(raw)
            if record is None or record.seq <= self._last:
                continue
            self._last = record.seq
            if not first and not record.priority >> 3 and alarm_of(record.text) is not None:
                alarms.append(raw)
        return "".join(f"{line}\n" for line in alarms).encode("utf-8", "surrogateescape")
