"""Routing (FRR): heap of each daemon, BGP peers and memory of the routing table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from soakwatch.sources.transport.ssh.ask import Ask, lines, parsed, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_DAEMON = re.compile(r"Memory statistics for (\S+):")
_SIZE = re.compile(r"\s*(Total heap allocated|Used ordinary blocks):\s+(>?)\s*(\d{1,15}) (bytes|KiB|MiB|GiB)")
_UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_MARK = "%%%% bgp"
_FAMILIES = {
    "ipv4Unicast": "ipv4 unicast",
    "ipv6Unicast": "ipv6 unicast",
    "ipv4Vpn": "vpnv4 unicast",
    "ipv6Vpn": "vpnv6 unicast",
    "l2VpnEvpn": "l2vpn evpn",
}


class Frr(Ask):
    """The heap is glibc's own account as ``show memory`` rounds it (to KiB, above 10 MiB to MiB): a small leak of a
    large daemon is seen sooner in its resident memory. Established peers of each address family are sessions, and each
    peer of the default VRF is one; a peer that is shut down on purpose is not sampled."""

    metrics = (
        "system.memory.pool.usage",
        "system.memory.pool.limit",
        "system.sessions",
        "network.session.up",
        "network.session.uptime",
        "network.session.flaps",
        "network.session.prefixes",
    )
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
                metric = "system.memory.pool.usage" if match[1].startswith("Used") else "system.memory.pool.limit"
                object_label = object_text(pool=clean(f"frr {daemon} heap"))
                notes.sample(metric, object_label, int(match[3]) * _UNIT[match[4]])
        if bgp.strip().startswith("{"):
            _read_bgp(bgp, notes)


def _read_bgp(text: str, notes: ProbeAnswer) -> None:
    reported = parsed(text)
    known: set[str] = set()
    for family, summary in reported.items() if isinstance(reported, dict) else ():
        peers = summary.get("peers") if isinstance(summary, dict) else None
        if not isinstance(summary, dict) or not isinstance(peers, dict):
            continue
        up = sum(isinstance(peer, dict) and peer.get("state") == "Established" for peer in peers.values())
        notes.sample("system.sessions", object_text(table=clean(f"bgp {family} established")), up)
        _read_peers(family, peers, known, notes)
        routes, used = whole(summary.get("ribCount")), whole(summary.get("ribMemory"))
        if routes is not None:
            notes.sample("system.sessions", object_text(table=clean(f"bgp {family} routes")), routes)
        if used is not None:
            notes.sample("system.memory.pool.usage", object_text(pool=clean(f"frr bgp {family} rib")), used)


def _read_peers(family: str, peers: Mapping[str, object], known: set[str], notes: ProbeAnswer) -> None:
    """State, uptime and count of each peer; the count is that of BGP4-MIB, which SNMP tells of the same peer."""
    for address, peer in peers.items():
        if not isinstance(peer, dict) or "Admin" in str(peer.get("state")):
            continue
        session = {"protocol": "bgp", "peer": clean(address), "context": "default"}
        stands = peer.get("state") == "Established"
        if address not in known:  # a session carries several families
            known.add(address)
            notes.sample("network.session.up", object_text(**session), float(stands))
            uptime_ms, flaps = whole(peer.get("peerUptimeMsec")), whole(peer.get("connectionsEstablished"))
            if stands and uptime_ms is not None:
                notes.sample("network.session.uptime", object_text(**session), uptime_ms / 1000)
            if flaps is not None:
                notes.sample("network.session.flaps", object_text(**session), flaps)
        accepted = whole(peer.get("pfxRcd"))
        if stands and accepted is not None:
            text = object_text(**session, family=_FAMILIES.get(family, clean(family)))
            notes.sample("network.session.prefixes", text, accepted)
