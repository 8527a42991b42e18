"""Neighbours and sessions as Nokia SR OS writes them."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder
from soakwatch.sources.platforms.parsers.tables import RULE
from soakwatch.sources.platforms.units import ADDRESS

_ALONE = re.compile(rf"^({ADDRESS})(?:\([DS]\))?\s*$")
_BGP_STATE = re.compile(r"\s((?:\d{1,5}[ywdhms]){1,5}|never)\s+([A-Z0-9]\S{0,40})(?:\s+\(([\w-]{2,20})\))?\s*$")
_BGP_MORE = re.compile(r"^\s+(?:\d{1,20}\*?\s+){1,3}(\d{1,12})/\d{1,12}/\d{1,12}\s+\(([\w-]{2,20})\)\s*$")
_BGP_SERVICE = re.compile(r"^Svc: *(\d{1,12})\b")
_COUNTS = re.compile(r"(\d{1,12})/\d{1,12}/\d{1,12}")

_OSPF = re.compile(r"^Neighbor Rtr Id\s*: *(\S{1,40})(?:\s+Interface\s*: *(\S{1,60}))?")
_FIELD = re.compile(r"([A-Z][A-Za-z ]{1,24}?)\s*: ?(\S(?:\S| (?! ))*)")
_BFD = re.compile(r"^(\S.{0,50}?)\s+(Up|Down|Init\w*|Admin ?Down)(?: \(\d\))?\s+\S+\s+\S+(?:\s+\S+)?\s*$")


def show_router_bgp_summary(text: str) -> Parsed:
    """BGP neighbours of all instances: state, time since it came up, routes received of each family."""
    draft = ParsedBuilder()
    peer = context = ""
    family = "IPv4"
    for line in draft.lines(text):
        if (match := _ALONE.match(line)) is not None:
            peer, context = match[1], ""
        elif (match := re.match(r"^BGP (\S{2,20}) Summary", line)) is not None:
            family = match[1]
        elif not peer:
            continue
        elif (match := _BGP_MORE.match(line)) is not None:
            draft.session("bgp", peer, "established", context, prefixes=match[1], family=match[2])
        elif (match := _BGP_STATE.search(line)) is not None:
            context = service[1] if (service := _BGP_SERVICE.match(line)) is not None else ""
            counts = _COUNTS.fullmatch(match[2])
            state = "established" if counts else match[2]
            count = counts[1] if counts else None
            draft.session("bgp", peer, state, context, uptime=match[1], prefixes=count, family=match[3] or family)
    if not draft.peers and "BGP" not in text and text.strip():
        draft.odd(text.strip()[:200])
    return draft.done()


def show_router_ospf_neighbor(text: str) -> Parsed:
    """OSPF neighbours in detail."""
    draft = ParsedBuilder()
    row: dict[str, str] = {}

    def close() -> None:
        if "neighbor state" in row:
            peer = row.get("neighbor ip addr") or row["id"]
            draft.session("ospf", peer, row["neighbor state"], uptime=row.get("up time"), flaps=row.get("events"))
        row.clear()

    for line in draft.lines(text):
        if (match := _OSPF.match(line)) is not None:
            close()
            row["id"] = match[1]
        elif row:
            for name, value in _FIELD.findall(line):
                row.setdefault(name.strip().lower(), value.strip())
        elif "OSPF" not in line and "Neighbor" not in line and not RULE.match(line):
            draft.odd(line)
    close()
    return draft.done()


def show_router_bfd_session(text: str) -> Parsed:
    """BFD sessions by remote address and interface."""
    draft = ParsedBuilder()
    where = state = ""
    begun = False
    for line in draft.lines(text):
        if line.startswith("---"):
            begun, where = True, ""
        elif begun and (match := _BFD.match(line)) is not None and not line.startswith(" "):
            where, state = match[1], match[2]
        elif where:
            cell = line.split()[0]
            if re.fullmatch(ADDRESS, cell):
                draft.session("bfd", cell, state, where)
            where = ""
    if not begun and text.strip():
        draft.odd(text.strip()[:200])
    return draft.done()
