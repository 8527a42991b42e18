"""Recordings of walks (.snmprec, .snmprec.gz): one line an object, ``OID|TAG|VALUE``.

A tag is the number of the BER type; with ``x`` appended the value is hexadecimal. Real recordings may be unordered,
repeat objects (the first is kept, as in a walk) and contain unreadable lines.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from soakwatch_testing.snmp_cells import IP_ADDRESS, NULL, NUMBERS, OID, TEXTS, Cell, Name, name_of

MAX_BYTES = 256 * 2**20
_SKIPPED_KEPT = 20


class BadRecordingError(ValueError):
    """A file or line that is no recording; names file and line."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The objects of a recording, unordered, and what was left out."""

    rows: dict[Name, Cell]
    skipped: int
    repeated: int
    complaints: tuple[str, ...]  # the first ones, each naming file and line


def load_recording(path: Path, *, strict: bool = False) -> Recording:
    """Load a recording. Raises BadRecordingError for an unreadable file, or one without objects.

    With ``strict`` a broken line raises too, else it is skipped and counted.
    """
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            data = unpacker.decompress(data, MAX_BYTES)
            if not unpacker.eof:
                raise BadRecordingError(f"{path}: cut off, or longer than {MAX_BYTES} bytes")
    except (OSError, zlib.error, gzip.BadGzipFile) as error:
        raise BadRecordingError(f"{path}: cannot be read ({type(error).__name__})") from None
    recording = parse_recording(data.decode("utf-8", "surrogateescape").split("\n"), str(path), strict=strict)
    if not recording.rows:
        raise BadRecordingError(f"{path}: no line of the form OID|TAG|VALUE that can be used: that is no recording")
    return recording


def parse_recording(lines: Iterable[str], source: str, *, strict: bool = False) -> Recording:
    """Parse a recording; ``source`` names the lines in complaints."""
    rows: dict[Name, Cell] = {}
    complaints: list[str] = []
    skipped = repeated = 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r")  # noqa: PLW2901
        if not line.strip() or line.startswith("#"):
            continue
        try:
            name, cell = _row(line)
        except ValueError as error:
            complaint = f"{source}:{number}: {error}"
            if strict:
                raise BadRecordingError(complaint) from None
            skipped += 1
            if len(complaints) < _SKIPPED_KEPT:
                complaints.append(complaint)
            continue
        if name in rows:
            repeated += 1
        else:
            rows[name] = cell
    return Recording(rows, skipped, repeated, tuple(complaints))


def _row(line: str) -> tuple[Name, Cell]:
    """One object. Raises ValueError in one sentence."""
    parts = line.split("|", 2)
    if len(parts) != 3:
        raise ValueError("a line is OID|TAG|VALUE")
    try:
        name = name_of(parts[0])
    except ValueError:
        raise ValueError(f"{parts[0][:60]!r} is not an OID") from None
    digits, value = parts[1], parts[2]
    in_hex = digits.endswith("x")
    if not digits.removesuffix("x").isdecimal():
        raise ValueError(f"the tag {digits[:40]!r} is not a number with or without x")
    return name, _cell(int(digits.removesuffix("x")), value, in_hex=in_hex)


def _cell(tag: int, value: str, *, in_hex: bool) -> Cell:
    try:
        octets = bytes.fromhex(value) if in_hex else None
        if tag in NUMBERS:
            number = int.from_bytes(octets, "big") if octets is not None else int(value)
            low, high = (-(2**31), 2**32 - 1) if tag == 2 else (0, 2 ** (64 if tag == 70 else 32) - 1)
            if low <= number <= high:
                return Cell(tag, number)
        elif tag == IP_ADDRESS:
            octets = octets if octets is not None else bytes(int(part) for part in value.split("."))
            if len(octets) == 4:
                return Cell(tag, octets)
        elif tag in TEXTS:
            return Cell(tag, octets if octets is not None else value.encode("utf-8", "surrogateescape"))
        elif tag == OID:
            return Cell(tag, name_of(value))
        elif tag == NULL:
            return Cell(tag, None)
    except ValueError:
        pass
    raise ValueError(f"{value[:40]!r} is no value of tag {tag}")
