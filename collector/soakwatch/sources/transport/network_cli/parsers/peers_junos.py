"""Neighbours and sessions of Juniper Junos, which writes each command in JSON (``| display json``)."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder
from soakwatch.sources.transport.network_cli.parsers.peers_json import (
    Row,
    document,
    having,
    number_of,
    rows,
    text_of,
)

_CHANGES = ("topology-change-count", "number-of-topology-changes")


def _seconds(row: Row, *names: str) -> float | None:
    """A length of time: Junos adds the seconds as an attribute of the value."""
    for name in names:
        value = row.get(name)
        first = value[0] if isinstance(value, list) and value else value
        attributes = first.get("attributes") if isinstance(first, Mapping) else None
        told = attributes.get("junos:seconds") if isinstance(attributes, Mapping) else None
        if told is not None and str(told).isdecimal() and len(str(told)) < 12:
            return float(str(told))
    return None


def show_bgp_summary(text: str) -> Parsed:
    """BGP peers of all instances: state, flaps, prefixes of each table."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "bgp-peer"):
        peer = text_of(row, "peer-address").partition("+")[0]
        context = text_of(row, "peer-fwd-rti", "peer-cfg-rti")
        state, since = text_of(row, "peer-state"), _seconds(row, "elapsed-time")
        draft.session("bgp", peer, state, context, uptime=since, flaps=number_of(row, "flap-count"))
        for rib, _ in rows(row, "bgp-rib"):
            count = number_of(rib, "accepted-prefix-count", "received-prefix-count")
            draft.session("bgp", peer, state, context, prefixes=count, family=text_of(rib, "name"))
    return draft.done()


def show_ospf_neighbor(text: str) -> Parsed:
    """OSPF neighbours of all instances; the extensive form tells how long each is full."""
    return _ospf(text, "ospf", "ospf-neighbor", "ospf-neighbor-state", "")


def show_ospf3_neighbor(text: str) -> Parsed:
    """OSPFv3 neighbours by address and interface."""
    return _ospf(text, "ospf3", "ospf3-neighbor", "ospf-neighbor-state", "interface-name")


def _ospf(text: str, protocol: str, table: str, state: str, where: str) -> Parsed:
    draft = ParsedBuilder()
    for row, above in rows(document(draft, text), table):
        context = text_of(row, where) if where else text_of(above, "ospf-instance-name")
        draft.session(
            protocol,
            text_of(row, "neighbor-address"),
            text_of(row, state),
            context,
            uptime=_seconds(row, "neighbor-adjacency-time", "neighbor-up-time"),
        )
    return draft.done()


def show_isis_adjacency(text: str) -> Parsed:
    """IS-IS adjacencies: state, transitions, time since the last of them."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "isis-adjacency"):
        draft.session(
            "isis",
            text_of(row, "system-name"),
            text_of(row, "adjacency-state"),
            text_of(row, "interface-name"),
            uptime=_seconds(row, "last-transition-time"),
            flaps=number_of(row, "transition-count"),
        )
    return draft.done()


def show_bfd_session(text: str) -> Parsed:
    """BFD sessions by neighbour and interface."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "bfd-session"):
        peer, where = text_of(row, "session-neighbor"), text_of(row, "session-interface")
        draft.session("bfd", peer, text_of(row, "session-state"), where, uptime=_seconds(row, "session-up-time"))
    return draft.done()


def show_lacp_interfaces(text: str) -> Parsed:
    """Links of aggregated interfaces: up while they collect and distribute."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "lacp-interface-information"):
        bundle = next((text_of(head, "aggregate-name") for head, _ in rows(row, "lag-lacp-header")), "")
        for link, _ in rows(row, "lag-lacp-protocol"):
            draft.session("lacp", text_of(link, "name"), text_of(link, "lacp-mux-state"), bundle)
    return draft.done()


def show_vrrp(text: str) -> Parsed:
    """Groups of VRRP."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "vrrp-interface"):
        state = text_of(row, "vrrp-state")
        draft.role("vrrp", text_of(row, "group"), state, text_of(row, "interface"))
    return draft.done()


def show_spanning_tree(text: str) -> Parsed:
    """Changes of the topology of each spanning tree: by VLAN or instance where there are several."""
    draft = ParsedBuilder()
    for row, above in having(document(draft, text), *_CHANGES):
        tree = text_of({**above, **row}, "vlan-id", "msti-id", "stp-instance") or "0"
        count = number_of(row, *_CHANGES)
        if count is not None:
            draft.value("network.topology.changes", count, protocol="stp", context=tree)
    return draft.done()


def show_ipsec(text: str) -> Parsed:
    """Tunnels of IPsec, by gateway and number of the tunnel."""
    draft = ParsedBuilder()
    for block, _ in rows(document(draft, text), "ipsec-security-associations-block"):
        state = text_of(block, "sa-block-state")
        for row, _ in rows(block, "ipsec-security-associations"):
            peer, where = text_of(row, "sa-remote-gateway"), text_of(row, "sa-tunnel-index")
            draft.session("tunnel", peer, state or "up", where)
    return draft.done()
