"""loss: what counts as lost, what does not, and where nobody can tell."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.rules.draws import each_seed

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Lost, Onset
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.event_impact import EventImpact
from soakwatch_rules.detectors.generator_health import GeneratorHealth
from soakwatch_rules.detectors.loss import Loss
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.detectors.performance_decline import PerformanceDecline
from soakwatch_rules.signals import readings
from soakwatch_rules.stats.standstill import stops_of_rate
from soakwatch_testing.rule_checks import check_complete

S = 10**9
AT = np.arange(0.0, 3600.0, 10.0)
PEER = "peer=gw,protocol=icmp"
Floats = NDArray[np.float64]


def case(*load: Series, series: tuple[Series, ...] = (), **more: object) -> Case:
    """An hour of one device."""
    return replace(Case("dut", "", Window(0, 3600 * S), series, load=load), **more)  # type: ignore[arg-type]


def packets(lost: Floats, per_s: float = 1000.0) -> tuple[Series, Series]:
    """Packets sent and received, of which so many are lost in each 10 s."""
    sent = np.full(AT.size, per_s * 10)
    return (
        readings("load.tx.packets", np.cumsum(sent), 10.0),
        readings("load.rx.packets", np.cumsum(sent - lost), 10.0),
    )


def judge(case: Case, rule: Loss | None = None) -> Finding:
    """The one finding, which is complete."""
    rule = rule or Loss()
    (finding,) = rule.judge(case)
    check_complete(rule, case, finding)
    return finding


def none() -> Floats:
    """Nothing lost."""
    return np.zeros(AT.size)


@pytest.mark.parametrize("kind", ["packets", "requests", "connections"])
def test_each_kind_has_its_own_limit(kind: str) -> None:
    """Half a per cent fails by default, and not where the plan allows a per cent of that kind."""
    names = {
        "packets": ("load.tx.packets", "load.rx.packets"),
        "requests": ("load.failures", "load.requests"),
        "connections": ("load.connections.failed", "load.connections.opened"),
    }[kind]
    first = 1000 * AT if kind == "packets" else 5 * AT
    result = case(readings(names[0], first, 10.0), readings(names[1], 995 * AT, 10.0))
    assert judge(result).outcome is Outcome.FAIL
    assert judge(result, replace(Loss(), **{kind: 0.01})).outcome is Outcome.PASS
    others = {"packets", "requests", "connections", "pings"} - {kind}
    assert judge(result, replace(Loss(), **dict.fromkeys(others, 0.01))).outcome is Outcome.FAIL


def test_what_comes_late_or_is_under_way_is_not_lost() -> None:
    """A second's worth of packets that comes with the next reading, and one that has not come at the end."""
    late = none()
    late[100], late[101], late[-1] = 1000, -1000, 1000
    assert judge(case(*packets(late))).outcome is Outcome.PASS
    late[101] = 0
    late[150:170] = 1000
    assert judge(case(*packets(late))).outcome is Outcome.FAIL


def test_a_counter_that_begins_anew_loses_nothing() -> None:
    """What the generator had counted before its restart is not known: that is no loss; nor is a wrap at 32 bits."""
    sent, back = packets(none())
    for index in (150, 151):  # they need not begin anew with the same reading
        value = back.value.copy()
        value[index:] -= value[index - 1]
        other = sent.value.copy()
        other[150:] -= other[149]
        anew = case(replace(sent, value=other), replace(back, value=value))
        assert judge(anew).outcome is Outcome.PASS
    wraps = [
        replace(s, value=((s.value.astype(np.uint64) + 2**32 - 10**6) % 2**32).astype(np.uint64)) for s in (sent, back)
    ]
    assert judge(case(*wraps)).outcome is Outcome.PASS


