"""Files of the spool: segments of lines ``SEQ EPOCH CRC POLL``, only appended to or deleted whole."""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

from soakwatch_agent.framing import MAX_LINE

_NAME = re.compile(r"(\d{18})\.seg")
_HEAD = 64  # bytes of number, epoch and checksum at most


@dataclass(frozen=True)
class SpooledPoll:
    """One poll in the spool."""

    __slots__ = ("epoch", "seq", "wire")
    seq: int
    epoch: int
    wire: bytes


@dataclass
class Segment:
    """One file: the first and last poll number and the size in bytes; ``last`` is below ``first`` if it is empty."""

    path: str
    first: int
    last: int
    size: int


def encode_line(line: SpooledPoll) -> bytes:
    """Encodes a line; the checksum covers number, epoch and poll."""
    body = b"%d %d " % (line.seq, line.epoch)
    return body + b"%08x " % zlib.crc32(line.wire, zlib.crc32(body)) + line.wire + b"\n"


def decode_line(data: bytes) -> Optional[SpooledPoll]:
    """Decodes a line; None if it is torn or damaged."""
    parts = data.split(b" ", 3)
    if len(parts) != 4 or not data.endswith(b"\n") or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    wire = parts[3][:-1]
    if b"%08x" % zlib.crc32(wire, zlib.crc32(b"%s %s " % (parts[0], parts[1]))) != parts[2]:
        return None
    return SpooledPoll(int(parts[0]), int(parts[1]), wire)


def path_of(folder: str, first: int) -> str:
    """The path of the segment whose first poll has this number."""
    return os.path.join(folder, f"{first:018d}.seg")


def lines_of(path: str, offset: int = 0) -> Iterator[Tuple[Optional[SpooledPoll], int]]:
    """Every line of a file from ``offset`` on and the offset after it; None for a damaged or torn line."""
    with open(path, "rb") as data:
        data.seek(offset)
        while True:
            raw = data.readline(MAX_LINE + _HEAD)
            if not raw:
                return
            offset += len(raw)
            yield decode_line(raw), offset


def find_segments(folder: str) -> List[Segment]:
    """The segments of a folder in order, read completely; the torn end of the last one is cut off.

    A damaged line in the middle stays: readers skip it, so its number is missing.
    """
    names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    segments = []
    for index, name in enumerate(names):
        path, first = os.path.join(folder, name), int(name[:18])
        segment = Segment(path, first, first - 1, 0)
        intact = 0
        for line, end in lines_of(path):
            if line is not None and line.seq > segment.last:
                segment.last, intact = line.seq, end
        segment.size = os.stat(path).st_size  # noqa: PTH116
        if index == len(names) - 1 and segment.size > intact:
            os.truncate(path, intact)
            segment.size = intact
        segments.append(segment)
    return segments
