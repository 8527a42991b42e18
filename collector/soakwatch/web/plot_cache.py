"""The plots of a run for its page: redrawn when their content has changed, not for every browser."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.judge.rates import META as SO_FAR
from soakwatch.judge.rates import Rate, snapshot_of
from soakwatch.record import RecordView
from soakwatch_model.finding import Finding
from soakwatch_model.window import Window

_MAX_RUNS = 4
_MIN_AGE_S, _AGE_PER_COST = 30.0, 20.0  # plots are kept for so many seconds, and for so many times what drawing took
_MIN_AGE_IF_CHANGED_S, _AGE_PER_COST_IF_CHANGED = 2.0, 10.0  # the same if there is something new to show


class BeingDrawnError(Exception):
    """Another request is drawing the same plots."""


@dataclass(slots=True)
class _CachedPlots:
    lock: threading.Lock = field(default_factory=threading.Lock)
    mark: str = ""
    text: str = ""
    drawn_s: float = 0.0
    cost_s: float = 0.0  # of CPU: other work on the machine does not count

    def is_good(self, mark: str, now_s: float) -> bool:
        """Whether the plots need not be redrawn yet."""
        least_s, costs = (
            (_MIN_AGE_S, _AGE_PER_COST) if mark == self.mark else (_MIN_AGE_IF_CHANGED_S, _AGE_PER_COST_IF_CHANGED)
        )
        return self.text != "" and now_s - self.drawn_s < max(least_s, costs * self.cost_s)


class PlotCache:
    """Draws the plots of runs, and keeps the latest. Used from any thread."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Path, bool], _CachedPlots] = OrderedDict()
        self._lock = threading.Lock()

    def text(self, folder: Path, mark: str, *, live: bool, first: bool = False) -> str:
        """The plots as one JSON text, redrawn if ``mark`` changed and from time to time; with ``first`` only the most
        important ones, coarse and quickly drawn.

        Raises BeingDrawnError if another request is drawing them, and RecordError.
        """
        with self._lock:
            cached = self._held.setdefault((folder, first), _CachedPlots())
            self._held.move_to_end((folder, first))
            while len(self._held) > 2 * _MAX_RUNS:
                self._held.popitem(last=False)
        if not cached.lock.acquire(blocking=False):
            raise BeingDrawnError
        try:
            if not cached.is_good(mark, time.monotonic()):
                begin_s = time.thread_time()
                facts, rest = _drawn(folder, partial(_plotted, first=first), live=live)
                cached.cost_s, cached.drawn_s, cached.mark = time.thread_time() - begin_s, time.monotonic(), mark
                text = json.dumps({"drawn": mark, "cost_s": round(cached.cost_s, 3)} | facts)
                cached.text = f"{text[:-1]}{rest}}}"
            return cached.text
        finally:
            cached.lock.release()


Panels = list[dict[str, object]]
Draw = Callable[[RecordView, Window, Sequence[Finding], Sequence[Rate]], tuple[Panels, str]]


def _drawn(folder: Path, draw: Draw, *, live: bool) -> tuple[dict[str, object], str]:
    """The description of the plots, and the plots themselves as the rest of the JSON text."""
    with RecordView.open(folder) as view:
        try:
            window = view.window()
        except RecordError:  # no poll yet
            return {"begin": None, "end": None, "panels": []}, ""
        so_far = snapshot_of(view.meta(SO_FAR)) if live else None
        panels, rest = draw(view, window, view.findings(live=live), () if so_far is None else so_far.rates)
    return {"begin": window.begin_ns // 10**6, "end": window.end_ns // 10**6, "panels": panels}, rest


def _plotted(
    view: RecordView, window: Window, findings: Sequence[Finding], rates: Sequence[Rate], *, first: bool
) -> tuple[Panels, str]:
    """All panels, drawn, or the few that matter most."""
    from soakwatch.report.overview import live_document

    drawn = live_document(view, window, findings, rates, first=first)
    panels: Panels = [
        {
            "target": panel.target,
            "title": panel.title,
            "element": panel.element,
            "height": panel.height,
            "small": panel.small,
            "note": panel.note,
            "rank": panel.rank,
            "flat": panel.flat,
        }
        for panel in drawn.panels
    ]
    return panels, f', "plots": {drawn.plots}'
