"""Neighbours and sessions from the JSON of Arista EOS, Cisco NX-OS and Juniper Junos."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder

Row = Mapping[str, object]
_MAX_DEPTH = 24


def document(draft: ParsedBuilder, text: str) -> Row:
    """The JSON object in a text; an empty one, counted as unknown, if there is none."""
    begin = text.find("{")
    try:
        found = json.loads(text[begin : text.rfind("}") + 1]) if begin >= 0 else None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    if text.strip():
        draft.odd(text.strip()[:200])
    return {}


def rows(branch: object, name: str, above: Row | None = None, depth: int = _MAX_DEPTH) -> Iterator[tuple[Row, Row]]:
    """Every object under a name, wherever it stands in the tree, with the nearest values above it.

    A table of one row is an object, of several a list (NX-OS); each value of Junos is a list of one ``data``.
    """
    above = above or {}
    if not depth:
        return
    if isinstance(branch, list):
        for item in branch:
            yield from rows(item, name, above, depth - 1)
    elif isinstance(branch, Mapping):
        plain = {key: value for key, value in branch.items() if _leaf(value) is not None}
        mine = {**above, **plain}
        for key, value in branch.items():
            if key == name:
                for item in value if isinstance(value, list) else (value,):
                    if isinstance(item, Mapping):
                        yield item, mine
            elif isinstance(value, Mapping | list):
                yield from rows(value, name, mine, depth - 1)


def having(branch: object, *names: str, depth: int = _MAX_DEPTH) -> Iterator[tuple[Row, Row]]:
    """Every object that has a plain value of one of the names, with the values above it."""
    stack: list[tuple[object, Row, int]] = [(branch, {}, depth)]
    while stack:
        item, above, left = stack.pop()
        if not left:
            continue
        if isinstance(item, list):
            stack += [(inner, above, left - 1) for inner in reversed(item)]
        elif isinstance(item, Mapping):
            if text_of(item, *names):
                yield item, above
            mine = {**above, **{key: value for key, value in item.items() if _leaf(value) is not None}}
            stack += [(inner, mine, left - 1) for inner in reversed(list(item.values()))]


def _leaf(value: object) -> str | float | None:
    """A plain value, or the ``data`` of a list of one as Junos writes it."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        value = value[0].get("data")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return value


def text_of(row: Row, *names: str) -> str:
    """The first of some values that a row has, as text."""
    for name in names:
        value = _leaf(row.get(name))
        if value is not None and str(value).strip():
            return str(value).strip()
    return ""


def number_of(row: Row, *names: str) -> str | float | None:
    """The first of some values that a row has, if it is a number or a text."""
    return next((value for name in names if (value := _leaf(row.get(name))) is not None), None)


def _inner(branch: object, *path: str) -> Row:
    for name in path:
        branch = branch.get(name) if isinstance(branch, Mapping) else None
    return branch if isinstance(branch, Mapping) else {}


def _each(branch: object) -> Iterator[tuple[str, Row]]:
    for name, row in branch.items() if isinstance(branch, Mapping) else ():
        if isinstance(row, Mapping):
            yield str(name), row


# --- Arista EOS ------------------------------------------------------------------------------------------------------


def eos_bgp(text: str) -> Parsed:
    """BGP peers of all VRFs. ``peerStateIdleReason`` tells those that were shut down."""
    return _eos_bgp(text, "")


def _eos_bgp(text: str, family: str) -> Parsed:
    draft = ParsedBuilder()
    for vrf, branch in _each(document(draft, text).get("vrfs")):
        for peer, row in _each(branch.get("peers")):
            shut = text_of(row, "peerStateIdleReason").lower() in ("admin", "administratively shut down")
            draft.session(
                "bgp",
                peer,
                None if shut or row.get("underMaintenance") is True else text_of(row, "peerState"),
                vrf,
                moment=number_of(row, "upDownTime"),
                prefixes=number_of(row, "prefixAccepted", "prefixReceived"),
                family=family or ("ipv6 unicast" if ":" in peer else "ipv4 unicast"),
            )
    return draft.done()


def eos_bgp_evpn(text: str) -> Parsed:
    """BGP peers that exchange routes of EVPN."""
    return _eos_bgp(text, "l2vpn evpn")


def eos_ospf(text: str) -> Parsed:
    """OSPF neighbours of all VRFs and instances."""
    draft = ParsedBuilder()
    for vrf, branch in _each(document(draft, text).get("vrfs")):
        for row, _ in rows(branch, "ospfNeighborEntries"):
            details = _inner(row, "details")
            draft.session(
                "ospf",
                text_of(row, "interfaceAddress", "routerId"),
                text_of(row, "adjacencyState"),
                vrf,
                moment=number_of(details, "stateTime"),
                flaps=number_of(details, "numberOfStateChanges"),
            )
    return draft.done()


