"""A rule of many series that keeps few gets them one by one: their memory does not add up."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.series_on_demand import SeriesOnDemand
from soakwatch_model.case import Case
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Window
from soakwatch_rules.detectors.cpu_saturation import CpuSaturation

SECONDS = 3600


class Counted:
    """Series of a host with two cores and fifty drop counters, made when asked for; how many there are at once."""

    def __init__(self, *, busy: bool) -> None:
        self.most = 0
        self._busy = busy
        self._readings: list[weakref.ref[NDArray[np.generic]]] = []

    def __call__(self, index: int) -> Series:
        time_ns = np.arange(SECONDS, dtype=np.int64) * 10**9
        if index < 2:
            value = np.full(SECONDS, 0.4)
            value[1000:2000] = 1.0 if self._busy else 0.4
            series = Series(
                "dut", metric := "system.cpu.core.utilization", f"core={index}", trait_of(metric), time_ns, value
            )
        else:
            rose = np.zeros(SECONDS) if index else np.ones(SECONDS)
            rose[1500] = 500.0
            series = Series(
                "dut", metric := "system.softnet.dropped", f"core={index}", trait_of(metric), time_ns, rose.cumsum()
            )
        self._readings = [*(each for each in self._readings if each() is not None), weakref.ref(series.value)]
        self.most = max(self.most, len(self._readings))
        return series


@pytest.mark.parametrize(("busy", "outcome"), [(False, Outcome.PASS), (True, Outcome.FAIL)])
def test_a_rule_of_many_counters_holds_few_of_them(busy: bool, outcome: Outcome) -> None:
    """Those of a CPU stay, the counters come and go; the finding is that of a case with all of them."""
    counted = Counted(busy=busy)
    window = Window(0, SECONDS * 10**9)
    (found,) = CpuSaturation().judge(Case("dut", "", window, SeriesOnDemand(52, counted)))
    assert found.outcome is outcome
    assert counted.most <= 5
    assert (found,) == CpuSaturation().judge(Case("dut", "", window, tuple(SeriesOnDemand(52, counted))))


def test_series_on_demand_are_a_sequence() -> None:
    """They are counted, sliced, indexed from the end, and made anew each time."""
    made: list[int] = []

    def make(index: int) -> int:
        made.append(index)
        return index * 10

    series = SeriesOnDemand(4, make)
    assert len(series) == 4
    assert series[-1] == 30
    assert list(series[1:3]) == [10, 20]
    assert made == [3, 1, 2]
    assert (*series,) == (0, 10, 20, 30)
    with pytest.raises(IndexError):
        series[4]
