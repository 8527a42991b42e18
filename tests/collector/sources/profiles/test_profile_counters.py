"""64-bit counters that never count beside 32-bit ones that do, and speeds that cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.collector.sources.profiles.kit import IF, IFX, Device, interfaces, poll, table

from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.discovery import DOUBTED
from soakwatch.sources.profiles.profile_reader import ProfileReader

LATER_S = 700.0  # another survey is due


def octets(name: str) -> tuple[str, str]:
    return ("system.network.io", f"interface={name},direction=receive")


def multicast(name: str) -> tuple[str, str]:
    return ("system.network.cast.packets", f"interface={name},direction=receive,cast=multicast")


def reader(device: Device) -> ProfileReader:
    return ProfileReader(device, load_profiles()["generic"])


def twins(wide: dict[int, int], narrow: dict[int, int]) -> dict[str, Value]:
    """Interfaces p1, p2 ... with received octets of 64 and 32 bits."""
    values = interfaces({index: f"p{index}" for index in narrow})
    values |= {f"{IFX}.6.{index}": count for index, count in wide.items()}
    return values | {f"{IF}.10.{index}": count for index, count in narrow.items()}


def test_a_64_bit_counter_of_0_is_not_believed_where_that_of_32_bits_counts() -> None:
    device = Device(twins({1: 0, 2: 7000}, {1: 500, 2: 7000}))
    values = table(poll(reader(device), 0))
    assert (values[octets("p1")], values[octets("p2")]) == (500, 7000)


def test_a_row_in_which_neither_counts_yet_follows_the_column_on_this_device() -> None:
    """Else a port that idles at the begin would stand at 0 through the run."""
    device = Device(twins({1: 0, 2: 0}, {1: 500, 2: 0}))
    read = reader(device)
    assert table(poll(read, 0))[octets("p2")] == 0
    device.values[f"{IF}.10.2"] = 90
    assert table(poll(read, 10))[octets("p2")] == 90


def test_the_choice_stays_over_surveys_and_a_restart() -> None:
    device = Device(twins({1: 0, 2: 0}, {1: 500, 2: 40}))
    read = reader(device)
    poll(read, 0)
    for oid in (f"{IF}.10.1", f"{IF}.10.2"):
        device.values[oid] = 0
    read.restarted()
    assert (table(poll(read, 100)) | {("", ""): 0})[octets("p1")] == 0
    device.values[f"{IF}.10.1"] = 30
    assert table(poll(read, LATER_S + 100))[octets("p1")] == 30


def test_traffic_that_begins_within_the_survey_is_no_contradiction() -> None:
    """The second reading of the 64-bit counter has it."""

    class Starting(Device):
        async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
            self.values[f"{IFX}.6.1"] = 800
            return await super().get(oids)

    device = Starting(twins({1: 0}, {1: 500}))
    read = reader(device)
    poll(read, 0)
    assert table(poll(read, 5))[octets("p1")] == 800


def test_a_counter_that_is_found_out_later_is_a_fault_and_does_not_jump() -> None:
    device = Device(twins({1: 0, 2: 9000}, {1: 0, 2: 9000}))
    read = reader(device)
    assert table(poll(read, 0))[octets("p1")] == 0
    device.values[f"{IF}.10.1"] = 123_456
    readings = [poll(read, LATER_S), poll(read, LATER_S + 10)]
    assert not any(octets("p1") in table(reading) for reading in readings)
    told = [fault.text for reading in readings for fault in reading.faults if fault.object == octets("p1")[1]]
    assert told == [DOUBTED]
    device.values[f"{IFX}.6.1"] = 200_000
    assert table(poll(read, 3 * LATER_S))[octets("p1")] == 200_000, "it counts after all"


def test_a_64_bit_column_at_0_from_the_begin_gives_way_at_the_first_poll_that_shows_it() -> None:
    """Nothing counted at the survey. The 32 bits are followed from their first octet on, over the next surveys too."""
    device = Device(twins({1: 0, 2: 0}, {1: 0, 2: 0}))
    read = reader(device)
    seen = []
    for second, count in ((0, 0), (10, 500), (20, 900), (LATER_S, 70_000), (LATER_S + 10, 70_500)):
        device.values[f"{IF}.10.1"] = count
        reading = poll(read, second)
        seen.append(table(reading).get(octets("p1")))
        assert not [fault for fault in reading.faults if fault.metric == "system.network.io"]
    assert seen == [0, 500, 900, 70_000, 70_500]


def test_64_bits_that_begin_to_count_after_all_are_followed_without_a_jump() -> None:
    """Both count the same octets from 0 on, whichever is read."""
    device = Device(twins({1: 0}, {1: 0}))
    read = reader(device)
    seen = []
    for second, wide, narrow in ((0, 0, 0), (10, 0, 40), (20, 90, 90), (LATER_S, 5_000_000_900, 705_033_604)):
        device.values |= {f"{IFX}.6.1": wide, f"{IF}.10.1": narrow}
        seen.append(table(poll(read, second)).get(octets("p1")))
    assert seen == [0, 40, 90, 5_000_000_900]


def test_multicast_at_0_in_all_rows_comes_from_the_32_bits() -> None:
    values = interfaces({1: "a", 2: "b"})
    values |= {f"{IFX}.8.1": 0, f"{IFX}.8.2": 0, f"{IFX}.2.1": 83, f"{IFX}.2.2": 0}
    polled = table(poll(reader(Device(values)), 0))
    assert (polled[multicast("a")], polled[multicast("b")]) == (83, 0)


@pytest.mark.parametrize(
    ("mega", "bits", "speed"),
    [
        (10_000, 4_294_967_295, 1e10),
        (1_000_000_000, 1_000_000_000, 1e9),  # ifHighSpeed in bit/s: ifSpeed tells
        (4_294_901_759, 4_294_967_295, None),
        (4_294_901_759, 0, None),  # no speed beside one that cannot be
        (10_000_000, 4_294_967_295, 1e13),
    ],
)
def test_a_speed_above_10_tbit_s_is_refused(mega: int, bits: int, speed: float | None) -> None:
    values = interfaces({1: "a"}) | {f"{IFX}.15.1": mega, f"{IF}.5.1": bits}
    reading = poll(reader(Device(values)), 0)
    assert table(reading).get(("system.network.speed", "interface=a")) == speed
    told = [fault.text for fault in reading.faults if fault.metric == "system.network.speed"]
    assert len(told) == (speed is None)
    assert all("the catalogue allows 0.0 to 10000000000000.0" in text for text in told)
