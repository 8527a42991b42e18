"""Neighbours and sessions as Huawei VRP and H3C Comware write them."""

from __future__ import annotations

import re

from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder
from soakwatch.sources.platforms.parsers.tables import RULE
from soakwatch.sources.platforms.units import ADDRESS

_OSPF = re.compile(rf"^\s*Router ID: *(\S{{1,20}})\s+Address: *({ADDRESS})")
_OSPF_STATE = re.compile(r"^\s*State: *(\S{1,20})")
_OSPF_UP = re.compile(r"^\s*Neighbor (?:is up for|up time)\s*:? *(\S{1,30})")
_OSPF_KNOWN = re.compile(r"(?i)ospf|neighbor|dead timer|^\s*(?:DR:|Authentication|Area|Last|Ip Fast|Priority)")

_ISIS_FIELD = re.compile(r"(System ID|Interface|State|Type) ?: *(\S{1,40})")
_ISIS_KNOWN = re.compile(r"(?i)peer information|system id|total peer|isis|is-is|circuit")


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
    """IS-IS adjacencies, from the blocks of Comware."""
    draft = ParsedBuilder()
    row: dict[str, str] = {}
    for line in draft.lines(text):
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
