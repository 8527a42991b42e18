"""The controller alone: which trials it asks for, and what it makes of them."""

from __future__ import annotations

import random

import pytest

from soakwatch.engine.capacity.controller import SearchStep, step
from soakwatch.judge.capacity import GoalBounds, Trial, full_rate_of, limit_of
from soakwatch.plan.capacity_plan import CapacityPlan

FULL = 1e6


def search(goal: CapacityPlan, capacity: float, noise: float = 0.0, seed: int = 1) -> tuple[SearchStep, list[Trial]]:
    """A whole search of a device that forwards so many packets a second of a million."""
    chance, trials = random.Random(seed), list[Trial]()
    while (taken := step(goal, trials)).next_trial is not None:
        wanted = taken.next_trial
        offered = round(FULL * wanted.level * wanted.seconds)
        carried = round(capacity * (1 + chance.gauss(0, noise)) * wanted.seconds)
        trials.append(
            Trial(
                0,
                wanted.level,
                wanted.seconds,
                wanted.seconds,
                offered,
                max(0, offered - carried),
                FULL * wanted.level,
                warmup=wanted.warmup,
            )
        )
        assert len(trials) < 500
    return taken, trials


@pytest.mark.parametrize("capacity", [12_345.0, 123_456.0, 618_000.0, 999_000.0])
def test_the_bounds_hold_the_capacity_between_them(capacity: float) -> None:
    """For loss 0 and 0.5 %, each within the width that was asked for."""
    taken, trials = search(CapacityPlan(loss=(0.0, 0.005), at_most_s=1200.0), capacity)
    for goal in taken.goals:
        assert goal.lower is not None
        top = capacity / FULL / (1 - goal.loss)
        assert goal.lower <= top
        if goal.upper is not None:
            assert goal.upper > top
            assert goal.upper - goal.lower <= 0.0101 * goal.upper
        assert goal.rate == pytest.approx(capacity, rel=0.011)
    assert trials[0].warmup
    assert len(trials) < 60


def test_the_same_trials_ask_for_the_same_next_one() -> None:
    """A search has no clock and no chance in it: it can be played again from its trials."""
    goal = CapacityPlan(loss=(0.0, 0.01), at_most_s=1200.0)
    _, trials = search(goal, 400_000.0, noise=0.01)
    for count in range(len(trials)):
        wanted = step(goal, trials[:count]).next_trial
        assert wanted is not None
        assert (wanted.level, wanted.seconds) == (trials[count].level, trials[count].asked_s)


def test_noise_is_met_by_trials_of_which_half_may_exceed() -> None:
    """Of 20 devices whose capacity scatters by 1 % all are found within 3 %."""
    for seed in range(20):
        taken, _ = search(CapacityPlan(at_most_s=1200.0), 400_000.0, noise=0.01, seed=seed)
        assert taken.goals[0].rate == pytest.approx(400_000, rel=0.03)


def test_too_low_and_too_high_have_one_bound() -> None:
    """A device that loses at the lowest load has no lower bound, one that never loses no upper one."""
    low, _ = search(CapacityPlan(lowest=0.1, at_most_s=1200.0), 50_000.0)
    high, _ = search(CapacityPlan(highest=0.5, at_most_s=1200.0), 900_000.0)
    assert low.goals[0].lower is None
    assert low.goals[0].upper == pytest.approx(0.1)
    assert high.goals[0].upper is None
    assert high.goals[0].lower == pytest.approx(0.5)


def test_a_generator_that_falls_short_is_told_by_its_lower_loads() -> None:
    """It sends what it is asked for up to 600,000 packets/s, and not more: bounds above are not the device's."""
    levels = (0.2, 0.4, 0.8, 0.9)
    sent = [min(level * FULL, 600_000.0) for level in levels]
    trials = [Trial(0, at, 10, 10, 10 * rate, at > 0.7, rate) for at, rate in zip(levels, sent, strict=True)]
    assert full_rate_of(trials) == pytest.approx(FULL)
    limited = limit_of(GoalBounds(0.0, 0.8, 0.9, 0.8, 600_000.0), trials, 1.0, "packet", {})
    assert limited == "the generator sent only 75 % of what it was asked for"
    assert limit_of(GoalBounds(0.0, 0.4, 0.8, 0.4, 400_000.0), trials, 1.0, "packet", {}) == ""
