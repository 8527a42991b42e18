"""Neighbours and sessions of FRR from the JSON that ``vtysh`` shows, for every way to get at it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Row = Mapping[str, object]
_NOT_THERE = re.compile(
    r"(?i)is not running|failed to connect to any daemon|instance not found|not enabled"
    r"|% .{0,40}not (?:found|configured)"
)


@dataclass(frozen=True, slots=True)
class FrrSession:
    """One row of a list. ``uptime`` is in seconds, or the text of FRR; ``state`` its word; ``is_role`` of a group."""

    protocol: str
    peer: str
    context: str
    state: str
    uptime: float | str | None = None
    flaps: float | None = None
    prefixes: float | None = None
    family: str = ""
    is_role: bool = False


def bgp(text: str) -> list[FrrSession] | None:
    """``show bgp vrf all summary json``; None, here and below, for an answer that is no list."""
    found = _loaded(text)
    if found is None:
        return None
    return [
        FrrSession(
            "bgp",
            peer,
            vrf,
            str(row.get("state") or ""),
            _thousandth(row, "peerUptimeMsec"),
            _number(row, "connectionsEstablished"),
            _number(row, "pfxRcd"),
            family,
        )
        for vrf, families in _each(found)
        for family, summary in _each(families)
        for peer, row in _each(summary.get("peers"))
    ]


def ospf(text: str) -> list[FrrSession] | None:
    """``show ip ospf vrf all neighbor detail json``."""
    found = _loaded(text)
    if found is None:
        return None
    result = []
    for vrf, branch in _each(found):
        neighbours = branch.get("neighbors")
        for router, entries in neighbours.items() if isinstance(neighbours, Mapping) else ():
            for row in _trees(entries):
                peer, state = str(row.get("ifaceAddress") or router), str(row.get("nbrState") or row.get("state") or "")
                up = _thousandth(row, "upTimeInMsec", "lastPrgrsvChangeMsec")
                result.append(FrrSession("ospf", peer, vrf, state, up, _number(row, "stateChangeCounter")))
    return result


def isis(text: str) -> list[FrrSession] | None:
    """``show isis neighbor detail json``: by name and interface."""
    found = _loaded(text)
    if found is None:
        return None
    result = []
    for area in _trees(found.get("areas")) if isinstance(found, Mapping) else ():
        for row in _trees(area.get("circuits")):
            port, peer = row.get("interface"), row.get("adj")
            if isinstance(port, Mapping) and peer:
                where, state = str(port.get("name") or ""), str(port.get("state") or "")
                ago = port.get("last-ago")
                up = ago if isinstance(ago, str) else None
                result.append(FrrSession("isis", str(peer), where, state, up, _number(port, "adj-flaps")))
    return result


def bfd(text: str) -> list[FrrSession] | None:
    """``show bfd peers json``."""
    found = _loaded(text)
    if found is None:
        return None
    return [
        FrrSession(
            "bfd",
            str(row.get("peer") or ""),
            str(row.get("interface") or row.get("vrf") or ""),
            str(row.get("status") or ""),
            _number(row, "uptime"),
        )
        for row in _trees(found)
    ]


def vrrp(text: str) -> list[FrrSession] | None:
    """``show vrrp json``: the groups that have an address."""
    found = _loaded(text)
    if found is None:
        return None
    result = []
    for row in _trees(found):
        for version, suffix in (("v4", ""), ("v6", " v6")):
            part = row.get(version)
            if isinstance(part, Mapping) and part.get("addresses"):
                state = "shutdown" if row.get("shutdown") is True else str(part.get("status") or "")
                group, where = f"{row.get('vrid')}{suffix}", str(row.get("interface") or "")
                result.append(FrrSession("vrrp", group, where, state, is_role=True))
    return result


QUESTIONS: tuple[tuple[str, Callable[[str], list[FrrSession] | None]], ...] = (
    ("show bgp vrf all summary json", bgp),
    ("show ip ospf vrf all neighbor detail json", ospf),
    ("show isis neighbor detail json", isis),
    ("show bfd peers json", bfd),
    ("show vrrp json", vrrp),
)
"""What vtysh is asked, and who reads it."""


def _loaded(text: str) -> dict[str, object] | list[object] | None:
    """The JSON; an empty list where the daemon or its protocol is not there; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [] if not text.strip() or _NOT_THERE.search(text[:400]) else None
    return found if isinstance(found, dict | list) else None


def _each(branch: object) -> Iterator[tuple[str, Row]]:
    for name, row in branch.items() if isinstance(branch, Mapping) else ():
        if isinstance(row, Mapping):
            yield str(name), row


def _trees(branch: object) -> Iterator[Row]:
    for row in branch if isinstance(branch, list) else (branch,):
        if isinstance(row, Mapping):
            yield row


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _thousandth(row: Row, *names: str) -> float | None:
    value = next((value for name in names if (value := _number(row, name)) is not None), None)
    return None if value is None else value / 1000
