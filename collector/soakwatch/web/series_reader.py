"""Series for the HTTP API: their list, and their lines as in plots, at the requested resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.plotted import as_plotted
from soakwatch.record import SeriesKey
from soakwatch.record.series_cache import BlockCache, Known, cached_view
from soakwatch.report.curves import breaks, thinned
from soakwatch_model.series import Series

MAX_SERIES = 200
MIN_POINTS, MAX_POINTS = 100, 20_000
_MS = 10**6
_MARGIN_INTERVALS = 4  # intervals that are read beyond either end, so that lines reach the edge
_EXACT = 2.0**53
_SILENT, _OVER_NS = 3.5, 60 * 10**9
_LATEST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """The requested lines: ``begin_ns`` <= time < ``end_ns`` (None: no bound), about ``points`` points each."""

    keys: tuple[SeriesKey, ...]
    begin_ns: int | None
    end_ns: int | None
    points: int


class NoSuchSeriesError(LookupError):
    """A record has no series of this key."""

    def __init__(self, key: SeriesKey) -> None:
        super().__init__(key)
        self.key = key


@dataclass(frozen=True, slots=True, eq=False)
class PlottedSeries:
    """A line as in plots, in the unit of the record: ``time_ms`` int64 and ``value`` float64 of shape (n,).

    A NaN breaks it. Counters are increments per second (``rate``). ``readings`` is the number of samples in the
    requested interval, and ``whole`` says that each of them is a point. One sample beyond either end is a point too if
    it is near, so that lines reach the edge.
    """

    key: SeriesKey
    unit: str
    rate: bool
    steps: bool
    integers: bool
    time_ms: NDArray[np.int64]
    value: NDArray[np.float64]
    readings: int
    whole: bool


def line_of(series: Series, query: SeriesQuery) -> PlottedSeries:
    """The line of a series that was read a little beyond the requested interval."""
    drawn, note = as_plotted(series)
    good = drawn.finite()
    low = 0 if query.begin_ns is None else int(np.searchsorted(good.time_ns, query.begin_ns))
    high = len(good) if query.end_ns is None else int(np.searchsorted(good.time_ns, query.end_ns))
    readings = high - low
    gaps = breaks(drawn, good)
    first, last = max(low - 1, 0), min(high + 1, len(good))
    gaps = gaps[(gaps > first) & (gaps < last)] - first
    whole = readings <= query.points
    time_ms, value = thinned(
        good.time_ns[first:last], good.value[first:last], gaps, last - first if whole else query.points
    )
    return PlottedSeries(
        SeriesKey(series.target, series.metric, series.object),
        drawn.trait.unit,
        series.trait.kind == "counter",
        drawn.trait.kind == "state" and not note,
        drawn.value.dtype.kind != "f",
        time_ms.astype(np.int64),
        value,
        readings,
        whole,
    )


class SeriesReader:
    """Reads series of any record; keeps what it decoded, within bounds, for the next request. Used from any thread."""

    def __init__(self, blocks: BlockCache | None = None) -> None:
        self._blocks = blocks or BlockCache()

    def lines(self, folder: Path, query: SeriesQuery) -> tuple[tuple[PlottedSeries, ...], int | None]:
        """The lines, and the time of the last sample (UTC ns). Raises NoSuchSeriesError and RecordError."""
        with cached_view(folder, self._blocks) as view:
            lines = []
            for key in query.keys:
                known = view.known(key)
                if known is None:
                    raise NoSuchSeriesError(key)
                margin_ns = round(_MARGIN_INTERVALS * (known.cadence_s or 0.0) * 1e9)
                begin_ns = None if query.begin_ns is None else max(query.begin_ns - margin_ns, 0)
                end_ns = None if query.end_ns is None else min(query.end_ns + margin_ns, _LATEST_NS)
                lines.append(line_of(view.series(key, known, begin_ns, end_ns), query))
            return tuple(lines), view.last_ns

    def keys(self, folder: Path) -> tuple[SeriesKey, ...]:
        """All series, sorted. Raises RecordError."""
        with cached_view(folder, self._blocks) as view:
            return tuple(view.every())

    def newest(self, folder: Path, now_ns: int, limit: int) -> tuple[tuple[tuple[SeriesKey, Known, float], ...], int]:
        """The newest sample of each series that is still sampled, and how many more there are than ``limit``.

        A series is over when it had no sample for 3.5 times its interval plus a minute. Raises RecordError.
        """

        def fresh_from_ns(known: Known) -> int:
            return now_ns - _OVER_NS - round(_SILENT * (known.cadence_s or 0.0) * 1e9)

        with cached_view(folder, self._blocks) as view:
            return view.newest(fresh_from_ns, limit)

    def listed(self, folder: Path) -> Mapping[str, object]:
        """All series with unit, kind, interval in seconds and number of samples. Raises RecordError."""
        with cached_view(folder, self._blocks) as view:
            readings, last_ns = view.readings(), view.last_ns
            series = [
                {
                    "key": key_data(key),
                    "unit": known.unit,
                    "kind": known.kind,
                    "interval": known.cadence_s,
                    "readings": readings.get(known.number, 0),
                }
                for key, known in view.every().items()
            ]
        return {"series": series, "until": None if last_ns is None else last_ns // _MS}


def line_data(line: PlottedSeries) -> Mapping[str, object]:
    """A line as JSON: gaps are null, integers stay integers."""
    value: list[float | int | None]
    finite = np.isfinite(line.value)
    if line.integers and bool((np.abs(line.value[finite]) < _EXACT).all()):
        value = [
            int(number) if good else None for number, good in zip(line.value.tolist(), finite.tolist(), strict=True)
        ]
    elif finite.all():
        value = line.value.tolist()
    else:
        value = [number if good else None for number, good in zip(line.value.tolist(), finite.tolist(), strict=True)]
    return {
        "key": key_data(line.key),
        "unit": line.unit,
        "rate": line.rate,
        "steps": line.steps,
        "time": line.time_ms.tolist(),
        "value": value,
        "readings": line.readings,
        "whole": line.whole,
    }


def lines_data(lines: Sequence[PlottedSeries], last_ns: int | None) -> Mapping[str, object]:
    """Some lines, and the time of the last sample (ms since 1970; null if there is none)."""
    return {"series": [line_data(line) for line in lines], "until": None if last_ns is None else last_ns // _MS}


def key_data(key: SeriesKey) -> list[str]:
    """The identity of a series."""
    return [key.target, key.metric, key.object]


READER = SeriesReader()
"""The reader of this process: all requests share what was decoded."""
