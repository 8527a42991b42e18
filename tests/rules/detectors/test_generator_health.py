"""generator_health: what the generator was set to, what it did, and what it could have done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.generator_health import GeneratorHealth
from soakwatch_rules.signals import counter, readings

S = 10**9
N = 601
PHASES = (
    Phase("soak", Window(0, 400 * S)),
    Phase("stress", Window(400 * S, 500 * S)),
    Phase("recovery", Window(500 * S, N * S)),
)


def gauge(metric: str, value: float | np.ndarray, name: str = "") -> Series:
    """Ten minutes by the second."""
    return readings(metric, np.broadcast_to(np.asarray(value, dtype=np.float64), (N,)).copy(), 1.0, object=name)


def reported(rate: float | np.ndarray = 10_000.0) -> Series:
    """The packets a second that were commanded."""
    return gauge("load.offered.packet.rate", rate)


def sent(rate: float | np.ndarray = 10_000.0, metric: str = "load.tx.packets") -> Series:
    """A counter of what was done at this rate; the first reading is 0."""
    steps = np.broadcast_to(np.asarray(rate, dtype=np.float64), (N,)).copy()
    steps[0] = 0
    return gauge(metric, np.cumsum(steps))


def judge(*series: Series, phases: tuple[Phase, ...] = PHASES) -> Finding:
    """The one finding on a generator."""
    findings = GeneratorHealth().judge(Case("trex", "", Window(0, N * S), series, phases, role="generator"))
    assert len(findings) == 1
    return findings[0]


@pytest.mark.parametrize(
    ("ratio", "healthy"), [(1.0, True), (0.995, True), (1.005, True), (0.97, False), (1.03, False)]
)
def test_achieved_is_within_one_per_cent(ratio: float, healthy: bool) -> None:
    """Half a per cent is nothing; three per cent too little or too much are the generator's fault, never a failure."""
    finding = judge(reported(), sent(10_000.0 * ratio))
    assert finding.outcome is (Outcome.PASS if healthy else Outcome.INCONCLUSIVE)
    assert finding.why is (None if healthy else InconclusiveReason.GENERATOR)
    assert finding.measured == pytest.approx(ratio)


def test_a_shortfall_in_one_phase_is_not_diluted() -> None:
    """Five per cent too little in the stress phase alone are under one per cent of the run, and are found."""
    rate = np.full(N, 10_000.0)
    rate[400:500] = 9_500
    finding = judge(reported(), sent(rate))
    assert finding.why is InconclusiveReason.GENERATOR
    assert "in the phase stress" in finding.reason
    assert finding.marks[0].begin_ns == 400 * S


def test_steps_and_ramps_of_the_command_are_no_fault() -> None:
    """The command jumps at phase edges, and goes up slowly elsewhere; it was followed all the time."""
    rate = np.full(N, 10_000.0)
    rate[400:500] = 30_000
    rate[500:600] = np.linspace(10_000, 12_000, 100)
    assert judge(reported(rate), sent(rate)).outcome is Outcome.PASS


def test_few_packets_come_by_chance() -> None:
    """Of 5 packets a second sent at random times some are missing in a minute: chance, not a fault."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        assert judge(reported(5.0), sent(rng.poisson(5.0, N).astype(np.float64))).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("series", "text"),
    [
        (gauge("load.queue_full", np.repeat([0.0, 3.0], [300, N - 300])), "queue was full 3 times"),
        (gauge("load.cpu.utilization", np.repeat([0.5, 0.95, 0.5], [300, 70, N - 370])), "CPU peaked at 95 %"),
        (sent(np.repeat([10_000.0, -3_000_000.0, 10_000.0], [350, 1, N - 351])), "load.tx.packets fell 1 time"),
        (
            gauge("load.ceiling.packet.rate", 10_500.0),
            "was commanded 95.2 % of its calibrated ceiling (10,000 packets/s",
        ),
    ],
    ids=["queue", "busy", "restart", "headroom"],
)
def test_each_part_is_judged_by_itself(series: Series, text: str) -> None:
    """A full queue, a busy generator, a fallen counter or too little headroom each make it inconclusive."""
    finding = judge(reported(), series)
    assert finding.why is InconclusiveReason.GENERATOR
    assert text in finding.reason
    assert finding.settle


def test_a_short_peak_of_the_cpu_and_a_wrap_are_no_faults() -> None:
    """Ten seconds at 100 % are a moment; a counter that wraps at 2**32 did not fall."""
    assert judge(gauge("load.cpu.utilization", np.repeat([0.3, 1.0, 0.3], [300, 10, N - 310]))).outcome is Outcome.PASS
    wrapping = counter("load.tx.packets", np.full(600, 10_000_000), 1.0, start=2**31, bits=32)
    assert judge(wrapping).outcome is Outcome.PASS


def test_the_end_is_drained() -> None:
    """What comes back after the last packet was sent must have ended; while it still sends nothing is known."""
    rate = np.repeat([10_000.0, 0.0], [590, N - 590])
    late = np.repeat([10_000.0, 0.0], [592, N - 592])
    still = judge(sent(rate), sent(0.98 * np.full(N, 10_000.0), "load.rx.packets"))
    assert still.why is InconclusiveReason.GENERATOR
    assert "more were still arriving" in still.reason
    drained = judge(sent(rate), sent(0.98 * late, "load.rx.packets"))
    assert drained.outcome is Outcome.PASS
    assert "and none arrived any more" in drained.reason
    open_ended = judge(sent(), sent(9_900.0, "load.rx.packets"))
    assert any("still in flight at the end" in caveat for caveat in open_ended.doubts)


def requests(rate: np.ndarray, latency: float | np.ndarray, failed: float | np.ndarray = 0.0) -> tuple[Series, ...]:
    """A request generator of 4 connections that was set to 100 requests a second."""
    return (
        gauge("load.offered.rate", 100.0),
        sent(rate, "load.requests"),
        sent(failed, "load.failures"),
        gauge("load.connections", 4.0),
        gauge("load.latency", latency, "quantile=p99"),
    )


def test_a_generator_that_waits_for_the_device_is_not_blamed() -> None:
    """Half of the requests are missing in the stress phase because each takes 80 ms: the device's slowness."""
    rate, latency = np.full(N, 100.0), np.full(N, 0.005)
    rate[400:500], latency[400:500] = 50.0, 0.08
    finding = judge(*requests(rate, latency))
    assert finding.outcome is Outcome.PASS
    assert any(caveat.startswith("50") and "waited for the device" in caveat for caveat in finding.doubts)
    blamed = judge(*requests(rate, np.full(N, 0.005)))
    assert blamed.why is InconclusiveReason.GENERATOR, "with answers in 5 ms it had connections to spare"


