"""trend: levels that creep the wrong way, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric_queries import trending
from soakwatch_model.window import Window
from soakwatch_rules.detectors.trend import Trend
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.families import named
from soakwatch_testing.scenarios.shapes import correlated

S = 10**9
DAY = Window(0, 86400 * S)
N = 1440


def judged(name: str, rule: Trend | None = None, **more: object) -> Finding:
    """The finding of a scenario."""
    case = named("creep", name).signal(1).case
    return (rule or Trend()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


def of(metric: str, value: np.ndarray[tuple[int], np.dtype[np.float64]], *events: Event) -> Finding:
    """The finding of a day of readings by the minute."""
    series = readings(metric, value, 60.0)
    return Trend().judge(Case("dut", "", DAY, (series,), events=events))[0]


def test_a_creep_says_from_where_to_where_and_how_fast() -> None:
    finding = of("system.cpu.utilization", np.linspace(0.05, 0.53, N))
    assert finding.outcome is Outcome.FAIL
    assert finding.reason == "CPU rose steadily from 5.48 % to 52.5 % in 24 h (2 points/h); 10 points allowed"
    # levels, as they are drawn: where it came to, and where it might have come to
    assert finding.measured == pytest.approx(0.525, abs=0.01)
    assert finding.limit == pytest.approx(0.155, abs=0.01)
    assert len(finding.marks) == 1


def test_the_direction_is_that_of_the_catalogue() -> None:
    assert of("system.cpu.utilization", np.linspace(0.53, 0.05, N)).outcome is Outcome.PASS
    finding = of("system.sessions.rate", np.linspace(500.0, 100.0, N))
    assert finding.outcome is Outcome.WARN
    assert "fell steadily" in finding.reason
    assert finding.limit is not None
    assert finding.measured is not None
    assert finding.measured < finding.limit < finding.numbers["first"]


def test_a_metric_of_context_only_warns_and_says_so() -> None:
    finding = judged("core creeps by 30 points")
    assert finding.outcome is Outcome.WARN
    assert finding.reason.endswith("it only warns: work moves between cores; the CPU of all together fails")


def test_many_series_need_more_certainty() -> None:
    """With more series in the run the same evidence decides less: it never fails by chance of one in many."""
    wavering = named("creep", "CPU creeps by 14 points").signal(2).case
    alone, among = (Trend().judge(replace(wavering, family=m))[0] for m in (1, 400))
    assert alone.numbers["probability"] <= 1
    assert {alone.outcome, among.outcome} <= {Outcome.FAIL, Outcome.WARN}


def busy(*points: tuple[float, float], hours: float = 72.0, seed: int = 1) -> Case:
    """CPU of so many hours that goes through points (hour, share), with noise, at most .97; the load is steady."""
    t = np.arange(round(60 * hours)) / 60
    way = np.interp(t, [hour for hour, _ in points], [share for _, share in points])
    value = np.minimum(way + 0.02 * np.random.default_rng(seed).standard_normal(t.size), 0.97)
    load = readings("load.offered.rate", np.full(t.size, 1000.0), 60.0)
    window = Window(0, round(3600 * hours) * S)
    return Case("dut", "", window, (readings("system.cpu.utilization", value, 60.0),), load=(load,))


def test_a_share_that_came_to_its_ceiling_is_judged_until_then() -> None:
    finding = Trend().judge(busy((0.0, 0.05), (31.0, 0.98), (72.0, 0.98)))[0]
    assert finding.outcome is Outcome.FAIL
    assert finding.reason.startswith("CPU rose steadily from 5.")
    assert ", and stayed at 96." in finding.reason
    assert [mark.begin_ns for mark in finding.marks] == [0]
    assert finding.marks[0].end_ns is not None
    assert 28 < finding.marks[0].end_ns / (3600 * S) < 33, "where it came to its ceiling"


def test_the_load_is_asked_on_the_way_to_the_ceiling() -> None:
    case = busy((0.0, 0.3), (40.0, 0.96), (72.0, 0.96))
    climbs = 1000 * np.interp(np.arange(4320) / 60, [0.0, 40.0, 72.0], [0.3, 0.96, 0.96])
    finding = Trend().judge(replace(case, load=(readings("load.offered.rate", climbs, 60.0),)))[0]
    assert finding.outcome is not Outcome.FAIL


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "points",
    [
        ((0.0, 0.3), (6.0, 0.6), (72.0, 0.6)),
        ((0.0, 0.3), (36.0, 0.3), (36.1, 0.95), (72.0, 0.95)),
        ((0.0, 0.2), (16.0, 0.2), (16.1, 1.0), (24.0, 1.0)),
        ((0.0, 0.3), (24.0, 0.6), (72.0, 0.6)),
        ((0.0, 0.95), (72.0, 0.95)),
    ],
    ids=["warm-up of 6 h", "step to the top", "job of the last 8 h", "one plateau", "always at the top"],
)
def test_a_healthy_way_to_a_level_that_stays(points: tuple[tuple[float, float], ...], seed: int) -> None:
    assert Trend().judge(busy(*points, hours=points[-1][0], seed=seed))[0].outcome is Outcome.PASS


def test_a_warm_up_slows_down_before_its_ceiling() -> None:
    hours = np.arange(0.0, 48.0, 0.25)
    for seed in range(4):
        points = tuple(zip(hours.tolist(), (0.95 - 0.4 * np.exp(-hours / 4)).tolist(), strict=True))
        assert Trend().judge(busy(*points, hours=48.0, seed=seed))[0].outcome is Outcome.PASS


def heated(kelvin: float, phase: float, seed: int) -> Case:
    """A day of a sensor in a room whose wave of 4 K begins at a phase, read in halves, beside a steady load."""
    share = np.arange(N) / N
    noise = correlated(15.0, 0.6)(np.random.default_rng(seed), 24 * share)
    value = 40 + kelvin * share + 4 * np.sin(2 * np.pi * (share + phase)) + noise
    load = readings("load.offered.rate", np.full(N, 1000.0), 60.0)
    series = readings("system.temperature", np.round(2 * value) / 2, 60.0)
    return Case("dut", "", DAY, (series,), load=(load,), family=20)


@pytest.mark.parametrize("phase", [0.0, 0.4, 0.5, 0.6, 0.7, 0.8])
def test_a_room_that_cools_hides_no_30_kelvin_a_day(phase: float) -> None:
    assert Trend().judge(heated(30.0, phase, 1))[0].outcome is Outcome.FAIL
    assert Trend().judge(heated(0.0, phase, 1))[0].outcome is Outcome.PASS


def test_a_large_rise_in_every_part_fails_though_its_shape_leaves_a_doubt() -> None:
    """Jobs and a wave leave more than one shape; what rises threefold and in each eighth of the day rises."""
    case = named("creep", "CPU creeps under jobs").signal(5).case
    share = np.arange(N) / N
    noise = correlated(90.0, 0.02)(np.random.default_rng(5), 24 * share)
    value = 0.2 + 0.36 * share + 0.035 * np.sin(2 * np.pi * (share + 0.45)) + noise
    series = readings("system.cpu.utilization", value, 60.0)
    finding = Trend().judge(replace(case, series=(series,), family=20))[0]
    assert finding.outcome is Outcome.FAIL
    assert 0.5 < finding.numbers["probability"] < 0.999
    assert Trend().judge(replace(case, series=(series,), family=20, load=()))[0].outcome is Outcome.WARN


def test_a_doubt_of_the_shape_is_said_as_one() -> None:
    finding = named("creep", "CPU creeps under a wave of the load").signal(5).case
    assert (
        "but its shape leaves a doubt whether it still rises (probability of it: " in Trend().judge(finding)[0].reason
    )


def test_a_reboot_parts_lives() -> None:
    value = np.concatenate([np.linspace(0.1, 0.4, 720), np.linspace(0.1, 0.4, 720)])
    event = Event("reboot", "dut", "", 43200 * S, None)
    finding = of("system.cpu.utilization", value, event)
    assert finding.outcome is Outcome.WARN, "12 h, load not known"
    assert "in 12 h" in finding.reason


def test_a_rise_in_a_morning_is_no_failure() -> None:
    assert "may be a part of a daily wave" in judged("CPU creeps in 8 h, load not known").reason
    assert "the room may have become warmer" in judged("board, morning of 10 h").reason


def test_too_little_never_passes() -> None:
    series = readings("system.cpu.utilization", np.full(100, 0.1), 60.0)
    finding = Trend().judge(Case("dut", "", Window(0, 6000 * S), (series,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)
    few = readings("system.cpu.utilization", np.full(10, 0.1), 8640.0)
    finding = Trend().judge(Case("dut", "", DAY, (few,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    holes = readings("system.cpu.utilization", np.full(600, 0.1), 60.0)
    finding = Trend().judge(Case("dut", "", DAY, (holes,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_a_life_without_most_of_its_samples_is_no_pass() -> None:
    """The hours before a reboot were read, of those after it a third: enough of the run, and not of that life."""
    series = readings("system.cpu.utilization", np.full(N, 0.05), 60.0)
    read = np.arange(N) < 2 * N // 3
    holes = replace(series, time_ns=series.time_ns[read], value=series.value[read])
    reboot = Event("reboot", "dut", "", N // 2 * 60 * S, None)
    finding = Trend().judge(Case("dut", "", DAY, (holes,), events=(reboot,)))[0]
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)
    assert finding.reason == "CPU: no sample in 67 % of 12 h"


def test_the_catalogue_says_what_is_judged() -> None:
    assert Trend.metrics == trending()


@pytest.mark.parametrize(
    "bad", [{"points": 0.0}, {"kelvin": 0.0}, {"share": 0.0}, {"risk": 0.0}, {"risk": 0.5}, {"shortest": 0.0}]
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="trend"):
        Trend(**bad)


OUTCOMES = """
creep                                        | trend
CPU flat                                     | P
CPU flat, wanders                            | P
CPU under a wave of the load                 | P
CPU under a ramp of the load                 | PW
CPU of a day, load not known                 | P
CPU warm-up of 2 h                           | P
CPU warm-up of 5 h                           | P
CPU step                                     | P
CPU step under the load                      | P
CPU climb under the load to its top          | PW
CPU at its top for the last 8 h              | P
CPU warm-up of 5 h to its top                | P
CPU climb of 6 h, then flat                  | P
CPU with jobs                                | P
CPU half a wave in 12 h                      | PW
CPU creeps by 4 points                       | P
board warms up                               | P
board, room of a day                         | P
board, morning of 10 h                       | PW
p99 flat                                     | P
p99 under a wave of the load                 | P
p99 cold at first                            | P
run queue flat                               | P
CPU creeps by 14 points                      | FWp
CPU creeps by 30 points                      | Fp
CPU creeps ever faster                       | Fw
CPU creeps under a wave of the load          | FWp
CPU creeps, load not known                   | FWp
CPU creeps under jobs                        | Fwp
CPU creeps to its top                        | F
CPU creeps to its top, load not known        | FW
CPU creeps to its top in 8 h, load not known | Wp
CPU creeps in 8 h                            | Fwp
CPU creeps in 8 h, load not known            | Wp
board creeps by 16 K                         | FW
board creeps under a room of a day           | FWp
board creeps by 34 K under a room of a day   | Fwp
p99 creeps by 75 %                           | FWp
p99 creeps by 150 %                          | Fp
core creeps by 30 points                     | Wp
run queue doubles                            | Wp
sessions a second fall                       | W
"""
