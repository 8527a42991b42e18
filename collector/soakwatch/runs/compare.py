"""Runs side by side: what each rule said of each target, and what of the set-up is not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.fingerprints import comparable_trees
from soakwatch.core.flatten import flatten, parse_json
from soakwatch.core.formatting import natural
from soakwatch.core.yaml import parse
from soakwatch.record import RecordView
from soakwatch_rules.rule import Finding, Outcome

ABSENT = "–"
_OBJECTIONS = {Outcome.FAIL, Outcome.WARN}
_MAX_REASON = 300


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
class Line:
    """One line of a table of runs: its head, and a cell a run. ``differs`` where runs that have it do not agree."""

    head: str
    of: str
    cells: tuple[str, ...]
    differs: bool


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
    return Cell(worst.outcome, count, len(findings), worst.reason[:_MAX_REASON])


def setup_of(view: RecordView) -> Mapping[str, str]:
    """Everything of a run's set-up that can differ, by its way: labels, machines, versions, the plan, the command;
    and whether its record was changed."""
    metas = view.metas()
    setup = {f"label {name}": text for name, text in view.labels.items()}
    setup["record"] = view.check().words or "as it was written"
    for what in ("fingerprint", "versions"):
        setup.update(flatten(comparable_trees(parse_json(metas.get(what))), what.replace("fingerprint", "machine")))
    try:
        plan = flatten(parse(metas.get("plan") or "{}", "plan").data, "plan")
        setup.update({key: text for key, text in plan.items() if not key.startswith("plan labels ")})
    except SoakwatchError:
        setup["plan"] = "cannot be read"
    for stored in view.events():
        event = stored.event
        if event.kind == IDENTITY and "changed" not in event.detail:
            device = f"device {event.object or event.target}"
            setup.update({f"{device} {key}": text for key, text in event.detail.items() if key != "notes"})
    return setup


def differences(setups: Sequence[Mapping[str, str]]) -> tuple[Line, ...]:
    """The lines of the set-ups that are not the same in all runs; those that all runs have come first."""
    keys = sorted({key for setup in setups for key in setup}, key=natural)
    lines = []
    for key in keys:
        cells = tuple(setup.get(key, ABSENT) for setup in setups)
        if len(set(cells)) > 1:
            what, _, path = key.partition(" ")
            shown = tuple([cell[:_MAX_REASON] for cell in cells])  # cut only where it is shown: the end may differ
            lines.append(Line(path or what, what, shown, differs=ABSENT not in cells))
    return tuple(sorted(lines, key=lambda line: not line.differs))
