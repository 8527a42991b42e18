"""coverage: enough polls, and no long gap."""

from __future__ import annotations

import pytest

from soakwatch_model.case import Case, Ledger
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.detectors.coverage import Coverage

S = 10**9


def judge(due: int, got: int, gap_s: float | None = None, *, interval: float = 1.0, seconds: float = 1000) -> Finding:
    """The finding on one source; its longest gap begins at 100 s."""
    gap = None if gap_s is None else Window(100 * S, round((100 + gap_s) * S))
    ledger = Ledger("dut", "snmp", interval, due, got, {"timeout": due - got}, gap, ("no answer within 2 s",))
    return Coverage().judge(Case("dut", "", Window(0, round(seconds * S)), ledgers=(ledger,)))[0]


@pytest.mark.parametrize(
    ("due", "got", "gap", "expected"),
    [
        (1000, 1000, 1.0, Outcome.PASS),
        (1000, 950, 2.0, Outcome.PASS),
        (1000, 949, 2.0, Outcome.INCONCLUSIVE),
        (1000, 960, 51.0, Outcome.PASS),
        (1000, 960, 51.1, Outcome.INCONCLUSIVE),
        (1000, 0, None, Outcome.INCONCLUSIVE),
        (0, 0, None, Outcome.INCONCLUSIVE),
    ],
)
def test_floor_and_gap(due: int, got: int, gap: float | None, expected: Outcome) -> None:
    """95 % and a gap of 5 % beyond one interval are enough; less, more, and nothing due are not; it never fails."""
    finding = judge(due, got, gap)
    assert finding.outcome is expected
    assert (finding.object, finding.metric) == ("snmp", "")


def test_one_missing_poll_is_no_gap_in_a_short_window() -> None:
    """With 21 polls of 10 s one missing lasts over 5 % of the window and still passes; two in a row do not."""
    assert judge(21, 20, 20.0, interval=10.0, seconds=210).outcome is Outcome.PASS
    assert judge(42, 40, 30.0, interval=10.0, seconds=210).outcome is Outcome.INCONCLUSIVE


def test_the_reason_tells_the_account() -> None:
    """Due, got, lost by outcome, the gap with its time and the commonest error are in the sentence."""
    finding = judge(1000, 900, 80.0)
    for part in ("900 of 1,000", "(90 %); 100 timed out", "1 min 20 s", "00:01:40", "no answer within 2 s"):
        assert part in finding.reason
    assert finding.marks[0].begin_ns == 100 * S
    assert finding.coverage == 0.9
    assert finding.settle


def test_no_account_is_not_applicable() -> None:
    """Imported data has no polls to count."""
    assert Coverage().judge(Case("dut", "", Window(0, S)))[0].outcome is Outcome.NOT_APPLICABLE


def test_a_source_that_is_not_required_only_warns() -> None:
    """Gaps in an optional source are reported and block nothing."""
    optional = Ledger("monitor", "monitor", 5.0, 100, 50, {"failed": 50}, None, required=False)
    assert Coverage().judge(Case("monitor", "", Window(0, 500 * S), ledgers=(optional,)))[0].outcome is Outcome.WARN


OUTCOMES = """
silence                          | coverage
no silence                       | P
hang of 5 min                    | P
pinned CPU, nothing forwarded    | P
management silent, forwarding on | P
one protocol silent              | P
monitor late                     | P
silent for a fifth of the run    | I
reboot with its silence          | P
"""
