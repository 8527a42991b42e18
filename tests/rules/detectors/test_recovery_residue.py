"""Residues after stress: of waves, of steps before it, and what memory keeps after one stress and after many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.recovery import Recovery
from soakwatch_rules.signals import noise

S = 10**9


def window(begin: float, end: float) -> Window:
    """A window in seconds."""
    return Window(round(begin * S), round(end * S))


def phased(edges: Mapping[str, tuple[float, float]]) -> tuple[Phase, ...]:
    """Phases in seconds; a number after the name is not part of it."""
    return tuple(Phase(name.rstrip("0123456789"), window(*edge)) for name, edge in edges.items())


def waving(seed: int, share: float) -> Series:
    """A day of memory that waves by so much of its level, with a stress of an hour that leaves no trace in it."""
    base = noise(seed, "process.memory.usage", 86400, 60, 1e9, 0.002, 0.0)
    turn = 2 * math.pi * (base.seconds / 86400 + seed / 10)
    return replace(base, value=np.round(base.values + share * 1e9 * np.sin(turn)))


@pytest.mark.parametrize("seed", range(10))
def test_a_residue_no_larger_than_the_wave_before_the_stress_is_no_failure(seed: int) -> None:
    """A daily wave leaves a residue after everything that is done to a device."""
    day = phased({"soak": (0, 68400), "stress": (68400, 72000), "recovery": (72000, 86400)})
    series = waving(seed, 0.06)
    finding = Recovery().judge(Case("dut", series.object, window(0, 86400), (series,), phases=day))[0]
    assert finding.outcome in {Outcome.PASS, Outcome.WARN}, finding.reason
    left = np.where(series.seconds >= 68400, 0.5e9, 0.0)
    grown = replace(series, value=np.round(series.values + left))
    finding = Recovery().judge(Case("dut", series.object, window(0, 86400), (grown,), phases=day))[0]
    assert finding.outcome is Outcome.FAIL, finding.reason


def test_a_step_before_the_stress_is_not_laid_to_it() -> None:
    """What had moved before the stress began does not fail; what moved with it does."""
    base = noise(3, "process.memory.usage", 86400, 60, 1e9, 0.002, 0.0)
    day = phased({"soak": (0, 68400), "stress": (68400, 72000), "recovery": (72000, 86400)})
    for at_s, outcomes in ((60000, {Outcome.PASS, Outcome.WARN}), (70000, {Outcome.FAIL})):
        series = replace(base, value=np.round(base.values + np.where(base.seconds >= at_s, 3e8, 0.0)))
        finding = Recovery().judge(Case("dut", series.object, window(0, 86400), (series,), phases=day))[0]
        assert finding.outcome in outcomes, finding.reason


def after_stresses(times: int, *, left: float, each: float = 0.0) -> Finding:
    """Memory of 1 GB after so many stresses of ten minutes: ``left`` of it stays after the first, and ``each`` more
    after each further one."""
    hours = 2 * (times + 1)
    base = noise(5, "process.memory.usage", hours * 3600, 10, 1e9, 0.002, 0.0)
    edges: dict[str, tuple[float, float]] = {}
    value = base.values.copy()
    since = 0.0
    for number in range(times):
        begin = 7200.0 * (number + 1)
        edges[f"soak{number}"] = (since, begin)
        edges[f"stress{number}"] = (begin, begin + 600)
        value += np.where(base.seconds >= begin, 1e9 * (left if number == 0 else each), 0.0)
        since = begin + 600
    edges["recovery9"] = (since, hours * 3600.0)
    series = replace(base, value=np.round(value))
    case = Case("dut", series.object, window(0, hours * 3600), (series,), phases=phased(edges))
    return Recovery().judge(case)[0]


def test_memory_that_one_stress_leaves_is_a_warning() -> None:
    """An allocator's arena or a cache of 7 % stays after one stress; a third of the level is too much for one."""
    some = after_stresses(1, left=0.07)
    assert some.outcome is Outcome.WARN, some.reason
    assert "+7.0 %" in some.reason
    assert "up to 10 %" in some.reason
    assert after_stresses(1, left=0.33).outcome is Outcome.FAIL


def test_memory_that_grows_from_stress_to_stress_fails() -> None:
    """Each stress leaves 2.5 % more: none by itself would fail."""
    more = after_stresses(4, left=0.025, each=0.025)
    assert more.outcome is Outcome.FAIL, more.reason
    assert "with each repetition" in more.reason
    assert after_stresses(4, left=0.07).outcome is Outcome.WARN
