"""Routing (FRR): heap of each daemon, BGP peers and memory of the routing table."""

from __future__ import annotations

import re

from soakwatch.sources.transport.ssh.ask import Wants, lines, parsed, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_agent.sample import object_text

METRICS = ("system.memory.pool.usage", "system.memory.pool.limit", "system.sessions")
_DAEMON = re.compile(r"Memory statistics for (\S+):")
_SIZE = re.compile(r"\s*(Total heap allocated|Used ordinary blocks):\s+(>?)\s*(\d{1,15}) (bytes|KiB|MiB|GiB)")
_UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MARK = "%%%% bgp"


class Frr:
    """The heap is glibc's own account as ``show memory`` rounds it (to KiB, above 10 MiB to MiB): a small leak of a
    large daemon is seen sooner in its resident memory. Established peers of each address family are sessions."""

    every_s = 30.0
    present = "vtysh -c 'show version'"

    def command(self) -> str:
        """Two calls of vtysh; a router without BGP answers the second with a complaint."""
        return f"vtysh -c 'show memory'; echo; echo '{_MARK}'; vtysh -c 'show bgp summary json'"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes heaps and peers."""
        memory, _, bgp = text.partition(_MARK)
        daemon = ""
        for line in lines(memory):
            if (match := _DAEMON.search(line)) is not None:
                daemon = match[1]
            elif (match := _SIZE.match(line)) is not None and daemon and not match[2]:
                metric = METRICS[0] if match[1].startswith("Used") else METRICS[1]
                object_label = object_text(pool=clean(f"frr {daemon} heap"))
                notes.sample(metric, object_label, int(match[3]) * _UNIT[match[4]])
        if bgp.strip().startswith("{"):
            _read_bgp(bgp, notes)


def _read_bgp(text: str, notes: ProbeAnswer) -> None:
    reported = parsed(text)
    for family, summary in reported.items() if isinstance(reported, dict) else ():
        peers = summary.get("peers") if isinstance(summary, dict) else None
        if not isinstance(summary, dict) or not isinstance(peers, dict):
            continue
        up = sum(isinstance(peer, dict) and peer.get("state") == "Established" for peer in peers.values())
        notes.sample("system.sessions", object_text(table=clean(f"bgp {family} established")), up)
        routes, used = whole(summary.get("ribCount")), whole(summary.get("ribMemory"))
        if routes is not None:
            notes.sample("system.sessions", object_text(table=clean(f"bgp {family} routes")), routes)
        if used is not None:
            notes.sample("system.memory.pool.usage", object_text(pool=clean(f"frr bgp {family} rib")), used)


def open_ask(_wants: Wants) -> Frr:
    """The ask of a device."""
    return Frr()
