"""queue_growth: leaked slots, busier queues, full ones, and what cannot be decided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.queue_growth import QueueGrowth
from soakwatch_rules.signals import readings

S = 10**9
HOURS = 12
N = HOURS * 360  # readings, one each 10 s


def depth(used: float | NDArray[np.float64] = 0.8, seed: int = 1, n: int = N) -> NDArray[np.float64]:
    """A queue that is served 20 packets a second and offered a share of that in batches (Lindley's recursion)."""
    rng = np.random.default_rng(seed)
    come = 10 * rng.poisson(np.broadcast_to(used, n) * 20)
    total = np.cumsum(come - 200)
    waiting: NDArray[np.float64] = (total - np.minimum.accumulate(np.minimum(total, 0))).astype(np.float64)
    return waiting


def queue(value: NDArray[np.float64], ceiling: float | None = 2000.0) -> Series:
    """Readings each 10 s."""
    series = readings("queue.depth", value, 10.0, object="queue=0")
    return replace(series, trait=replace(series.trait, ceiling=ceiling))


def judge(series: Series, *load: Series, phases: tuple[Phase, ...] = (), events: tuple[Event, ...] = ()) -> Finding:
    """The finding of one queue over the whole window."""
    window = Window(0, N * 10 * S)
    case = Case("dut", series.object, window, (series,), phases=phases, events=events, load=load)
    return QueueGrowth().judge(case)[0]


def leaked(slots: float, begin: float = 0.0) -> NDArray[np.float64]:
    """Slots lost evenly from a share of the run on."""
    return np.floor(np.clip((np.linspace(0, 1, N) - begin) / (1 - begin), 0, 1) * slots)


def sent(growth: float = 0.0) -> Series:
    """A generator whose rate grows by a share over the run."""
    rate = 1000 * (1 + growth * np.linspace(0, 1, N))
    return readings("load.tx.packets", np.cumsum(10 * rate), 10.0)


@pytest.mark.parametrize("used", [0.0, 0.5, 0.8, 0.9])
def test_a_steady_queue_passes(used: float) -> None:
    """Whatever its utilisation, a queue that comes back to empty passes, and says what it could have seen."""
    finding = judge(queue(depth(used)))
    assert finding.outcome is Outcome.PASS
    assert finding.limit == pytest.approx(0.1 * 2000 / 24)
    assert finding.smallest_detectable is not None
    assert finding.limit is not None
    assert finding.smallest_detectable >= finding.limit


@pytest.mark.parametrize(("begin", "seed"), [(0.0, 1), (0.0, 2), (0.5, 3)])
def test_leaked_slots_fail_with_a_forecast(begin: float, seed: int) -> None:
    """A tenth of the limit leaked within 12 h is twice the tolerance: fail; the time to overflow is near the truth."""
    finding = judge(queue(depth(0.5, seed) + leaked(300, begin)))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(25 / (1 - begin), rel=0.1)
    if begin == 0:
        assert finding.forecast is not None
        assert finding.forecast.after_s == pytest.approx(1700 / 25 * 3600, rel=0.1)
        assert finding.forecast.low_s <= finding.forecast.after_s <= finding.forecast.high_s


def test_without_a_limit_the_level_counts() -> None:
    """Growth is held against the level, nothing is forecast, and the finding says so."""
    finding = judge(queue(100 + leaked(50), None))
    assert finding.outcome is Outcome.FAIL
    assert finding.forecast is None
    assert any("limit is not known" in caveat for caveat in finding.doubts)
    assert judge(queue(100 + leaked(1), None)).outcome is Outcome.PASS


def test_a_busier_queue_is_load_and_no_leak() -> None:
    """Minima stay, medians climb: inconclusive without the load, a warning that names it with the load."""
    # every 30th reading finds the queue empty
    busy = np.where(np.arange(N) % 30 == 0, 0.0, 100 + 800 * np.linspace(0, 1, N))
    alone = judge(queue(busy))
    assert (alone.outcome, alone.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "load, not a leak" in alone.reason
    grown = judge(queue(busy), sent(0.3))
    assert grown.outcome is Outcome.WARN
    assert "load grew by 19 %" in grown.reason
    steady = judge(queue(busy), sent())
    assert steady.outcome is Outcome.WARN
    assert "more slowly" in steady.reason
    assert steady.forecast is not None


def test_a_full_queue_is_marked_and_warns() -> None:
    """Readings at the limit are marks and a warning; those of a stress phase only marks."""
    value = depth(0.5)
    value[1000:1010] = 2000
    finding = judge(queue(value))
    assert finding.outcome is Outcome.WARN
    assert [(m.begin_ns, m.end_ns) for m in finding.marks] == [(10000 * S, 10090 * S)]
    stress = Phase("stress", Window(9900 * S, 11000 * S))
    planned = judge(queue(value), phases=(stress,))
    assert planned.outcome is Outcome.PASS
    assert "planned" in planned.marks[0].text


def test_lives_are_judged_by_themselves() -> None:
    """A reboot that empties the queue hides no leak, and a new level after it is none."""
    reboot = Event("reboot", "dut", "", N * 5 * S, None)
    twice = leaked(600)
    twice[N // 2 :] -= twice[N // 2]
    assert judge(queue(depth(0.5) + twice), events=(reboot,)).outcome is Outcome.FAIL
    level = np.where(np.arange(N) < N // 2, 0.0, 300.0)
    finding = judge(queue(depth(0.5) + level), events=(reboot,))
    assert finding.outcome is Outcome.PASS
    assert any("2 lifetimes" in caveat for caveat in finding.doubts)


def test_too_short_never_passes() -> None:
    """Under two hours or 16 readings nothing is said; without a series it does not apply."""
    short = queue(depth()).between(0, 3600 * S)
    case = Case("dut", "queue=0", Window(0, 3600 * S), (short,))
    finding = QueueGrowth().judge(case)[0]
    assert (finding.outcome, finding.why, finding.settle) == (
        Outcome.INCONCLUSIVE,
        InconclusiveReason.TOO_SHORT,
        "needs 1 h more",
    )
    few = judge(queue(depth()).between(0, 100 * S))
    assert (few.outcome, few.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_FEW)
    assert QueueGrowth().judge(Case("dut", "", Window(0, S)))[0].outcome is Outcome.NOT_APPLICABLE


def test_outcomes_do_not_depend_on_the_unit() -> None:
    """Depth reported in bytes of 1500 gives the same outcome and the same share."""
    for value in (depth(0.8), depth(0.5) + leaked(300)):
        series, other = queue(value), queue(1500 * value, 3e6)
        other = replace(other, trait=replace(other.trait, quantum=1500.0, floor=1500.0))
        first, second = judge(series), judge(other)
        assert first.outcome is second.outcome
        assert second.measured == pytest.approx(1500 * (first.measured or 0.0), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("name", "value"), [("tolerance", 0.0), ("tolerance", float("nan")), ("shortest", -1.0)])
def test_parameters_are_refused(name: str, value: float) -> None:
    """A tolerance is a share above 0."""
    with pytest.raises(ValueError, match="queue_growth"):
        replace(QueueGrowth(), **{name: value})


OUTCOMES = """
queue                              | queue_growth
idle                               | P
utilisation .8                     | P
utilisation .95                    | PI
stands at 30                       | P
slots leak 50 % of the limit a day | F
slots leak 20 % of the limit a day | F
utilisation creeps .7 to .97       | PI
full at the end                    | FIW
"""
