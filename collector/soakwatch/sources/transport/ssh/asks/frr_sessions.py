"""Sessions of routing (FRR): peers and adjacencies of BGP, OSPF, IS-IS, BFD and VRRP."""

from __future__ import annotations

from typing import ClassVar

from soakwatch.sources.frr_sessions import QUESTIONS, FrrSession
from soakwatch.sources.session_state import context_of, family_of, role_of, state_of
from soakwatch.sources.transport.ssh.ask import Wants
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_MARK = "%%%% "
_MOST = 1000


class FrrSessions:
    """A neighbour that is lost disappears from most lists: one that was listed before and is not now is down. One
    that was shut down is not sampled."""

    metrics: ClassVar[tuple[str, ...]] = (
        "network.session.up",
        "network.session.uptime",
        "network.session.flaps",
        "network.session.prefixes",
        "network.session.role",
    )
    every_s = 20.0
    present = "vtysh -c 'show version'"

    def __init__(self) -> None:
        self._known: dict[str, dict[str, None]] = {question: {} for question, _ in QUESTIONS}

    def command(self) -> str:
        """One call of vtysh for each protocol: it ends at the first daemon that is not there."""
        return "; ".join(f"echo; echo '{_MARK}{question}'; vtysh -c '{question}' 2>&1" for question, _ in QUESTIONS)

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes sessions. Those of a daemon that is not there are gone with it; other words than a list prove
        nothing."""
        parts = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in text.split(_MARK)[1:]}
        for question, reader in QUESTIONS:
            found = reader(parts[question]) if question in parts else None
            if found is not None:
                _note(found[:_MOST], self._known[question], notes)


def _note(found: list[FrrSession], known: dict[str, None], notes: ProbeAnswer) -> None:
    states: dict[str, bool] = {}
    told: dict[tuple[str, str], float] = {}
    for row in found:
        if not row.peer:
            continue
        labels = {
            "protocol": row.protocol,
            "peer": clean(row.peer).lower() if row.protocol in ("bgp", "bfd") else clean(row.peer),
            "context": clean(context_of(row.context)),
        }
        key, up = object_text(**labels), state_of(row.protocol, row.state)
        if row.is_role and up is not None:
            told.setdefault(("network.session.role", key), role_of(row.state))
        if row.is_role or up is None:
            known.pop(key, None)
            continue
        states[key] = states.get(key, False) or up
        if up and isinstance(row.uptime, int | float):
            told.setdefault(("network.session.uptime", key), row.uptime)
        if row.flaps is not None:
            told.setdefault(("network.session.flaps", key), row.flaps)
        if up and row.prefixes is not None:
            family = object_text(**labels, family=clean(family_of(row.family)))
            told.setdefault(("network.session.prefixes", family), row.prefixes)
    states |= dict.fromkeys([key for key in known if key not in states], False)
    known.update(dict.fromkeys(states))
    for key, up in states.items():
        notes.sample("network.session.up", key, int(up))
    for (metric, key), value in told.items():
        notes.sample(metric, key, value)


def open_ask(_wants: Wants) -> FrrSessions:
    """The ask of a device."""
    return FrrSessions()
