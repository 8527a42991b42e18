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
from contextlib import suppress
from pathlib import Path

import psutil

_FILES = (
    *(f"proc/{name}" for name in ("stat", "meminfo", "vmstat", "loadavg", "uptime", "interrupts", "diskstats")),
    *(f"proc/{name}" for name in ("filesystems", "cpuinfo", "self/mounts")),
    *(f"proc/pressure/{name}" for name in ("cpu", "memory", "io", "irq")),
    *(f"proc/net/{name}" for name in ("dev", "snmp", "snmp6", "netstat", "softnet_stat", "sockstat", "sockstat6")),
    *(f"proc/sys/kernel/{name}" for name in ("core_pattern", "core_uses_pid", "osrelease", "pid_max", "panic")),
    *(f"proc/sys/vm/{name}" for name in ("swappiness", "overcommit_memory")),
    *(f"proc/sys/net/{name}" for name in ("core/rmem_max", "core/somaxconn", "ipv4/ip_forward", "ipv4/tcp_rmem")),
    *(f"proc/sys/net/ipv4/{name}" for name in ("tcp_mem", "udp_mem", "tcp_max_orphans")),
    "etc/os-release",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
)
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
    (folder / "proc/sys/kernel/random").mkdir()
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
    mounts = [
        line
        for line in (folder / "proc/self/mounts").read_text().splitlines()
        if _KEPT_MOUNT.fullmatch(line.split()[1])
    ]
    (folder / "proc/self/mounts").write_text("\n".join(mounts) + "\n")
    spaces = []
    for line in mounts:
        mountpoint = line.split()[1]
        stat = os.statvfs(mountpoint)
        spaces.append(f"{stat.f_frsize} {stat.f_blocks} {stat.f_bfree} {stat.f_files} {stat.f_ffree} {mountpoint}\n")
    (folder / "statvfs").write_text("".join(spaces))


def _record_process(target: Path, source: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in _OF_PROCESS:
        try:
            (target / name).write_bytes((source / name).read_bytes())
        except OSError:
            continue
    # Links into the recorder's own folders are not kept: a tree walk (pytest's, git's) would leave the recording.
    (target / "cwd").symlink_to("/srv/recorded/work")
    with suppress(OSError):
        (target / "exe").symlink_to("/srv/recorded/bin/" + Path(os.readlink(source / "exe")).name)
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
