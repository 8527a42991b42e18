"""The fold of findings into a verdict: missing is never a pass, and the worst decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from soakwatch.judge.verdict import fold
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import CauseKind

WINDOW = Window(0, 10**9)


def finding(outcome: Outcome, rule: str = "memory_growth", target: str = "dut") -> Finding:
    """A finding with that outcome."""
    return Finding(rule, 1, outcome, target, "m", "", WINDOW, "definition", f"{outcome.value} reason", 10)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([], Outcome.INCONCLUSIVE),
        ([Outcome.NOT_APPLICABLE], Outcome.INCONCLUSIVE),
        ([Outcome.PASS], Outcome.PASS),
        ([Outcome.PASS, Outcome.WARN], Outcome.PASS),
        ([Outcome.PASS, Outcome.INCONCLUSIVE], Outcome.INCONCLUSIVE),
        ([Outcome.INCONCLUSIVE, Outcome.FAIL], Outcome.FAIL),
    ],
)
def test_the_worst_decides(outcomes: list[Outcome], verdict: Outcome) -> None:
    """Fail before inconclusive before pass; a target of which nothing was judged is inconclusive."""
    assert fold("run", WINDOW, {"dut": "dut"}, map(finding, outcomes), (), ()).outcome is verdict


def test_a_run_without_targets_is_inconclusive() -> None:
    """Nothing judged is no pass."""
    assert fold("run", WINDOW, {}, (), (), ()).outcome is Outcome.INCONCLUSIVE


def test_an_optional_rule_does_not_block_a_pass() -> None:
    """A rule that the plan does not require may be inconclusive."""
    findings = [finding(Outcome.PASS), finding(Outcome.INCONCLUSIVE, "cpu_spike")]
    verdict = fold("run", WINDOW, {"dut": "dut"}, findings, (), (), frozenset({"cpu_spike"}))
    assert verdict.outcome is Outcome.PASS
    assert [(cause.waived, cause.headline.endswith("(not required)")) for cause in verdict.causes] == [(True, True)]
    required = fold("run", WINDOW, {"dut": "dut"}, findings, (), ())
    assert [cause.waived for cause in required.causes] == [False]


@pytest.mark.parametrize("undecided", [Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE])
def test_a_device_that_only_answered_is_not_cleared(undecided: Outcome) -> None:
    """Polls that were answered are no judgement of the device, even where what is inconclusive is not required."""
    answered = [finding(Outcome.PASS, rule) for rule in ("coverage", "gap", "hang")]
    known = frozenset({"growth"})
    verdict = fold("run", WINDOW, {"dut": "dut"}, [*answered, finding(undecided, "growth")], (), (), known)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "only its availability was judged: growth" in verdict.targets[0].reason
    assert verdict.reason.startswith("dut: only its availability was judged")
    asked_for = fold("run", WINDOW, {"dut": "dut"}, answered, (), ())
    assert asked_for.outcome is Outcome.PASS


def test_each_target_has_its_own_verdict_and_the_order_of_findings_is_fixed() -> None:
    """One bad target fails the run and not its neighbour; the input's order changes nothing."""
    findings = [finding(Outcome.PASS, target="twin"), finding(Outcome.FAIL, target="leaker")]
    roles = {"twin": "dut", "leaker": "dut"}
    verdict = fold("run", WINDOW, roles, findings, (), ())
    assert {t.target: t.outcome for t in verdict.targets} == {"twin": Outcome.PASS, "leaker": Outcome.FAIL}
    assert verdict == fold("run", WINDOW, roles, reversed(findings), (), ())
    assert verdict.exit_code == 1
    assert verdict.reason == "memory of m on leaker keeps growing"


def test_a_run_without_a_device_under_test_is_inconclusive() -> None:
    """A generator and a monitor alone cannot pass, and a target of which nothing was judged did not pass either."""
    verdict = fold("run", WINDOW, {"tg": "generator"}, [], (), ())
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.targets[0].outcome is Outcome.NOT_APPLICABLE


def test_a_run_that_ended_early_cannot_pass() -> None:
    """Five minutes of a planned day are no pass; what failed in them has failed."""
    day = 86400.0
    good = fold("run", Window(0, 300 * 10**9), {"dut": "dut"}, [finding(Outcome.PASS)], (), (), planned_s=day)
    assert good.outcome is Outcome.INCONCLUSIVE
    assert good.reason.startswith("ended early, 5 min of 24 h: dut: no rule failed")
    bad = fold("run", Window(0, 300 * 10**9), {"dut": "dut"}, [finding(Outcome.FAIL)], (), (), planned_s=day)
    assert bad.outcome is Outcome.FAIL
    whole = fold("run", Window(0, 86399 * 10**9), {"dut": "dut"}, [finding(Outcome.PASS)], (), (), planned_s=day)
    assert whole.outcome is Outcome.PASS


def test_a_short_run_of_its_full_length_has_not_ended_early() -> None:
    """The first poll is due up to a second after the begin: of five seconds that is a fifth, and nothing is missing."""
    window, phase = Window(10**9, 5 * 10**9), Phase("soak", Window(0, 5 * 10**9))
    full = fold("run", window, {"dut": "dut"}, [finding(Outcome.PASS)], (), (phase,), planned_s=5)
    assert full.outcome is Outcome.PASS
    assert "ended early" not in full.reason
    cut = fold("run", Window(10**9, 4 * 10**9), {"dut": "dut"}, [finding(Outcome.PASS)], (), (phase,), planned_s=5)
    assert cut.reason.startswith("ended early, 4 s of 5 s")


def test_causes_hold_the_failures_and_warnings_and_change_no_outcome() -> None:
    """A restart and the spike at it are one cause, which an event explains; both still fail, and the restart leads."""
    day, marks = Window(0, 86_400 * 10**9), (Mark(5000 * 10**9, None, "here"),)
    spike = replace(finding(Outcome.FAIL, "cpu_spike"), window=day, marks=marks)
    restart = replace(finding(Outcome.FAIL, "process_restart"), window=day, marks=marks, reason="httpd restarted")
    calm = replace(finding(Outcome.PASS), window=day)
    event = Event("failover", "dut", "", 4999 * 10**9, None)
    verdict = fold("run", day, {"dut": "dut"}, [calm, spike, restart], (), (), events=(event,))
    assert [(cause.kind, cause.findings) for cause in verdict.causes] == [(CauseKind.EVENT, (0, 1))]
    assert verdict.outcome is Outcome.FAIL
    assert verdict.targets[0].reason == "cpu_spike, process_restart: httpd restarted"
    alone = fold("run", day, {"dut": "dut"}, [calm, spike, restart], (), ())
    assert (alone.outcome, alone.findings, alone.causes[0].kind) == (
        verdict.outcome,
        verdict.findings,
        CauseKind.INCIDENT,
    )
    assert fold("run", day, {"dut": "dut"}, [calm], (), ()).causes == ()
