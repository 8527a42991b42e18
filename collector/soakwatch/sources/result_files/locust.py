"""Reads what locust writes with ``--csv NAME``: ``NAME_stats_history.csv``, a row per second for all requests.

Sources: the locust documentation, and files of locust 2.47. ``Requests/s`` is a mean over about ten seconds that ended
two seconds ago (0 at first, although requests are answered), so rates are computed from the totals. Percentiles are
over about ten seconds too, and 0 if there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.sources.abc import SourceError
from soakwatch.sources.result_files.lines import Rows, cells_of, epoch_ns, lines_in, positive
from soakwatch.sources.result_files.result_file import Moment, ParsedLines
from soakwatch.sources.result_files.ticks import ANSWERED, FAILED
from soakwatch_model.sample import Sample

_NEEDED = ("Timestamp", "Name", "Total Request Count", "Total Failure Count")
_ALL = "Aggregated"
_MAXIMUM = "100%"


class LocustReader:
    """Reads the history; rows of single requests (``--csv-full-history``) are left out."""

    def __init__(self, begin_ns: int) -> None:
        self._begin_ns = begin_ns
        self._last_ns = 0
        self.begin()

    def begin(self) -> None:
        """A new run of locust."""
        self._totals = {ANSWERED: 0, FAILED: 0}
        self.go_on()

    def go_on(self) -> None:
        """See ``result_file.Continues``."""
        self._earlier = dict(self._totals)  # counts of the processes before this one
        self._header: list[str] | None = None
        self._rows = Rows()
        self._before: tuple[int, int, int] | None = None  # time (ns), requests and failures of the last row

    def rest(self, now_ns: int) -> list[Sample]:
        """See ``result_file.Continues``."""
        if now_ns <= self._last_ns:
            return []
        self._last_ns = now_ns
        rates = [Sample(name, "", 0.0, now_ns) for name in ("load.request.rate", "load.failure.rate")]
        return [*(Sample(metric, "", total, now_ns) for metric, total in self._totals.items()), *rates]

    def total(self, requests: int, failed: int, now_ns: int) -> list[Sample]:
        """See ``result_file.TakesTotals``: the history has no row of the last second."""
        counts = {ANSWERED: requests - failed, FAILED: failed}
        totals = {metric: self._earlier[metric] + count for metric, count in counts.items()}
        if now_ns <= self._last_ns or any(total < self._totals[metric] for metric, total in totals.items()):
            return []
        self._totals, self._last_ns = totals, now_ns
        return [Sample(metric, "", total, now_ns) for metric, total in totals.items()]

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """See ``result_file.Reader``."""
        taken = ParsedLines()
        rows, torn = self._rows.whole(lines)
        if torn:
            taken.cannot(f"{torn[0][:80]!r} has an unclosed quote", len(torn))
        for row in rows:
            cells = cells_of(row)
            if self._header is None:
                missing = [name for name in _NEEDED if name not in cells]
                if missing:
                    raise SourceError(
                        f"not a history of locust (NAME_stats_history.csv): {missing[0]} is missing in {row[:60]!r}"
                    )
                self._header = cells
            elif cells == self._header:
                self._before = None
            elif len(cells) != len(self._header):
                taken.cannot(f"{row[:80]!r} has {len(cells)} cells instead of {len(self._header)}", lines_in(row))
            else:
                self._note(dict(zip(self._header, cells, strict=True)), moment, taken)
        return taken

    def ended(self, moment: Moment) -> list[Sample]:  # noqa: ARG002 - each row is complete
        """See ``result_file.Reader``."""
        return []

    def notes(self) -> tuple[str, ...]:
        """See ``result_file.Reader``."""
        return ()

    def _note(self, cells: Mapping[str, str], moment: Moment, taken: ParsedLines) -> None:
        if cells["Name"] != _ALL:
            return
        try:
            row_ns = epoch_ns(cells["Timestamp"])
            failed = round(positive(cells["Total Failure Count"]))
            counts = {ANSWERED: round(positive(cells["Total Request Count"])) - failed, FAILED: failed}
            levels = self._levels(cells)
        except ValueError:
            counts = {ANSWERED: -1}
        if counts[ANSWERED] < 0:
            taken.cannot(f"{','.join(cells.values())[:80]!r} is not a row of locust")
            return
        taken.newest_ns = row_ns
        self._totals = {metric: self._earlier[metric] + count for metric, count in counts.items()}
        before, self._before = self._before, (row_ns, counts[ANSWERED], counts[FAILED])
        rates = _rates(before, self._before)
        time_ns = moment.now_ns if moment.arrival else row_ns
        if time_ns > moment.limit_ns:
            taken.cannot(f"its time {cells['Timestamp']} is ahead of now")
        elif time_ns >= self._begin_ns and not (moment.old and moment.arrival):
            if rates:
                taken.active = any(rates.values()) or levels.get(("load.users", ""), 0) > 0
            if time_ns <= self._last_ns and not moment.arrival:
                return
            self._last_ns = time_ns
            taken.samples += [Sample(metric, "", total, time_ns) for metric, total in self._totals.items()]
            taken.samples += [Sample(metric, "", rate, time_ns) for metric, rate in rates.items()]
            taken.samples += [Sample(metric, name, value, time_ns) for (metric, name), value in levels.items()]

    @staticmethod
    def _levels(cells: Mapping[str, str]) -> dict[tuple[str, str], float]:
        levels: dict[tuple[str, str], float] = {}
        if cells.get("User Count"):
            levels["load.users", ""] = positive(cells["User Count"])
        if cells.get(_MAXIMUM, "N/A") not in {"N/A", "0"}:
            for name, text in cells.items():
                if name.endswith("%") and text != "N/A":
                    quantile = "max" if name == _MAXIMUM else f"p{name.removesuffix('%')}"
                    levels["load.latency", f"quantile={quantile}"] = positive(text) * 1e-3
        return levels


def _rates(before: tuple[int, int, int] | None, now: tuple[int, int, int]) -> dict[str, float]:
    if before is None or now[0] <= before[0] or now[1] < before[1] or now[2] < before[2]:
        return {}
    seconds = (now[0] - before[0]) * 1e-9
    return {"load.request.rate": (now[1] - before[1]) / seconds, "load.failure.rate": (now[2] - before[2]) / seconds}
