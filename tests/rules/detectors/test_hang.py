"""hang: forwarding stood, nobody was answered, and no reboot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.hang import Hang
from soakwatch_rules.signals import readings, uptimes
from soakwatch_testing.rule_checks import check_complete

S = 10**9
N = 360  # an hour of 10 s readings


def ledger(source: str, *spans: tuple[float, float], lost: str = "timeout", interval: float = 10.0) -> Ledger:
    """The account of one source that was silent between these seconds."""
    silences = tuple(
        Silence(Window(round(b * S), round(e * S)), {lost: max(1, int((e - b) / interval) - 1)}) for b, e in spans
    )
    return Ledger("dut", source, interval, N, N - 10, {lost: 10}, None, silences=silences)


def load(*stood: tuple[float, float], cadence: float = 1.0, until: float = 3600) -> tuple[Series, Series]:
    """A thousand packets a second that all come back, but for the stretches in which none does."""
    positions = np.arange(int(until / cadence), dtype=np.float64) * cadence
    back = 1000.0 * np.ones(positions.size) * cadence
    for begin, end in stood:
        back[(positions > begin) & (positions <= end)] = 0
    return (
        readings("load.tx.packets", 1000.0 * positions, cadence),
        readings("load.rx.packets", np.cumsum(back) - back[0], cadence),
    )


def cpu(*top: tuple[float, float]) -> Series:
    """A utilisation of 30 %, at 100 % in these stretches."""
    value = np.full(N, 0.3)
    for begin, end in top:
        value[int(begin / 10) : int(end / 10)] = 1.0
    return readings("system.cpu.utilization", value, 10.0)


def without(series: Series, begin: float, end: float) -> Series:
    """The readings of a source that was silent."""
    keep = (series.time_ns <= begin * S) | (series.time_ns >= end * S)
    return replace(series, time_ns=series.time_ns[keep], value=series.value[keep])


def case(*series: Series, ledgers: tuple[Ledger, ...] = (), flow: tuple[Series, ...] = (), **more: object) -> Case:
    """An hour of one device."""
    case = Case("dut", "", Window(0, 3600 * S), series, ledgers=ledgers, load=flow)
    return replace(case, **more)  # type: ignore[arg-type]


def judge(case: Case) -> Finding:
    """The one finding."""
    findings = Hang().judge(case)
    assert len(findings) == 1
    return findings[0]


def test_silence_and_standing_forwarding_are_a_hang() -> None:
    """Two minutes without an answer and without a packet, the uptime running on: one hang with its witnesses."""
    silent = (ledger("snmp", (1000, 1120)), ledger("ssh", (995, 1125)))
    hung = case(without(uptimes(10.0, N), 1000, 1120), ledgers=silent, flow=load((1001, 1119)))
    finding = judge(hung)
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(118)
    assert len(finding.marks) == 1
    assert "no forwarding for 1 min 58 s; no management answered for 1 min 58 s" in finding.reason


@pytest.mark.parametrize(
    ("spans", "other", "stood"),
    [
        ((1000, 1120), (1300, 1400), (1001, 1119)),
        ((1000, 1120), (1000, 1120), (2000, 2100)),
        ((1000, 1120), (1000, 1120), (0, 0)),
        ((1000, 1120), (1000, 1120), (1001, 1020)),
    ],
    ids=["another source answered", "forwarding stood elsewhere", "it forwarded", "too short"],
)
def test_one_witness_is_no_hang(
    spans: tuple[float, float], other: tuple[float, float], stood: tuple[float, float]
) -> None:
    """A silent source alone, standing forwarding alone, or both at other times are no hang."""
    finding = judge(
        case(uptimes(10.0, N), cpu(), ledgers=(ledger("snmp", spans), ledger("ssh", other)), flow=load(stood))
    )
    assert finding.outcome is Outcome.PASS


def test_a_source_that_is_asked_seldom_and_answered_is_no_silence_of_all() -> None:
    """An agent each second is cut off for 40 s; SNMP each 5 s went on: management was not silent."""
    cut = ledger("dut/agent", (1000, 1040), interval=1.0)
    snmp = replace(ledger("dut/snmp", interval=5.0), longest_gap=Window(500 * S, 505 * S))
    assert judge(case(uptimes(10.0, N), ledgers=(cut, snmp))).outcome is Outcome.PASS
    assert judge(case(uptimes(10.0, N), ledgers=(cut, replace(snmp, longest_gap=None)))).outcome is Outcome.PASS
    minutely = replace(ledger("dut/ssh", interval=20.0), longest_gap=Window(500 * S, 521 * S))
    assert judge(case(uptimes(10.0, N), ledgers=(cut, minutely))).outcome is Outcome.PASS
    both = ledger("dut/snmp", (995, 1045), interval=5.0)
    assert judge(case(uptimes(10.0, N), ledgers=(cut, both))).outcome is Outcome.WARN
    hourly = replace(ledger("dut/ssh", interval=600.0), longest_gap=Window(0, 601 * S))
    assert judge(case(uptimes(10.0, N), ledgers=(cut, hourly))).outcome is Outcome.WARN, "it had nothing to say"


@pytest.mark.parametrize("interval", [1.0, 5.0])
def test_a_peer_that_answers_pings_is_not_silent_and_one_that_does_not_is(interval: float) -> None:
    """The account of a source that pings says only that it could ask; what came back is its reading."""
    cut = ledger("dut/agent", (1000, 1040), interval=1.0)
    ping = replace(ledger("dut/icmp", interval=interval), longest_gap=Window(0, round(interval * S)))
    positions = np.arange(int(3600 / interval)) * interval
    up = readings("reach.up", np.ones(positions.size), interval, object="peer=198.18.0.1,protocol=icmp")
    down = replace(up, value=np.where((positions > 1000) & (positions < 1040), 0.0, 1.0))
    assert judge(case(uptimes(10.0, N), up, ledgers=(cut, ping))).outcome is Outcome.PASS
    assert judge(case(uptimes(10.0, N), down, ledgers=(cut, ping))).outcome is Outcome.WARN
    both = judge(case(uptimes(10.0, N), down, up, ledgers=(cut, ping)))
    assert both.outcome is Outcome.PASS, "one of two addresses answered"
    at_all = (positions < 1) | (positions > 3599) | (np.abs(positions - 1000) < 6) | (np.abs(positions - 1040) < 6)
    changes = replace(down, time_ns=down.time_ns[at_all], value=down.value[at_all])
    assert judge(case(uptimes(10.0, N), changes, ledgers=(cut, ping))).outcome is Outcome.WARN


def test_what_only_listens_says_nothing_of_a_silence() -> None:
    """A receiver of syslog answers on this machine, whatever becomes of the device."""
    cut, listener = ledger("dut/snmp", (1000, 1120)), ledger("dut/syslog")
    assert judge(case(uptimes(10.0, N), ledgers=(cut, listener))).outcome is Outcome.WARN


def test_a_cpu_at_the_top_is_a_witness_too() -> None:
    """Management answers, the CPU is at 100 % and nothing comes back for a minute: a hang."""
    finding = judge(case(uptimes(10.0, N), cpu((1000, 1100)), ledgers=(ledger("snmp"),), flow=load((1010, 1070))))
    assert finding.outcome is Outcome.FAIL
    assert "CPU fully busy for 1 min" in finding.reason


def test_a_cpu_that_polls_is_none() -> None:
    """Forwarding that stands on a device whose CPU is always busy is another rule's matter."""
    finding = judge(case(uptimes(10.0, N), cpu((0, 3600)), ledgers=(ledger("snmp"),), flow=load((1010, 1070))))
    assert finding.outcome is Outcome.PASS
    assert any("while management answered" in caveat for caveat in finding.doubts)


