"""Filesystems: space and inodes in use and size of local mounts, and whether they can be written."""

from __future__ import annotations

import os
from typing import Dict, Optional, Set

import psutil

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, ProcAt, why
from soakwatch_agent.procfs import clean, read_text
from soakwatch_agent.spaces import Space, parse_spaces, space_of
from soakwatch_model.sample import Answer, object_text

# Local types only: statvfs of a network filesystem whose server is gone hangs for ever, and images (squashfs, iso9660)
# are always full.
_LOCAL = frozenset(
    [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "f2fs",
        "jfs",
        "reiserfs",
        "vfat",
        "exfat",
        "msdos",
        "ntfs3",
        "zfs",
        "bcachefs",
        "nilfs2",
        "jffs2",
        "ubifs",
        "yaffs2",
        "tmpfs",
        "ramfs",
        "overlay",
    ]
)
_SHARED = frozenset(["tmpfs", "ramfs", "overlay"])  # several mounts share one device name
_MAX_MOUNTS = 64
_COUNTLESS = 2**62  # some filesystems without an inode count write all bits


class FilesystemProbe:
    """Lists mounts by psutil and calls statvfs on the local ones; a recorded machine has a file ``statvfs`` instead."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._slow = Periodic(10)

    def read(self, now_ns: int) -> Answer:
        """Every 10 s, each device once, 64 mounts at most."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._slow.due(now_ns):
            return notes.answer()
        recorded = self._recorded()
        mounts = self.mounts()
        for mountpoint, writable in list(mounts.items())[:_MAX_MOUNTS]:
            label = object_text(mountpoint=clean(mountpoint))
            notes.sample("system.filesystem.writable", label, int(writable))
            if recorded is None:
                space = self._statvfs(mountpoint, label)
            else:
                space = recorded.get(mountpoint)
            if space is not None and space.limit > 0:
                notes.sample("system.filesystem.usage", label, space.used)
                notes.sample("system.filesystem.limit", label, space.limit)
                notes.recovered("system.filesystem.usage", label)
            if space is not None and 0 < space.inodes < _COUNTLESS:
                notes.sample("system.filesystem.inodes.usage", label, space.inodes_used)
                notes.sample("system.filesystem.inodes.limit", label, space.inodes)
        if len(mounts) > _MAX_MOUNTS:
            notes.fault(
                "system.filesystem.usage", "", f"{len(mounts)} filesystems: only the first {_MAX_MOUNTS} are polled"
            )
        return notes.answer()

    def _statvfs(self, mountpoint: str, label: str) -> Optional[Space]:
        try:
            stat = os.statvfs(self._context.path(mountpoint))
        except OSError as error:
            self._notes.fault("system.filesystem.usage", label, f"{clean(mountpoint)} cannot be read: {why(error)}")
            return None
        return space_of(stat.f_frsize, stat.f_blocks, stat.f_bfree, stat.f_files, stat.f_ffree)

    def _recorded(self) -> Optional[Dict[str, Space]]:
        if self._context.real:
            return None
        try:
            return parse_spaces(read_text(self._context.path("/statvfs")))
        except FileNotFoundError:
            return None

    def mounts(self) -> Dict[str, bool]:
        """The local mounts, each device once, and whether they are writable."""
        with ProcAt(self._context):
            partitions = psutil.disk_partitions(all=True)
        devices: Set[str] = set()
        mountpoints: Dict[str, bool] = {}
        for part in partitions:
            if part.fstype not in _LOCAL or (part.fstype == "overlay" and part.mountpoint != "/"):
                continue
            if part.fstype not in _SHARED:
                if part.device in devices:
                    continue
                devices.add(part.device)
            mountpoints.setdefault(part.mountpoint, "ro" not in part.opts.split(","))
        return mountpoints

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> FilesystemProbe:
    """Opens the probe of a host."""
    return FilesystemProbe(context)
