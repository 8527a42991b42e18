"""Neighbours and sessions of FRR, where an account's shell is ``vtysh``."""

from __future__ import annotations

from collections.abc import Callable

from soakwatch.sources import frr_sessions
from soakwatch.sources.frr_sessions import FrrSession
from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder, reports


@reports("network.session.up")
def show_bgp_summary(text: str) -> Parsed:
    """BGP peers of all VRFs: how often each was established, since when, prefixes of each family."""
    return _parsed(text, frr_sessions.bgp)


def show_ospf_neighbor(text: str) -> Parsed:
    """OSPF neighbours of all VRFs, in detail."""
    return _parsed(text, frr_sessions.ospf)


def show_isis_neighbor(text: str) -> Parsed:
    """IS-IS adjacencies by name and interface."""
    return _parsed(text, frr_sessions.isis)


def show_bfd_peers(text: str) -> Parsed:
    """BFD sessions by peer and interface."""
    return _parsed(text, frr_sessions.bfd)


def show_vrrp(text: str) -> Parsed:
    """Groups of VRRP that have an address."""
    return _parsed(text, frr_sessions.vrrp)


def _parsed(text: str, reader: Callable[[str], list[FrrSession] | None]) -> Parsed:
    draft = ParsedBuilder()
    found = reader(text)
    if found is None:
        draft.odd(text.strip()[:200])
    for row in found or ():
        if row.is_role:
            draft.role(row.protocol, row.peer, row.state, row.context)
            continue
        draft.session(
            row.protocol,
            row.peer,
            row.state,
            row.context,
            uptime=row.uptime,
            flaps=row.flaps,
            prefixes=row.prefixes,
            family=row.family,
        )
    return draft.done()
