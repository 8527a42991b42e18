"""gap: the cause of each silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.gap import Gap
from soakwatch_rules.signals import readings, uptimes
from soakwatch_testing.rule_checks import check_complete

S = 10**9
SILENCE = (1000, 1100)


def ledger(source: str = "snmp", *spans: tuple[float, float], interval: float = 10.0, **lost: int) -> Ledger:
    """The account of one source that was silent between these seconds."""
    silences = tuple(Silence(Window(round(b * S), round(e * S)), lost or {"timeout": 9}) for b, e in spans)
    return Ledger("dut", source, interval, 360, 350, lost or {"timeout": 9}, None, silences=silences)


def judge(case: Case) -> Finding:
    """The finding on the first source."""
    findings = Gap().judge(case)
    assert len(findings) == len(case.ledgers)
    return findings[0]


def case(*ledgers: Ledger, series: tuple[Series, ...] = (), load: tuple[Series, ...] = ()) -> Case:
    """An hour of one device."""
    return Case("dut", "", Window(0, 3600 * S), series, ledgers=ledgers, load=load)


def cpu(before: float) -> Series:
    """Readings of the CPU up to the silence, and after it."""
    positions = np.concatenate([np.arange(0, 1001, 10), np.arange(1100, 3600, 10)])
    value = np.where((positions > 900) & (positions <= 1000), before, 0.3)
    return replace(readings("system.cpu.utilization", value, 10.0), time_ns=positions * S)


def flow(lost: float) -> tuple[Series, Series]:
    """A load of which a share is lost in the silence."""
    positions = np.arange(3600, dtype=np.float64)
    back = np.where((positions > 1000) & (positions <= 1100), 1000.0 * (1 - lost), 1000.0)
    return readings("load.tx.packets", 1000.0 * positions, 1.0), readings(
        "load.rx.packets", np.cumsum(back) - back[0], 1.0
    )


def test_a_ping_that_is_lost_is_no_answer_and_a_listener_none_either() -> None:
    """The account of a source that pings says that it could ask; only an answer makes a silence the path's."""
    positions = np.arange(0, 3600, 10)
    up = readings("reach.up", np.ones(360), 10.0, object="peer=198.18.0.1,protocol=icmp")
    down = replace(up, value=np.where((positions > 1000) & (positions < 1100), 0.0, 1.0))
    both = ledger("dut/snmp", SILENCE), ledger("dut/icmp")
    assert judge(case(*both, series=(up,))).outcome is Outcome.PASS
    assert judge(case(*both, series=(down,))).outcome is Outcome.WARN
    connect = replace(down, object="peer=198.18.0.1,protocol=tcp:443")
    assert judge(case(both[0], ledger("dut/tcp"), series=(connect,))).outcome is Outcome.WARN
    assert judge(case(ledger("dut/snmp", SILENCE), ledger("dut/syslog"))).outcome is Outcome.WARN


_SAID = {
    "monitor": " UTC: the monitor did not send its polls",
    "path": ", probably because of the path (",
    "device": ", probably because of the device (",
    "unknown": ", for an unknown cause (",
}


@pytest.mark.parametrize(
    ("result", "cause", "expected"),
    [
        (case(ledger("snmp", SILENCE, missed=8, timeout=1)), "monitor", Outcome.PASS),
        (case(ledger("snmp", SILENCE, gap=9)), "monitor", Outcome.PASS),
        (case(ledger("snmp", SILENCE), ledger("ssh")), "path", Outcome.PASS),
        (case(ledger("snmp", SILENCE), ledger("ssh", SILENCE)), "unknown", Outcome.WARN),
        (case(ledger("snmp", SILENCE), ledger("ssh"), series=(cpu(0.99),)), "device", Outcome.WARN),
        (case(ledger("snmp", SILENCE), series=(cpu(0.5),)), "unknown", Outcome.WARN),
        (case(ledger("snmp", SILENCE), load=flow(0.0)), "path", Outcome.PASS),
        (case(ledger("snmp", SILENCE), ledger("ssh"), load=flow(0.2)), "device", Outcome.WARN),
        (case(ledger("snmp", SILENCE), ledger("inventory", interval=60.0)), "unknown", Outcome.WARN),
        (case(ledger("snmp", SILENCE, overrun=5, timeout=4)), "unknown", Outcome.WARN),
    ],
)
def test_causes(result: Case, cause: str, expected: Outcome) -> None:
    """Each cause by its evidence, and whether it warns; it never fails."""
    finding = judge(result)
    assert f"{cause}_s" in finding.numbers, finding.reason
    assert finding.outcome is expected
    assert _SAID[cause] in finding.reason
    assert finding.numbers["unseen_s"] == pytest.approx(100)
    assert finding.measured == pytest.approx(100)


