"""Sockets, pressure stalls, inodes and kinds of interface errors, out of texts of /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from soakwatch_agent.context import SECOND, HostContext
from soakwatch_agent.probes import filesystem, network, pressure, sockets
from soakwatch_model.metric_queries import brought_by
from soakwatch_model.sample import Answer

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SOCKSTAT = """sockets: used 421
TCP: inuse 34 orphan 3 tw 120 alloc 60 mem 12
UDP: inuse 4 mem 2
RAW: inuse 1
"""


def _tree(folder: Path, files: dict[str, str]) -> HostContext:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")
    return HostContext(str(folder))


def _values(answer: Answer) -> dict[tuple[str, str], float]:
    return {(s.metric, s.object): s.value for s in answer.samples}


def test_sockets_of_both_families_are_added_up(tmp_path: Path) -> None:
    """In use, memory in bytes, what is closing; the limits every 10 s, the highest of three."""
    context = _tree(
        tmp_path,
        {
            "proc/net/sockstat": _SOCKSTAT,
            "proc/net/sockstat6": "TCP6: inuse 8\nUDP6: inuse 2\n",
            "proc/sys/net/ipv4/tcp_mem": "10\t20\t30\n",
            "proc/sys/net/ipv4/tcp_max_orphans": "4096\n",
        },
    )
    probe = sockets.open_probe(context)
    first = probe.read(SECOND)
    assert first.faults == ()
    now = {
        ("system.sockets.allocated", ""): 421,
        ("system.sockets.usage", "protocol=tcp"): 42,
        ("system.sockets.usage", "protocol=udp"): 6,
        ("system.sockets.memory", "protocol=tcp"): 12 * _PAGE,
        ("system.sockets.memory", "protocol=udp"): 2 * _PAGE,
        ("system.tcp.orphans", ""): 3,
        ("system.tcp.time_wait", ""): 120,
        ("system.tcp.allocated", ""): 60,
    }
    limits = {("system.sockets.memory.limit", "protocol=tcp"): 30 * _PAGE, ("system.tcp.orphans.limit", ""): 4096}
    assert _values(first) == now | limits
    assert _values(probe.read(2 * SECOND)) == now


def test_a_kernel_without_ipv6_or_limits_says_what_it_has(tmp_path: Path) -> None:
    """A container shows no limits of memory, an old kernel no memory of UDP: both are left out, none is 0."""
    text = "sockets: used 9\nTCP: inuse 2 orphan 0 tw 0 alloc 3 mem 1\nUDP: inuse 1\n"
    answer = sockets.open_probe(_tree(tmp_path, {"proc/net/sockstat": text})).read(SECOND)
    assert {metric for metric, _ in _values(answer)} == set(brought_by("sockets")) - {
        "system.sockets.memory.limit",
        "system.tcp.orphans.limit",
    }
    assert ("system.sockets.memory", "protocol=udp") not in _values(answer)
    assert answer.faults == ()


def test_half_of_the_sockets_is_no_count_of_all(tmp_path: Path) -> None:
    """Where those of IPv6 are there and cannot be read, none are told: IPv4's alone would look like all."""
    context = _tree(tmp_path, {"proc/net/sockstat": _SOCKSTAT, "proc/net/sockstat6/is/a/folder": ""})
    answer = sockets.open_probe(context).read(SECOND)
    assert answer.samples == ()
    assert {fault.metric for fault in answer.faults} == set(brought_by("sockets"))
    assert all("/proc/net/sockstat6 cannot be read" in fault.text for fault in answer.faults)


def test_sockets_that_cannot_be_read_are_told_once_and_again_when_they_were_back(tmp_path: Path) -> None:
    """A fault of each metric at the first poll, none at the second; after a reading it is news again."""
    probe = sockets.open_probe(_tree(tmp_path, {"proc/stat": ""}))
    assert {fault.metric for fault in probe.read(SECOND).faults} == set(brought_by("sockets"))
    assert probe.read(2 * SECOND) == Answer((), (), ())
    _tree(tmp_path, {"proc/net/sockstat": _SOCKSTAT})
    assert probe.read(3 * SECOND).samples
    (tmp_path / "proc/net/sockstat").unlink()
    assert len(probe.read(4 * SECOND).faults) == len(brought_by("sockets"))


