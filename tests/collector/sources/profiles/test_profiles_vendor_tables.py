"""Devices whose standard tables mislead or whose objects are unlike their MIB, as small walks made by hand."""

from __future__ import annotations

import pytest
from tests.collector.sources.profiles.kit import IF, IFX, Device, interfaces, poll, table

from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader

E = "1.3.6.1.4.1"
HR = "1.3.6.1.2.1.25.2.3.1"
NAMES = "1.3.6.1.2.1.47.1.1.1.1.7"
CPM = f"{E}.9.9.109.1.1.1.1"
CIENA = f"{E}.1271.2.3.1.2.3.1.6.1"
HORIZON = f"{E}.7262.2.4.4.1"
PROFILES = load_profiles()


def samples(name: str, rows: dict[str, Value], second: float | None = None) -> dict[str, float]:
    """What comes of a device, by metric and object; with a second poll, of that one."""
    reader = ProfileReader(Device(rows), PROFILES[name])
    reading = poll(reader, 0)
    if second is not None:
        reading = poll(reader, second)
    assert not reading.faults, reading.faults
    return {f"{metric}{{{label}}}": value for (metric, label), value in table(reading).items()}


def scalars(branch: str, **values: int) -> dict[str, Value]:
    """Scalars below a branch; ``a_1_2`` is .1.2.0."""
    return {f"{E}.{branch}.{name[2:].replace('_', '.')}.0": value for name, value in values.items()}


def storage(index: int, name: bytes, unit: int, size: int, used: int) -> dict[str, Value]:
    values: dict[int, Value] = {2: "1.3.6.1.2.1.25.2.1.2", 3: name, 4: unit, 5: size, 6: used}
    return {f"{HR}.{column}.{index}": value for column, value in values.items()}


