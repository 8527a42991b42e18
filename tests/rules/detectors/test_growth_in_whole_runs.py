"""growth on what ordinary devices do through a night: sawteeth, restarts, waves and loads, among many series."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.growth import Growth
from soakwatch_rules.signals import PROCESS, readings
from soakwatch_rules.stats.daily import is_daily_sine
from soakwatch_rules.stats.following import holds_throughout

S = 10**9
DAY = 86400.0
MIB = 2.0**20
T = np.asarray(np.arange(1440) * 60.0, dtype=np.float64)
Floats = NDArray[np.float64]


def memory(share: Floats, seed: int = 1, level: float = 500 * MIB) -> Series:
    """Memory of a process as shares of its level, a reading a minute with .2 % of noise."""
    noise = 1 + 0.002 * np.random.default_rng(seed).normal(0, 1, share.size)
    return readings("process.memory.usage", np.round(level * share * noise / 4096) * 4096, 60.0, object=PROCESS)


def judged(
    series: Series, *, family: int = 1, events: tuple[Event, ...] = (), load: tuple[Series, ...] = ()
) -> Finding:
    """The finding of one series among ``family`` that are judged."""
    window = Window(0, round(series.seconds[-1] * S) + 60 * S)
    case = Case("dut", series.object, window, (series,), events=events, load=load, family=family)
    return Growth().judge(case)[0]


def teeth(period_s: float, height: float = 0.3, time_s: Floats = T) -> Floats:
    """A sawtooth around 1."""
    return np.asarray(1 + height * ((time_s / period_s + 0.4) % 1.0), dtype=np.float64)


@pytest.mark.parametrize("cycles", [4, 6, 11, 30])
def test_a_leak_under_a_sawtooth_fails_among_many_series(cycles: int) -> None:
    """What is left without the sawtooth decides, also where the bar is that of seventy series."""
    period = DAY / cycles
    clean, grown = judged(memory(teeth(period)), family=70), judged(memory(teeth(period) + 0.2 * T / DAY), family=70)
    assert clean.outcome is Outcome.PASS, clean.reason
    assert grown.outcome is Outcome.FAIL, grown.reason


def test_three_cycles_on_a_warm_up_are_no_leak() -> None:
    """Three cycles: what rises beneath them to the end is growth, what slows down is a warm-up."""
    period = DAY / 3.2
    steady, warm = teeth(period) + 0.3 * T / DAY, teeth(period) + 0.3 * (1 - np.exp(-T / (0.2 * DAY)))
    assert judged(memory(steady), family=20).outcome is Outcome.FAIL
    assert judged(memory(np.asarray(warm)), family=20).outcome is not Outcome.FAIL


def test_under_two_cycles_a_leak_of_the_size_stated_fails() -> None:
    """The growth that a pass names as one that would have failed does fail."""
    clean = teeth(DAY / 2.3)
    finding = judged(memory(clean))
    assert finding.outcome is Outcome.PASS, finding.reason
    assert finding.smallest_detectable is not None
    stated = finding.smallest_detectable * 24 / (512 * MIB)
    assert judged(memory(clean + stated * T / DAY)).outcome is Outcome.FAIL


def test_a_wave_of_a_day_under_a_sawtooth_is_no_leak() -> None:
    """Three teeth of 3 % on a wave of a day of 2 %, at eight phases: the floors rise for half of a day."""
    for phase in np.arange(8) / 8:
        wave = 0.02 * np.sin(2 * np.pi * (T / DAY + phase))
        assert judged(memory(teeth(6 * 3600.0, 0.03) + wave), family=53).outcome is not Outcome.FAIL, phase


def test_a_leak_behind_two_small_dips_fails() -> None:
    """80 MiB for 14 hours with two dips of half a MiB, then 98 MiB at the end; and the same with dips in the climb."""
    dip = sum(-0.006 * np.maximum(1 - (T - at) / 4000, 0) * (at <= T) for at in (12000.0, 30000.0))
    late = 0.24 * np.maximum(T / DAY - 0.6, 0) / 0.4
    assert judged(memory(np.asarray(1 + dip + late))).outcome is Outcome.FAIL
    assert judged(memory(np.asarray(1 + dip + 0.3 * T / DAY))).outcome is Outcome.FAIL


def test_a_leak_beside_a_job_fails() -> None:
    """A steady rise is its own running median, so the job beside it has to be told by the noise between blocks."""
    for begin in (0.2, 0.45, 0.7):
        since = T / DAY - begin
        job = np.where((since >= 0) & (since < 0.1), 2 * since, 0.0)
        assert judged(memory(np.asarray(1 + 0.2 * T / DAY + job))).outcome is Outcome.FAIL, begin
        assert judged(memory(np.asarray(1 + job))).outcome is Outcome.PASS, begin


def test_sawteeth_that_beat_with_the_cadence_do_not_grow() -> None:
    """27.2 min a cycle read each minute: the floor that is read wanders by what the sawtooth climbs in a block."""
    some = T[:1296]
    for seed in (1, 2, 3):
        noise = 1 + 0.001 * np.random.default_rng(seed * 1000 + 1633).normal(0, 1, some.size)
        value = 32 * MIB * teeth(1633.0, 0.15 + 0.1 * seed, some) * noise
        series = readings("process.memory.usage", np.round(value / 4096) * 4096, 60.0, object=PROCESS)
        assert judged(series).outcome is not Outcome.FAIL


def test_a_restart_that_cuts_a_sawtooth_makes_no_leak() -> None:
    """A short life that climbs to where a longer one of the same process had been and had come back from."""
    long = teeth(3 * 3600.0, 0.4)
    index = 1290  # the last 2.5 h: one climb
    series = memory(np.concatenate([long[:index], 1 + 0.35 * np.arange(1440 - index) / (1440 - index)]))
    restart = Event("process.restart", "dut", PROCESS, int(T[index] * S), int(T[index] * S))
    finding = judged(series, events=(restart,))
    assert finding.outcome is not Outcome.FAIL, finding.reason
    beyond = memory(np.concatenate([long[:index], 1.4 + 0.5 * np.arange(1440 - index) / (1440 - index)]))
    assert judged(beyond, events=(restart,)).outcome is Outcome.FAIL


def test_growth_that_has_just_begun_is_open() -> None:
    """What rises in the last tenth of a run by no more than a job would is no failure yet."""
    rises = 0.04 * np.clip((T - 0.92 * DAY) / (0.08 * DAY), 0, 1)
    assert judged(memory(1 + rises)).outcome is Outcome.INCONCLUSIVE


def test_a_late_leak_is_no_daily_wave() -> None:
    """A part of a day's sine and a line with a bend look alike; what fits the line better is growth."""
    most = T[:1008]
    late = 1 + 0.12 * np.maximum(most - 0.35 * DAY, 0) / (0.35 * DAY)
    assert judged(memory(np.asarray(late))).outcome is Outcome.FAIL
    wave = 1 + 0.05 * np.sin(2 * np.pi * (T / DAY + 0.6))
    assert judged(memory(np.asarray(wave))).outcome is not Outcome.FAIL
    assert not is_daily_sine(most, np.asarray(late))
    assert is_daily_sine(T, np.asarray(wave))


