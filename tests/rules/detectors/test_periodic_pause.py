"""periodic_pause: dips, logs of pauses, rhythms, and what is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.fact import Repeated
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.periodic_pause import PeriodicPause
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.throughput_dips import by_chance, dips, level_without, rhythm, running_level, standstills

S = 10**9


def rate(n: int = 1200, level: float = 1000.0, sd: float = 0.02, seed: int = 1) -> NDArray[np.float64]:
    """Throughput without pauses."""
    return level * (1 + sd * np.random.default_rng(seed).standard_normal(n))


def stopped(value: NDArray[np.float64], begins: list[int], seconds: int = 1, left: float = 0.0) -> NDArray[np.float64]:
    """Throughput that falls to a share of itself for some readings."""
    out = value.copy()
    for begin in begins:
        out[begin : begin + seconds] *= left
    return out


def run(value: NDArray[np.float64], *more: Series, cadence_s: float = 1.0) -> Case:
    """A run whose generator reports this rate."""
    load = (readings("load.request.rate", value, cadence_s), *more)
    return Case("dut", "", Window(0, round(value.size * cadence_s * S)), load=load)


def judge(case: Case, rule: PeriodicPause | None = None) -> Finding:
    """The first finding."""
    return (rule or PeriodicPause()).judge(case)[0]


def test_a_rhythm_is_found_with_its_period() -> None:
    """Twenty pauses of one second each minute fail and give 60 s; their marks are the readings."""
    finding = judge(run(stopped(rate(), list(range(30, 1200, 60)))))
    assert finding.outcome is Outcome.FAIL
    assert finding.fact(Repeated) == Repeated(20)
    assert finding.numbers["pauses"] == 20
    assert finding.numbers["period_s"] == pytest.approx(60.0)
    assert finding.numbers["lost_s"] == pytest.approx(20, rel=0.03)
    assert (finding.marks[0].begin_ns, finding.marks[0].end_ns) == (29 * S, 30 * S)
    assert "timer of 1 min" in finding.reason


@pytest.mark.parametrize("after", [10, 45, 60, 100, 150])
def test_a_slump_is_found_wherever_the_run_ends(after: int) -> None:
    """Sixteen minutes at a tenth of the level fail, also soon before the end, or soon after the begin, of an hour and
    a half: a live judge that looks at the last hour says the same."""
    late = stopped(rate(497 + after, sd=0.005), [400], 97, left=0.1)
    for value in (late, late[::-1], late[-360:]):
        finding = judge(run(value, cadence_s=10.0))
        assert (finding.outcome, finding.numbers["pauses"]) == (Outcome.FAIL, 1), finding.reason
        assert finding.measured == pytest.approx(970 * 0.9, rel=0.03)


def test_how_many_pauses_a_rhythm_takes() -> None:
    """Five exactly even ones are a rhythm, four are not; eight with jitter are none, nine are; random ones never."""
    assert "period_s" in judge(run(stopped(rate(), list(range(100, 600, 100))))).numbers
    four = judge(run(stopped(rate(), list(range(100, 500, 100)))))
    assert four.outcome is Outcome.WARN
    assert "period_s" not in four.numbers
    assert "every" not in four.reason
    jitter = [100, 187, 310, 395, 513, 582, 709, 790, 904]
    assert "period_s" in judge(run(stopped(rate(), jitter))).numbers
    assert "period_s" not in judge(run(stopped(rate(), jitter[:8]))).numbers
    positions = np.cumsum(np.random.default_rng(4).exponential(60, 19)).astype(int)
    assert "period_s" not in judge(run(stopped(rate(1800), positions.tolist()))).numbers


@pytest.mark.parametrize("seconds", [1, 2, 5])
@pytest.mark.parametrize("hours", [1, 8])
def test_stops_each_ten_minutes_fail(seconds: int, hours: int) -> None:
    """A device that stops for a second and more each ten minutes fails, in an hour as in a night, with its period."""
    n = hours * 3600
    finding = judge(run(stopped(rate(n, sd=0.04), list(range(300, n, 600)), seconds)))
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["period_s"] == pytest.approx(600, abs=2)
    assert "pauses of 1 s or longer that keep a period fail" in finding.reason
    assert finding.limit == 1.0


def test_a_plan_may_allow_them() -> None:
    """What the plan allows again and again warns, what it tolerates passes; shorter ones than a second warn."""
    even = run(stopped(rate(7200), list(range(300, 7200, 600)), 2))
    assert judge(even, PeriodicPause(repeated=3.0)).outcome is Outcome.WARN
    assert judge(even, PeriodicPause(tolerated=3.0)).outcome is Outcome.PASS
    assert judge(run(stopped(rate(7200), list(range(300, 7200, 600)), 1, 0.5))).outcome is Outcome.WARN


def test_a_rhythm_among_short_dips_is_found() -> None:
    """Stops of two seconds each ten minutes among 250 sub-second dips keep their period, and fail."""
    value = rate(14400, sd=0.02)
    value = stopped(value, np.random.default_rng(6).choice(14400, 250, replace=False).tolist(), 1, 0.55)
    assert "every" not in judge(run(value)).reason
    assert judge(run(value)).outcome is Outcome.WARN
    finding = judge(run(stopped(value, list(range(300, 14400, 600)), 2)))
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["period_s"] == pytest.approx(600, abs=2)


def test_irregular_stops_fail_if_they_take_much_time() -> None:
    """Two seconds at random each two minutes are over 1 % of the time; each twenty minutes they warn."""
    rng = np.random.default_rng(8)
    often, seldom = (rng.choice(21600 // 4, 21600 // every, replace=False) * 4 for every in (120, 1200))
    assert judge(run(stopped(rate(21600), often.tolist(), 2))).outcome is Outcome.FAIL
    assert judge(run(stopped(rate(21600), seldom.tolist(), 2))).outcome is Outcome.WARN


def test_one_pause_is_one_pause() -> None:
    """A single stall is told as one, and nothing of a period is said."""
    finding = judge(run(stopped(rate(), [600], 60)))
    assert finding.outcome is Outcome.FAIL
    assert (
        finding.reason == "throughput paused once, for 1 min, at 1970-01-01 00:09:59 UTC; one of 10 s or longer fails"
    )


@pytest.mark.parametrize(("seconds", "expected"), [(3, Outcome.WARN), (9, Outcome.WARN), (12, Outcome.FAIL)])
def test_ten_lost_seconds_fail(seconds: int, expected: Outcome) -> None:
    """A pause warns; from ten lost seconds on the service was not available."""
    finding = judge(run(stopped(rate(), [600], seconds)))
    assert finding.outcome is expected
    assert finding.measured == pytest.approx(seconds, rel=0.03)


def test_tolerated_pauses_pass() -> None:
    """Pauses up to what is tolerated are reported and pass."""
    finding = judge(run(stopped(rate(), [300, 600, 900])), PeriodicPause(tolerated=2.0))
    assert finding.outcome is Outcome.PASS
    assert "3 pauses of up to" in finding.reason


def test_shallow_dips_are_none() -> None:
    """A dip by 25 % is none; one by 35 % is, unless noise is as wide."""
    assert judge(run(stopped(rate(), [600], 5, 0.75))).outcome is Outcome.PASS
    assert judge(run(stopped(rate(), [600], 5, 0.6))).outcome is Outcome.WARN
    assert judge(run(stopped(rate(sd=0.1), [600], 5, 0.6))).outcome is Outcome.PASS
    noisy = judge(run(rate(sd=0.3)))
    assert noisy.outcome is Outcome.PASS, "a noise that hides shallow dips hides no standstill"
    assert "short stops cannot be detected" in noisy.reason
    assert noisy.smallest_detectable is not None
    assert noisy.smallest_detectable >= 8


def test_pass_tells_the_shortest_pause() -> None:
    """At 60 s a full stop must last a third of a reading; at 1 s less than half a second."""
    assert judge(run(rate())).smallest_detectable == pytest.approx(0.42, abs=0.01)
    coarse = judge(run(rate(), cadence_s=60.0))
    assert coarse.outcome is Outcome.PASS
    assert coarse.smallest_detectable == pytest.approx(25, abs=0.5)


def test_what_is_no_pause() -> None:
    """A step, the begin of the load, its end, and a generator set to send less are none; a stop of 5 min is one."""
    step = rate(14400)
    step[7000:] /= 2
    assert judge(run(step)).outcome is Outcome.PASS
    edges = stopped(stopped(rate(), [0], 3), [1190], 10)
    finding = judge(run(edges))
    assert finding.outcome is Outcome.PASS
    assert any("2 dips" in caveat for caveat in finding.doubts)
    reported = np.where((np.arange(1200) // 100) % 2, 1000.0, 400.0)
    obeyed = rate() * reported / 1000
    assert judge(run(obeyed, readings("load.offered.rate", reported, 1.0))).outcome is Outcome.PASS
    assert judge(run(stopped(rate(), [600], 300))).outcome is Outcome.FAIL


def wild(n: int = 600, seed: int = 3) -> NDArray[np.float64]:
    """Throughput that scatters so much that short stops cannot be detected."""
    return 1000 * np.exp(0.6 * np.random.default_rng(seed).standard_normal(n))


def test_a_standstill_needs_no_calm_throughput() -> None:
    """Half a minute without anything in ten minutes of wild throughput fails; three seconds are not seen, it says."""
    finding = judge(run(stopped(wild(), [300], 30)))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(30, abs=0.1)
    assert [(m.begin_ns, m.end_ns) for m in finding.marks] == [(299 * S, 329 * S)]
    assert any("not shorter pauses" in caveat for caveat in finding.doubts)
    short = judge(run(stopped(wild(), [300], 3)))
    assert short.outcome is Outcome.PASS
    assert short.smallest_detectable is not None
    assert short.smallest_detectable > 3, "it says that it would not have seen it"


def test_standstills_of_most_of_the_time_are_seen() -> None:
    """Where nothing is carried for two thirds of the time, what is carried otherwise is the level."""
    finding = judge(run(stopped(rate(300), [20, 60, 130, 220], 50)))
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["lost_s"] == pytest.approx(190, abs=2)  # the first two overlap


def test_an_hour_of_nothing_is_a_pause_and_no_level() -> None:
    """A stop longer than the blocks of the level does not become the level, if it comes back."""
    finding = judge(run(stopped(rate(1440), [700], 360), cadence_s=10.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(3600, rel=0.01)
    assert judge(run(stopped(rate(1440), [700], 740), cadence_s=10.0)).outcome is Outcome.PASS  # that is a hang


def test_a_request_now_and_then_does_not_stand_still() -> None:
    """Counts of which most readings are 0 and others 1 have no standstill, however many zeros follow each other."""
    for seed in range(20):
        counts = np.random.default_rng(seed).poisson(0.2, 7200).astype(np.float64)
        assert not standstills(counts, 1.0).any()


def test_standstills_by_hand() -> None:
    """Of 107 readings 7 stand still (share 8/109): 107 · 8/109 · 2**-6 is more than 1 %, a run of 11 is not."""
    seven = np.r_[np.full(50, 9.0), np.zeros(7), np.full(50, 9.0)]
    assert not standstills(seven, 1.0).any()
    longer = np.r_[np.full(50, 9.0), np.zeros(12), np.full(50, 9.0)]
    assert np.flatnonzero(standstills(longer, 1.0)).tolist() == list(range(50, 62))
    assert level_without(longer, 1.0, longer == 0).tolist() == [9.0] * 112
    assert level_without(np.zeros(3), 1.0, np.ones(3, dtype=np.bool_)).tolist() == [0.0] * 3


def test_before_a_step_up_is_no_pause() -> None:
    """The smooth level rises before the throughput does (a warm-up at 1 s for 2.8 h): nothing fell, so no pause."""
    warm = rate(10000)
    warm[:2000] *= 0.4
    assert judge(run(warm)).outcome is Outcome.PASS


def test_a_generator_that_sends_less_is_a_caveat() -> None:
    """Packets that were not sent cannot come back: the finding says how many pauses are so."""
    sent = np.append(0.0, np.cumsum(stopped(rate(1199), [600], 2)))
    load = (readings("load.rx.packets", sent, 1.0), readings("load.tx.packets", sent, 1.0))
    finding = judge(Case("dut", "", Window(0, 1200 * S), load=load))
    assert finding.outcome is Outcome.WARN
    assert any("1 pause the generator also sent less" in caveat for caveat in finding.doubts)


def dipping(n: int = 720) -> NDArray[np.float64]:
    """Packets a second that a load of a real day asks for: a slow wave, and single minutes that are lower."""
    wave = 4000 * (1 + 0.1 * np.sin(2 * np.pi * np.arange(n) / n)) * rate(n, 1.0)
    return stopped(wave, [100, 333, 500, 640], 1, 0.5)


@pytest.mark.parametrize(
    "tells", ["load.offered.rate", "load.offered.packet.rate", "load.offered.bit.rate", "load.users"]
)
def test_a_load_that_was_set_to_dip_is_no_pause(tells: str) -> None:
    """A load of a real day, read each minute, dips to half for single minutes, as it was set to: no pause."""
    asked = dipping()
    came = readings("load.rx.packets", np.append(0.0, np.cumsum(60 * asked)), 60.0)
    window = Window(0, 720 * 60 * S)
    told = readings(tells, np.append(asked, asked[-1:]), 60.0)
    told = replace(told, time_ns=told.time_ns + 60 * S)  # of the minute before
    assert judge(Case("dut", "", window, load=(came,))).outcome is Outcome.WARN, "nobody knows what was asked"
    assert judge(Case("dut", "", window, load=(came, told))).outcome is Outcome.PASS
    dead = np.append(0.0, np.cumsum(60 * stopped(asked, [400], 1)))
    finding = judge(Case("dut", "", window, load=(replace(came, value=dead), told)))
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["pauses"] == 1


def test_packets_that_were_sent_and_came_back_are_no_pause() -> None:
    """Where as much comes back as is sent the dips are the load's, unless it waits for answers, or stops for good."""
    sent = np.append(0.0, np.cumsum(60 * dipping()))
    load = (readings("load.tx.packets", sent, 60.0), readings("load.rx.packets", sent, 60.0))
    window = Window(0, 720 * 60 * S)
    finding = judge(Case("dut", "", window, load=load))
    assert finding.outcome is Outcome.PASS
    assert any("4 dips not counted: the generator sent less" in doubt for doubt in finding.doubts)
    open_ = readings("load.connections", np.full(721, 9.0), 60.0)
    waits = judge(Case("dut", "", window, load=(*load, open_, readings("load.retransmits", np.arange(721.0), 60.0))))
    assert waits.outcome is Outcome.WARN
    assert any("the load itself may have dipped" in doubt for doubt in waits.doubts)
    lost = np.append(0.0, np.cumsum(60 * stopped(dipping(), [200], 1, 0.4)))
    assert judge(Case("dut", "", window, load=(load[0], replace(load[1], value=lost)))).outcome is Outcome.FAIL