TABLE: list[tuple[str, str, dict[str, Value], dict[str, float]]] = [
    (
        "OneAccess tells its memory in percent, and its load for each core",
        "oneaccess",
        {
            f"{E}.13191.10.3.3.1.1.3.0": 436_207_616,
            f"{E}.13191.10.3.3.1.1.4.0": 42,
            f"{E}.13191.10.3.3.1.2.3.1.3.1": 10,
            f"{E}.13191.10.3.3.1.2.3.1.3.2": 30,
        },
        {
            "system.memory.utilization{}": 0.42,
            "system.memory.limit{}": 436_207_616,
            "system.cpu.utilization{}": 0.2,
            "system.cpu.core.utilization{core=2}": 0.3,
        },
    ),
    (
        "IOS-XE has the memory of the box beside the pools of IOSd",
        "cisco-iosxe",
        {
            f"{E}.9.9.48.1.1.1.2.1": b"Processor",
            f"{E}.9.9.48.1.1.1.5.1": 250_000_000,
            f"{E}.9.9.48.1.1.1.6.1": 150_000_000,
            f"{CPM}.2.1": 7000,
            f"{NAMES}.7000": b"R0",
            f"{CPM}.12.1": 6_700_000,
            f"{CPM}.13.1": 1_400_000,
        },
        {
            "system.memory.pool.usage{pool=Processor}": 250_000_000,
            "system.memory.pool.usage{pool=R0 system memory}": 6_700_000 * 1024,
            "system.memory.pool.limit{pool=R0 system memory}": 8_100_000 * 1024,
        },
    ),
    (
        "IOS-XE whose 64-bit memory is 0 beside the 32-bit one",
        "cisco-iosxe",
        {f"{CPM}.17.1": 0, f"{CPM}.19.1": 0, f"{CPM}.12.1": 1_500_000, f"{CPM}.13.1": 2_350_000},
        {"system.memory.pool.usage{pool=1 system memory}": 1_536_000_000},
    ),
    (
        "Dell OS9 has its 5 s load in column 1",
        "dell-os9",
        {
            f"{E}.6027.3.26.1.4.4.1.1.2.1.1": 7,
            f"{E}.6027.3.26.1.4.4.1.4.2.1.1": 9,
            f"{E}.6027.3.26.1.4.4.1.5.2.1.1": 8,
        },
        {"system.cpu.utilization{}": 0.07, "system.cpu.module.average{module=unit 2.1.1,window=1m}": 0.09},
    ),
    (
        "Edgecore tells the free memory where it does not tell the used one",
        "edgecore-ecs",
        {f"{E}.259.10.1.45.1.39.3.1.0": 900, f"{E}.259.10.1.45.1.39.3.3.0": 300},
        {"system.memory.usage{}": 600, "system.memory.limit{}": 900},
    ),
    (
        "net-snmp on FreeBSD has another unit for buffers than for memory",
        "freebsd",
        {
            **storage(1, b"Physical memory", 4096, 1_000_000, 967_000),
            **storage(6, b"Memory buffers", 1024, 4_000_000, 1_600_000),
            **storage(7, b"Cached memory", 4096, 427_000, 427_000),
        },
        {
            "system.memory.usage{}": (967_000 - 427_000) * 4096 - 1_600_000 * 1024,
            "system.memory.limit{}": 4_096_000_000,
        },
    ),
    (
        "FreeBSD with a cache below 0: the gross use, and no more than there is",
        "freebsd",
        {
            **storage(1, b"Physical memory", 4096, 2_050_216, 1_698_738),
            **storage(2, b"Real memory", 4096, 829_696, 678_798),
            **storage(6, b"Memory buffers", 1024, 115_200, -4_012_904),
            **storage(7, b"Cached memory", 4096, 146_129, -146_249),
        },
        {"system.memory.usage{}": 1_698_738 * 4096, "system.memory.limit{}": 2_050_216 * 4096},
    ),
    (
        "LCOS LX keeps memory and load under its own number",
        "lancom-lcos",
        scalars("2356.13.1.47", a_4=253_000, a_5=100_000, a_14=12),
        {"system.memory.usage{}": 153_000 * 1024, "system.cpu.utilization{}": 0.12},
    ),
    (
        "older ZoneDirectors have load and memory beside the licences",
        "ruckus-wireless",
        scalars("25053.1.2.1.1.1.5", a_58=14, a_59=61),
        {"system.cpu.utilization{}": 0.14, "system.memory.utilization{}": 0.61},
    ),
    (
        "Eltex MES tells memory in bytes",
        "eltex-mes",
        {f"{E}.35265.41.1.2.1.1.3.0": 536_870_912, f"{E}.35265.41.1.2.1.1.7.0": 200_000_000},
        {"system.memory.pool.usage{pool=memory 0}": 336_870_912},
    ),
    (
        "FS S3900 is built as Edgecore's",
        "fs-switch",
        scalars("52642.2.1.45.1.39", a_2_1=23, a_3_1=500, a_3_2=200, a_3_3=300),
        {"system.cpu.utilization{}": 0.23, "system.memory.usage{}": 204_800},
    ),
    (
        "FS S3900-R is built as BDCOM's",
        "fs-switch",
        {f"{E}.52642.3.6.10.1.11.0": 16, f"{E}.52642.3.6.10.1.12.0": 48, f"{E}.52642.3.6.10.1.13.0": 41},
        {
            "system.cpu.utilization{}": 0.16,
            "system.memory.pool.utilization{pool=card 0}": 0.48,
            "system.temperature{sensor=card 0}": 41,
        },
    ),
    (
        "FS on Centec without an idle share",
        "fs-switch",
        {f"{E}.52642.1.1.9.2.0": 5},
        {"system.cpu.utilization{}": 0.05},
    ),
    (
        "GBN tells the idle share, and megabytes",
        "dcn",
        scalars("13464.1.2.1.1.2", a_11=95, a_12=128, a_13=51),
        {"system.cpu.utilization{}": 0.05, "system.memory.usage{}": 77 * 1048576},
    ),
    (
        "a Zyxel IES has processors on each card",
        "zyxel-switch",
        {f"{E}.890.1.5.13.13.5.9.1.3.{cpu}": load for cpu, load in (("1.1", 20), ("1.2", 40), ("3.0", 0))},
        {"system.cpu.module.utilization{module=cpu 1.2}": 0.4, "system.cpu.utilization{}": 0.4},
    ),
    (
        "FortiAuthenticator says its memory once: without the page cache where it can",
        "fortinet-fortiauthenticator",
        {
            f"{E}.12356.113.1.4.0": 5,
            f"{E}.12356.113.1.5.0": 61,
            f"{E}.2021.4.5.0": 1000,
            f"{E}.2021.4.6.0": 390,
            f"{E}.2021.4.14.0": 34,
            f"{E}.2021.4.15.0": 200,
        },
        {"system.memory.usage{}": 376 * 1024, "system.memory.limit{}": 1000 * 1024},
    ),
]