def test_few_packets_prove_nothing() -> None:
    """One lost of 360 is no loss of a tenth of a per cent, and says how many it takes; a single lost ping passes."""
    lost = none()
    lost[5] = 1
    finding = judge(case(*packets(lost, 0.1)))
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "takes at least 1,000" in finding.reason
    asked = np.arange(1.0, 3601.0)
    gone = np.cumsum(np.arange(3600) == 900).astype(np.float64)
    pings = (readings("reach.sent", asked, 1.0, object=PEER), readings("reach.lost", gone, 1.0, object=PEER))
    assert judge(case(series=pings)).outcome is Outcome.PASS
    ten = np.cumsum((np.arange(3600) >= 900) & (np.arange(3600) < 911)).astype(np.float64)
    finding = judge(case(series=(pings[0], replace(pings[1], value=ten))))
    assert finding.outcome is Outcome.FAIL
    assert "gw over icmp: no answer from" in finding.reason


def test_more_than_in_the_baseline_phase_fails() -> None:
    """.05 % in the soak after none in the baseline is within the limit and yet new; bursts of one minute prove less."""
    cut = (Phase("baseline", Window(0, 1200 * S)), Phase("soak", Window(1200 * S, 3600 * S)))
    lost = none()
    lost[120:] = 5
    finding = judge(case(*packets(lost), phases=cut))
    assert finding.outcome is Outcome.FAIL
    assert "provably more than in the baseline phase" in finding.reason
    assert judge(case(*packets(lost), phases=cut), Loss(packets=0.01)).outcome is Outcome.PASS, "the plan allows it"
    lost[:120] = 5
    assert judge(case(*packets(lost), phases=cut)).outcome is Outcome.PASS
    burst = none()
    burst[200:202] = 600
    assert judge(case(*packets(burst), phases=cut)).outcome is Outcome.PASS


def test_a_load_that_is_not_offered_is_not_lost() -> None:
    """A generator that stops sending, or says that it rests; its answers stop with it."""
    sent = np.where(AT < 3000, 10_000.0, 0.0)
    ended = [readings(name, np.cumsum(sent), 10.0) for name in ("load.tx.packets", "load.rx.packets")]
    assert judge(case(*ended)).outcome is Outcome.PASS
    answers = readings("load.request.rate", sent, 10.0)
    assert judge(case(answers)).outcome is Outcome.FAIL
    rests = readings("load.sending", (AT < 3000).astype(np.float64), 10.0)
    assert judge(case(answers, rests)).outcome is Outcome.PASS
    cooled = (Phase("soak", Window(0, 3000 * S)), Phase("cooldown", Window(3000 * S, 3600 * S)))
    assert judge(case(answers, phases=cooled)).outcome is Outcome.PASS
    turned = (Phase("soak", Window(0, 3000 * S)), Phase("recovery", Window(3000 * S, 3600 * S)))
    finding = judge(case(answers, phases=turned))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NO_REFERENCE)


def test_failures_of_an_unknown_number_are_left_open() -> None:
    """Failures without the number of attempts: none are well, some are not known to be many."""
    failed = readings("load.failures", 0.1 * AT, 10.0)
    assert judge(case(failed)).outcome is Outcome.INCONCLUSIVE
    assert judge(case(failed, readings("load.offered.rate", np.full(AT.size, 1000.0), 10.0))).outcome is Outcome.PASS


def test_questions_and_answers_are_no_packets_that_come_back() -> None:
    """Acknowledgements of 64 bytes for packets of 1500: their number says nothing, that they stop does."""
    up, down = 1000 * AT, 500 * AT
    load = [
        readings("load.tx.packets", up, 10.0),
        readings("load.rx.packets", down, 10.0),
        readings("load.tx.bytes", 1500 * up, 10.0),
        readings("load.rx.bytes", 64 * down, 10.0),
    ]
    assert judge(case(*load)).outcome is Outcome.PASS
    load[1] = readings("load.rx.packets", np.minimum(down, down[200]), 10.0)
    assert judge(case(*load)).outcome is Outcome.FAIL


