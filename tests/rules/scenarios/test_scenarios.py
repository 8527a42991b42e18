"""Product of rules and scenarios: each rule says of each signal of known truth what the one table allows."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from tests.rules.outcomes import ALLOWED, LETTERS, PARAMETERS, SCENARIOS, concerning, named

from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window
from soakwatch_rules import detectors
from soakwatch_rules.rule import Rule
from soakwatch_testing.rule_checks import check_complete
from soakwatch_testing.scenarios.families import cuts, family
from soakwatch_testing.scenarios.scenario import Scenario

NAMES = sorted(module.name for module in pkgutil.iter_modules(detectors.__path__))
SEEDS = range(3)
WORST_FIRST = tuple(Outcome)


def rule_of(name: str) -> Rule:
    """The rule of a module, with the parameters that the scenarios give it."""
    module = importlib.import_module(f"soakwatch_rules.detectors.{name}")
    kind: object = getattr(module, "".join(part.capitalize() for part in name.split("_")))(**PARAMETERS.get(name, {}))
    return cast("Rule", kind)


PAIRS = [(name, scenario) for name in NAMES for scenario in concerning(name)]


@pytest.mark.parametrize("seeds", [SEEDS[:1], pytest.param(SEEDS, marks=pytest.mark.slow)], ids=["one", "all"])
@pytest.mark.parametrize(("name", "scenario"), PAIRS, ids=[f"{n}-{s.family}-{s.name}" for n, s in PAIRS])
def test_each_rule_says_what_the_table_allows(name: str, scenario: Scenario, seeds: Sequence[int]) -> None:
    """Each finding of a signal is complete, and the worst of them has one of the outcomes of its entry."""
    rule = rule_of(name)
    for seed in seeds:
        findings = []
        for case in cuts(rule, scenario.signal(seed).case):
            for finding in rule.judge(case):
                check_complete(rule, case, finding)
                findings.append(finding)
        assert findings, f"{name} says nothing of {scenario.name}"
        worst = min(findings, key=lambda finding: WORST_FIRST.index(finding.outcome))
        allowed = ALLOWED[name, scenario.family, scenario.name]
        assert LETTERS[worst.outcome] in allowed, f"seed {seed}: {worst.reason}"


def test_the_table_is_whole() -> None:
    """Each rule has families; each pair of rule and scenario has an entry; no entry names what there is not."""
    assert {rule for rule, _, _ in ALLOWED} == set(NAMES)
    wanted = {(rule, s.family, s.name) for rule in NAMES for s in concerning(rule)}
    assert wanted - set(ALLOWED) == set()
    assert set(ALLOWED) - wanted == set()
    assert {s.family for s in SCENARIOS} == {family_name for _, family_name, _ in ALLOWED}


def test_names_differ_within_a_family() -> None:
    """A scenario is found by its family and name."""
    keys = [(s.family, s.name) for s in SCENARIOS]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.family}-{s.name}")
def test_a_seed_always_gives_the_same_signal(scenario: Scenario) -> None:
    """The same seed gives the same bytes, another seed other ones (unless nothing is random), all in the window."""
    signal, again = scenario.signal(5, hours=2.0), scenario.signal(5, hours=2.0)
    assert signal.truth == again.truth
    for a, b in zip((*signal.case.series, *signal.case.load), (*again.case.series, *again.case.load), strict=True):
        assert np.array_equal(a.value, b.value)
        assert np.array_equal(a.time_ns, b.time_ns)
        assert not len(a) or signal.case.window.begin_ns <= a.time_ns[0] <= a.time_ns[-1] < signal.case.window.end_ns


@pytest.mark.parametrize("rate", [10, 15, 20])
def test_leaks_grow_as_their_truth_says(rate: int) -> None:
    """The last hours of a leak rise at the rate of its truth, those of a warm-up do not."""
    name = {10: "leak 10", 15: "leak 15, heavy tails", 20: "leak 20 from .6"}[rate]
    leaks = [s for s in family("growth") if s.name == name]
    for scenario in leaks:
        signal = scenario.signal(1)
        series = signal.case.series[0]
        late = series.seconds > 0.7 * 86400
        slope = np.polyfit(series.seconds[late], series.values[late], 1)[0]
        assert slope == pytest.approx(signal.truth.growth, rel=0.1)
    warm = named("growth", "warm-up 1 h").signal(1)
    assert warm.truth.growth == 0.0


def test_spikes_pauses_and_steps_are_where_their_truth_says() -> None:
    """Readings inside a spike are at the top, those in a pause at nothing, and a step lies at its time."""
    spike = named("cpu", "spike 10 min").signal(3)
    (begin, end), series = spike.truth.spikes[0], spike.case.series[0]
    inside = (series.seconds > begin + 10) & (series.seconds < end)
    assert series.values[inside].min() == 1.0
    pauses = named("pauses", "each 300 s, jitter 2 %").signal(3)
    rate = pauses.case.load[0]
    begins = np.array([b for b, _ in pauses.truth.pauses])
    assert np.median(np.diff(begins)) == pytest.approx(pauses.truth.period_s, rel=0.02)
    assert all(rate.values[int(b) + 1] < 1 for b, _ in pauses.truth.pauses)
    moved = named("growth", "step at an event").signal(3)
    at_s, height = moved.truth.steps[0]
    seen = moved.case.series[0]
    assert moved.case.events[0].begin_ns == round(at_s * 1e9)
    rise = seen.values[seen.seconds >= at_s].mean() - seen.values[seen.seconds < at_s].mean()
    assert rise == pytest.approx(height, rel=0.1)


def test_recoveries_and_runs_are_as_their_truth_says() -> None:
    """After the time to recover the level is back to within 5 %, and a run is off by its change."""
    slow = named("recovery", "back slowly").signal(2)
    series, stress = slow.case.series[0], slow.case.phases[1].window
    before = series.between(*_ends(slow.case.phases[0].window)).values.mean()
    assert slow.truth.back_s is not None
    since = (series.time_ns - stress.end_ns) * 1e-9
    late = series.values[since > slow.truth.back_s + 600]
    early = series.values[(since >= 0) & (since < 60)]
    assert abs(late.mean() / before - 1) < 0.05
    assert early.mean() / before - 1 > 0.2
    runs = [named("runs", "ten earlier, spread 2 %, +10 %").signal(seed).case for seed in range(20)]
    changes = [c.series[0].values.mean() / np.mean([e.values.mean() for e in c.before.earlier]) - 1 for c in runs]
    assert np.mean(changes) == pytest.approx(0.1, abs=0.02)


def _ends(window: Window) -> tuple[int, int]:
    return window.begin_ns, window.end_ns


def test_counters_and_losses_are_as_their_truth_says() -> None:
    """Packets lost under overload are the excess; drops are the ratio of what was sent."""
    over = named("overload", "excess of 20 %").signal(1)
    sent, back, reported = (s.values for s in over.case.load)
    above = over.case.phases[1].window
    inside = (over.case.load[0].time_ns >= above.begin_ns) & (over.case.load[0].time_ns < above.end_ns)
    lost = np.diff(sent - back)[inside[1:]].sum()
    needed = ((reported - 50_000)[inside] * 10).sum()
    assert (lost - needed) / (50_000 * above.seconds) == pytest.approx(over.truth.lost, abs=0.02)
    trickle = named("drops", "a trickle of 1 ppm").signal(1)
    assert trickle.truth.lost == pytest.approx(1e-6, rel=0.15)
