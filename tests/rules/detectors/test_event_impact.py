"""event_impact: what an event cost, by loss and by time stamps, once and over repetitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.rules.detectors.outages import AT, N, S, failover, judge, packets, pings, stopped

from soakwatch_model.case import Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.event_impact import EventImpact
from soakwatch_rules.signals import readings
from soakwatch_rules.wording.quantities import duration


@pytest.mark.parametrize("lasts", [0.05, 0.35, 1.0, 3.75, 12.2])
def test_both_methods_find_an_outage_of_known_length(lasts: float) -> None:
    """By loss to the packet, by time stamps to the reading, and they agree."""
    finding = judge(failover(), load=packets(stopped(AT, lasts)))
    assert finding.outcome is Outcome.PASS
    assert finding.object == "event=failover"
    assert finding.measured == pytest.approx(lasts, abs=0.003)
    assert finding.numbers["outage_1_time_s"] == pytest.approx(lasts, abs=1.0)
    assert finding.numbers["outage_1_time_error_s"] <= 1.0
    assert finding.numbers["lost"] == pytest.approx(1000 * lasts, abs=2)
    assert f"an outage of {duration(finding.measured or 0.0)} (" in finding.reason
    assert "time stamps" not in finding.reason, "they agree: one of the two is told"
    assert finding.numbers["agree"] == 1.0


@pytest.mark.parametrize("phase", [0.0, 0.05, 0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("lasts", [2.0, 2.1, 2.9, 3.5])
def test_time_stamps_are_not_biased_where_readings_and_outage_keep_step(phase: float, lasts: float) -> None:
    """Wherever in a reading it begins and ends, also where the first one lost too few to count: true to a packet."""
    finding = judge(failover(), load=packets(stopped(300 + phase, lasts), rate=20.0))
    true = round(20 * lasts) / 20
    assert finding.numbers["outage_1_time_s"] == pytest.approx(true, abs=0.051)
    assert finding.numbers["outage_1_loss_s"] == pytest.approx(true, abs=0.051)


def test_a_piece_beside_another_keeps_its_own_edges() -> None:
    """Two stops of 2.5 s with half a second between them, which begins and ends within one reading."""
    down = stopped(300.5, 2.75) + stopped(303.75, 2.75)
    finding = judge(failover(), load=packets(down))
    assert finding.numbers["outage_1_loss_s"] == pytest.approx(5.5, abs=0.01)
    assert finding.numbers["outage_1_time_s"] == pytest.approx(5.5, abs=1.0)
    assert finding.numbers["agree"] == 1.0


def test_failovers_without_an_intent_are_distinguished() -> None:
    """Three that a tester recorded, 12 s apart: three outages, and none is late by another's deadline."""
    begins = [300.0, 312.0, 324.0]
    reported = [failover(b - 0.3, deadline_ns=round((b + 7.7) * S), detail={"pulled": "ra"}) for b in begins]
    down = np.sum([stopped(b, 1.0) for b in begins], axis=0)
    finding = judge(*reported, load=packets(down), rule=EventImpact(outage=4.0))
    assert finding.outcome is Outcome.PASS, finding.reason
    assert finding.numbers["events"] == 3.0
    assert [finding.numbers[f"outage_{i}_loss_s"] for i in (1, 2, 3)] == pytest.approx([1.0] * 3, abs=0.01)


def test_no_outage_is_measured_as_none() -> None:
    """Nothing lost and no reading down: it says so in three words, and how little it would have seen beside it."""
    finding = judge(failover(), load=packets(stopped(0, 0)))
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)
    assert finding.reason == "failover at 1970-01-01 00:05:00 UTC: no packets lost"
    assert finding.smallest_detectable == pytest.approx(0.002)


def test_a_failover_that_cost_nothing_says_what_it_did_to_the_latency() -> None:
    """Nothing lost, a latency that peaked: two clauses; a latency and a CPU that did not rise are not told."""
    high = np.full(N, 0.008)
    high[301:306] = 0.058
    load = (*packets(stopped(0, 0)), readings("load.latency", high, 1.0, object="quantile=p99"))
    flat = (readings("system.cpu.utilization", np.full(N, 0.3), 1.0),)
    said = judge(failover(), load=load, series=flat).reason
    assert said == "failover at 1970-01-01 00:05:00 UTC: no packets lost; latency peaked at 58 ms (8 ms before)"


