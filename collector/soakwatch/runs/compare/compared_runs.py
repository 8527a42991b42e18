"""Some runs held against one of them: outcomes, figures and their changes, and what of the set-up is not the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.fingerprints import BYTES, comparable_trees, readable
from soakwatch.core.formatting import natural
from soakwatch.core.yaml import parse
from soakwatch.record import RecordView
from soakwatch.runs.compare.figure_rows import FigureRow, FigureSide, figures
from soakwatch.runs.compare.phase_slots import PhaseSlot, parts_of, slots_of
from soakwatch.runs.compare.targets import CompareOptions, TargetMap, target_map
from soakwatch.runs.figure_frame import grouped, pivot
from soakwatch.runs.summary import RunSummary, summary_in
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.tree import Tree, flatten, parse_json

MAX_RUNS = 6
MAX_REASON = 300
ABSENT = "–"
_MAX_LINES, _MAX_CHARACTERS = 200, 300
_OBJECTIONS = {Outcome.FAIL, Outcome.WARN}


@dataclass(frozen=True, slots=True)
class OutcomeCell:
    """What a rule said of a target in one run: its worst outcome, how many findings had it, of how many, and why.
    ``outcome`` is None where the rule did not judge the target."""

    outcome: Outcome | None
    count: int = 0
    findings: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One line of the matrix: a rule and a target, and what came of it in each run."""

    rule: str
    target: str
    cells: tuple[OutcomeCell, ...]

    @property
    def differs(self) -> bool:
        """Whether the outcomes differ. Where a rule did not judge in one run, only a fail or a warning in another
        counts as a difference."""
        outcomes = {cell.outcome for cell in self.cells}
        return len(outcomes - {None}) > 1 or (None in outcomes and bool(outcomes & _OBJECTIONS))


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One line of a table of runs: its head, and a cell a run. ``differs``: all runs have it, and they do not agree."""

    head: str
    of: str
    cells: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs against a reference, which is the first. ``phases`` are the names of those that changes of figures are of,
    run by run ("" for the reference). ``setup`` are the differences of what all runs have, ``partly`` what only some
    have; ``unlisted`` counts what was left out of both."""

    runs: tuple[RunSummary, ...]
    sides: tuple[FigureSide, ...]
    slots: tuple[PhaseSlot, ...]
    targets: tuple[TargetMap, ...]
    phases: tuple[str, ...]
    matrix: tuple[OutcomeRow, ...]
    figures: tuple[FigureRow, ...]
    setup: tuple[ComparedRow, ...]
    partly: tuple[ComparedRow, ...]
    unlisted: int


def compared(folders: Sequence[Path], views: Sequence[RecordView], asked: CompareOptions | None = None) -> Compared:
    """Compare runs, whose records are open, with the first of them.

    Raises RecordError for a record that cannot be read or is empty, SoakwatchError for a target that is not there.
    """
    asked = asked or CompareOptions()
    unknown = sorted(asked.targets.keys() - {folder.name for folder in folders[1:]})
    if unknown:
        raise SoakwatchError(f"targets are matched of {unknown[0]!r}, which is not compared with another run")
    roles = [view.roles() for view in views]
    targets = tuple(
        target_map(own, roles[0], asked.targets.get(folder.name)) for own, folder in zip(roles, folders, strict=True)
    )
    sides = tuple(
        FigureSide(view, view.findings(live=view.meta("verdict") is None), each)
        for view, each in zip(views, targets, strict=True)
    )
    slots = slots_of([(view.window(), view.phases()) for view in views], by_phase=asked.by_phase)
    lines = differences([setup_of(view, each.shown) for view, each in zip(views, targets, strict=True)])
    setup, partly = [line for line in lines if line.differs], [line for line in lines if not line.differs]
    return Compared(
        tuple(summary_in(view, folder, drawn=False) for folder, view in zip(folders, views, strict=True)),
        sides,
        slots,
        targets,
        ("", *(parts_of(slots, 0, number)[1] for number in range(1, len(views)))),
        matrix([renamed(side.findings, side.targets.shown) for side in sides]),
        figures(sides, slots),
        tuple(setup[:_MAX_LINES]),
        tuple(partly[:_MAX_LINES]),
        max(0, len(setup) - _MAX_LINES) + max(0, len(partly) - _MAX_LINES),
    )


def renamed(findings: Sequence[Finding], names: Mapping[str, str]) -> tuple[Finding, ...]:
    """The findings with the targets renamed as ``names`` says."""
    return tuple(replace(each, target=names.get(each.target, each.target)) for each in findings)