def test_a_reboot_explains_it() -> None:
    """The same silence with an uptime that began again is the reboot's, which another rule judges."""
    booted = without(uptimes(10.0, N, reboot_at=105), 1000, 1120)
    finding = judge(case(booted, ledgers=(ledger("snmp", (1000, 1120)),), flow=load((1001, 1119))))
    assert finding.outcome is Outcome.PASS
    assert finding.numbers["reboots"] == 1
    event = Event("reboot", "dut", "", 1050 * S, None)
    quiet = case(cpu(), ledgers=(ledger("snmp", (1000, 1120)),), flow=load((1001, 1119)))
    assert judge(replace(quiet, events=(event,))).outcome is Outcome.PASS
    assert judge(quiet).why is InconclusiveReason.UNREAD, "without boot id and uptime a reboot cannot be excluded"


def test_a_device_that_never_comes_back_hung() -> None:
    """Silence and standing forwarding to the end of the run fail, though nobody can ask for its uptime."""
    dead = case(cpu(), ledgers=(ledger("snmp", (3000, 3600)),), flow=load((3001, 3600)))
    assert judge(dead).outcome is Outcome.FAIL


def test_an_announced_event_asked_for_it() -> None:
    """A failover that was planned may silence the device."""
    planned = Event("failover", "dut", "", 990 * S, 1000 * S, expect={"failover": 1}, deadline_ns=1200 * S)
    hung = case(uptimes(10.0, N), ledgers=(ledger("snmp", (1000, 1120)),), flow=load((1001, 1119)))
    assert judge(replace(hung, events=(planned,))).outcome is Outcome.PASS
    assert judge(hung).outcome is Outcome.FAIL
    process = replace(planned, kind="restart", expect={"process.restart": 1})
    assert judge(replace(hung, events=(process,))).outcome is Outcome.FAIL, "a daemon's restart is no leave to hang"


