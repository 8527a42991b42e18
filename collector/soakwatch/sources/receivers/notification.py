"""Parses SNMP notifications of v1 and v2c, and what all versions share.

References: RFC 1157 section 4.1.6 (Trap-PDU of v1), RFC 3416 sections 4.2.6 and 4.2.7 (SNMPv2-Trap, InformRequest), RFC
3584 section 3.1 (a v1 trap as v2).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from soakwatch.sources.transport.snmp import ber

TRAP_V1, RESPONSE, INFORM, TRAP = 0xA4, 0xA2, 0xA6, 0xA7
UPTIME, TRAP_OID = "1.3.6.1.2.1.1.3.0", "1.3.6.1.6.3.1.1.4.1.0"
STANDARD = "1.3.6.1.6.3.1.1.5"
_IP_ADDRESS, _COUNTER64 = 0x40, 0x46
_MAX_BINDS = 500

Value = int | bytes | str
"""An integer of any type; an octet string; an OID or address as text."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification; ``uptime_s`` is the sender's sysUpTime, ``binds`` the varbinds besides uptime and name."""

    version: str
    oid: str
    uptime_s: float | None
    binds: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Community:
    """A v1 or v2c message: its community, its notification, and the reply to send (for informs)."""

    community: bytes
    notification: Notification
    reply: bytes | None


def version_of(data: bytes) -> int:
    """0 for v1, 1 for v2c, 3 for v3. Raises MalformedError if it is not SNMP."""
    parts = ber.open_sequence(data)
    if not parts or parts[0][0] != ber.INTEGER:
        raise ber.MalformedError("not an SNMP message")
    return ber.number(parts[0][1])


def community_message(data: bytes) -> Community | None:
    """Parses a v1 or v2c notification; None for another message (a request). Raises MalformedError."""
    parts = ber.open_sequence(data)
    if len(parts) != 3 or parts[1][0] != ber.OCTETS:
        raise ber.MalformedError("not an SNMP message")
    version, (_, community), (tag, body) = ber.number(parts[0][1]), parts[1], parts[2]
    if version == 0 and tag == TRAP_V1:
        return Community(community, _of_v1(body), None)
    if version == 1 and tag in {TRAP, INFORM}:
        fields = ber.items(body)
        if len(fields) != 4:
            raise ber.MalformedError("not a PDU")
        reply = None
        if tag == INFORM:
            pdu = ber.tlv(ber.INTEGER, fields[0][1]) + ber.integer(0) * 2 + ber.sequence(fields[3][1])
            reply = ber.sequence(ber.integer(1), ber.tlv(ber.OCTETS, community), ber.tlv(RESPONSE, pdu))
        return Community(community, of_binds("2c", _binds(fields[3][1])), reply)
    return None


def of_binds(version: str, binds: list[tuple[str, Value]]) -> Notification:
    """A notification from varbinds, the first two being uptime and name. Raises MalformedError."""
    head = dict(binds[:2])
    uptime, oid = head.get(UPTIME), head.get(TRAP_OID)
    if not isinstance(oid, str):
        raise ber.MalformedError("a notification without a name")
    rest = tuple(bind for bind in binds if bind[0] not in {UPTIME, TRAP_OID})
    return Notification(version, oid, uptime / 100 if isinstance(uptime, int) else None, rest)


def _of_v1(body: bytes) -> Notification:
    fields = ber.items(body)
    if len(fields) != 6 or fields[0][0] != ber.OID:
        raise ber.MalformedError("not an SNMPv1 trap")
    enterprise, generic = ber.dotted(fields[0][1]), ber.number(fields[2][1])
    specific, uptime = ber.number(fields[3][1]), ber.number(fields[4][1])
    oid = f"{STANDARD}.{generic + 1}" if 0 <= generic < 6 else f"{enterprise}.0.{specific}"
    return Notification("1", oid, uptime / 100, tuple(_binds(fields[5][1])))


def _binds(body: bytes) -> list[tuple[str, Value]]:
    binds: list[tuple[str, Value]] = []
    for tag, bind in ber.items(body)[:_MAX_BINDS]:
        pair = ber.items(bind)
        if tag != ber.SEQUENCE or len(pair) != 2 or pair[0][0] != ber.OID:
            raise ber.MalformedError("a varbind that is not a pair")
        binds.append((ber.dotted(pair[0][1]), _value(*pair[1])))
    return binds


def _value(tag: int, body: bytes) -> Value:
    if tag == ber.OID:
        return ber.dotted(body)
    if tag == _IP_ADDRESS and len(body) == 4:
        return str(ipaddress.IPv4Address(body))
    if tag == ber.INTEGER or 0x41 <= tag <= 0x43 or tag == _COUNTER64:
        number = ber.number(body)
        return number if tag == ber.INTEGER or number >= 0 else number + (1 << 8 * len(body))
    return body
