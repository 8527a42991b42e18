"""management_isolation: whether the device answers its operators while it carries a high load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.rules.draws import each_seed

from soakwatch_model.case import Before, Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules import peers
from soakwatch_rules.detectors.hang import Hang
from soakwatch_rules.detectors.management_isolation import ManagementIsolation
from soakwatch_rules.load.load_pressure import pressure
from soakwatch_rules.signals import readings, uptimes
from soakwatch_testing.rule_checks import check_complete

S = 10**9
N = 1800
STRESS = Window(900 * S, 1500 * S)
PHASES = (Phase("soak", Window(0, 900 * S)), Phase("stress", STRESS), Phase("recovery", Window(1500 * S, N * S)))
PEER = "peer=192.0.2.1,protocol=icmp"
ABOVE = slice(900, 1500)


def probed(value: float | np.ndarray, metric: str = "reach.round_trip", name: str = PEER) -> Series:
    """Readings of one peer each second."""
    return readings(metric, np.broadcast_to(np.asarray(value, dtype=np.float64), (N,)).copy(), 1.0, object=name)


def trips(under_load: float, before: float = 0.001) -> Series:
    """Round trips that change in the stress phase."""
    value = np.full(N, before)
    value[ABOVE] = under_load
    return probed(value)


def requests(share: float, calm: float = 0.0, each: int = 3) -> tuple[Series, Series]:
    """Counters of requests and of those that were lost: a share in the stress phase, another one elsewhere."""
    lost = np.full(N, calm)
    lost[ABOVE] = share
    return probed(each * np.arange(1.0, N + 1), "reach.sent"), probed(np.cumsum(each * lost), "reach.lost")


def ledger(source: str, *gaps: tuple[int, int], how: str = "timeout", interval: float = 10.0) -> Ledger:
    """The account of a source with these silences, in seconds."""
    silences = tuple(Silence(Window(a * S, b * S), {how: (b - a) // 10}) for a, b in gaps)
    lost = sum(s.lost[how] for s in silences)
    due = int(N / interval)
    return Ledger("dut", source, interval, due, due - lost, {how: lost} if lost else {}, None, silences=silences)


def cpu(level: float = 0.4, silent: tuple[int, int] | None = None) -> Series:
    """A CPU that stands at a level in the stress phase; not read while its source is silent."""
    value = np.full(N, 0.3)
    value[ABOVE] = level
    series = readings("system.cpu.utilization", value, 1.0)
    if silent is None:
        return series
    keep = (series.time_ns < silent[0] * S) | (series.time_ns >= silent[1] * S)
    return replace(series, time_ns=series.time_ns[keep], value=series.value[keep])


def judge(
    *series: Series,
    ledgers: tuple[Ledger, ...] = (),
    phases: tuple[Phase, ...] = PHASES,
    load: tuple[Series, ...] = (),
    events: tuple[Event, ...] = (),
    rule: ManagementIsolation | None = None,
) -> list[Finding]:
    """All findings on the device, each complete."""
    case = Case("dut", "", Window(0, N * S), series, phases=phases, ledgers=ledgers, load=load, events=events)
    result = rule or ManagementIsolation()
    findings = list(result.judge(case))
    for finding in findings:
        check_complete(result, case, finding)
    return findings


@pytest.mark.parametrize(
    ("late", "expected"),
    [(0.001, Outcome.PASS), (0.005, Outcome.PASS), (0.05, Outcome.WARN), (1.5, Outcome.FAIL)],
)
def test_round_trips_under_load(late: float, expected: Outcome) -> None:
    """As before or a few times as late passes, fifty times as late warns, over a second fails; both are reported."""
    (finding,) = judge(trips(late))
    assert finding.outcome is expected
    assert finding.object == PEER
    assert finding.measured == pytest.approx(late)
    assert "(1 ms under low load)" in finding.reason


@pytest.mark.parametrize(
    ("share", "calm", "expected"),
    [(0.0, 0.0, Outcome.PASS), (0.03, 0.0, Outcome.PASS), (0.2, 0.0, Outcome.FAIL), (0.2, 0.2, Outcome.PASS)],
)
def test_requests_lost_under_load(share: float, calm: float, expected: Outcome) -> None:
    """What is lost beyond that of low load counts: a peer that always loses 20 % is no worse under stress."""
    (finding,) = judge(trips(0.001), *requests(share, calm))
    assert finding.outcome is expected
    assert finding.numbers["lost_share"] == pytest.approx(share, abs=0.005)
    assert finding.numbers["lost_share_low"] == pytest.approx(calm, abs=0.005)


def test_without_counters_the_readings_are_counted() -> None:
    """A probe that tells only whether its peer answered."""
    up = np.ones(N)
    up[ABOVE][::4] = 0.0
    (finding,) = judge(probed(up, "reach.up"))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(0.25)


def test_few_requests_leave_it_open() -> None:
    """Two of eighteen lost are over a twentieth, and may be chance."""
    sent = readings("reach.sent", 3.0 * np.arange(19.0), 100.0, object=PEER)
    lost = readings("reach.lost", np.array([0.0] * 10 + [2.0] * 9), 100.0, object=PEER)
    (finding,) = judge(sent, lost)
    assert finding.why is InconclusiveReason.TOO_FEW
    assert "too few requests to be certain" in finding.reason


def test_probes_that_could_not_tell_are_not_applicable() -> None:
    """One probe in a short overload: nobody could know."""
    up = readings("reach.up", np.ones(6), 300.0, object=PEER)
    (finding,) = judge(up)
    assert finding.outcome is Outcome.NOT_APPLICABLE
    gone = probed(1.0, "reach.up").between(0, 890 * S)
    assert judge(gone)[0].why is InconclusiveReason.TOO_FEW


def test_a_device_that_starves_its_management_is_distinguished_from_a_dead_path() -> None:
    """Silent at 100 % CPU: the device. Silent while another source answers: the path. All silent, CPU calm: open."""
    gap = (1000, 1300)
    starved = judge(cpu(1.0, gap), ledgers=(ledger("dut/snmp", gap),))
    assert [f.outcome for f in starved] == [Outcome.FAIL]
    assert "its CPU was at 100 % just before" in starved[0].reason
    assert starved[0].measured == pytest.approx(0.5)
    path = judge(cpu(0.4), ledgers=(ledger("dut/snmp", gap), ledger("dut/ssh")))
    assert [f.outcome for f in path] == [Outcome.PASS, Outcome.PASS]
    assert "caused by the path: dut/ssh answered meanwhile" in path[0].reason
    both = judge(cpu(0.4, gap), ledgers=(ledger("dut/snmp", gap), ledger("dut/ssh", gap)))
    assert [f.outcome for f in both] == [Outcome.WARN, Outcome.WARN]
    assert "silent under high load only" in both[0].reason
    also = (ledger("dut/snmp", (100, 200), gap), ledger("dut/ssh", (100, 200), gap))
    assert [f.outcome for f in judge(cpu(0.4, gap), ledgers=also)] == [Outcome.PASS] * 2, "and without it"


def test_the_monitors_own_fault_is_not_the_devices() -> None:
    """Polls that were never sent: a pass that says so, with the caveat that the monitor was late."""
    (finding,) = judge(cpu(1.0), ledgers=(ledger("dut/snmp", (1000, 1300), how="missed"),))
    assert finding.outcome is Outcome.PASS
    assert "caused by the monitor: the monitor did not send its polls" in finding.reason
    assert any("the monitor itself was late: 30 of 180 polls" in caveat for caveat in finding.doubts)


def test_a_reboot_and_what_was_announced_are_reported_and_are_no_hang() -> None:
    """A device that rebooted under stress is the rule reboot's matter; one that hung fails here and in hang."""
    gap = (1000, 1300)
    ledgers = (ledger("dut/snmp", gap),)
    booted = uptimes(10.0, 180, reboot_at=115)
    (finding,) = judge(cpu(1.0, gap), booted, ledgers=ledgers)
    assert finding.outcome is Outcome.PASS
    assert "with a reboot in it: the device rebooted" in finding.reason
    planned = Event("upgrade", "dut", "", 990 * S, None, expect={"reboot": 1}, deadline_ns=1400 * S)
    (asked,) = judge(cpu(1.0, gap), ledgers=ledgers, events=(planned,))
    assert "planned: a planned upgrade was in progress" in asked.reason
    positions = np.arange(N, dtype=np.float64)
    sent = readings("load.tx.packets", 1000 * positions, 1.0)
    back = readings("load.rx.packets", 1000 * (positions - np.clip(positions - gap[0], 0, gap[1] - gap[0])), 1.0)
    hung = judge(cpu(1.0, gap), uptimes(10.0, 180), ledgers=ledgers, load=(sent, back))
    assert [f.outcome for f in hung] == [Outcome.FAIL]
    assert "without a reboot" in hung[0].reason
    case = Case(
        "dut",
        "",
        Window(0, N * S),
        (cpu(1.0, gap), uptimes(10.0, 180)),
        phases=PHASES,
        ledgers=ledgers,
        load=(sent, back),
    )
    assert Hang().judge(case)[0].outcome is Outcome.FAIL


