"""What continuous integration is told of a verdict: a list of checks, one a target and rule.

JUnit, CTRF, the attestation and annotations all draw this one list, so that none says green where another says red.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from soakwatch.core.formatting import printable, quantity, subject
from soakwatch.judge.record_trust import seal_words
from soakwatch.judge.verdict import Verdict
from soakwatch.runs.compare.compared_runs import ABSENT
from soakwatch.runs.setup_changes import Changed
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.wording.quantities import counted

JUDGED = "judged"
"""The check of a target, or of a whole run, that is inconclusive by none of its rules: it says why."""
_MAX_CHANGES = 50


class CheckState(StrEnum):
    """What came of a check. ``FAILED`` and ``INCONCLUSIVE`` hold back a pass; ``SKIPPED`` is what does not apply, and a
    doubt that was not required to be settled."""

    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"
    WARNED = "warned"
    PASSED = "passed"

    @property
    def holds_back(self) -> bool:
        """Whether nothing that has such a check may look like a pass."""
        return self in {CheckState.FAILED, CheckState.INCONCLUSIVE}


STATES = {
    Outcome.FAIL: CheckState.FAILED,
    Outcome.INCONCLUSIVE: CheckState.INCONCLUSIVE,
    Outcome.WARN: CheckState.WARNED,
    Outcome.PASS: CheckState.PASSED,
    Outcome.NOT_APPLICABLE: CheckState.SKIPPED,
}


@dataclass(frozen=True, slots=True)
class ReportedCheck:
    """One check, in text that XML and terminals can hold. ``message`` is one line, ``body`` the findings that decided,
    ``warnings`` those that warned, whatever decided. ``outcome`` is that of the worst finding. ``window`` is the time
    of a check that has one of its own."""

    target: str
    name: str
    state: CheckState
    outcome: Outcome
    message: str = ""
    body: str = ""
    warnings: str = ""
    window: Window | None = None

    @property
    def full_name(self) -> str:
        """Target and name: the same in every run of a plan."""
        return f"{self.target}/{self.name}"


@dataclass(frozen=True, slots=True)
class CheckSuite:
    """The checks of one target (or of the run as a whole), over a window."""

    name: str
    window: Window
    checks: tuple[ReportedCheck, ...]


@dataclass(frozen=True, slots=True)
class CheckList:
    """All checks of a run or campaign, and its verdict. ``facts`` are labels, the seal and what differs from an earlier
    run, by name."""

    name: str
    outcome: Outcome
    reason: str
    window: Window
    suites: tuple[CheckSuite, ...]
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[ReportedCheck, ...]:
        """Those of all suites, in order."""
        return tuple(check for suite in self.suites for check in suite.checks)


def check_list(verdict: Verdict, difference: Changed | None = None) -> CheckList:
    """The checks of a run, which agree with its verdict: of a run that passes none holds back, of one that fails at
    least one failed, and of one that is inconclusive at least one is inconclusive."""
    suites: list[CheckSuite] = []
    for target in verdict.targets:
        own = [(f, index in verdict.waived) for index, f in enumerate(verdict.findings) if f.target == target.target]
        by_rule = groupby(sorted(own, key=lambda item: item[0].rule), key=lambda item: item[0].rule)
        checks = [_check(target.target, rule, list(group)) for rule, group in by_rule]
        if not own or _unexplained(target.outcome, checks):
            checks.append(_judged(target.target, target.outcome, target.reason))
        suites.append(CheckSuite(printable(target.target), verdict.window, tuple(checks)))
    if _unexplained(verdict.outcome, [check for suite in suites for check in suite.checks]):
        judged = _judged(verdict.run, verdict.outcome, verdict.reason)
        suites.append(CheckSuite(printable(verdict.run), verdict.window, (judged,)))
    return CheckList(
        printable(verdict.run),
        verdict.outcome,
        printable(verdict.reason),
        verdict.window,
        tuple(suites),
        {printable(name): printable(text) for name, text in _facts(verdict, difference)},
    )


def _unexplained(outcome: Outcome, checks: Sequence[ReportedCheck]) -> bool:
    """Whether it is inconclusive, and no check says so."""
    return outcome is Outcome.INCONCLUSIVE and not any(check.state.holds_back for check in checks)


def _judged(target: str, outcome: Outcome, reason: str) -> ReportedCheck:
    return ReportedCheck(printable(target), JUDGED, STATES[outcome], outcome, printable(reason))


def _check(target: str, rule: str, findings: Sequence[tuple[Finding, bool]]) -> ReportedCheck:
    """The check of one rule, of its findings and whether each was waived: the worst of them decides."""
    ranks = [(f.outcome.rank, waived) for f, waived in findings]
    worst = [f for (f, _), rank in zip(findings, ranks, strict=True) if rank == min(ranks)]
    outcome, waived = worst[0].outcome, min(ranks)[1]
    told = [] if outcome is Outcome.NOT_APPLICABLE else worst
    more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
    return ReportedCheck(
        printable(target),
        printable(rule),
        CheckState.SKIPPED if waived else STATES[outcome],
        outcome,
        printable(worst[0].sentence + more),
        _stories(told),
        _stories([f for f, _ in findings if f.outcome is Outcome.WARN]),
    )


def _stories(findings: Sequence[Finding]) -> str:
    return printable("\n\n".join(_story(finding) for finding in findings), lines=True)


def _story(finding: Finding) -> str:
    lines = [f"{finding.outcome.value}: {subject(finding.metric, finding.object)}", finding.sentence]
    lines.append(f"definition: {finding.definition}")
    if finding.measured is not None:
        lines.append(
            f"measured: {quantity(finding.measured, finding.unit)}; limit: {quantity(finding.limit, finding.unit)}"
        )
    lines.append(f"samples: {finding.samples:,}" + ("" if finding.expected is None else f" of {finding.expected:,}"))
    if finding.settle:
        lines.append(f"to resolve: {finding.settle}")
    return "\n".join(line for line in lines if line)


def _facts(verdict: Verdict, difference: Changed | None) -> Iterator[tuple[str, str]]:
    yield from verdict.labels.items()
    if verdict.checked is not None and (verdict.checked.seal is not None or verdict.checked.changed):
        yield "seal", seal_words(verdict.checked)
    if difference is None:
        return
    yield "compared with", difference.run
    for change in difference.changes[:_MAX_CHANGES]:
        yield f"changed {change.about}", f"{change.before or ABSENT} -> {change.now or ABSENT}"
    if len(difference.changes) > _MAX_CHANGES:
        yield "changed", f"{len(difference.changes) - _MAX_CHANGES} more"
    if difference.plan:
        yield "changed plan", counted(len(difference.plan), "line")
