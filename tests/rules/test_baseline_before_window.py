"""The baseline that an earlier run imported, in the rules that use it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Before, Case
from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.baseline_before_window import baseline_caveat
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.detectors.management_isolation import ManagementIsolation
from soakwatch_rules.detectors.recovery import Recovery
from soakwatch_rules.signals import readings

S = 10**9
BEGIN = 100_000 * S
LENT_DOUBT = "compared with the baseline of an earlier run"
PEER = "peer=192.0.2.1,protocol=icmp"


def noisy(metric: str, level: np.ndarray, begin_ns: int, every_s: float = 10.0, name: str = "") -> Series:
    """Readings about a level, 2 % of it wide."""
    chance = np.random.default_rng(level.size)
    return readings(
        metric, level * (1 + 0.02 * chance.normal(size=level.size)), every_s, object=name, begin_ns=begin_ns
    )


def stressed(baselines: tuple[Series, ...], series: Series) -> Case:
    """A run that begins with its stress, 600 s of it, and then recovers for an hour."""
    end_ns = BEGIN + 4200 * S
    phases = (Phase("stress", Window(BEGIN, BEGIN + 600 * S)), Phase("recovery", Window(BEGIN + 600 * S, end_ns)))
    return Case("dut", "", Window(BEGIN, end_ns), (series,), phases=phases, before=Before(baseline=baselines))


def after_stress(level: float) -> Series:
    """Busy under stress, then at a level."""
    return noisy("system.cpu.utilization", np.repeat([0.8, level], [60, 360]), BEGIN)


LENT = noisy("system.cpu.utilization", np.full(200, 0.3), 0)


@pytest.mark.parametrize(("level", "outcome"), [(0.3, Outcome.PASS), (0.45, Outcome.FAIL)])
def test_recovery_without_a_calm_of_its_own_takes_the_imported_one(level: float, outcome: Outcome) -> None:
    """And says that it did; without it nothing is known."""
    (finding,) = Recovery().judge(stressed((LENT,), after_stress(level)))
    assert finding.outcome is outcome, finding.reason
    assert f"{LENT_DOUBT}, whose load is not known here" in finding.doubts
    (unknown,) = Recovery().judge(stressed((), after_stress(level)))
    assert (unknown.outcome, unknown.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)


def test_recovery_takes_no_imported_readings_that_lie_farther_apart() -> None:
    """Means of thirty of them would say nothing of means of thirty of its own."""
    sparse = noisy("system.cpu.utilization", np.full(200, 0.3), 0, every_s=60)
    (finding,) = Recovery().judge(stressed((sparse,), after_stress(0.3)))
    assert finding.why is InconclusiveReason.NO_REFERENCE


def test_recovery_prefers_its_own_calm() -> None:
    """The imported level is another: that does not matter."""
    own = noisy("system.cpu.utilization", np.repeat([0.6, 0.8, 0.6], [180, 60, 360]), BEGIN)
    index = BEGIN + 1800 * S
    phases = (
        Phase("soak", Window(BEGIN, index)),
        Phase("stress", Window(index, index + 600 * S)),
        Phase("recovery", Window(index + 600 * S, index + 4200 * S)),
    )
    case = Case("dut", "", Window(BEGIN, index + 4200 * S), (own,), phases=phases, before=Before(baseline=(LENT,)))
    (finding,) = Recovery().judge(case)
    assert finding.outcome is Outcome.PASS
    assert not [caveat for caveat in finding.doubts if LENT_DOUBT in caveat]


def test_management_is_compared_with_the_imported_round_trip_where_the_load_was_always_high() -> None:
    """Twenty times as long as in the earlier baseline warns; without one only the limits are judged."""
    phases = (Phase("stress", Window(BEGIN, BEGIN + 900 * S)),)
    late = noisy("reach.round_trip", np.full(900, 0.04), BEGIN, 1.0, PEER)
    series = noisy("reach.round_trip", np.full(400, 0.002), 0, 1.0, PEER)
    case = Case("dut", "", Window(BEGIN, BEGIN + 900 * S), (late,), phases=phases)
    (alone,) = ManagementIsolation().judge(case)
    assert alone.outcome is Outcome.PASS
    assert "only absolute limits were judged" in alone.doubts[0]
    (held,) = ManagementIsolation().judge(replace(case, before=Before(baseline=(series,))))
    assert held.outcome is Outcome.WARN
    assert LENT_DOUBT in held.doubts


def test_a_spike_is_compared_with_the_imported_level() -> None:
    """A device that is busy from the first reading on has no level of its own to spike from."""
    busy = noisy("system.cpu.utilization", np.full(420, 0.97), BEGIN, 1.0)
    case = Case("dut", "", Window(BEGIN, BEGIN + 420 * S), (busy,))
    (alone,) = CpuSpike().judge(case)
    (held,) = CpuSpike().judge(
        replace(case, before=Before(baseline=(noisy("system.cpu.utilization", np.full(200, 0.3), 0, 1.0),)))
    )
    assert (alone.outcome, held.outcome) == (Outcome.INCONCLUSIVE, Outcome.FAIL)
    assert LENT_DOUBT in held.doubts


def test_the_baseline_before_a_search_is_the_runs_own() -> None:
    """Behind a search for the capacity the readings before the window are those of the run itself."""
    lent = stressed((LENT,), after_stress(0.3))
    assert baseline_caveat(lent) == (LENT_DOUBT,)
    searched = (Phase("baseline", Window(0, S)), Phase("capacity", Window(S, BEGIN)), *lent.phases)
    own = ("compared with the baseline before the search for the capacity",)
    assert baseline_caveat(replace(lent, phases=searched)) == own
    assert baseline_caveat(replace(lent, phases=searched[1:])) == (LENT_DOUBT,)
    assert baseline_caveat(replace(lent, before=replace(lent.before, baseline=()))) == ()