def test_what_the_overload_loses_does_not_blame_the_device_for_a_cut_path() -> None:
    """A management path that is cut while 30 % of an overload is lost: no starved device."""
    gap = (1000, 1300)
    positions = np.arange(N, dtype=np.float64)
    lost = np.zeros(N)
    lost[gap[0] : 1500] = 300.0
    load = (
        readings("load.tx.packets", 1000 * positions, 1.0),
        readings("load.rx.packets", np.cumsum(1000 - lost), 1.0),
    )
    (finding,) = judge(cpu(0.4, gap), ledgers=(ledger("dut/snmp", gap),), load=load)
    assert finding.outcome is Outcome.WARN


def test_a_peer_behind_the_device_loses_with_the_data_plane_and_that_is_reported() -> None:
    """20 % of the requests and 20 % of the load were lost."""
    positions = np.arange(N, dtype=np.float64)
    lost = np.zeros(N)
    lost[ABOVE] = 200.0
    load = (
        readings("load.tx.packets", 1000 * positions, 1.0),
        readings("load.rx.packets", np.cumsum(1000 - lost), 1.0),
    )
    (finding,) = judge(*requests(0.2), load=load)
    assert finding.outcome is Outcome.FAIL
    assert any("the peer may be behind the device" in caveat for caveat in finding.doubts)


