"""Outages by counts that scatter as chance has it: none is made of the scatter, and a stop is seen through it."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch_model.window import Window
from soakwatch_rules.stats.outage import Bins, Outage, outage

CALM_S, LOOK_S, S = 600, 175, 10**9


def seen(seed: int, rate: float, stop_s: int) -> Outage:
    """What is measured of counts about an even rate, that stop for so long ten seconds after the event."""
    got = np.random.default_rng(seed).poisson(rate, CALM_S + LOOK_S).astype(np.float64)
    got[CALM_S + 10 : CALM_S + 10 + stop_s] = 0
    bins = Bins(np.arange(got.size + 1) * S, np.full(got.size, rate), rate - got)
    measured = outage(bins.within(Window(0, CALM_S * S)), bins.within(Window(CALM_S * S, (CALM_S + LOOK_S) * S)))
    assert measured is not None
    return measured


@pytest.mark.parametrize(("rate", "stop_s"), [(10.0, 5), (100.0, 2), (1000.0, 1)])
def test_a_stop_is_seen_through_the_scatter_of_counts_and_no_scatter_is_one(rate: float, stop_s: int) -> None:
    """Of 100 without a stop at most 3 seem to lose more than their error; of 100 with one 95 are seen, as long as it
    was."""
    calm = [seen(seed, rate, 0) for seed in range(100)]
    assert sum(one.loss_s > one.loss_error_s for one in calm) <= 3
    stopped = [seen(seed, rate, stop_s) for seed in range(100)]
    assert sum(one.loss_s > one.loss_error_s for one in stopped) >= 95
    assert np.median([one.loss_s for one in stopped]) == pytest.approx(stop_s, abs=0.5)
