"""Profiles of network vendors on tables written by hand from the MIBs: what is rarely recorded or easily misread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles import ProfileReader, Value, load_profiles, read_facts
from soakwatch.sources.profiles.recording import recording

CISCO = "1.3.6.1.4.1.9."
JNX = "1.3.6.1.4.1.2636.3."
NAME = "1.3.6.1.2.1.31.1.1.1.1"
ENTITY = "1.3.6.1.2.1.47.1.1.1.1.7"
SECOND = 1_000_000_000
PROFILES = load_profiles()
Rows = Mapping[str, Value]


def _polled(name: str, rows: Rows, *watched: str) -> tuple[dict[str, float], list[str]]:
    """Samples by series, and faults, of the second poll of a device that has these rows."""
    watch = tuple(WatchedProcess(process, "name", process) for process in watched)

    async def polled() -> tuple[dict[str, float], list[str]]:
        reader = ProfileReader(recording(rows), PROFILES[name], processes=watch)
        await reader.discover(0)
        first = await reader.poll(60 * SECOND)
        reading = await reader.poll(120 * SECOND)
        values = {f"{sample.metric}{{{sample.object}}}": sample.value for sample in reading.samples}
        return values, [f"{fault.metric}: {fault.text}" for fault in (*first.faults, *reading.faults)]

    return asyncio.run(polled())


def _rows(prefix: str, **columns: Value) -> dict[str, Value]:
    return {prefix + arcs.strip("_").replace("_", "."): value for arcs, value in columns.items()}


QOS = f"{CISCO}9.166.1."
BGP: Rows = {
    f"{CISCO}9.109.1.2.1.1.2.1.118": b"BGP Router",
    f"{CISCO}9.109.1.2.1.1.2.1.119": b"OSPF Hello",
    f"{CISCO}9.109.1.2.3.1.1.1.118": 90_000_000,
    f"{CISCO}9.109.1.2.3.1.2.1.118": 50_000_000,
    f"{CISCO}9.109.1.2.3.1.5.1.118": 37,
    f"{CISCO}9.109.1.2.3.1.1.1.119": 1,
    f"{CISCO}9.109.1.2.3.1.2.1.119": 0,
    f"{CISCO}9.109.1.2.3.1.5.1.119": 1,
}


def test_a_process_of_ios_holds_what_it_allocated_less_what_it_freed() -> None:
    values, faults = _polled("cisco-ios", BGP, "BGP Router")
    assert not faults
    assert values["process.cpu.utilization{process=BGP Router,instance=0}"] == 0.37
    assert values["process.memory.usage{process=BGP Router,instance=0}"] == 40_000_000
    assert values["process.pid{process=BGP Router,instance=0}"] == 118
    assert not any("OSPF" in series for series in values)


def test_the_64_bit_columns_of_a_process_are_preferred() -> None:
    wide = {f"{CISCO}9.109.1.2.3.1.20.1.118": 2**33, f"{CISCO}9.109.1.2.3.1.22.1.118": 1000}
    values, _ = _polled("cisco-iosxe", {**BGP, **wide}, "BGP Router")
    assert values["process.memory.usage{process=BGP Router,instance=0}"] == 2**33 - 1000


def test_an_asa_reports_no_memory_of_a_process() -> None:
    """Its MIB gives 0 for it, and 0 would be taken for a process without memory."""
    values, _ = _polled("cisco-asa", BGP, "BGP Router")
    assert values["process.cpu.utilization{process=BGP Router,instance=0}"] == 0.37
    assert "process.memory.usage{process=BGP Router,instance=0}" not in values


def test_a_class_of_qos_is_named_by_port_direction_and_class() -> None:
    """cbQosObjects: 1000 the policy, 1010 a class in it, 1020 the queue of that class."""
    rows: Rows = {
        f"{QOS}1.1.1.3.77": 2,  # output
        f"{QOS}1.1.1.4.77": 3,
        f"{NAME}.3": b"Gi0/0/3",
        f"{QOS}5.1.1.2.77.1010": 4242,
        f"{QOS}5.1.1.2.77.1020": 4243,
        f"{QOS}5.1.1.4.77.1020": 1010,
        f"{QOS}7.1.1.1.4242": b"VOICE",
        f"{QOS}15.1.1.3.77.1010": 1_000_000,
        f"{QOS}15.1.1.14.77.1010": 11_228,
        f"{QOS}15.1.1.21.77.1010": 7,
        f"{QOS}18.1.1.1.77.1020": 64_000,
        f"{QOS}18.1.1.9.77.1020": 42,
        f"{QOS}18.1.1.8.77.1020": 5,
    }
    values, faults = _polled("cisco-iosxr", rows)
    assert not faults
    assert values["queue.packets{queue=Gi0/0/3 out VOICE}"] == 1_000_000
    assert values["queue.dropped{queue=Gi0/0/3 out VOICE}"] == 11_228
    assert values["system.forwarding.dropped{place=Gi0/0/3 out VOICE,reason=no buffer}"] == 7
    assert values["queue.depth{queue=Gi0/0/3 VOICE queue}"] == 42
    assert values["queue.usage{queue=Gi0/0/3 VOICE queue}"] == 64_000
    assert values["queue.dropped{queue=Gi0/0/3 VOICE queue}"] == 5


def test_the_queue_of_an_interface_drops_on_both_sides() -> None:
    rows: Rows = {f"{NAME}.5": b"Te1/1", f"{CISCO}9.276.1.1.1.1.10.5": 12, f"{CISCO}9.276.1.1.1.1.11.5": 2**32 - 1}
    values, _ = _polled("cisco-ios", rows)
    assert values["queue.dropped{queue=Te1/1 in}"] == 12
    assert values["queue.dropped{queue=Te1/1 out}"] == 2**32 - 1


@pytest.mark.parametrize(
    ("columns", "expected"),
    [((3, 4, 5), {"": 7, "1m": 6, "5m": 5}), ((6, 7, 8), {"": 7, "1m": 6, "5m": 5}), ((10, 7, 8), {"": 7, "5m": 5})],
)
def test_every_generation_of_the_processor_table_is_read(columns: tuple[int, ...], expected: dict[str, int]) -> None:
    table = f"{CISCO}9.109.1.1.1.1"
    rows: Rows = {f"{table}.{column}.1": value for column, value in zip(columns, (7, 6, 5), strict=True)}
    values, _ = _polled("cisco-ios", {**rows, f"{table}.2.1": 9, f"{ENTITY}.9": b"CPU of Switch 1"})
    assert values["system.cpu.utilization{}"] == pytest.approx(0.07)
    for window, percent in expected.items():
        kind = f"average{{module=CPU of Switch 1,window={window}}}" if window else "utilization{module=CPU of Switch 1}"
        assert values[f"system.cpu.module.{kind}"] == pytest.approx(percent / 100)


def test_a_router_before_the_process_mib_has_a_load_too() -> None:
    values, _ = _polled("cisco-ios", _rows(CISCO, _2_1_56_0=31, _2_1_57_0=21, _2_1_58_0=11))
    assert values["system.cpu.utilization{}"] == 0.31
    assert values["system.cpu.module.average{module=CPU,window=5m}"] == 0.11


def test_memory_comes_from_the_best_table_and_only_from_that() -> None:
    old = _rows(f"{CISCO}9.48.1.1.1.", _2_1=b"Processor", _5_1=100, _6_1=300)
    kilobytes = _rows(f"{CISCO}9.109.1.1.1.1.", _12_1=1000, _13_1=3000)
    pools = _rows(f"{CISCO}9.221.1.1.1.1.", _3_7_1=b"processor", _7_7_1=5, _8_7_1=15)
    named = {f"{ENTITY}.7": b"RP"}
    assert _polled("cisco-ios", kilobytes)[0]["system.memory.pool.limit{pool=1}"] == 4000 * 1024
    values, _ = _polled("cisco-ios", {**kilobytes, **old})
    assert values["system.memory.pool.limit{pool=Processor}"] == 400
    assert "system.memory.pool.usage{pool=1}" not in values
    values, _ = _polled("cisco-ios", {**kilobytes, **old, **pools, **named})
    assert values["system.memory.pool.usage{pool=RP processor}"] == 5
    assert "system.memory.pool.usage{pool=Processor}" not in values


def test_reasons_of_the_last_restart_are_facts() -> None:
    rows: Rows = {f"{CISCO}2.1.2.0": b"power-on", **_rows(f"{CISCO}9.117.1.2.1.1.", _3_22=6, _3_23=17)}
    assert asyncio.run(read_facts(recording(rows), PROFILES["cisco-iosxe"])) == {
        "reboot_reason": "power-on",
        "module_reset_reason": "watchdog timeout, software exception",
    }
    card = {"1.3.6.1.4.1.6527.3.1.2.2.3.2.1.18.1.3": 6}
    assert asyncio.run(read_facts(recording(card), PROFILES["nokia-timos"]))["reboot_reason"] == "runtime failure"


def test_juniper_queues_count_packets_and_drops() -> None:
    rows: Rows = {f"{NAME}.531": b"xe-0/0/3"}
    rows = {**rows, **_rows(f"{JNX}15.4.1.", _3_531_0=10**12, _11_531_0=3, _13_531_0=4, _53_531_0=7)}
    values, faults = _polled("juniper-junos", rows)
    assert not faults
    assert values["queue.packets{queue=xe-0/0/3 queue 0}"] == 10**12
    assert values["queue.dropped{queue=xe-0/0/3 queue 0}"] == 7
    assert values["queue.dropped{queue=xe-0/0/3 queue 0 tail}"] == 3


def test_junos_memory_above_2_gigabytes_comes_from_megabytes() -> None:
    """jnxOperatingDRAMSize is bytes in 32 bits; jnxOperatingBuffer is percent."""
    table = f"{JNX}1.13.1."
    rows = _rows(
        table, _5_9_1_0_0=b"Routing Engine 0", _8_9_1_0_0=33, _10_9_1_0_0=2147483647, _11_9_1_0_0=21, _15_9_1_0_0=16384
    )
    values, _ = _polled("juniper-junos", rows)
    assert values["system.cpu.utilization{}"] == 0.33
    assert values["system.memory.pool.limit{pool=Routing Engine 0}"] == 16384 * 2**20
    assert values["system.memory.pool.utilization{pool=Routing Engine 0}"] == 0.21


def test_flow_sessions_of_an_srx_have_a_limit() -> None:
    values, _ = _polled(
        "juniper-junos", _rows(f"{JNX}39.1.12.1.1.1.", _2_0=0, _4_0=12, _5_0=57, _6_0=312, _7_0=65536, _11_0=b"single")
    )
    assert values["system.cpu.module.utilization{module=single SPU 0}"] == 0.12
    assert values["system.sessions{table=single SPU 0 flows}"] == 312
    assert values["system.sessions.limit{table=single SPU 0 flows}"] == 65536


E = "1.3.6.1.4.1."
XOS, TMM = f"{E}1916.1.32.", f"{E}3375.2.1."
VALUES: tuple[tuple[str, Rows, Mapping[str, float]], ...] = (
    (
        "cisco-sb",
        _rows(f"{E}9.6.1.101.1.", _7_0=12, _8_0=8, _9_0=6),
        {"system.cpu.utilization{}": 0.12, "system.cpu.module.average{module=CPU,window=1m}": 0.08},
    ),
    (
        "cisco-wlc",
        _rows(f"{E}14179.1.1.5.", _1_0=4, _2_0=1000, _3_0=400),
        {"system.cpu.utilization{}": 0.04, "system.memory.usage{}": 600 * 1024, "system.memory.limit{}": 1000 * 1024},
    ),
    (
        "cisco-asyncos",
        _rows(f"{E}15497.1.1.1.", _1_0=61, _2_0=17),
        {"system.cpu.utilization{}": 0.17, "system.memory.utilization{}": 0.61},
    ),
    (
        "cisco-viptela",
        _rows(f"{E}41916.11.1.", _16_0=b"97.5", _17_0=b"1907024", _18_0=b"907024"),
        {"system.cpu.utilization{}": 0.025, "system.memory.usage{}": 907024 * 1024},
    ),
    ("cisco-fxos", _rows(f"{E}9.9.109.1.1.1.1.", _6_1=9), {"system.cpu.utilization{}": 0.09}),
    (
        "cisco-aci",
        _rows(f"{E}9.9.305.1.1.", _1_0=22, _2_0=44),
        {"system.cpu.utilization{}": 0.22, "system.memory.utilization{}": 0.44},
    ),
    ("cisco-ise", {"1.3.6.1.2.1.25.3.3.1.2.1": 8}, {"system.cpu.utilization{}": 0.08}),
    ("cisco-asa", {f"{E}9.9.147.1.2.2.2.1.5.40.6": 7756}, {"system.sessions{table=connections}": 7756}),
    (
        "cisco-ftd",
        {f"{E}9.9.392.1.3.1.0": 12, f"{E}9.9.392.1.1.1.0": 250},
        {"system.sessions{table=remote access VPN}": 12, "system.sessions.limit{table=remote access VPN}": 250},
    ),
    (
        "juniper-screenos",
        _rows(f"{E}3224.16.", _1_1_0=3, _1_2_0=5, _2_1_0=60, _2_2_0=40, _3_2_0=77, _3_3_0=48000),
        {"system.cpu.utilization{}": 0.05, "system.memory.limit{}": 100, "system.sessions{table=sessions}": 77},
    ),
    (
        "arista-eos",
        {f"{NAME}.5": b"Ethernet5", f"{E}30065.3.6.1.2.1.6.5.3.0": 9, f"{E}30065.3.6.1.2.1.4.5.3.0": 900},
        {"queue.dropped{queue=Ethernet5 out unicast 3}": 9, "queue.packets{queue=Ethernet5 out unicast 3}": 900},
    ),
    (
        "fortinet-fortigate",
        _rows(f"{E}12356.1.", _8_0=42, _9_0=61, _10_0=4000),
        {"system.cpu.utilization{}": 0.42, "system.memory.utilization{}": 0.61, "system.sessions{table=IPv4}": 4000},
    ),
    (
        "fortinet-fortigate",
        {f"{E}12356.101.4.4.2.1.2.1": 5, f"{E}12356.101.4.4.2.1.8.1": 2**40},
        {"system.forwarding.dropped{place=processor 1,reason=dropped}": 2**40},
    ),
    (
        "fortinet-fortiswitch",
        _rows(f"{E}12356.106.4.1.", _2_0=7, _3_0=100, _4_0=400),
        {"system.cpu.utilization{}": 0.07, "system.memory.usage{}": 102400},
    ),
    ("fortinet-fortimail", _rows(f"{E}12356.105.1.", _6_0=7, _7_0=40), {"system.memory.utilization{}": 0.4}),
    (
        "fortinet-fortiweb",
        _rows(f"{E}12356.107.2.1.", _5_0=7, _7_0=40, _8_0=4096),
        {"system.cpu.utilization{}": 0.07, "system.memory.limit{}": 2**32},
    ),
    (
        "fortinet-fortiadc",
        _rows(f"{E}12356.112.1.", _4_0=7, _5_0=40, _40_1_3_1=9),
        {"system.cpu.utilization{}": 0.07, "system.cpu.core.utilization{core=1}": 0.09},
    ),
    ("fortinet-fortianalyzer", _rows(f"{E}12356.103.2.1.", _1_0=7, _2_0=40, _3_0=80), {"system.memory.usage{}": 40960}),
    ("fortinet-fortiauthenticator", _rows(f"{E}12356.113.1.", _4_0=7, _5_0=40), {"system.cpu.utilization{}": 0.07}),
    ("fortinet-fortisandbox", _rows(f"{E}12356.118.3.1.", _2_0=7, _3_0=40), {"system.memory.utilization{}": 0.4}),
    (
        "checkpoint-gaia",
        _rows(f"{E}2620.1.6.7.", _2_4_0=31, _5_1_5_1_0=12, _4_3_0=8 * 2**30, _4_4_0=2**30),
        {"system.cpu.utilization{}": 0.31, "system.cpu.core.utilization{core=1}": 0.12, "system.memory.usage{}": 2**30},
    ),
    (
        "checkpoint-splat",
        {f"{E}2620.1.1.25.3.0": 5, f"{E}2620.1.1.25.10.0": 0, f"{E}2620.1.1.25.26.0": 3},
        {"system.sessions{table=connections}": 5, "system.forwarding.dropped{place=firewall,reason=fully utilized}": 3},
    ),
    (
        "f5-bigip",
        {
            f"{TMM}8.2.3.1.37.3.48.46.48": 66,
            f"{TMM}1.2.20.21.0": 44,
            f"{TMM}7.5.2.1.19.1.48.0": 12,
            f"{TMM}7.5.2.1.1.1.48.0": b"0",
            f"{TMM}1.2.1.46.0": 9,
        },
        {
            "system.cpu.module.utilization{module=TMM 0.0}": 0.66,
            "system.cpu.utilization{}": 0.44,
            "system.cpu.core.utilization{core=0 0}": 0.12,
            "system.forwarding.dropped{place=system,reason=dropped}": 9,
        },
    ),
    (
        "nokia-timos",
        {f"{E}6527.3.1.2.1.1.1.0": 6, f"{E}6527.3.1.2.1.1.12.1.3.1": 1250},
        {"system.cpu.utilization{}": 0.06, "system.cpu.module.utilization{module=busiest core}": 0.125},
    ),
    (
        "nokia-timos",
        {
            f"{E}6527.3.1.2.4.3.8.1.3.10.35684352.100.1": 3,
            f"{E}6527.3.1.2.4.3.8.1.5.10.35684352.100.1": 4,
            f"{NAME}.35684352": b"1/1/1",
        },
        {
            "queue.dropped{queue=service 10 1/1/1:100 out 1 in profile}": 3,
            "queue.dropped{queue=service 10 1/1/1:100 out 1 out of profile}": 4,
        },
    ),
    ("nokia-srlinux", {"1.3.6.1.2.1.25.3.3.1.2.1": 8}, {"system.cpu.utilization{}": 0.08}),
    (
        "huawei-vrp",
        {
            f"{E}2011.6.3.4.1.2.0.1.0": 9,
            f"{E}2011.6.3.4.1.4.0.1.0": 7,
            f"{E}2011.6.3.5.1.1.2.0.1.0": 1000,
            f"{E}2011.6.3.5.1.1.3.0.1.0": 400,
        },
        {
            "system.cpu.utilization{}": 0.09,
            "system.memory.pool.usage{pool=memory 0.1.0}": 600,
            "system.cpu.module.average{module=CPU 0.1.0,window=5m}": 0.07,
        },
    ),
    (
        "hpe-comware",
        _rows(f"{E}11.2.14.11.15.2.6.1.1.1.1.", _6_8=15, _8_8=47, _10_8=2**29),
        {
            "system.cpu.utilization{}": 0.15,
            "system.memory.pool.utilization{pool=8 8}": 0.47,
            "system.memory.pool.limit{pool=8 8}": 2**29,
        },
    ),
    (
        "hpe-procurve",
        _rows(f"{E}11.2.14.11.5.1.116.1.3.1.", _19_1=32, _20_1=400, _21_1=300),
        {"system.cpu.module.utilization{module=member 1}": 0.32, "system.memory.pool.usage{pool=member 1}": 100},
    ),
    (
        "aruba-aoscx",
        {f"{E}47196.4.1.1.3.11.3.1.1.7.1.3.1.1": 28500, f"{E}47196.4.1.1.3.11.3.1.1.5.1.3.1.1": b"1/1-PHY"},
        {"system.temperature{sensor=1/1-PHY}": 28.5},
    ),
    (
        "ruckus-icx",
        {
            f"{E}1991.1.1.2.11.1.1.6.1.1.1": 1234,
            f"{E}1991.1.1.2.11.1.1.5.1.1.1": 12,
            f"{E}1991.1.1.2.11.1.1.6.1.1.300": 400,
            f"{E}1991.1.1.1.1.18.0": 81,
        },
        {
            "system.cpu.module.utilization{module=slot 1 CPU 1}": 0.1234,
            "system.temperature{sensor=chassis}": 40.5,
            "system.cpu.module.average{module=slot 1 CPU 1,window=5m}": 0.04,
        },
    ),
    (
        "ruckus-icx",
        {f"{E}1991.1.1.2.11.1.1.4.1.1.1": 12, f"{E}1991.1.1.2.1.53.0": 30, f"{E}1991.1.1.2.1.54.0": 2**28},
        {"system.cpu.module.utilization{module=slot 1 CPU 1}": 0.12, "system.memory.utilization{}": 0.3},
    ),
    ("brocade-fos", _rows(f"{E}1588.2.1.1.1.26.", _1_0=5, _6_0=33), {"system.memory.utilization{}": 0.33}),
    (
        "extreme-xos",
        _rows(XOS, _1_2_0=b"54", _1_4_1_5_1=b"6.2", _2_2_1_2_1=b"1000", _2_2_1_3_1=b"400"),
        {
            "system.cpu.utilization{}": 0.54,
            "system.cpu.module.utilization{module=slot 1}": 0.062,
            "system.memory.pool.usage{pool=slot 1}": 600 * 1024,
        },
    ),
    (
        "extreme-voss",
        _rows(f"{E}2272.1.85.10.1.1.", _2_1=18, _3_1=15, _6_1=600, _7_1=400),
        {"system.cpu.utilization{}": 0.18, "system.memory.pool.limit{pool=slot 1}": 1000 * 1024},
    ),
    (
        "avaya-ers",
        _rows(f"{E}45.1.6.3.8.1.1.", _5_3_10_0=22, _11_3_10_0=31, _12_3_10_0=128, _13_3_10_0=65),
        {"system.cpu.utilization{}": 0.31, "system.memory.pool.usage{pool=unit 3.10.0}": 63 * 2**20},
    ),
    (
        "a10-acos",
        _rows(f"{E}22610.2.4.1.3.", _3_0=21, _4_0=3, _2_1_3_0=40, _2_1_3_1=2),
        {
            "system.cpu.utilization{}": 0.21,
            "system.cpu.core.utilization{core=0}": 0.4,
            "system.cpu.module.utilization{module=control}": 0.03,
        },
    ),
)


@pytest.mark.parametrize(("name", "rows", "makes"), VALUES, ids=[f"{n}-{next(iter(m))}" for n, _, m in VALUES])
def test_values_become_samples_in_the_unit_of_the_catalogue(name: str, rows: Rows, makes: Mapping[str, float]) -> None:
    values, faults = _polled(name, rows)
    assert not faults
    assert {series: values.get(series) for series in makes} == pytest.approx(dict(makes))


def test_memory_of_eos_is_what_buffers_and_cache_leave() -> None:
    storage = "1.3.6.1.2.1.25.2.3.1."
    rows = _rows(storage, _3_1=b"RAM", _3_2=b"RAM (Buffers)", _3_3=b"RAM (Cache)", _4_1=1024, _5_1=4000, _6_1=3000)
    values, _ = _polled("arista-eos", {**rows, **_rows(storage, _6_2=200, _6_3=1800)})
    assert values["system.memory.usage{}"] == 1000 * 1024
    assert values["system.memory.cached{}"] == 1800 * 1024


def test_a_switched_off_measurement_is_no_load() -> None:
    """101 percent of a Small Business switch says that it does not measure."""
    values, _ = _polled("cisco-sb", _rows(f"{E}9.6.1.101.1.", _7_0=101, _8_0=101, _9_0=101))
    assert not any(series.startswith("system.cpu") for series in values)


def test_an_unlimited_table_has_no_limit_of_nothing() -> None:
    values, _ = _polled("checkpoint-gaia", {f"{E}2620.1.1.25.3.0": 5, f"{E}2620.1.1.25.10.0": 0})
    assert "system.sessions.limit{table=connections}" not in values
    values, _ = _polled("paloalto-panos", {f"{E}25461.2.1.2.3.3.0": 38, f"{E}25461.2.1.2.3.2.0": 0})
    assert values["system.sessions{table=sessions}"] == 38
    assert "system.sessions.limit{table=sessions}" not in values


def test_processes_of_other_vendors() -> None:
    f5 = _rows(f"{TMM}12.1.2.1.", _2_4711=b"tmm0", _8_4711=71, _35_4711=1000, _59_4711=9000)
    values, _ = _polled("f5-bigip", f5, "tmm0")
    assert values["process.cpu.utilization{process=tmm0,instance=0}"] == 0.71
    assert values["process.memory.usage{process=tmm0,instance=0}"] == 4096 * 1000
    assert values["process.memory.virtual{process=tmm0,instance=0}"] == 1024 * 9000
    bgp = "1." + ".".join(str(code) for code in b"bgp")
    xos: Rows = {f"{XOS}1.3.1.3.{bgp}": 1490, f"{XOS}1.3.1.4.{bgp}": b"Ready", f"{XOS}1.3.1.5.{bgp}": b"1.5"}
    values, _ = _polled("extreme-xos", xos, "bgp")
    assert values["process.cpu.utilization{process=bgp,instance=0}"] == 0.015


def test_a_text_that_is_no_number_is_a_fault_of_that_metric() -> None:
    values, faults = _polled(
        "extreme-xos", {f"{XOS}1.2.0": b"54", f"{XOS}2.2.1.2.1": b"much", f"{XOS}2.2.1.3.1": b"400"}
    )
    assert values["system.cpu.utilization{}"] == 0.54
    assert any(fault.startswith("system.memory.pool.") and "much" in fault for fault in faults)
