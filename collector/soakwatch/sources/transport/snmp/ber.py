"""The few rules of BER (X.690) that SNMP uses: enough to read what comes in and to answer an inform.

Values of varbinds stay raw (tag and bytes). Whatever is read is bounded by the datagram: lengths beyond its end,
indefinite lengths and numbers of more than 8 bytes are refused, nothing recurses.
"""

from __future__ import annotations

INTEGER, OCTETS, NULL, OID, SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_MAX_NUMBER_BYTES = 9  # bytes: a Counter64 with its leading zero
_MAX_ARCS = 512
_MAX_ARC_BYTES = 10  # bytes: more than the 32 bits that an arc may have


class MalformedError(ValueError):
    """The bytes are not what SNMP allows."""


def tlv(tag: int, body: bytes) -> bytes:
    """Tag, length and body.

    >>> tlv(OCTETS, b"ab").hex()
    '04026162'
    """
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def integer(value: int, tag: int = INTEGER) -> bytes:
    """A whole number, as short as it goes.

    >>> integer(128).hex(), integer(-1).hex()
    ('02020080', '0201ff')
    """
    size = (value + (value < 0)).bit_length() // 8 + 1
    return tlv(tag, value.to_bytes(size, "big", signed=True))


def sequence(*parts: bytes, tag: int = SEQUENCE) -> bytes:
    """Parts one after another under one tag."""
    return tlv(tag, b"".join(parts))


def items(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and body of everything in a row. Raises MalformedError.

    >>> items(bytes.fromhex("020105040161"))
    [(2, b'\\x05'), (4, b'a')]
    """
    parts = []
    position = 0
    while position < len(data):
        tag, start, stop = _head(data, position)
        parts.append((tag, data[start:stop]))
        position = stop
    return parts


def open_sequence(data: bytes, tag: int = SEQUENCE) -> list[tuple[int, bytes]]:
    """The items in the element that ``data`` starts with, which must have that tag. Raises MalformedError."""
    first, start, stop = _head(data, 0)
    if first != tag:
        raise MalformedError(f"tag {first:#x} where {tag:#x} was due")
    return items(data[start:stop])


def number(body: bytes) -> int:
    """A whole number from its body. Raises MalformedError."""
    if not 0 < len(body) <= _MAX_NUMBER_BYTES:
        raise MalformedError("a number of no or too many bytes")
    return int.from_bytes(body, "big", signed=True)


def dotted(body: bytes) -> str:
    """The text of an object identifier from its body. Raises MalformedError."""
    arcs: list[int] = []
    arc, size = 0, 0
    for byte in body:
        arc, size = arc << 7 | byte & 0x7F, size + 1
        if size > _MAX_ARC_BYTES or len(arcs) > _MAX_ARCS:
            raise MalformedError("an object identifier that is too long")
        if not byte & 0x80:
            arcs.append(arc)
            arc, size = 0, 0
    if size or not arcs:
        raise MalformedError("an object identifier that does not end")
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _head(data: bytes, position: int) -> tuple[int, int, int]:
    """Tag, and where the body begins and ends."""
    if position + 2 > len(data):
        raise MalformedError("it ends within a head")
    tag, size, start = data[position], data[position + 1], position + 2
    if size & 0x80:
        count = size & 0x7F
        if not 0 < count <= 4 or start + count > len(data):
            raise MalformedError("an impossible length")
        size = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + size > len(data):
        raise MalformedError("a length beyond the end")
    return tag, start, start + size
