"""Cells of a MIB: a SMIv2 type and a constant, moving or computed value.

Tags are those of BER (RFC 2578 and RFC 3416), as in recordings. Seconds are since the boot of the cell's agent, on its
virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

INTEGER, OCTETS, NULL, OID = 2, 4, 5, 6
IP_ADDRESS, COUNTER32, GAUGE32, TIMETICKS, OPAQUE, COUNTER64 = 64, 65, 66, 67, 68, 70
NO_SUCH_OBJECT, NO_SUCH_INSTANCE, END_OF_VIEW = 0x80, 0x81, 0x82

NUMBERS = frozenset({INTEGER, COUNTER32, GAUGE32, TIMETICKS, COUNTER64})
TEXTS = frozenset({OCTETS, IP_ADDRESS, OPAQUE})
COUNTERS = frozenset({COUNTER32, COUNTER64})

Name = tuple[int, ...]
Reading = int | bytes | Name | None


@dataclass(frozen=True, slots=True)
class Moving:
    """A number that moves: ``start`` at boot, ``rate`` per second, wrapping at ``bits`` bits."""

    start: int
    rate: float
    bits: int

    def value_at(self, seconds: float) -> int:
        """The number ``seconds`` after boot; exact beyond 2**53 as long as the change is below that."""
        return (self.start + int(self.rate * seconds)) % (1 << self.bits)


Computed = Callable[[float], int | bytes]


@dataclass(frozen=True, slots=True)
class Cell:
    """A type and its value: constant, moving, or a function of the seconds since boot."""

    tag: int
    value: Reading | Moving | Computed

    @property
    def still(self) -> bool:
        """Whether the value is constant."""
        return not isinstance(self.value, Moving) and not callable(self.value)

    def value_at(self, seconds: float) -> Reading:
        """The value ``seconds`` after boot."""
        value = self.value
        if isinstance(value, Moving):
            return value.value_at(seconds)
        return value(seconds) if callable(value) else value


def name_of(text: str) -> Name:
    """The arcs of an OID in dotted text, with or without a leading dot. Raises ValueError for anything else.

    >>> name_of(".1.3.6.1")
    (1, 3, 6, 1)
    """
    arcs = tuple(int(arc) for arc in text.strip().removeprefix(".").split("."))
    if len(arcs) < 2 or arcs[0] > 2 or any(not 0 <= arc < 2**32 for arc in arcs) or (arcs[0] < 2 and arcs[1] > 39):
        raise ValueError(f"{text!r} is not an OID")
    return arcs


def dotted(name: Name) -> str:
    """An OID as dotted text without a leading dot.

    >>> dotted((1, 3, 6, 1))
    '1.3.6.1'
    """
    return ".".join(map(str, name))


def integer(value: int | Computed) -> Cell:
    """An INTEGER."""
    return Cell(INTEGER, value)


def text(value: str | bytes) -> Cell:
    """An OCTET STRING; text is encoded as UTF-8."""
    return Cell(OCTETS, value.encode() if isinstance(value, str) else value)


def oid(value: str) -> Cell:
    """An OBJECT IDENTIFIER from dotted text."""
    return Cell(OID, name_of(value))


def ip_address(value: str) -> Cell:
    """An IpAddress from dotted text."""
    octets = bytes(int(part) for part in value.split("."))
    if len(octets) != 4:
        raise ValueError(f"{value!r} is not an IPv4 address")
    return Cell(IP_ADDRESS, octets)


def gauge32(value: int | Computed) -> Cell:
    """A Gauge32 (Unsigned32)."""
    return Cell(GAUGE32, value)


def counter32(start: int, rate: float = 0.0) -> Cell:
    """A Counter32 that grows by ``rate`` per second and wraps at 32 bits."""
    return Cell(COUNTER32, Moving(start, rate, 32) if rate else start)


def counter64(start: int, rate: float = 0.0) -> Cell:
    """A Counter64 that grows by ``rate`` per second and wraps at 64 bits."""
    return Cell(COUNTER64, Moving(start, rate, 64) if rate else start)


def timeticks(start_s: float = 0.0, *, ticking: bool = True) -> Cell:
    """TimeTicks (hundredths of a second) with the value ``start_s`` seconds at boot."""
    ticks = round(start_s * 100)
    return Cell(TIMETICKS, Moving(ticks, 100.0, 32) if ticking else ticks)
