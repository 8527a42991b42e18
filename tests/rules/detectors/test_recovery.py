"""recovery: levels that come back, that do not, that leave something behind, and what cannot be decided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.recovery import Recovery
from soakwatch_rules.episodes import episodes
from soakwatch_rules.signals import noise, readings
from soakwatch_rules.stats.return_to_level import correlation_time, reference, returned, trend

S = 10**9
APART = 10
BEFORE, STRESS, AFTER = 3600, 600, 7200
END = BEFORE + STRESS + AFTER
PHASES = {"soak": (0, BEFORE), "stress": (BEFORE, BEFORE + STRESS), "recovery": (BEFORE + STRESS, END)}

Floats = NDArray[np.float64]


def window(begin: float, end: float) -> Window:
    """A window in seconds."""
    return Window(round(begin * S), round(end * S))


def phased(edges: Mapping[str, tuple[float, float]]) -> tuple[Phase, ...]:
    """Phases in seconds."""
    return tuple(Phase(name.rstrip("0123456789"), window(*edge)) for name, edge in edges.items())


def after(shape: str, t: Floats) -> Floats:
    """How far a level of 100 is off, ``t`` seconds after the stress."""
    shapes = {
        "none": np.zeros(t.size),
        "step": np.where(t < 600, 60.0, 0.0),
        "exp": 60 * np.exp(-t / 300),
        "relapse": np.where((t < 600) | ((t >= 1200) & (t < 1500)), 60.0, 0.0),
        "slow": np.where(t < 3600, 60.0, 0.0),
        "never": np.full(t.size, 60.0),
        "residue": np.where(t < 600, 60.0, 15.0),
        "lower": np.where(t < 600, 60.0, -20.0),
        "late relapse": np.where((t < 600) | (t >= 6900), 60.0, 0.0),
        "late": np.where(t < 6950, 60.0, 0.0),
        "swing": 40 * np.exp(-t / 480) * np.cos(2 * np.pi * t / 240),
        "endless swing": 40 * np.cos(2 * np.pi * t / 240),
    }
    return shapes[shape]


def shaped(shape: str, seed: int = 1, sd: float = 0.02, phi: float = 0.0, metric: str = "load.latency") -> Series:
    """An hour of calm at 100, ten minutes of stress, two hours after it."""
    base = noise(seed, metric, END, APART, 100.0, sd, phi)
    off, t = np.zeros(len(base)), base.seconds
    off[(t >= BEFORE) & (t < BEFORE + STRESS)] = 60.0
    off[t >= BEFORE + STRESS] = after(shape, t[t >= BEFORE + STRESS] - BEFORE - STRESS)
    bare = replace(base.trait, quantum=None, floor=0.0)
    return replace(base, value=base.values + off, trait=bare)


def judge(series: Series, *, rule: Recovery | None = None, **more: object) -> Finding:
    """The one finding of one series over the whole run."""
    case = Case("dut", series.object, window(0, END), (series,), phases=phased(PHASES))
    return (rule or Recovery()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


SHAPES = {
    "none": (Outcome.PASS, 0.0),
    "step": (Outcome.PASS, 600.0),
    "exp": (Outcome.PASS, 750.0),
    "relapse": (Outcome.PASS, 1500.0),
    "slow": (Outcome.PASS, 3600.0),
    "never": (Outcome.FAIL, None),
    "residue": (Outcome.FAIL, None),
    "late relapse": (Outcome.INCONCLUSIVE, None),
    "late": (Outcome.INCONCLUSIVE, None),
}


@pytest.mark.parametrize(("shape", "phi", "seed"), list(product(SHAPES, (0.0, 0.9), range(3))))
def test_shapes_of_known_truth(shape: str, phi: float, seed: int) -> None:
    """Each way back gets its outcome, and the time of it to within a window (400 s in correlated noise)."""
    expected, seconds = SHAPES[shape]
    finding = judge(shaped(shape, seed, phi=phi))
    assert finding.outcome is expected, finding.reason
    if seconds is not None:
        assert finding.measured is not None
        assert abs(finding.measured - seconds) <= max(finding.numbers["window"], 400.0 if phi else 0.0)
    else:
        assert finding.measured is None


def test_without_noise_the_time_is_exact() -> None:
    """A level that is back after 600 s exactly has that time; nothing is left."""
    finding = judge(shaped("step", sd=0.0))
    assert finding.measured == 600.0
    assert finding.numbers["residue"] == 0.0
    assert finding.interval == (300.0, 900.0)
    assert finding.limit == AFTER
    assert "recovered 10 min (± 5 min) after the stress" in finding.reason


def test_a_relapse_is_seen() -> None:
    """It had come back for ten minutes: the finding tells, and the time is that of the second return."""
    finding = judge(shaped("relapse"))
    assert finding.numbers["relapses"] == 1
    assert any("left the band again" in caveat for caveat in finding.doubts)


@pytest.mark.parametrize(("phi", "seed"), list(product((0.0, 0.9), range(3))))
def test_a_swing_whose_mean_is_back_is_not_back(phi: float, seed: int) -> None:
    """The means of windows longer than a turn never leave: it is back where the swing is within the band, at 990 s."""
    finding = judge(shaped("swing", seed, phi=phi))
    assert finding.outcome is Outcome.PASS
    assert finding.measured == pytest.approx(990, abs=400 if phi else 250)


def test_what_swings_to_the_end_is_pending() -> None:
    """A level that swings by 40 % around what it was before has not come back; it is reported by how much it swings."""
    finding = judge(shaped("endless swing"))
    assert (finding.outcome, finding.why, finding.measured) == (Outcome.INCONCLUSIVE, InconclusiveReason.PENDING, None)
    assert "still oscillates by" in finding.reason


def test_a_swing_that_was_there_before_is_no_trace() -> None:
    """Where the calm swings likewise, the time after does not count as away."""
    series = shaped("none")
    series = replace(series, value=series.values + 6 * np.sin(2 * np.pi * series.seconds / 240))
    finding = judge(series)
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)


def test_too_late_fails() -> None:
    """Back after ten minutes where five were allowed."""
    assert judge(shaped("step"), rule=Recovery(within=300)).outcome is Outcome.FAIL
    assert judge(shaped("step"), rule=Recovery(within=900)).outcome is Outcome.PASS


def test_what_may_still_come_back_is_pending() -> None:
    """With three hours to recover, two without a return decide nothing, and say that one is missing."""
    finding = judge(shaped("never"), rule=Recovery(within=10800))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.PENDING)
    assert "1 h more" in finding.settle


def test_less_memory_than_before_is_harmless() -> None:
    """Memory that settles lower is a warning; a latency that settles lower fails (nobody says that low is good)."""
    assert judge(shaped("lower", metric="system.memory.usage")).outcome is Outcome.WARN
    assert judge(shaped("lower")).outcome is Outcome.FAIL
    assert judge(shaped("never", metric="system.memory.usage")).outcome is Outcome.FAIL


def test_a_residue_of_the_band_is_not_passed_lightly() -> None:
    """A residue as large as the band is inconclusive or worse in at least 80 of 100 runs."""

    def left(seed: int) -> Series:
        base = shaped("none", seed)
        return replace(base, value=base.values + 5.0 * (base.seconds >= BEFORE + STRESS))

    outcomes = [judge(left(seed)).outcome for seed in range(100)]
    assert outcomes.count(Outcome.PASS) <= 20
    assert outcomes.count(Outcome.FAIL) <= 10


def test_the_baseline_phase_is_used_and_the_load_decides() -> None:
    """An idle baseline is not the level of a loaded recovery: the soak before is; without one nothing compares."""
    edges = {"baseline": (0.0, 1800.0), "soak": (1800.0, 3600.0), "stress": (3600.0, 4200.0), "recovery": (4200.0, END)}
    series = shaped("step")
    value = np.where(series.seconds < 1800, 20.0, series.values)
    offered = readings("load.offered.rate", np.where(series.seconds < 1800, 0.0, 1000.0), APART)
    idle = replace(series, value=value)
    assert judge(idle, phases=phased(edges), load=(offered,)).outcome is Outcome.PASS
    del edges["soak"]
    edges["ramp"] = (1800.0, 3600.0)
    finding = judge(idle, phases=phased(edges), load=(offered,))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "load" in finding.reason


def test_nothing_to_recover_from() -> None:
    """A run without stress, and one whose failover is not over, is not judged."""
    soak = phased({"soak": (0, END)})
    assert judge(shaped("none"), phases=soak).outcome is Outcome.NOT_APPLICABLE
    unended = Event("failover", "dut", "", BEFORE * S, None)
    assert judge(shaped("none"), phases=soak, events=(unended,)).outcome is Outcome.NOT_APPLICABLE


def test_an_event_with_an_end_is_stress() -> None:
    """A failover in a soak, with or without phases, is recovered from within the hour that is judged."""
    event = Event("failover", "dut", "", BEFORE * S, (BEFORE + STRESS) * S)
    for phases in ((), phased({"soak": (0, END)})):
        finding = judge(shaped("step"), phases=phases, events=(event,))
        assert finding.outcome is Outcome.PASS
        assert finding.measured == pytest.approx(600, abs=300)
        assert finding.limit == 3600


def test_a_restart_is_reported() -> None:
    """It came back because it was started anew: judged on, with a caveat."""
    reboot = Event("reboot", "dut", "", (BEFORE + STRESS + 500) * S, None)
    finding = judge(shaped("step"), events=(reboot,))
    assert finding.outcome is Outcome.PASS
    assert any("restarted at" in caveat for caveat in finding.doubts)


def repeated(left: Sequence[float], metric: str = "system.memory.usage", level: float = 1000.0) -> Finding:
    """Stress and recovery again and again, each leaving so many thousandths above the level."""
    edges: dict[str, tuple[float, float]] = {"soak": (0, 3600)}
    parts = [np.full(360, 1000.0)]
    for i, rest in enumerate(left):
        begin = 3600.0 + 4200 * i
        edges |= {f"stress{i}": (begin, begin + 600), f"recovery{i}": (begin + 600, begin + 4200)}
        parts += [np.full(60, 1600.0), np.full(360, 1000.0 + rest)]
    value = np.concatenate(parts)
    value = value + np.random.default_rng(3).normal(0, 5, value.size)
    series = readings(metric, value * level / 1000, APART)
    series = replace(series, trait=replace(series.trait, quantum=None, floor=0.0))
    case = Case("dut", "", window(0, value.size * APART), (series,), phases=phased(edges))
    return Recovery().judge(case)[0]


def test_what_is_left_adds_up() -> None:
    """Five repetitions that leave 8 of 1000 more each stay in the band, but grow: a warning with the step."""
    finding = repeated([0, 8, 16, 24, 32])
    assert finding.outcome is Outcome.WARN
    assert finding.numbers["residue_per_repetition"] == pytest.approx(8, abs=1)
    assert repeated([0, 0, 0, 0, 0]).outcome is Outcome.PASS
    assert repeated([32, 24, 16, 8, 0]).outcome is Outcome.PASS, "memory that falls is no worry"


LEVELS = {
    "system.cpu.utilization": 0.4,
    "system.cpu.module.utilization": 0.4,
    "system.memory.usage": 4e9,
    "system.memory.pool.usage": 4e8,
    "queue.depth": 400.0,
    "queue.usage": 4e6,
    "load.latency": 0.002,
    "system.sessions": 40_000.0,
    "system.conntrack.count": 40_000.0,
}


@pytest.mark.parametrize("metric", LEVELS)
def test_each_level_that_stress_moves_is_held_to_its_way_back(metric: str) -> None:
    """CPU, memory, queues, latency and connection tables: back passes, away fails, a growing rest warns."""
    assert metric in Recovery.metrics
    back, away, grows = (
        repeated(left, metric, LEVELS[metric]) for left in ([0, 0, 0], [0, 0, 300], [0, 8, 16, 24, 32])
    )
    assert back.outcome is Outcome.PASS, back.reason
    assert back.measured == pytest.approx(0, abs=60)
    assert away.outcome is Outcome.FAIL, away.reason
    assert grows.outcome is Outcome.WARN, grows.reason
    step = grows.numbers["residue_per_repetition"]
    assert step == pytest.approx(0.008 * LEVELS[metric], rel=0.15)
    assert "grows by" in grows.reason


def test_the_worst_repetition_decides() -> None:
    """One of three that does not come back fails, and is named."""
    finding = repeated([0, 300, 0])
    assert finding.outcome is Outcome.FAIL
    assert "1970-01-01 02:10:00" in finding.reason
    assert finding.numbers["episodes"] == 3


def test_spikes_in_quick_succession_do_not_block_the_rest() -> None:
    """A spike followed by five minutes is too short to judge; the stress after it is judged, and that is reported."""
    edges = {
        "soak": (0, 2700),
        "spike": (2700, 3300),
        "soak1": (3300, 3600),
        "stress": (3600, 4200),
        "recovery": (4200, END),
    }
    finding = judge(shaped("step"), phases=phased(edges))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["episodes"] == 2
    assert any("1 episode is too short" in caveat for caveat in finding.doubts)


def test_a_job_that_ran_before_is_no_relapse() -> None:
    """Five minutes of work each half hour, before the stress as after it, leave the outcome as it is."""
    series = shaped("step", sd=0.01)
    busy = replace(series, value=series.values + 30 * ((series.seconds % 1800) < 300))
    finding = judge(busy)
    assert finding.outcome is not Outcome.FAIL
    assert finding.numbers["relapses"] <= 1


def test_too_little_after_or_before() -> None:
    """Nine minutes of recovery are too short for two windows, five readings before tell no level."""
    short = phased({**PHASES, "recovery": (4200, 4740)})
    finding = judge(shaped("step"), phases=short)
    assert (finding.why, "1 min more" in finding.settle) == (InconclusiveReason.TOO_SHORT, True)
    early = phased({"soak": (0, 50), "stress": (50, 4200), "recovery": (4200, END)})
    assert judge(shaped("step"), phases=early).why is InconclusiveReason.NO_REFERENCE
    series = shaped("step")
    thin = replace(series, time_ns=series.time_ns[::3], value=series.value[::3])
    assert judge(thin).why is InconclusiveReason.GAP


def test_neighbouring_stress_phases_are_one_episode() -> None:
    """A spike, a ramp and stress in a row are one; a recovery between makes two; a cooldown ends the time after."""
    edges = {
        "soak": (0.0, 100.0),
        "spike": (100.0, 110.0),
        "ramp": (110.0, 120.0),
        "stress": (120.0, 130.0),
        "recovery1": (130.0, 200.0),
        "stress2": (200.0, 210.0),
        "soak2": (210.0, 300.0),
        "cooldown": (300.0, 400.0),
    }
    case = Case("dut", "", window(0, 400), phases=phased(edges))
    first, second = episodes(case, 3600 * S, 60 * S)
    assert (first.stress, first.after) == (window(100, 130), window(130, 200))
    assert (second.stress, second.after) == (window(200, 210), window(210, 300))
    assert first.before == second.before == (window(40, 100),)


def test_neighbouring_recoveries_are_one() -> None:
    """A recovery in two levels of load is one: the time after lasts to the end of the second; a soak ends it."""
    edges = {
        "soak": (0.0, 100.0),
        "spike": (100.0, 110.0),
        "recovery1": (110.0, 113.0),
        "recovery2": (113.0, 200.0),
        "soak2": (200.0, 210.0),
        "recovery3": (210.0, 300.0),
    }
    (result,) = episodes(Case("dut", "", window(0, 300), phases=phased(edges)), 3600 * S, 60 * S)
    assert result.after == window(110, 200)


def test_correlation_time_of_an_ar1() -> None:
    """White noise counts each reading; AR(1) of .9 needs about 19 for one; constants count each."""
    assert correlation_time(noise(1, seconds=86400, cadence_s=10).values) == pytest.approx(1, abs=0.3)
    assert correlation_time(noise(1, seconds=864000, cadence_s=10, phi=0.9).values) == pytest.approx(19, rel=0.25)
    assert correlation_time(np.full(100, 7.0)) == 1.0
    assert correlation_time(np.empty(0)) == 1.0


def test_a_window_is_near_by_hand() -> None:
    """Readings of exactly the level are near at once; half of them off by the tolerance and a bit are outside."""
    before = reference(np.full(100, 10.0))
    back = returned(np.full(100, 10.0), before, 0.5)
    assert back is not None
    assert (back.index, back.outside, back.residue, back.residue_half) == (0, False, 0.0, 0.0)
    away = returned(np.where(np.arange(100) < 50, 10.6, 10.0), before, 0.5)
    assert away is not None
    assert (away.index, away.last) == (51, 24), "from 24 on 26 of 30 are off by 0.6: 0.52"
    assert returned(np.full(59, 10.0), before, 0.5) is None


def test_trend_of_residues() -> None:
    """A rise of one each time is sure with small errors and unsure with large ones; two say nothing."""
    rising = np.array([0.0, 1.0, 2.0, 3.0])
    sure, unsure = trend(rising, np.full(4, 0.1)), trend(rising, np.full(4, 10.0))
    assert sure is not None
    assert unsure is not None
    assert sure.step == pytest.approx(1.0)
    assert sure.p_up < 1e-6
    assert unsure.p_up > 0.3
    assert trend(rising[:2], np.full(2, 0.1)) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"tolerance": 0.0},
        {"tolerance": math.nan},
        {"share": 1.0},
        {"within": -1.0},
        {"look": 0.0},
        {"load": 0.0},
        {"kept": -0.1},
    ],
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="recovery"):
        Recovery(**bad)


OUTCOMES = """
recovery                    | recovery
back after a step           | P
back slowly                 | P
back swinging               | P
back swinging fast          | P
back, relapse, back         | P
back after a step, AR noise | PI
residue 5 %                 | PIF
residue 10 %                | WF
residue 20 %                | F
never back                  | F
seen for 2 min after        | I
"""