def test_a_table_that_follows_a_noisy_load_does_not_grow() -> None:
    """Connections in proportion to a load on its way from trough to peak: noise may not hide it."""
    early = T[:640]
    shape = 1 + 0.15 * np.sin(2 * np.pi * (early / DAY + 0.7))
    for seed in range(8):
        noise = 1 + 0.03 * np.random.default_rng(seed).normal(0, 1, early.size)
        load = readings("load.offered.packet.rate", 1e6 * shape, 60.0)
        table = readings("system.conntrack.count", np.round(2.6e5 * shape * noise), 60.0)
        finding = judged(table, load=(load,))
        assert finding.outcome is not Outcome.FAIL, finding.reason


def test_a_cache_that_is_full_does_not_follow_the_load() -> None:
    """It filled while the load rose, and stays while the load falls: no leak beside the load."""
    shape = 1 + 0.2 * np.sin(2 * np.pi * (T / DAY - 0.3))
    cache = 1 + 0.3 * np.minimum(T / (0.63 * DAY), 1.0)
    load = readings("load.request.rate", 3000 * shape, 60.0)
    finding = judged(memory(np.asarray(cache)), load=(load,))
    assert finding.outcome is not Outcome.FAIL, finding.reason
    blocks = np.linspace(0, 1, 96)
    assert not holds_throughout(np.minimum(blocks / 0.63, 1.0), np.sin(2 * np.pi * (blocks - 0.3)), 0.5)