@pytest.mark.parametrize(("name", "rows", "makes"), [each[1:] for each in TABLE], ids=[each[0] for each in TABLE])
def test_what_comes_of_a_device(name: str, rows: dict[str, Value], makes: dict[str, float]) -> None:
    values = samples(name, rows)
    assert {series: values.get(series) for series in makes} == pytest.approx(makes)
    if name == "fortinet-fortiauthenticator":
        assert "system.memory.utilization{}" not in values


def test_ciena_takes_traffic_from_its_own_table_where_if_mib_stands_at_0() -> None:
    rows = interfaces({100001: "1/1", 100002: "1/2"})
    rows |= {f"{IFX}.{column}.{100000 + port}": 0 for column in (6, 10) for port in (1, 2)}
    for port in (1, 2):
        rows |= {f"{CIENA}.3.{1000000 + port}": port * 10**14, f"{CIENA}.18.{1000000 + port}": port}
    rows |= {f"{CIENA}.3.61.1000001": 5, f"{CIENA}.34.1000002": 17}  # the first is no port
    values = samples("ciena-saos", rows)
    assert values["system.network.io{interface=1/2,direction=receive}"] == 2 * 10**14
    assert values["system.network.io{interface=1/1,direction=transmit}"] == 1
    assert values["system.network.packet.dropped{interface=1/2,direction=receive}"] == 17
    assert values["system.network.up{interface=1/1}"] == 1, "the rest stays that of IF-MIB"
    assert sum("direction=receive" in series and ".io" in series for series in values) == 2


def test_airfiber_is_up_while_its_data_port_moves_octets() -> None:
    port = f"{E}.41112.1.3.3.1"
    rows: dict[str, Value] = {f"{IF}.2.3": b"eth0", f"{IF}.8.3": 2, f"{IF}.10.3": 0, f"{IF}.16.3": 0}
    device = Device(rows | {f"{port}.6.1": 900, f"{port}.7.1": 23_669_076})
    reader = ProfileReader(device, PROFILES["ubiquiti-airos"])
    first = table(poll(reader, 0))
    assert first["system.network.io", "interface=eth0,direction=receive"] == 23_669_076
    assert ("system.network.up", "interface=eth0") not in first, "the down of IF-MIB is not believed"
    device.values[f"{port}.7.1"] = 23_700_000
    assert table(poll(reader, 10))["system.network.up", "interface=eth0"] == 1
    idle = poll(reader, 20)
    assert ("system.network.up", "interface=eth0") not in table(idle), "an idle port is neither up nor down"
    assert not idle.faults
    device.values[f"{port}.7.1"] = 23_700_100
    assert table(poll(reader, 30))["system.network.up", "interface=eth0"] == 1


