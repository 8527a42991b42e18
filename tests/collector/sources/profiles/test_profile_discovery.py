"""What a profile finds on a device: rows, names, alternatives, and notes about what a device lacks."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import IF, IFX, Device, group, interfaces, poll, profile, table

from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader

COL = "1.3.6.1.4.1.99.1"
UP, IO = "system.network.up", "system.network.io"


def read(
    folder: Path, text: str, values: dict[str, Value], globs: tuple[str, ...] | None = None
) -> dict[tuple[str, str], float]:
    return table(poll(ProfileReader(Device(values), profile(folder, text), globs), 1))


def test_interfaces_are_called_by_ifname_else_ifdescr_and_never_two_the_same() -> None:
    values = interfaces({3: "Gi0/1", 12: "Gi0/1", 5: "", 7: "Gi0/2"})
    values[f"{IF}.2.5"] = b"Null0\x00"
    readings = table(poll(ProfileReader(Device(values), load_profiles()["generic"]), 1))
    names = [name for metric, name in readings if metric == UP]
    assert names == ["interface=Gi0/1", "interface=Null0", "interface=Gi0/2", "interface=Gi0/1 #12"]
    assert readings[IO, "interface=Gi0/1 #12,direction=receive"] == 12000


def test_each_interface_has_the_widest_counter_that_it_has() -> None:
    values = interfaces({1: "fast", 2: "slow", 3: "empty"})
    del values[f"{IFX}.6.2"]
    values |= {f"{IF}.10.1": 77, f"{IF}.10.2": 88, f"{IF}.10.3": 99, f"{IFX}.6.3": b""}
    reading = poll(ProfileReader(Device(values), load_profiles()["generic"]), 1)
    oids = {
        sample.object: part.oids
        for sample, part in zip(reading.samples, reading.parts, strict=True)
        if part is not None and sample.metric == IO
    }
    assert oids["interface=fast,direction=receive"] == (f"{IFX}.6.1",)
    assert oids["interface=slow,direction=receive"] == (f"{IF}.10.2",)
    assert oids["interface=empty,direction=receive"] == (f"{IF}.10.3",)


def test_the_state_of_an_interface_is_reported_only_if_the_device_knows_it() -> None:
    values = interfaces({1: "up", 2: "down", 3: "unknown", 4: "dormant"})
    values |= {f"{IF}.8.2": 2, f"{IF}.8.3": 4, f"{IF}.8.4": 5}
    readings = table(poll(ProfileReader(Device(values), load_profiles()["generic"]), 1))
    assert {name: value for (metric, name), value in readings.items() if metric == UP} == {
        "interface=up": 1,
        "interface=down": 0,
        "interface=dormant": 0,
    }


def test_only_the_watched_interfaces_are_asked() -> None:
    device = Device(interfaces({index: f"Et{index}" for index in range(1, 201)}))
    reader = ProfileReader(device, load_profiles()["generic"], ("Et1", "Et2?"))
    values = table(poll(reader, 1))
    assert len([name for metric, name in values if metric == UP]) == 11
    device.gets.clear()
    device.walks.clear()
    poll(reader, 2)
    assert sum(len(oids) for oids in device.gets) <= 11 * 20, "rows that nobody watches are not asked for"
    assert not any(device.walks), "few rows of a long table are asked one by one"


def test_a_column_is_decided_once_per_device(tmp_path: Path) -> None:
    text = group(
        f"      columns: {{load: [{COL}.9, {COL}.1, {COL}.2]}}\n"
        "      metrics: [{metric: system.cpu.core.utilization, value: load, scale: 0.01, labels: {core: '{index}'}}]"
    )
    values: dict[str, Value] = {f"{COL}.1.1": 10, f"{COL}.2.1": 50, f"{COL}.2.2": 60}
    assert read(tmp_path, text, values) == {("system.cpu.core.utilization", "core=1"): 0.1}


def test_joins_conditions_and_alternatives_of_labels(tmp_path: Path) -> None:
    text = group(
        f"      columns: {{load: {COL}.1, phys: {COL}.2, type: {COL}.3}}\n"
        "      joins:\n"
        f"        up: {{oid: {COL}.8, index: '{{phys}}'}}\n"
        f"        name: {{oid: [{COL}.9, {COL}.7], index: '{{up}}.{{index.0}}'}}\n"
        "      where: {type: '^3$', load: number}\n"
        "      where_not: {name: spare}\n"
        "      metrics:\n"
        "        - {metric: system.cpu.core.utilization, value: load, scale: 0.01, labels: {core: '{name|phys|index}'}}"
    )
    values: dict[str, Value] = {}
    for index in range(1, 7):
        values |= {
            f"{COL}.1.{index}": index,
            f"{COL}.2.{index}": index + 10,
            f"{COL}.3.{index}": 3,
            f"{COL}.8.{index + 10}": 4,
        }
    values |= {
        f"{COL}.9.4.1": b"first",
        f"{COL}.7.4.2": b"second, by the other column",
        f"{COL}.9.4.3": b"spare",
        f"{COL}.3.4": 2,
        f"{COL}.1.5": b"n/a",
    }
    assert read(tmp_path, text, values) == {
        ("system.cpu.core.utilization", "core=first"): 0.01,
        ("system.cpu.core.utilization", "core=second\\, by the other column"): 0.02,
        ("system.cpu.core.utilization", "core=16"): 0.06,
    }


def test_a_group_yields_to_another_and_the_first_that_brings_a_series_keeps_it(tmp_path: Path) -> None:
    total = "metrics: [{metric: system.memory.usage, value: used, over: sum}]"
    text = (
        "title: x\nsnmp:\n  groups:\n"
        f"    old: {{unless: [new], columns: {{used: {COL}.1}}, {total}}}\n"
        f"    new: {{columns: {{used: {COL}.2}}, {total}}}\n"
        f"    also: {{scalars: {{used: {COL}.3.0}}, metrics: [{{metric: system.memory.usage, value: used}}]}}\n"
    )
    usage = ("system.memory.usage", "")
    old: dict[str, Value] = {f"{COL}.1.1": 5, f"{COL}.1.2": 6}
    new: dict[str, Value] = {f"{COL}.2.1": 7}
    also: dict[str, Value] = {f"{COL}.3.0": 9}
    assert read(tmp_path, text, old | new | also) == {usage: 7}
    assert read(tmp_path, text, old | also) == {usage: 11}
    assert read(tmp_path, text, also) == {usage: 9}


def test_an_alternative_that_answers_well_comes_before_one_that_answers_nonsense(tmp_path: Path) -> None:
    text = group(
        f"      scalars: {{bad: {COL}.1.0, good: {COL}.2.0}}\n"
        "      metrics: [{metric: system.processes, value: bad}, {metric: system.processes, value: good}]"
    )
    assert read(tmp_path, text, {f"{COL}.1.0": b"many", f"{COL}.2.0": 5}) == {("system.processes", ""): 5}
    reading = poll(ProfileReader(Device({f"{COL}.1.0": b"many"}), profile(tmp_path, text)), 1)
    assert [fault.text for fault in reading.faults] == [f"bad ({COL}.1.0): 'many' is not a number"]


def test_a_promised_metric_that_is_missing_is_reported_with_its_oids(tmp_path: Path) -> None:
    text = group(
        f"      scalars: {{count: {COL}.1.0, level: {COL}.2.0}}\n      metrics:\n"
        "        - {metric: system.processes, value: count}\n        - {metric: system.cpu.utilization, value: level}\n"
        "        - {metric: system.uptime, value: level, optional: true}"
    )
    survey = asyncio.run(ProfileReader(Device({f"{COL}.1.0": 5}), profile(tmp_path, text)).discover(0))
    assert survey.lacking == (("system.cpu.utilization", f"the device has no usable answer for {COL}.2.0"),)
    assert survey.metrics == ("system.processes",)


def test_a_device_that_answers_nothing_is_an_empty_answer() -> None:
    reading = poll(ProfileReader(Device({}), load_profiles()["generic"]), 1)
    assert reading.samples == ()
    assert reading.faults == ()


@pytest.mark.slow
def test_ten_thousand_interfaces_are_found_and_read_beside_the_event_loop() -> None:
    device = Device(interfaces({index: f"Ethernet{index}" for index in range(1, 10_001)}))
    reader = ProfileReader(device, load_profiles()["generic"])

    async def poll_once() -> tuple[int, float]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        heart = asyncio.create_task(beat())
        await reader.discover(0)
        begun = time.process_time()
        reading = await reader.poll(10**9)
        spent = time.process_time() - begun
        heart.cancel()
        assert len(reading.samples) == 80_000 - 20_000
        return beats, spent

    beats, _ = asyncio.run(poll_once())
    assert beats > 10, "the loop went on"