def test_under_stress_only_a_standstill_counts() -> None:
    """Half of an overload may be lost (overload_loss judges it); next to all of it for ten seconds may not."""
    cut = (
        Phase("soak", Window(0, 1200 * S)),
        Phase("stress", Window(1200 * S, 1800 * S)),
        Phase("recovery", Window(1800 * S, 3600 * S)),
    )
    lost = none()
    lost[121:181] = 5000
    assert judge(case(*packets(lost), phases=cut)).outcome is Outcome.PASS
    lost[150:155] = 10_000
    assert judge(case(*packets(lost), phases=cut)).outcome is Outcome.FAIL


def test_a_silence_of_the_generator_is_no_pass() -> None:
    """Figures that end half-way tell nothing of the other half."""
    half = [s.between(0, 1800 * S) for s in packets(none())]
    finding = judge(case(*half))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


@pytest.mark.parametrize("kind", ["requests", "answers", "packets"])
def test_a_generator_that_is_silent_in_the_baseline_only_rests(kind: str) -> None:
    """What prints figures only while it sends has none of the baseline phase; from the soak on each end must be seen,
    and pings, which nobody turns off, in the baseline as well."""
    rests = Phase("baseline", Window(0, 600 * S))
    cut = (rests, Phase("soak", Window(600 * S, 3000 * S)), Phase("recovery", Window(3000 * S, 3600 * S)))
    whole = {
        "requests": (readings("load.request.rate", 0 * AT + 800, 10.0), readings("load.failure.rate", 0 * AT, 10.0)),
        "answers": (readings("load.request.rate", 0 * AT + 800, 10.0),),
        "packets": packets(none()),
    }[kind]

    def of(begin_s: int, end_s: int, phases: tuple[Phase, ...] = cut) -> Finding:
        load = tuple(s.between(begin_s * S, end_s * S) for s in whole)
        return judge(case(*load, phases=phases))

    passed = of(610, 3000)
    assert passed.outcome is Outcome.PASS
    assert "the generator reported nothing before 1970-01-01 00:10:10 UTC" in passed.doubts[-1]
    assert not any("baseline" in doubt for doubt in of(10, 3000).doubts)
    for begin_s, end_s, phases, missing in (
        (800, 3000, cut, "no samples before 1970-01-01 00:13:20 UTC"),
        (610, 2000, cut, "no samples after 1970-01-01 00:33:10 UTC"),
        (610, 3600, (replace(rests, name="ramp"), *cut[1:]), "no samples before 1970-01-01 00:10:10 UTC"),
        (610, 3600, (), "no samples before 1970-01-01 00:10:10 UTC"),
    ):
        finding = of(begin_s, end_s, phases)
        assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)
        assert missing in finding.reason


def test_pings_begin_with_the_run() -> None:
    """A probe that brought nothing in the baseline phase was not at rest."""
    asked = np.arange(1.0, 3601.0)
    counters = (("reach.sent", asked), ("reach.lost", 0 * asked))
    pings = [readings(name, value, 1.0, object=PEER) for name, value in counters]
    cut = (Phase("baseline", Window(0, 600 * S)), Phase("soak", Window(600 * S, 3600 * S)))
    late = tuple(s.between(610 * S, 3600 * S) for s in pings)
    assert judge(case(series=tuple(pings), phases=cut)).outcome is Outcome.PASS
    finding = judge(case(series=late, phases=cut))
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


