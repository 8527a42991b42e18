"""Records this machine as a small tree that ``soakwatch-agent --root`` replays.

``python tests/agent/record_root.py FOLDER [--process PID ...]`` copies the files that the probes read, and of the
given processes (and of some kernel threads) what is read of a process. Names of hosts, hardware addresses and the
kernel's command line are replaced: a recording goes into the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

import psutil

_FILES = """
proc/stat proc/meminfo proc/vmstat proc/loadavg proc/uptime proc/interrupts proc/diskstats proc/filesystems proc/cpuinfo
proc/net/dev proc/net/snmp proc/net/snmp6 proc/net/netstat proc/net/softnet_stat proc/self/mounts
proc/sys/kernel/core_pattern proc/sys/kernel/core_uses_pid proc/sys/kernel/random/boot_id proc/sys/kernel/osrelease
proc/sys/kernel/pid_max proc/sys/kernel/panic proc/sys/vm/swappiness proc/sys/vm/overcommit_memory
proc/sys/net/core/rmem_max proc/sys/net/core/somaxconn proc/sys/net/ipv4/ip_forward proc/sys/net/ipv4/tcp_rmem
etc/os-release sys/devices/system/clocksource/clocksource0/current_clocksource
""".split()
_OF_PROCESS = ("stat", "statm", "cmdline", "limits", "smaps_rollup")
_KEPT_MOUNT = re.compile(r"/|/(?:proc|sys|dev|run|tmp|var|home|boot)|/dev/(?:shm|pts)|/sys/fs/cgroup")
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")


def record(folder: Path, pids: list[int]) -> None:
    """Writes the tree."""
    for name in _FILES:
        source, target = Path("/") / name, folder / name
        try:
            data = source.read_bytes()
        except OSError:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (folder / "proc/sys/kernel/hostname").write_text("recorded\n")
    (folder / "proc/sys/kernel/random/boot_id").write_text("3f2b8c1d-90ab-4cde-8f01-23456789abcd\n")
    release = (folder / "proc/sys/kernel/osrelease").read_text().strip().split("-")[0]
    (folder / "proc/sys/kernel/osrelease").write_text(f"{release}-recorded\n")
    (folder / "proc/cmdline").write_text("console=ttyS0 panic=1 root=/dev/vda quiet\n")
    for flaw in Path("/sys/devices/system/cpu/vulnerabilities").glob("*"):
        target = folder / str(flaw).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(flaw.read_bytes())
    (folder / "sys/block").mkdir(parents=True, exist_ok=True)
    for disk in os.listdir("/sys/block"):
        (folder / "sys/block" / disk).write_text("")
    for card in os.listdir("/sys/class/net"):
        _record_card(folder / "sys/class/net" / card, Path("/sys/class/net") / card)
    _record_mounts(folder)
    (folder / "dev").mkdir(exist_ok=True)
    (folder / "dev/kmsg").write_text("6,1,100,-;before the recording\n")
    for pid in pids:
        _record_process(folder / "proc" / str(pid), Path("/proc") / str(pid))


def _record_card(target: Path, source: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in ("address", "operstate", "duplex", "mtu", "speed", "tx_queue_len"):
        try:
            text = (source / name).read_text()
        except OSError:
            continue
        (target / name).write_text(_MAC.sub("02:00:00:00:00:01", text))
    for queue in os.listdir(source / "queues"):
        (target / "queues").mkdir(exist_ok=True)
        (target / "queues" / queue).write_text("")


def _record_mounts(folder: Path) -> None:
    mounts = [line for line in (folder / "proc/self/mounts").read_text().splitlines() if _KEPT_MOUNT.fullmatch(line.split()[1])]
    (folder / "proc/self/mounts").write_text("\n".join(mounts) + "\n")
    spaces = []
    for line in mounts:
        mountpoint = line.split()[1]
        stat = os.statvfs(mountpoint)
        spaces.append(f"{stat.f_frsize} {stat.f_blocks} {stat.f_bfree} {mountpoint}\n")
    (folder / "statvfs").write_text("".join(spaces))


def _record_process(target: Path, source: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in _OF_PROCESS:
        try:
            (target / name).write_bytes((source / name).read_bytes())
        except OSError:
            continue
    for link in ("exe", "cwd"):
        try:
            (target / link).symlink_to(os.readlink(source / link))
        except OSError:
            continue
    (target / "fd").mkdir(exist_ok=True)
    for number in os.listdir(source / "fd"):
        (target / "fd" / number).write_text("")


def main() -> int:
    """Records into an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--process", type=int, action="append", default=[])
    options = parser.parse_args()
    threads = [p.pid for p in psutil.process_iter() if p.pid == 2 or p.ppid() == 2][:8]
    shutil.rmtree(options.folder, ignore_errors=True)
    record(options.folder, threads + options.process)
    return 0


if __name__ == "__main__":
    sys.exit(main())
