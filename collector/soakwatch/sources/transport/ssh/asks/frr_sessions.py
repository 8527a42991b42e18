"""Sessions of routing (FRR): peers and adjacencies of BGP, OSPF, IS-IS, BFD and VRRP."""

from __future__ import annotations

from collections.abc import Callable

from soakwatch.sources.transport.network_cli.parsed import Parsed, with_gone
from soakwatch.sources.transport.network_cli.parsers import peers_frr
from soakwatch.sources.transport.ssh.ask import Wants
from soakwatch_agent.context import ProbeAnswer

METRICS = (
    "network.session.up",
    "network.session.uptime",
    "network.session.flaps",
    "network.session.prefixes",
    "network.session.role",
)
_MARK = "%%%% "
_ASKED: tuple[tuple[str, Callable[[str], Parsed]], ...] = (
    ("show bgp vrf all summary json", peers_frr.show_bgp_summary),
    ("show ip ospf vrf all neighbor detail json", peers_frr.show_ospf_neighbor),
    ("show isis neighbor detail json", peers_frr.show_isis_neighbor),
    ("show bfd peers json", peers_frr.show_bfd_peers),
    ("show vrrp json", peers_frr.show_vrrp),
)


class FrrSessions:
    """A neighbour that is lost disappears from most lists: one that was listed before and is not now is down. One
    that was shut down is not sampled."""

    every_s = 60.0
    present = "vtysh -c 'show version'"

    def __init__(self) -> None:
        self._known: dict[str, dict[str, None]] = {question: {} for question, _ in _ASKED}

    def command(self) -> str:
        """One call of vtysh for each protocol: it ends at the first daemon that is not there."""
        return "; ".join(f"echo; echo '{_MARK}{question}'; vtysh -c '{question}' 2>&1" for question, _ in _ASKED)

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes sessions. What vtysh says of a daemon that is not there is no answer about its peers, but they are
        gone with it."""
        parts = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in text.split(_MARK)[1:]}
        for question, parse in _ASKED:
            if question not in parts:
                continue
            for value in with_gone(self._known[question], parse(parts[question])).values:
                notes.sample(value.metric, value.object, value.value)


def open_ask(_wants: Wants) -> FrrSessions:
    """The ask of a device."""
    return FrrSessions()