def test_half_a_minute_of_nothing_between_readings_of_a_minute() -> None:
    """One stop of 30 s fails though what was asked is not known, in a throughput that else hardly moves."""
    day = 4000 * (1 + 0.05 * np.sin(2 * np.pi * np.arange(1440) / 1440)) * rate(1440, 1.0)
    finding = judge(run(stopped(day, [700], 1, 0.5), cadence_s=60.0))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(30, rel=0.1)
    assert judge(run(stopped(day, [700], 2, 0.75), cadence_s=60.0)).outcome is Outcome.PASS, "a quarter is load"
    assert judge(run(stopped(day, [200, 500, 700], 1, 0.5), cadence_s=60.0)).outcome is Outcome.WARN, "three: a habit"
    moving = stopped(stopped(day, [100, 300, 900], 1, 0.8), [700], 1, 0.5)
    assert judge(run(moving, cadence_s=60.0)).outcome is Outcome.WARN, "a load that dips by itself"


def test_planned_events_and_phases() -> None:
    """A pause in a planned event is reported; those of a stress phase are not this rule's."""
    case = run(stopped(rate(), [600], 20))
    failover = Event("failover", "dut", "", 590 * S, None, expect={"reboot": 1}, deadline_ns=640 * S)
    planned = judge(replace(case, events=(failover,)))
    assert planned.outcome is Outcome.PASS
    assert planned.numbers["planned_pauses"] == 1
    stress = Phase("stress", Window(550 * S, 700 * S))
    assert judge(replace(case, phases=(Phase("soak", case.window), stress))).outcome is Outcome.PASS


