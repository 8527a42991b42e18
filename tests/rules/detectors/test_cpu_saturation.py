"""cpu_saturation: minutes at the top, with and without drops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, TargetFacts
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.cpu_saturation import CpuSaturation
from soakwatch_rules.signals import busy, raised, readings
from soakwatch_rules.stats.saturated_windows import Means, Windows, covered_seconds

S = 10**9
TOTAL = "system.cpu.utilization"


def judge(*series: Series, phases: tuple[Phase, ...] = (), seconds: float = 7200) -> Finding:
    """The one finding of a target of two hours."""
    return CpuSaturation().judge(Case("dut", "", Window(0, round(seconds * S)), series, phases))[0]


def flat(level: float = 0.3, n: int = 720, cadence: float = 10.0) -> Series:
    """A utilisation without noise."""
    return readings(TOTAL, np.full(n, level), cadence)


def core(series: Series, number: int) -> Series:
    """The same as one core's."""
    return replace(series, metric="system.cpu.core.utilization", object=f"core={number}")


def drops(at_s: float = -1, number: float = 0.0, background: float = 0.0, n: int = 720) -> Series:
    """A drop counter, read each 10 s, that counts ``background`` a reading and ``number`` at once."""
    value = background * np.arange(n, dtype=np.float64) + number * (10.0 * np.arange(n) >= at_s)
    return readings("system.softnet.dropped", value, 10.0)


@pytest.mark.parametrize(("lasting", "expected"), [(250, Outcome.PASS), (290, Outcome.WARN), (320, Outcome.WARN)])
def test_five_minutes_at_the_top_warn(lasting: float, expected: Outcome) -> None:
    """From 30 % a plateau of 100 % gives a mean of 95 % over 5 min once it lasts 279 s: (0.95 - 0.3)/0.7 of 300 s."""
    finding = judge(raised(flat(), 3000, lasting), drops())
    assert finding.outcome is expected
    assert finding.limit == 300


def test_the_stretch_is_the_union_of_its_windows() -> None:
    """600 s at 100 % from an idle 0 %: the mean holds until 15 s of a window lie outside, at either end."""
    finding = judge(raised(flat(0.0), 3000, 600))
    assert finding.outcome is Outcome.WARN
    assert finding.measured == pytest.approx(630, abs=10)
    assert finding.marks[0].begin_ns == pytest.approx(2985 * S, abs=10 * S)
    assert "no drop counter" in " ".join(finding.doubts)


def test_drops_in_the_stretch_fail_and_others_do_not() -> None:
    """Ten drops while saturated fail; the same ten before it, or a background that goes on as always, only warn."""
    hot = raised(flat(), 3000, 600)
    failed = judge(hot, drops(3300, 10))
    assert failed.outcome is Outcome.FAIL
    assert "system.softnet.dropped counted 10" in failed.reason
    assert judge(hot, drops(1000, 10)).outcome is Outcome.WARN
    assert judge(hot, drops(background=1.0)).outcome is Outcome.WARN
    assert judge(hot, drops(3300, 500, background=1.0)).outcome is Outcome.FAIL


def test_drops_without_saturation_pass() -> None:
    """Drops are another rule's matter."""
    assert judge(flat(), drops(3300, 1000)).outcome is Outcome.PASS


@pytest.mark.parametrize("name", ["stress", "spike"])
def test_a_stress_phase_asked_for_it(name: str) -> None:
    """A saturation inside a stress phase is reported and neither warned of nor failed."""
    phase = Phase(name, Window(2990 * S, 3620 * S))
    finding = judge(raised(flat(), 3000, 600), drops(3300, 10), phases=(phase,))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["planned"] == 1
    assert "1 planned saturation" in finding.reason


def test_cores_that_poll_are_named_and_not_failed() -> None:
    """A core at 99 % from the begin on is named; the others are judged, and one of them saturates."""
    polling = core(busy(1, 0.99, 0.01, 7200, 10.0), 0)
    calm = judge(flat(), polling)
    assert calm.outcome is Outcome.PASS
    assert any("poll mode" in caveat and "core=0" in caveat for caveat in calm.doubts)
    hot = judge(flat(), polling, core(raised(flat(), 3000, 600), 1))
    assert hot.outcome is Outcome.WARN
    assert "core=1" in hot.reason
    assert judge(polling).outcome is Outcome.NOT_APPLICABLE


def test_saturation_from_the_first_reading_on_is_reported() -> None:
    """97 % for all of the run without a baseline: a warning, or a failure with drops; not if it is known to poll."""
    hot = flat(0.97)
    warned = judge(hot, drops())
    assert warned.outcome is Outcome.WARN
    assert "from the first sample to the last (or in poll mode" in warned.reason
    steady = drops(background=1.0)
    assert judge(hot, steady).outcome is Outcome.FAIL, "there is no other time to compare the drops with"
    case = Case("dut", "", Window(0, 7200 * S), (hot,), facts=TargetFacts(polling={"*": "the plan says so"}))
    assert CpuSaturation().judge(case)[0].outcome is Outcome.NOT_APPLICABLE