def test_a_part_of_the_traffic_makes_the_methods_differ() -> None:
    """Half of the flows stop for ten seconds: 5 s by loss, 10 s by time stamps, and the reason is reported."""
    finding = judge(failover(), load=packets(stopped(AT, 10, 0.5)))
    assert finding.numbers["outage_1_loss_s"] == pytest.approx(5.0, abs=0.01)
    assert finding.numbers["outage_1_time_s"] == pytest.approx(10.0, abs=1.0)
    assert "an outage of 5 s (5,000 packets lost at 1,000 packets/s; 10 s ± 1 s by time stamps)" in finding.reason
    assert any("only 50 % of what was sent" in caveat for caveat in finding.doubts)


def test_loss_that_was_there_before_is_not_the_events() -> None:
    """A path that always loses 2 % loses no more by an event; an outage is measured beyond that."""
    usual = 0.02 + 0.002 * np.random.default_rng(1).standard_normal(N)
    assert judge(failover(), load=packets(usual)).measured == pytest.approx(0.0, abs=0.02)
    down = np.maximum(usual, stopped(AT, 4.0))
    assert judge(failover(), load=packets(down)).measured == pytest.approx(3.92, abs=0.1)


def test_probes_alone_give_both_methods() -> None:
    """Without a load a probe each 200 ms measures by lost requests and by time stamps."""
    finding = judge(failover(), series=pings(AT, 3.1))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["outage_1_loss_s"] == pytest.approx(3.1, abs=0.25)
    assert finding.numbers["outage_1_time_s"] == pytest.approx(3.1, abs=0.2)
    assert finding.numbers["agree"] == 1.0
    assert "gw over icmp" in finding.reason
    assert any("no generator reports" in caveat for caveat in finding.doubts)
    only = judge(failover(), series=pings(AT, 3.1)[:1])
    assert only.measured == pytest.approx(3.1, abs=0.2)
    assert only.numbers["agree"] == 0.0


def test_a_script_that_failed_is_a_caveat() -> None:
    """An event without impact whose script failed says nothing of the device."""
    broken = replace(failover(), detail={"failed": "exit code 255: connection refused"})
    finding = judge(broken, load=packets(stopped(AT, 0.0)))
    assert any("1 script failed (exit code 255: connection refused)" in caveat for caveat in finding.doubts)
    assert not any("script" in caveat for caveat in judge(failover(), load=packets(stopped(AT, 0.0))).doubts)


def test_probes_beside_a_load_are_within_one_interval() -> None:
    """The outage by loss and by the time stamps of a probe lie within one probe interval of each other."""
    finding = judge(failover(), load=packets(stopped(AT, 3.1)), series=pings(AT, 3.1))
    assert abs(finding.numbers["outage_1_loss_s"] - finding.numbers["outage_1_probe_s"]) <= 0.2
    assert "gw over icmp silent for 3" in finding.reason
    away = judge(failover(), load=packets(stopped(AT, 3.1)), series=pings(AT, 60.0))
    assert away.measured == pytest.approx(3.1, abs=0.01)
    assert any("with an outage that differs from that of the traffic: gw over icmp" in caveat for caveat in away.doubts)


def test_repetitions_give_median_and_worst() -> None:
    """Ten failovers of 1 to 5.5 s: one finding, its numbers by repetition."""
    lasts = [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]
    begins = [100.3 * (i + 1) for i in range(10)]
    down = np.sum([stopped(b, s) for b, s in zip(begins, lasts, strict=True)], axis=0)
    finding = judge(*(failover(b - 0.5) for b in begins), load=packets(down), rule=EventImpact(look=60.0))
    assert finding.numbers["events"] == 10.0
    assert finding.numbers["outage_median_s"] == pytest.approx(3.25, abs=0.01)
    assert finding.numbers["outage_worst_s"] == pytest.approx(5.5, abs=0.01)
    assert [finding.numbers[f"outage_{i}_loss_s"] for i in range(1, 11)] == pytest.approx(lasts, abs=0.01)
    assert finding.numbers["agree"] == 10.0
    assert "10 failover events: median outage 3.25 s, worst 5.5 s" in finding.reason
    assert len(finding.marks) == 10


