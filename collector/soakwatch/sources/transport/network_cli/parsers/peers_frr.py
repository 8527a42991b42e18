"""Neighbours and sessions of FRR, which writes them in JSON (``vtysh``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder
from soakwatch.sources.transport.network_cli.parsers.peers_json import Tree, number_of, rows, text_of

_NOT_THERE = re.compile(
    r"(?i)is not running|failed to connect to any daemon|instance not found|not enabled"
    r"|% .{0,40}not (?:found|configured)"
)


def show_version(text: str) -> Parsed:
    """The version."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := re.match(r"^FRRouting (\S{1,60})", line)) is not None:
            draft.fact("version", match[1])
            break
    return draft.done()


def show_bgp_summary(text: str) -> Parsed:
    """BGP peers of all VRFs: how often each was established, since when, prefixes of each family."""
    draft = ParsedBuilder()
    for vrf, families in _each(_document(draft, text)):
        for family, summary in _each(families):
            for peer, row in _each(summary.get("peers")):
                state = text_of(row, "state")
                draft.session(
                    "bgp",
                    peer,
                    state,
                    vrf,
                    uptime=_thousandth(row, "peerUptimeMsec"),
                    flaps=number_of(row, "connectionsEstablished"),
                    prefixes=number_of(row, "pfxRcd"),
                    family=family,
                )
    return draft.done()


def show_ospf_neighbor(text: str) -> Parsed:
    """OSPF neighbours of all VRFs, in detail."""
    draft = ParsedBuilder()
    for vrf, branch in _each(_document(draft, text)):
        neighbours = branch.get("neighbors")
        for router, entries in neighbours.items() if isinstance(neighbours, Mapping) else ():
            for row in entries if isinstance(entries, list) else [entries]:
                if isinstance(row, Mapping):
                    draft.session(
                        "ospf",
                        text_of(row, "ifaceAddress") or str(router),
                        text_of(row, "nbrState", "state"),
                        vrf,
                        uptime=_thousandth(row, "upTimeInMsec", "lastPrgrsvChangeMsec"),
                        flaps=number_of(row, "stateChangeCounter"),
                    )
    return draft.done()


def show_isis_neighbor(text: str) -> Parsed:
    """IS-IS adjacencies by name and interface."""
    draft = ParsedBuilder()
    for row, _ in rows(_document(draft, text), "circuits"):
        port = row.get("interface")
        if isinstance(port, Mapping) and text_of(row, "adj"):
            state, where = text_of(port, "state"), text_of(port, "name")
            ago, flaps = text_of(port, "last-ago"), number_of(port, "adj-flaps")
            draft.session("isis", text_of(row, "adj"), state, where, uptime=ago, flaps=flaps)
    return draft.done()


def show_bfd_peers(text: str) -> Parsed:
    """BFD sessions by peer and interface."""
    draft = ParsedBuilder()
    for row in _list(draft, text):
        where = text_of(row, "interface") or text_of(row, "vrf")
        draft.session("bfd", text_of(row, "peer"), text_of(row, "status"), where, uptime=number_of(row, "uptime"))
    return draft.done()


def show_vrrp(text: str) -> Parsed:
    """Groups of VRRP that have an address."""
    draft = ParsedBuilder()
    for row in _list(draft, text):
        for version in ("v4", "v6"):
            part = row.get(version)
            if isinstance(part, Mapping) and part.get("addresses"):
                group = text_of(row, "vrid") + ("" if version == "v4" else " v6")
                state = "shutdown" if row.get("shutdown") is True else text_of(part, "status")
                draft.role("vrrp", group, state, text_of(row, "interface"))
    return draft.done()


def _thousandth(row: Tree, *names: str) -> float | None:
    value = number_of(row, *names)
    return value / 1000 if isinstance(value, int | float) else None


def _loaded(draft: ParsedBuilder, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text.strip() and _NOT_THERE.search(text[:400]) is None:
            draft.odd(text.strip()[:200])
        return None


def _document(draft: ParsedBuilder, text: str) -> Tree:
    found = _loaded(draft, text)
    return found if isinstance(found, dict) else {}


def _list(draft: ParsedBuilder, text: str) -> Iterator[Tree]:
    found = _loaded(draft, text)
    for row in found if isinstance(found, list) else ():
        if isinstance(row, Mapping):
            yield row


def _each(branch: object) -> Iterator[tuple[str, Tree]]:
    for name, row in branch.items() if isinstance(branch, Mapping) else ():
        if isinstance(row, Mapping):
            yield str(name), row
