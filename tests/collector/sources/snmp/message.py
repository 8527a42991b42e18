"""Messages of SNMP for tests: plain requests of all versions, and what stands in an answer (RFC 1157, 3412, 3416)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from soakwatch.sources.transport.snmp import ber

GET, RESPONSE, REPORT = 0xA0, 0xA2, 0xA8
REPORTABLE, PRIVATE, AUTHENTIC = 4, 2, 1  # bits of msgFlags
_SIZE = 65507  # the largest message that we take: all that UDP can carry
_USM = 3

DIGESTS = {
    "MD5": ("md5", 12),
    "SHA": ("sha1", 12),
    "SHA-224": ("sha224", 16),
    "SHA-256": ("sha256", 24),
    "SHA-384": ("sha384", 32),
    "SHA-512": ("sha512", 48),
}
"""Authentication protocols: hash, and bytes of the digest that are sent."""


def object_id(text: str) -> bytes:
    """An object identifier from its dotted text.

    >>> object_id("1.3.6.1.2.1.1.3.0").hex()
    '06082b06010201010300'
    """
    arcs = [int(arc) for arc in text.split(".")]
    body = bytearray()
    for arc in (arcs[0] * 40 + arcs[1], *arcs[2:]):
        part = [arc & 0x7F]
        while arc := arc >> 7:
            part.append(0x80 | arc & 0x7F)
        body.extend(reversed(part))
    return ber.tlv(ber.OID, bytes(body))


@dataclass(frozen=True, slots=True)
class Engine:
    """What an agent says of its SNMPv3 engine."""

    engine_id: bytes
    boots: int
    time_s: int


@dataclass(frozen=True, slots=True)
class Pdu:
    """One PDU; the values of its varbinds are tag and bytes."""

    tag: int
    request_id: int
    status: int
    index: int
    binds: tuple[tuple[str, int, bytes], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One message; ``pdu`` is None where it is encrypted, ``engine`` where the version has none."""

    version: int
    message_id: int
    engine: Engine | None
    pdu: Pdu | None


def request(oids: tuple[str, ...], request_id: int, tag: int = GET) -> bytes:
    """A PDU that asks for some objects."""
    binds = ber.sequence(*(ber.sequence(object_id(oid), ber.tlv(ber.NULL, b"")) for oid in oids))
    return ber.sequence(ber.integer(request_id), ber.integer(0), ber.integer(0), binds, tag=tag)


def community_message(version: int, community: str, pdu: bytes) -> bytes:
    """A message of v1 (0) or v2c (1)."""
    return ber.sequence(ber.integer(version), ber.tlv(ber.OCTETS, community.encode()), pdu)


def user_message(
    message_id: int, engine: Engine, user: str, pdu: bytes, key: bytes = b"", protocol: str = "", context: str = ""
) -> bytes:
    """A message of v3 without privacy; signed if there is a localised ``key``.

    With an empty engine and user it is the discovery of RFC 3414 section 4.
    """
    size = DIGESTS[protocol][1] if key else 0
    head = ber.sequence(
        ber.integer(message_id),
        ber.integer(_SIZE),
        ber.tlv(ber.OCTETS, bytes((REPORTABLE | (AUTHENTIC if key else 0),))),
        ber.integer(_USM),
    )
    scoped = ber.sequence(ber.tlv(ber.OCTETS, engine.engine_id), ber.tlv(ber.OCTETS, context.encode()), pdu)

    def whole(digest: bytes) -> bytes:
        security = ber.sequence(
            ber.tlv(ber.OCTETS, engine.engine_id),
            ber.integer(engine.boots),
            ber.integer(engine.time_s),
            ber.tlv(ber.OCTETS, user.encode()),
            ber.tlv(ber.OCTETS, digest),
            ber.tlv(ber.OCTETS, b""),
        )
        return ber.sequence(ber.integer(3), head, ber.tlv(ber.OCTETS, security), scoped)

    unsigned = whole(bytes(size))
    return whole(hmac.digest(key, unsigned, DIGESTS[protocol][0])[:size]) if key else unsigned


def parse_message(data: bytes) -> Message:
    """A message that came in. Raises MalformedError for anything else."""
    parts = ber.open_sequence(data)
    if len(parts) < 3 or parts[0][0] != ber.INTEGER:
        raise ber.MalformedError("not an SNMP message")
    version = ber.number(parts[0][1])
    if version in {0, 1}:
        tag, body = parts[2]
        pdu = _pdu(tag, body)
        return Message(version, pdu.request_id, None, pdu)
    if version != 3 or len(parts) < 4:
        raise ber.MalformedError(f"SNMP version {version}")
    head, security = ber.items(parts[1][1]), ber.open_sequence(parts[2][1])
    if len(head) < 4 or len(security) < 6:
        raise ber.MalformedError("a SNMPv3 head that lacks parts")
    engine = Engine(security[0][1], ber.number(security[1][1]), ber.number(security[2][1]))
    message_id, flags = ber.number(head[0][1]), head[2][1]
    if flags and flags[0] & PRIVATE:
        return Message(3, message_id, engine, None)
    scoped = ber.items(parts[3][1])
    if len(scoped) < 3:
        raise ber.MalformedError("a scoped PDU that lacks parts")
    return Message(3, message_id, engine, _pdu(*scoped[2]))


def _pdu(tag: int, body: bytes) -> Pdu:
    parts = ber.items(body)
    if len(parts) < 4 or not 0xA0 <= tag <= 0xA8 or tag == 0xA4:
        raise ber.MalformedError("not a PDU")
    request_id, status, index = (ber.number(part) for _, part in parts[:3])
    binds = []
    for _, bind in ber.items(parts[3][1]):
        pair = ber.items(bind)
        if len(pair) != 2 or pair[0][0] != ber.OID:
            raise ber.MalformedError("a varbind that is not a pair")
        binds.append((ber.dotted(pair[0][1]), *pair[1]))
    return Pdu(tag, request_id, status, index, tuple(binds))
