"""The profiles of the long tail, and what the standard MIBs give where an agent is odd or small.

``devices_c.yaml`` beside this file has a device of each, made by hand from its MIB; a value of null must not come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from soakwatch.sources.profiles import ProfileReader, Value, load_profiles, match
from soakwatch.sources.profiles.recording import recording

ENTERPRISES = "1.3.6.1.4.1."
STORAGE = "1.3.6.1.2.1.25.2.3.1"
UCD = f"{ENTERPRISES}2021"
SECOND = 1_000_000_000
PROFILES = load_profiles()


class _Plain(yaml.SafeLoader):
    """YAML in which 41112.1 stays the text that it is in an OID."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:float"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
DEVICES: Mapping[str, Mapping[str, Any]] = yaml.load((Path(__file__).parent / "devices_c.yaml").read_text(), _Plain)


def _value(given: str | int) -> Value:
    return given if isinstance(given, int) else given.encode()


def _polled(name: str, rows: Mapping[str, Value]) -> tuple[dict[str, float], dict[str, tuple[str, ...]], list[str]]:
    """Of a device with these values: the samples, the OIDs that each came from, and the faults of a poll."""
    reader = ProfileReader(recording(rows), PROFILES[name])

    async def poll() -> tuple[dict[str, float], dict[str, tuple[str, ...]], list[str]]:
        await reader.discover(0)
        reading = await reader.poll(60 * SECOND)
        series = [f"{sample.metric}{{{sample.object}}}" for sample in reading.samples]
        return (
            dict(zip(series, (sample.value for sample in reading.samples), strict=True)),
            {name: part.oids for name, part in zip(series, reading.parts, strict=True) if part is not None},
            [f"{f.metric}: {f.text}" for f in reading.faults],
        )

    return asyncio.run(poll())


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_gets_its_profile(name: str) -> None:
    """By sysObjectID and sysDescr alone, among all profiles that are shipped."""

    async def absent(_: str) -> str | None:
        return None

    for oid, description in DEVICES[name]["is"]:
        chosen = asyncio.run(match(f"{ENTERPRISES}{oid}", description, absent, PROFILES.heads()))
        assert chosen.name == name, f"{oid} {description!r} is taken for {chosen.name}: {chosen.why}"


@pytest.mark.parametrize("name", [name for name, device in DEVICES.items() if "rows" in device])
def test_its_values_become_samples(name: str) -> None:
    """In the unit of the catalogue, and nothing that the device does not have."""
    rows = {f"{ENTERPRISES}{oid}": _value(value) for oid, value in DEVICES[name]["rows"].items()}
    values, _, faults = _polled(name, rows)
    assert not faults
    wanted = {series: value if value is None else float(value) for series, value in DEVICES[name]["makes"].items()}
    assert {series: values.get(series) for series in wanted} == pytest.approx(wanted)


SAYING = [(name, *log_line) for name, device in DEVICES.items() for log_line in device.get("says", ())]


@pytest.mark.parametrize(("name", "line", "kind", "detail"), SAYING, ids=[line[:40] for _, line, _, _ in SAYING])
def test_a_line_of_its_log_means_an_event(name: str, line: str, kind: str, detail: Mapping[str, str]) -> None:
    log, hit = next((log, hit) for log in PROFILES[name].logs if (hit := log.match.search(line)))
    assert log.kind == kind
    assert {key: hit.groupdict()[key] for key in detail} == dict(detail)


def _storage(
    index: int, descr: str, size: int, used: int, unit: int = 1024, kind: str = "1.3.6.1.2.1.25.2.1.2"
) -> dict[str, Value]:
    values: tuple[Value, ...] = (kind, descr.encode(), unit, size, used)
    return {f"{STORAGE}.{column}.{index}": value for column, value in zip((2, 3, 4, 5, 6), values, strict=True)}


def test_memory_of_odd_agents_is_neither_made_up_nor_cut_to_fit() -> None:
    """Sizes beyond 31 bits, units of 0, use beyond the size, and rows whose kind the agent leaves at zeroDotZero."""
    rows = {
        **_storage(1, "huge", -2, -(2**31)),
        **_storage(2, "no unit", 100, 50, unit=0),
        **_storage(3, "empty", 0, 0),
        **_storage(4, "over", 100, 150),
        **_storage(5, "System memory", 100, 40, kind="0.0"),
        **_storage(6, "/flash", 100, 40, kind="0.0"),
    }
    values, _, faults = _polled("generic", rows)
    pools = {series: value for series, value in values.items() if series.startswith("system.memory.pool")}
    assert pools == pytest.approx(
        {
            "system.memory.pool.usage{pool=huge}": 2**31 * 1024,
            "system.memory.pool.limit{pool=huge}": (2**32 - 2) * 1024,
            "system.memory.pool.utilization{pool=huge}": 2**31 / (2**32 - 2),
            "system.memory.pool.utilization{pool=no unit}": 0.5,
            "system.memory.pool.usage{pool=empty}": 0,
            "system.memory.pool.usage{pool=over}": 150 * 1024,
            "system.memory.pool.limit{pool=over}": 100 * 1024,
            "system.memory.pool.usage{pool=System memory}": 40 * 1024,
            "system.memory.pool.limit{pool=System memory}": 100 * 1024,
        }
    )
    assert [fault for fault in faults if fault.startswith("system.memory.pool.utilization")], "150 % is a fault"