def test_limits_fail_and_what_lies_within_them_passes() -> None:
    """An outage of 3 s fails under 2 s, passes under 4 s; 3000 packets fail under 1000."""
    load = packets(stopped(AT, 3.0))
    assert judge(failover(), load=load, rule=EventImpact(outage=2.0)).outcome is Outcome.FAIL
    assert judge(failover(), load=load, rule=EventImpact(outage=4.0)).outcome is Outcome.PASS
    assert judge(failover(), load=load, rule=EventImpact(loss=1000.0)).outcome is Outcome.FAIL
    assert judge(failover(), load=load, rule=EventImpact(loss=4000.0)).outcome is Outcome.PASS
    assert judge(failover(), load=load, rule=EventImpact(within=2.0)).outcome is Outcome.FAIL
    assert judge(failover(), load=load, rule=EventImpact(within=60.0)).outcome is Outcome.PASS


def test_what_it_says_has_the_units_of_all_other_sentences() -> None:
    """Minutes are minutes, in the definition as in the reason, and thousands have a comma."""
    rule = EventImpact(outage=90.0, loss=20_000.0, look=1200.0)
    finding = judge(failover(), load=packets(stopped(AT, 150.0)), rule=rule)
    assert "an outage of 2 min 30 s, limit 1 min 30 s; " in finding.reason
    assert "packets lost, limit 20,000" in finding.reason
    assert "may last 1 min 30 s and cost 20,000 packets" in finding.definition
    assert "to 20 min after it" in finding.definition


def test_a_limit_finer_than_the_probes_is_left_open() -> None:
    """A probe each 10 s cannot tell 3 s from 5 s."""
    finding = judge(failover(), series=pings(AT, 12.0, 10.0)[:1], rule=EventImpact(outage=12.0))
    assert finding.why is InconclusiveReason.CADENCE


def test_nothing_to_measure_by() -> None:
    """Without a limit it is not applicable and says why; with one it is inconclusive; no event is not applicable."""
    blind = judge(failover())
    assert blind.outcome is Outcome.NOT_APPLICABLE
    assert "no generator reports what was sent" in blind.reason
    assert judge(failover(), rule=EventImpact(outage=1.0)).why is InconclusiveReason.NO_REFERENCE
    assert judge(failover(), series=pings(AT, 3.0), rule=EventImpact(loss=9.0)).why is InconclusiveReason.NO_REFERENCE
    assert judge(load=packets(stopped(AT, 3.0))).outcome is Outcome.NOT_APPLICABLE
    seen = Event("link.down", "dut", "interface=eth0", 300 * S, None)
    assert judge(seen, load=packets(stopped(AT, 3.0))).outcome is Outcome.NOT_APPLICABLE, "seen, not done"


def test_the_deadline_of_an_event_is_the_limit_of_its_way_back() -> None:
    """An outage that outlasts the deadline fails, one that does not passes; a run that ends before it is not judged."""
    event = failover(deadline_ns=330 * S)
    assert judge(event, load=packets(stopped(AT, 20))).outcome is Outcome.PASS
    late = judge(event, load=packets(stopped(AT, 60)))
    assert late.outcome is Outcome.FAIL
    assert "traffic was not back within 30 s" in late.reason
    down = packets(stopped(AT, 900))
    early = judge(failover(deadline_ns=900 * S), load=tuple(s.between(0, 400 * S) for s in down), end=400)
    assert early.why is InconclusiveReason.PENDING
    assert judge(failover(), load=down).outcome is Outcome.WARN, "it never came back, and nobody set a limit"


def test_levels_have_to_be_back_by_the_deadline() -> None:
    """CPU stays up for 5 min after the event: a warning with a deadline of 2 min, in time for one of 10 min."""
    rng = np.random.default_rng(3)
    cpu = 0.3 + 0.01 * rng.standard_normal(N)
    cpu[300:600] += 0.4
    series = (readings("system.cpu.utilization", cpu, 1.0),)
    load = packets(stopped(AT, 1.0))
    late = judge(failover(deadline_ns=420 * S), load=load, series=series)
    assert late.outcome is Outcome.WARN
    assert "traffic came back, but CPU was not at the level before within 2 min" in late.reason
    assert judge(failover(), load=load, series=series).outcome is Outcome.PASS, "nobody set a time"
    fine = judge(failover(deadline_ns=900 * S), load=load, series=series)
    assert fine.outcome is Outcome.PASS
    assert fine.numbers["back_worst_s"] == pytest.approx(300, abs=20)
    assert "CPU peaked at 7" in fine.reason
    assert fine.numbers["cpu_before"] == pytest.approx(0.3, abs=0.01)


