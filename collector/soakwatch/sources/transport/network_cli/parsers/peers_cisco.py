"""Neighbours and sessions as the Cisco systems write them: IOS, IOS XE, IOS XR, and NX-OS where it has no JSON."""

from __future__ import annotations

import re

from soakwatch.sources.transport.network_cli.parsed import Parsed, ParsedBuilder
from soakwatch.sources.transport.network_cli.parsers.tables import RULE
from soakwatch.sources.transport.network_cli.units import ADDRESS

_BGP_ROW = re.compile(
    rf"^\s*\*?({ADDRESS})?\s+\d{{1,3}}\s+[\d.]{{1,21}}(?:\s+\d{{1,20}}){{5}}\s+(\w[\w:.]{{0,20}})\s+(\S.{{0,40}}?)\s*$"
)
_BGP_ALONE = re.compile(rf"^\s*\*?({ADDRESS})\s*$")
_BGP_FAMILY = re.compile(r"(?i)^(?:for )?address family: *(\w.{1,40}?)\s*$")
_BGP_VRF = re.compile(
    r"^(?:VRF: *|BGP VRF |BGP summary information for VRF )([^\s,]{1,60})(?:.*address family (\w.{1,40}))?"
)
_BGP_KNOWN = re.compile(
    r"(?i)^\s*(?:BGP|% ?BGP not|\*|\d|Neighbor"
    r"|Process|Speaker|Some configured|[-=]{3}|Non-?stop|Cluster|Dampening|Peer|VRF)"
)

_OSPF_ROW = re.compile(rf"^\s*Neighbor (\S{{1,45}}?)(?:, interface address ({ADDRESS}).*)?$")
_OSPF_STATE = re.compile(r"State is ([\w-]{2,20}), (\d{1,12}) state change")
_OSPF_LINK = re.compile(r"interface-id \d+, link-local address (\S{1,45})")
_OSPF_VIA = re.compile(r"^\s*In the area \S+\s+via interface (\S{1,60})")
_OSPF_UP = re.compile(r"^\s*Neighbor is up for (\S.{0,30}?)\s*$")
_OSPF_VRF = re.compile(r"Neighbors for OSPF \S+, VRF (\S+)|OSPF Process ID \S+ VRF (\S+)")

_ISIS_IOS = re.compile(
    rf"^(\S{{1,60}})\s+(L1|L2|L1L2|IS)\s+(\S{{1,40}})\s+(?:{ADDRESS})?\s+(UP|DOWN|INIT|Up|Down|Init)\b"
)
_ISIS_XR = re.compile(r"^(\S{1,60})\s+(\S{1,40})\s+\S{4,20}\s+(Up|Down|Init)\s+\d{1,6}\s+(L1|L2|L1L2)\b")
_ISIS_SINCE = re.compile(r"^\s+(?:State Changed|Uptime): *(\S.{0,30}?)\s*$")
_ISIS_KNOWN = re.compile(r"^(?:System Id|Tag |IS-IS \S+ neighbors|Total (?:neighbor|adjacenc)|\s)")

_BFD_OLD = re.compile(rf"^({ADDRESS})\s+({ADDRESS})\s+\d+/\d+\s+\S+\s+\d+\s*\(\s*\d+\s*\)\s+(\S+)\s+(\S+)(?:\s+(\S+))?")
_BFD_NEW = re.compile(rf"^({ADDRESS})\s+\d+/\d+\s+\S+\s+([A-Z]\S*)\s+(\S+)\s*$")
_BFD_XR = re.compile(rf"^(\S{{1,40}})\s+({ADDRESS})\s+\S+\s+\S+\s+(\S+)\s*$")
_BFD_UP = re.compile(r"^\s*Uptime: *(\S.{0,30}?)\s*$")
_BFD_KNOWN = re.compile(r"^(?:\s|IPv[46] Sessions|(?:OurAddr|NeighAddr|Interface)\b|[-\s]+$)")

_HSRP = re.compile(r"^(\S{1,40})?\s+(\d{1,5})\s+(\d{1,3})\s+(?:P\s+)?([A-Z][a-z]{2,12})\s+\S")
_VRRP = re.compile(
    r"^\s*(\S{1,40})?\s+(\d{1,5})\s+(?:(?:IP)?[Vv][46P]\w{0,3}\s+)?(\d{1,3})\s+(?:\d+\s+)?(?:[YA]\s+){0,2}(?:[PY]\s+)?"
    r"(Master|Backup|Init\w*|MASTER|BACKUP|INIT|Shutdown)\b"
)
_INTERFACE_ALONE = re.compile(r"^\s?([A-Z][A-Za-z-]{1,30}[\d/.:]{1,20})\s*$")
_FHRP_KNOWN = re.compile(r"^(?:\s|Interface\b|IPv[46] (?:Groups|Virtual)|[-\s]+$|%)")

