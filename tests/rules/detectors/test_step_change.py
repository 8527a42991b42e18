"""step_change: steps of known size and time, what is none, and what explains one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.step_change import StepChange
from soakwatch_rules.events.explanations import median_load
from soakwatch_rules.signals import (
    LEVEL,
    PROCESS,
    gappy,
    leak,
    noise,
    quantised,
    readings,
    sawtooth,
    step,
    warm_up,
    wave,
)
from soakwatch_rules.stats.steps import medians, steps

S = 10**9
METRIC = "process.memory.usage"
DAY = 86400
NOON = 43200


def judge(series: Series, *events: Event, rule: StepChange | None = None, **more: object) -> Finding:
    """The one finding of one series in a window of a day that begins at 0."""
    case = Case("dut", series.object, Window(0, DAY * S), (series,), events=events)
    return (rule or StepChange()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


def day(seed: int, phi: float = 0.0, sd: float = 0.01, metric: str = METRIC) -> Series:
    """24 h of readings a minute."""
    return noise(seed, metric, phi=phi, sd=sd)


def stepped(metric: str = METRIC, height: float = 0.3) -> Series:
    """A day with a step at noon."""
    return step(day(1, metric=metric), height * LEVEL)


def outliers(series: Series, seed: int) -> Series:
    """One reading in a hundred is anything between a fifth and five times the level."""
    rng, value = np.random.default_rng(seed), series.values.copy()
    odd = rng.random(value.size) < 0.01
    value[odd] *= rng.uniform(0.2, 5, int(odd.sum()))
    return replace(series, value=value)


def batch(series: Series) -> Series:
    """A job of an hour each six hours."""
    return replace(series, value=series.values * (1 + 0.5 * ((series.seconds / 3600) % 6 < 1)))


def filling(series: Series) -> Series:
    """A cache that fills during the first 40 %."""
    return replace(series, value=series.values + 0.6 * LEVEL * np.clip(series.seconds / (0.4 * DAY), 0, 1))


SIGNALS: dict[str, tuple[Callable[[int], Series], Outcome]] = {
    "white noise": (day, Outcome.PASS),
    "much noise": (lambda seed: day(seed, sd=0.2), Outcome.PASS),
    "AR(1) .9": (lambda seed: day(seed, 0.9), Outcome.PASS),
    "AR(1) .99": (lambda seed: day(seed, 0.99), Outcome.PASS),
    "AR(1) .99, much": (lambda seed: day(seed, 0.99, 0.05), Outcome.PASS),
    "sawtooth 1 h": (lambda seed: sawtooth(day(seed), 0.2 * LEVEL, 3600, seed), Outcome.PASS),
    "sawtooth 3 h": (lambda seed: sawtooth(day(seed), 0.3 * LEVEL, 10800, seed), Outcome.PASS),
    "sawtooth 9 h": (lambda seed: sawtooth(day(seed), 0.4 * LEVEL, 32400, seed), Outcome.PASS),
    "warm-up 10 min": (lambda seed: warm_up(day(seed), 0.6 * LEVEL, 600), Outcome.PASS),
    "warm-up 1 h": (lambda seed: warm_up(day(seed), 0.6 * LEVEL, 3600), Outcome.PASS),
    "warm-up 4 h": (lambda seed: warm_up(day(seed), 0.6 * LEVEL, 14400), Outcome.PASS),
    "cache fills": (lambda seed: filling(day(seed)), Outcome.PASS),
    "coarse steps": (lambda seed: quantised(day(seed), 0.04 * LEVEL), Outcome.PASS),
    "very coarse": (lambda seed: quantised(day(seed), 0.2 * LEVEL), Outcome.PASS),
    "gaps": (lambda seed: gappy(day(seed), 0.2, (0.4, 0.525), seed), Outcome.PASS),
    "outliers": (lambda seed: outliers(day(seed), seed), Outcome.PASS),
    "leak": (lambda seed: leak(day(seed), 3 * LEVEL / DAY), Outcome.PASS),
    "daily wave": (lambda seed: wave(day(seed), 0.3 * LEVEL, DAY, seed), Outcome.PASS),
    "batch jobs": (lambda seed: batch(day(seed)), Outcome.PASS),
    "step 5 %": (lambda seed: step(day(seed), 0.05 * LEVEL), Outcome.PASS),
    "step 15 %": (lambda seed: step(day(seed), 0.15 * LEVEL), Outcome.WARN),
    "fall 20 %": (lambda seed: step(day(seed), -0.2 * LEVEL), Outcome.WARN),
    "step, AR(1) .99": (lambda seed: step(day(seed, 0.99), 0.2 * LEVEL), Outcome.WARN),
    "step and outliers": (lambda seed: outliers(step(day(seed), 0.3 * LEVEL), seed), Outcome.WARN),
    "bump 2 h": (lambda seed: step(step(day(seed), 0.2 * LEVEL), -0.2 * LEVEL, 0.5 + 1 / 12), Outcome.WARN),
    "step on a leak": (lambda seed: leak(step(day(seed), 0.3 * LEVEL), 0.2 * LEVEL / DAY), Outcome.WARN),
}


@pytest.mark.parametrize(("name", "seed"), list(product(SIGNALS, range(3))))
def test_signals_of_known_truth(name: str, seed: int) -> None:
    """Steps are found; noise, sawteeth, warm-ups, gaps, outliers, drift and cycles are none."""
    make, expected = SIGNALS[name]
    finding = judge(make(seed))
    assert finding.outcome is expected, finding.reason


def test_a_step_is_reported_with_its_time_and_size() -> None:
    """A step without noise is reported exactly: moment, both levels, height."""
    value = np.where(np.arange(1440) < 720, 100.0, 150.0)
    finding = judge(replace(readings(METRIC, value, 60.0, object=PROCESS), trait=day(1).trait))
    assert finding.outcome is Outcome.PASS, "50 bytes are less than a page"
    bare = replace(day(1).trait, quantum=None, floor=0.0)
    finding = judge(replace(readings(METRIC, value, 60.0, object=PROCESS), trait=bare))
    assert finding.outcome is Outcome.WARN
    assert [mark.begin_ns for mark in finding.marks] == [NOON * S]
    assert finding.measured == 50.0
    assert finding.interval == (50.0, 50.0)
    assert "100 B to 150 B (+50 %)" in finding.reason


def test_the_step_is_placed_within_a_reading_under_noise() -> None:
    """A step of 30 sigmas is placed at its reading; the interval of its height holds the truth."""
    finding = judge(stepped())
    assert abs(finding.marks[0].begin_ns - NOON * S) <= 60 * S
    assert finding.interval is not None
    assert finding.interval[0] <= 0.3 * LEVEL <= finding.interval[1]


@pytest.mark.parametrize(
    ("event", "explained"),
    [
        (Event("failover", "dut", "", (NOON - 60) * S, None), True),
        (Event("upgrade", "dut", "", (NOON - 3600) * S, (NOON - 100) * S), True),
        (Event("config.change", "dut", "", (NOON + 100) * S, None), True),
        (Event("failover", "dut", "", (NOON - 600) * S, None), False),
        (Event("gap", "dut", "", NOON * S, NOON * S), False),
        (Event("cpu.hog", "dut", "", NOON * S, None, {"line": "%SYS-3-CPUHOG"}), False),
        (Event("recorder.window", "dut", "", NOON * S, None), False),
        (Event("link.down", "dut", "interface=Gi0/1", NOON * S, None), True),
        (Event("device.identity", "dut", "dut/snmp", NOON * S, None, {"version": "1"}), False),
        (Event("device.identity", "dut", "dut/snmp", NOON * S, None, {"changed": "version was 1, is 2"}), True),
        (Event("process.restart", "dut", "process=other,instance=0", NOON * S, None), False),
    ],
)
def test_an_event_nearby_explains_a_step(event: Event, explained: bool) -> None:
    """What was done within three readings explains; what is far away, another's, or only seen does not."""
    finding = judge(stepped(), event)
    assert finding.outcome is (Outcome.PASS if explained else Outcome.WARN)
    assert (event.kind in finding.reason) == explained
    assert finding.numbers["steps"] == 1
    assert finding.numbers["unexplained"] == float(not explained)


