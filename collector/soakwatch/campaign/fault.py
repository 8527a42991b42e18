"""Whether a run was inconclusive for the monitor's or the generator's fault, so that it can be made again."""

from __future__ import annotations

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.roles import GENERATOR, MONITOR


def fault_in(view: RecordView) -> str:
    """The first reason for which an inconclusive run that has ended is not the device's fault; "" if there is none.

    Those are inconclusive findings that blame the generator, and those about a target or a source whose role is
    generator or monitor; findings that keep no run from passing do not count. The rules are asked again, for a record
    does not hold which findings those are. Raises RecordError, PlanError.
    """
    verdict = judge_record(view, ended=True)
    roles = {**view.roles(), MONITOR: MONITOR}
    others = {name for name, role in roles.items() if role in {GENERATOR, MONITOR}}
    others |= {source.target for source in view.sources() if source.role in {GENERATOR, MONITOR}}
    for index, finding in enumerate(verdict.findings):
        if finding.outcome is not Outcome.INCONCLUSIVE or index in verdict.waived:
            continue
        if finding.why is InconclusiveReason.GENERATOR or finding.target in others:
            return f"{finding.rule} on {finding.target}: {finding.sentence}"
    return ""
