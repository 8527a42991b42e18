"""Interfaces: state, and the kernel's reasons for errors and drops, of ``ip -s -s -j link``."""

from __future__ import annotations

from soakwatch.sources.transport.ssh.ask import Ask, parsed, rows, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

# Of rtnl_link_stats64; 'dropped' and 'errors' themselves are system.network.packet.dropped and .errors.
_REASONS = {
    "rx": ("over_errors", "length_errors", "crc_errors", "frame_errors", "fifo_errors", "missed_errors", "nohandler"),
    "tx": ("aborted_errors", "fifo_errors", "window_errors", "heartbeat_errors", "carrier_errors", "collisions"),
}


class Ip(Ask):
    """An interface whose state the kernel does not know (loopback, tunnels) is up if it is meant to be."""

    metrics = ("system.network.up", "system.network.admin_up", "system.forwarding.dropped")
    every_s = 5.0
    present = "ip -s -s -j link show dev lo"

    def command(self) -> str:
        """One call for all interfaces."""
        return "ip -s -s -j link show"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes state and reasons of each interface; a reason that never happened is 0."""
        for row in rows(parsed(text)):
            name, flags = row.get("ifname"), row.get("flags")
            if not isinstance(name, str) or not self._wants.interface(name) or not isinstance(flags, list):
                continue
            object_label = object_text(interface=clean(name))
            meant, state = "UP" in flags, row.get("operstate")
            notes.sample("system.network.admin_up", object_label, int(meant))
            notes.sample("system.network.up", object_label, int(state == "UP" or (state == "UNKNOWN" and meant)))
            stats = row.get("stats64")
            for side, reasons in _REASONS.items():
                counters = stats.get(side) if isinstance(stats, dict) else None
                for reason in reasons if isinstance(counters, dict) else ():
                    value = whole(counters.get(reason)) if isinstance(counters, dict) else None
                    if value is not None:
                        drop_label = object_text(place=clean(name), reason=f"{side}_{reason}")
                        notes.sample("system.forwarding.dropped", drop_label, value)
