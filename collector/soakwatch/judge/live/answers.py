"""What the live judge of a run answers: one line of JSON for each subject whose findings changed, and the growth rates.

``{"of": name, "findings": [...]}`` for a subject, ``{"forgot": sentence}`` once something was forgotten, ``{"decided":
event}`` once every required rule has its final answer, where the plan asks for it, ``{"rates": [...]}`` at the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from soakwatch.judge.live.deciding import deciding_of
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.judge.rates import rates_json
from soakwatch.judge.record_verdict import recorded_rules
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import RecordView, finding_to_json


def evaluator_of(folder: Path, cpu_s: Callable[[], float] = time.process_time) -> LiveEvaluator:
    """The live judgement of a run: its rules, and its findings so far. Raises RecordError and PlanError."""
    with RecordView.open(folder) as view:
        metas, rules, before = view.metas(), planned_rules(recorded_rules(view)), view.findings(live=True)
        deciding = deciding_of(view, folder)
    evaluator = LiveEvaluator(RunFollower(folder, rules, metas), rules, cpu_s, deciding)
    evaluator.remember(before)
    return evaluator


def answer(evaluator: LiveEvaluator) -> list[str]:
    """Look, and say what is new. Raises RecordError."""
    lines = [
        json.dumps({"of": name, "findings": [finding_to_json(finding) for finding in findings]})
        for name, findings in evaluator.evaluate().items()
    ]
    if evaluator.forgot:
        lines.append(json.dumps({"forgot": evaluator.forgot}))
    decision = evaluator.decision()
    if decision is not None:
        event = decision.event
        lines.append(json.dumps({"decided": {"at_ns": event.begin_ns, "detail": dict(event.detail)}}))
    return [*lines, json.dumps({"rates": rates_json(evaluator.rates)})]
