"""The profiles of firewalls, white boxes, switches, wireless and hosts: what is recognised, read and heard.

The tables ``devices_*.yaml`` beside this file have a device of each, made by hand from its MIB.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from soakwatch.sources.profiles import ProfileReader, Value, load_profiles, match
from soakwatch.sources.profiles.profile_model import LogPattern, Profile
from soakwatch.sources.profiles.recording import recording

ENTERPRISES = "1.3.6.1.4.1."
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Device:
    """A device of the table."""

    name: str
    known_by: tuple[tuple[str, str], ...]
    rows: Mapping[str, Value]
    makes: Mapping[str, float]
    says: tuple[tuple[str, str | None, Mapping[str, str]], ...]


class _Plain(yaml.SafeLoader):
    """YAML in which 41112.1 stays the text that it is in an OID."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:float"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _devices() -> Iterator[Device]:
    tables = ("devices_hosts_and_leafs.yaml", "devices_gates_and_switches.yaml")
    texts = "\n".join((Path(__file__).parent / table).read_text() for table in tables)
    for name, given in yaml.load(texts, _Plain).items():
        rows = {f"{ENTERPRISES}{oid}": _value(value) for oid, value in given.get("rows", {}).items()}
        makes = {series: float(value) for series, value in given.get("makes", {}).items()}
        known_by = tuple((f"{ENTERPRISES}{oid}", description) for oid, description in given["is"])
        yield Device(name, known_by, rows, makes, tuple((line, kind, d) for line, kind, d in given.get("says", ())))


def _value(given: str | int) -> Value:
    return given if isinstance(given, int) else given.encode()


DEVICES = tuple(_devices())
PROFILES = load_profiles()


def _heard(profile: Profile, line: str) -> tuple[str | None, Mapping[str, str | None]]:
    """What a line means: the first pattern that it has."""
    events: Iterator[tuple[LogPattern, Mapping[str, str | None]]] = (
        (log, hit.groupdict()) for log in profile.logs if (hit := log.match.search(line))
    )
    log, detail = next(events, (None, {}))
    return (log.kind if log is not None else None), detail


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_a_device_gets_its_profile(device: Device) -> None:
    """By sysObjectID and sysDescr alone, among all profiles that are shipped."""

    async def absent(_: str) -> str | None:
        return None

    for object_id, description in device.known_by:
        chosen = asyncio.run(match(object_id, description, absent, PROFILES.heads()))
        assert chosen.name == device.name, f"{object_id} {description!r} is taken for {chosen.name}: {chosen.why}"


@pytest.mark.parametrize("device", [device for device in DEVICES if device.rows], ids=lambda device: device.name)
def test_its_values_become_samples(device: Device) -> None:
    """In the unit of the catalogue, and each from the object that the MIB names."""
    reader = ProfileReader(recording(device.rows), PROFILES[device.name])

    async def polled() -> tuple[dict[str, float], tuple[str, ...]]:
        await reader.discover(0)
        reading = await reader.poll(60 * SECOND)
        values = {f"{sample.metric}{{{sample.object}}}": sample.value for sample in reading.samples}
        return values, tuple(f"{fault.metric}: {fault.text}" for fault in reading.faults)

    values, faults = asyncio.run(polled())
    assert not faults
    assert {series: values.get(series) for series in device.makes} == pytest.approx(device.makes)


SAYING = [(device.name, *log_line) for device in DEVICES for log_line in device.says]


@pytest.mark.parametrize(
    ("name", "line", "kind", "detail"), SAYING, ids=[f"{n}-{line[:40]}" for n, line, _, _ in SAYING]
)
def test_a_line_of_its_log_means_an_event(name: str, line: str, kind: str | None, detail: Mapping[str, str]) -> None:
    heard, details = _heard(PROFILES[name], line)
    assert heard == kind
    assert {key: details.get(key) for key in detail} == dict(detail)


