"""forecast: what will be full before the time that the plan asks for, what will not, and what a run leaves open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import FullIn
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.forecast import Forecast
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import times

S = 10**9
N = 1440
DAY = 86400.0
ASKED = Forecast(not_before=180 * DAY)
T: Floats = np.arange(N) / N


def table(value: Floats, limit: float | None = 1e6) -> Series:
    """A connection table of a million, as shares of it, read each minute."""
    series = readings("system.conntrack.count", np.round(value * 1e6), 60.0)
    return replace(series, trait=replace(series.trait, ceiling=limit))


def judge(series: Series, rule: Forecast = ASKED, events: tuple[Event, ...] = ()) -> Finding:
    """What is said of one series."""
    return rule.judge(Case("fw", "", Window(0, N * 60 * S), (series,), events=events))[0]


def used(a_day: float, tall: float = 1e-4, seed: int = 1) -> Floats:
    """40 % in use and growth of a share a day."""
    return np.asarray(0.4 + a_day * T + tall * np.random.default_rng(seed).standard_normal(N))


def test_a_plan_that_asks_for_no_time_reads_nothing() -> None:
    """Without a time the rule has no metric to read and gives no verdict."""
    assert Forecast().metrics_read == ()
    finding = judge(table(used(0.5)), Forecast())
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "forecast: {not_before: 180d}" in finding.reason


def test_it_fails_what_is_full_too_early_and_passes_what_is_not() -> None:
    """1 % a day is full in 60 days, and 0.1 % in 600."""
    finding = judge(table(used(0.01)))
    assert finding.outcome is Outcome.FAIL
    full = finding.fact(FullIn)
    assert full is not None
    assert full.after_s == pytest.approx(59 * DAY, rel=0.02)
    assert 57 * DAY < full.not_before_s <= 59 * DAY
    assert "full in 58 d, with 95 % not before 58 d; asked for 180 d" in finding.reason
    finding = judge(table(used(0.001)))
    assert finding.outcome is Outcome.PASS
    assert finding.measured is not None
    assert finding.measured > 180 * DAY


def test_noise_that_hides_the_answer_is_inconclusive_and_names_the_length_that_decides() -> None:
    """A slope whose bounds lie on both sides of what is allowed: half a percent a day in 2 % of noise."""
    finding = judge(table(used(0.001, tall=0.05)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.why is InconclusiveReason.NOISE
    assert "a run of about" in finding.settle


def test_a_restart_empties_so_that_only_what_follows_counts() -> None:
    """Growth before the last restart is not carried on; less than two hours after it nothing is known."""
    value = np.where(T < 0.5, 0.4 + 0.2 * T, 0.1) + 1e-4 * np.random.default_rng(2).standard_normal(N)
    reboot = Event("reboot", "fw", "", N * 30 * S, None)
    assert judge(table(value), events=(reboot,)).outcome is Outcome.PASS
    late = Event("reboot", "fw", "", (N - 60) * 60 * S, None)
    finding = judge(table(value), events=(late,))
    assert finding.why is InconclusiveReason.TOO_SHORT
    assert "1 h since the last restart, 2 h needed" in finding.reason


def test_without_a_limit_or_where_it_is_always_full_it_does_not_apply() -> None:
    """A table of unknown size, and a read-only image."""
    assert judge(table(used(0.1), None)).outcome is Outcome.NOT_APPLICABLE
    image = replace(readings("system.filesystem.usage", np.full(N, 100.0), 60.0), object="mountpoint=/cd")
    image = replace(image, trait=replace(image.trait, ceiling=100.0))
    assert judge(image).outcome is Outcome.NOT_APPLICABLE
    assert judge(table(np.minimum(0.5 + T, 1.0))).outcome is Outcome.FAIL, "it is full"


def _filling(name: str, a_day: float, tall: float = 0.001, wave: float = 0.0, warm: float = 0.0) -> Scenario:
    """Sessions of a table: a share a day, noise, a daily wave and a warm-up, all as shares of its size."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        value = 0.4 + a_day * t / DAY + tall * rng.standard_normal(t.size)
        value += wave * np.sin(2 * np.pi * (t / DAY + rng.random())) + warm * (1 - np.exp(-t / 7200))
        series = readings("system.sessions.utilization", value, apart, object="table=nat")
        window = Window(0, round(hours * 3600 * S))
        full_s = 0.6 / a_day * DAY if a_day else None
        return Signal(Case("dut", "", window, (series,)), Truth(full_s=full_s))

    return Scenario("filling", name, make, cadence_s=60.0)


SCENARIOS = (
    _filling("still", 0.0),
    _filling("a year", 0.0015),
    _filling("a month", 0.02),
    _filling("a month, under a daily wave", 0.02, wave=0.05),
    _filling("still, under a daily wave", 0.0, wave=0.05),
    _filling("a warm-up of 2 h", 0.0, warm=0.1),
    _filling("still, under much noise", 0.0, tall=0.1),
)
PARAMETERS = {"not_before": 15_552_000.0}
OUTCOMES = """
filling                     | forecast
still                       | P
a year                      | P
a month                     | F
a month, under a daily wave | FI
still, under a daily wave   | PI
a warm-up of 2 h            | PI
still, under much noise     | PI
"""