def test_the_total_is_busy_because_cores_poll() -> None:
    """Nineteen of twenty cores that poll make a total of 96 %: not saturated while the other core has room."""
    polls = [core(flat(1.0), number) for number in range(19)]
    finding = judge(flat(0.96), *polls, core(flat(0.2), 19))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["polling"] == 20
    assert judge(flat(1.0), *polls).outcome is Outcome.WARN, "no core has room: saturated, or all of them poll"


def test_a_baseline_tells_saturation_from_polling() -> None:
    """Busy from the first reading of the soak on, but not in the baseline before it, is no poll-mode core."""
    value = np.full(720, 1.0)
    value[:60] = 0.2
    phases = (Phase("baseline", Window(0, 600 * S)), Phase("soak", Window(600 * S, 7200 * S)))
    assert judge(readings(TOTAL, value, 10.0), phases=phases).outcome is Outcome.WARN


def test_what_cannot_be_decided_does_not_pass() -> None:
    """Few readings, a short run, half of the readings missing, or one each ten minutes decide nothing."""
    assert judge(flat(n=10)).why is InconclusiveReason.TOO_FEW
    assert judge(flat(n=60), seconds=600).why is InconclusiveReason.TOO_SHORT
    assert judge(flat(n=300)).why is InconclusiveReason.GAP
    assert judge(flat(n=50, cadence=600.0), seconds=30000).why is InconclusiveReason.CADENCE
    assert judge().outcome is Outcome.NOT_APPLICABLE


def test_a_gap_is_neither_busy_nor_idle() -> None:
    """Two readings at the top at both ends of a gap of ten minutes are no saturation: a window must be seen."""
    series = flat()
    keep = np.ones(720, dtype=bool)
    keep[301:361] = False
    value = series.values.copy()
    value[[300, 361]] = 1.0
    assert judge(replace(series, time_ns=series.time_ns[keep], value=value[keep])).outcome is Outcome.PASS


def test_means_agree_with_a_plain_sum() -> None:
    """The highest mean over a window is what a loop over all windows finds."""
    rng = np.random.default_rng(3)
    time_ns = np.cumsum(rng.integers(8, 13, 200)) * S
    value = rng.random(200)
    lasted = covered_seconds(time_ns, 10.0)
    fine = np.repeat(value, np.round(lasted).astype(int))
    plain = max(float(fine[i : i + 100].mean()) for i in range(fine.size - 99))
    assert Means(time_ns, value, lasted).highest(100.0) == pytest.approx(plain)


def test_series_that_were_read_together_share_their_windows() -> None:
    """With a gap in the readings, windows of one series tell of another what its own would; other times do not fit."""
    rng = np.random.default_rng(4)
    time_ns = np.delete(np.arange(300), slice(100, 140)) * 10 * S
    lasted = covered_seconds(time_ns, 10.0)
    item, other = rng.random((2, time_ns.size))
    windows = Windows(time_ns, lasted, 100.0)
    assert windows.fits(time_ns.copy(), lasted.copy())
    assert not windows.fits(time_ns + S, lasted)
    for value in (item, other):
        assert float(windows.means(value).max()) == Means(time_ns, value, lasted).highest(100.0)
    assert windows.union(windows.means(np.ones(time_ns.size)), 1.0)[0][0] == -20 * S  # nine tenths of it were seen
    assert windows.union(windows.means(item), 1.1) == []


@pytest.mark.parametrize(("level", "sd"), [(0.3, 0.06), (0.6, 0.12), (0.85, 0.04)])
def test_busy_backgrounds_are_not_saturated(level: float, sd: float) -> None:
    """A day of noise passes; with 5 min 20 s at the top it warns."""
    calm = busy(5, level, sd, cadence_s=10.0)
    assert judge(calm, drops(), seconds=86400).outcome is Outcome.PASS
    assert judge(raised(calm, 40003.3, 320), drops(), seconds=86400).outcome is Outcome.WARN


@pytest.mark.parametrize("bad", [{"enter": 1.5}, {"seconds": 0.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="cpu_saturation"):
        CpuSaturation(**bad)


OUTCOMES = """
cpu                            | cpu_saturation
quiet 30 %                     | P
quiet 30 %, each second        | P
bursts of 2 s                  | P
60 % bursty                    | P
wave of a day 40 ± 25 %        | P
busy 85 ± 8 %                  | PW
poll mode 100 %                | W
poll mode 99 %                 | W
half polling 97 %              | W
core in poll mode              | N
20 s of each minute at the top | P
climbs to the top              | W
spike 5 s each second          | P
spike 11 s each second         | P
spike 15 s each 5 s            | P
spike 10 s each 10 s           | P
spike 20 s each 10 s           | P
spike 120 s each 60 s          | P
spike 10 min                   | W
spike 2 h                      | W
spike to 90 %                  | P
peg of 3 readings, 10 s        | P
peg of 3 readings, 60 s        | PW
plateau 95 ± 2 %               | P
spike that was asked for       | P
20 min at the top              | W
20 min at the top, drops       | F
"""
