"""The comparison of some runs: read from their records at one time, in the requested order."""

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
from soakwatch.runs.compare_figures import figures
from soakwatch.runs.figures import STANDARD
from soakwatch.runs.summary import RunSummary, summary_in
from soakwatch.web.overlay import Overlaid, Overlay, overlays
from soakwatch.web.summaries import Stamp, stamp_of
from soakwatch_rules.rule import Finding, Outcome

MAX_RUNS = 6
_MAX_CACHED, _MAX_LINES = 4, 200
_SHOWN_OUTCOMES = (Outcome.FAIL, Outcome.WARN)


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
    """Compare runs. Raises RecordError for a record that cannot be read or is empty."""
    with ExitStack() as stack:
        views = [stack.enter_context(RecordView.open(folder)) for folder in folders]
        summaries = tuple(summary_in(view, folder, drawn=False) for folder, view in zip(folders, views, strict=True))
        findings = [view.findings(live=view.meta("verdict") is None) for view in views]
        overlaid = [_overlaid(folder, view) for folder, view in zip(folders, views, strict=True)]
        lines = differences([setup_of(view) for view in views])
        setup, partly = [line for line in lines if line.differs], [line for line in lines if not line.differs]
        unlisted = max(0, len(setup) - _MAX_LINES) + max(0, len(partly) - _MAX_LINES)
        pieces, plots = overlays(overlaid, chosen(views, findings))
        return Comparison(
            summaries,
            matrix(findings),
            figures(views, findings),
            tuple(setup[:_MAX_LINES]),
            tuple(partly[:_MAX_LINES]),
            unlisted,
            plots,
            pieces,
        )


class Comparisons:
    """A cache of the last few comparisons, valid until one of their records changes. Used from any thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[tuple[Path, Stamp], ...], Comparison] = {}
        self._lock = threading.Lock()

    def of(self, folders: Sequence[Path]) -> Comparison:
        """The comparison of these runs as they are now. Raises RecordError as ``comparison``."""
        key = tuple((folder, stamp_of(folder)) for folder in folders)
        with self._lock:  # a reload meanwhile waits for the result instead of computing it again
            result = self._kept.get(key) or comparison(folders)
            self._kept.pop(key, None)
            self._kept[key] = result
            while len(self._kept) > _MAX_CACHED:
                del self._kept[next(iter(self._kept))]
        return result


COMPARISONS = Comparisons()
"""Those of this process."""


def chosen(views: Sequence[RecordView], findings: Sequence[Sequence[Finding]]) -> tuple[SeriesKey, ...]:
    """The series to plot that at least two runs have: those that failed or warned, then those of the key figures;
    devices first."""
    available = [frozenset(view.keys()) for view in views]
    roles: dict[str, str] = {}
    for view in views:
        roles.update(view.roles())
    raised = {
        SeriesKey(f.target, f.metric, f.object): _SHOWN_OUTCOMES.index(f.outcome)
        for run in reversed(findings)
        for f in run
        if f.metric and f.outcome in _SHOWN_OUTCOMES
    }
    metrics = list(dict.fromkeys(spec.metric for spec in STANDARD))
    usual = {key for series_keys in available for key in series_keys if key.metric in metrics}

    def rank(key: SeriesKey) -> tuple[object, ...]:
        position = metrics.index(key.metric) if key.metric in metrics else len(metrics)
        return (raised.get(key, 9), position, roles.get(key.target) != DUT, natural(key.target), natural(key.object))

    shared = (key for key in {*raised, *usual} if sum(key in series_keys for series_keys in available) > 1)
    return tuple(sorted(shared, key=rank))


def _overlaid(folder: Path, view: RecordView) -> Overlaid:
    window = view.window()
    return Overlaid(folder.name, view, window.begin_ns, window.seconds, view.phases())
