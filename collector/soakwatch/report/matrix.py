"""Many devices at a glance: a row for each, a column for each kind of trouble, what stands out first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.formatting import natural
from soakwatch.judge.verdict import Verdict
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_rules.traits import Family, traits_of

_UNKNOWN: Mapping[str, int] = {}
LEAST = 4
"""From this many devices on they are shown as a table."""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """The worst outcome of a family of rules on one device, None if nothing was judged; ``rules`` names the rules with
    that outcome, ``count`` counts their findings."""

    outcome: Outcome | None
    count: int
    rules: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A device: its verdict, its place among the targets (from 1), and a cell for each family."""

    target: str
    place: int
    outcome: Outcome
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True, slots=True)
class DeviceMatrix:
    """The devices, the worst first, failed ones in the order of their failures. Those that passed without a warning
    come last; ``calm`` counts them."""

    families: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    calm: int


def matrix_of(verdict: Verdict) -> DeviceMatrix | None:
    """The table of a run's devices; None where they are few."""
    places = enumerate(verdict.targets, 1)
    devices = [(place, target.target, target.outcome) for place, target in places if target.role == DUT]
    counted = [finding for index, finding in enumerate(verdict.findings) if index not in verdict.waived]
    failed = [target for problem in verdict.problems for target in problem.targets]
    return _matrix(devices, counted, {name: place for place, name in reversed([*enumerate(failed)])})


def live_matrix(devices: Sequence[str], findings: Sequence[Finding]) -> DeviceMatrix | None:
    """The table of a running run by its findings so far. Undecided ones are left out; a device without a failure or
    warning counts as passing so far. None if the devices are few."""
    decided = [finding for finding in findings if finding.outcome is not Outcome.INCONCLUSIVE]
    order = (Outcome.FAIL, Outcome.WARN)
    worst = {
        name: min((order.index(f.outcome) for f in decided if f.target == name and f.outcome in order), default=2)
        for name in devices
    }
    outcomes = (*order, Outcome.PASS)
    return _matrix([(place, name, outcomes[worst[name]]) for place, name in enumerate(devices, 1)], decided)


def _matrix(
    devices: Sequence[tuple[int, str, Outcome]], findings: Sequence[Finding], failed: Mapping[str, int] = _UNKNOWN
) -> DeviceMatrix | None:
    """The table; ``failed`` is the order in which devices failed, where that is known."""
    if len(devices) < LEAST:
        return None
    by_target: dict[str, list[tuple[Family, Finding]]] = {}
    for finding in findings:
        if finding.outcome is not Outcome.NOT_APPLICABLE:
            by_target.setdefault(finding.target, []).append((traits_of(finding.rule).family, finding))
    there = {family for _, name, _ in devices for family, _ in by_target.get(name, ())}
    families = tuple(family for family in Family if family in there)
    rows = []
    for place, name, outcome in devices:
        own = by_target.get(name, [])
        cells = tuple(_cell([finding for family, finding in own if family is column]) for column in families)
        rows.append(MatrixRow(name, place, outcome, cells))
    rows.sort(key=lambda row: _worst_first(row, failed))
    calm = sum(not any(_stands_out(cell) for cell in row.cells) and row.outcome is Outcome.PASS for row in rows)
    return DeviceMatrix(tuple(family.value for family in families), tuple(rows), calm)


def _cell(findings: Sequence[Finding]) -> MatrixCell:
    if not findings:
        return MatrixCell(None, 0, "")
    worst = min(findings, key=lambda finding: finding.outcome.rank).outcome
    alike = [finding for finding in findings if finding.outcome is worst]
    return MatrixCell(worst, len(alike), ", ".join(sorted({finding.rule for finding in alike})))


def _stands_out(cell: MatrixCell) -> bool:
    return cell.outcome not in {None, Outcome.PASS}


def _worst_first(row: MatrixRow, failed: Mapping[str, int]) -> tuple[object, ...]:
    marked = sorted(cell.outcome.rank for cell in row.cells if cell.outcome is not None)
    place = failed.get(row.target, len(failed))
    return (
        row.outcome.rank,
        place,
        marked[:1],
        -sum(_stands_out(cell) for cell in row.cells),
        natural(row.target),
    )