_BUNDLE = re.compile(r"^\d{1,5}\s+(\S{1,20})\((\w{1,6})\)\s+(?:Eth\s+)?(\S{1,8})")
_MEMBER = re.compile(r"([A-Za-z][\w./-]{2,30})\(([A-Za-z]{1,3})\)")
_XR_BUNDLE = re.compile(r"^(Bundle-\S{1,30})\s*$")
_XR_MEMBER = re.compile(r"^  (\S{1,30})\s+Local\s+(\S+)\s+0x")

_STP_TREE = re.compile(r"^\s*(\S{1,40}) is executing the")
_STP_CHANGES = re.compile(r"^\s*Number of topology changes:?\s+(\d{1,18})")

_TUNNEL_LINE = re.compile(r"^(Interface|Session status|Uptime|Peer|Profile)\s?: *(\S{1,60})")
_TE = re.compile(rf"^\s+(\S{{1,60}})\s+({ADDRESS})\s+(up|down|admin-down)\s+(\S{{1,20}})\s*$")


def show_bgp_summary(text: str) -> Parsed:
    """BGP neighbours of all address families: state, time since it came up, prefixes."""
    draft = ParsedBuilder()
    vrf = family = peer = ""
    seen = False
    for line in draft.lines(text):
        if (match := _BGP_ROW.match(line)) is not None and (match[1] or peer):
            word = match[3]
            count = word.partition(" ")[0]
            state = "established" if count.isdecimal() else word
            draft.session(
                "bgp",
                match[1] or peer,
                state,
                vrf,
                uptime=match[2],
                prefixes=count if count.isdecimal() else None,
                family=family,
            )
            peer = ""
        elif (match := _BGP_ALONE.match(line)) is not None:
            peer = match[1]
        elif (match := _BGP_FAMILY.match(line)) is not None:
            family, seen = match[1], True
        elif (match := _BGP_VRF.match(line)) is not None:
            vrf, family, seen = match[1], match[2] or family, True
        elif _BGP_KNOWN.match(line) is None and "Neighbor" not in line:
            draft.odd(line)
        else:
            seen = True
    return _read(draft, text, known=seen)


def show_ospf_neighbor(text: str) -> Parsed:
    """OSPF neighbours in detail: state, changes of the state, time since it came up."""
    return _ospf(text, "ospf")


def show_ospf3_neighbor(text: str) -> Parsed:
    """OSPFv3 neighbours by address and interface."""
    return _ospf(text, "ospf3")


def _ospf(text: str, protocol: str) -> Parsed:
    draft = ParsedBuilder()
    vrf = ""
    peer: dict[str, str] = {}
    seen = False

    def close() -> None:
        if {"state", "peer"} <= peer.keys():
            where = vrf if protocol == "ospf" else peer.get("interface", "")
            draft.session(
                protocol, peer["peer"], peer["state"], where, uptime=peer.get("up"), flaps=peer.get("changes")
            )
        peer.clear()

    for line in draft.lines(text):
        if (match := _OSPF_VRF.search(line)) is not None:
            close()
            vrf, seen = match[1] or match[2], True
        elif (match := _OSPF_ROW.match(line)) is not None and " is up for" not in line:
            close()
            peer["peer"] = (match[2] if protocol == "ospf" else None) or match[1].rstrip(",")
        elif (match := _OSPF_LINK.search(line)) is not None and peer:
            peer["peer"] = match[1].rstrip(",")
        elif (match := _OSPF_STATE.search(line)) is not None and peer:
            peer["state"], peer["changes"] = match[1], match[2]
        elif (match := _OSPF_UP.match(line)) is not None and peer:
            peer["up"] = match[1]
        elif (match := _OSPF_VIA.match(line)) is not None and peer:
            peer["interface"] = match[1].rstrip(",")
        seen = seen or "OSPF" in line or "neighbors" in line.lower()
    close()
    return _read(draft, text, known=seen)


def show_isis_neighbors(text: str) -> Parsed:
    """IS-IS adjacencies by the name of the neighbour and its interface."""
    draft = ParsedBuilder()
    found: list[tuple[str, str, str]] = []
    since: dict[int, str] = {}
    for line in draft.lines(text):
        if (match := _ISIS_IOS.match(line)) is not None:
            found.append((match[1], match[3], match[4]))
        elif (match := _ISIS_XR.match(line)) is not None:
            found.append((match[1], match[2], match[3]))
        elif (match := _ISIS_SINCE.match(line)) is not None:
            since.setdefault(len(found), match[1])
        elif _ISIS_KNOWN.match(line) is None and not RULE.match(line):
            draft.odd(line)
    for number, (peer, where, state) in enumerate(found, 1):
        draft.session("isis", peer, state, where, uptime=since.get(number))
    return draft.done()


