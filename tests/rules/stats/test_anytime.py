"""Evidence that may be looked at as often as one likes: how often it is wrong over all looks, what segments know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.growth.sequential import RISK_FAIL, RISK_PASS, Course, GrowthEvidence, growth_evidence, needed
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.anytime import evidence, joined
from soakwatch_rules.stats.ar1 import Slope, slope

S = 10**9
HOUR = 3600
DAY = 86400.0
LEVEL = 100.0 * 2**20


def test_looking_at_every_block_is_wrong_no_oftener_than_its_risk() -> None:
    """250 series whose slope is exactly what is allowed, each looked at 41 times: the e-value reaches 20 in at most 5 %
    on either side, and a test that looks only once would be wrong in far more."""
    rng = np.random.default_rng(1)
    t: Floats = np.arange(100, dtype=np.float64)
    above = below = naive = 0
    for _ in range(250):
        value = 0.02 * t + rng.standard_normal(t.size)
        fits = [slope(t[:n], value[:n]) for n in range(20, 101, 2)]
        found = [evidence(fit, 0.02, 0.02) for fit in fits]
        above += any(each.above >= math.log(20) for each in found)
        below += any(each.below >= math.log(20) for each in found)
        naive += any(fit.low() > 0.02 for fit in fits)
    assert above <= 14
    assert below <= 14
    assert naive > 30


def memory(course: ArrayLike, seed: int, tall: float = 0.005) -> Series:
    """A process's memory each minute: 100 MiB times a shape, with noise."""
    shape = np.asarray(course, dtype=np.float64)
    noise = tall * np.random.default_rng(seed).standard_normal(shape.size)
    return readings("process.memory.usage", LEVEL * (shape + noise), 60.0, object="process=web,instance=0")


def at(series: Series, hours: float, family: int = 10) -> GrowthEvidence:
    """What is decided after so many hours."""
    window = Window(0, round(hours * HOUR * S))
    return growth_evidence([(series.between(0, window.end_ns), window)], 0.05, DAY, family)


T: Floats = np.arange(1440, dtype=np.float64) * np.float64(60.0)


def test_a_leak_is_proved_in_a_fifth_of_the_night_and_nothing_in_half_of_one() -> None:
    """18 % a day, allowed are 5; a level that stays where it is."""
    assert at(memory(1 + 0.18 * T / DAY, 1), 4.8).course is Course.LEAKS
    assert at(memory(1 + 0.0 * T, 2), 12).course is Course.STILL
    assert at(memory(1 + 0.0 * T, 2), 1.0).course is Course.OPEN


@pytest.mark.parametrize("hours", [3.0, 5.0, 8.0, 12.0, 24.0])
def test_warm_ups_steps_and_daily_waves_do_not_leak(hours: float) -> None:
    """Whatever the look: a warm-up of an hour, a step at the begin, a wave of 2 % with any phase."""
    for seed in range(8):
        for shape in (
            1 + 0.2 * (1 - np.exp(-T / 3600)),
            1 + 0.08 * (T > 2000),
            1 + 0.02 * np.sin(2 * np.pi * (T / DAY + seed / 8)),
        ):
            assert at(memory(shape, seed), hours).course is not Course.LEAKS


def test_what_follows_a_warm_up_is_decided_by_itself() -> None:
    """A process that warmed up in the first hours is still later: evidence is collected again from later starts on."""
    found = at(memory(1 + 0.3 * (1 - np.exp(-T / 3600)), 3, tall=0.002), 24.0)
    assert found.course is Course.STILL
    assert found.watched_s < DAY


def test_five_segments_of_one_life_know_what_the_night_knows_and_of_five_lives_a_25th() -> None:
    """A level that goes on is one line; levels of their own leave five short lines."""
    segments = [slope(T[part : part + 288], 0.1 * np.sin(T[part : part + 288])) for part in range(0, 1440, 288)]
    whole = slope(T, 0.1 * np.sin(T))
    together = joined(segments)
    assert together.error / whole.error == pytest.approx(5.0, rel=0.1)  # the variance is that of a 25th
    assert joined([]) == Slope(0.0, 0.0, 1.0, 0.0)


def test_a_constant_is_still_if_its_steps_would_show_what_is_allowed() -> None:
    """Open files that never change, and a source that shows steps larger than the allowed growth."""
    constant = readings("process.open_files", np.full(1440, 100.0), 60.0, object="process=web,instance=0")
    assert at(constant, 24.0).course is Course.STILL
    assert at(constant, 24.0, family=500).course is Course.STILL
    assert needed(RISK_FAIL, 10) == pytest.approx(10 * needed(RISK_FAIL, 1))
    assert needed(RISK_PASS, 10) < needed(RISK_FAIL, 10)
