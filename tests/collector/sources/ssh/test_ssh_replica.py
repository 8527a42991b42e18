"""The agent's probes on the mirror of a device: what the account may not read is said of the device."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from soakwatch.sources.transport.ssh.linux.replica import Replica
from soakwatch.sources.transport.ssh.linux.script import Need
from soakwatch.sources.transport.ssh.linux.survey import Survey

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
            answer = replica.look(survey, Need(()), (), time.time_ns())
        finally:
            replica.close()
        texts = [fault.text for fault in answer.faults if (fault.metric, fault.object) == (metric, "")]
        assert (text in texts) is denied
