"""Poll after poll: counters, changes, what vanishes, comes and is renumbered, and devices that answer nonsense."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import IF, IFX, Device, group, interfaces, poll, profile, table

from soakwatch.sources.abc import SourceError
from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch_model.metric import fault_of

COL = "1.3.6.1.4.1.99.1"
IO = "system.network.io"
CPU = ("system.cpu.utilization", "")

SHARE = group(
    f"      scalars: {{busy: {{oid: {COL}.1.0, bits: 32}}, idle: {{oid: {COL}.2.0, bits: 32}}}}\n"
    "      metrics: [{metric: system.cpu.utilization, value: busy / (busy + idle), of: change}]"
)


def cpu(reader: ProfileReader, device: Device, second: float, busy: int, idle: int) -> float | None:
    device.values |= {f"{COL}.1.0": busy, f"{COL}.2.0": idle}
    return table(poll(reader, second)).get(CPU)


def test_a_change_needs_two_polls_survives_a_wrap_and_not_a_restart(tmp_path: Path) -> None:
    device = Device({f"{COL}.1.0": 2**32 - 50, f"{COL}.2.0": 1000})
    reader = ProfileReader(device, profile(tmp_path, SHARE))
    assert cpu(reader, device, 1, 2**32 - 50, 1000) is None
    assert cpu(reader, device, 2, 50, 1100) == 0.5, "the counter wrapped"
    assert cpu(reader, device, 3, 50, 1100) is None, "the device has not renewed its values: no share, and no 0"
    assert cpu(reader, device, 4, 80, 1170) == 0.3
    assert cpu(reader, device, 5, 5, 7) is None, "both counters began anew"
    assert cpu(reader, device, 6, 5 + 9, 7 + 1) == 0.9
    reader.restarted()
    assert cpu(reader, device, 40, 1000, 1000) is None, "what was before the restart counts no more"


def test_seconds_are_those_between_two_readings_of_the_value(tmp_path: Path) -> None:
    text = group(
        f"      every: 10s\n      scalars: {{ticks: {COL}.1.0}}\n"
        "      metrics: [{metric: system.cpu.utilization, value: ticks / 100 / seconds, of: change}]"
    )
    device = Device({f"{COL}.1.0": 1000})
    reader = ProfileReader(device, profile(tmp_path, text))
    values = []
    for second in range(31):
        device.values[f"{COL}.1.0"] = 1000 + 25 * second
        values.append(table(poll(reader, second)).get(CPU))
    assert [index for index, value in enumerate(values) if value is not None] == [10, 20, 30]
    assert set(values) == {None, 0.25}


def test_a_fold_with_a_row_missing_is_a_fault_and_not_a_smaller_sum(tmp_path: Path) -> None:
    text = group(
        f"      columns: {{load: {{oid: {COL}.1, invalid: [255]}}}}\n"
        "      metrics: [{metric: system.cpu.utilization, value: load, scale: 0.01, over: mean}]"
    )
    device = Device({f"{COL}.1.1": 10, f"{COL}.1.2": 30})
    reader = ProfileReader(device, profile(tmp_path, text))
    assert table(poll(reader, 1)) == {CPU: 0.2}
    device.values[f"{COL}.1.2"] = 255
    reading = poll(reader, 2)
    assert reading.samples == ()
    assert [fault.text for fault in reading.faults] == [f"a row of 2 has no value ({COL}.1.2)"]
    assert poll(reader, 3).faults == (), "a fault is told when it begins"
    device.values[f"{COL}.1.2"] = 50
    assert table(poll(reader, 4)) == {CPU: 0.3}
    device.values[f"{COL}.1.2"] = 255
    assert poll(reader, 5).faults, "and again when it comes back"


def test_a_mean_of_changes_and_a_counter_that_never_moved(tmp_path: Path) -> None:
    text = group(
        f"      columns: {{busy: {COL}.1, idle: {COL}.2, dead: {COL}.3, load: {COL}.4}}\n      metrics:\n"
        "        - {metric: system.cpu.utilization, value: 1 - dead / (dead + dead), of: change, over: mean}\n"
        "        - {metric: system.cpu.utilization, value: busy / (busy + idle), of: change, over: mean}\n"
        "        - {metric: system.cpu.utilization, value: load, scale: 0.01, over: mean}"
    )
    values: dict[str, Value] = {f"{COL}.{column}.{row}": column % 3 * 10 for column in (1, 2, 3, 4) for row in (1, 2)}
    device = Device(values)
    reader = ProfileReader(device, profile(tmp_path, text))
    assert table(poll(reader, 1)) == {}, "a change takes two polls"
    for row, grown in ((1, (30, 70)), (2, (50, 50))):
        device.values |= {f"{COL}.1.{row}": 10 + grown[0], f"{COL}.2.{row}": 20 + grown[1]}
    assert table(poll(reader, 2)) == {CPU: 0.4}


def test_what_does_not_parse_is_a_fault_of_that_metric(tmp_path: Path) -> None:
    text = group(
        f"      scalars: {{temp: {COL}.1.0, state: {COL}.2.0, load: {COL}.3.0, count: {COL}.4.0}}\n      metrics:\n"
        "        - {metric: system.temperature, value: temp, match: '([-0-9.]+) ?C', labels: {sensor: inlet}}\n"
        "        - {metric: system.network.up, value: state, values: {1: 1, 2: 0, up: 1}, labels: {interface: ha}}\n"
        "        - {metric: system.cpu.utilization, value: load, scale: 0.01}\n"
        "        - {metric: system.processes, value: count}"
    )
    device = Device({f"{COL}.1.0": b"45.5 C", f"{COL}.2.0": b"up", f"{COL}.3.0": b"7", f"{COL}.4.0": 5})
    reader = ProfileReader(device, profile(tmp_path, text))
    assert sorted(table(poll(reader, 1)).values()) == [0.07, 1, 5, 45.5]
    device.values = {f"{COL}.1.0": b"N/A", f"{COL}.2.0": 9, f"{COL}.3.0": 180, f"{COL}.4.0": b"\xff\xfe five"}
    reading = poll(reader, 2)
    assert reading.samples == ()
    assert [fault.text for fault in reading.faults] == [
        f"temp ({COL}.1.0): 'N/A' does not hold a number where one is expected",
        f"state ({COL}.2.0): the profile does not say what '9' means",
        "system.cpu.utilization cannot be 1.8: the catalogue allows 0.0 to 1.0",
        f"count ({COL}.4.0): '\ufffd\ufffd five' is not a number",
    ]


def test_an_index_that_is_reused_does_not_move_a_series() -> None:
    device = Device(interfaces({1: "a", 2: "b", 3: "c"}))
    reader = ProfileReader(device, load_profiles()["generic"])
    before = table(poll(reader, 1))
    assert before[IO, "interface=c,direction=receive"] == 3000
    device.values = interfaces({11: "c", 12: "b", 14: "d"})  # after a card was changed
    reading = poll(reader, 100)
    readings = table(reading)
    assert readings[IO, "interface=c,direction=receive"] == 11_000
    assert readings[IO, "interface=d,direction=receive"] == 14_000
    assert not any("interface=a" in name for _, name in readings)
    assert "the device does not have it any more" in {fault.text for fault in reading.faults if "=a" in fault.object}


def test_rows_that_swap_their_names_are_noticed_by_what_the_device_says_of_its_table() -> None:
    device = Device(interfaces({1: "a", 2: "b"}) | {"1.3.6.1.2.1.31.1.5.0": 100})
    reader = ProfileReader(device, load_profiles()["generic"])
    poll(reader, 1)
    device.values = interfaces({2: "a", 1: "b"}) | {"1.3.6.1.2.1.31.1.5.0": 200}
    assert table(poll(reader, 100))[IO, "interface=a,direction=receive"] == 2000


def test_a_restart_finds_rows_again_before_anything_is_reported() -> None:
    device = Device(interfaces({1: "a", 2: "b"}))
    reader = ProfileReader(device, load_profiles()["generic"])
    poll(reader, 1)
    device.values = interfaces({2: "a", 1: "b"})
    reader.restarted()
    assert table(poll(reader, 2))[IO, "interface=a,direction=receive"] == 2000


def test_names_are_read_again_in_the_end_even_if_nothing_says_so() -> None:
    device = Device(interfaces({1: "a", 2: "b"}))
    reader = ProfileReader(device, load_profiles()["generic"])
    poll(reader, 1)
    device.values = interfaces({2: "a", 1: "b"})
    assert table(poll(reader, 700))[IO, "interface=a,direction=receive"] == 2000


@pytest.mark.slow
def test_a_table_whose_rows_come_and_go_is_not_walked_at_every_poll() -> None:
    device = Device(interfaces({index: f"e{index}" for index in range(1, 30)}))
    reader = ProfileReader(device, load_profiles()["generic"])
    poll(reader, 0)
    names = 0
    tables = [interfaces({index: f"e{index}" for index in range(1, 30 + odd)}) for odd in (0, 1)]
    for second in range(1, 601):
        device.walks.clear()
        device.values = tables[second % 2]
        poll(reader, second)
        names += sum(f"{IFX}.1" in columns for columns in device.walks)
    assert 2 <= names <= 10


def test_a_counter_of_64_bits_keeps_every_digit() -> None:
    device = Device(interfaces({1: "a"}) | {f"{IFX}.6.1": 2**64 - 1})
    value = table(poll(ProfileReader(device, load_profiles()["generic"]), 1))[IO, "interface=a,direction=receive"]
    assert isinstance(value, int)
    assert value == 18446744073709551615


def test_a_failed_poll_is_forgotten(tmp_path: Path) -> None:
    class Failing(Device):
        async def get(self, oids: object) -> dict[str, Value]:
            raise SourceError("no answer")

    device = Device({f"{COL}.1.0": 10, f"{COL}.2.0": 10})
    reader = ProfileReader(device, profile(tmp_path, SHARE))
    cpu(reader, device, 1, 10, 10)
    reader._asker = Failing({})
    with pytest.raises(SourceError):
        poll(reader, 2)
    reader._asker = device
    assert cpu(reader, device, 3, 30, 30) == 0.5


ODD: list[Value] = [-1, 2**63, 2**64 - 1, 2**70, 0, 5, 1.5, float("nan"), float("inf")]
ODD += [b"", b"\x00", b"\xff" * 40, b"12", b"x" * 70000, b"45 C", b"\x9f\x78\x04\x7f\xc0\x00\x00", b"a\nb\x1b[2J"]
ODD += ["1.3.6.1", "10.0.0.1"]


@pytest.mark.parametrize(
    ("name", "devices"),
    [("generic", 3), ("linux", 4), *(pytest.param(name, 25, marks=pytest.mark.slow) for name in ("generic", "linux"))],
)
def test_any_values_make_samples_of_the_catalogue_or_faults_in_one_sentence(name: str, devices: int) -> None:
    chance = random.Random(4)
    shipped = load_profiles()[name]
    bases = [oid for group in shipped.groups for column in group.columns for oid in column.oids]
    whole = [oid for group in shipped.groups for scalar in group.scalars for oid in scalar.oids]
    for _ in range(devices):
        device = Device({})
        reader = ProfileReader(device, shipped)
        for second in range(0, 120, 40):
            for oid in (*whole, *(f"{base}.{chance.choice((0, 1, 2, 77777, '1.2'))}" for base in bases)):
                if chance.random() < 0.7:
                    device.values[oid] = chance.choice(ODD)
                else:
                    device.values.pop(oid, None)
            reading = poll(reader, second)
            table(reading)
            for sample in reading.samples:
                assert fault_of(sample.metric, sample.value) is None
                assert len(sample.object) < 400
                assert sample.object.isprintable() or "\ufffd" in sample.object
            for fault in reading.faults:
                assert len(fault.text) < 400
                assert "\n" not in fault.text


def test_interface_counters_that_stand_still_are_samples_all_the_same() -> None:
    device = Device(interfaces({1: "a"}))
    reader = ProfileReader(device, load_profiles()["generic"])
    assert table(poll(reader, 1)) == table(poll(reader, 2))
    assert f"{IF}.13.1" in device.values
