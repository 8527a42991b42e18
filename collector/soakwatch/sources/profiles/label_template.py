"""Labels and indexes as a profile writes them: literal text with ``{name}``, ``{a|b}``, ``{index}``, ``{index.0}``,
``{index-900000}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from soakwatch.core.suggest import hint
from soakwatch.sources.profiles.value import clean

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_INDEX = re.compile(r"index(\.(-?[0-9]{1,3}|text|family|ip(\.[0-9]{1,2})?))?|index[+-][0-9]{1,9}")
_MIN_PRINTABLE = 32
_AFI = {"1": "ipv4", "2": "ipv6", "25": "l2vpn"}
_SAFI = {"1": "unicast", "2": "multicast", "4": "labeled unicast", "65": "vpls", "70": "evpn"}
_VPN = {("1", "128"): "vpnv4 unicast", ("2", "128"): "vpnv6 unicast"}


@dataclass(frozen=True, slots=True)
class Template:
    """A template, parsed: literal parts, and between them the alternatives whose first non-empty one is put in."""

    text: str
    parts: tuple[str | tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of columns, scalars and joins that it reads."""
        return tuple(
            name for part in self.parts if isinstance(part, tuple) for name in part if not _INDEX.fullmatch(name)
        )

    def render(self, index: str, lookup: Callable[[str], str]) -> str:
        """The text for a row; ``lookup`` gives the text of a name there, empty where the device has none."""
        built = []
        for part in self.parts:
            if isinstance(part, str):
                built.append(part)
                continue
            for name in part:
                text = index_part(index, name) if _INDEX.fullmatch(name) else lookup(name)
                if text:
                    built.append(text)
                    break
        return clean("".join(built))


def parse(words: str, known: Iterable[str]) -> Template:
    """The template of a text over the names in ``known``. Raises ValueError with a sentence.

    >>> parse("{name|index.0} out", {"name"}).render("7.1", {"name": ""}.get)
    '7 out'
    """
    parts: list[str | tuple[str, ...]] = []
    position, known = 0, set(known)
    for location in _PLACEHOLDER.finditer(words):
        parts += [_literal(words[position : location.start()])]
        choices = tuple(choice.strip() for choice in location[1].split("|"))
        for choice in choices:
            if choice not in known and not _INDEX.fullmatch(choice):
                raise ValueError(f"unknown name {choice!r} in {words!r}{hint(choice, {*known, 'index'})}")
        parts.append(choices)
        position = location.end()
    parts.append(_literal(words[position:]))
    return Template(words, tuple(part for part in parts if part))


def _literal(words: str) -> str:
    if "{" in words or "}" in words:
        raise ValueError(f"a bracket is never opened or closed in {words!r}")
    return words


def index_part(index: str, name: str) -> str:
    """``index``, one arc of it (``index.0``, ``index.-1``), its arcs as characters (``index.text``), or the number that
    it is and so much more or less (``index-900000``).

    ``index.ip`` is the InetAddressType and InetAddress (RFC 4001) at its begin, ``index.ip.1`` those behind the first
    arc; ``index.family`` are its last two arcs as address family of BGP (AFI and SAFI of IANA).

    >>> index_part("4.101.116.104.48", "index.text"), index_part("4.101", "index.-1"), index_part("4", "index.3")
    ('eth0', '101', '')
    >>> index_part("1000001", "index-900000"), index_part("7", "index-8"), index_part("1.2", "index+1")
    ('100001', '', '')
    >>> index_part("1.4.10.0.0.2.1.128", "index.ip"), index_part("1.4.10.0.0.2.1.128", "index.family")
    ('10.0.0.2', 'vpnv4 unicast')
    """
    if name == "index":
        return index
    if name[5] in "+-":
        moved = int(index) + int(name[5:]) if index.isdigit() else -1
        return str(moved) if moved >= 0 else ""
    what, arcs = name.removeprefix("index."), index.split(".")
    if what == "text":
        codes = [int(arc) for arc in arcs if arc.isdigit()]
        if len(codes) > 1 and codes[0] == len(codes) - 1:
            codes = codes[1:]  # a string of variable length carries its length (RFC 2578, section 7.7)
        return bytes(code for code in codes if _MIN_PRINTABLE <= code < 256).decode("utf-8", "replace")
    if what == "family":
        afi, safi = (["", "", *arcs])[-2:]
        return _VPN.get((afi, safi)) or f"{_AFI.get(afi, f'afi {afi}')} {_SAFI.get(safi, f'safi {safi}')}"
    if what.startswith("ip"):
        return _address(arcs[int(what[3:] or 0) :])
    position = int(what)
    return arcs[position] if -len(arcs) <= position < len(arcs) else ""


def _address(arcs: list[str]) -> str:
    """The address that arcs begin with: its type, its length, its octets; empty where they hold none."""
    octets = [int(arc) for arc in arcs[2:] if arc.isdigit()]
    length = int(arcs[1]) if len(arcs) > 1 and arcs[1].isdigit() else 0
    if length not in {4, 16} or len(octets) < length or max(octets[:length]) > 255:
        return ""
    from ipaddress import ip_address

    return str(ip_address(bytes(octets[:length])))
