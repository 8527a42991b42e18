"""What each rule said of each target, in several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.core.formatting import natural
from soakwatch_model.finding import Finding, Outcome

_OBJECTIONS = {Outcome.FAIL, Outcome.WARN}
MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class Cell:
    """What a rule said of a target in one run: its worst outcome, how many findings had it, of how many, and why.

    ``outcome`` is None where the rule was not asked.
    """

    outcome: Outcome | None
    count: int = 0
    findings: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One line of the matrix: a rule and a target, and what came of it in each run."""

    rule: str
    target: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether the outcomes are not all the same; where a rule was not asked only what speaks against another run
        differs from that."""
        outcomes = {cell.outcome for cell in self.cells}
        return len(outcomes - {None}) > 1 or (None in outcomes and bool(outcomes & _OBJECTIONS))


def renamed(findings: Sequence[Finding], names: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings with each target called as ``names`` says."""
    return tuple(replace(each, target=names.get(each.target, each.target)) for each in findings)


def matrix(runs: Sequence[Sequence[Finding]]) -> tuple[OutcomeRow, ...]:
    """What each rule said of each target in each run; what differs first, then the worst first."""
    by_run: list[dict[tuple[str, str], list[Finding]]] = []
    for findings in runs:
        by_rule: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            by_rule.setdefault((finding.rule, finding.target), []).append(finding)
        by_run.append(by_rule)
    keys = {key for by_rule in by_run for key in by_rule}
    order = [*Outcome, None]
    rows = [
        OutcomeRow(rule, target, tuple(_cell(by_rule.get((rule, target), ())) for by_rule in by_run))
        for rule, target in keys
    ]

    def rank(row: OutcomeRow) -> tuple[object, ...]:
        worst = min(order.index(cell.outcome) for cell in row.cells)
        return (worst > 2, not row.differs, worst, row.rule, natural(row.target))

    return tuple(sorted(rows, key=rank))


def _cell(findings: Sequence[Finding]) -> Cell:
    if not findings:
        return Cell(None)
    worst = min(findings, key=lambda finding: list(Outcome).index(finding.outcome))
    count = sum(finding.outcome is worst.outcome for finding in findings)
    return Cell(worst.outcome, count, len(findings), worst.sentence[:MAX_REASON])