def test_a_leak_behind_two_warm_ups_is_found() -> None:
    """A quick warm-up that is over in a minute or two, a slow one behind it, and a leak under both."""
    rises = 0.25 * (1 - np.exp(-T / 120.0)) + 0.1 * (1 - np.exp(-T / 7000.0))
    assert judged(memory(1 + rises)).outcome is Outcome.PASS
    assert judged(memory(1 + rises + 0.1 * T / DAY), family=34).outcome is Outcome.FAIL


def test_a_leak_under_batch_jobs_is_seen_by_the_lowest_readings() -> None:
    """Jobs of half an hour that take a fifth of the level lift the means; what is lowest rises with the leak alone."""
    jobs = np.where((T + 3000) % (5 * 3600.0) < 1900, 0.2, 0.0)
    assert judged(memory(np.asarray(1 + jobs)), family=20).outcome is not Outcome.FAIL
    for seed in range(4):
        finding = judged(memory(np.asarray(1 + jobs + 0.12 * T / DAY), seed), family=20)
        assert finding.outcome is Outcome.FAIL, finding.reason


def test_a_step_late_in_the_run_hides_no_leak_that_was_there_before() -> None:
    """A leak through the whole run, or from its middle on, and one jump near the end: the jump begins nothing."""
    jump = 0.06 * (T >= 0.88 * DAY)
    for begin in (0.0, 0.5):
        leaking = np.asarray(1 + jump + 0.15 * np.maximum(T / DAY - begin, 0) / (1 - begin), dtype=np.float64)
        for family in (1, 36):
            assert judged(memory(leaking), family=family).outcome is Outcome.FAIL
    assert judged(memory(np.asarray(1 + jump, dtype=np.float64))).outcome is not Outcome.FAIL
    assert judged(memory(np.asarray(1 + jump + 0.3 * np.maximum(T / DAY - 0.88, 0)))).outcome is not Outcome.FAIL


def test_the_end_of_a_job_is_no_release_of_a_sawtooth() -> None:
    """Memory that a job takes at once and gives back an hour later says nothing of the leak that runs on beneath."""
    job = 0.14 * ((T >= 0.4 * DAY) & (T < 0.44 * DAY))
    assert judged(memory(1 + 0.1 * T / DAY + job), family=19).outcome is Outcome.FAIL


def test_floors_that_rose_early_and_stand_since_do_not_fail() -> None:
    """Sawteeth of 27 min over a cache that is full by the middle: the second half of the floors is level."""
    for seed in (1, 2, 3):
        full = 0.06 * np.minimum(T / (0.5 * DAY), 1)
        series = memory(1 + full + 0.07 * ((T / 1633.0 + 0.1 * seed) % 1.0), seed)
        assert judged(series, family=20).outcome is not Outcome.FAIL


def test_a_floor_that_jumped_at_the_end_is_open() -> None:
    """Four cycles of which the last begins 13 % higher: a step or a leak that began late, not proof of none."""
    late = np.asarray(0.3 * np.maximum(T / DAY - 0.6, 0))
    series = memory(teeth(DAY / 4.4, 0.4) + late)
    assert judged(series).outcome is not Outcome.PASS
    assert judged(memory(teeth(DAY / 4.4, 0.4))).outcome is Outcome.PASS


@pytest.mark.parametrize("noise", [0.00016, 0.00032])
def test_a_leak_that_speeds_up_is_no_part_of_a_wave(noise: float) -> None:
    """From nothing to a rate of a fifth of the level a day, after a step, in noise that remembers for half an hour."""
    since = np.maximum(T / DAY - 0.06, 0)
    errors, wander = np.random.default_rng(3).normal(0, noise, T.size), np.zeros(T.size)
    for i in range(1, T.size):
        wander[i] = 0.97 * wander[i - 1] + errors[i]
    step = 0.075 * (1 - np.exp(-since / 0.002))
    leaking = readings("process.memory.usage", 100 * MIB * (1 + step + 0.1 * since**2 + wander), 60.0, object=PROCESS)
    assert judged(leaking, family=36).outcome is Outcome.FAIL
    half = 0.05 * (1 - np.cos(2 * np.pi * T / (2 * DAY)))
    wave = readings("process.memory.usage", 100 * MIB * (1 + half + wander), 60.0, object=PROCESS)
    assert judged(wave, family=36).outcome is not Outcome.FAIL