def test_the_peak_of_the_latency_is_reported() -> None:
    """Of several quantiles the one that rose most, against its median before."""
    quiet, high = np.full(N, 0.002), np.full(N, 0.002)
    high[301:306] = 0.080
    load = (
        *packets(stopped(AT, 2.0)),
        readings("load.latency", quiet, 1.0, object="quantile=p50"),
        readings("load.latency", high, 1.0, object="quantile=p99"),
    )
    finding = judge(failover(), load=load)
    assert "latency peaked at 80 ms (2 ms before)" in finding.reason
    assert finding.numbers["latency_peak"] == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0.002, 0.004, Outcome.FAIL),
        (0.002, 0.0028, Outcome.PASS),
        (0.00005, 0.00008, Outcome.PASS),
        (0.00005, 0.0002, Outcome.FAIL),
        (0.002, 0.001, Outcome.PASS),
    ],
)
def test_a_latency_that_stays_higher_is_not_back(before: float, after: float, expected: Outcome) -> None:
    """By over a millisecond, or over the double of a short one; a shorter one is no harm."""
    rng = np.random.default_rng(5)
    value = np.repeat([before, after], [300, N - 300]) * (1 + 0.01 * rng.standard_normal(N))
    load = (*packets(stopped(AT, 1.0)), readings("load.latency", value, 1.0, object="quantile=p50"))
    finding = judge(failover(deadline_ns=420 * S), load=load)
    assert finding.outcome is expected, finding.reason


def test_what_goes_down_much_later_is_not_the_events() -> None:
    """A second stop 3 min after the first counts, one 4 min after it does not and is reported."""
    near = judge(failover(deadline_ns=500 * S), load=packets(stopped(AT, 2.0) + stopped(AT + 150, 1.0)))
    assert near.measured == pytest.approx(3.0, abs=0.01)
    assert not near.doubts
    far = judge(failover(deadline_ns=330 * S), load=packets(stopped(AT, 2.0) + stopped(AT + 250, 1.0)))
    assert far.outcome is Outcome.PASS
    assert far.measured == pytest.approx(2.0, abs=0.01)
    assert any("too late to be caused by it" in caveat for caveat in far.doubts)
    series = (*pings(AT, 2.0)[:1],)
    again = (replace(series[0], value=np.minimum(series[0].value, pings(AT + 250, 2.0)[0].value)),)
    probes = judge(failover(), series=again)
    assert probes.measured == pytest.approx(2.0, abs=0.3)
    assert any("too late to be caused by it" in caveat for caveat in probes.doubts)


@pytest.mark.parametrize("source", ["rates", "lost", "offered", "requests", "bytes", "bits", "received"])
def test_whatever_the_load_tells_measures_the_outage(source: str) -> None:
    """Packet rates, the generator's own loss, requests offered, or what came against what came before."""
    down = stopped(AT, 10.0)
    sent, back = packets(down)
    kept = 1000.0 * (1 - np.append(0.0, down))
    reported = np.full(N + 1, 1000.0)
    load = {
        "rates": (readings("load.tx.packet.rate", reported, 1.0), readings("load.rx.packet.rate", kept, 1.0)),
        "lost": (sent, readings("load.lost.packets", sent.values - back.values, 1.0)),
        "offered": (readings("load.offered.rate", reported, 1.0), readings("load.request.rate", kept, 1.0)),
        "requests": (replace(back, metric="load.requests"),),
        "bytes": (readings("load.rx.bytes", 8e5 * back.values, 1.0),),
        "bits": (readings("load.rx.bit.rate", 1e6 * kept, 1.0),),
        "received": (back,),
    }[source]
    finding = judge(failover(), load=load)
    assert finding.measured == pytest.approx(10.0, abs=0.1)
    assert finding.numbers["agree"] == 1.0
    assumed = source in {"requests", "bytes", "bits", "received"}
    assert any("the packets sent are not known" in caveat for caveat in finding.doubts) is assumed


def test_a_generator_that_stops_with_its_link_lost_nothing_and_says_so() -> None:
    """What was not sent is no loss: it is doubted."""
    down = stopped(AT, 5.0)
    carried = np.append(0.0, np.cumsum(1000.0 * (1 - down)))
    load = (readings("load.tx.packets", carried, 1.0), readings("load.rx.packets", carried, 1.0))
    finding = judge(failover(), load=load)
    assert finding.measured == 0.0
    assert any("the generator itself sent less than half" in caveat for caveat in finding.doubts)


