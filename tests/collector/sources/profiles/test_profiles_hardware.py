"""Fans, power supplies, optics and power as SNMP agents tell them, with the limits of each sensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import Device, poll, profile, table

from soakwatch.sources.profiles import load_profiles
from soakwatch.sources.profiles.expression import dbm
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch.sources.profiles.value import Value

E, ENT, SENSOR = "1.3.6.1.4.1.", "1.3.6.1.2.1.47.1.1.1.1", "1.3.6.1.2.1.99.1.1.1"
CISCO, LEVELS = f"{E}9.9.91.1.1.1.1", f"{E}9.9.91.1.2.1.1"


def _rows(base: str, index: object, **columns: Value) -> dict[str, Value]:
    """A row of a table, its columns by number."""
    return {f"{base}.{name[1:]}.{index}": value for name, value in columns.items()}


def _read(name: str, values: dict[str, Value]) -> dict[str, float]:
    """One poll with a shipped profile: what concerns hardware, by metric and object."""
    reading = poll(ProfileReader(Device(values), load_profiles()[name]), 1)
    hardware = ("hardware.", "system.temperature", "system.power", "system.energy")
    samples = {key: value for key, value in table(reading).items() if key[0].startswith(hardware)}
    return {f"{metric} {labels.partition('=')[2]}": round(value, 3) for (metric, labels), value in samples.items()}


def _cisco(index: int, name: str, kind: int, value: int, *levels: tuple[int, int, int]) -> dict[str, Value]:
    """A sensor of CISCO-ENTITY-SENSOR-MIB in whole units, with thresholds (severity, relation, value)."""
    rows = _rows(CISCO, index, c1=kind, c2=9, c3=0, c4=value) | {f"{ENT}.7.{index}": name.encode()}
    for number, (severity, relation, level) in enumerate(levels, 1):
        rows |= _rows(LEVELS, f"{index}.{number}", c2=severity, c3=relation, c4=level)
    return rows | {f"{ENT}.2.{index}": name.encode()}


def test_cisco_sensors_have_the_thresholds_of_their_own_row() -> None:
    """The gravest severity is the limit, minor the warning; of two sensors of one name only the second has limits."""
    read = _read(
        "cisco-nxos",
        _cisco(1, "inlet", 8, 31)
        | _cisco(2, "inlet", 8, 35, (10, 4, 42), (20, 4, 70), (30, 4, 75), (1, 4, 105), (30, 2, -10))
        | _cisco(3, "Eth1/1 Receive Power Sensor", 14, -7, (10, 3, 0), (20, 1, -14))
        | _cisco(4, "PSU 1 Input Power", 6, 108, (20, 4, 0))
        | _cisco(5, "fan 1", 10, 6300)
        | _cisco(6, "capacity PS0", 6, 750)
        | _cisco(7, "outlet", 8, -32768, (30, 4, 75)),
    )
    assert read == {
        "system.temperature inlet": 31,
        "system.temperature inlet #2": 35,
        "system.temperature.limit.high inlet #2": 75,
        "system.temperature.limit.low inlet #2": -10,
        "system.temperature.warning.high inlet #2": 42,
        "system.temperature.limit.high outlet": 75,
        "hardware.optic.rx_power Eth1/1 Receive Power Sensor": -7,
        "hardware.optic.rx_power.limit.low Eth1/1 Receive Power Sensor": -14,
        "hardware.optic.rx_power.warning.high Eth1/1 Receive Power Sensor": 0,
        "system.power PSU 1 Input Power": 108,
        "hardware.fan.speed fan 1": 6300,
    }


@pytest.mark.parametrize(("name", "answer"), [("cisco-nxos", 0), ("cisco-nxos", -32768), ("cisco-ios", -1000000000)])
def test_an_optic_that_goes_dark_reads_no_light_and_one_that_is_not_answered_is_missing(name: str, answer: int) -> None:
    """It says 0 or the end of its range where it had said -7 dBm: no light, also after the next survey (600 s)."""
    optic = "Ethernet1/1 Receive Power Sensor"
    values = _cisco(1, optic, 14, -7, (20, 1, -14)) | _cisco(2, "Ethernet1/2 Receive Power Sensor", 14, answer)
    device = Device(values)
    reader = ProfileReader(device, load_profiles()[name])
    key = ("hardware.optic.rx_power", f"optic={optic}")
    seen = []
    for second, value in ((0, -7), (60, answer), (700, answer), (800, None), (900, -6)):
        if value is None:
            del values[f"{CISCO}.4.1"]
        else:
            values[f"{CISCO}.4.1"] = value
        read = table(poll(reader, second))
        seen.append(read.get(key))
        assert ("hardware.optic.rx_power", "optic=Ethernet1/2 Receive Power Sensor") not in read, "it never had light"
    assert seen == [-7, -40, -40, None, -6]


def test_a_zero_beside_zero_is_no_darkness() -> None:
    """Light of 0.4 dBm that is read as 0 in whole units next: nobody can tell, so it is missing."""
    values = _cisco(1, "Ethernet1/1 Receive Power Sensor", 14, -1)
    reader = ProfileReader(Device(values), load_profiles()["cisco-nxos"])
    values |= {f"{CISCO}.3.1": 1, f"{CISCO}.4.1": 4}
    assert table(poll(reader, 0))["hardware.optic.rx_power", "optic=Ethernet1/1 Receive Power Sensor"] == 0.4
    values[f"{CISCO}.4.1"] = 0
    assert not [key for key in table(poll(reader, 60)) if key[0] == "hardware.optic.rx_power"]


def test_cisco_fans_and_supplies_say_whether_they_work() -> None:
    """What is not there is left out; a card that is on is no power supply."""
    fru = f"{E}9.9.117.1.1.2.1"
    read = _read(
        "cisco-ios",
        _rows(f"{E}9.9.13.1.4.1", 1, c2=b"Fan 1", c3=1)
        | _rows(f"{E}9.9.13.1.4.1", 2, c2=b"Fan 2", c3=3)
        | _rows(f"{E}9.9.13.1.5.1", 3, c2=b"PS B", c3=5)
        | _rows(fru, 10, c2=8)
        | _rows(fru, 11, c2=2)
        | {f"{ENT}.5.10": 6, f"{ENT}.7.10": b"PSU 1", f"{ENT}.5.11": 9, f"{ENT}.7.11": b"card"},
    )
    assert read == {"hardware.fan.up Fan 1": 1, "hardware.fan.up Fan 2": 0, "hardware.power_supply.up PSU 1": 0}


def test_arista_optics_in_watts_are_told_in_dbm() -> None:
    """ENTITY-SENSOR-MIB has watts: with Arista's thresholds in the same scale; under range is no light."""
    rows: dict[str, Value] = {}
    for index, value in ((1, 2500), (2, -1000000000)):
        rows |= _rows(SENSOR, index, c1=6, c2=8, c3=4, c4=value, c5=1)
        rows |= {f"{ENT}.2.{index}": f"DOM RX Power Sensor for Ethernet{index}".encode()}
    rows |= _rows(f"{E}30065.3.12.1.1.1", 1, c1=-1000000000, c2=63, c3=1000000000, c4=1000000000)
    assert _read("arista-eos", rows) == {
        "hardware.optic.rx_power DOM RX Power Sensor for Ethernet1": pytest.approx(-6.021),
        "hardware.optic.rx_power.limit.low DOM RX Power Sensor for Ethernet1": pytest.approx(-22.007),
        "hardware.optic.rx_power DOM RX Power Sensor for Ethernet2": -40,
    }
    assert dbm(-1) == -40


