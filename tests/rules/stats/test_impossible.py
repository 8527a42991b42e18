"""Impossible readings: what is set aside, and that real bursts, resets and wraps are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Window
from soakwatch_rules.stats.counted_amounts import steps
from soakwatch_rules.stats.impossible import without_impossible

S = 10**9
Values = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]


def floats(value: ArrayLike) -> NDArray[np.float64]:
    """As readings of a gauge."""
    return np.asarray(value, dtype=np.float64)


def series(metric: str, value: Values) -> Series:
    """A reading each minute."""
    return Series("fw", metric, "", trait_of(metric), np.arange(value.size, dtype=np.int64) * 60 * S, value)


def counted(of: Series) -> float:
    """All that a counter counted, as the rules see it."""
    return float(np.nansum(steps(of).count))


def drops(*value: float) -> Series:
    """A counter of drops."""
    return series("queue.dropped", np.array(value, dtype=np.int64))


def traffic(start: int = 10**7) -> NDArray[np.int64]:
    """A hundred readings of a counter of packets at a steady pace."""
    return start + np.cumsum(np.full(100, 60_000, dtype=np.int64))


@pytest.mark.parametrize("to", [100 + 2**32, 100 + 2**31, 2**32 - 1, 2**63 - 1, 10**15, 0, 17])
@pytest.mark.parametrize("place", [1, 30, 58])
def test_one_reading_that_is_taken_back_counts_nothing(to: int, place: int) -> None:
    value = np.full(60, 100, dtype=np.int64)
    value[place] = to
    found = without_impossible(series("queue.dropped", value))
    assert (len(found.series), [odd.count for odd in found.impossible]) == (59, [1])
    assert counted(found.series) == 0
    assert found.impossible[0].begin_ns == place * 60 * S
    assert found.impossible[0].sure


@pytest.mark.parametrize("to", [2**32 + 100, 2**64 - 1])
def test_the_first_and_the_last_reading_count_nothing_either(to: int) -> None:
    for place in (0, -1):
        value = np.full(60, 100, dtype=np.uint64)
        value[place] = to
        found = without_impossible(series("queue.dropped", value))
        assert found.impossible
        assert counted(found.series) == 0


@pytest.mark.parametrize("start", [5 * 10**9, 3 * 10**9, 10**6])
def test_all_bits_set_at_an_end_is_no_wrap_and_no_count(start: int) -> None:
    """Also where it is next to what the counter shows, above it or below it."""
    for to in (2**32 - 1, 2**64 - 1):
        for place in (0, -1):
            value = traffic(start).astype(np.uint64)
            value[place] = to
            found = without_impossible(series("load.rx.packets", value))
            assert [odd.count for odd in found.impossible] == [1]
            assert counted(found.series) == 98 * 60_000


def test_what_is_read_twice_at_one_moment_was_counted_before_it() -> None:
    """A generator that begins anew writes its last line and its first within a nanosecond."""
    times = np.array([0, 60, 120, 120, 180, 240], dtype=np.int64) * S
    times[3] += 1
    value = np.array([0, 0, 0, 787, 787, 787], dtype=np.int64)
    lost = Series("tg", "load.lost.packets", "", trait_of("load.lost.packets"), times, value)
    assert without_impossible(lost).impossible == ()


def test_a_wrap_beside_all_bits_set_stays_a_wrap() -> None:
    value = (traffic(2**32 - 30 * 60_000) % 2**32).astype(np.int64)
    assert without_impossible(series("load.rx.packets", value)).impossible == ()


def test_a_burst_that_stays_is_never_set_aside_whatever_its_size() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        start = int(rng.choice([0, 1, 3, 500, 10**6]))
        size = int(np.exp(rng.uniform(0, np.log(10**10))))
        value = np.full(60, start, dtype=np.int64)
        value[int(rng.integers(1, 60)) :] += size
        found = without_impossible(series("queue.dropped", value))
        assert found.impossible == ()
        assert counted(found.series) == size


def test_a_burst_before_a_reset_is_a_burst() -> None:
    assert without_impossible(drops(0, 0, 0, 1000, 0, 0, 0)).impossible == ()
    assert counted(without_impossible(drops(0, 0, 5, 1000, 700, 700, 700)).series) >= 1000


def test_a_burst_beside_a_garbled_reading_still_counts() -> None:
    garbled = without_impossible(drops(0, 0, 2**32, 0, 0, 40, 40, 40))
    assert (counted(garbled.series), len(garbled.impossible)) == (40, 1)
    at_once = without_impossible(drops(0, 0, 0, 2**32 + 16_288, 16_288, 16_288, 16_288))
    assert (counted(at_once.series), len(at_once.impossible)) == (16_288, 1)


def test_a_low_counter_that_is_back_at_once_is_set_aside_but_not_surely() -> None:
    found = without_impossible(drops(2, 2, 2, 0, 2, 2, 2))
    assert (counted(found.series), [odd.sure for odd in found.impossible]) == (0, [False])


def test_a_counter_that_was_reset_with_its_device_was_not_misread() -> None:
    value = np.array([100, 100, 100, 0, 100, 100], dtype=np.int64)
    boot = (Window(2 * 60 * S + 1, 3 * 60 * S),)
    assert without_impossible(series("queue.dropped", value)).impossible != ()
    assert without_impossible(series("queue.dropped", value), restarts=boot).impossible == ()


@pytest.mark.parametrize("lasts", [1, 2, 3])
def test_traffic_read_as_0_and_back_loses_nothing(lasts: int) -> None:
    value = traffic()
    value[40 : 40 + lasts] = 0
    found = without_impossible(series("system.network.packets", value))
    assert sum(odd.count for odd in found.impossible) == lasts
    assert counted(found.series) == 99 * 60_000


def test_a_step_of_two_to_the_32_that_stays_is_taken_out_of_what_follows() -> None:
    value = traffic()
    value[40:] += 2**32
    found = without_impossible(series("load.tx.packets", value))
    assert counted(found.series) == 99 * 60_000
    assert found.impossible[0].amount == 2**32
    assert found.impossible[0].sure
    value = traffic(2**32 + 10**7)
    value[40:] -= 2**32
    assert counted(without_impossible(series("load.tx.packets", value)).series) == 99 * 60_000


def test_a_step_beyond_what_can_have_come_counts_nothing_and_is_not_sure() -> None:
    value = np.full(60, 7, dtype=np.int64)
    value[20:] += 5_000_000
    most = np.full(60, 1_000_000.0)
    found = without_impossible(series("system.network.packet.dropped", value), most)
    assert (counted(found.series), found.impossible[0].sure) == (0, False)
    assert without_impossible(series("system.network.packet.dropped", value), 10 * most).impossible == ()


def test_a_source_that_counts_faster_than_its_link_states_is_believed() -> None:
    """Virtual interfaces state less than they carry; bits over 2**31 a minute are nothing odd."""
    value = np.cumsum(np.full(100, 15_283_009_024, dtype=np.int64))
    assert without_impossible(series("system.network.io", value), np.full(100, 15e9)).impossible == ()
    once = np.arange(100, dtype=np.int64) * 10**8
    once[50:] += 20 * 10**9
    assert len(without_impossible(series("system.network.io", once), np.full(100, 15e9)).impossible) == 1


def test_wraps_at_any_pace_are_no_misreadings() -> None:
    for pace in (60_000, 10**8, 10**9, 2 * 10**9):
        value = (np.arange(300, dtype=np.int64) * pace + 4 * 10**9) % 2**32
        found = without_impossible(series("system.network.io", value))
        assert found.impossible == ()
        assert counted(found.series) == 299 * pace


def test_a_32_bit_counter_that_was_reset_did_not_wrap() -> None:
    value = np.full(60, 3_000_000_000, dtype=np.int64)
    value[30:] = 0
    assert counted(series("queue.dropped", value)) == 0
    value[30:] = 12
    assert counted(series("queue.dropped", value)) == 12


@pytest.mark.parametrize("days", [1, 10, 94])
def test_a_first_uptime_of_0_of_a_device_that_ran_for_days_is_no_start(days: int) -> None:
    """A clock cannot gain a day within a minute; a device that had just started goes on second by second."""
    value = floats(86400.0 * days + 60.0 * np.arange(30))
    value[0] = 0.0
    found = without_impossible(series("system.uptime", value))
    assert [odd.begin_ns for odd in found.impossible] == [0]
    assert len(found.series) == 29
    assert found.series.values[0] == value[1]
    assert not without_impossible(series("system.uptime", floats(60.0 * np.arange(30)))).impossible


def test_an_uptime_of_0_that_is_back_is_no_restart_and_a_real_one_stays() -> None:
    value = floats(50_000.0 + 60.0 * np.arange(60))
    read = series("system.uptime", value)
    again = replace(read, value=floats(np.where(np.arange(60) < 30, value, 20.0 + 60.0 * (np.arange(60) - 30))))
    assert without_impossible(read).impossible == ()
    assert without_impossible(again).impossible == ()
    for to in (0.0, value[20] + 2**32 / 100):
        wrong = value.copy()
        wrong[20] = to
        assert len(without_impossible(replace(read, value=wrong)).series) == 59
    wrong = value.copy()
    wrong[-1] = 0.0
    assert [odd.sure for odd in without_impossible(replace(read, value=wrong)).impossible] == [False]


@pytest.mark.parametrize(
    ("metric", "usual", "to"),
    [
        ("system.cpu.utilization", 0.3, 42.9),
        ("system.cpu.utilization", 0.3, -1.0),
        ("system.memory.usage", 3e9, 3e9 + 2**32),
        ("system.memory.usage", 3e9, 1.8e19),
        ("load.tx.packet.rate", 1e5, 1e15),
    ],
)
def test_a_gauge_beyond_what_can_be_is_set_aside_while_it_is_alone(metric: str, usual: float, to: float) -> None:
    value = np.full(60, usual)
    value[20] = to
    assert len(without_impossible(series(metric, value)).series) == 59
    value[20:50] = to
    assert len(without_impossible(series(metric, value)).series) == 60


def test_gauges_may_do_what_they_do() -> None:
    """A CPU a little over 1, a generator that stops for one reading, memory that doubles: all of that happens."""
    for metric, usual, to in (
        ("system.cpu.utilization", 0.99, 1.012),
        ("load.rx.packet.rate", 1e5, 0.0),
        ("system.memory.usage", 3e9, 6e9),
        ("load.latency", 0.001, 2.0),
    ):
        value = np.full(60, usual)
        value[20] = to
        assert without_impossible(series(metric, value)).impossible == ()
