"""BER for SNMPv1 and v2c (X.690, RFC 1157, RFC 3416): decodes requests, encodes responses.

Lengths are definite, as RFC 3417 section 8 requires. Anything else raises ``UndecodableError``; the depth is fixed by
the message's structure, so nothing recurses. It shares no code with ``soakwatch.sources.transport.snmp.ber`` on
purpose: an error that both sides of a test share would never be found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch_testing.snmp_cells import NUMBERS, OID, TEXTS, Name, Reading

GET, GET_NEXT, RESPONSE, GET_BULK = 0xA0, 0xA1, 0xA2, 0xA5
V1, V2C, V3 = 0, 1, 3
_SEQUENCE = 0x30


class UndecodableError(ValueError):
    """Octets that are no SNMP message for a responder."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: ``first`` and ``second`` are non-repeaters and max-repetitions of a GETBULK, else 0."""

    kind: int
    number: int
    first: int
    second: int
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A request of SNMPv1 or v2c with its version and community."""

    version: int
    community: bytes
    ask: Ask


Binding = tuple[Name, int, Reading]


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: error-status, error-index and the bindings (name, tag, value)."""

    status: int
    index: int
    bindings: tuple[Binding, ...]


def version_of(datagram: bytes) -> int:
    """The version field of any SNMP message."""
    body, _ = _open(datagram, 0, _SEQUENCE)
    version, _ = _number(datagram, body)
    return version


def read_message(datagram: bytes) -> Message:
    """A request of SNMPv1 or v2c. Raises UndecodableError."""
    offset, end = _open(datagram, 0, _SEQUENCE)
    version, offset = _number(datagram, offset)
    start, offset = _open(datagram, offset, 0x04)
    community = datagram[start:offset]
    if offset >= end:
        raise UndecodableError("no PDU")
    kind = datagram[offset]
    if kind not in {GET, GET_NEXT, GET_BULK}:
        raise UndecodableError(f"a PDU of type {kind:#x}")
    offset, _ = _open(datagram, offset, kind)
    number, offset = _number(datagram, offset)
    first, offset = _number(datagram, offset)
    second, offset = _number(datagram, offset)
    offset, end = _open(datagram, offset, _SEQUENCE)
    names: list[Name] = []
    while offset < end:
        start, following = _open(datagram, offset, _SEQUENCE)
        start, stop = _open(datagram, start, OID)
        names.append(read_name(datagram[start:stop]))
        offset = following
    return Message(version, community, Ask(kind, number, first, second, tuple(names)))


def write_response(version: int, community: bytes, number: int, reply: Reply, bindings: Sequence[bytes]) -> bytes:
    """A response of SNMPv1 or v2c from encoded bindings."""
    body = b"".join((_int(number), _int(reply.status), _int(reply.index), wrap(_SEQUENCE, b"".join(bindings))))
    return wrap(_SEQUENCE, _int(version) + wrap(0x04, community) + wrap(RESPONSE, body))


def write_binding(name: Name, tag: int, value: Reading) -> bytes:
    """One variable binding."""
    return wrap(_SEQUENCE, wrap(OID, write_name(name)) + write_value(tag, value))


def write_value(tag: int, value: Reading) -> bytes:
    """A value with its tag. Raises TypeError if the reading does not fit the tag."""
    if isinstance(value, int):
        if tag not in NUMBERS:
            raise TypeError(f"a number under tag {tag}")
        return wrap(tag, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))
    if isinstance(value, bytes):
        if tag not in TEXTS:
            raise TypeError(f"octets under tag {tag}")
        return wrap(tag, value)
    return wrap(tag, b"" if value is None else write_name(value))


def write_name(name: Name) -> bytes:
    """The content octets of an OBJECT IDENTIFIER."""
    out = bytearray()
    for arc in (name[0] * 40 + name[1], *name[2:]):
        if arc < 0x80:
            out.append(arc)
            continue
        part = [arc & 0x7F]
        while arc := arc >> 7:
            part.append(arc & 0x7F | 0x80)
        out.extend(reversed(part))
    return bytes(out)


def read_name(octets: bytes) -> Name:
    """The arcs of an OBJECT IDENTIFIER from its content octets. Raises UndecodableError."""
    if not octets or octets[-1] & 0x80 or len(octets) > 640:
        raise UndecodableError("a broken OID")
    arcs: list[int] = []
    arc = 0
    for octet in octets:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
    top = min(arcs[0] // 40, 2)
    return (top, arcs[0] - 40 * top, *arcs[1:])


def wrap(tag: int, content: bytes) -> bytes:
    """Tag, length and content."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _int(value: int) -> bytes:
    return wrap(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _open(data: bytes, offset: int, tag: int) -> tuple[int, int]:
    """Begin and end of the content of the element at an offset."""
    if offset + 2 > len(data) or data[offset] != tag:
        raise UndecodableError(f"no element of type {tag:#x} at octet {offset}")
    size, start = data[offset + 1], offset + 2
    if size >= 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4:
            raise UndecodableError("an indefinite or absurd length")
        size, start = int.from_bytes(data[start : start + count], "big"), start + count
    if start + size > len(data):
        raise UndecodableError("the message is cut off")
    return start, start + size


def _number(data: bytes, offset: int) -> tuple[int, int]:
    start, end = _open(data, offset, 0x02)
    if not 0 < end - start <= 9:
        raise UndecodableError("a broken number")
    return int.from_bytes(data[start:end], "big", signed=True), end