def test_a_reboot_and_an_announced_event_explain_it() -> None:
    """An uptime that began again in the silence warns as a reboot; an announced event is a reason to pass."""
    result = case(ledger("snmp", SILENCE), ledger("ssh"))
    booted = uptimes(10.0, 360, reboot_at=105)
    keep = (booted.time_ns <= 1000 * S) | (booted.time_ns >= 1100 * S)
    uptime = replace(booted, time_ns=booted.time_ns[keep], value=booted.value[keep])
    assert "reboot_s" in judge(replace(result, series=(uptime,))).numbers
    event = Event("reboot", "dut", "", 1050 * S, None)
    assert judge(replace(result, events=(event,))).outcome is Outcome.WARN
    planned = Event("upgrade", "dut", "", 990 * S, None, expect={"reboot": 1}, deadline_ns=1200 * S)
    assert "planned_s" in judge(replace(result, events=(planned, event))).numbers


def test_short_silences_are_none() -> None:
    """Under three intervals nothing is explained; the pass says how short a silence would have been seen."""
    finding = judge(case(ledger("snmp", (1000, 1029))))
    assert finding.outcome is Outcome.PASS
    assert (finding.smallest_detectable, finding.detectable_unit) == (30.0, "s")


def test_several_silences_are_reported_with_the_worst_first() -> None:
    """Of many silences the first that are reported are those that the device may be to blame for."""
    spans = tuple((100.0 * i, 100.0 * i + 40) for i in range(1, 10))
    result = case(ledger("snmp", *spans), ledger("ssh", *spans[:1]))
    finding = judge(result)
    assert finding.outcome is Outcome.WARN
    assert finding.numbers["silences"] == 9
    assert finding.numbers["path_s"] == pytest.approx(320)
    assert finding.reason.index("unknown") < finding.reason.index("path")
    assert "and 6 more" in finding.reason
    assert len(finding.marks) == 9
    assert [m.begin_ns for m in finding.marks] == sorted(m.begin_ns for m in finding.marks)


def test_a_source_that_never_answered_is_no_pass() -> None:
    """Inconclusive where it is required, a warning where it is not; nothing due is not applicable."""
    never = Ledger("dut", "snmp", 10.0, 360, 0, {"timeout": 360}, None, ("no answer within 2 s",))
    assert judge(case(never)).why is InconclusiveReason.GAP
    assert judge(case(replace(never, required=False))).outcome is Outcome.WARN
    assert judge(case(replace(never, due=0))).outcome is Outcome.NOT_APPLICABLE
    assert Gap().judge(case())[0].outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("bad", [{"intervals": 0.5}, {"busy": 0.0}, {"hit": 2.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="gap"):
        Gap(**bad)


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
        tuple(some(m) for m in Gap().metrics),
        events=events[: seed % 3],
        ledgers=(account, replace(account, source="ssh")),
        load=flow[seed % 2 :],
    )
    for finding in Gap().judge(case):
        check_complete(Gap(), case, finding)


OUTCOMES = """
silence                          | gap
no silence                       | P
hang of 5 min                    | W
pinned CPU, nothing forwarded    | P
management silent, forwarding on | P
one protocol silent              | PW
monitor late                     | P
silent for a fifth of the run    | PW
reboot with its silence          | PW
"""