def show_bfd_neighbors(text: str) -> Parsed:
    """BFD sessions of IOS, with the time since they came up where the details tell it."""
    draft = ParsedBuilder()
    last: tuple[str, str, str] | None = None
    up: str | None = None
    seen = False

    def close() -> None:
        if last is not None:
            draft.session("bfd", last[0], last[1], last[2], uptime=up)

    for line in draft.lines(text):
        old = _BFD_OLD.match(line)
        new = _BFD_NEW.match(line) if old is None else None
        if old is not None or new is not None:
            close()
            last, up = (old[2], old[3], old[4]) if old is not None else (new[1], new[2], new[3]) if new else None, None
        elif (match := _BFD_UP.match(line)) is not None:
            up = match[1]
        seen = seen or _BFD_KNOWN.match(line) is not None
    close()
    return _read(draft, text, known=seen)


def show_bfd_session(text: str) -> Parsed:
    """BFD sessions of IOS XR."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _BFD_XR.match(line)) is not None:
            draft.session("bfd", match[2], match[3], match[1])
        elif _BFD_KNOWN.match(line) is None:
            draft.odd(line)
    return draft.done()


def show_standby(text: str) -> Parsed:
    """Groups of HSRP, and which part this device has in them."""
    return _redundancy(text, "hsrp", _HSRP, 4)


def show_vrrp(text: str) -> Parsed:
    """Groups of VRRP, and which part this device has in them."""
    return _redundancy(text, "vrrp", _VRRP, 4)


def _redundancy(text: str, protocol: str, row: re.Pattern[str], column: int) -> Parsed:
    draft = ParsedBuilder()
    port = ""
    for line in draft.lines(text):
        if (match := row.match(line)) is not None and (match[1] or port):
            state = match[column]
            draft.role(protocol, match[2], state, match[1] or port)
        elif (match := _INTERFACE_ALONE.match(line)) is not None:
            port = match[1]
        elif _FHRP_KNOWN.match(line) is None:
            draft.odd(line)
    return draft.done()


def show_etherchannel(text: str) -> Parsed:
    """Members of the bundles that LACP made: in the bundle, or not."""
    draft = ParsedBuilder()
    bundle = ""
    seen = False
    for line in draft.lines(text):
        if (match := _BUNDLE.match(line)) is not None:
            bundle = match[1] if match[3].upper() == "LACP" else ""
            seen, line = True, line[match.end() :]  # noqa: PLW2901 - the rest of the row holds the members
        elif not (line.startswith(" ") and bundle):
            seen = seen or line.startswith(("Flags", "Group", "Number", "-"))
            continue
        for port, flags in _MEMBER.findall(line) if bundle else ():
            draft.session("lacp", port, flags == "P", bundle)
    return _read(draft, text, known=seen)


def show_bundle(text: str) -> Parsed:
    """Members of the bundles of IOS XR."""
    draft = ParsedBuilder()
    bundle = ""
    for line in draft.lines(text):
        if (match := _XR_BUNDLE.match(line)) is not None:
            bundle = match[1]
        elif (match := _XR_MEMBER.match(line)) is not None and bundle:
            draft.session("lacp", match[1], match[2].lower() == "active", bundle)
        elif not line.startswith((" ", "-", "No ")):
            draft.odd(line)
    return draft.done()


def show_spanning_tree(text: str) -> Parsed:
    """Changes of the topology that each spanning tree has counted."""
    draft = ParsedBuilder()
    tree = ""
    for line in draft.lines(text):
        if (match := _STP_TREE.match(line)) is not None:
            tree = match[1]
        elif (match := _STP_CHANGES.match(line)) is not None and tree:
            draft.value("network.topology.changes", match[1], protocol="stp", context=tree)
    return draft.done()


def show_crypto_session(text: str) -> Parsed:
    """Tunnels of IPsec by peer and interface."""
    draft = ParsedBuilder()
    entry: dict[str, str] = {}
    for line in draft.lines(text):
        match = _TUNNEL_LINE.match(line)
        if match is None:
            continue
        name = match[1].lower()
        if name == "interface":
            entry.clear()
        entry[name] = match[2].rstrip(",")
        if name == "uptime":
            entry[name] = line.partition(":")[2].strip()
        if name == "peer" and "session status" in entry:
            draft.session(
                "tunnel", match[2], entry["session status"], entry.get("interface", ""), uptime=entry.get("uptime")
            )
    return _read(draft, text, known="Crypto session" in text)


def show_te_tunnels(text: str) -> Parsed:
    """Tunnels of MPLS traffic engineering that begin here."""
    draft = ParsedBuilder()
    for line in draft.lines(text):
        if (match := _TE.match(line)) is not None:
            state = "admin down" if match[3] == "admin-down" else match[4]
            draft.session("tunnel", match[2], state, match[1])
    return draft.done()


def _read(draft: ParsedBuilder, text: str, *, known: bool) -> Parsed:
    """What was read. An answer in which nothing was known is counted: then nobody knows that a session is gone."""
    if not (known or draft.peers) and text.strip():
        draft.odd(text.strip()[:200])
    return draft.done()
