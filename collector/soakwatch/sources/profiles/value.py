"""What an SNMP agent answers, as text and as a number.

An OCTET STRING is ``bytes``, an OBJECT IDENTIFIER or IpAddress ``str``, every integer type ``int`` (RFC 3416, section
3); an Opaque float of net-snmp may come as ``float`` or as its bytes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

Value = int | float | bytes | str
Number = int | float

MAX_CHARACTERS = 120
_NUMBER = re.compile(r"[-+]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][-+]?[0-9]{1,2})?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028\u2029\ufeff]+")
_OPAQUE_FLOAT = b"\x9f\x78\x04"  # net-snmp's float in an Opaque
_MAX_NUMBER = 2**64


def text(value: Value, form: str | None = None) -> str:
    """A value as text for labels, without control characters and of bounded length.

    ``form`` is ``hex`` (bytes as in a MAC address) or ``ip`` (4 or 16 bytes); else bytes are UTF-8, and what is not
    is shown by U+FFFD.

    >>> text(b"Gi0/1\\x00"), text(7), text(b"\\x0a\\x00\\x00\\x01", "ip"), text(b"\\x0a\\xff", "hex")
    ('Gi0/1', '7', '10.0.0.1', '0a:ff')
    """
    if isinstance(value, bytes):
        if form == "hex":
            return value[: MAX_CHARACTERS // 3].hex(":")
        if form == "ip" and len(value) in {4, 16}:
            from ipaddress import ip_address

            return str(ip_address(value))
        return clean(value[: MAX_CHARACTERS * 8].decode("utf-8", "replace"))
    return clean(str(value)) if isinstance(value, str) else str(value)


def clean(words: str) -> str:
    """Text on one line, without control characters, cut to a bounded length.

    >>> clean("  a\\x00\\n b ")
    'a b'
    """
    return " ".join(_CONTROL.sub(" ", words).split())[:MAX_CHARACTERS].strip()


def number(value: Value) -> Number:
    """The number that a value is: an integer stays one, text is read if it is a number and nothing else.

    Raises ValueError with a sentence for everything else, and for what no agent can count to.

    >>> number(5), number(b" 42 "), number(b"1.5")
    (5, 42, 1.5)
    """
    if isinstance(value, bytes):
        if value.startswith(_OPAQUE_FLOAT) and len(value) == 7:
            (single,) = struct.unpack(">f", value[3:])
            return _finite(float(f"{single:.7g}"))
        value = value[:200].decode("utf-8", "replace").strip("\0 \t\r\n")
    if isinstance(value, str):
        if _NUMBER.fullmatch(value.strip()) is None:
            raise ValueError(f"{clean(value)!r} is not a number" if value.strip() else "the text is empty")
        word = value.strip()
        return _finite(float(word)) if set(word) & set(".eE") else _finite(int(word))
    return _finite(value)


def _finite(value: Number) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if abs(value) > _MAX_NUMBER:
        raise ValueError("the number is larger than any counter")
    return value


class Asker(Protocol):
    """Asks one device. OIDs are dotted text without a leading dot; a failed look raises SourceError."""

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole OIDs; those that the device does not have are absent."""
        ...

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """Every value under each of the OIDs, by its whole OID."""
        ...


class Askable(Protocol):
    """One device that is asked in polls, each with a deadline of its own."""

    def until(self, deadline_s: float) -> Asker:
        """The asker of one poll or survey: its requests end at this time of the monotonic clock."""
        ...
