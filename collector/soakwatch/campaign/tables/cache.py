"""Results of campaigns for pages that ask every few seconds: a record that has ended is read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.campaign.campaign_model import CampaignState, CellRun
from soakwatch.campaign.ledger import LEDGER
from soakwatch.campaign.tables.cell_figures import Readings, figures_in
from soakwatch.campaign.tables.result import CampaignResult, result_of, spec_of
from soakwatch.campaign.tables.spec import Measured
from soakwatch.runs.catalog import RECORD
from soakwatch.runs.key_figures import FigureValue

_MOST_FIGURES, _MOST_CAMPAIGNS = 50_000, 8
_FRESH_NS = 3 * 10**9
Stamp = tuple[int, int]


@dataclass(slots=True)
class _Known:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Stamp = (0, 0)
    at_ns: int = 0
    result: CampaignResult | None = None


class CampaignResults:
    """The results of the campaigns that were asked for last. Used from any thread."""

    def __init__(self, read_state: Callable[[Path], CampaignState]) -> None:
        self._read_state = read_state
        self._known: OrderedDict[Path, _Known] = OrderedDict()
        self._figures: OrderedDict[tuple[Path, Stamp, str], FigureValue] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: Path, now_ns: int) -> CampaignResult:
        """The result of the campaign in a folder, at most three seconds old. Raises SoakwatchError."""
        with self._lock:
            known = self._known.setdefault(folder, _Known())
            self._known.move_to_end(folder)
            while len(self._known) > _MOST_CAMPAIGNS:
                self._known.popitem(last=False)
        with known.lock:
            stamp = _stamp(folder / LEDGER)
            last = known.result
            fresh = 0 <= now_ns - known.at_ns < _FRESH_NS or (last is not None and not last.goes_on)
            if last is not None and stamp == known.stamp and fresh:
                return last
            state = self._read_state(folder)
            known.result = result_of(state, spec_of(state), self.read)
            known.stamp, known.at_ns = stamp, now_ns
            return known.result

    def read(self, runs: Sequence[CellRun], measured: Sequence[Measured]) -> Readings:
        """Reads the figures of runs; a record that did not change since is not read again."""
        readings = {}
        for run in runs:
            if run.folder is None:
                continue
            stamp = _stamp(run.folder / RECORD)
            with self._lock:
                known = {one.name: self._figures.get((run.folder, stamp, one.spec.text)) for one in measured}
            missing = [one for one in measured if known[one.name] is None]
            found = figures_in(run.folder, missing)
            with self._lock:
                for one in missing:
                    self._figures[run.folder, stamp, one.spec.text] = found[one.name]
                while len(self._figures) > _MOST_FIGURES:
                    self._figures.popitem(last=False)
            readings[run.folder] = {**{name: value for name, value in known.items() if value is not None}, **found}
        return readings


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