def test_junos_optics_and_parts() -> None:
    """DOM with alarms and warnings; a copper port, which has 0 everywhere, is no optic; a fan that is down says so."""
    dom = f"{E}2636.3.60.1.1.1.1"
    numbers = dict.fromkeys((f"c{n}" for n in range(5, 25)), 0)
    light = {"c5": -230, "c6": 5588, "c7": -188, "c8": 42, "c9": 100, "c10": -1309, "c12": -1209, "c21": 90}
    parts = f"{E}2636.3.1.13.1"
    read = _read(
        "juniper-junos",
        _rows(dom, 513, **(numbers | light))
        | _rows(dom, 520, **numbers)
        | {"1.3.6.1.2.1.31.1.1.1.1.513": b"xe-0/0/1"}
        | _rows(parts, "4.1.1.0", c5=b"Fan Tray 0", c6=6)
        | _rows(parts, "2.1.1.0", c5=b"Power Supply 0", c6=2)
        | _rows(parts, "9.1.0.0", c5=b"Routing Engine 0", c6=2),
    )
    assert read["hardware.optic.rx_power xe-0/0/1"] == -2.3
    assert read["hardware.optic.bias xe-0/0/1"] == pytest.approx(0.006, abs=0.0005)
    assert read["hardware.optic.rx_power.limit.low xe-0/0/1"] == -13.09
    assert read["system.temperature xe-0/0/1 optic"] == 42
    assert read["system.temperature.limit.high xe-0/0/1 optic"] == 90
    assert {key: value for key, value in read.items() if ".up " in key} == {
        "hardware.fan.up Fan Tray 0": 0,
        "hardware.power_supply.up Power Supply 0": 1,
    }
    assert not [key for key in read if "520" in key]