LINUX = [
    ("kernel: Out of memory: Killed process 1234 (bgpd) total-vm:1kB", "kernel.oom", {"process": "bgpd"}),
    ("kernel: [1.0] Out of memory: Kill process 77 (snort) score 9 or sacrifice child", "kernel.oom", {"pid": "77"}),
    ("kernel: zebra invoked oom-killer: gfp_mask=0x100cca", None, {}),
    ("kernel: Kernel panic - not syncing: Fatal exception", "kernel.panic", {"reason": "Fatal exception"}),
    ("kernel: bgpd[812]: segfault at 10 ip 00007f sp 00007f error 4", "kernel.segfault", {"process": "bgpd"}),
    ("kernel: traps: vpp[9] general protection fault ip:1 sp:2", "kernel.segfault", {"process": "vpp"}),
    ("systemd[1]: frr.service: Main process exited, code=dumped, status=6/ABRT", "process.crash", {"signal": "6/ABRT"}),
    ("systemd[1]: frr.service: Failed with result 'core-dump'.", None, {}),
    ("systemd-coredump[5]: Process 31 (ospfd) of user 0 dumped core.", "core.dump", {"process": "ospfd"}),
    ("watchfrr[9]: [QDG3Y-BY5TN] bgpd state -> down : read returned EOF", "process.crash", {"process": "bgpd"}),
    ("watchfrr[9]: [YFT0P-5Q5YX] bgpd state -> unresponsive : silent", "process.crash", {"reason": "unresponsive"}),
    ("watchfrr[9]: [ZCJ3S-SPH5S] zebra state -> down : initial connection attempt failed", None, {}),
    ("watchfrr[9]: [QDG3Y-BY5TN] zebra state -> up : connect succeeded", None, {}),
    ("kernel: INFO: task fsync:99 blocked for more than 120 seconds.", "kernel.hung_task", {"seconds": "120"}),
    ("kernel: watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [vpp:9]", "kernel.lockup", {"processor": "CPU#3"}),
    ("kernel: watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "kernel.lockup", {"processor": "3"}),
    ("kernel: mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00", "kernel.hardware", {}),
    ("kernel: mce: [Hardware Error]: Machine check events logged", "kernel.hardware_corrected", {}),
    ("kernel: EDAC MC0: 1 CE memory read error on CPU_SrcID#0", "kernel.hardware_corrected", {}),
    (
        "kernel: mce: CPU2: Package temperature above threshold, cpu clock throttled (total events = 7)",
        "kernel.thermal",
        {"processor": "2"},
    ),
    ("kernel: nf_conntrack: nf_conntrack: table full, dropping packet", "memory.low", {}),
    ("kernel: ixgbe 0000:01:00.0 eth2: NIC Link is Down", "link.down", {"interface": "eth2"}),
    ("kernel: ixgbe 0000:01:00.0 eth2: NIC Link is Up 10 Gbps", "link.up", {"interface": "eth2"}),
    ("Keepalived_vrrp[8]: (VI_1) Entering MASTER STATE", "failover", {"instance": "VI_1", "state": "MASTER"}),
    ("systemd[1]: frr.service: Main process exited, code=killed, status=15/TERM", None, {}),
    ("systemd[1]: Started Session 12 of user root.", None, {}),
    ("sshd[77]: Accepted publickey for root from 198.51.100.7", None, {}),
]


@pytest.mark.parametrize(("line", "kind", "detail"), LINUX, ids=[line[:50] for line, _, _ in LINUX])
def test_lines_of_linux_that_mean_a_failure(line: str, kind: str | None, detail: Mapping[str, str]) -> None:
    for name in ("_linux-logs", "vyos", "sonic", "proxmox"):
        heard, details = _heard(PROFILES.part(name), line)
        assert heard == kind, name
        assert {key: details.get(key) for key in detail} == detail


def test_a_netscaler_behind_freebsd_is_found_by_what_it_answers() -> None:
    """Its net-snmp names FreeBSD; only a GET distinguishes them."""

    async def only_netscaler(oid: str) -> str | None:
        return "NetScaler NS13.0" if oid == f"{ENTERPRISES}5951.4.1.1.1.0" else None

    chosen = asyncio.run(match(f"{ENTERPRISES}8072.3.2.8", "FreeBSD ns", only_netscaler, PROFILES.heads()))
    assert chosen.name == "citrix-netscaler"


def test_sonic_subscribes_to_queues_and_links() -> None:
    paths = {(path.metric, path.mode) for path in PROFILES["sonic"].gnmi}
    assert {("queue.dropped", "sample"), ("system.network.up", "on_change")} <= paths
    assert PROFILES["dell-sonic"].gnmi == PROFILES["sonic"].gnmi


def test_a_load_that_is_not_measured_is_absent() -> None:
    """101 of a Radlan switch is no load; it must not become a sample, nor a complaint at each poll."""
    reader = ProfileReader(recording({f"{ENTERPRISES}89.1.{arc}.0": 101 for arc in (7, 8, 9)}), PROFILES["eltex-mes"])

    async def polled() -> list[str]:
        await reader.discover(0)
        reading = await reader.poll(60 * SECOND)
        return [sample.metric for sample in reading.samples] + [fault.metric for fault in reading.faults]

    assert [metric for metric in asyncio.run(polled()) if metric.startswith("system.cpu")] == []


def test_failovers_are_reported_by_notifications_too() -> None:
    kinds = {trap.oid: trap.kind for trap in PROFILES["vyos"].traps}
    assert kinds["1.3.6.1.2.1.68.0.1"] == "failover"
    assert {trap.kind for trap in PROFILES["allied-telesis-awplus"].traps} >= {"hardware.fault", "failover"}


def test_no_pattern_begins_with_an_endless_run() -> None:
    r"""A pattern that begins with ``\S+`` is tried again at each place of a long line: 8 kB would delay a listener."""
    endless = re.compile(r"(\(\?P<\w+>|\(\?:|\()*(\\[SWw]|\.|\[\^[^]]*\])[+*]")
    for name in ("_linux-logs", "_bsd-logs", *(device.name for device in DEVICES)):
        for log in PROFILES.part(name).logs:
            assert endless.match(log.match.pattern) is None, f"{name}: {log.match.pattern}"
