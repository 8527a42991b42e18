"""This run beside earlier ones: what the rule run_difference measured, the figures of the load first."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch.core.formatting import natural, quantity, subject
from soakwatch.judge.verdict import Verdict
from soakwatch.report.page import Page
from soakwatch.runs.compare_figures import figures
from soakwatch_agent.metric import BY_NAME, COUNTER
from soakwatch_rules.detectors.run_difference import RunDifference
from soakwatch_rules.rule import Finding, Outcome

_RULE = RunDifference.name


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure: of what, in this run, in the earlier ones (their mean), the change, and what was said of it."""

    about: str
    now: str
    before: str
    change: str
    outcome: Outcome | None = None
    told: str = ""


def compared(verdict: Verdict) -> tuple[Beside, ...]:
    """What was compared with earlier runs, in the order in which people ask for it: throughput, loss, latency, the
    device. What could not be compared has no row here: it stands with what could not be judged."""
    found = [f for f in verdict.findings if f.rule == _RULE and "new" in f.numbers]
    return tuple(_beside(finding) for finding in sorted(found, key=_order))


def figures_of(page: Page) -> tuple[Beside, ...]:
    """The figures of this run and of the one that it is held against; empty where there is none."""
    if page.earlier is None:
        return ()
    return tuple(
        Beside(f"{line.head}, {line.of}", line.cells[0], line.cells[1], "")
        for line in figures([page.source, page.earlier], [[], []])
    )


def _order(finding: Finding) -> tuple[object, ...]:
    return RunDifference.metrics.index(finding.metric), natural(finding.target), natural(finding.object)


def _beside(finding: Finding) -> Beside:
    entry, numbers = BY_NAME[finding.metric], finding.numbers
    unit = f"{entry.unit}/s" if entry.kind == COUNTER else entry.unit
    runs = int(numbers["runs"])
    p = numbers.get("p")
    return Beside(
        f"{finding.target} {subject(finding.metric, finding.object)}",
        quantity(numbers["new"], unit),
        f"{quantity(numbers['old'], unit)} ({runs} run{'' if runs == 1 else 's'})",
        f"{100 * numbers['change']:+.1f} %",
        finding.outcome,
        "" if p is None else f"p = {p:.2g}",
    )
