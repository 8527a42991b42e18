"""Annotations of GitHub Actions: workflow commands that show what failed on the summary of a job."""

from __future__ import annotations

from soakwatch.judge.verdict import Verdict
from soakwatch.report.check_list import CheckList, CheckState, ReportedCheck, check_list

_MOST = 9
"""GitHub shows ten of a kind a step; the last one counts the rest."""
_LEVELS = {CheckState.FAILED: "error", CheckState.INCONCLUSIVE: "error", CheckState.WARNED: "warning"}


def render_annotations(verdict: Verdict) -> str:
    """An error for each check that failed or holds back the pass, then a warning for each that warned."""
    return annotations_of(check_list(verdict))


def annotations_of(checks: CheckList) -> str:
    """The same of a list of checks; a list in which nothing is wrong gives a notice with the verdict."""
    lines: list[str] = []
    for level in ("error", "warning"):
        told = [check for check in checks.checks if _LEVELS.get(check.state) == level]
        lines += [_command(level, f"{check.full_name}: {check.state.value}", _message(check)) for check in told[:_MOST]]
        if len(told) > _MOST:
            lines.append(_command(level, checks.name, f"{len(told) - _MOST} more: see the report"))
    lines = lines or [_command("notice", f"{checks.name}: {checks.outcome.value}", checks.reason)]
    return "".join(f"{line}\n" for line in lines)


def _message(check: ReportedCheck) -> str:
    return check.warnings if check.state is CheckState.WARNED else check.message


def _command(level: str, title: str, message: str) -> str:
    """One command. What a device says must end neither its title nor its line."""
    escaped = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={escaped}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
