"""tenant_isolation: what the load of one tenant costs the others, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from soakwatch_model.case import Case, TargetFacts, Tenant
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.tenant_isolation import TenantIsolation
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.contrast import contrast
from soakwatch_testing.rule_checks import check_complete
from soakwatch_testing.scenarios.families import findings_of
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth

Floats = NDArray[np.float64]
S = 10**9


def steps(t: Floats, hours: float, *spans: tuple[float, float]) -> Floats:
    """1 within these shares of the run, 0 elsewhere."""
    share = t / (hours * 3600)
    raised = np.zeros(t.size, dtype=np.float64)
    for begin, end in spans:
        raised[(share >= begin) & (share < end)] = 1.0
    return raised


THRICE = ((0.15, 0.25), (0.45, 0.55), (0.75, 0.85))


def shared(
    name: str,
    *,
    spans: tuple[tuple[float, float], ...] = THRICE,
    lost: float = 0.0,
    slower: float = 1.0,
    starved: float = 0.0,
    busier: float = 1.0,
    wander: float = 0.0,
    drift: float = 0.0,
    from_: float | None = None,
    together: bool = False,
    third: bool = False,
    reboot: bool = False,
) -> Scenario:
    """A device with the tenants red, blue and green: red's load is raised fourfold in ``spans``.

    Meanwhile blue loses ``lost`` of its packets, its latency is ``slower`` times as long, ``starved`` of its throughput
    and its CPU ``busier``. ``wander`` and ``drift`` are of blue's latency by itself; ``from_`` is the share of the run
    from which on it loses a fiftieth, whatever red does. ``together``: blue's load is raised with red's; ``third``:
    green's is once, and once by itself; ``reboot``: the device reboots in the second stretch, which costs blue packets.
    """

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng = np.random.default_rng(seed)
        t = np.arange(0, hours * 3600, apart)
        raised = steps(t, hours, *spans)
        share = t / (hours * 3600)
        down = ((share >= 0.5) & (share < 0.505)) if reboot else np.zeros(t.size, bool)
        blue_sent = 1000.0 * (1 + 3 * raised * together) * (1 + 0.002 * rng.standard_normal(t.size))
        green_raised = steps(t, hours, (0.15, 0.25), (0.6, 0.7)) if third else np.zeros(t.size)
        gone = lost * raised + 0.0002 * rng.random(t.size) + 0.9 * down
        if from_ is not None:
            gone += 0.02 * (share >= from_)
        if third:
            gone += 0.02 * green_raised
        back = blue_sent * (1 - gone) * (1 - starved * raised)
        slow = lfilter([1.0], [1.0, -0.9], rng.standard_normal(t.size))
        late = 0.001 * np.exp(0.1 * rng.standard_normal(t.size) + wander * 0.44 * slow + drift * share)
        late *= 1 + (slower - 1) * raised
        cpu = 0.2 * (1 + (busier - 1) * raised) + 0.005 * rng.standard_normal(t.size)

        def flow(which: str, value: Floats, whose: str) -> Series:
            return readings(f"load.flow.{which}.packets", np.cumsum(value * apart), apart, object=f"flow={whose}")

        blue = [
            flow("tx", blue_sent, "blue"),
            readings("load.flow.latency", late, apart, object="flow=blue,quantile=p99"),
            readings("system.cpu.module.utilization", cpu, apart, object="module=VDOM blue"),
        ]
        if not starved:
            blue.append(flow("rx", back, "blue"))
        else:
            blue = [readings("load.request.rate", back, apart), *blue[1:]]
        red_sent = 1000.0 * (1 + 3 * raised)
        green_sent = 500.0 * (1 + 3 * green_raised)
        tenants = (
            Tenant("red", (flow("tx", red_sent, "red"), flow("rx", red_sent, "red"))),
            Tenant("blue", tuple(blue)),
            Tenant("green", (flow("tx", green_sent, "green"), flow("rx", green_sent, "green"))),
        )
        window = Window(0, round(hours * 3600 * S))
        events = (Event("reboot", "dut", "", round(0.5 * window.end_ns), None),) if reboot else ()
        return Signal(Case("dut", "", window, events=events, facts=TargetFacts(tenants=tenants)), Truth())

    return Scenario("tenants", name, make, hours=2.0, cadence_s=5.0)


SCENARIOS = (
    shared("nobody is hurt"),
    shared("nobody's load changes", spans=()),
    shared("blue wanders by itself", wander=0.3),
    shared("blue becomes slower all day", drift=1.0),
    shared("all loads rise at once", together=True),
    shared("something else begins halfway", from_=0.5),
    shared("it reboots while red is raised", reboot=True),
    shared("blue uses more of the CPU", busier=1.6),
    shared("green hurts blue, sometimes with red", third=True),
    shared("blue loses 2 %", lost=0.02),
    shared("blue loses 2 %, once", spans=((0.4, 0.6),), lost=0.02),
    shared("blue loses 2 % to the end", spans=((0.5, 1.0),), lost=0.02),
    shared("blue is answered half as fast again", slower=1.5),
    shared("blue gets a fifth less", starved=0.2),
)

OUTCOMES = """
tenants | tenant_isolation
nobody is hurt | P
nobody's load changes | I
blue wanders by itself | PI
blue becomes slower all day | P
all loads rise at once | I
something else begins halfway | PI
it reboots while red is raised | P
blue uses more of the CPU | W
green hurts blue, sometimes with red | F
blue loses 2 % | F
blue loses 2 %, once | F
blue loses 2 % to the end | W
blue is answered half as fast again | F
blue gets a fifth less | F
"""


def judged(name: str, seed: int = 1, rule: TenantIsolation | None = None) -> Finding:
    """The worst finding of a scenario."""
    scenario = next(s for s in SCENARIOS if s.name == name)
    return findings_of(rule or TenantIsolation(), scenario.signal(seed).case)[0]


def test_the_sentence_names_both_tenants_and_the_figures() -> None:
    """Who was raised and how far, who lost what, what is allowed, and which effect could have been seen."""
    finding = judged("blue loses 2 %")
    assert finding.object == "tenant=red"
    assert "while the load of red was raised (36 min" in finding.reason
    assert "4 times its base" in finding.reason
    assert "blue lost 2.0" in finding.reason or "blue lost 2 %" in finding.reason
    assert "(allowed 0.1 %)" in finding.reason
    assert finding.measured == pytest.approx(0.02, rel=0.05)
    assert finding.interval is not None
    assert finding.interval[0] < 0.02 < finding.interval[1]
    assert finding.smallest_detectable is not None
    assert finding.smallest_detectable < 0.01
    assert len(finding.marks) == 3


def test_the_one_who_hurts_is_named() -> None:
    """Green's load costs blue, red's does not, although both were raised together once."""
    scenario = next(s for s in SCENARIOS if s.name == "green hurts blue, sometimes with red")
    outcomes = {f.object: f.outcome for f in findings_of(TenantIsolation(), scenario.signal(3).case)}
    assert outcomes["tenant=green"] is Outcome.FAIL
    assert outcomes["tenant=red"] is not Outcome.FAIL


def test_what_cannot_be_told_apart_is_inconclusive_with_the_remedy() -> None:
    """Loads that rise together, and a load that never rises."""
    finding = judged("all loads rise at once")
    assert finding.why is InconclusiveReason.NO_REFERENCE
    assert "that of blue changed as well" in finding.reason
    assert "one tenant at a time" in finding.settle
    finding = judged("nobody's load changes")
    assert "no tenant's load (red, blue, green) rose by 25 %" in finding.reason


def test_a_reboot_that_takes_the_whole_stretch_explains_it() -> None:
    """A device that reboots during the only raise leaves nothing to compare, and that is what is said."""
    scenario = shared("once", spans=((0.495, 0.505),), lost=0.02, reboot=True)
    finding = findings_of(TenantIsolation(), scenario.signal(1).case)[0]
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "something else happened (reboot)" in finding.reason


def test_an_event_that_names_the_tenant_is_its_change() -> None:
    """An attack on red that the generator's counters do not show: the event tells when it was."""
    scenario = shared("attack", spans=((0.45, 0.55),), lost=0.02)
    case = scenario.signal(1).case
    blue = case.facts.tenants[1]
    quiet = Tenant("red", (readings("load.flow.tx.packets", np.linspace(0.0, 7.2e6, 1440), 5.0, object="flow=red"),))
    begin, end = (round(share * case.window.end_ns) for share in (0.45, 0.55))
    attack = Event("attack", "", "", begin, end, {"tenant": "red"})
    assert (
        TenantIsolation().judge(replace(case, facts=TargetFacts(tenants=(quiet, blue))))[0].outcome
        is Outcome.INCONCLUSIVE
    )
    finding = TenantIsolation().judge(replace(case, facts=TargetFacts(tenants=(quiet, blue)), events=(attack,)))[0]
    assert (finding.object, finding.outcome) == ("tenant=red", Outcome.FAIL)


