"""Space of a filesystem, as statvfs has it and as a recording keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict


@dataclass(frozen=True)
class Space:
    """Size and used space of a filesystem in bytes; total and used inodes, 0 without an inode table (btrfs, FAT)."""

    __slots__ = ("inodes", "inodes_used", "limit", "used")
    limit: int
    used: int
    inodes: int
    inodes_used: int


def space_of(size: int, blocks: int, free: int, inodes: int, inodes_free: int) -> Space:
    """What statvfs returned: the size of a block in bytes, blocks and inodes."""
    return Space(size * blocks, size * (blocks - free), inodes, inodes - inodes_free)


def parse_spaces(text: str) -> Dict[str, Space]:
    """Parses a recording's file ``statvfs``, a line a mount: block-size blocks free-blocks inodes free-inodes
    mountpoint.

    >>> parse_spaces("4096 10 4 100 98 /var\\n")["/var"]
    Space(limit=40960, used=24576, inodes=100, inodes_used=2)
    """
    spaces = {}
    for line in text.splitlines():
        *numbers, mountpoint = line.split(None, 5)
        size, blocks, free, inodes, inodes_free = (int(number) for number in numbers)
        spaces[mountpoint] = space_of(size, blocks, free, inodes, inodes_free)
    return spaces