def test_huawei_optics_fans_and_supplies() -> None:
    """Hundredths of a dBm where the module states thresholds; what a supply gives is volts times amperes."""
    optic, fan, supply = (f"{E}2011.5.25.31.1.1.{table}" for table in ("3.1", "10.1", "18.1"))
    read = _read(
        "huawei-vrp",
        _rows(optic, 17, c8=-290, c9=256, c13=-1600, c14=0, c15=-150, c16=450, c20=-1500, c21=-100, c22=-100, c23=400)
        | _rows(optic, 18, c8=0, c9=0, c13=0)
        | {f"{ENT}.7.17": b"10GE0/1/0"}
        | _rows(fan, "13.1", c6=1, c7=2)
        | _rows(supply, "11.0", c5=1, c6=1, c7=1524, c8=53456)
        | _rows(supply, "12.0", c5=2, c6=2, c7=0, c8=0),
    )
    assert (read["hardware.optic.rx_power 10GE0/1/0"], read["hardware.optic.rx_power.limit.low 10GE0/1/0"]) == (
        -2.9,
        -16,
    )
    assert read["hardware.fan.up 13.1"] == 0
    assert read["hardware.power_supply.up 11.0"] == 1
    assert read["system.power supply 11.0 output"] == pytest.approx(81.467)
    assert not [key for key in read if "12.0" in key or " 18" in key]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"1.3.6.1.2.1.33.1.4.4.1.4.1": 412}, {"system.power UPS output 1": 412}),
        (
            {f"{E}318.1.1.26.4.3.1.5.1": 58, f"{E}318.1.1.26.4.3.1.9.1": 20},
            {"system.power PDU 1 total": 580, "system.energy PDU 1 total": 7_200_000},
        ),
        ({f"{E}318.1.1.12.1.16.0": 230}, {"system.power PDU total": 230}),
        (
            {f"{E}13742.6.5.2.3.1.4.1.1.5": 1234, f"{E}13742.6.5.2.3.1.4.1.1.1": 9, f"{E}13742.6.3.3.4.1.7.1.1.5": 1},
            {"system.power inlet 1": 123.4},
        ),
        ({f"{E}534.6.6.7.3.5.1.4.0.1": 640}, {"system.power inlet 0.1": 640}),
        (
            {f"{E}2021.13.16.2.1.2.1": b"Core 0", f"{E}2021.13.16.2.1.3.1": 53000, f"{E}2021.13.16.2.1.3.2": 0},
            {"system.temperature Core 0": 53},
        ),
    ],
)
def test_units_that_measure_power_and_hosts_by_the_standard_parts(
    values: dict[str, Value], expected: dict[str, float]
) -> None:
    """UPS, rack PDUs of three makers, and LM-SENSORS-MIB, in watts, joules and degrees."""
    assert _read("generic", values) == expected


def test_a_line_has_the_rows_that_hold_its_condition(tmp_path: Path) -> None:
    """Rows of two kinds in one table: each line numbers equal names among its own rows."""
    text = (
        "title: box\nsnmp:\n  groups:\n    g:\n"
        "      columns: {kind: 1.3.6.1.4.1.9.1, value: 1.3.6.1.4.1.9.2}\n      metrics:\n"
        '        - {metric: system.power, value: value, labels: {sensor: a}, where: {kind: "^6$"}}\n'
        '        - {metric: system.temperature, value: value, labels: {sensor: a}, where: {kind: "^8$"}}\n'
    )
    values: dict[str, Value] = {}
    for index, (kind, value) in enumerate(((8, 30), (6, 100), (8, 31)), 1):
        values |= {f"{E}9.1.{index}": kind, f"{E}9.2.{index}": value}
    read = table(poll(ProfileReader(Device(values), profile(tmp_path, text)), 1))
    assert {key: value for key, value in read.items() if key[0].startswith("system.")} == {
        ("system.power", "sensor=a"): 100,
        ("system.temperature", "sensor=a"): 30,
        ("system.temperature", "sensor=a #3"): 31,
    }
