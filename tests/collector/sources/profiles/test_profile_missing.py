"""What a device had and does not answer now: a fault of that metric, never a value with something else in its place."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import Device, group, poll, profile, table

from soakwatch.sources.abc import SourceContext
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_model.sample import Answer
from soakwatch_testing.snmp_cells import Cell, name_of
from soakwatch_testing.snmp_mib import system
from soakwatch_testing.snmp_responder import Responder, responder

UCD = "1.3.6.1.4.1.2021"
TOTAL, FREE, BUFFERS, CACHED = (f"{UCD}.4.{column}.0" for column in (5, 6, 14, 15))
USED = ("system.memory.usage", "")
CPU = ("system.cpu.utilization", "")
MEMORY = {TOTAL: 1000, FREE: 100, BUFFERS: 200, CACHED: 300}
COL = "1.3.6.1.4.1.99.1"
MANY_S = 90.0  # long after the last survey, so that another one is due
DEGREES = ("system.temperature", "sensor=inlet")
STORAGE = "1.3.6.1.2.1.25.2.3.1"
IN = ("system.network.io", "interface=a,direction=receive")


def kb(number: int) -> float:
    return number * 1024.0


def fault_metrics(reading_faults: object) -> list[str]:
    assert isinstance(reading_faults, tuple)
    return [fault.metric for fault in reading_faults]


@pytest.mark.parametrize("pause_s", [1.0, MANY_S], ids=["before", "with"])
def test_a_part_that_is_missing_in_one_poll_is_a_fault_and_no_0(pause_s: float) -> None:
    """Whether another survey is due at that poll or not."""
    device = Device({**MEMORY})
    reader = ProfileReader(device, load_profiles()["linux"])
    assert table(poll(reader, 0))[USED] == kb(400)
    del device.values[BUFFERS]
    reading = poll(reader, pause_s)
    assert USED not in table(reading)
    assert "system.memory.usage" in fault_metrics(reading.faults)
    device.values[BUFFERS] = 210
    assert table(poll(reader, pause_s + 1))[USED] == kb(390), "and the next poll has it again"


def test_a_part_that_stays_away_is_never_taken_for_0() -> None:
    device = Device({**MEMORY})
    reader = ProfileReader(device, load_profiles()["linux"])
    poll(reader, 0)
    del device.values[BUFFERS]
    readings = [poll(reader, 10.0 * step) for step in range(1, 200)]
    assert not any(USED in table(reading) for reading in readings)
    assert sum(fault.metric == USED[0] for reading in readings for fault in reading.faults) in {1, 2}
    device.values[BUFFERS] = 210
    usages = [table(poll(reader, 2000 + 10.0 * step)).get(USED) for step in range(70)]
    assert usages[-1] == kb(390)
    assert set(usages) <= {None, kb(390)}


def test_a_device_that_never_had_a_part_is_read_without_it() -> None:
    device = Device({oid: value for oid, value in MEMORY.items() if oid != BUFFERS})
    reader = ProfileReader(device, load_profiles()["linux"])
    assert table(poll(reader, 0))[USED] == kb(600)
    assert table(poll(reader, MANY_S))[USED] == kb(600)
    device.values[BUFFERS] = 200
    assert table(poll(reader, 800))[USED] == kb(400), "what is found later is used from then on"


def test_what_is_no_reading_at_one_poll_is_not_replaced_by_another(tmp_path: Path) -> None:
    text = group(
        f"      scalars: {{now: {{oid: {COL}.1.0, invalid: [255]}}, m1: {COL}.2.0}}\n"
        "      metrics: [{metric: system.cpu.utilization, value: 'first(now, m1)', scale: 0.01}]"
    )
    device = Device({f"{COL}.1.0": 90, f"{COL}.2.0": 10})
    reader = ProfileReader(device, profile(tmp_path, text))
    assert table(poll(reader, 0)) == {CPU: 0.9}
    assert not any(f"{COL}.2.0" in oids for oids in device.gets[1:]), "what is not needed is not asked for"
    device.values[f"{COL}.1.0"] = 255
    reading = poll(reader, 1)
    assert (table(reading), fault_metrics(reading.faults)) == ({}, [CPU[0]])
    assert table(poll(reader, MANY_S)) == {}
    device.values[f"{COL}.1.0"] = 80
    assert table(poll(reader, MANY_S + 40)) == {CPU: 0.8}


def test_a_sensor_whose_scale_is_missing_is_not_read_with_another(tmp_path: Path) -> None:
    physical, sensor = "1.3.6.1.2.1.47.1.1.1.1", "1.3.6.1.2.1.99.1.1.1"
    device = Device(
        {
            f"{physical}.7.5": b"inlet",
            f"{sensor}.1.5": 8,
            f"{sensor}.2.5": 8,
            f"{sensor}.3.5": 0,
            f"{sensor}.4.5": 41000,
            f"{sensor}.5.5": 1,
        }
    )
    reader = ProfileReader(device, profile(tmp_path, "title: box\nextends: [_entity-sensor]\n"))
    assert table(poll(reader, 0))[DEGREES] == 41.0
    for second in (1.0, MANY_S, 300.0):
        del device.values[f"{sensor}.2.5"]
        assert DEGREES not in table(poll(reader, second))
        device.values[f"{sensor}.2.5"] = 8
        assert table(poll(reader, second + 40))[DEGREES] == 41.0


def test_a_share_does_not_lose_a_part_of_the_whole() -> None:
    raw = {column: f"{UCD}.11.{column}.0" for column in (50, 51, 52, 53, 54)}
    device = Device(dict.fromkeys(raw.values(), 100))

    def busy(second: float, *, without: int | None = None) -> float | None:
        for column, oid in raw.items():
            device.values[oid] = int(100 + second * (60 if column == 53 else 10))
        if without is not None:
            del device.values[raw[without]]
        return table(poll(reader, second)).get(CPU)

    reader = ProfileReader(device, load_profiles()["linux"])
    assert [busy(0), busy(5)] == [None, pytest.approx(0.3)]
    assert busy(MANY_S, without=54) is None, "without the time of waiting the rest would not be 100 %"
    assert busy(MANY_S + 40) == pytest.approx(0.3)
    assert busy(MANY_S + 45) == pytest.approx(0.3)
    busy(MANY_S + 50, without=54)
    assert busy(MANY_S + 55, without=54) is None, "nor where a survey found it missing"


def test_a_sum_and_a_mean_over_fewer_rows_need_two_surveys_to_be_believed(tmp_path: Path) -> None:
    """A card that was pulled is gone for good; a row that one answer lacks is not."""
    text = group(
        f"      columns: {{load: {COL}.1, used: {COL}.2}}\n      metrics:\n"
        "        - {metric: system.cpu.utilization, value: load, scale: 0.01, over: mean}\n"
        "        - {metric: system.memory.usage, value: used, over: sum}"
    )
    values: dict[str, Value] = {f"{COL}.1.1": 10, f"{COL}.1.2": 30, f"{COL}.2.1": 500, f"{COL}.2.2": 700}
    device = Device({**values})
    reader = ProfileReader(device, profile(tmp_path, text))
    assert table(poll(reader, 0)) == {CPU: 0.2, USED: 1200}
    gone = [oid for oid in values if oid.endswith(".2")]
    for oid in gone:
        del device.values[oid]
    reading = poll(reader, MANY_S)
    assert table(reading) == {}
    assert set(fault_metrics(reading.faults)) == {CPU[0], USED[0]}
    device.values |= values
    assert table(poll(reader, MANY_S + 35)) == {CPU: 0.2, USED: 1200}
    for oid in gone:
        del device.values[oid]
    assert table(poll(reader, 300)) == {}
    assert table(poll(reader, 340)) == {CPU: 0.1, USED: 500}


def test_another_table_does_not_take_a_series_over(tmp_path: Path) -> None:
    """Memory in use with the page cache is not the same as without it, though both go by the same name."""
    device = Device(
        {
            f"{STORAGE}.2.1": "1.3.6.1.2.1.25.2.1.2",
            f"{STORAGE}.3.1": b"Physical memory",
            f"{STORAGE}.4.1": 1024,
            f"{STORAGE}.5.1": 1000,
            f"{STORAGE}.6.1": 900,
            f"{STORAGE}.6.6": 100,
            f"{STORAGE}.3.7": b"Cached memory",
            f"{STORAGE}.6.7": 300,
        }
    )
    reader = ProfileReader(device, profile(tmp_path, "title: box\nextends: [_host-resources]\n"))
    assert table(poll(reader, 0))[USED] == kb(500)
    device.values.pop(f"{STORAGE}.3.7")
    device.values.pop(f"{STORAGE}.6.7")
    for second in (MANY_S, 200.0, 900.0):
        assert USED not in table(poll(reader, second))
    device.values |= {f"{STORAGE}.3.7": b"Cached memory", f"{STORAGE}.6.7": 310}
    assert table(poll(reader, 2000))[USED] == kb(490)


def test_a_counter_of_64_bits_is_not_followed_by_one_of_32(tmp_path: Path) -> None:
    """The fall would look like a restart, and the way back like a burst of terabytes."""
    wide, narrow = "1.3.6.1.2.1.31.1.1.1.6.1", "1.3.6.1.2.1.2.2.1.10.1"
    device = Device({"1.3.6.1.2.1.31.1.1.1.1.1": b"a", "1.3.6.1.2.1.2.2.1.2.1": b"a", wide: 10**15, narrow: 7})
    reader = ProfileReader(device, load_profiles()["generic"])
    assert table(poll(reader, 0))[IN] == 10**15
    del device.values[wide]
    assert IN not in table(poll(reader, MANY_S))
    device.values[wide] = 10**15 + 5
    assert table(poll(reader, MANY_S + 40))[IN] == 10**15 + 5
    young = ProfileReader(Device({**device.values, wide: b""}), load_profiles()["generic"])
    assert table(poll(young, 0))[IN] == 7


def test_after_a_restart_each_row_has_the_widest_counter_whatever_its_number_is() -> None:
    """The number that a slow port had, without a wide counter, is a fast port's now."""

    def ports(slow: int, fast: int) -> dict[str, Value]:
        names: dict[str, Value] = {f"1.3.6.1.2.1.31.1.1.1.1.{slow}": b"slow", f"1.3.6.1.2.1.31.1.1.1.1.{fast}": b"a"}
        counters: dict[str, Value] = {f"1.3.6.1.2.1.2.2.1.10.{slow}": 5, f"1.3.6.1.2.1.2.2.1.10.{fast}": 7}
        return names | counters | {f"1.3.6.1.2.1.31.1.1.1.6.{fast}": 10**15}

    device = Device(ports(1, 2))
    reader = ProfileReader(device, load_profiles()["generic"])
    assert table(poll(reader, 0))[IN] == 10**15
    device.values = ports(2, 1)
    reader.restarted()
    assert table(poll(reader, 10))[IN] == 10**15


