"""cpu_spike: what is a spike, what is not, and what cannot be decided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.rules.draws import each_seed, seeds

from soakwatch_model.case import Before, Case, TargetFacts
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.signals import busy, raised, readings
from soakwatch_rules.stats.spikes import SpikeDefinition, chance

S = 10**9
METRIC = "system.cpu.utilization"


def judge(series: Series, *phases: Phase, baseline: tuple[Series, ...] = (), seconds: float | None = None) -> Finding:
    """The one finding of one series whose window begins at 0."""
    length = seconds if seconds is not None else len(series) * (series.cadence_s or 1.0)
    case = Case("dut", series.object, Window(0, round(length * S)), (series,), phases, before=Before(baseline=baseline))
    return CpuSpike().judge(case)[0]


def flat(n: int = 3600, level: float = 0.3, cadence_s: float = 1.0) -> Series:
    """A utilisation without noise."""
    return readings(METRIC, np.full(n, level), cadence_s)


def with_values(series: Series, index: int, values: list[float]) -> Series:
    """Some readings replaced."""
    value = series.values.copy()
    value[index : index + len(values)] = values
    return replace(series, value=value)


@pytest.mark.parametrize(
    ("peak", "lasting", "expected"),
    [
        (1.0, 10, Outcome.FAIL),
        (0.999, 10, Outcome.FAIL),
        (0.95, 10, Outcome.FAIL),
        (0.949, 600, Outcome.WARN),
        (0.949, 60, Outcome.PASS),
        (0.79, 600, Outcome.PASS),
        (1.0, 9, Outcome.PASS),
        (1.0, 1, Outcome.PASS),
    ],
)
def test_level_and_duration(peak: float, lasting: int, expected: Outcome) -> None:
    """From 95 % on for 10 s is a spike; 94.9 % is a surge at most, and 100 % for 9 s is neither."""
    finding = judge(with_values(flat(), 2000, [peak] * lasting))
    assert finding.outcome is expected
    if expected is Outcome.FAIL:
        assert finding.measured == pytest.approx(10)
        assert finding.marks[0].begin_ns == 1999 * S, "a reading speaks for the time before it"
        assert finding.marks[0].end_ns == 2009 * S
    elif peak >= 0.95 and expected is Outcome.PASS:
        assert finding.numbers["brief_peaks"] == 1


def test_a_wavering_plateau_is_one_spike() -> None:
    """Readings between 85 and 95 % do not end a spike; one below 85 % does."""
    wavering = with_values(flat(), 1000, [0.97, 0.93, 0.99, 0.86] * 30)
    assert judge(wavering).numbers["spikes"] == 1
    two = with_values(flat(), 1000, [1.0] * 20 + [0.84] + [1.0] * 20)
    assert judge(two).numbers["spikes"] == 2


@pytest.mark.parametrize("begins", [22, 30, 57])
@pytest.mark.parametrize("lasting", [20, 40, 80])
def test_a_spike_in_the_first_minute_of_a_short_table(begins: int, lasting: int) -> None:
    """Few readings before it show only short means, which scatter: those after it say how calm the device is."""
    fails = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0, 0.06, 480)
        for i in range(1, noise.size):
            noise[i] = 0.5 * noise[i - 1] + 0.87 * noise[i]
        calm = np.clip(0.58 + noise, 0, 1)
        assert judge(readings(METRIC, calm, 1.0)).outcome is Outcome.PASS
        busy_at_once = calm.copy()
        busy_at_once[begins : begins + lasting] = 0.98
        fails += judge(readings(METRIC, busy_at_once, 1.0)).outcome is Outcome.FAIL
    assert fails >= 19


@pytest.mark.parametrize("minutes", [5, 14, 16, 20, 30, 120])
def test_a_long_spike_does_not_become_the_level(minutes: int) -> None:
    """The level is frozen while a spike lasts, so all of it counts; one that follows at once is seen as well."""
    series = with_values(flat(6 * 3600), 7200, [1.0] * (60 * minutes) + [0.3] * 20 + [1.0] * 30)
    finding = judge(series)
    assert finding.numbers["spikes"] == 2
    assert finding.measured == pytest.approx(60 * minutes)


def test_a_spike_at_the_begin_and_one_that_does_not_end() -> None:
    """The first seconds and the last ones are judged like all others."""
    assert judge(with_values(flat(), 0, [1.0] * 15)).outcome is Outcome.FAIL
    assert judge(with_values(flat(), 3600 - 15, [1.0] * 15)).outcome is Outcome.FAIL


def test_saturation_until_the_end_is_no_poll_mode() -> None:
    """A device that goes to 100 % after a fifth of the run and stays there fails: its median alone would hide it."""
    assert judge(with_values(flat(), 720, [1.0] * 2880)).outcome is Outcome.FAIL


def test_a_core_that_polls_is_not_judged() -> None:
    """A core that stands at the top from the first reading to the last polls; so does one that was busy in its
    baseline; one with work to do eases off now and then."""
    core = busy(1, 0.99, 0.01, 3600, metric="system.cpu.core.utilization")
    assert judge(core).outcome is Outcome.NOT_APPLICABLE
    assert "busy-polling" in judge(core).reason
    by_baseline = judge(with_values(flat(), 0, [1.0] * 3600), baseline=(flat(600, 0.97),))
    assert by_baseline.outcome is Outcome.NOT_APPLICABLE
    worked = judge(busy(1, 0.97, 0.03, 3600, metric="system.cpu.core.utilization"))
    assert worked.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("level", [0.97, 1.0])
def test_a_device_that_is_busy_throughout_is_not_passed(level: float) -> None:
    """Nothing tells saturation from poll mode but evidence: a plan, a driver, a baseline."""
    finding = judge(flat(3600, level))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "poll_mode" in finding.settle
    case = Case(
        "dut", "", Window(0, 3600 * S), (flat(3600, level),), facts=TargetFacts(polling={"*": "DPDK forwards there"})
    )
    (known,) = CpuSpike().judge(case)
    assert known.outcome is Outcome.NOT_APPLICABLE
    assert "busy-polling core (DPDK forwards there)" in known.reason


def test_baseline_gives_the_level() -> None:
    """With a calm baseline phase a whole soak at 97 % is a spike; a baseline of under 16 readings is not used."""
    soak = flat(3600, 0.97)
    assert judge(soak, baseline=(flat(600, 0.2),)).outcome is Outcome.FAIL
    assert judge(soak, baseline=(flat(15, 0.2),)).outcome is Outcome.INCONCLUSIVE


def test_without_head_room_a_plateau_is_inconclusive() -> None:
    """From a level of 85 % no rise of 20 points can show: nothing at the top passes, ten minutes there do not."""
    calm = busy(3, 0.85, 0.03, 7200)
    finding = judge(calm)
    assert finding.outcome is Outcome.PASS
    assert finding.smallest_detectable is None
    assert any("too high or too noisy to show a sudden rise" in caveat for caveat in finding.doubts)
    result = judge(with_values(calm, 3000, [0.999] * 600))
    assert (result.outcome, result.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)
    assert "less than 20 points above the device's own level" in result.reason


def phase(name: str, begin_s: int, end_s: int) -> Phase:
    """A phase in seconds."""
    return Phase(name, Window(begin_s * S, end_s * S))


@pytest.mark.parametrize("name", ["spike", "stress"])
def test_planned_spikes_are_reported_and_do_not_fail(name: str) -> None:
    """A spike inside a spike or stress phase (5 s and a reading more) was asked for; one outside fails beside it."""
    planned = with_values(flat(), 1000, [1.0] * 104)
    inside = judge(planned, phase(name, 1003, 1100))
    assert inside.outcome is Outcome.PASS
    assert inside.numbers["planned_spikes"] == 1
    assert any("were not counted" in caveat for caveat in inside.doubts)
    assert judge(planned, phase(name, 1020, 1100)).outcome is Outcome.FAIL
    assert judge(planned, phase("soak", 0, 3600)).outcome is Outcome.FAIL
    both = judge(with_values(planned, 3000, [1.0] * 20), phase(name, 1003, 1100))
    assert both.outcome is Outcome.FAIL
    assert both.numbers["spikes"] == 1


def test_too_few_readings_never_pass() -> None:
    """Under 16 readings, or under half of those expected, are inconclusive; a spike that was seen still fails."""
    assert judge(flat(15)).outcome is Outcome.INCONCLUSIVE
    assert judge(flat(29)).outcome is Outcome.INCONCLUSIVE  # no room for three spikes of 10 s
    assert judge(flat(30)).outcome is Outcome.PASS
    assert judge(flat(100), seconds=201).outcome is Outcome.INCONCLUSIVE
    assert judge(with_values(flat(100), 50, [1.0] * 20), seconds=201).outcome is Outcome.FAIL


def test_gaps_are_reported() -> None:
    """A gap of over three readings is a caveat, and so is a spike that was open on both sides of it."""
    spiky = with_values(flat(), 1000, [1.0] * 200)
    keep = np.ones(3600, dtype=bool)
    keep[1050:1150] = False
    finding = judge(replace(spiky, time_ns=spiky.time_ns[keep], value=spiky.value[keep]))
    assert finding.numbers["spikes"] == 1
    assert any("1 gap" in caveat for caveat in finding.doubts)
    assert any("continued after a gap" in caveat for caveat in finding.doubts)
    assert finding.measured == pytest.approx(102), "a reading speaks for three readings at most"


@pytest.mark.parametrize(
    ("cadence", "always"), [(0.2, 10.2), (1.0, 11.0), (5.0, 15.0), (10.0, 20.0), (30.0, 60.0), (60.0, 120.0)]
)
def test_a_spike_of_the_stated_length_is_always_seen(cadence: float, always: float) -> None:
    """A spike as long as smallest_detectable is found wherever it begins; the finding states that length."""
    calm = flat(max(200, round(1200 / cadence)), 0.3, cadence)
    finding = judge(calm)
    assert finding.smallest_detectable == pytest.approx(always)
    for offset in np.linspace(0, cadence, 7):
        assert judge(raised(calm, 300 + float(offset), always + 1e-6)).outcome is Outcome.FAIL


def test_coarse_readings_decide_nothing() -> None:
    """Five minutes between readings are inconclusive; a spike that they show fails all the same."""
    coarse = flat(100, 0.3, 300.0)
    assert judge(coarse).outcome is Outcome.INCONCLUSIVE
    assert "poll every" in judge(coarse).settle
    assert judge(with_values(coarse, 50, [1.0])).outcome is Outcome.FAIL


BACKGROUNDS = {"30 %": (0.3, 0.06, 30.0), "60 % bursty": (0.6, 0.06, 10.0), "white": (0.4, 0.1, 0.0)}


@pytest.mark.parametrize("name", BACKGROUNDS)
@pytest.mark.parametrize("seed", range(2))
def test_backgrounds_without_a_spike_pass_and_a_spike_is_found(name: str, seed: int) -> None:
    """Six hours of noise pass where the level leaves head room; with one minute at 100 % they fail."""
    level, sd, tau = BACKGROUNDS[name]
    calm = busy(seed, level, sd, 6 * 3600, tau_s=tau)
    assert judge(calm).outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE}
    if level == 0.3:
        assert judge(calm).outcome is Outcome.PASS
        assert judge(raised(calm, 7777.3, 60)).outcome is Outcome.FAIL


def test_polls_a_little_early_or_late_change_nothing() -> None:
    """Ten readings at the top are a spike although their times waver by some milliseconds."""
    rng = np.random.default_rng(5)
    series = with_values(flat(600), 300, [1.0] * 10)
    wavering = replace(series, time_ns=series.time_ns + rng.integers(0, 20_000_000, 600))
    assert judge(wavering).outcome is Outcome.FAIL


@pytest.mark.parametrize(("begin", "expected"), [(-70, Outcome.WARN), (-30, Outcome.PASS), (10, Outcome.WARN)])
def test_a_surge_warns_unless_a_phase_just_began(begin: int, expected: Outcome) -> None:
    """From 30 % to 85 % for 100 s is a surge; if a phase began up to a minute before, its load explains it."""
    surge = with_values(flat(), 2000, [0.85] * 100)
    finding = judge(surge, phase("ramp", 2000 + begin, 3000))
    assert finding.outcome is expected
    assert finding.numbers["surges"] == (expected is Outcome.WARN)
    assert finding.numbers["spikes"] == 0


def test_a_surge_in_a_stress_phase_was_asked_for() -> None:
    """Inside of a stress phase it is not even reported."""
    surge = with_values(flat(), 2000, [0.85] * 100)
    assert judge(surge, phase("stress", 1500, 2200)).outcome is Outcome.PASS
    assert judge(surge, phase("soak", 1500, 2200)).outcome is Outcome.WARN


@pytest.mark.parametrize("cadence", [3.34, 5.0, 10.0, 30.0, 60.0])
@pytest.mark.parametrize("seed", range(5))
def test_three_readings_at_the_top_are_a_spike(cadence: float, seed: int) -> None:
    """Three readings of 100 % in a row are found at every cadence at which they last 10 s."""
    calm = busy(seed, 0.3, 0.06, 500 * cadence, cadence)
    assert judge(calm).outcome is Outcome.PASS
    assert judge(with_values(calm, 200 + 7 * seed, [1.0] * 3)).outcome is Outcome.FAIL


def test_little_room_asks_for_a_longer_plateau() -> None:
    """From 70 % ± 6 six sigmas of 10 s means leave no room below 100 %: such a plateau is reported and not decided, one
    of 31 s is a spike."""
    calm = busy(2, 0.7, 0.06, 6 * 3600)
    assert judge(calm).outcome is Outcome.PASS
    assert judge(with_values(calm, 9000, [1.0] * 12)).outcome is Outcome.INCONCLUSIVE
    assert judge(with_values(calm, 9000, [1.0] * 31)).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("level", "sd", "tau"),
    [(0.35, 0.14, 0.0), (0.45, 0.15, 2.0), (0.6, 0.12, 10.0), (0.7, 0.06, 30.0), (0.75, 0.04, 30.0)],
)
@pytest.mark.parametrize("seed", each_seed(1, 3))
def test_the_stated_length_is_the_one_that_was_used(level: float, sd: float, tau: float, seed: int) -> None:
    """A plateau at 100 % as long as the finding says is a spike on any background, wherever it lies."""
    calm = busy(seed, level, sd, 7200, tau_s=tau)
    finding = judge(calm)
    assert finding.smallest_detectable is not None
    for index in np.random.default_rng(seed).uniform(2000, 6000, 5):
        assert judge(raised(calm, float(index), finding.smallest_detectable)).outcome is Outcome.FAIL


def test_a_short_run_does_not_hold_the_plateau_against_itself() -> None:
    """In three minutes the plateau and a start-up are half of the run: level and scatter are those before it."""
    rng = np.random.default_rng(7)
    value = np.clip(0.35 + 0.14 * rng.standard_normal(180), 0, 1)
    value[100:124] = 1.0
    assert judge(readings(METRIC, value, 1.0)).outcome is Outcome.FAIL
    value[:25] *= np.linspace(0, 1, 25)
    value[60:150] = 1.0
    finding = judge(readings(METRIC, value, 1.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.marks[0].text.startswith("100 % for 1 min 30 s from a level of 3")


def pulses(every: float, lasting: float, seconds: float, first: float = 20.0, level: float = 0.2) -> Series:
    """Busy to the top for a while, again and again, over noise."""
    calm = busy(9, level, 0.03, seconds)
    value, positions = calm.values.copy(), np.arange(len(calm))
    value[(positions >= first) & ((positions - first) % every < lasting)] = 1.0
    return replace(calm, value=value)


def test_what_comes_all_along_is_the_habit_of_the_device() -> None:
    """20 s of each minute at the top, or 15 s of each 10 min, from the start to the end: its own way, and reported."""
    for every, lasting in ((60.0, 20.0), (600.0, 15.0)):
        finding = judge(pulses(every, lasting, 6 * 3600))
        assert finding.outcome is Outcome.PASS
        assert "its normal behaviour" in finding.reason
        assert any("a fault present from the start" in caveat for caveat in finding.doubts)


def test_what_is_unlike_the_habit_is_a_spike() -> None:
    """A plateau twice as long as the others fails, and so does what begins in the course of the run, or with the
    load."""
    habit = pulses(60, 20, 6 * 3600)
    longer = judge(with_values(habit, 9000, [1.0] * 90))
    assert (longer.outcome, longer.numbers["spikes"]) == (Outcome.FAIL, 1)
    assert judge(pulses(600, 15, 6 * 3600, first=8000)).outcome is Outcome.FAIL
    calm = replace(habit, value=np.where(np.arange(len(habit)) < 1800, 0.2, habit.values))
    assert judge(calm, phase("baseline", 0, 1800), phase("soak", 1800, 21600)).outcome is Outcome.FAIL


def test_a_rare_and_uneven_habit_warns() -> None:
    """Twelve plateaus at odd times, in every quarter of the run, may be a fault all along."""
    calm, rng = busy(9, 0.2, 0.03, 12 * 3600), np.random.default_rng(2)
    for hour in range(12):
        calm = with_values(calm, hour * 3600 + int(rng.integers(0, 3000)), [1.0] * 15)
    finding = judge(calm)
    assert finding.outcome is Outcome.WARN
    assert "or a fault from the start" in finding.reason


def test_a_short_run_does_not_tell_a_habit_from_a_fault() -> None:
    """Three plateaus a minute apart in three minutes may be either."""
    finding = judge(pulses(60, 15, 180))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.TOO_SHORT)


@pytest.mark.parametrize(("cadence", "lasting"), [(60.0, 60.0), (60.0, 100.0), (5.0, 12.0), (30.0, 45.0)])
@pytest.mark.parametrize("draws", seeds(25, 100))
def test_the_chance_of_a_short_spike_is_what_it_says(draws: range, cadence: float, lasting: float) -> None:
    """Of spikes that begin at any time the stated share is found."""
    count = len(draws)
    shape = SpikeDefinition(0.95, 0.85, 0.2, 6.0, 10.0, 1800.0)
    calm, begins = flat(100, 0.3, cadence), np.linspace(0, cadence, count, endpoint=False)
    found = sum(judge(raised(calm, 50 * cadence + float(b), lasting)).outcome is Outcome.FAIL for b in begins)
    assert found / count == pytest.approx(chance(lasting, cadence, shape, 0.3), abs=2 / count)


def test_a_poll_a_minute_may_come_a_little_late() -> None:
    """Readings 60.4 s apart decide as those 60 s apart do; a single low reading at 5 min is no spike of no length."""
    assert judge(replace(flat(200, 0.3, 60.4), cadence_s=None), seconds=12080).outcome is Outcome.PASS
    coarse = with_values(readings(METRIC, 0.5 + 0.3 * np.sin(np.arange(100.0)), 300.0), 50, [0.96])
    assert all("0 ms" not in mark.text for mark in judge(coarse).marks)


@pytest.mark.parametrize(
    "bad", [{"enter": 1.5}, {"leave": 0.99}, {"rise": -1.0}, {"seconds": 0.0}, {"surge": 1.5}, {"surge_seconds": 0.0}]
)
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="cpu_spike"):
        CpuSpike(**bad)


OUTCOMES = """
cpu                            | cpu_spike
quiet 30 %                     | P
quiet 30 %, each second        | P
bursts of 2 s                  | P
60 % bursty                    | PIW
wave of a day 40 ± 25 %        | P
busy 85 ± 8 %                  | PIW
poll mode 100 %                | I
poll mode 99 %                 | I
half polling 97 %              | I
core in poll mode              | N
20 s of each minute at the top | P
climbs to the top              | I
spike 5 s each second          | P
spike 11 s each second         | F
spike 15 s each 5 s            | F
spike 10 s each 10 s           | PF
spike 20 s each 10 s           | F
spike 120 s each 60 s          | F
spike 10 min                   | F
spike 2 h                      | F
spike to 90 %                  | P
peg of 3 readings, 10 s        | F
peg of 3 readings, 60 s        | F
plateau 95 ± 2 %               | F
spike that was asked for       | P
20 min at the top              | F
20 min at the top, drops       | F
"""
