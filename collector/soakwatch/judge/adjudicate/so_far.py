"""Ruling while the run goes on: a finding covers the run so far, and claims no more than that shows.

* "recent" rules judge the last hour. Their findings stay until the end, with all their marks.
* "minutes" rules judge trends, and a trend so far may be a warm-up: they only warn, once two evaluations in a row
  agree. A warning that no longer holds is withdrawn; the record keeps it with its time.
* "whole" rules judge everything that happened; their result is final if nothing more happens. What did happen is not
  called preliminary.
"""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import ALARMS, Context, Stand, Streak
from soakwatch.judge.adjudicate.loss_elsewhere import may_be_elsewhere
from soakwatch_model.fact import Repeated
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_rules.load.path_ledger import PORTS
from soakwatch_rules.traits import Marks, traits_of


def so_far(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """State how far each finding reaches, and withhold or soften what the end of the run may decide otherwise.

    A trend is withheld until two evaluations agree, then warns. A failure of the returned load only warns if the
    device's own ports are read, for the loss account at the end may clear the device. A failure by repetition only
    warns, since it is unknown whether it goes on.
    """
    return [_ruled(finding, stand, context) for finding, stand in zip(findings, context.stands, strict=True)]


def _ruled(finding: Finding, stand: Stand, context: Context) -> Finding:
    if stand.live == "recalled":
        return finding
    if stand.live == "minutes":
        return _of_trend(finding, stand.streak)
    reach = "in the last hour" if stand.last_hour else "so far"
    if may_be_elsewhere(finding) and context.cases.reads(finding.target, PORTS):
        said = _noted(finding, Outcome.WARN, f"{reach}; only the end of the run decides whether the device lost it")
    elif finding.outcome is Outcome.FAIL and finding.fact(Repeated) is not None:
        said = _noted(finding, Outcome.WARN, f"{reach}; only the end of the run decides whether it went on")
    else:
        said = _noted(finding, finding.outcome, "" if _has_happened(finding, stand) else reach)
    if not stand.found_before:
        return said
    text = f"{stand.found_before} found before"
    return said.ruled("so far", said.outcome, text, place=Place.BEHIND, why=said.why, settle=said.settle)


def _has_happened(finding: Finding, stand: Stand) -> bool:
    """Whether it reports moments that nothing will undo, and so is not preliminary."""
    return stand.live == "whole" and finding.outcome in ALARMS and traits_of(finding.rule).marks is not Marks.WHOLE


def _of_trend(finding: Finding, streak: Streak) -> Finding:
    if finding.outcome not in ALARMS:
        return _noted(finding, finding.outcome, "so far")
    traits = traits_of(finding.rule)
    if streak.reported:
        trend = traits.growth is not None or traits.marks is Marks.WHOLE
        why = "it may be a warm-up" if trend else "only the end of the run decides"
        return _noted(finding, Outcome.WARN, f"so far: {why}")
    short = "one evaluation is not enough to warn" if streak.times else "not sure enough to warn"
    return finding.ruled(
        "so far",
        Outcome.INCONCLUSIVE,
        f"so far: {short}",
        why=InconclusiveReason.PENDING,
        settle="another evaluation in ten minutes",
    )


def _noted(finding: Finding, outcome: Outcome, text: str) -> Finding:
    return finding.ruled("so far", outcome, text, why=finding.why, settle=finding.settle)
