"""event_impact on odd input: packets that come late, thousands of events, and numbers that are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.rules.detectors.outages import S, failover, judge

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.event_impact import EventImpact
from soakwatch_rules.signals import readings
from soakwatch_testing.rule_checks import check_complete


@pytest.mark.parametrize("bad", [{"outage": -1.0}, {"look": 0.0}, {"tolerance": 0.0}, {"lead": float("inf")}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="event_impact"):
        EventImpact(**bad)


@pytest.mark.parametrize("seed", range(40))
def test_no_numbers_and_no_events_break_it(seed: int) -> None:
    """Random readings with gaps, infinities and falls, events in any order: complete findings, no exception."""
    rng = np.random.default_rng(seed)

    def wild(metric: str, name: str = "") -> Series:
        n = int(rng.integers(0, 300))
        value = rng.choice([0.0, 1.0, np.nan, np.inf, 1e308, -1e308, 17.0], n) * rng.choice([1.0, 1e-3], n)
        return readings(metric, value, float(rng.choice([0.5, 3.0])), object=name)

    names = (
        "load.tx.packets",
        "load.rx.packets",
        "load.lost.packets",
        "load.offered.rate",
        "load.request.rate",
        "load.rx.bytes",
        "load.latency",
    )
    load = tuple(wild(m) for m in names if rng.random() < 0.6)
    peer = "peer=gw,protocol=icmp"
    series = (
        *(wild(m, peer) for m in ("reach.up", "reach.sent", "reach.lost", "reach.round_trip")),
        wild("system.cpu.utilization"),
    )
    events = tuple(
        Event(
            "failover" if rng.random() < 0.5 else "config",
            "dut",
            "",
            int(rng.integers(-50, 400)) * S,
            int(rng.integers(-50, 400)) * S if rng.random() < 0.5 else None,
            {},
            {"outage": int(rng.integers(0, 3))} if rng.random() < 0.5 else {},
            int(rng.integers(-50, 400)) * S if rng.random() < 0.5 else None,
        )
        for _ in range(int(rng.integers(0, 6)))
    )
    rule = EventImpact(outage=float(rng.integers(0, 2)), loss=float(rng.integers(0, 2)))
    case = Case("dut", "", Window(0, 300 * S), series, events=events, load=load)
    for finding in rule.judge(case):
        check_complete(rule, case, finding)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tick", [0.05, 0.1])
def test_numbered_datagrams_that_come_late_are_not_lost(seed: int, tick: float) -> None:
    """200 a second read each 50 or 100 ms on a busy machine that pauses for up to 300 ms: one outage of 3.2 s."""
    rng = np.random.default_rng(seed)
    n = round(60 / tick)
    positions = np.arange(n) * tick
    number = np.arange(12_000)
    sent_at = number / 200.0
    pauses = np.sort(rng.uniform(0, 60, 12))
    stuck = rng.uniform(0.02, 0.3, 12)
    came = sent_at + 0.001
    for begin, lasts in zip(pauses, stuck, strict=True):
        came = np.where((came >= begin) & (came < begin + lasts), begin + lasts, came)
    came = came[(sent_at < 25.07) | (sent_at >= 28.27)]
    load = (
        readings("load.tx.packets", np.searchsorted(sent_at, positions, side="right").astype(np.float64), tick),
        readings("load.rx.packets", np.searchsorted(np.sort(came), positions, side="right").astype(np.float64), tick),
    )
    event = failover(25.0, expect={"outage": 1}, deadline_ns=40 * S)
    finding = judge(event, load=load, end=60, rule=EventImpact(outage=4.0))
    assert finding.outcome is Outcome.PASS, finding.reason
    assert finding.measured == pytest.approx(3.2, abs=0.05)
    assert finding.numbers["outage_1_time_s"] == pytest.approx(3.2, abs=0.45)
    quiet = judge(failover(45.0, expect={"outage": 0}, deadline_ns=58 * S), load=load, end=60)
    assert quiet.outcome is Outcome.PASS, quiet.reason


def test_thousands_of_logged_changes_are_measured_in_part_and_quickly_enough() -> None:
    """A log that tells of 5000 changes: the announced one is among those measured, and the rest is reported."""
    word = {"line": "%SYS-5-CONFIG_I: Configured from console", "address": "192.0.2.9"}
    logged = [Event("config.change", "dut", "", round((10 + 0.2 * i) * S), None, word) for i in range(5000)]
    apart = [replace(e, begin_ns=(5 + 61 * i) * S, kind="config.change") for i, e in enumerate(logged)]
    end = 5000 * 61 + 10
    positions = np.arange(0, end, 10.0)
    load = (readings("load.tx.packets", 1000 * positions, 10.0), readings("load.rx.packets", 1000 * positions, 10.0))
    asked = replace(apart[4000], expect={"outage": 0})
    events = (*apart[:4000], asked, *apart[4001:])
    finding = judge(*events, load=load, end=end, rule=EventImpact(look=30.0))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["events"] == 300
    assert any("only 300 of 5000 events were measured" in caveat for caveat in finding.doubts)
    together = judge(*logged, load=load, end=end)
    assert together.numbers["events"] < 30, "a minute of words is one event"
