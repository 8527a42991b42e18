"""What the comparison of some runs shows: read from their records at one moment, in the order that was asked for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.formatting import natural
from soakwatch.core.roles import DUT
from soakwatch.record import RecordView, SeriesKey
from soakwatch.report.bokeh_embed import Pieces
from soakwatch.runs.compare import Line, OutcomeRow, differences, matrix, setup_of
from soakwatch.runs.compare_figures import FIGURES, figures
from soakwatch.runs.summary import RunSummary, summary_in
from soakwatch.web.overlay import Overlaid, Overlay, overlays
from soakwatch.web.summaries import Stamp, stamp_of
from soakwatch_rules.rule import Finding, Outcome

MOST = 6
_KEPT, _LINES = 4, 200
_TOLD = (Outcome.FAIL, Outcome.WARN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Some runs side by side. ``setup`` are the differences of what all runs have, ``partly`` what only some have;
    ``unlisted`` counts what was left out of both."""

    runs: tuple[RunSummary, ...]
    matrix: tuple[OutcomeRow, ...]
    figures: tuple[Line, ...]
    setup: tuple[Line, ...]
    partly: tuple[Line, ...]
    unlisted: int
    plots: tuple[Overlay, ...]
    pieces: Pieces


def comparison(folders: Sequence[Path]) -> Comparison:
    """Compare runs. Raises RecordError for one that cannot be read, or holds nothing."""
    with ExitStack() as stack:
        views = [stack.enter_context(RecordView.open(folder)) for folder in folders]
        summaries = tuple(summary_in(view, folder, drawn=False) for folder, view in zip(folders, views, strict=True))
        findings = [view.findings(live=view.meta("verdict") is None) for view in views]
        overlaid = [_overlaid(folder, view) for folder, view in zip(folders, views, strict=True)]
        lines = differences([setup_of(view) for view in views])
        setup, partly = [one for one in lines if one.differs], [one for one in lines if not one.differs]
        unlisted = max(0, len(setup) - _LINES) + max(0, len(partly) - _LINES)
        pieces, plots = overlays(overlaid, chosen(views, findings))
        return Comparison(
            summaries,
            matrix(findings),
            figures(views, findings),
            tuple(setup[:_LINES]),
            tuple(partly[:_LINES]),
            unlisted,
            plots,
            pieces,
        )


class Comparisons:
    """The last few comparisons, each as long as no record of it changed. Used from any thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[tuple[Path, Stamp], ...], Comparison] = {}
        self._lock = threading.Lock()

    def of(self, folders: Sequence[Path]) -> Comparison:
        """The comparison of these runs as they are now. Raises RecordError as ``comparison``."""
        key = tuple((folder, stamp_of(folder)) for folder in folders)
        with self._lock:  # a reload while one is being made waits for it, and makes no second
            found = self._kept.get(key) or comparison(folders)
            self._kept.pop(key, None)
            self._kept[key] = found
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return found


COMPARISONS = Comparisons()
"""Those of this process."""


def chosen(views: Sequence[RecordView], findings: Sequence[Sequence[Finding]]) -> tuple[SeriesKey, ...]:
    """The series that are worth a plot and that at least two runs have: those that failed or were warned of, then those
    of the key figures; devices first."""
    held = [frozenset(view.keys()) for view in views]
    roles: dict[str, str] = {}
    for view in views:
        roles.update(view.roles())
    objected = {
        SeriesKey(f.target, f.metric, f.object): _TOLD.index(f.outcome)
        for run in reversed(findings)
        for f in run
        if f.metric and f.outcome in _TOLD
    }
    metrics = list(dict.fromkeys(figure.metric for figure in FIGURES))
    usual = {key for one in held for key in one if key.metric in metrics}

    def rank(key: SeriesKey) -> tuple[object, ...]:
        place = metrics.index(key.metric) if key.metric in metrics else len(metrics)
        return (objected.get(key, 9), place, roles.get(key.target) != DUT, natural(key.target), natural(key.object))

    shared = (key for key in {*objected, *usual} if sum(key in one for one in held) > 1)
    return tuple(sorted(shared, key=rank))


def _overlaid(folder: Path, view: RecordView) -> Overlaid:
    window = view.window()
    return Overlaid(folder.name, view, window.begin_ns, window.seconds, view.phases())
