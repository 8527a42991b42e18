"""Results of campaigns for pages that ask every few seconds: a record that has ended is read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from soakwatch.campaign.campaign_file import CAMPAIGN_COPY, load_outline
from soakwatch.campaign.campaign_keys import Outline
from soakwatch.campaign.campaign_model import CellRun
from soakwatch.campaign.campaign_state import outline_state
from soakwatch.campaign.ledger import LEDGER, read_ledger
from soakwatch.campaign.tables.cell_figures import Readings, figures_in
from soakwatch.campaign.tables.result import CampaignResult, result_of, spec_of
from soakwatch.campaign.tables.spec import Measured
from soakwatch.runs.key_figures import FigureValue
from soakwatch.runs.read_once import ReadOnce, Stamp, file_stamp

_MOST_RUNS, _MOST_CAMPAIGNS = 10_000, 8
_FRESH_NS = 3 * 10**9


@dataclass(slots=True)
class _Known:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: Stamp = ()
    at_ns: int = 0
    result: CampaignResult | None = None


class CampaignResults:
    """The results of the campaigns that were asked for last. Used from any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, _Known] = OrderedDict()
        self._outlines = ReadOnce[Outline](_MOST_CAMPAIGNS, file_stamp)  # the copy of a campaign's file
        self._figures = ReadOnce[Mapping[str, FigureValue]](_MOST_RUNS)
        self._lock = threading.Lock()

    def of(self, folder: Path, now_ns: int) -> CampaignResult:
        """The result of the campaign in a folder, at most three seconds old. Raises SoakwatchError."""
        with self._lock:
            known = self._known.setdefault(folder, _Known())
            self._known.move_to_end(folder)
            while len(self._known) > _MOST_CAMPAIGNS:
                self._known.popitem(last=False)
        with known.lock:
            stamp = file_stamp(folder / LEDGER)
            last = known.result
            fresh = 0 <= now_ns - known.at_ns < _FRESH_NS or (last is not None and not last.goes_on)
            if last is not None and stamp == known.stamp and fresh:
                return last
            entries = read_ledger(folder)
            file = folder / CAMPAIGN_COPY
            state = outline_state(self._outlines.read(partial(load_outline, file), file), folder, entries)
            known.result = result_of(state, spec_of(state), self._read)
            known.stamp, known.at_ns = stamp, now_ns
            return known.result

    def _read(self, runs: Sequence[CellRun], measured: Sequence[Measured]) -> Readings:
        asked = tuple((one.name, one.spec.text) for one in measured)
        return {
            run.folder: self._figures.read(partial(figures_in, run.folder, measured), run.folder, asked)
            for run in runs
            if run.folder is not None
        }
