"""The agent's probes on the mirror of a device: what the account may not read is said of the device."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from soakwatch.sources.transport.ssh.linux.linux_survey import Survey
from soakwatch.sources.transport.ssh.linux.replica import Replica
from soakwatch.sources.transport.ssh.linux.script import LookRequest
from soakwatch.sources.transport.ssh.shell import Reply

SURVEY = Survey(
    files=frozenset(),
    denied=frozenset(),
    sensors=(),
    blocks=(),
    asks=frozenset(),
    facts={"uid": "1000"},
    shell_pid=7,
    parent_pid=6,
    page=4096,
    ticks=100,
    timeout=True,
    stat=True,
    kmsg="absent",
)


@pytest.mark.parametrize(
    ("path", "metric", "text"),
    [
        (
            "/proc/sys/net/netfilter/nf_conntrack_count",
            "system.conntrack.count",
            "the connection table cannot be read: permission denied",
        ),
        (
            "/proc/sys/kernel/core_pattern",
            "system.core.files",
            "the kernel's core pattern cannot be read: permission denied",
        ),
        ("/proc/net/snmp", "system.udp.receive_errors", "/proc/net/snmp cannot be read: permission denied"),
        ("/proc/loadavg", "system.cpu.load", "/proc/loadavg cannot be read: permission denied"),
    ],
)
def test_a_file_that_the_account_may_not_read_is_denied_and_not_missing(path: str, metric: str, text: str) -> None:
    """Whatever words the probe has for a file that is not there; without the right to read it, it is not missing."""
    for survey, denied in ((replace(SURVEY, denied=frozenset({path})), True), (SURVEY, False)):
        replica = Replica((), None, (), None)
        try:
            answer = replica.look(survey, LookRequest(()), (), time.time_ns())
        finally:
            replica.close()
        texts = [fault.text for fault in answer.faults if (fault.metric, fault.object) == (metric, "")]
        assert (text in texts) is denied


def test_sockets_and_inodes_of_a_device_with_pages_of_another_size() -> None:
    """Memory of sockets is in the device's own pages; inodes come with the space; a line cut short is left out."""
    replica = Replica((), None, (), ("sockets", "filesystem"))
    files = {
        "/proc/net/sockstat": b"sockets: used 9\nTCP: inuse 2 orphan 0 tw 1 alloc 3 mem 4\n",
        "/proc/sys/net/ipv4/tcp_mem": b"10\t20\t30\n",
        "/proc/filesystems": b"\text4\n",
        "/proc/self/mounts": b"/dev/sda / ext4 rw 0 0\n/dev/sdb /var ext4 rw 0 0\n",
    }
    told = b"".join(b"==> %s <==\n%s\n" % (path.encode(), text) for path, text in files.items())
    survey = replace(SURVEY, page=65536, files=frozenset(files))
    try:
        replica.take(survey, LookRequest(tuple(files)), Reply({"files": told}, "", 0.1))
        replica.take_more(survey, (), Reply({"mounts": b"4096 10 4 100 40 /\n4096 10 4 /var\n"}, "", 0.1))
        answer = replica.look(survey, LookRequest(()), (), time.time_ns())
    finally:
        replica.close()
    values = {(sample.metric, sample.object): sample.value for sample in answer.samples}
    assert values["system.sockets.memory", "protocol=tcp"] == 4 * 65536
    assert values["system.sockets.memory.limit", "protocol=tcp"] == 30 * 65536
    assert values["system.sockets.usage", "protocol=tcp"] == 2
    assert {key: value for key, value in values.items() if ".filesystem." in key[0]} == {
        ("system.filesystem.writable", "mountpoint=/"): 1,
        ("system.filesystem.writable", "mountpoint=/var"): 1,
        ("system.filesystem.usage", "mountpoint=/"): 6 * 4096,
        ("system.filesystem.limit", "mountpoint=/"): 40960,
        ("system.filesystem.inodes.usage", "mountpoint=/"): 60,
        ("system.filesystem.inodes.limit", "mountpoint=/"): 100,
    }