def test_a_device_that_hangs_is_not_the_generators_fault() -> None:
    """While nothing is answered (no latency reported) or requests fail, the generator is not blamed."""
    rate = np.full(N, 100.0)
    rate[420:450] = 0.0
    latency = np.full(N, 0.005)
    latency[420:450] = np.nan
    assert judge(*requests(rate, latency)).outcome is Outcome.PASS
    failed = np.zeros(N)
    failed[420:450] = 3.0
    assert judge(*requests(rate, 0.005, failed)).outcome is Outcome.PASS


def test_only_what_is_known_is_judged() -> None:
    """A counter alone passes with caveats for the rest; latency alone, one reading, and nothing are told apart."""
    finding = judge(sent())
    assert finding.outcome is Outcome.PASS
    assert sum(caveat.startswith("not known") for caveat in finding.doubts) == 5
    assert judge(gauge("load.latency", 0.01, "quantile=p99")).outcome is Outcome.NOT_APPLICABLE
    assert judge(reported().between(0, 1)).why is InconclusiveReason.TOO_FEW
    assert judge().outcome is Outcome.NOT_APPLICABLE


def test_other_targets_are_not_judged() -> None:
    """It says nothing of a device or a monitor."""
    assert GeneratorHealth().judge(Case("dut", "", Window(0, N * S), (reported(),))) == ()


def test_figures_that_end_early_are_reported() -> None:
    """A generator that reports nothing in the last third leaves a caveat."""
    finding = judge(reported().between(0, 400 * S), sent().between(0, 400 * S))
    assert any("reported nothing after" in caveat for caveat in finding.doubts)


def test_two_generator_objects_are_distinguished() -> None:
    """The port that sent too little is named."""
    ports = [replace(s, object=f"port={i}") for i, r in enumerate((10_000.0, 9_000.0)) for s in (reported(), sent(r))]
    finding = judge(*ports)
    assert finding.why is InconclusiveReason.GENERATOR
    assert finding.measured == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("load", "ceiling"),
    [
        (reported(8_200.0), gauge("load.ceiling.packet.rate", 10_000.0)),
        (sent(8_200.0), gauge("load.ceiling.packet.rate", 10_000.0)),
        (gauge("load.tx.packet.rate", 8_200.0), gauge("load.ceiling.packet.rate", 10_000.0)),
        (gauge("load.offered.rate", 8_200.0), gauge("load.ceiling.rate", 10_000.0)),
        (sent(8_200.0, "load.requests"), gauge("load.ceiling.rate", 10_000.0)),
        (gauge("load.offered.bit.rate", 8.2e9), gauge("load.ceiling.bit.rate", 1e10)),
        (sent(8.2e9 / 8, "load.tx.bytes"), gauge("load.ceiling.bit.rate", 1e10)),
        (gauge("load.tx.bit.rate", 8.2e9), gauge("load.ceiling.bit.rate", 1e10).between(0, S)),
    ],
    ids=["told packets", "packets", "packet rate", "told requests", "requests", "told bits", "bytes", "bits"],
)
def test_the_headroom_is_stated_in_what_the_generator_tells(load: Series, ceiling: Series) -> None:
    """82 % of its ceiling leave 18 %, reported in the reason of a pass; over 90 % the reserve is gone."""
    finding = judge(load, ceiling)
    assert finding.outcome is Outcome.PASS
    assert "82 % of its calibrated ceiling" in finding.reason
    assert finding.reason.endswith("18 % headroom")
    assert finding.numbers["headroom"] == pytest.approx(0.18)
    busy = judge(load, replace(ceiling, value=0.9 * ceiling.values))
    assert busy.why is InconclusiveReason.GENERATOR
    assert "91.1 % of its calibrated ceiling" in busy.reason