def test_less_that_was_sent_is_not_the_devices_fault() -> None:
    """A shared generator that has less left for blue while red is raised: nothing is said of the device."""
    t = np.arange(0, 7200, 5.0)
    raised = steps(t, 2.0, *THRICE)
    sent = np.cumsum(5000.0 * (1 - 0.3 * raised))
    blue = Tenant("blue", tuple(readings(f"load.{way}.packets", sent, 5.0) for way in ("tx", "rx")))
    red = Tenant("red", (readings("load.flow.tx.packets", np.cumsum(5000 * (1 + 3 * raised)), 5.0, object="flow=1"),))
    case = Case("dut", "", Window(0, 7200 * S), facts=TargetFacts(tenants=(red, blue)))
    by_name = {f.object: f for f in TenantIsolation().judge(case)}
    assert by_name["tenant=red"].outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e300])
def test_odd_readings_never_clear_or_raise(value: float) -> None:
    """Readings that are no numbers, or none at all, of either tenant."""
    scenario = next(s for s in SCENARIOS if s.name == "nobody is hurt")
    case = scenario.signal(1).case
    odd = Tenant("blue", tuple(replace(s, value=np.full(len(s), value)) for s in case.facts.tenants[1].series))
    empty = Tenant("blue", tuple(s.between(0, 0) for s in case.facts.tenants[1].series))
    unclear = {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE}
    for blue in (odd, empty):
        cut = replace(case, facts=TargetFacts(tenants=(case.facts.tenants[0], blue)))
        for finding in TenantIsolation().judge(cut):
            assert finding.outcome in unclear or (value == 1e300 and finding.outcome is Outcome.PASS)
            check_complete(TenantIsolation(), cut, finding)