def test_several_devices_only_warn() -> None:
    """Nobody knows which of two devices paused."""
    assert judge(replace(run(stopped(rate(), [600], 60)), devices=2)).outcome is Outcome.WARN


def test_logs_are_judged_by_object() -> None:
    """Events of kind pause make a finding of their own, with the rhythm of the log."""
    log = tuple(Event("pause", "dut", "process=java", t * S, t * S + S // 2) for t in range(60, 1200, 100))
    findings = PeriodicPause().judge(replace(run(rate()), events=log))
    assert [(f.object, f.outcome) for f in findings] == [("", Outcome.PASS), ("process=java", Outcome.WARN)]
    assert findings[1].numbers["period_s"] == pytest.approx(100)
    assert findings[1].measured == pytest.approx(0.5)
    alone = PeriodicPause().judge(Case("dut", "", Window(0, 1200 * S), events=log))
    assert [f.object for f in alone] == ["process=java"]


def test_periodic_silences_warn() -> None:
    """A source that falls silent on a rhythm is reported; one that does so now and then is the business of others."""
    even = tuple(Silence(Window(t * S, (t + 4) * S), {"timeout": 4}) for t in range(60, 1200, 100))
    ledger = Ledger("dut", "snmp", 1.0, 1200, 1152, {"timeout": 48}, even[0].window, silences=even)
    findings = PeriodicPause().judge(replace(run(rate()), ledgers=(ledger,)))
    assert [(f.object, f.outcome) for f in findings] == [("", Outcome.PASS), ("snmp", Outcome.WARN)]
    few = replace(ledger, silences=even[:5])
    assert len(PeriodicPause().judge(replace(run(rate()), ledgers=(few,)))) == 1


def test_too_little_never_passes() -> None:
    """Under 16 readings, half of the readings, or no throughput at all."""
    assert judge(run(rate(10))).why is InconclusiveReason.TOO_FEW
    assert judge(replace(run(rate()), window=Window(0, 3000 * S))).why is InconclusiveReason.GAP
    assert judge(Case("dut", "", Window(0, S))).outcome is Outcome.NOT_APPLICABLE
    assert PeriodicPause().judge(replace(run(rate()), role="generator")) == ()


def test_two_generators_have_a_finding_each() -> None:
    """Each generator's throughput is judged by itself and named."""
    case = run(rate())
    other = replace(case.load[0], target="second", value=stopped(rate(), [600], 30))
    findings = PeriodicPause().judge(replace(case, load=(*case.load, other)))
    assert [(f.object, f.outcome) for f in findings] == [
        ("generator=dut", Outcome.PASS),
        ("generator=second", Outcome.FAIL),
    ]


@pytest.mark.parametrize("events", [9, 12, 20])
def test_poisson_events_are_rarely_called_periodic(events: int) -> None:
    """At most 2 % of 500 trains of independent events are a rhythm; evenly jittered ones are."""
    rng = np.random.default_rng(11)
    called = sum(bool(r and r.periodic) for r in (rhythm(np.cumsum(rng.exponential(1, events))) for _ in range(500)))
    assert called <= 10
    count = sum(
        bool(r and r.periodic) for r in (rhythm(np.arange(events) + rng.normal(0, 0.1, events)) for _ in range(100))
    )
    assert count == 100


def test_rhythm_by_hand() -> None:
    """Median interval; a missed event and a gap leave it; order and equal times do not matter."""
    positions = np.delete(np.arange(0.0, 300, 10), [5, 17])
    beat = rhythm(np.append(positions[::-1], [0.0, np.nan]))
    assert beat is not None
    assert (beat.periodic, beat.period_s, beat.intervals) == (True, 10.0, 27)
    assert rhythm(np.array([3.0])) is None
    assert by_chance(np.ones(8)) == 0.0
    assert by_chance(np.ones(1)) == 1.0


def test_dips_by_hand() -> None:
    """A run opens at the depth, closes at half of it, and counts the readings at its sides if they stand out."""
    matches = dips(np.array([0, 0.2, 0.9, 0.2, 0.9, 0.1, 0]), np.ones(7), 0.3, 0.01)
    assert [(d.open, d.close, round(d.lost_s, 9)) for d in matches] == [(2, 5, 2.3)]
    assert dips(np.zeros(0), np.zeros(0), 0.3, 0.0) == ()


def test_level_follows_a_wave_and_not_a_stop() -> None:
    """The running level is within 6 % of a daily wave, and a stop of 20 min does not lower it."""
    wave = 1000 + 400 * np.sin(2 * np.pi * np.arange(8640) / 8640)
    assert np.abs(running_level(wave, 10.0)[300:-300] / wave[300:-300] - 1).max() < 0.06
    flat = np.full(8640, 5.0)
    flat[4000:4120] = 0
    assert running_level(flat, 10.0).min() == 5.0


@pytest.mark.parametrize(
    ("name", "value"), [("depth", 0.0), ("depth", 1.0), ("sigmas", -1.0), ("tolerated", 11.0), ("repeated", 0.0)]
)
def test_parameters_are_refused(name: str, value: float) -> None:
    """Depth is a share, and what is tolerated is shorter than what fails."""
    with pytest.raises(ValueError, match="periodic_pause"):
        replace(PeriodicPause(), **{name: value})


OUTCOMES = """
throughput                   | periodic_pause
steady                       | P
checkpoint waves             | P
comes up                     | PW
one stop of a minute         | PWFI
offered load halves          | PWI
declines 15 % a day          | P
declines 40 % a day          | P
declines faster and faster   | P
falls by half                | PWIF
declines 40 % a day in waves | P

pauses                     | periodic_pause
no pause                   | P
no pause, AR noise         | P
random 60 s                | WF
random 300 s               | WF
each 60 s, jitter 2 %      | WF
each 60 s, jitter 10 %     | WF
each 60 s, jitter 30 %     | WF
each 300 s, jitter 2 %     | WF
each 300 s, jitter 10 %    | WF
each 300 s, read each 10 s | WF
each 900 s                 | WF
each 60 s of 50 ms         | P
told by a log, each 300 s  | WF
told by a log, random      | WF
"""
