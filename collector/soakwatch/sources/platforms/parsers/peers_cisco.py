"""Neighbours and sessions as Cisco IOS, IOS XE and IOS XR write them where a session is more than a line."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder
from soakwatch.sources.platforms.units import ADDRESS

_OSPF_ROW = re.compile(rf"^\s*Neighbor (\S{{1,45}}?)(?:, interface address ({ADDRESS}).*)?$")
_OSPF_STATE = re.compile(r"State is ([\w-]{2,20}), (\d{1,12}) state change")
_OSPF_LINK = re.compile(r"interface-id \d+, link-local address (\S{1,45})")
_OSPF_VIA = re.compile(r"^\s*In the area \S+\s+via interface (\S{1,60})")
_OSPF_UP = re.compile(r"^\s*Neighbor is up for (\S.{0,30}?)\s*$")
_OSPF_VRF = re.compile(r"Neighbors for OSPF \S+, VRF (\S+)|OSPF Process ID \S+ VRF (\S+)")

_BFD_OLD = re.compile(rf"^({ADDRESS})\s+({ADDRESS})\s+\d+/\d+\s+\S+\s+\d+\s*\(\s*\d+\s*\)\s+(\S+)\s+(\S+)(?:\s+(\S+))?")
_BFD_NEW = re.compile(rf"^({ADDRESS})\s+\d+/\d+\s+\S+\s+([A-Z]\S*)\s+(\S+)\s*$")
_BFD_UP = re.compile(r"^\s*Uptime: *(\S.{0,30}?)\s*$")
_BFD_KNOWN = re.compile(r"^(?:\s|IPv[46] Sessions|(?:OurAddr|NeighAddr|Interface)\b|[-\s]+$)")

_BUNDLE = re.compile(r"^\d{1,5}\s+(\S{1,20})\((\w{1,6})\)\s+(?:Eth\s+)?(\S{1,8})")
_MEMBER = re.compile(r"([A-Za-z][\w./-]{2,30})\(([A-Za-z]{1,3})\)")


_TUNNEL_LINE = re.compile(r"^(Interface|Session status|Uptime|Peer|Profile)\s?: *(\S{1,60})")


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


def _read(draft: ParsedBuilder, text: str, *, known: bool) -> Parsed:
    """What was read. An answer in which nothing was known is counted: then nobody knows that a session is gone."""
    if not (known or draft.peers) and text.strip():
        draft.odd(text.strip()[:200])
    return draft.done()
