"""What the words of devices mean for a session with a peer: BGP, OSPF, IS-IS, BFD, LACP, VRRP, HSRP, tunnels.

A session that somebody shut down (``Idle (Admin)``) is no failure, and neither are two routers of OSPF that stay at
two-way because neither is designated nor backup: their state is None, and they are not sampled.
"""

from __future__ import annotations

import re

_UP = frozenset(
    (
        *(
            "established",
            "estab",
            "establ",
            "full",
            "up",
            "active-up",
            "bundled",
            "selected",
            "collecting distributing",
        ),
        *("up-active", "up-idle", "up-no-ike"),
    )
)
_SHUT = re.compile(r"(?i:\badmin|shutdown\b|^adm[ _-]?(?:down|shut)|^disabled?$|^shut$|^a\.down$|^prohibited$|^none$)")
_TWO_WAY = frozenset(("2way", "2-way", "two-way", "twoway", "two way"))
_ROLES = {"master": 2, "active": 2, "backup": 1, "standby": 1, "listen": 1, "speak": 1}
_ISO = re.compile(r"P(?=\d|T\d)[\dYMWDTHS.]{1,40}")


def state_of(protocol: str, word: str) -> bool | None:
    """Whether a session is up by the word of its device; None for one that is administratively down.

    >>> state_of("bgp", "Established"), state_of("bgp", "Active"), state_of("bgp", "Idle (Admin)")
    (True, False, None)
    >>> state_of("ospf", "FULL/DR"), state_of("ospf", "EXSTART/  -"), state_of("lacp", "hot-standby")
    (True, False, False)
    """
    plain = word.strip().lower()
    if _SHUT.search(plain):
        return None
    plain = plain.partition("/")[0].strip()
    if protocol in ("ospf", "ospf3") and plain in _TWO_WAY:
        return None
    return plain in _UP


def why_unsampled(word: str) -> str:
    """Why a session has no state to judge.

    >>> why_unsampled("2WAY/DROTHER"), why_unsampled("Idle (Admin)")
    ('at two-way', 'administratively down')
    """
    return "at two-way" if word.lower().partition("/")[0].strip() in _TWO_WAY else "administratively down"


def role_of(word: str) -> int:
    """What a router is in a group of VRRP or HSRP: 2 carries, 1 stands by, 0 neither.

    >>> role_of("Master"), role_of("standby"), role_of("Init")
    (2, 1, 0)
    """
    return _ROLES.get(word.strip().lower(), 0)


def plain_length(text: str) -> str:
    """A length of time of ISO 8601 as other devices write it (``P1DT2H`` is ``1D2H``); any other text as it is.

    >>> plain_length("P1DT2H3M4S"), plain_length("3w2d")
    ('1D2H3M4S', '3w2d')
    """
    stripped = text.strip()
    return stripped[1:].replace("T", "") if _ISO.fullmatch(stripped) else stripped


def family_of(text: str) -> str:
    """An address family in one writing: ``ipv4 unicast``, ``vpnv4 unicast``, ``l2vpn evpn``.

    >>> family_of("IPv4 Unicast"), family_of("ipv6Unicast"), family_of("RED.inet.0"), family_of("VpnIPv4")
    ('ipv4 unicast', 'ipv6 unicast', 'ipv4 unicast', 'vpnv4 unicast')
    """
    table = _TABLE.fullmatch(text.strip())
    plain = re.sub(r"[\s_-]+", " ", table[1] if table else text.strip().lower()) or "ipv4 unicast"
    return _FAMILIES.get(plain) or _FAMILIES.get(plain.replace(" ", "")) or plain


def context_of(text: str) -> str:
    """A VRF or instance by one name where it is the one that every device has.

    >>> context_of("DEFAULT"), context_of("master"), context_of("Base"), context_of("blue"), context_of("")
    ('default', 'default', 'default', 'blue', 'default')
    """
    return "default" if text.strip().lower() in ("", "default", "master", "base", "global") else text.strip()


_TABLE = re.compile(r"\S{1,80}\.(inet6?\.0)")  # the table of an instance of Junos
_FAMILIES = {
    "ipv4": "ipv4 unicast",
    "ipv6": "ipv6 unicast",
    "ipv4unicast": "ipv4 unicast",
    "ipv6unicast": "ipv6 unicast",
    "ipv4vpn": "vpnv4 unicast",
    "ipv6vpn": "vpnv6 unicast",
    "vpnipv4": "vpnv4 unicast",
    "vpnipv6": "vpnv6 unicast",
    "vpnv4": "vpnv4 unicast",
    "vpnv6": "vpnv6 unicast",
    "vpnv4unicast": "vpnv4 unicast",
    "vpnv6unicast": "vpnv6 unicast",
    "l3vpnipv4unicast": "vpnv4 unicast",
    "l3vpnipv6unicast": "vpnv6 unicast",
    "l2vpnevpn": "l2vpn evpn",
    "evpn": "l2vpn evpn",
    "inet.0": "ipv4 unicast",
    "inet6.0": "ipv6 unicast",
    "bgp.l3vpn.0": "vpnv4 unicast",
    "bgp.l3vpn inet6.0": "vpnv6 unicast",
    "bgp.evpn.0": "l2vpn evpn",
}