def test_the_machine_feels_all_its_processes() -> None:
    """The restart of a process explains a step of the machine's memory."""
    event = Event("process.restart", "dut", PROCESS, NOON * S, None)
    assert judge(stepped("system.memory.usage"), event).outcome is Outcome.PASS


def test_the_border_of_a_phase_explains_a_step() -> None:
    """What changes when a phase begins is no riddle."""
    phases = (Phase("soak", Window(0, NOON * S)), Phase("stress", Window(NOON * S, DAY * S)))
    finding = judge(stepped(), phases=phases)
    assert finding.outcome is Outcome.PASS
    assert "phase" in finding.reason


def test_a_step_that_follows_the_load_is_reported_per_load_as_well() -> None:
    """Level and load both rise by half: what falls to a thousand of the load stays the same, and both are reported."""
    rate = readings("load.offered.rate", np.where(np.arange(1440) < 720, 1000.0, 1500.0), 60.0)
    reason = judge(stepped(height=0.5), load=(rate,)).reason
    reported = re.search(r"\(([\d.]+) MiB per 1000 request/s before, ([\d.]+) MiB after\)", reason)
    assert reported is not None, reason
    assert float(reported[2]) == pytest.approx(float(reported[1]), rel=0.01)


@pytest.mark.parametrize(
    ("metric", "factor", "explained"),
    [("load.offered.rate", 1.5, True), ("load.offered.rate", 1.05, False), ("load.request.rate", 1.5, False)],
)
def test_a_change_of_the_offered_load_explains_a_step(metric: str, factor: float, explained: bool) -> None:
    """The load that was asked for explains; a small change does not, nor do the answers, which may be the effect."""
    rate = readings(metric, np.where(np.arange(1440) < 720, 1000.0, 1000.0 * factor), 60.0)
    finding = judge(stepped(), load=(rate,))
    assert finding.outcome is (Outcome.PASS if explained else Outcome.WARN)


