"""Neighbours and sessions as Huawei VRP and H3C Comware write them."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder
from soakwatch.sources.transport.network_cli.parsers.tables import RULE
from soakwatch.sources.transport.network_cli.units import ADDRESS

_BGP_VRP = re.compile(
    rf"^\s*\*?({ADDRESS})?\s+4\s+[\d.]{{1,21}}\s+\d+\s+\d+\s+\d+\s+(\S{{4,20}})\s+([A-Z]\S{{2,20}})\s+(\d{{1,12}})\s*$"
)
_BGP_COMWARE = re.compile(
    rf"^\s*\*?({ADDRESS})?\s+[\d.]{{1,21}}\s+\d+\s+\d+\s+\d+\s+(\d{{1,12}})\s+(\S{{4,20}})\s+([A-Z]\S{{2,20}})\s*$"
)
_ALONE = re.compile(rf"^\s*\*?({ADDRESS})\s*$")
_BGP_KNOWN = re.compile(
    r"(?i)^\s*(?:BGP|local|total|peers? |status|\* ?-|error|info|vpn-instance|rd |\(|address family)"
)
_BGP_VPN = re.compile(r"(?i)^\s*(?:Peer of IPv4-family for )?VPN[- ]instance,? *:? *([^\s,]{1,40})")

_OSPF = re.compile(rf"^\s*Router ID: *(\S{{1,20}})\s+Address: *({ADDRESS})")
_OSPF_STATE = re.compile(r"^\s*State: *(\S{1,20})")
_OSPF_UP = re.compile(r"^\s*Neighbor (?:is up for|up time)\s*:? *(\S{1,30})")
_OSPF_KNOWN = re.compile(r"(?i)ospf|neighbor|dead timer|^\s*(?:DR:|Authentication|Area|Last|Ip Fast|Priority)")

_ISIS_ROW = re.compile(r"^\s*(\S{1,40})\s+(\S{2,40})\s+(\S{1,24})\s+(Up|Down|Init)\s+\d{1,6}s\s+(L1|L2)\b")
_ISIS_FIELD = re.compile(r"(System ID|Interface|State|Type) ?: *(\S{1,40})")
_ISIS_KNOWN = re.compile(r"(?i)peer information|system id|total peer|isis|is-is|circuit")

_BFD_VRP = re.compile(
    rf"^\s*\d{{1,10}}\s+\d{{1,10}}\s+({ADDRESS})\s+(Up|Down|AdmDown|Init)(?:\(\w\))?\s+\S+\s+(\S{{1,40}})"
)
_BFD_COMWARE = re.compile(
    rf"^\s*\d{{1,10}}/\d{{1,10}}\s+({ADDRESS})\s+({ADDRESS})\s+(Up|Down|AdmDown|Init)\s+\S+\s+(\S{{1,40}})"
)
_BFD_KNOWN = re.compile(r"(?i)session|local +remote|ld/rd|state in wtr")

_LINKS = re.compile(r"^Aggregat\w* Interface: *(\S{1,40})")
_LINK_PORT = re.compile(r"^\s+([A-Z]\S{2,40}?)(?:\([RM]\))?\s+([SUI])\s+\d")
_VRRP_VRP = re.compile(r"^\s*(\d{1,5})\s+(Master|Backup|Initialize|Non-active)\s+(\S{2,40})\s")
_VRRP_COMWARE = re.compile(r"^\s*(\S{2,40})\s+(\d{1,5})\s+(Master|Backup|Initialize|Inactive)\s+\d")


def display_bgp_peer(text: str) -> Parsed:
    """BGP peers: state, time since it came up, prefixes."""
    return _bgp(text, "ipv4 unicast")


def _bgp(text: str, family: str) -> Parsed:
    draft = ParsedBuilder()
    peer = context = ""
    for line in draft.lines(text):
        if (match := _BGP_VRP.match(line)) is not None and (match[1] or peer):
            found, up, state, count = match[1] or peer, match[2], match[3], match[4]
        elif (match := _BGP_COMWARE.match(line)) is not None and (match[1] or peer):
            found, count, up, state = match[1] or peer, match[2], match[3], match[4]
        else:
            if (match := _ALONE.match(line)) is not None:
                peer = match[1]
            elif (match := _BGP_VPN.match(line)) is not None:
                context = match[1]
            elif _BGP_KNOWN.match(line) is None and "MsgRcvd" not in line:
                draft.odd(line)
            continue
        draft.session("bgp", found, state, context, uptime=up, prefixes=count, family=family)
        peer = ""
    return draft.done()


def display_ospf_peer(text: str) -> Parsed:
    """OSPF neighbours: state and time since they came up."""
    draft = ParsedBuilder()
    row: dict[str, str] = {}

    def close() -> None:
        if "state" in row:
            draft.session("ospf", row["peer"], row["state"], uptime=row.get("up"))
        row.clear()

    for line in draft.lines(text):
        if (match := _OSPF.match(line)) is not None:
            close()
            row["peer"] = match[2]
        elif (match := _OSPF_STATE.match(line)) is not None and row:
            row["state"] = match[1]
        elif (match := _OSPF_UP.match(line)) is not None and row:
            row["up"] = match[1]
        elif not (row or _OSPF_KNOWN.search(line) or RULE.match(line)):
            draft.odd(line)
    close()
    return draft.done()


def display_isis_peer(text: str) -> Parsed:
    """IS-IS adjacencies, from the table of VRP or the blocks of Comware."""
    draft = ParsedBuilder()
    row: dict[str, str] = {}
    for line in draft.lines(text):
        if (match := _ISIS_ROW.match(line)) is not None:
            draft.session("isis", match[1], match[4], match[2])
            continue
        fields = _ISIS_FIELD.findall(line)
        for name, value in fields:
            if name == "System ID":
                row.clear()
            row[name] = value
        if fields and {"System ID", "Interface", "State", "Type"} <= row.keys():
            draft.session("isis", row["System ID"], row["State"], row["Interface"])
            row.clear()
        elif not (fields or _ISIS_KNOWN.search(line) or RULE.match(line)):
            draft.odd(line)
    return draft.done()


def display_bfd_session(text: str) -> Parsed:
    """BFD sessions by peer and interface."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _BFD_VRP.match(line)) is not None:
            draft.session("bfd", match[1], "admin down" if match[2] == "AdmDown" else match[2], match[3])
        elif (match := _BFD_COMWARE.match(line)) is not None:
            draft.session("bfd", match[2], "admin down" if match[3] == "AdmDown" else match[3], match[4])
        elif not (RULE.match(line) or _BFD_KNOWN.search(line)):
            draft.odd(line)
    return draft.done()


def display_link_aggregation(text: str) -> Parsed:
    """Members of the dynamic aggregations of Comware."""
    draft = ParsedBuilder()
    group = ""
    ours = dynamic = False
    for line in draft.lines(text):
        if (match := _LINKS.match(line)) is not None:
            group, ours, dynamic = match[1], False, False
        elif line.startswith("Aggregation Mode:"):
            dynamic = "Dynamic" in line
        elif line.startswith(("Local", "Remote")):
            ours = line.startswith("Local")
        elif ours and dynamic and (match := _LINK_PORT.match(line)) is not None:
            draft.session("lacp", match[1], match[2] == "S", group)
    return draft.done()


def display_vrrp(text: str) -> Parsed:
    """Groups of VRRP by interface."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _VRRP_VRP.match(line)) is not None:
            draft.role("vrrp", match[1], match[2], match[3])
        elif (match := _VRRP_COMWARE.match(line)) is not None:
            draft.role("vrrp", match[2], match[3], match[1])
    return draft.done()
