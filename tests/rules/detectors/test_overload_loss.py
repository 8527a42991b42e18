"""overload_loss: the loss that overload explains, and the loss that it does not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.carried_load import carried, excess

S = 10**9
CAPACITY = 1000.0


def phases(*named: tuple[str, float]) -> tuple[Phase, ...]:
    """Phases one after the other, by name and end in seconds."""
    edges = [0.0, *(end for _, end in named)]
    return tuple(Phase(n, Window(round(edges[i] * S), round(edges[i + 1] * S))) for i, (n, _) in enumerate(named))


SOAKED = phases(("soak", 300), ("stress", 600), ("recovery", 900))


def traffic(
    offered: list[tuple[float, float]], through: float = CAPACITY, collapsed: float = 0.0
) -> tuple[Series, ...]:
    """Counters of a device that carries ``through`` a second, less a share while it is asked for more.

    ``offered`` are rates with the seconds at which they end.
    """
    ends = [round(end) for _, end in offered]
    rate = np.concatenate(
        [np.full(end - begin, r) for (r, _), begin, end in zip(offered, [0, *ends], ends, strict=False)]
    )
    back = np.where(rate > through, through * (1 - collapsed), rate)
    sent, got = (np.append(0.0, np.cumsum(x)) for x in (rate, back))
    return readings("load.tx.packets", sent, 1.0), readings("load.rx.packets", got, 1.0)


def judge(rule: OverloadLoss, load: tuple[Series, ...], cut: tuple[Phase, ...] = SOAKED, devices: int = 1) -> Finding:
    """The finding of one run."""
    return rule.judge(Case("dut", "", Window(0, cut[-1].window.end_ns), phases=cut, load=load, devices=devices))[0]


@pytest.mark.parametrize(
    ("collapsed", "expected"),
    [(0.0, Outcome.PASS), (0.009, Outcome.PASS), (0.02, Outcome.INCONCLUSIVE), (0.035, Outcome.FAIL)],
)
def test_excess_over_a_stated_capacity(collapsed: float, expected: Outcome) -> None:
    """Excess is measured to the packet: up to 1 % passes, over 1 % + 2 errors fails, between them nobody knows."""
    load = traffic([(500, 300), (1500, 600), (500, 900)], collapsed=collapsed)
    finding = judge(OverloadLoss(capacity=CAPACITY), load)
    assert finding.outcome is expected
    assert finding.measured == pytest.approx(collapsed * 300 / 302.5, rel=1e-6)
    assert finding.limit == pytest.approx(0.03)
    if expected is Outcome.INCONCLUSIVE:
        assert finding.why is InconclusiveReason.NOISE
        assert finding.settle == "measure the capacity to ± 0.49 %"
    assert judge(OverloadLoss(capacity=CAPACITY, error=0.0), load).outcome is (
        Outcome.PASS if collapsed < 0.01 else Outcome.FAIL
    )


def test_capacity_from_a_ramp() -> None:
    """The highest rate without loss and the lowest with it enclose the capacity."""
    cut = phases(("ramp", 360), ("stress", 600), ("recovery", 700))
    steps = [(800.0, 60.0), (900.0, 120.0), (980.0, 200.0), (1020.0, 280.0), (1100.0, 360.0)]
    load = traffic([*steps, (1500, 600), (500, 700)])
    finding = judge(OverloadLoss(), load, cut)
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["capacity"] == pytest.approx(1000.0)
    assert finding.numbers["capacity_error"] == pytest.approx(40 / math.sqrt(12) / 1000, rel=1e-6)
    assert finding.numbers["capacity_is_bound"] == 0
    worse = traffic([*steps, (1500, 600), (500, 700)], collapsed=0.1)
    assert judge(OverloadLoss(capacity=CAPACITY), worse, cut).outcome is Outcome.FAIL


def test_a_soak_without_loss_is_a_bound() -> None:
    """Near capacity it will do; far below it says nothing of a loss that it exceeds, but still finds a collapse."""
    near = traffic([(980, 300), (1500, 600), (980, 900)])
    finding = judge(OverloadLoss(), near)
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["capacity_is_bound"] == 1
    assert finding.smallest_detectable == pytest.approx(0.06)
    far = judge(OverloadLoss(), traffic([(500, 300), (1500, 600), (500, 900)]))
    assert (far.outcome, far.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "ramp" in far.settle
    broken = judge(OverloadLoss(), traffic([(500, 300), (1500, 600), (500, 900)], collapsed=0.6))
    assert broken.outcome is Outcome.FAIL
    assert "at least" in broken.reason


def test_no_loss_needs_no_capacity() -> None:
    """Who loses nothing passes, whatever the capacity; who loses without one is inconclusive."""
    only = phases(("stress", 300))
    assert judge(OverloadLoss(), traffic([(1000, 300)]), only).outcome is Outcome.PASS
    lost = judge(OverloadLoss(), traffic([(1500, 300)]), only)
    assert (lost.outcome, lost.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)


def test_packets_may_come_back_late() -> None:
    """A queue that drains within 5 s after the phase is no loss."""
    sent, got = traffic([(500, 300), (1000, 600), (500, 900)])
    positions = np.arange(got.values.size)
    value = got.values - np.clip((positions - 300) * 100, 0, 2500) * (
        positions < 604
    )  # 2500 wait until 3 s after the phase
    load = (sent, replace(got, value=value))
    assert judge(OverloadLoss(capacity=CAPACITY), load).outcome is Outcome.PASS
    strict = judge(OverloadLoss(capacity=CAPACITY, drain=0.0, limit=0.001, error=0.0), load)
    assert strict.outcome is Outcome.FAIL


def test_two_generators_and_their_directions() -> None:
    """What one generator sends may come back to the other: only the sums count."""
    sent, got = traffic([(500, 300), (1500, 600), (500, 900)])
    nothing = readings("load.rx.packets", np.zeros(len(got)), 1.0)
    load = (sent, replace(nothing, target="one"), replace(got, target="two"))
    assert judge(OverloadLoss(capacity=CAPACITY), load).outcome is Outcome.PASS


def test_requests_are_judged_where_packets_are_not_known() -> None:
    """Requests that failed are lost, those answered and failed were offered."""
    positions = np.arange(601.0)
    load = (readings("load.requests", 90 * positions, 1.0), readings("load.failures", 60 * positions, 1.0))
    stress = phases(("stress", 600))
    assert judge(OverloadLoss(capacity=100.0), load, stress).outcome is Outcome.FAIL
    assert judge(OverloadLoss(capacity=90.0), load, stress).outcome is Outcome.PASS


def test_the_worst_phase_decides() -> None:
    """Of two overload phases the one that lost more beyond need is reported."""
    cut = phases(("soak", 100), ("spike", 200), ("soak", 300), ("stress", 400), ("recovery", 500))
    first, bad = traffic([(500, 100), (1500, 200), (500, 300), (1500, 400), (500, 500)])
    value = bad.values.copy()
    value[301:] -= np.minimum(np.arange(value.size - 301), 100) * 100
    finding = judge(OverloadLoss(capacity=CAPACITY), (first, replace(bad, value=value)), cut)
    assert finding.outcome is Outcome.FAIL
    assert finding.reason.startswith("stress")


def test_several_devices_only_warn() -> None:
    """Nobody knows which of two devices lost the packets."""
    load = traffic([(500, 300), (1500, 600), (500, 900)], collapsed=0.1)
    finding = judge(OverloadLoss(capacity=CAPACITY), load, devices=2)
    assert finding.outcome is Outcome.WARN
    assert any("2 devices" in caveat for caveat in finding.doubts)


def test_where_it_does_not_apply() -> None:
    """Not without an overload phase or a load, and only once a run: not for generators; unseen phases are a gap."""
    load = traffic([(500, 300), (1500, 600), (500, 900)])
    rule = OverloadLoss(capacity=CAPACITY)
    assert judge(rule, load, phases(("soak", 900))).outcome is Outcome.NOT_APPLICABLE
    assert judge(rule, ()).outcome is Outcome.NOT_APPLICABLE
    assert rule.judge(Case("gen", "", Window(0, S), role="generator", load=load)) == ()
    unseen = judge(rule, tuple(series.between(0, 350 * S) for series in load))
    assert (unseen.outcome, unseen.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_capacity_by_hand() -> None:
    """Three clean bins in a row; excess is what is lost less what was too much."""
    rate = np.array([10.0, 20, 20, 20, math.nan, 50, 50])
    assert carried(rate, 0 * rate, 1.0, 0.0) is not None
    assert carried(rate[:2], np.zeros(2), 1.0, 0.0) is None
    assert carried(rate, rate, 1.0, 0.0) is None
    capacity = carried(rate, 0 * rate, 2.0, 0.0)
    assert capacity is not None
    assert (capacity.rate, capacity.bound) == (10.0, True)
    assert excess(np.array([15.0, 5.0]), np.array([6.0, 1.0]), np.array([10.0, 10.0])) == (2.0, 15.0)


@pytest.mark.parametrize(("name", "value"), [("capacity", -1.0), ("error", 1.0), ("limit", -0.1), ("drain", math.inf)])
def test_parameters_are_refused(name: str, value: float) -> None:
    """Ratios are below 1, rates and times finite."""
    with pytest.raises(ValueError, match="overload_loss"):
        replace(OverloadLoss(), **{name: value})


# Measured on a traffic manager of a 5520 platform: frame, capacity and offered in Mpps, lost share. Frames of 64 bytes
# lose less than offered - capacity, frames of 512 bytes more.
CELLS = [
    ("64 B", 5.96, 7.44, 0.149, -5.0),
    ("64 B", 5.96, 8.92, 0.216, -11.6),
    ("512 B", 3.00, 3.28, 0.114, 2.9),
    ("512 B", 3.00, 3.76, 0.223, 2.1),
    ("64 B, L3", 7.14, 8.04, 0.082, -3.0),
    ("64 B, L3", 7.14, 8.92, 0.179, -2.1),
    ("512 B, L3", 3.00, 3.28, 0.105, 2.0),
    ("512 B, L3", 3.00, 3.76, 0.216, 1.4),
]


def overloaded(offered: float, lost: float, seconds: int = 60) -> tuple[Series, ...]:
    """What is sent and comes back in Mpps, by the second, in one phase of stress."""
    positions = np.arange(seconds + 1.0) * 1e6
    return readings("load.tx.packets", np.round(offered * positions), 1.0), readings(
        "load.rx.packets", np.round(offered * (1 - lost) * positions), 1.0
    )


@pytest.mark.parametrize(("frame", "capacity", "offered", "lost", "points"), CELLS)
def test_the_cells_of_a_table_that_lose_more_than_offered_less_capacity(
    frame: str, capacity: float, offered: float, lost: float, points: float
) -> None:
    """Each cell is reported by how many points of what was offered it lost more, or less, than had to be lost."""
    cut = phases(("stress", 61))
    finding = judge(OverloadLoss(capacity=capacity * 1e6, error=0.0), overloaded(offered, lost), cut)
    more = frame.startswith("512")
    assert finding.outcome is (Outcome.FAIL if more else Outcome.PASS)
    assert finding.numbers["points"] == pytest.approx(points, abs=0.06)
    assert finding.numbers["lost_share"] == pytest.approx(lost, abs=1e-4)
    assert finding.numbers["explained_share"] == pytest.approx((offered - capacity) / offered, abs=1e-3)
    word = "more" if more else "less"
    assert f"{abs(finding.numbers['points']):.3g} points {word} than offered - capacity" in finding.reason
    assert f"points {word}" in finding.marks[0].text


def test_a_capacity_known_to_one_per_cent_leaves_small_excess_open() -> None:
    """With the default error only the worst cell fails; the others stay open, and say what settles."""
    cut, texts = phases(("stress", 61)), []
    for _, capacity, offered, lost, points in CELLS:
        if points > 0:
            texts.append(judge(OverloadLoss(capacity=capacity * 1e6), overloaded(offered, lost), cut))
    assert [f.outcome for f in texts] == [Outcome.FAIL, *[Outcome.INCONCLUSIVE] * 3]
    assert all("measure the capacity" in f.settle for f in texts[1:])
    assert all("points more" in f.reason for f in texts)


def test_every_overload_phase_is_reported_and_the_worst_decides() -> None:
    """Two phases of one run: both are marked with their points."""
    cut = phases(("stress", 100), ("soak", 200), ("stress", 300), ("recovery", 400))
    rate = np.repeat([1500.0, 500.0, 2000.0, 500.0], 100)
    back = np.repeat([950.0, 500.0, 1000.0, 500.0], 100)
    load = tuple(
        readings(m, np.append(0.0, np.cumsum(v)), 1.0)
        for m, v in (("load.tx.packets", rate), ("load.rx.packets", back))
    )
    finding = judge(OverloadLoss(capacity=CAPACITY, error=0.0), load, cut)
    assert finding.outcome is Outcome.FAIL
    assert [m.text.partition(" points ")[2][:4] for m in finding.marks] == ["more", "more"]
    assert "3.28 points" in finding.marks[0].text
    assert " 0 points" in finding.marks[1].text


def own(share: float) -> Series:
    """What a calibration reported once, at the begin of the run."""
    return readings("load.ceiling.loss", np.array([share]), 1.0)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, Outcome.FAIL), (0.001, Outcome.FAIL), (0.02, Outcome.INCONCLUSIVE), (0.5, Outcome.INCONCLUSIVE)],
)
def test_what_the_generator_loses_by_itself_is_not_held_against_the_device(share: float, expected: Outcome) -> None:
    """4 % of excess over a capacity known exactly: a generator that loses 2 % of what it sends may explain it (1 % is
    allowed, and 2 % of 1500 are 3 % of the capacity), one that loses 0.1 % does not; the figure is reported."""
    load = (*traffic([(500, 300), (1500, 600), (500, 900)], collapsed=0.035), own(share))
    rule = OverloadLoss(capacity=CAPACITY, error=0.0)
    finding = judge(rule, load)
    assert finding.outcome is expected
    if expected is Outcome.INCONCLUSIVE:
        assert finding.why is InconclusiveReason.GENERATOR
        assert f"up to {100 * share:.3g} % (calibrated), which explains it" in finding.reason
        assert finding.numbers["own_loss"] == share
        assert finding.settle
    elif share:
        assert any("0.1 % (calibrated), which does not explain it" in caveat for caveat in finding.doubts)


def test_a_device_that_loses_nothing_passes_with_a_leaky_generator() -> None:
    """Nothing to explain: the calibration changes no pass, and nonsense in it is no calibration."""
    load = traffic([(500, 300), (1500, 600), (500, 900)])
    assert judge(OverloadLoss(capacity=CAPACITY), (*load, own(0.05))).outcome is Outcome.PASS
    worse = traffic([(500, 300), (1500, 600), (500, 900)], collapsed=0.2)
    for share in (-1.0, math.nan, math.inf, 7.0):
        assert judge(OverloadLoss(capacity=CAPACITY), (*worse, own(share))).outcome is Outcome.FAIL


def test_a_rest_that_is_still_called_spike_is_part_of_it() -> None:
    """A spike of 150 % for 10 s, 3 s of rest under the same name: what the spike filled drains in the rest."""
    load = traffic([(300, 20), (1500, 30), (300, 100)])
    blur = load[0].time_ns + round(0.4 * S)  # readings that reach over the edge of the phase
    load = tuple(replace(s, time_ns=blur) for s in load)
    for cut in (
        phases(("baseline", 20), ("spike", 30), ("spike", 33), ("recovery", 100)),
        phases(("baseline", 20), ("spike", 30), ("recovery", 100)),
    ):
        finding = judge(OverloadLoss(capacity=CAPACITY), load, cut)
        assert finding.outcome is Outcome.PASS, finding.reason
        assert len(finding.marks) == 1
    lossy = traffic([(300, 20), (1500, 30), (300, 100)], collapsed=0.1)
    cut = phases(("baseline", 20), ("spike", 30), ("spike", 33), ("recovery", 100))
    assert judge(OverloadLoss(capacity=CAPACITY), lossy, cut).outcome is Outcome.FAIL, "and hides no collapse"


OUTCOMES = """
overload         | overload_loss
healthy at 120 % | PI
healthy at 200 % | PI
excess of 2 %    | PIF
excess of 5 %    | F
excess of 20 %   | F
capacity unknown | I
"""


def test_a_device_that_carries_more_than_its_capacity_has_lost_nothing_beyond_it() -> None:
    """Half of what it is asked for above its capacity came through: "-191 %" is no loss."""
    load = traffic([(500, 300), (3000, 600), (500, 900)], through=2900.0)
    finding = judge(OverloadLoss(capacity=CAPACITY), load)
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)