def test_pressure_is_time_since_boot_and_full_of_the_cpu_is_none(tmp_path: Path) -> None:
    """Seconds out of microseconds. The kernel writes 0 for ``full`` of the CPU, which it does not measure."""
    some = "some avg10=36.38 avg60=15.59 avg300=20.61 total=6541239023\n"
    full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
    context = _tree(
        tmp_path,
        {
            "proc/pressure/cpu": some + full.replace("1500000", "0"),
            "proc/pressure/io": some + full,
            "proc/pressure/irq": full,
        },
    )
    answer = pressure.open_probe(context).read(SECOND)
    assert _values(answer) == {
        ("system.pressure.time", "resource=cpu,extent=some"): pytest.approx(6541.239023),
        ("system.pressure.time", "resource=io,extent=some"): pytest.approx(6541.239023),
        ("system.pressure.time", "resource=io,extent=full"): 1.5,
        ("system.pressure.time", "resource=irq,extent=full"): 1.5,
    }
    assert answer.faults == ()


def test_a_kernel_without_pressure_tells_none_and_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    """Nothing there is no reading, no 0 and no fault; a file that the account may not read is one."""
    context = _tree(tmp_path, {"proc/stat": ""})
    assert pressure.open_probe(context).read(SECOND) == Answer((), (), ())
    context.shared.denied = lambda path: path == "/proc/pressure/io"
    (fault,) = pressure.open_probe(context).read(SECOND).faults
    assert (fault.metric, fault.text) == (
        "system.pressure.time",
        "/proc/pressure/io cannot be read: permission denied",
    )


def test_inodes_beside_the_space_and_none_where_there_is_no_table_of_them(tmp_path: Path) -> None:
    """btrfs states 0 inodes, others all bits: neither is a table that could be full."""
    mounts = [("/", 100, 40), ("/data", 0, 0), ("/image", 2**64 - 1, 2**64 - 9)]
    context = _tree(
        tmp_path,
        {
            "statvfs": "".join(f"4096 10 4 {inodes} {free} {mount}\n" for mount, inodes, free in mounts),
            "proc/filesystems": "\text4\n",
            "proc/self/mounts": "".join(f"/dev/sd{n} {mount[0]} ext4 rw 0 0\n" for n, mount in enumerate(mounts)),
        },
    )
    values = _values(filesystem.open_probe(context).read(SECOND))
    assert {mount for metric, mount in values if metric == "system.filesystem.usage"} == {
        f"mountpoint={mount}" for mount, *_ in mounts
    }
    assert {key: value for key, value in values.items() if ".inodes." in key[0]} == {
        ("system.filesystem.inodes.usage", "mountpoint=/"): 60,
        ("system.filesystem.inodes.limit", "mountpoint=/"): 100,
    }


def test_a_file_system_that_the_kernel_made_read_only(tmp_path: Path) -> None:
    """As ext4 does after an error (errors=remount-ro): the options of the mount say so at the next look."""
    tree = {"statvfs": "4096 10 4 100 98 /\n", "proc/filesystems": "\text4\n"}
    context = _tree(tmp_path, {**tree, "proc/self/mounts": "/dev/sda / ext4 rw,relatime,errors=remount-ro 0 0\n"})
    probe = filesystem.open_probe(context)
    assert _values(probe.read(SECOND))["system.filesystem.writable", "mountpoint=/"] == 1
    _tree(tmp_path, {"proc/self/mounts": "/dev/sda / ext4 ro,relatime,errors=remount-ro 0 0\n"})
    values = _values(probe.read(11 * SECOND))
    assert values["system.filesystem.writable", "mountpoint=/"] == 0
    assert values["system.filesystem.usage", "mountpoint=/"] == 6 * 4096


def test_kinds_of_errors_of_the_interfaces_that_are_asked_for(tmp_path: Path) -> None:
    """Every 10 s, of each direction what the kernel tells apart; counters as they are, beyond 32 bits as well."""
    head = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n"
    rows = "  lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\neth0:9 8 7 6 5 4 0 0 9 8 7 6 4294967296 3 2 0\n"
    tree = _tree(tmp_path, {"proc/net/dev": head + rows})
    probe = network.open_probe(HostContext(tree.root, interfaces=("eth*",)))
    kinds = {
        object_: value
        for (metric, object_), value in _values(probe.read(SECOND)).items()
        if metric == "system.network.errors.by_kind"
    }
    assert kinds == {
        "interface=eth0,direction=receive,kind=fifo": 5,
        "interface=eth0,direction=receive,kind=frame": 4,
        "interface=eth0,direction=transmit,kind=fifo": 4294967296,
        "interface=eth0,direction=transmit,kind=collisions": 3,
        "interface=eth0,direction=transmit,kind=carrier": 2,
    }
    assert "system.network.errors.by_kind" not in {sample.metric for sample in probe.read(2 * SECOND).samples}