def test_the_sent_packets_explain_where_nothing_was_asked() -> None:
    """A counter of sent packets tells the load by its rate, and does not explain what comes back."""
    sent = np.cumsum(np.where(np.arange(1440) < 720, 60_000.0, 90_000.0))
    load = (readings("load.tx.packets", sent, 60.0),)
    assert judge(stepped(), load=load).outcome is Outcome.PASS
    assert median_load(load, 0, NOON * S) == pytest.approx(1000.0)
    back = replace(readings("load.rx.packets", sent, 60.0), target="dut")
    assert judge(back, load=load).outcome is Outcome.WARN


def test_a_restart_cuts_the_levels() -> None:
    """A step at a restart of the process lies between two lives; without the event it is one."""
    assert judge(stepped()).outcome is Outcome.WARN
    finding = judge(stepped(), Event("process.restart", "dut", PROCESS, NOON * S, None))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["lives_judged"] == 2
    assert finding.numbers["steps"] == 0


def test_a_sawtooth_is_reported_as_one() -> None:
    """Falls that give back what was gained are counted, and doubted in one sentence."""
    finding = judge(sawtooth(day(2), 0.3 * LEVEL, 10800, 2))
    assert finding.numbers["teeth"] >= 6
    assert any("sawtooth" in caveat for caveat in finding.doubts)


