"""The plots of a run as its page gets them: drawn anew when what they show has changed, and not for every browser."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch_rules.rule import Finding, Window

if TYPE_CHECKING:
    from soakwatch.report.overview import LiveDocument

_MOST_RUNS = 4
_YOUNG_S, _COSTS = 30.0, 20.0  # good for so long, and for so many times what drawing took
_NEWS_S, _NEWS_COSTS = 2.0, 10.0  # the same where they would show something new


class BeingDrawnError(Exception):
    """Another question waits for the same plots."""


@dataclass(slots=True)
class _Held:
    lock: threading.Lock = field(default_factory=threading.Lock)
    mark: str = ""
    text: str = ""
    drawn_s: float = 0.0
    cost_s: float = 0.0  # of CPU: other work on the machine does not count

    def is_good(self, mark: str, now_s: float) -> bool:
        """Whether it need not be drawn again yet."""
        least_s, costs = (_YOUNG_S, _COSTS) if mark == self.mark else (_NEWS_S, _NEWS_COSTS)
        return self.text != "" and now_s - self.drawn_s < max(least_s, costs * self.cost_s)


class Plots:
    """Draws runs, and keeps what it drew last. For several threads at a time."""

    def __init__(self) -> None:
        self._held: OrderedDict[Path, _Held] = OrderedDict()
        self._lock = threading.Lock()

    def text(self, folder: Path, mark: str, *, live: bool) -> str:
        """The plots as one JSON text; drawn again where ``mark`` changed, and now and then.

        Raises BeingDrawn where somebody else is at it, and RecordError.
        """
        with self._lock:
            held = self._held.setdefault(folder, _Held())
            self._held.move_to_end(folder)
            while len(self._held) > _MOST_RUNS:
                self._held.popitem(last=False)
        if not held.lock.acquire(blocking=False):
            raise BeingDrawnError
        try:
            if not held.is_good(mark, time.monotonic()):
                # What draws is large: a server that is asked for figures only does without.
                from soakwatch.report.overview import live_document

                begin_s = time.thread_time()
                facts, rest = _drawn(folder, live_document, live=live)
                held.cost_s, held.drawn_s, held.mark = time.thread_time() - begin_s, time.monotonic(), mark
                told = json.dumps({"drawn": mark, "cost_s": round(held.cost_s, 3)} | facts)
                held.text = f"{told[:-1]}{rest}}}"
            return held.text
        finally:
            held.lock.release()


def _drawn(
    folder: Path, draw: Callable[[RecordView, Window, Sequence[Finding]], LiveDocument], *, live: bool
) -> tuple[dict[str, object], str]:
    """What is told of the plots, and the plots themselves as the rest of the JSON text."""
    with RecordView.open(folder) as view:
        try:
            window = view.window()
        except RecordError:  # no poll yet
            return {"begin": None, "end": None, "panels": []}, ""
        made = draw(view, window, view.findings(live=live))
    panels = [
        {
            "target": one.target,
            "title": one.title,
            "element": one.element,
            "height": one.height,
            "small": one.small,
            "note": one.note,
        }
        for one in made.panels
    ]
    facts = {"begin": window.begin_ns // 10**6, "end": window.end_ns // 10**6, "panels": panels}
    return facts, f', "document": {made.document}, "items": {made.items}'
