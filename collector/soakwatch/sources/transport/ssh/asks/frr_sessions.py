"""Sessions of routing (FRR): peers and adjacencies of BGP, OSPF, IS-IS, BFD and VRRP."""

from __future__ import annotations

from soakwatch.sources.platforms.parsed import with_gone
from soakwatch.sources.platforms.platform import Command
from soakwatch.sources.profiles.loading import platform
from soakwatch.sources.transport.ssh.ask import Ask, Wants
from soakwatch_agent.context import ProbeAnswer

_MARK = "%%%% "


class FrrSessions(Ask):
    """What the platform ``frr`` asks as well. A neighbour that is lost disappears from most lists: one that was listed
    before and is not now is down. One that was shut down is not sampled."""

    metrics = (
        "network.session.up",
        "network.session.uptime",
        "network.session.flaps",
        "network.session.prefixes",
        "network.session.role",
    )
    every_s = 20.0
    present = "vtysh -c 'show version'"

    def __init__(self, wants: Wants) -> None:
        super().__init__(wants)
        questions = [command for command in platform("frr").commands if command.name != "show_version"]
        self._asked: list[tuple[Command, dict[str, None]]] = [(command, {}) for command in questions]

    def command(self) -> str:
        """One call of vtysh for each protocol: it ends at the first daemon that is not there."""
        questions = [command.texts[0] for command, _ in self._asked]
        return "; ".join(f"echo; echo '{_MARK}{question}'; vtysh -c '{question}' 2>&1" for question in questions)

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes sessions. Those of a daemon that is not there are gone with it; other words than a list prove
        nothing."""
        parts = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in text.split(_MARK)[1:]}
        for command, known in self._asked:
            if command.texts[0] in parts:
                for value in with_gone(known, command.parse(parts[command.texts[0]])).values:
                    notes.sample(value.metric, value.object, value.value)
