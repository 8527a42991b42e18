"""Some runs held against one of them: outcomes, figures and their changes, and what of the set-up is not the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.record import RecordView
from soakwatch.runs.compare.asked import Asked
from soakwatch.runs.compare.figures import FigureRow, Side, figures
from soakwatch.runs.compare.outcomes import OutcomeRow, matrix, renamed
from soakwatch.runs.compare.phases import Slot, parts_of, slots_of
from soakwatch.runs.compare.set_up import Line, differences, setup_of
from soakwatch.runs.compare.targets import TargetMap, target_map
from soakwatch.runs.summary import RunSummary, summary_in

MAX_RUNS = 6
_MAX_LINES = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs against a reference, which is the first. ``phases`` are the names of those that changes of figures are of,
    run by run ("" for the reference). ``setup`` are the differences of what all runs have, ``partly`` what only some
    have; ``unlisted`` counts what was left out of both."""

    runs: tuple[RunSummary, ...]
    sides: tuple[Side, ...]
    slots: tuple[Slot, ...]
    targets: tuple[TargetMap, ...]
    phases: tuple[str, ...]
    matrix: tuple[OutcomeRow, ...]
    figures: tuple[FigureRow, ...]
    setup: tuple[Line, ...]
    partly: tuple[Line, ...]
    unlisted: int


def compared(folders: Sequence[Path], views: Sequence[RecordView], asked: Asked | None = None) -> Compared:
    """Compare runs, whose records are open, with the first of them.

    Raises RecordError for a record that cannot be read or is empty, SoakwatchError for a target that is not there.
    """
    asked = asked or Asked()
    unknown = sorted(asked.targets.keys() - {folder.name for folder in folders[1:]})
    if unknown:
        raise SoakwatchError(f"targets are matched of {unknown[0]!r}, which is not compared with another run")
    roles = [view.roles() for view in views]
    targets = tuple(
        target_map(own, roles[0], asked.targets.get(folder.name)) for own, folder in zip(roles, folders, strict=True)
    )
    sides = tuple(
        Side(view, view.findings(live=view.meta("verdict") is None), each)
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
