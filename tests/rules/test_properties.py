"""What holds for every rule and any input: no dependence on the date or the unit, and no input is touched."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rules.draws import examples

from soakwatch_model.case import Before, Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Phase, Window
from soakwatch_rules import detectors
from soakwatch_rules.rule import Rule
from soakwatch_testing.rule_checks import cases, check_complete

NAMES = sorted(module.name for module in pkgutil.iter_modules(detectors.__path__))
SECOND = 10**9
LATER = 1_763_700_000 * SECOND
MAX_COUNT = 10_000_000
MANY = 25
MOST = 4  # cases of a rule that are judged in each of a few examples: a rule of twenty metrics treats them alike
signals = st.builds(
    lambda seed, n, level, noise, slope, hole, burst: (seed, n, level, noise, slope, hole, burst),
    st.integers(0, 10**6),
    st.integers(0, 400),
    st.sampled_from([1e4, 1e8, 3.3e9]),
    st.sampled_from([0.0, 1e-4, 0.01, 0.3]),
    st.sampled_from([-0.5, 0.0, 0.1, 1.0]),
    st.sampled_from([0.0, 0.2, 0.9]),
    st.integers(0, 20),
)
Signal = tuple[int, int, float, float, float, float, int]


def rule_named(name: str) -> Rule:
    """The rule of a module, with its defaults."""
    module = importlib.import_module(f"soakwatch_rules.detectors.{name}")
    return cast("Rule", getattr(module, "".join(part.capitalize() for part in name.split("_")))())


def drawn(signal: Signal) -> Callable[[str, int], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Readings of a metric: a level with noise, a slope, readings that are no numbers, and a burst."""
    seed, n, level, noise, slope, hole, burst = signal

    def values(metric: str, _: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        rng = np.random.default_rng([seed, len(metric)])
        what = trait_of(metric)
        unit = 1.0 if "utilization" in metric else level
        result = unit * (0.5 + noise * rng.standard_normal(n) + slope * np.arange(n) / max(n, 1))
        result[n // 2 : n // 2 + burst] += unit
        if what.kind == "counter":
            result = np.cumsum(np.abs(np.round(result)))
        if "utilization" in metric:
            result = np.clip(result, 0, 1)
        result[rng.random(n) < hole] = np.nan
        return result

    return values


def times(value: float | None, factor: float) -> float | None:
    """The product, of a value that is known."""
    return None if value is None else value * factor


def scaled(series: Series, factor: float) -> Series:
    """The same readings in a unit that is smaller by a power of two, where the readings are bytes."""
    if series.trait.unit != "By":
        return series
    t = series.trait
    by = replace(
        t,
        low=times(t.low, factor),
        high=times(t.high, factor),
        quantum=times(t.quantum, factor),
        floor=t.floor * factor,
        ceiling=times(t.ceiling, factor),
    )
    return replace(series, value=series.values * factor, trait=by)


def moved(case: Case, by_ns: int) -> Case:
    """The same case at another date."""

    def window(w: Window) -> Window:
        return Window(w.begin_ns + by_ns, w.end_ns + by_ns)

    def series(some: tuple[Series, ...]) -> tuple[Series, ...]:
        return tuple(replace(s, time_ns=s.time_ns + by_ns) for s in some)

    return replace(
        case,
        window=window(case.window),
        series=series(tuple(case.series)),
        load=series(case.load),
        before=Before(baseline=series(case.before.baseline), earlier=series(case.before.earlier)),
        phases=tuple(Phase(p.name, window(p.window)) for p in case.phases),
        ledgers=tuple(
            replace(x, silences=tuple(Silence(window(s.window), s.lost) for s in x.silences)) for x in case.ledgers
        ),
        events=tuple(
            replace(e, begin_ns=e.begin_ns + by_ns, end_ns=None if e.end_ns is None else e.end_ns + by_ns)
            for e in case.events
        ),
    )


def happened(case: Case) -> Case:
    """With a failover, a restart and a silence of its source in it."""
    length = case.window.end_ns - case.window.begin_ns
    index = case.window.begin_ns + length // 3
    silence = Silence(Window(index, index + length // 10), {"timeout": 3})
    return replace(
        case,
        events=(
            Event("failover", "dut", "", index, index + SECOND),
            Event("process.restart", "dut", case.object, index, index),
        ),
        ledgers=tuple(replace(ledger, silences=(silence,)) for ledger in case.ledgers),
    )


def comparable(findings: tuple[Finding, ...]) -> list[tuple[str, Outcome, object]]:
    """What must not depend on date and unit."""
    return [(f.object, f.outcome, f.why) for f in findings]


@pytest.mark.parametrize("count", examples(4, MANY))
@pytest.mark.parametrize("name", NAMES)
def test_outcomes_depend_on_neither_date_nor_unit_and_input_stays(name: str, count: int) -> None:
    """Moved to another date, or given in another unit, the same readings give the same outcomes; nothing changes."""

    @settings(max_examples=count, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(signal=signals, eventful=st.booleans(), factor=st.sampled_from([1 / 1024, 1024.0, 2.0**20]))
    def holds(signal: Signal, *, eventful: bool, factor: float) -> None:
        judge_moved_and_scaled(rule_named(name), signal, factor, eventful=eventful, most=MOST if count < MANY else None)

    holds()


def judge_moved_and_scaled(
    rule: Rule, signal: Signal, factor: float, *, eventful: bool, most: int | None = None
) -> None:
    """Judges readings as they are, at another date and in another unit; of about ``most`` of the rule's cases."""
    each = tuple(cases(rule, drawn(signal)))
    step = max(1, len(each) // most) if most else 1
    for plain in each[signal[0] % step :: step]:
        case = happened(plain) if eventful else plain
        kept = [s.value.copy() for s in (*case.series, *case.load, *case.before.baseline)]
        findings = rule.judge(case)
        for finding in findings:
            check_complete(rule, case, finding)
        assert comparable(rule.judge(moved(case, LATER))) == comparable(findings), f"{rule.name} depends on the date"
        wide = replace(
            case,
            series=tuple(scaled(s, factor) for s in case.series),
            before=Before(
                baseline=tuple(scaled(s, factor) for s in case.before.baseline),
                earlier=tuple(scaled(s, factor) for s in case.before.earlier),
            ),
        )
        assert comparable(rule.judge(wide)) == comparable(findings), f"{rule.name} depends on the unit"
        after = [s.value for s in (*case.series, *case.load, *case.before.baseline)]
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(kept, after, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if rule_named(name).scope == "metric"])
def test_ten_million_readings_are_judged(name: str) -> None:
    """A series of ten million readings is judged like any other."""
    rule = rule_named(name)
    rng = np.random.default_rng(1)
    values = np.clip(0.3 + 0.05 * rng.standard_normal(MAX_COUNT), 0, 1)
    time_ns = np.arange(MAX_COUNT, dtype=np.int64) * (SECOND // 50)
    series = Series("dut", rule.metrics[0], "", trait_of(rule.metrics[0]), time_ns, values * 1e8, 0.02)
    case = Case(
        "dut", "", Window(0, MAX_COUNT * (SECOND // 50)), (series,), ledgers=(Ledger("dut", "x", 1, 9, 9, {}, None),)
    )
    for finding in rule.judge(case):
        check_complete(rule, case, finding)


@pytest.mark.parametrize("times", [[3, 2, 1], [1, 1, 2]], ids=["decreasing", "duplicate"])
def test_times_out_of_order_are_one_clear_error(times: list[int]) -> None:
    """Readings that do not increase in time are refused where the series is made, with its name."""
    with pytest.raises(ValueError, match="not strictly increasing"):
        Series("dut", "system.memory.usage", "", trait_of("system.memory.usage"), np.array(times), np.ones(3))