def eos_isis(text: str) -> Parsed:
    """IS-IS adjacencies of all VRFs and instances."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "adjacencies"):
        since = number_of(_inner(row, "details"), "stateChanged")
        peer, where = text_of(row, "hostname", "systemId", "snpa"), text_of(row, "interfaceName")
        draft.session("isis", peer, text_of(row, "state"), where, moment=since)
    return draft.done()


def eos_bfd(text: str) -> Parsed:
    """BFD peers of all VRFs."""
    draft = ParsedBuilder()
    for _, branch in _each(document(draft, text).get("vrfs")):
        for kind in ("ipv4Neighbors", "ipv6Neighbors"):
            for peer, neighbour in _each(branch.get(kind)):
                for stats in _peer_stats(neighbour):
                    for port, row in _each(stats):
                        if text_of(row, "status"):
                            state = text_of(row, "status")
                            draft.session("bfd", peer, state, port, moment=number_of(row, "lastUp"))
    return draft.done()


def _peer_stats(neighbour: Row) -> Iterator[Row]:
    direct = neighbour.get("peerStats")
    if isinstance(direct, Mapping):
        yield direct
    for row, _ in rows([value for key, value in neighbour.items() if key != "peerStats"], "peerStats"):
        yield row


def eos_lacp(text: str) -> Parsed:
    """Ports of the bundles that LACP made."""
    draft = ParsedBuilder()
    for bundle, branch in _each(document(draft, text).get("portChannels")):
        for port, row in _each(branch.get("interfaces")):
            draft.session("lacp", port, text_of(row, "actorPortStatus", "state"), bundle)
    return draft.done()


def eos_vrrp(text: str) -> Parsed:
    """Groups of VRRP."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "virtualRouters"):
        state = text_of(row, "state")
        draft.role("vrrp", text_of(row, "groupId", "group"), state, text_of(row, "interface"))
    return draft.done()


# --- Cisco NX-OS -----------------------------------------------------------------------------------------------------


def nxos_bgp(text: str) -> Parsed:
    """BGP neighbours of all VRFs and address families."""
    draft = ParsedBuilder()
    for row, above in rows(document(draft, text), "ROW_neighbor"):
        count = number_of(row, "prefixreceived")
        draft.session(
            "bgp",
            text_of(row, "neighborid"),
            text_of(row, "state"),
            text_of(above, "vrf-name-out"),
            uptime=text_of(row, "time"),
            prefixes=count,
            family=text_of(above, "af-name"),
        )
    return draft.done()


def nxos_ospf(text: str) -> Parsed:
    """OSPF neighbours of all VRFs."""
    draft = ParsedBuilder()
    for row, above in rows(document(draft, text), "ROW_nbr"):
        peer, state = text_of(row, "addr", "rid"), text_of(row, "state")
        draft.session("ospf", peer, state, text_of(above, "cname"), uptime=text_of(row, "uptime", "lastchange"))
    return draft.done()


def nxos_isis(text: str) -> Parsed:
    """IS-IS adjacencies of all VRFs."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "ROW_process_adj"):
        peer, state = text_of(row, "adj-sys-name-out", "adj-sys-id-out"), text_of(row, "adj-state-out")
        draft.session("isis", peer, state, text_of(row, "adj-intf-name-out"))
    return draft.done()


def nxos_bfd(text: str) -> Parsed:
    """BFD sessions of all VRFs."""
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), "ROW_bfdNeighbor"):
        state = text_of(row, "local_state", "state", "remote_state")
        draft.session("bfd", text_of(row, "dest_ip_addr"), state, text_of(row, "intf"))
    return draft.done()


def nxos_lacp(text: str) -> Parsed:
    """Members of the bundles that LACP made."""
    draft = ParsedBuilder()
    for row, above in rows(document(draft, text), "ROW_channel"):
        if text_of(row, "prtcl").upper() != "LACP":
            continue
        bundle = text_of(row, "port-channel") or text_of(above, "group")
        for member, _ in rows(row, "ROW_member"):
            draft.session("lacp", text_of(member, "port"), text_of(member, "port-status") == "P", bundle)
    return draft.done()


def nxos_hsrp(text: str) -> Parsed:
    """Groups of HSRP."""
    return _nxos_groups(text, "hsrp", "ROW_grp_detail", "sh_group_num")


def nxos_vrrp(text: str) -> Parsed:
    """Groups of VRRP."""
    return _nxos_groups(text, "vrrp", "ROW_vrrp_group", "sh_group_id")


def _nxos_groups(text: str, protocol: str, table: str, number: str) -> Parsed:
    draft = ParsedBuilder()
    for row, _ in rows(document(draft, text), table):
        state = text_of(row, "sh_group_state")
        draft.role(protocol, text_of(row, number), state, text_of(row, "sh_if_index"))
    return draft.done()
