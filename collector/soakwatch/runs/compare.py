"""Runs side by side: what each rule said of each target, and what of the set-up is not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.flatten import flatten, parse_json
from soakwatch.core.formatting import natural
from soakwatch.core.yaml import parse
from soakwatch.record import RecordView
from soakwatch_rules.rule import Finding, Outcome

ABSENT = "–"
_OBJECTIONS = {Outcome.FAIL, Outcome.WARN}
_LONGEST = 300


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
        said = {cell.outcome for cell in self.cells}
        return len(said - {None}) > 1 or (None in said and bool(said & _OBJECTIONS))


def matrix(runs: Sequence[Sequence[Finding]]) -> tuple[OutcomeRow, ...]:
    """What each rule said of each target in each run; what differs first, then the worst first."""
    found: list[dict[tuple[str, str], list[Finding]]] = []
    for findings in runs:
        by_rule: dict[tuple[str, str], list[Finding]] = {}
        for finding in findings:
            by_rule.setdefault((finding.rule, finding.target), []).append(finding)
        found.append(by_rule)
    keys = {key for by_rule in found for key in by_rule}
    order = [*Outcome, None]
    rows = [
        OutcomeRow(rule, target, tuple(_cell(by_rule.get((rule, target), ())) for by_rule in found))
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
    return Cell(worst.outcome, count, len(findings), worst.reason[:_LONGEST])


def setup_of(view: RecordView) -> Mapping[str, str]:
    """Everything of a run's set-up that can differ, by its way: machines, versions, the plan, the command."""
    metas = view.metas()
    found: dict[str, str] = {}
    for what in ("fingerprint", "versions"):
        found.update(flatten(parse_json(metas.get(what)), what.replace("fingerprint", "machine")))
    try:
        found.update(flatten(parse(metas.get("plan") or "{}", "plan").data, "plan"))
    except SoakwatchError:
        found["plan"] = "cannot be read"
    for stored in view.events():
        event = stored.event
        if event.kind == IDENTITY and "changed" not in event.detail:
            way = f"device {event.object or event.target}"
            found.update({f"{way} {key}": text for key, text in event.detail.items() if key != "notes"})
    return found


def differences(setups: Sequence[Mapping[str, str]]) -> tuple[Line, ...]:
    """The lines of the set-ups that are not the same in all runs; those that all runs have come first."""
    keys = sorted({key for one in setups for key in one}, key=natural)
    lines = []
    for key in keys:
        cells = tuple(one.get(key, ABSENT) for one in setups)
        if len(set(cells)) > 1:
            what, _, way = key.partition(" ")
            shown = tuple([cell[:_LONGEST] for cell in cells])  # cut only where it is shown: the end may differ
            lines.append(Line(way or what, what, shown, differs=ABSENT not in cells))
    return tuple(sorted(lines, key=lambda line: not line.differs))
