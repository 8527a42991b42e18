"""What generators call their figures: rates, bytes and bits serve the rules as the counters do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.generator_health import GeneratorHealth
from soakwatch_rules.detectors.hang import Hang
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.detectors.performance_decline import PerformanceDecline
from soakwatch_rules.detectors.periodic_pause import PeriodicPause
from soakwatch_rules.events.explanations import explanations
from soakwatch_rules.load.forwarding import Forwarding, lost_share
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.throughput import flows
from soakwatch_rules.signals import readings, uptimes

S = 10**9
N = 1200
PAIRS = [("packets", 1000.0), ("packet.rate", 1000.0), ("bytes", 1e6), ("bit.rate", 1e7)]


def figures(what: str, rate: float, kept: np.ndarray, apart: float = 1.0) -> tuple[Series, Series]:
    """What was sent at a constant rate, and the share of it that came back, as counters or as rates."""
    sent = np.full(kept.size, rate)
    values = [sent, sent * kept]
    if not what.endswith("rate"):
        values = [np.cumsum(v) * apart for v in values]
    return readings(f"load.tx.{what}", values[0], apart), readings(f"load.rx.{what}", values[1], apart)


def case(load: tuple[Series, ...], *series: Series, n: int = N, apart: float = 1.0, **more: object) -> Case:
    """A device under this load."""
    return Case("dut", "", Window(0, round(n * apart * S)), series, load=load, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("what", "rate"), PAIRS)
def test_a_standstill_of_forwarding_is_seen_in_all_of_them(what: str, rate: float) -> None:
    """Nothing comes back for a minute."""
    kept = np.ones(N)
    kept[600:660] = 0.0
    flow = Forwarding.of(case(figures(what, rate, kept)))
    assert flow is not None
    (stop,) = flow.stopped(Window(0, N * S))
    assert stop.begin_ns == pytest.approx(599 * S, abs=S)
    assert stop.seconds == pytest.approx(60, abs=1)
    assert lost_share(flow.tallies(), Window(600 * S, 660 * S)) == pytest.approx(1.0, abs=0.02)
    cpu = np.where(kept > 0, 0.3, 1.0)
    series = (readings("system.cpu.utilization", cpu, 1.0), uptimes(1.0, N))
    assert Hang().judge(case(figures(what, rate, kept), *series))[0].outcome is Outcome.FAIL


def test_packets_are_taken_before_bytes_and_bytes_before_bits() -> None:
    """Of several figures the one that counts things is the one that is judged."""
    kept = np.ones(N)
    load = tuple(s for what, rate in reversed(PAIRS) for s in figures(what, rate, kept))
    forwarding = Forwarding.of(case(load))
    assert forwarding is not None
    assert (forwarding.word, forwarding.out[0].metric) == ("packets", "load.rx.packets")
    assert {flow.series.metric for flow in flows(case(load))} == {"load.rx.packets"}
    only = Forwarding.of(case(load[:4]))
    assert only is not None
    assert only.word == "bytes"
    reported = flows(case(load[:4]))
    assert [flow.series.metric for flow in reported] == ["load.rx.bytes"]
    assert [s.metric for s in reported[0].sent] == ["load.tx.bytes"]


@pytest.mark.parametrize(("what", "rate"), PAIRS)
def test_pauses_of_a_rate_are_found_in_all_of_them(what: str, rate: float) -> None:
    """Twenty pauses of a second, one each minute."""
    kept = 1 - 0.02 * np.abs(np.random.default_rng(1).standard_normal(N))
    kept[30::60] = 0.0
    finding = PeriodicPause().judge(case(figures(what, rate, kept)))[0]
    assert finding.numbers["pauses"] == 20
    assert finding.numbers["period_s"] == pytest.approx(60.0)


@pytest.mark.parametrize(("what", "rate"), PAIRS)
def test_a_decline_is_found_in_all_of_them(what: str, rate: float) -> None:
    """A fifth less in twelve hours of the same load fails, the same all along passes."""
    n = 12 * 360
    scatter = 0.01 * np.random.default_rng(2).standard_normal(n)
    indices = np.linspace(0, 1, n)
    for kept, expected in ((1 + scatter - 0.02, Outcome.PASS), (1 + scatter - 0.2 * indices, Outcome.FAIL)):
        finding = PerformanceDecline().judge(case(figures(what, rate, kept, 10.0), n=n, apart=10.0))[0]
        assert finding.outcome is expected, finding.reason


def test_overload_by_packet_rates() -> None:
    """A stated capacity of 1000 a second, 1500 offered, 900 carried: 10 % more than overload explains."""
    positions = np.where((np.arange(N) >= 600) & (np.arange(N) < 900), 1500.0, 500.0)
    load = (
        readings("load.tx.packet.rate", positions, 1.0),
        readings("load.rx.packet.rate", np.minimum(positions, 900.0), 1.0),
    )
    phases = (Phase("stress", Window(599 * S, 899 * S)),)
    finding = OverloadLoss(capacity=1000.0).judge(case(load, phases=phases))[0]
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(0.1, abs=0.01)


def test_a_load_set_in_bits_is_a_load_too() -> None:
    """A command in bits is taken before what was sent."""
    reported = readings("load.offered.bit.rate", np.full(N, 1e9), 1.0)
    (sent, _) = figures("packets", 1000.0, np.ones(N))
    assert [s.metric for s in LoadAccount.of((sent, reported)).commands()] == ["load.offered.bit.rate"]
    assert [s.metric for s in LoadAccount.of((sent,)).commands()] == ["load.tx.packets"]


@pytest.mark.parametrize("what", ["packets", "packet.rate", "bytes", "bit.rate"])
def test_a_step_of_cpu_with_the_load_is_explained_in_whatever_unit_the_load_is_sent(what: str) -> None:
    """The load doubles, and CPU with it: iperf3 tells of bytes only, others of bits or of packets."""
    twice = np.where(np.arange(N) < 600, 1.0, 2.0)
    value = 1000.0 * twice if what.endswith("rate") else np.cumsum(1000.0 * twice)
    cpu = readings("system.cpu.utilization", 0.2 * twice, 1.0)
    why = explanations(case((readings(f"load.tx.{what}", value, 1.0),), cpu), cpu, 600 * S, 5 * S, 0.1, 60.0)
    assert len(why) == 1
    assert why[0].startswith(f"load.tx.{what} changed by +100 %")


def test_each_generator_says_for_itself_what_it_was_set_to_do() -> None:
    """One is commanded, the other says only what it sent, twice: in its best unit that counts."""
    steady = np.full(N, 1000.0)
    first = readings("load.offered.rate", steady, 1.0)
    second = [
        replace(readings(f"load.tx.{what}", steady, 1.0), target="tg2")
        for what in ("bit.rate", "packets", "packet.rate")
    ]
    stated = LoadAccount.of((first, *second)).commands()
    assert [series.metric for series in stated] == ["load.offered.rate", "load.tx.packets"]


def test_a_generator_held_to_a_rate_of_packets_is_judged_by_the_rate_that_it_reports() -> None:
    """It is set to 1000 packets a second and sends half of that; it counts none of them."""
    load = (
        readings("load.offered.packet.rate", np.full(N, 1000.0), 1.0),
        readings("load.tx.packet.rate", np.full(N, 500.0), 1.0),
    )
    held = replace(case((), *load), role="generator")
    (finding,) = GeneratorHealth().judge(held)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "sent 50 % of the commanded packets" in finding.reason
