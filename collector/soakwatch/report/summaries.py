"""Causes, passes and withdrawn warnings in words that all formats of the report share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from soakwatch.core.formatting import extent, quantity, subject, utc
from soakwatch.judge.verdict import Verdict
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_rules.causes import Cause, CauseKind, lags
from soakwatch_rules.wording.quantities import counted

_KINDS = {
    CauseKind.INCIDENT: "one incident",
    CauseKind.EVENT: "after an event",
    CauseKind.LOAD: "with a change of load",
    CauseKind.GROWTH: "growth",
    CauseKind.GENERATOR: "generator at fault",
    CauseKind.FINDING: "one finding",
}
"""Warnings of the live judge that a later evaluation did not confirm, each with the time (UTC ns) of that one."""


@dataclass(frozen=True, slots=True)
class PassedChecks:
    """How many checks of a rule passed, and the smallest effects that it could have seen."""

    rule: str
    number: int
    detectable: str

    @property
    def words(self) -> str:
        """One line."""
        seen = f"; smallest detectable {self.detectable}" if self.detectable else ""
        return f"{self.rule}: {counted(self.number, 'check')} passed{seen}"


def passed(findings: Iterable[Finding]) -> tuple[PassedChecks, ...]:
    """The passes by rule."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.outcome is Outcome.PASS:
            by_rule.setdefault(finding.rule, []).append(finding)
    return tuple(PassedChecks(rule, len(own), _detectable(own)) for rule, own in sorted(by_rule.items()))


def _detectable(findings: Iterable[Finding]) -> str:
    by_unit: dict[str, list[float]] = {}
    for f in findings:
        if f.smallest_detectable is not None:
            by_unit.setdefault(f.detectable_unit, []).append(f.smallest_detectable)
    return ", ".join(extent(min(values), max(values), unit) for unit, values in sorted(by_unit.items()))


def has_own_frame(verdict: Verdict, cause: Cause) -> bool:
    """Whether a cause has more to show than its one finding does."""
    return len(cause.findings) > 1 or len(cause.timeline) > len(verdict.findings[cause.leading].marks)


def deciding(verdict: Verdict, cause: Cause) -> Finding:
    """The finding that makes a cause what it is: the first with its outcome, which need not be the leading one."""
    own = members(verdict, cause)
    return next((finding for finding in own if finding.outcome is cause.outcome), own[0])


def members(verdict: Verdict, cause: Cause) -> tuple[Finding, ...]:
    """The findings of a cause, the leading one first."""
    return tuple(verdict.findings[index] for index in cause.findings)


def undecided(cause: Cause) -> bool:
    """Whether a cause is that something could not be judged, and not that something happened."""
    if cause.outcome is not Outcome.INCONCLUSIVE:
        return False
    return cause.kind is CauseKind.UNSETTLED or cause.waived


def kind_words(cause: Cause) -> str:
    """What kind of cause it is, and how many findings have it."""
    if cause.kind is CauseKind.UNSETTLED:
        return f"{counted(len(cause.findings), 'check')} undecided for one reason"
    number = len(cause.findings)
    return f"{_KINDS[cause.kind]}, {number} related findings" if number > 1 else _KINDS[cause.kind]


def confidence_text(confidence: float) -> str:
    """How sure it is that findings belong together, as a percentage that is never 100 %.

    >>> confidence_text(0.99999), confidence_text(0.873)
    ('over 99 %', '87 %')
    """
    return "over 99 %" if confidence > 0.99 else f"{100 * confidence:.0f} %"


def chain(cause: Cause, most: int) -> tuple[tuple[str, Mark], ...]:
    """The first few moments of a cause: the time of the first, and how much later the others came."""
    moments = lags(cause)[:most]
    return tuple((utc(mark.begin_ns) if n == 0 else lag, mark) for n, (lag, mark) in enumerate(moments))


def about(finding: Finding) -> str:
    """Rule and subject of a finding in one text."""
    return " ".join(part for part in (finding.rule, subject(finding.metric, finding.object)) if part)


def outcome_words(finding: Finding) -> str:
    """The outcome, and in a word why it is undecided."""
    return finding.outcome.value + (f" ({finding.why.value})" if finding.why is not None else "")


def figures(finding: Finding) -> list[str]:
    """Measured value, limit, samples and the smallest effect that could have been seen."""
    texts = []
    if finding.measured is not None:
        texts.append(f"measured {quantity(finding.measured, finding.unit)}")
    if finding.limit is not None:
        texts.append(f"limit {quantity(finding.limit, finding.unit)}")
    expected = "" if finding.expected is None else f" of {finding.expected:,}"
    texts.append(f"{finding.samples:,}{expected} samples")
    if finding.smallest_detectable is not None:
        texts.append(f"smallest detectable {quantity(finding.smallest_detectable, finding.detectable_unit)}")
    return texts


def withdrawn_text(time_ns: int, finding: Finding) -> str:
    """A warning that was reported while the run went on and did not last."""
    when = f"{finding.outcome.value} withdrawn at {utc(time_ns)} UTC"
    return f"{finding.target} {about(finding)}: {when}: {finding.sentence}"