def test_without_two_tenants_it_does_not_apply() -> None:
    """One tenant has nobody to disturb; virtual systems without any load that changes are no doubt of the run."""
    case = next(s for s in SCENARIOS if s.name == "nobody's load changes").signal(1).case
    assert (
        TenantIsolation().judge(replace(case, facts=TargetFacts(tenants=case.facts.tenants[:1])))[0].outcome
        is Outcome.NOT_APPLICABLE
    )
    guessed = tuple(replace(tenant, named=False) for tenant in case.facts.tenants)
    assert (
        TenantIsolation().judge(replace(case, facts=TargetFacts(tenants=guessed)))[0].outcome is Outcome.NOT_APPLICABLE
    )
    assert TenantIsolation().judge(replace(case, role="generator")) == ()


def test_a_contrast_covers_the_truth_as_often_as_it_says() -> None:
    """95 % intervals of an effect on values that remember hold it in 93 % of 400 trials and more."""
    raised = np.tile(np.repeat([False, True], 20), 6)
    held = 0
    for seed in range(400):
        noise = lfilter([1.0], [1.0, -0.6], np.random.default_rng(seed).standard_normal(240))
        found = contrast(noise + 2.0 * raised, raised, ~raised)
        assert found is not None
        held += found.low(0.025) <= 2.0 <= found.high(0.025)
    assert held >= 0.93 * 400


@pytest.mark.parametrize("wrong", [{"change": 0.0}, {"loss": 1.0}, {"latency": -0.1}])
def test_parameters_outside_their_range_are_refused(wrong: dict[str, float]) -> None:
    """A sentence with an example."""
    with pytest.raises(ValueError, match="tenant_isolation"):
        TenantIsolation(**wrong)
