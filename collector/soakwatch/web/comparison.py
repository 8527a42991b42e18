"""The comparison of runs with their series overlaid, cached until a record changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.core.formatting import natural
from soakwatch.record import RecordView, SeriesKey
from soakwatch.report.plot import PlotPieces
from soakwatch.runs.compare.compared_runs import Compared, compared
from soakwatch.runs.compare.figure_rows import FigureSide
from soakwatch.runs.compare.targets import CompareOptions
from soakwatch.runs.key_figures import STANDARD
from soakwatch.runs.read_once import Stamp, stamp_of
from soakwatch.web.overlay import Overlaid, Overlay, overlays
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import DUT

_MAX_CACHED = 4
_SHOWN_OUTCOMES = (Outcome.FAIL, Outcome.WARN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first one, and their plots."""

    data: Compared
    plots: tuple[Overlay, ...]
    pieces: PlotPieces


def comparison(folders: Sequence[Path], options: CompareOptions | None = None) -> Comparison:
    """Compare runs with the first of them.

    Raises RecordError for an unreadable or empty record, SoakwatchError for a missing target.
    """
    with ExitStack() as stack:
        views = [stack.enter_context(RecordView.open(folder)) for folder in folders]
        data = compared(folders, views, options)
        runs = [
            Overlaid(folder.name, view, view.window(), side.targets)
            for folder, view, side in zip(folders, views, data.sides, strict=True)
        ]
        pieces, plots = overlays(runs, chosen(data.sides), data.slots)
        return Comparison(data, plots, pieces)


class Comparisons:
    """Caches the last comparisons until a record changes. Thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Comparison] = {}
        self._lock = threading.Lock()

    def of(self, folders: Sequence[Path], options: CompareOptions | None = None) -> Comparison:
        """The current comparison of these runs. Raises what ``comparison`` does."""
        stamps: list[tuple[Path, Stamp]] = [(folder, stamp_of(folder)) for folder in folders]
        key = (*stamps, None if options is None else options.key)
        with self._lock:  # a concurrent reload waits for the result instead of computing it again
            result = self._kept.get(key) or comparison(folders, options)
            self._kept.pop(key, None)
            self._kept[key] = result
            while len(self._kept) > _MAX_CACHED:
                del self._kept[next(iter(self._kept))]
        return result


COMPARISONS = Comparisons()
"""The cache of this process."""


def chosen(sides: Sequence[FigureSide]) -> tuple[SeriesKey, ...]:
    """The series to plot, of those that at least two runs have, named after the reference's targets: failed or warned
    ones first, then key figures; devices first."""
    names = [side.targets.shown for side in sides]
    available = [
        frozenset(replace(key, target=shown.get(key.target, key.target)) for key in side.view.keys())  # noqa: SIM118
        for side, shown in zip(sides, names, strict=True)
    ]
    roles: dict[str, str] = {}
    for side, shown in zip(sides, names, strict=True):
        roles |= {shown[name]: role for name, role in side.view.roles().items() if shown[name] not in roles}
    raised = {
        SeriesKey(shown.get(f.target, f.target), f.metric, f.object): _SHOWN_OUTCOMES.index(f.outcome)
        for side, shown in zip(sides, names, strict=True)
        for f in side.findings
        if f.metric and f.outcome in _SHOWN_OUTCOMES
    }
    metrics = list(dict.fromkeys(spec.metric for spec in STANDARD))
    usual = {key for series_keys in available for key in series_keys if key.metric in metrics}

    def rank(key: SeriesKey) -> tuple[object, ...]:
        position = metrics.index(key.metric) if key.metric in metrics else len(metrics)
        return (raised.get(key, 9), position, roles.get(key.target) != DUT, natural(key.target), natural(key.object))

    shared = (key for key in {*raised, *usual} if sum(key in series_keys for series_keys in available) > 1)
    return tuple(sorted(shared, key=rank))