def jobs(*each: tuple[float, float, float, float]) -> Floats:
    """Jobs of (begin, length, height, share of the length in which they climb), in shares of a day."""
    value = np.zeros(T.size)
    for begin, length, height, climb in each:
        since = T / DAY - begin
        value += height * np.where((since >= 0) & (since < length), np.minimum(1, since / (climb * length)), 0)
    return value


SLOW_JOBS = jobs((0.03, 0.05, 0.05, 1.0), (0.23, 0.08, 0.12, 0.5), (0.72, 0.06, 0.06, 0.9))
"""Three that climb slowly and fall at once: a sawtooth of three falls, but for what lies between."""


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_a_leak_beneath_slow_jobs_is_no_sawtooth(share: float) -> None:
    """It falls after each job to where the leak has brought it, not to where it was."""
    assert judged(memory(1 + SLOW_JOBS)).outcome is Outcome.PASS
    for seed in (1, 2, 3):
        found = judged(memory(1 + SLOW_JOBS + share * T / DAY, seed))
        assert found.outcome is Outcome.FAIL, found.reason


def test_a_job_that_climbs_hides_no_leak_behind_its_end() -> None:
    """What it frees was its own: the leak before and after it goes on, and nothing was as high before."""
    job = jobs((0.75, 0.15, 0.2, 0.6))
    assert judged(memory(1 + job)).outcome is Outcome.PASS
    for seed in (1, 2, 3):
        found = judged(memory(1 + job + 0.15 * T / DAY, seed))
        assert found.outcome is Outcome.FAIL, found.reason


def test_a_leak_that_begins_late_is_found_beneath_jobs() -> None:
    """The line behind the bend confirms it, where that of the whole run does not."""
    ended = jobs((0.1, 0.08, 0.1, 0.1), (0.42, 0.05, 0.1, 0.2), (0.76, 0.06, 0.13, 0.1))
    late = np.asarray(0.3 * np.maximum(T / DAY - 0.6, 0))
    assert judged(memory(1 + ended)).outcome is Outcome.PASS
    found = judged(memory(1 + ended + late), family=19)
    assert found.outcome is Outcome.FAIL, found.reason


@pytest.mark.parametrize("seed", range(4))
def test_what_was_freed_does_not_excuse_what_grows(seed: int) -> None:
    """Two climbs that were freed, and a leak that has lifted all that came since: no pass by the last part alone."""
    climbs = jobs((0.3, 0.17, 0.12, 0.7), (0.66, 0.12, 0.16, 0.5), (0.79, 0.05, 0.08, 0.2))
    assert judged(memory(1 + climbs, seed)).outcome is not Outcome.FAIL
    assert judged(memory(1 + climbs + 0.2 * T / DAY, seed)).outcome is not Outcome.PASS


def test_a_begin_that_comes_and_goes_hides_no_leak() -> None:
    """Some levels in the first tenth, and a leak over all: it is judged from a third of the run on as well."""
    share = T / DAY
    start = 0.06 * (share >= 0.045) + 0.03 * (share >= 0.08) - 0.04 * (share >= 0.095) + 0.05 * (share >= 0.115)
    assert judged(memory(1 + start), family=60).outcome is not Outcome.FAIL
    found = judged(memory(1 + start + 0.1 * share), family=60)
    assert found.outcome is Outcome.FAIL, found.reason


def test_a_few_steps_do_not_explain_what_still_rises() -> None:
    """Steps up and down at the begin, and a leak over all of it: the steps that fit best are no pass."""
    share = T / DAY
    start = 0.06 * (share >= 0.045) + 0.04 * (share >= 0.06) - 0.06 * (share >= 0.085) + 0.07 * (share >= 0.115)
    steps = start + 0.02 * (share >= 0.2)
    assert judged(memory(1 + steps), family=60).outcome is Outcome.PASS
    assert judged(memory(1 + steps + 0.12 * share), family=60).outcome is not Outcome.PASS


def test_a_sawtooth_whose_last_climb_is_high_passes() -> None:
    """Three and four falls, ended in full climb: its floors are level, and the last climb is as the others were."""
    for begin in (0.1, 0.25, 0.4):
        series = memory(np.asarray(1 + 0.25 * ((T / (6 * 3600.0) + begin) % 1.0) * (1 + 0.1 * np.sin(T / 9000))))
        assert judged(series).outcome is Outcome.PASS