def test_after_a_restart_what_two_surveys_do_not_find_may_be_replaced() -> None:
    """New software may not have it any more: then what is there counts, as on a device that never had it."""
    device = Device({**MEMORY})
    reader = ProfileReader(device, load_profiles()["linux"])
    poll(reader, 0)
    del device.values[BUFFERS]
    reader.restarted()
    assert USED not in table(poll(reader, 10))
    asyncio.run(reader.discover(80 * 10**9, settled=True))
    assert table(poll(reader, 80))[USED] == kb(600)


def test_an_object_withdrawn_for_one_poll_through_the_poller(tmp_path: Path) -> None:
    """A real socket: the memory without its buffers is not there, and comes back with them."""

    async def main(device: Responder) -> list[Answer]:
        answers, now = [], 10**18
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            config = Config.model_validate({"host": "127.0.0.1", "port": device.address[1], "profile": "linux"})
            poller = await start(config, SourceContext("dut", "dut", (), None, tmp_path, lambda: now, 1.0), stack)
            for step in range(6):
                if step == 3:
                    device.remove(BUFFERS)
                answers.append(await poller.poll(now))
                device.set(BUFFERS, Cell(2, 200))
                device.advance(20)
                now += 20 * 10**9
        return answers

    with responder(system() | {name_of(oid): Cell(2, value) for oid, value in MEMORY.items()}) as device:
        answers = asyncio.run(main(device))
    used = [[s.value for s in answer.samples if s.metric == USED[0]] for answer in answers]
    assert used == [[kb(400)]] * 3 + [[]] + [[kb(400)]] * 2
    assert [USED[0] in fault_metrics(answer.faults) for answer in answers] == [False] * 3 + [True] + [False] * 2
