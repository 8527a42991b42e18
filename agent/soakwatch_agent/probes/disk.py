"""Disks: bytes, operations and busy time of whole disks."""

from __future__ import annotations

import os
import re
from typing import FrozenSet, Optional

import psutil

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, ProcAt
from soakwatch_model.sample import Answer, object_text

_NOT_A_DISK = re.compile(r"(loop|ram|sr|fd)\d+$")
_PARTITION = re.compile(r"((sd|hd|vd|xvd)[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+|nbd\d+)p\d+)$")


def whole_disks(folder: str) -> Optional[FrozenSet[str]]:
    """Names in /sys/block, which lists whole devices only; None if it cannot be read."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return None


def is_disk(name: str, whole: Optional[FrozenSet[str]]) -> bool:
    """True for a whole disk; not for loop devices, RAM disks, CD drives and partitions.

    >>> [is_disk(name, None) for name in ("sda", "sda1", "nvme0n1p2", "loop0")]
    [True, False, False, False]
    """
    if _NOT_A_DISK.match(name):
        return False
    return name in whole if whole is not None else not _PARTITION.match(name)


class DiskProbe:
    """Reads /proc/diskstats by psutil, without its wrap correction."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._block = context.path("/sys/block")
        self._slow = Periodic(60)
        self._whole: Optional[FrozenSet[str]] = None

    def read(self, now_ns: int) -> Answer:
        """Counters of each disk; a machine without disks has one fault."""
        notes = self._notes
        notes.begin(now_ns)
        if self._slow.due(now_ns):
            self._whole = whole_disks(self._block)
        with ProcAt(self._context):
            disks = psutil.disk_io_counters(perdisk=True, nowrap=False)
        seen = 0
        for name, io in disks.items():
            if not is_disk(name, self._whole):
                continue
            seen += 1
            reads, writes = object_text(device=name, direction="read"), object_text(device=name, direction="write")
            notes.sample("system.disk.io", reads, io.read_bytes)
            notes.sample("system.disk.io", writes, io.write_bytes)
            notes.sample("system.disk.operations", reads, io.read_count)
            notes.sample("system.disk.operations", writes, io.write_count)
            notes.sample("system.disk.io_time", object_text(device=name), io.busy_time / 1000)
        if not seen:
            notes.fault("system.disk.io", "", "this machine shows no disk")
        return notes.answer()

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> DiskProbe:
    """Opens the probe of a host."""
    return DiskProbe(context)