def test_a_word_of_the_log_and_of_the_tester_are_one_event() -> None:
    """The device's log tells the failover two seconds after the tester: it is one, with the tester's deadline."""
    event = failover(deadline_ns=330 * S, expect={"reboot": 0})
    finding = judge(
        event,
        failover(302, detail={"line": "VRRP state change", "address": "192.0.2.9"}),
        load=packets(stopped(AT, 60)),
    )
    assert finding.numbers["events"] == 1.0
    assert finding.outcome is Outcome.FAIL


def test_events_that_overlap_are_reported_and_measured_each() -> None:
    """A failover during an upgrade: both findings say that the loss may be due to either."""
    upgrade = Event("upgrade", "dut", "", 250 * S, 500 * S)
    case = Case("dut", "", Window(0, N * S), events=(upgrade, failover()), load=packets(stopped(AT, 3.0)))
    findings = EventImpact().judge(case)
    assert [f.object for f in findings] == ["event=upgrade", "event=failover"]
    assert all(f.measured == pytest.approx(3.0, abs=0.01) for f in findings)
    assert all(any("another event overlaps with it" in d for d in f.doubts) for f in findings)


def test_an_overload_that_follows_is_not_the_events() -> None:
    """What a stress phase loses is not judged."""
    phases = (Phase("soak", Window(0, 400 * S)), Phase("stress", Window(400 * S, 600 * S)))
    down = stopped(AT, 3.0) + stopped(420, 100, 0.3)
    assert judge(failover(), load=packets(down), phases=phases).measured == pytest.approx(3.0, abs=0.01)


def test_an_announced_outage_has_to_come_and_no_more_than_announced() -> None:
    """One announced and one seen passes; none seen fails, as do two; 0 announced forbids any."""
    pair, two = packets(stopped(AT, 3.0)), packets(stopped(AT, 3.0) + stopped(320, 3.0))
    event = failover(expect={"outage": 1}, deadline_ns=400 * S)
    assert judge(event, load=pair).outcome is Outcome.PASS
    none = judge(event, load=packets(stopped(0, 0)))
    assert none.outcome is Outcome.FAIL
    assert "announced 1 outage, but 0 happened" in none.reason
    assert judge(event, load=two).outcome is Outcome.FAIL
    close = packets(stopped(AT, 3.0) + stopped(AT + 5.6, 0.2))
    assert judge(event, load=close).outcome is Outcome.PASS, "a moment of traffic between does not make it two"
    assert judge(failover(expect={"outage": 0}), load=pair).outcome is Outcome.FAIL
    assert judge(event).outcome is Outcome.INCONCLUSIVE


def test_a_planned_event_that_did_not_happen_fails() -> None:
    """A failover that announced a change of state that no listener reported; without a listener it is open."""
    event = failover(expect={"vrrp.change": 1}, deadline_ns=400 * S)
    listener = Ledger("dut", "dut/syslog", 10.0, 120, 120, {}, None)
    load = packets(stopped(AT, 1.0))
    missing = judge(event, load=load, ledgers=(listener,))
    assert missing.outcome is Outcome.FAIL
    assert "announced 1 vrrp.change, but 0 happened" in missing.reason
    came = Event("vrrp.change", "dut", "", 301 * S, None)
    rule, case = EventImpact(), Case("dut", "", Window(0, N * S), events=(event, came), load=load, ledgers=(listener,))
    assert {f.object: f.outcome for f in rule.judge(case)}["event=failover"] is Outcome.PASS
    assert judge(event, load=load).why is InconclusiveReason.NO_REFERENCE
    reboots = judge(failover(expect={"reboot": 1}, deadline_ns=400 * S), load=load)
    assert reboots.outcome is Outcome.PASS, "the rule reboot judges that"


def test_several_devices_leave_a_caveat_and_generators_are_not_judged() -> None:
    """Under one load nobody knows whose loss it was."""
    finding = judge(failover(), load=packets(stopped(AT, 3.0)), devices=2)
    assert any("2 devices share the load" in caveat for caveat in finding.doubts)
    assert EventImpact().judge(Case("tg", "", Window(0, S), role="generator")) == ()


PARAMETERS = {"outage": 5.0}
OUTCOMES = """
events                      | event_impact
no event                    | N
failover without loss       | P
failover of 300 ms          | P
failover of 3 s             | P
failover of 10 s            | F
half of the flows for 6 s   | P
probed failover of 3 s      | PI
probed failover of 10 s     | F
load and probes, 3 s        | P
ten failovers of 1 to 3.2 s | P
one of ten lasts 8 s        | F
not back by its deadline    | F
nothing tells of traffic    | I
"""