def test_overload_that_the_receiver_could_not_take() -> None:
    """A stress of 120 %: 5 % more are missing than the device dropped: its own ports show that it let them out."""
    cut = (Phase("soak", Window(0, 1800 * S)), Phase("stress", Window(1800 * S, 3600 * S)))
    over = AT >= 1800
    sent = np.where(over, 12_000.0, 10_000.0)
    out = np.where(over, 10_000.0, 10_000.0)
    back = np.where(over, 0.95 * out, out)
    load = [
        readings(name, np.cumsum(value), 10.0) for name, value in (("load.tx.packets", sent), ("load.rx.packets", back))
    ]
    rule = OverloadLoss(capacity=1000.0)
    assert rule.judge(case(*load, phases=cut))[0].outcome is Outcome.FAIL
    ports = [
        readings("system.network.packets", np.cumsum(value), 10.0, object=f"interface={name},direction={direction}")
        for name, direction, value in (
            ("e0", "receive", sent),
            ("e0", "transmit", none()),
            ("e1", "receive", none()),
            ("e1", "transmit", out),
        )
    ]
    finding = rule.judge(case(*load, phases=cut, series=tuple(ports)))[0]
    assert finding.outcome is Outcome.WARN
    assert "lost after leaving the device, by the path or the generator's receiver" in finding.reason
    ports[3] = readings("system.network.packets", np.cumsum(back), 10.0, object="interface=e1,direction=transmit")
    assert rule.judge(case(*load, phases=cut, series=tuple(ports)))[0].outcome is Outcome.FAIL