def test_an_agent_with_little_more_than_ucd_has_a_processor_and_pools() -> None:
    """Each pool with its size, and each value with the object that it came from."""
    rows: dict[str, Value] = {
        f"{UCD}.11.11.0": 93,
        f"{UCD}.4.5.0": 1000,
        f"{UCD}.4.6.0": 300,
        f"{UCD}.4.14.0": 50,
        f"{UCD}.4.15.0": 250,
        f"{UCD}.4.3.0": 500,
        f"{UCD}.4.4.0": 400,
    }
    values, oids, faults = _polled("generic", rows)
    assert not faults
    assert values["system.cpu.utilization{}"] == pytest.approx(0.07)
    assert oids["system.cpu.module.average{module=cpu,window=1m}"] == (f"{UCD}.11.11.0",)
    for pool, used, size in (
        ("Physical memory", 700, 1000),
        ("Memory buffers", 50, 1000),
        ("Cached memory", 250, 1000),
        ("Swap space", 100, 500),
    ):
        kind = "pool" if pool == "Swap space" else "cache"  # what fills up with page cache is no leak
        assert values[f"system.memory.{kind}.usage{{pool={pool}}}"] == used * 1024
        assert values[f"system.memory.{kind}.limit{{pool={pool}}}"] == size * 1024
    assert f"{UCD}.4.14.0" in oids["system.memory.cache.usage{pool=Memory buffers}"]
    assert values["system.memory.usage{}"] == 400 * 1024, "without buffers and page cache"
    assert "system.memory.cache.limit{pool=Shared memory}" not in values, "it tells nothing of shared memory"


def test_ucd_yields_to_the_tables_of_the_host() -> None:
    rows: dict[str, Value] = {
        f"{UCD}.11.11.0": 93,
        f"{UCD}.4.5.0": 1000,
        f"{UCD}.4.6.0": 300,
        "1.3.6.1.2.1.25.3.3.1.2.1": 12,
        **_storage(1, "Physical memory", 1000, 700),
    }
    values, oids, _ = _polled("generic", rows)
    assert oids["system.cpu.utilization{}"] == ("1.3.6.1.2.1.25.3.3.1.2.1",)
    assert not [series for series in values if series.startswith("system.cpu.module")]
    assert f"{STORAGE}.6.1" in oids["system.memory.cache.usage{pool=Physical memory}"]


ONE_INCIDENT = {
    "linux": [
        "kernel: bgpd invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "kernel: oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,task=bgpd,pid=812,uid=0",
        "kernel: Out of memory: Killed process 812 (bgpd) total-vm:9kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB",
        "kernel: oom_reaper: reaped process 812 (bgpd), now anon-rss:0kB",
        "systemd[1]: frr.service: Failed with result 'oom-kill'.",
    ],
    "sonic": [
        "reboot: User requested rebooting device ...",
        "systemd-shutdown[1]: Rebooting.",
        "kernel: [    0.000000] Linux version 5.10.0-23-2-amd64 (debian-kernel@lists.debian.org)",
    ],
    "freebsd": [
        "reboot: rebooted by root",
        "kernel: Copyright (c) 1992-2023 The FreeBSD Project.",
        "kernel: FreeBSD is a registered trademark of The FreeBSD Foundation.",
    ],
    "cisco-ios": [
        "%SYS-5-RELOAD: Reload requested by admin on vty0.",
        "%SYS-5-RESTART: System restarted --",
    ],
    "arista-eos": [
        "%SYS-5-SYSTEM_REBOOT: System reboot requested by admin",
        "%SYS-5-SYSTEM_RESTARTED: System restarted",
    ],
    "juniper-junos": [
        "SYSTEM_REBOOT: System rebooted by root: planned",
        "kernel: Copyright (c) 1996-2023, Juniper Networks, Inc.",
        "SYSTEM_OPERATIONAL: System is operational",
    ],
    "fortinet-fortigate": [
        'logid="0100032138" type="event" logdesc="Device rebooted" user="admin" msg="User admin rebooted the device"',
        'logid="0100032009" type="event" logdesc="FortiGate started" msg="FortiGate started"',
    ],
    "windows": [
        "The process C:\\Windows\\system32\\shutdown.exe (X) has initiated the restart of computer X",
        "The previous system shutdown at 3:12:44 AM on 1/2/2026 was unexpected.",
        "The system has rebooted without cleanly shutting down first.",
        "The Event log service was started.",
    ],
    "paloalto-panos": [
        '1,2026/01/02,0011,SYSTEM,general,0,2026/01/02,,general,,0,0,general,high,"System restart requested by admin"',
        '1,2026/01/02,0011,SYSTEM,general,0,2026/01/02,,general,,0,0,general,high,"The system is starting up."',
    ],
}


@pytest.mark.parametrize("name", ONE_INCIDENT)
def test_the_lines_of_one_incident_are_one_event(name: str) -> None:
    """Rules count kills and reboots: the lines that go with one must not be counted as well."""
    heard = [
        next((log.kind for log in PROFILES[name].logs if log.match.search(line)), "") for line in ONE_INCIDENT[name]
    ]
    counted = [kind for kind in heard if kind in {"kernel.oom", "reboot", "process.crash"}]
    assert len(counted) == 1, heard