def test_too_short_says_how_much_is_missing() -> None:
    """One hour of the two that are needed: one hour is missing; after a restart each hour counts for itself."""
    short = noise(1, METRIC, 3600, 10.0)
    case = Case("dut", PROCESS, Window(0, 3600 * S), (short,))
    finding = StepChange().judge(case)[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    assert "1 h more" in finding.settle


def test_few_readings_never_pass() -> None:
    """Less than half of the expected readings is inconclusive, though a step that is there is still warned of."""
    sparse = replace(day(1), cadence_s=20.0)
    assert judge(sparse).why is InconclusiveReason.GAP
    assert judge(replace(stepped(), cadence_s=20.0)).outcome is Outcome.WARN


def test_smallest_detectable_is_seen_in_four_of_five() -> None:
    """A step as high as the finding says is seen in 70 to 95 of 100 runs, one of half of it never."""
    stated = float(np.mean([judge(day(seed, sd=0.05)).smallest_detectable or 0 for seed in range(20)]))
    outcomes = [judge(step(day(seed, sd=0.05), stated)).outcome for seed in range(100)]
    assert 60 <= outcomes.count(Outcome.WARN) <= 100
    missed = [judge(step(day(seed, sd=0.05), stated / 2)).outcome for seed in range(50)]
    assert missed.count(Outcome.WARN) == 0


def test_blocks_are_medians_of_means() -> None:
    """A fifth of a block that is far off does not move it; empty stretches are left out."""
    value = np.array([1.0, 1, 50, 1, 1, 2, 2, 2, 2, 2])
    seconds = np.append(np.arange(5.0), np.arange(20.0, 25.0))
    result, indices = medians(seconds, value, 5.0)
    assert result.tolist() == [1.0, 2.0]
    assert indices.tolist() == [0, 4]


def test_the_end_of_a_tooth_is_no_step() -> None:
    """An hour back at a level that was left gradually is no step, and neither is its end; a lasting fall is one."""
    seconds = 300.0 * np.arange(576, dtype=np.float64)
    value = 120 - 20 * np.minimum(seconds / 36000, 1.0)
    for length, teeth in ((12, [True, True]), (200, [True, False])):
        off = value.copy()
        off[300 : 300 + length] += 20
        increments = steps(seconds, off, length_s=300.0, width=8, rise=0.1, sigmas=5.0, least=0.0)
        assert increments is not None
        assert [s.tooth for s in increments.steps] == teeth


def test_no_step_is_sought_across_a_gap() -> None:
    """A drift across a long gap is no step, and the gap is reported."""
    seconds = np.arange(0, DAY, 60.0)
    kept = (seconds < 30_000) | (seconds > 60_000)
    value = 100 + np.where(seconds < 30_000, 0.0, 30.0)
    seen = steps(seconds[kept], value[kept], length_s=225, width=8, rise=0.1, sigmas=5, least=0)
    assert seen is not None
    assert (seen.steps, seen.holes) == ((), 1)


@pytest.mark.parametrize("bad", [{"rise": 0.0}, {"rise": math.nan}, {"sigmas": 1.0}, {"lasting": 0.0}, {"load": 0.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="step_change"):
        StepChange(**bad)


OUTCOMES = """
growth                    | step_change
constant                  | P
white                     | P
AR .9                     | P
AR .99                    | P
AR .999                   | P
pink .4                   | P
pink .45, sd 2            | P
heavy tails               | P
slow noise 3 h            | P
outliers 1 %              | P
variance doubles          | P
quantised 4 %             | P
quantised 4 %, quiet      | P
quantised 1 %             | P
gaps 20 % and 3 h         | P
over half missing         | I
twelve readings           | I
level flips 2 h           | PW
level flips 30 min        | P
bump 10 % for 2 h         | PW
bump back at .9           | PW
dip 15 % for 3 h          | PW
five bumps                | PW
batch job each 6 h        | PW
batch job each 3 h        | P
sawtooth 20 min           | P
sawtooth 1 h              | P
sawtooth 3 h              | P
sawtooth 6 h              | PW
sawtooth 8 h              | PW
wave 4 h                  | PW
wave of a day             | P
half a wave               | P
sawtooth of a day         | PW
warm-up 30 min            | P
warm-up 1 h               | P
warm-up 4 h               | P
warm-up in two stages     | P
warm-up stretched         | P
warm-up, then a step      | PW
warm-up with bumps        | PW
warm-up at .2, untold     | PW
overshoot, then settled   | P
cache full at .4          | P
cache full at .65         | P
cache stairs              | PW
plateau by a sigmoid      | PW
step +10 %                | PW
step +10 % late           | PW
step +20 %                | W
step +25 % at .9          | W
step -10 %                | PW
two steps +4 %            | P
three steps +4 %          | P
falls 5 % a day           | P
falls, then flat          | P
step at an event          | P
restart, warm-up again    | P
load in steps of 3 %      | PW
load hump 6 %             | P
logarithmic 3 %           | P
cache stairs, slow        | PW
leak at tolerance         | P
leak 5, daily wave        | P
leak 6 after a release    | PW
leak 5, sawtooth 8 h      | PW
leak 10                   | P
leak 10, AR .9            | P
leak 20, AR .99           | P
leak 15, pink .4          | P
leak 15, heavy tails      | P
leak 15, sd 3             | P
leak 15, outliers         | P
leak 15, gaps             | P
leak 20, quantised 4 %    | PW
leak 15, sawtooth 20 min  | P
leak 15, sawtooth 1 h     | P
leak 15, sawtooth 3 h     | P
leak 15 after warm-up     | P
leak 15 with a step       | PW
leak 15 with batch jobs   | PW
leak 20 after a release   | PW
leak 8 now and then       | P
leak 12 in steps          | P
leak 10 in big steps      | P
leak doubling each 8 h    | P
leak accelerating         | P
leak 20 from .6           | P
leak 40 from .8           | P
leak 20 over a restart    | PW
leak 15 under a load hump | P
"""
