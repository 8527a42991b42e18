"""management_isolation: a management path that is cut, and a load that never rests."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rules.detectors.test_management_isolation import (
    PEER,
    PHASES,
    N,
    S,
    cpu,
    judge,
    ledger,
    lossy,
    of_polls,
    polled,
    probed,
)

from soakwatch_model.case import Ledger
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.management.gap_cause import UP
from soakwatch_rules.signals import readings, uptimes

CONSTANT = (Phase("soak", Window(0, N * S)),)


def constant(peer_down: tuple[int, int], forwarding: bool = True) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """A constant load all along, a peer that is probed each second and does not answer for a time."""
    positions = np.arange(N, dtype=np.float64)
    away = (positions >= peer_down[0]) & (positions < peer_down[1])
    sent = readings("load.tx.packets", 1000 * positions, 1.0)
    back = 1000 * positions - (
        0 if forwarding else 1000 * np.clip(positions - peer_down[0], 0, peer_down[1] - peer_down[0])
    )
    probe = (
        probed(np.where(away, 0.0, 1.0), UP),
        probed(positions + 1, "reach.sent"),
        probed(np.cumsum(away), "reach.lost"),
        probed(0.005),
    )
    return probe, (sent, readings("load.rx.packets", back, 1.0))


def of_peer(findings: list[Finding]) -> Finding:
    """The one finding on the peer."""
    (finding,) = [f for f in findings if f.object == PEER]
    return finding


def test_a_cut_path_is_never_the_devices() -> None:
    """All management and the peer are silent while a constant load goes through: the path, for each finding."""
    gap = (1000, 1400)
    probe, load = constant((1002, 1399))
    ledgers = (ledger("dut/snmp", gap), ledger("dut/ssh", (995, 1402)), ledger("dut/icmp", interval=1.0))
    findings = judge(*probe, cpu(0.4, gap), ledgers=ledgers, load=load, phases=CONSTANT)
    assert {f.outcome for f in findings} == {Outcome.INCONCLUSIVE}
    finding = of_peer(findings)
    assert finding.why is InconclusiveReason.GAP
    assert "397 more lost in 6 min 38 s in which no management answered but traffic was forwarded" in finding.reason
    assert "under low load" not in finding.reason.replace("not known under low load", "")
    assert finding.numbers["lost_share"] == 0.0
    assert "lost_share_low" not in finding.numbers
    polls = [f for f in findings if f.object == "dut/snmp"]
    assert polls[0].why is InconclusiveReason.NO_REFERENCE
    assert "caused by the path: no management answered, but traffic was forwarded" in polls[0].reason


def test_a_cut_path_under_stress_does_not_hide_what_is_lost_beside_it() -> None:
    """Of the rest of the stress phase the peer loses a third: that fails, cut or not."""
    gap = (1000, 1100)
    probe, load = constant(gap)
    positions = np.arange(N)
    away = ((positions >= gap[0]) & (positions < gap[1])) | (
        (positions >= 1200) & (positions < 1500) & (positions % 3 == 0)
    )
    series = (
        probed(np.where(away, 0.0, 1.0), UP),
        probed(positions + 1.0, "reach.sent"),
        probed(np.cumsum(away), "reach.lost"),
    )
    ledgers = (ledger("dut/snmp", gap), ledger("dut/icmp", interval=1.0))
    finding = of_peer(judge(*series, cpu(0.4, gap), ledgers=ledgers, load=load))
    assert finding.outcome is Outcome.FAIL
    assert finding.measured == pytest.approx(0.2, abs=0.01)
    alone = of_peer(judge(*probe, cpu(0.4, gap), ledgers=ledgers, load=load))
    assert alone.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("how", ["starved", "hung", "rebooted", "answered"])
def test_silence_that_is_not_the_paths_still_counts(how: str) -> None:
    """A CPU at its end, all load lost, a reboot, a source that answered: the peer's losses under stress fail."""
    gap = (1000, 1300)
    probe, load = constant(gap, forwarding=how != "hung")
    ledgers: tuple[Ledger, ...] = (ledger("dut/snmp", gap), ledger("dut/icmp", interval=1.0))
    more: tuple[Series, ...] = (cpu(1.0 if how == "starved" else 0.4, gap),)
    if how == "rebooted":
        more = (*more, uptimes(10.0, 180, reboot_at=115))
    if how == "answered":
        ledgers = (*ledgers, ledger("dut/ssh"))
    assert of_peer(judge(*probe, *more, ledgers=ledgers, load=load)).outcome is Outcome.FAIL


def test_without_low_load_only_the_absolute_limit_fails() -> None:
    """A peer that loses 20 % under a constant load may always do so; one that takes 2 s is too slow anyway."""
    probe, load = constant((0, 0))
    away = np.arange(N) % 5 == 0
    series = (probed(np.arange(1.0, N + 1), "reach.sent"), probed(np.cumsum(away), "reach.lost"))
    finding = of_peer(judge(*series, load=load, phases=CONSTANT))
    assert finding.why is InconclusiveReason.NO_REFERENCE
    assert "not known under low load" in finding.reason
    slow = of_peer(judge(*series, probed(2.0), load=load, phases=CONSTANT))
    assert slow.outcome is Outcome.FAIL
    assert of_peer(judge(*probe, load=load, phases=CONSTANT)).outcome is Outcome.PASS
    lossy_polls = of_polls(judge(polled(0.05, lost=4), ledgers=(lossy(4),), phases=(PHASES[1],)))
    assert lossy_polls.why is InconclusiveReason.NO_REFERENCE
