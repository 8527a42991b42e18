"""Known faults laid over readings: what a counter, a rate and a wrapped counter read afterwards."""

from __future__ import annotations

import numpy as np

from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.signals import counted, counter, missing, readings, risen, thinned, unread

S = 10**9
STEPS = np.full(20, 1000)


def increments(series: Series) -> list[float]:
    return [float(step) for step in series.increments().values]


def test_a_counter_stays_behind_by_what_was_lost() -> None:
    whole = counter("load.rx.packets", STEPS, 10.0)
    half = thinned(whole, 0.5, Window(50 * S, 100 * S))
    assert increments(half) == [1000.0] * 5 + [500.0] * 5 + [1000.0] * 10
    assert missing(whole, 0.5, Window(55 * S, 60 * S)).sum() == 250
    assert whole.value[-1] - half.value[-1] == 2500


def test_a_counter_wraps_and_restarts_where_it_did() -> None:
    wrapping = counter("load.rx.packets", STEPS, 10.0, start=2**32 - 5500, bits=32)
    assert increments(thinned(wrapping, 1.0, Window(0, 40 * S))) == [0.0] * 4 + [1000.0] * 16
    value = np.array([5000, 6000, 7000, 100, 1100, 2100], dtype=np.int64)
    restarted = thinned(readings("load.rx.packets", value, 10.0), 0.5, Window(0, 20 * S))
    assert restarted.value.tolist() == [5000, 5500, 6000, 100, 1100, 2100]
    assert counted(restarted, np.ones(6)).value.tolist() == [5001, 5502, 6003, 100, 1101, 2102]


def test_a_rate_falls_a_latency_rises_and_a_silence_has_no_readings() -> None:
    rate = readings("load.request.rate", np.full(6, 100.0), 10.0)
    assert thinned(rate, 0.1, Window(20 * S, 40 * S)).value.tolist() == [100, 100, 100, 90, 90, 100]
    assert risen(rate, 2.0, Window(20 * S, 40 * S)).value.tolist() == [100, 100, 200, 200, 100, 100]
    assert len(unread(rate, Window(20 * S, 40 * S))) == 4
    assert rate.value.tolist() == [100.0] * 6