@pytest.mark.parametrize("mean", [0.02, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("seed", each_seed(2, 10))
def test_chance_is_no_standstill(seed: int, mean: float) -> None:
    """Random arrivals, however rare, do not stand still; half an hour of none does where it should bring hundreds."""
    rate = np.random.default_rng(seed).poisson(mean, 7200).astype(np.float64)
    positions = np.arange(7201, dtype=np.int64) * S
    assert not stops_of_rate(positions[:-1], positions[1:], rate, 10.0)
    rate[3000:4800] = 0
    assert (len(stops_of_rate(positions[:-1], positions[1:], rate, 10.0)) == 1) is (1800 * mean > 30)


def test_decline_leaves_standstills_out_and_sees_late_steps() -> None:
    """Two hours of nothing are no decline, a step by 30 % for the last two hours is one."""
    rule, rng = PerformanceDecline(), np.random.default_rng(4)
    day = Case("dut", "", Window(0, 86_400 * S))
    rate = 1000 + 20 * rng.standard_normal(1440)
    stopped, stepped = rate.copy(), rate.copy()
    stopped[1320:] = 0
    stepped[1320:] *= 0.7
    outcomes = [
        rule.judge(replace(day, load=(readings("load.request.rate", value, 60.0),)))[0].outcome
        for value in (rate, stopped, stepped)
    ]
    assert outcomes == [Outcome.PASS, Outcome.PASS, Outcome.FAIL]


def test_a_noise_that_hides_every_outage_says_so() -> None:
    """Where five sigmas of the calm exceed the whole rate, a long stop counts as a whole, and a limit is left open."""
    rng = np.random.default_rng(5)
    rate = rng.poisson(4, 3600).astype(np.float64)
    event = Event("failover", "dut", "", 1800 * S, 1801 * S, {}, {"outage": 1}, 1900 * S)
    rule = EventImpact(outage=2.0)
    quiet = case(readings("load.request.rate", rate, 1.0), events=(replace(event, expect={}),))
    (finding,) = rule.judge(quiet)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.NOISE)
    stopped = rate.copy()
    stopped[1801:1861] = 0
    (finding,) = rule.judge(case(readings("load.request.rate", stopped, 1.0), events=(event,)))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(60, abs=3)


def test_a_generator_is_not_held_to_less_than_a_reading() -> None:
    """In a phase of 40 readings one more or less is no fault; nor is a restart that was announced."""
    positions = np.arange(0.0, 600.0)
    reported = readings("load.offered.packet.rate", np.full(600, 1000.0), 1.0)
    phases = (Phase("soak", Window(0, 560 * S)), Phase("stress", Window(560 * S, 600 * S)))
    sent = 1000 * positions + np.where(positions >= 580, 540.0, 0.0)
    case = Case(
        "tg", "", Window(0, 600 * S), (reported, readings("load.tx.packets", sent, 1.0)), phases, role="generator"
    )
    assert GeneratorHealth().judge(case)[0].outcome is Outcome.PASS
    anew = np.where(positions >= 300, 1000 * (positions - 300), 1000 * positions)
    fell = replace(case, series=(reported, readings("load.tx.packets", anew, 1.0)))
    assert GeneratorHealth().judge(fell)[0].outcome is Outcome.INCONCLUSIVE
    event = Event("generator.restart", "tg", "", 295 * S, 301 * S, {}, {"generator.restart": 1}, 320 * S)
    assert GeneratorHealth().judge(replace(fell, events=(event,)))[0].outcome is Outcome.PASS


@pytest.mark.parametrize("bad", [{"packets": 1.0}, {"pings": -0.1}, {"seconds": 0.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="loss"):
        Loss(**bad)


OUTCOMES = """
losses                        | loss
packets: none lost            | P
requests: none lost           | P
connections: none lost        | P
pings: none lost              | P
packet rates: none lost       | P
answers: none lost            | P
packets: 0.005 % lost         | P
requests: 0.005 % lost        | P
connections: 0.005 % lost     | P
pings: 1 in 2000 lost         | PW
the load comes up             | P
the load has levels           | P
the load ends in the cooldown | P
answers end in the cooldown   | P
half is lost under stress     | P
packets: 1 % lost             | F
requests: 1 % lost            | F
connections: 1 % lost         | F
pings: 1 % lost               | F
packet rates: 1 % lost        | F
packets: 99 % lost            | F
requests: 99 % lost           | F
connections: 99 % lost        | F
pings: 99 % lost              | F
packet rates: 99 % lost       | F
packets: none for 30 s        | F
requests: none for 30 s       | F
connections: none for 30 s    | F
pings: none for 30 s          | F
answers: none for 30 s        | F
0.05 % lost, none before      | F
nothing for 10 min            | F
nothing for 2 s               | P
"""


def test_the_moment_of_a_loss_is_when_it_was_lost_and_not_when_its_phase_began() -> None:
    """One request is lost early, as now and then; a fifth for half a minute from 40 min on: that is the moment."""
    at = np.arange(0.0, 3600.0, 10.0)
    failed = np.where((at > 2400) & (at <= 2430), 200.0, 0.0)
    failed[30] = 1.0
    load = (
        readings("load.requests", np.cumsum(1000.0 - failed), 10.0),
        readings("load.failures", np.cumsum(failed), 10.0),
    )
    phase = Phase("soak", Window(0, 3600 * 10**9))
    found = Loss().judge(Case("dut", "", Window(0, 3600 * 10**9), load=load, phases=(phase,)))
    (finding,) = [one for one in found if one.outcome is Outcome.FAIL]
    assert [mark.begin_ns / 1e9 for mark in finding.marks] == [2400.0]
    assert finding.marks[0].text == "600 requests lost"
    lost = finding.fact(Lost)
    assert lost is not None
    assert (lost.count, lost.what) == (601.0, "requests")


def test_a_decline_from_the_first_reading_on_can_be_kept() -> None:
    """It says that it was so from there, in what a record can keep; one that began later has its moment."""
    rng = np.random.default_rng(9)
    day = Case("dut", "", Window(0, 86_400 * S))
    share = np.arange(1440) / 1440
    for falls, from_first in ((share, True), (np.maximum(share - 0.5, 0.0), False)):
        rate = 1000 * (1 - 0.4 * falls) + 5 * rng.standard_normal(1440)
        finding = PerformanceDecline().judge(replace(day, load=(readings("load.request.rate", rate, 60.0),)))[0]
        assert finding.outcome is Outcome.FAIL
        onset = finding.fact(Onset)
        assert onset is not None
        assert json.loads(json.dumps(asdict(onset)))["from_first"] is from_first