@pytest.mark.parametrize("metric", ["load.tx.packets", "load.offered.rate", "load.tx.bit.rate"])
def test_without_phases_the_load_tells_when_it_was_high(metric: str) -> None:
    """Ten minutes at full load after fifteen at a twentieth of it."""
    rate = np.full(N, 50.0)
    rate[ABOVE] = 1000.0
    value = np.cumsum(rate) if metric.endswith("packets") else rate
    load = (readings(metric, value, 1.0),)
    late = judge(trips(2.0), load=load, phases=(Phase("soak", Window(0, N * S)),))
    assert [f.outcome for f in late] == [Outcome.FAIL]
    assert "a load above 50 % of its maximum" in late[0].reason
    match = pressure(Case("dut", "", Window(0, N * S), load=load))
    assert match is not None
    assert [(w.begin_ns // S, w.end_ns // S) for w in match.high] == [(900, 1500)]
    assert judge(trips(2.0), phases=())[0].outcome is Outcome.NOT_APPLICABLE


def test_what_listens_and_what_pings_has_no_finding_of_polls() -> None:
    """A receiver of syslog answers nobody; a ping has the finding of its peer."""
    assert judge(trips(0.001), ledgers=(ledger("dut/syslog"), ledger("dut/icmp"))) != []
    assert [f.object for f in judge(trips(0.001), ledgers=(ledger("dut/syslog"), ledger("dut/icmp")))] == [PEER]
    (never,) = judge(ledgers=(Ledger("dut", "dut/snmp", 10.0, 180, 0, {"timeout": 180}, None),))
    assert never.why is InconclusiveReason.GAP
    (slow,) = judge(ledgers=(ledger("dut/snmp", interval=300.0),))
    assert slow.outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("bad", [{"loss": 1.0}, {"busy": 0.0}, {"latency": 0.0}, {"times": 0.5}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="management_isolation"):
        ManagementIsolation(**bad)


@pytest.mark.parametrize("seed", each_seed(15, 60))
def test_no_numbers_break_it(seed: int) -> None:
    """Random readings, accounts and phases: complete findings, no exception."""
    rng = np.random.default_rng(seed)

    def wild(metric: str, name: str = "") -> Series:
        n = int(rng.integers(0, 200))
        value = rng.choice([0.0, 1.0, np.nan, np.inf, 1e308, -1e308, 17.0], n)
        return readings(metric, value, float(rng.choice([1.0, 10.0])), object=name)

    names = {"reach": PEER, "source": "source=snmp"}
    series = [wild(m, names.get(m.partition(".")[0], "")) for m in ManagementIsolation().metrics]
    load = tuple(wild(m) for m in ("load.tx.packets", "load.rx.packets", "load.offered.rate"))
    gaps = sorted(int(x) for x in rng.integers(0, N, 4))
    ledgers = (ledger("dut/snmp", (gaps[0], gaps[1]), (gaps[2], gaps[3])), ledger("dut/ssh"))
    for phases in (PHASES, (), (Phase("spike", Window(5 * S, 5 * S)),)):
        judge(*series, ledgers=ledgers, load=load, phases=phases)


def polled(
    under_load: float,
    before: float = 0.05,
    *,
    surveys: int = 6,
    surveys_under_load: int = 6,
    lost: int = 0,
    source: str = "snmp",
) -> Series:
    """The lengths of polls each ten seconds: every so many is a survey, which takes ten times as long.

    Of those under load every ``lost``-th was not answered.
    """
    positions = np.arange(0.0, N, 10.0)
    above = (positions >= 900) & (positions < 1500)
    number = np.arange(positions.size)
    value = np.where(above, under_load, before) * (1 + 0.1 * (number % 3))
    each = np.where(above, surveys_under_load, surveys)
    value[number % each == 0] *= 10
    series = readings("source.poll.duration", value, 10.0, object=f"source={source}")
    keep = ~(above & (number % lost == 0)) if lost else np.ones(positions.size, dtype=bool)
    return replace(series, time_ns=series.time_ns[keep], value=series.value[keep])


def of_polls(findings: list[Finding]) -> Finding:
    """The one finding on the lengths of polls."""
    (finding,) = [f for f in findings if f.metric == "source.poll.duration"]
    return finding


@pytest.mark.parametrize(
    ("late", "before", "expected"),
    [
        (0.05, 0.05, Outcome.PASS),
        (0.2, 0.05, Outcome.PASS),
        (0.8, 0.05, Outcome.WARN),  # 16 times, under a second
        (2.0, 0.05, Outcome.FAIL),  # 40 times, two seconds
        (6.0, 4.0, Outcome.WARN),  # two seconds longer, half as long again
        (4.5, 4.0, Outcome.PASS),
        (0.008, 0.0004, Outcome.PASS),  # twenty times nothing
    ],
)
def test_a_poll_is_a_round_trip_of_many_requests(late: float, before: float, expected: Outcome) -> None:
    """Held against the polls of the same source under low load: times as long, and over a second."""
    finding = of_polls(judge(polled(late, before), ledgers=(ledger("dut/snmp"),)))
    assert finding.outcome is expected
    assert (finding.target, finding.object) == ("dut", "source=snmp")
    assert finding.numbers["slower"] == pytest.approx(late / before, rel=0.1)
    assert "under low load" in finding.reason


def test_more_surveys_are_no_slower_device() -> None:
    """Under stress two of three polls are surveys, which take twenty times as long: the shortest are as before."""
    positions = np.arange(0.0, N, 10.0)
    value = np.where((positions >= 900) & (positions < 1500) & (np.arange(positions.size) % 3 > 0), 2.0, 0.1)
    series = readings("source.poll.duration", value, 10.0, object="source=snmp")
    finding = of_polls(judge(series, ledgers=(ledger("dut/snmp"),)))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["took"] == 2.0
    assert of_polls(judge(polled(0.05, surveys_under_load=2), ledgers=(ledger("dut/snmp"),))).outcome is Outcome.PASS


def lossy(each: int, missed: int = 0) -> Ledger:
    """The account of a source that lost every so many-th poll under load, alone: no silence."""
    lost = {"timeout": 60 // each} if each else {}
    return Ledger(
        "dut", "dut/snmp", 10.0, 180, 180 - sum(lost.values()), lost | ({"missed": missed} if missed else {}), None
    )


def test_polls_that_are_lost_one_at_a_time() -> None:
    """A fourth of them under stress, each alone, is no silence: it fails as lost requests do; a thirtieth passes."""
    findings = judge(polled(0.05, lost=4), ledgers=(lossy(4),))
    finding = of_polls(findings)
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["lost_share"] == pytest.approx(0.25, abs=0.03)
    assert "single polls were lost" in finding.reason
    assert [f.outcome for f in findings if f.object == "dut/snmp"] == [Outcome.PASS], "there is no silence"
    assert of_polls(judge(polled(0.05, lost=30), ledgers=(lossy(30),))).outcome is Outcome.PASS
    assert of_polls(judge(polled(0.05, lost=4), ledgers=(lossy(0, missed=15),))).outcome is Outcome.PASS, "not sent"
    assert of_polls(judge(polled(0.05, lost=4))).outcome is Outcome.PASS, "nobody accounts for them"


def test_of_two_sources_of_a_kind_each_has_its_own_account() -> None:
    """A ledger shows the label of the second one behind the poller's name."""
    first, second = replace(lossy(4), source="dut/snmp snmp"), ledger("dut/snmp snmp-2")
    findings = judge(polled(0.05, lost=4), polled(0.05, source="snmp-2"), ledgers=(first, second))
    outcomes = {f.object: f.outcome for f in findings if f.metric == "source.poll.duration"}
    assert outcomes == {"source=snmp": Outcome.FAIL, "source=snmp-2": Outcome.PASS}


def test_a_silence_is_not_counted_twice() -> None:
    """Three hundred seconds of silence, whatever its cause, are the matter of the other finding."""
    gap = (1000, 1300)
    series = polled(0.05)
    keep = (series.time_ns < gap[0] * S) | (series.time_ns >= gap[1] * S)
    series = replace(series, time_ns=series.time_ns[keep], value=series.value[keep])
    finding = of_polls(judge(series, cpu(0.4), ledgers=(ledger("dut/snmp", gap), ledger("dut/ssh"))))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["lost"] == 0


def test_few_polls_decide_nothing() -> None:
    """A poll a minute in ten minutes of stress: not applicable; without low load only what was lost is judged."""
    slow = readings("source.poll.duration", np.full(30, 5.0), 60.0, object="source=snmp")
    assert of_polls(judge(slow, ledgers=(ledger("dut/snmp", interval=60.0),))).outcome is Outcome.NOT_APPLICABLE
    only = of_polls(judge(polled(5.0), ledgers=(ledger("dut/snmp"),), phases=(PHASES[1],)))
    assert only.outcome is Outcome.PASS
    assert any("too few polls under low load" in caveat for caveat in only.doubts)


def test_polls_of_an_earlier_baseline_stand_in_for_low_load() -> None:
    """A run of nothing but stress is held against the polls that an earlier run imported, and says so."""
    all_stress = (Phase("stress", Window(0, N * S)),)
    before = polled(0.05)
    before = replace(before, time_ns=before.time_ns - 10_000 * S)
    case = Case(
        "dut",
        "",
        Window(0, N * S),
        (polled(2.0, 2.0),),
        phases=all_stress,
        ledgers=(ledger("dut/snmp"),),
        before=Before(baseline=(before,)),
    )
    finding = of_polls(list(ManagementIsolation().judge(case)))
    assert finding.outcome is Outcome.FAIL
    assert any("baseline of an earlier run" in caveat for caveat in finding.doubts)


def test_a_reading_that_is_no_number_is_no_answer_of_the_peer() -> None:
    """What was not measured is neither sent nor answered."""
    up = readings("reach.up", np.array([1.0, np.nan, 0.0, np.nan]), 1.0)
    assert peers.requests({"reach.up": up}, [Window(0, 10 * 10**9)]) == (2.0, 1.0)


OUTCOMES = """
isolation                     | management_isolation
answers as before             | P
three times as late           | P
round trip of 20 ms           | W
round trip of 2 s             | F
20 % of requests lost         | F
2 % of requests lost          | P
starved at 100 % CPU          | F
path cut while data flows     | WP
one source silent             | P
late monitor under stress     | P
reboot under stress           | P
no pressure told              | N
looks as long as before       | P
looks as long, but wandering  | P
looks four times as long      | P
twice as many surveys         | P
looks 14 times as long, 0.7 s | W
looks 60 times as long, 3 s   | F
looks of 3 s, twice as long   | W
20 % of looks lost            | F
2 % of looks lost             | P
"""