def test_airfiber_that_never_moved_an_octet_is_not_down() -> None:
    port = f"{E}.41112.1.3.3.1"
    rows: dict[str, Value] = {f"{IF}.2.3": b"eth0", f"{IF}.8.3": 2, f"{IF}.10.3": 0, f"{IF}.16.3": 0}
    device = Device(rows | {f"{port}.6.1": 0, f"{port}.7.1": 0})
    reader = ProfileReader(device, PROFILES["ubiquiti-airos"])
    for second in (0, 10, 700):
        assert ("system.network.up", "interface=eth0") not in table(poll(reader, second))


@pytest.mark.parametrize("connected", [0, 1])
def test_airfiber_ltu_tells_its_port(connected: int) -> None:
    rows: dict[str, Value] = {f"{IF}.2.3": b"eth0", f"{IF}.8.3": 2, f"{IF}.10.3": 0}
    rows |= scalars("41112.1.10.1", a_6_1=11, a_6_3=22, a_6_5=connected, a_3_5=40, a_3_6=7)
    values = samples("ubiquiti-airos", rows)
    assert values["system.network.up{interface=eth0}"] == connected
    assert values["system.network.io{interface=eth0,direction=receive}"] == 22
    assert (values["system.cpu.utilization{}"], values["system.memory.utilization{}"]) == (0.07, 0.4)


def test_dragonwave_takes_links_and_traffic_from_its_own_table() -> None:
    """Descriptions are the same for several ports; the rows of both tables must get the same names."""
    descriptions = {7: b"DragonWave Inc., Quantum, Ethernet3", 8: b"DragonWave Inc., Quantum, Ethernet3"}
    rows: dict[str, Value] = {f"{IF}.2.{port}": text for port, text in descriptions.items()}
    for port, link in ((7, 1), (8, 2)):
        rows |= {f"{IF}.8.{port}": 2, f"{IF}.10.{port}": 0, f"{HORIZON}.2.1.2.{port}": link}
        rows |= {f"{HORIZON}.3.1.2.{port}": 2_956_636_610_322 * (port == 8), f"{HORIZON}.3.1.8.{port}": 0}
    values = samples("dragonwave-horizon", rows)
    up = {series: value for series, value in values.items() if ".network.up" in series}
    assert sorted(up.values()) == [0, 1], up
    (name,) = [series for series, value in up.items() if value == 1]
    assert name.endswith("#8}")
    assert values[f"{name.replace('.up', '.io')[:-1]},direction=receive}}"] == 2_956_636_610_322


def test_packetlogic_tells_the_ports_of_its_channels() -> None:
    info, device = f"{E}.15397.2.2.17.1", f"{E}.15397.2.2.25.1"
    rows: dict[str, Value] = {f"{info}.6.1": b"Channel 1", f"{info}.5.1": 1, f"{device}.3.1.1": 5, f"{device}.3.2.1": 6}
    values = samples("procera-packetlogic", rows)
    assert values["system.network.up{interface=Channel 1 External}"] == 1
    assert values["system.network.io{interface=Channel 1 Internal,direction=receive}"] == 5
    assert values["system.network.io{interface=Channel 1 External,direction=receive}"] == 6


def test_what_net_snmp_calls_the_size_of_shared_and_cached_memory_is_no_limit() -> None:
    """It is what is used at that moment: 17 times as much a poll later were 1,600 % over the limit."""
    rows = {
        **storage(1, b"Physical memory", 4096, 1_000_000, 700_000),
        **storage(6, b"Memory buffers", 4096, 1_000_000, 50_000),
        **storage(7, b"Cached memory", 4096, 427_000, 427_000),
        **storage(8, b"Shared memory", 4096, 1_000, 1_000),
    }
    values = samples("generic", rows)
    limits = {series for series in values if series.startswith("system.memory.cache.limit")}
    assert limits == {f"system.memory.cache.limit{{pool={pool}}}" for pool in ("Physical memory", "Memory buffers")}
    assert values["system.memory.cache.usage{pool=Shared memory}"] == 1_000 * 4096
