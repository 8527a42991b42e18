"""The cause of a reboot: what a planned event announced, against the reason that the device gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.detectors.reboot import Reboot
from soakwatch_rules.signals import PROCESS, readings

S = 10**9
WINDOW = Window(0, 100 * S)
INTENT = Event("upgrade", "dut", "", 30 * S, None, {}, {"reboot": 1}, 60 * S)


def boots(*changes: int) -> Series:
    """Boot ids that change before these seconds."""
    return readings("system.boot.id", np.array([1.0 + sum(t >= c for c in changes) for t in range(100)]), 1.0)


def happened(kind: str, object_name: str = "", **detail: str) -> Event:
    """What the device tells of second 40."""
    return Event(kind, "dut", object_name, 40 * S, None, detail)


def judge(series: Series, *events: Event) -> Finding:
    """The finding on the device."""
    return Reboot().judge(Case("dut", "", WINDOW, (series,), events=events))[0]


def test_a_reboot_for_another_reason_is_not_the_announced_one() -> None:
    """An upgrade expects a reload: one by a power failure fails twice, since it came and the announced one did not."""
    intent = replace(INTENT, detail={"cause": "reload|upgrade"})
    asked = judge(boots(40), intent, happened("reboot", reboot_reason="Reload requested by admin"))
    assert asked.outcome is Outcome.PASS
    assert not asked.doubts
    other = judge(boots(40), intent, happened("reboot", reboot_reason="power fail"))
    assert other.outcome is Outcome.FAIL
    assert "reason: power fail" in other.reason
    assert "announced 1 reboot with cause reload|upgrade" in other.reason
    assert "but 0 happened" in other.reason
    untold = judge(boots(40), intent)
    assert untold.outcome is Outcome.PASS
    assert any("planned cause is not known" in caveat for caveat in untold.doubts)
    twice = judge(
        boots(40, 50),
        intent,
        happened("reboot", reboot_reason="reload"),
        replace(happened("reboot", reboot_reason="kernel panic"), begin_ns=50 * S),
    )
    assert twice.outcome is Outcome.FAIL
    assert "1 reboot: before" in twice.reason
    assert "kernel panic" in twice.reason


def test_what_a_process_says_of_its_restart_is_no_cause_of_a_reboot() -> None:
    """A cause is asked of reboots only: the restarts that the reboot brings are covered whatever they say."""
    intent, starts = (
        replace(INTENT, detail={"cause": "reload"}),
        readings("process.start_time", np.where(np.arange(100) < 40, 1000.0, 1010.0), 1.0, object=PROCESS),
    )
    finding = ProcessRestart().judge(
        Case("dut", PROCESS, WINDOW, (starts,), events=(intent, happened("process.restart", PROCESS, reason="exit 1")))
    )[0]
    assert finding.outcome is Outcome.PASS
