"""observer_cost: what the monitor took of the device's CPU, and what is said where nobody counts it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rules.management.test_observer_pauses import cpu, rests

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.observer_cost import COST, ObserverCost
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth

S = 10**9


def cost(
    share: float,
    *,
    object_text: str = "source=agent",
    seed: int = 0,
    n: int = 3600,
    apart: float = 1.0,
    noise: float = 0.3,
) -> Series:
    """CPU time of polls that take a share of one core, in steps of 10 ms."""
    each = share * apart * np.clip(1 + 0.3 * np.random.default_rng(seed).standard_normal(n), 0, None)
    metric = COST if object_text.startswith("source=") else "process.cpu.time"
    spent = np.asarray(np.round(np.cumsum(each), 2), dtype=np.float64)
    return readings(metric, spent, apart, object=object_text)


def cores(number: float, n: int = 3600) -> Series:
    """The cores of the device."""
    return readings("system.cpu.logical.count", np.full(n, number), 1.0)


def judged(*series: Series, rule: ObserverCost | None = None, seconds: float = 3600, role: str = "dut") -> Finding:
    """The finding of a device."""
    return (rule or ObserverCost()).judge(Case("dut", "", Window(0, round(seconds * S)), series, role=role))[0]


def weighed(name: str, share: float, *, of: float = 4, restart: bool = False) -> Scenario:
    """An agent that takes a share of one core of a device; with ``restart`` it begins to count anew halfway."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        n = round(hours * 3600 / apart)
        one = cost(share, seed=seed, n=n, apart=apart)
        if restart:
            value = one.values.copy()
            value[n // 2 :] -= value[n // 2] * 0.99
            one = readings(COST, value, apart, object="source=agent")
        held = readings("system.cpu.logical.count", np.full(n, of), apart)
        return Signal(Case("dut", "", Window(0, round(hours * 3600 * S)), (one, held)), Truth())

    return Scenario("observer", name, make, hours=1.0, cadence_s=5.0)


def paused(name: str, share: float, noise: float) -> Scenario:
    """A device that counts nothing, whose polls take a share of its CPU and pause five times for a minute."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        events = rests(5)
        window = Window(0, round(hours * 3600 * S))
        return Signal(Case("dut", "", window, (cpu(share, events, noise=noise, seed=seed),), events=events), Truth())

    return Scenario("observer", name, make, hours=1.0, cadence_s=1.0)


SCENARIOS = (
    paused("pauses, 0.2 % of the CPU", 0.002, 0.01),
    paused("pauses, 3 % of the CPU", 0.03, 0.01),
    paused("pauses, nothing, noise of 20 points", 0.0, 0.2),
    weighed("0.3 % of one core", 0.003),
    weighed("2 % of one core of four", 0.02),
    weighed("0.9 % of a single core", 0.009, of=1),
    weighed("2 % of a single core", 0.02, of=1),
    weighed("a third of one core of four", 0.33),
    weighed("0.3 % of one core, the agent restarts", 0.003, restart=True),
)

OUTCOMES = """
observer | observer_cost
pauses, 0.2 % of the CPU | P
pauses, 3 % of the CPU | W
pauses, nothing, noise of 20 points | IP
0.3 % of one core | P
2 % of one core of four | P
0.9 % of a single core | P
2 % of a single core | W
a third of one core of four | W
0.3 % of one core, the agent restarts | P
"""


def test_the_share_is_of_all_cores_and_named_by_source() -> None:
    """2 % and 3 % of one core are 1.25 % of four: it warns, with both sources and what one core felt."""
    finding = judged(cost(0.02), cost(0.03, object_text="source=ssh", seed=1), cores(4))
    assert finding.outcome is Outcome.WARN
    assert finding.measured == pytest.approx(0.0125, rel=0.05)
    assert finding.interval is not None
    assert finding.interval[0] < 0.0125 < finding.interval[1]
    assert finding.numbers["of_one_core"] == pytest.approx(0.05, rel=0.05)
    assert finding.reason.startswith("the monitor took 1.2")
    assert "(4 cores): ssh 0.7" in finding.reason
    assert "allowed 1 %" in finding.reason


def test_only_a_plan_makes_it_fail() -> None:
    """Half of a core warns by default; with ``fail: 5%`` it fails, with the limit that counted."""
    assert judged(cost(0.5), cores(1)).outcome is Outcome.WARN
    finding = judged(cost(0.5), cores(1), rule=ObserverCost(fail=0.05))
    assert (finding.outcome, finding.limit) == (Outcome.FAIL, 0.05)
    with pytest.raises(ValueError, match="use a share above 0 and below 100%, such as 1%"):
        ObserverCost(limit=0)


def test_a_watched_daemon_is_the_most_that_it_can_be() -> None:
    """snmpd counts with a doubt; an sshd that the SSH source holds already, and other programs, do not."""
    snmpd = cost(0.03, object_text="process=snmpd,instance=0,mode=user")
    finding = judged(snmpd, cores(2))
    assert (finding.outcome, round(finding.measured or 0, 3)) == (Outcome.WARN, 0.015)
    assert "may answer others too" in finding.doubts[0]
    web = cost(0.5, object_text="process=nginx,instance=0,mode=user")
    sshd = cost(0.5, object_text="process=sshd,instance=0,mode=user")
    assert judged(cost(0.001, object_text="source=ssh"), web, sshd, cores(2)).outcome is Outcome.PASS


def test_a_black_box_is_not_known_and_says_what_is() -> None:
    """Only the time of its answers is known; of a table not even that."""
    took = readings("source.poll.duration", np.full(360, 0.012), 10.0, object="source=snmp")
    finding = judged(took)
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "is not known" in finding.reason
    assert "polls of snmp took 12 ms, median" in finding.reason
    assert judged().reason == "this target reports no CPU time of the monitor's polls"


def test_what_is_too_little_is_said() -> None:
    """A run of one minute is the start of the sources; three readings decide nothing; cores may be unknown."""
    assert judged(cost(0.5, n=60), seconds=60).outcome is Outcome.NOT_APPLICABLE
    assert judged(cost(0.5, n=3, apart=10.0)).why is InconclusiveReason.TOO_FEW
    finding = judged(cost(0.02))
    assert "of one core" in finding.reason
    assert "number of cores is not known" in finding.doubts[0]
    assert ObserverCost().judge(Case("tg", "", Window(0, S), role="generator")) == ()