def matrix(runs: Sequence[Sequence[Finding]]) -> tuple[OutcomeRow, ...]:
    """What each rule said of each target in each run; what differs first, then the worst first."""
    by_run = [grouped(findings, lambda finding: (finding.rule, finding.target)) for findings in runs]
    rows = [
        OutcomeRow(rule, target, tuple(_cell(found or ()) for found in cells))
        for (rule, target), cells in pivot(by_run).items()
    ]

    def rank(row: OutcomeRow) -> tuple[object, ...]:
        worst = min(len(Outcome) if cell.outcome is None else cell.outcome.rank for cell in row.cells)
        return (worst > 2, not row.differs, worst, row.rule, natural(row.target))

    return tuple(sorted(rows, key=rank))


def _cell(findings: Sequence[Finding]) -> OutcomeCell:
    if not findings:
        return OutcomeCell(None)
    worst = min(findings, key=lambda finding: finding.outcome.rank)
    count = sum(finding.outcome is worst.outcome for finding in findings)
    return OutcomeCell(worst.outcome, count, len(findings), worst.sentence[:MAX_REASON])


def setup_of(view: RecordView, names: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Everything of a run's set-up that can differ, by its way: labels, machines, versions, the plan, the command;
    and whether its record was changed. Targets are called as ``names`` says."""
    names = names or {}
    metas = view.metas()
    setup = {f"label {name}": text for name, text in view.labels.items()}
    setup["record"] = view.check().words or "as it was written"
    for what in ("fingerprint", "versions"):
        tree = _named(comparable_trees(parse_json(metas.get(what))), names)
        setup.update(flatten(tree, what.replace("fingerprint", "machine")))
    try:
        data = parse(metas.get("plan") or "{}", "plan").data
        if isinstance(data, dict) and "targets" in data:
            data = data | {"targets": _named(data["targets"], names)}
        plan = flatten(data, "plan")
        setup.update({key: text for key, text in plan.items() if not key.startswith("plan labels ")})
    except SoakwatchError:
        setup["plan"] = "cannot be read"
    for stored in view.events():
        event = stored.event
        if event.kind == IDENTITY and "changed" not in event.detail:
            device = f"device {_named_source(event.object or event.target, names)}"
            setup.update({f"{device} {key}": text for key, text in event.detail.items() if key != "notes"})
    return setup


def _named(tree: Tree, names: Mapping[str, str]) -> Tree:
    """A tree by targets, with the targets called as in the reference."""
    return {names.get(key, key): value for key, value in tree.items()} if isinstance(tree, dict) else tree


def _named_source(label: str, names: Mapping[str, str]) -> str:
    target, slash, source = label.partition("/")
    return f"{names.get(target, target)}{slash}{source}"


def differences(setups: Sequence[Mapping[str, str]]) -> tuple[ComparedRow, ...]:
    """The lines of the set-ups that are not the same in all runs; those that all runs have come first."""
    lines = []
    for key, found in sorted(pivot(setups).items(), key=lambda item: natural(item[0])):
        cells = tuple(ABSENT if cell is None else cell for cell in found)
        if len(set(cells)) > 1:
            what, _, path = key.partition(" ")
            # Cut and rounded only where it is shown: the end may differ.
            texts = tuple(readable(key, cell) for cell in cells)
            texts = texts if len(set(texts)) == len(set(cells)) else cells
            shown = tuple(text[:_MAX_CHARACTERS] for text in texts)
            lines.append(ComparedRow((path or what).removesuffix(BYTES), what, shown, differs=ABSENT not in cells))
    return tuple(sorted(lines, key=lambda line: not line.differs))


def compared_data(data: Compared) -> Mapping[str, object]:
    """The comparison; lists of cells are in the order of ``runs``, of which the first is the reference."""
    return {
        "runs": [
            {
                "run": run.line.folder.name,
                "verdict": run.line.verdict,
                "release": run.release,
                "seconds": run.line.seconds,
                "targets": dict(targets.shown),
                "alone": list(targets.alone),
                "phases": phases,
            }
            for run, targets, phases in zip(data.runs, data.targets, data.phases, strict=True)
        ],
        "outcomes": [
            {
                "rule": row.rule,
                "target": row.target,
                "differs": row.differs,
                "cells": [
                    {"outcome": None if cell.outcome is None else cell.outcome.value, "reason": cell.reason}
                    for cell in row.cells
                ],
            }
            for row in data.matrix
        ],
        "figures": [_figure(row) for row in data.figures],
        "setup": [
            {"setting": f"{line.of} {line.head}", "cells": list(line.cells)} for line in (*data.setup, *data.partly)
        ],
    }


def _figure(row: FigureRow) -> Mapping[str, object]:
    return {
        "figure": row.head,
        "of": row.of,
        "cells": list(row.cells),
        "values": list(row.values),
        "unit": row.unit,
        "changes": [None if change is None else asdict(change) for change in row.changes],
    }