def test_the_monitors_own_pause_is_no_silence() -> None:
    """Polls that were never sent do not make the device silent."""
    finding = judge(
        case(uptimes(10.0, N), ledgers=(ledger("snmp", (1000, 1120), lost="missed"),), flow=load((1001, 1119)))
    )
    assert finding.outcome is Outcome.PASS


def test_without_the_loads_figures_it_only_warns() -> None:
    """A silence alone warns; after a CPU at 100 % it is inconclusive; without a silence it passes."""
    silent = (ledger("snmp", (1000, 1120)),)
    assert judge(case(uptimes(10.0, N), cpu(), ledgers=silent)).outcome is Outcome.WARN
    hot = judge(case(uptimes(10.0, N), without(cpu((900, 1200)), 1001, 1119), ledgers=silent))
    assert hot.why is InconclusiveReason.NO_REFERENCE
    assert "CPU was at 100 %" in hot.reason
    assert judge(case(uptimes(10.0, N), ledgers=(ledger("snmp"),))).outcome is Outcome.PASS


def test_a_generator_that_ended_says_nothing() -> None:
    """After the load's last packet nothing comes back, and that is no stop."""
    finding = judge(case(uptimes(10.0, N), ledgers=(ledger("snmp", (2000, 2200)),), flow=load(until=1800)))
    assert finding.outcome is Outcome.PASS


def test_requests_without_an_answer_are_a_stop() -> None:
    """Requests go on to be offered and none is answered while all management is silent."""
    done = np.arange(3600, dtype=np.float64) * 50
    done[1001:] -= np.minimum(np.arange(3600 - 1001), 118) * 50
    flow = (readings("load.offered.rate", np.full(3600, 50.0), 1.0), readings("load.requests", done, 1.0))
    finding = judge(case(uptimes(10.0, N), ledgers=(ledger("snmp", (1000, 1120)),), flow=flow))
    assert finding.outcome is Outcome.FAIL


def test_a_slow_source_need_not_be_silent() -> None:
    """A source that is asked each 5 min had nothing to say in 2 min: the quick one's silence is all there is."""
    slow = ledger("inventory", interval=300.0)
    finding = judge(case(uptimes(10.0, N), ledgers=(ledger("snmp", (1000, 1120)), slow), flow=load((1001, 1119))))
    assert finding.outcome is Outcome.FAIL


def test_several_devices_share_the_caveat() -> None:
    """With two devices under one load the finding says that the load cannot tell them apart."""
    finding = judge(case(uptimes(10.0, N), ledgers=(ledger("snmp", (1000, 1120)),), flow=load((1001, 1119)), devices=2))
    assert any("2 devices" in caveat for caveat in finding.doubts)


def test_no_answer_and_nothing_polled_are_no_pass() -> None:
    """A source that never answered is inconclusive without a silence; no source at all is not applicable."""
    never = Ledger("dut", "snmp", 10.0, N, 0, {"timeout": N}, None)
    assert judge(case(ledgers=(never,))).why is InconclusiveReason.TOO_FEW
    assert judge(case()).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("bad", [{"seconds": 0.0}, {"pinned": 1.2}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="hang"):
        Hang(**bad)


@pytest.mark.parametrize("seed", range(40))
def test_odd_readings_and_accounts_raise_nothing(seed: int) -> None:
    """Absurd readings, silences and loads give complete findings."""
    rng = np.random.default_rng(seed)
    odd = [0.0, 1.0, 1e308, -1e308, float("inf"), float("nan"), 5.0]

    def some(metric: str) -> Series:
        return readings(metric, rng.choice(odd, int(rng.integers(0, 80))), 1.0)

    cuts = np.sort(rng.integers(0, 90 * S, 8)).tolist()
    lost: tuple[dict[str, int], ...] = ({}, {"missed": 3}, {"timeout": 2}, {"gap": 1, "failed": 1})
    silences = tuple(Silence(Window(cuts[i], cuts[i + 1]), lost[rng.integers(0, 4)]) for i in range(0, 8, 2))
    flow = tuple(some(m) for m in ("load.tx.packets", "load.rx.packets", "load.offered.rate", "load.requests"))
    account = Ledger("dut", "snmp", 1.0, 90, int(rng.integers(0, 90)), {}, None, silences=silences)
    events = (Event("reboot", "dut", "", 5 * S, None), Event("upgrade", "dut", "", 50 * S, 2, expect={"reboot": 1}))
    case = Case(
        "dut",
        "",
        Window(0, 90 * S),
        tuple(some(m) for m in Hang().metrics),
        events=events[: seed % 3],
        ledgers=(account, replace(account, source="ssh")),
        load=flow[seed % 2 :],
    )
    for finding in Hang().judge(case):
        check_complete(Hang(), case, finding)


OUTCOMES = """
silence                          | hang
no silence                       | P
hang of 5 min                    | F
pinned CPU, nothing forwarded    | F
management silent, forwarding on | PW
one protocol silent              | P
monitor late                     | P
silent for a fifth of the run    | P
reboot with its silence          | PN
"""