def test_bits_are_held_against_their_ceiling_only_where_nothing_else_is() -> None:
    """Small packets reach the ceiling of packets long before that of bits."""
    finding = judge(
        reported(),
        gauge("load.ceiling.packet.rate", 20_000.0),
        gauge("load.tx.bit.rate", 1e9),
        gauge("load.ceiling.bit.rate", 1e9),
    )
    assert finding.outcome is Outcome.PASS
    assert finding.reason.count("headroom") == 1


@pytest.mark.parametrize(("ratio", "healthy"), [(1.0, True), (0.97, False)])
@pytest.mark.parametrize("metric", ["load.tx.bit.rate", "load.tx.bytes"])
def test_bits_are_compared_where_neither_packets_nor_requests_are_known(
    metric: str, ratio: float, healthy: bool
) -> None:
    """A generator that is set to a bandwidth is held to it."""
    did = sent(1e8 * ratio / 8, metric) if metric.endswith("bytes") else gauge(metric, 1e8 * ratio)
    finding = judge(gauge("load.offered.bit.rate", 1e8), did)
    assert finding.outcome is (Outcome.PASS if healthy else Outcome.INCONCLUSIVE)
    assert f"sent {100 * ratio:.3g} % of the commanded bits" in finding.reason
    with_packets = judge(gauge("load.offered.bit.rate", 1e8), did, reported(), sent())
    assert with_packets.outcome is Outcome.PASS


def test_a_rest_before_the_soak_is_no_shortfall_and_one_in_it_is() -> None:
    """Told 10 000 a second all along, it rests in the baseline; in the soak it has to send."""
    phases = (Phase("baseline", Window(0, 200 * S)), Phase("soak", Window(200 * S, N * S)))
    for rests, healthy in ((slice(0, 200), True), (slice(300, 400), False)):
        rate, sending = np.full(N, 10_000.0), np.ones(N)
        rate[rests], sending[rests] = 0.0, 0.0
        finding = judge(reported(), sent(rate), gauge("load.sending", sending), phases=phases)
        assert finding.outcome is (Outcome.PASS if healthy else Outcome.INCONCLUSIVE)


@pytest.mark.parametrize("bad", [{"tolerance": 0.0}, {"busy": 1.2}, {"headroom": 1.0}, {"seconds": 0.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="generator_health"):
        GeneratorHealth(**bad)


@pytest.mark.parametrize(("turned_s", "healthy"), [(198.0, True), (100.0, False)])
def test_a_generator_that_begins_anew_for_another_level_is_well(turned_s: float, healthy: bool) -> None:
    """Started again with each level, its counters fall; at any other time it has died and come back."""
    positions = np.arange(N)
    rate = np.where(positions < 200, 5_000.0, 10_000.0)
    count = np.concatenate([5_000.0 * positions[:200], 10_000.0 * (positions[200:] - 200)])
    level = gauge("load.level", np.where(positions < turned_s, 0.5, 1.0))
    began = readings("load.tx.packets", count.astype(np.int64), 1.0)
    phases = (Phase("ramp", Window(0, 200 * S)), Phase("soak", Window(200 * S, N * S)))
    finding = judge(gauge("load.offered.packet.rate", rate), began, level, phases=phases)
    assert finding.outcome is (Outcome.PASS if healthy else Outcome.INCONCLUSIVE), finding.reason
    assert ("fell 1 time" in finding.reason) is not healthy


@pytest.mark.parametrize(("own", "words"), [(0.001, "explains it"), (0.0001, "does not explain it")])
def test_its_own_loss_is_reported_with_the_loss(own: float, words: str) -> None:
    """0.05 % did not come back: a caveat that says how much of it is the generator's own; no fault by itself."""
    once = readings("load.ceiling.loss", np.array([own]), 1.0)
    finding = judge(reported(), sent(), sent(9_995.0, "load.rx.packets"), once)
    assert finding.outcome is Outcome.PASS
    (caveat,) = [d for d in finding.doubts if "own loss" in d]
    assert (
        caveat
        == f"0.05 % of the packets did not come back; the generator's own loss of up to {100 * own:.3g} % {words}"
    )
    assert not [d for d in judge(reported(), sent(), sent(metric="load.rx.packets"), once).doubts if "own loss" in d]


OUTCOMES = """
generator               | generator_health
healthy generator       | P
3 % below what was told | I
queue full              | I
CPU at 97 %             | I
counters fall           | I
no headroom             | I
not drained             | PI
"""
