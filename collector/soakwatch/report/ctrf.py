"""CTRF, the Common Test Report Format (https://ctrf.io): the verdict for dashboards and reporters that read it."""

from __future__ import annotations

import uuid
from collections import Counter

from soakwatch.judge.verdict import EXIT_CODES, Verdict
from soakwatch.report.check_list import CheckList, CheckState, CheckSuite, ReportedCheck, check_list
from soakwatch.report.json import json_text
from soakwatch.runs.setup_changes import Changed
from soakwatch_model.finding import Outcome
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window

SPEC_VERSION = "0.0.0"
"""That of the schema that is published (ctrf-schema-0.0.json)."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://ctrf.io/soakwatch")
_STATUSES = {
    CheckState.FAILED: "failed",
    CheckState.INCONCLUSIVE: "failed",
    CheckState.SKIPPED: "skipped",
    CheckState.WARNED: "passed",
    CheckState.PASSED: "passed",
}
_ALL = ("passed", "failed", "skipped", "pending", "other")


def render_ctrf(verdict: Verdict, difference: Changed | None = None) -> str:
    """CTRF: one test a rule and target (suite = target, name = rule)."""
    return ctrf_of(check_list(verdict, difference))


def ctrf_of(checks: CheckList) -> str:
    """The same of a list of checks.

    A doubt that makes the run inconclusive has the status ``failed`` and the ``rawStatus`` "inconclusive". It is not
    ``other``: reporters decide by the number of failed tests alone, and would show such a run as green. Equal lists
    give equal bytes: the id of a test depends on names only, so that reporters know it in the next run, and no time
    of writing is in it.
    """
    tests = [_test(check, suite, checks.name) for suite in checks.suites for check in suite.checks]
    counts = Counter(_STATUSES[check.state] for check in checks.checks)
    identity = f"{checks.name} {checks.window.begin_ns} {checks.window.end_ns}"
    return json_text(
        {
            "reportFormat": "CTRF",
            "specVersion": SPEC_VERSION,
            "reportId": str(uuid.uuid5(_NAMESPACE, identity)),
            "generatedBy": "soakwatch",
            "results": {
                "tool": {"name": "soakwatch"},
                "summary": {
                    "tests": len(tests),
                    **{status: counts[status] for status in _ALL},
                    "suites": len(checks.suites),
                    **_times(checks.window),
                    "extra": {"inconclusive": sum(c.state is CheckState.INCONCLUSIVE for c in checks.checks)},
                },
                "tests": list[Tree](tests),
                "environment": {"reportName": checks.name, "healthy": checks.outcome is Outcome.PASS},
                "extra": {
                    "verdict": checks.outcome.value,
                    "exitCode": EXIT_CODES[checks.outcome],
                    "reason": checks.reason,
                    "facts": dict[str, Tree](checks.facts),
                },
            },
        }
    )


def _test(check: ReportedCheck, suite: CheckSuite, name: str) -> dict[str, Tree]:
    told: dict[str, Tree] = {
        "id": str(uuid.uuid5(_NAMESPACE, f"{name}/{check.full_name}")),
        "name": check.name,
        "status": _STATUSES[check.state],
        "rawStatus": check.outcome.value,
        **_times(check.window or suite.window),
        "suite": [suite.name],
        "type": "soak",
        "message": check.message,
    }
    if check.state.holds_back:
        told["trace"] = check.body
    if check.state in {CheckState.INCONCLUSIVE, CheckState.WARNED}:
        told["tags"] = [check.state.value]
    if check.warnings:
        told["stdout"] = list[Tree](check.warnings.splitlines())
    return told


def _times(window: Window) -> dict[str, Tree]:
    """Begin, end and length in ms."""
    begin, end = window.begin_ns // 10**6, window.end_ns // 10**6
    return {"start": begin, "stop": end, "duration": end - begin}
