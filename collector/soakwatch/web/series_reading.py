"""Series over the web: which there are, and their lines as they are drawn, at the resolution that somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.drawn import shown
from soakwatch.record import SeriesKey
from soakwatch.record.series_cache import BlockCache, Known, cached_view
from soakwatch.report.curves import breaks, thinned
from soakwatch_rules.series import Series

MOST_SERIES = 200
FEWEST_POINTS, MOST_POINTS = 100, 20_000
_MS = 10**6
_BESIDE = 4  # planned distances of readings that are read beyond either end, so that lines reach it
_EXACT = 2.0**53
_SILENT, _OVER_NS = 3.5, 60 * 10**9
_LATEST_NS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Ask:
    """Which lines somebody wants: ``begin_ns`` <= time < ``end_ns`` (None is open), about ``points`` points each."""

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
class Line:
    """A line as it is drawn, in the unit of the record: ``time_ms`` int64 and ``value`` float64 of shape (n,).

    A NaN breaks it. Counters are increments per second (``rate``). ``readings`` are those in the asked stretch, and
    ``whole`` says that every one of them is a point. One reading beyond either end is a point too if it is near, so
    that lines go on to the edge.
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


def line_of(series: Series, ask: Ask) -> Line:
    """What is drawn of a series that was read a little beyond what was asked for."""
    drawn, note = shown(series)
    good = drawn.finite()
    low = 0 if ask.begin_ns is None else int(np.searchsorted(good.time_ns, ask.begin_ns))
    high = len(good) if ask.end_ns is None else int(np.searchsorted(good.time_ns, ask.end_ns))
    readings = high - low
    holes = breaks(drawn, good)
    first, last = max(low - 1, 0), min(high + 1, len(good))
    holes = holes[(holes > first) & (holes < last)] - first
    whole = readings <= ask.points
    time_ms, value = thinned(
        good.time_ns[first:last], good.value[first:last], holes, last - first if whole else ask.points
    )
    return Line(
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


class Reader:
    """Reads series of any record; what it decoded it keeps, in bounds, for the next question. For several threads."""

    def __init__(self, blocks: BlockCache | None = None) -> None:
        self._blocks = blocks or BlockCache()

    def lines(self, folder: Path, ask: Ask) -> tuple[tuple[Line, ...], int | None]:
        """The lines, and how far the record reaches (UTC ns). Raises NoSuchSeriesError, and RecordError."""
        with cached_view(folder, self._blocks) as view:
            made = []
            for key in ask.keys:
                known = view.known(key)
                if known is None:
                    raise NoSuchSeriesError(key)
                margin_ns = round(_BESIDE * (known.cadence_s or 0.0) * 1e9)
                begin_ns = None if ask.begin_ns is None else max(ask.begin_ns - margin_ns, 0)
                end_ns = None if ask.end_ns is None else min(ask.end_ns + margin_ns, _LATEST_NS)
                made.append(line_of(view.series(key, known, begin_ns, end_ns), ask))
            return tuple(made), view.last_ns

    def keys(self, folder: Path) -> tuple[SeriesKey, ...]:
        """All series, sorted. Raises RecordError."""
        with cached_view(folder, self._blocks) as view:
            return tuple(view.every())

    def newest(self, folder: Path, now_ns: int, most: int) -> tuple[tuple[tuple[SeriesKey, Known, float], ...], int]:
        """The newest reading of each series that still brings some, and how many more there are than ``most``.

        A series is over when it brought nothing for 3.5 times its distance of readings, and a minute. Raises
        RecordError.
        """

        def fresh_from_ns(known: Known) -> int:
            return now_ns - _OVER_NS - round(_SILENT * (known.cadence_s or 0.0) * 1e9)

        with cached_view(folder, self._blocks) as view:
            return view.newest(fresh_from_ns, most)

    def listed(self, folder: Path) -> Mapping[str, object]:
        """All series with unit, kind, planned distance of readings in seconds and their number. Raises RecordError."""
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


def line_data(line: Line) -> Mapping[str, object]:
    """A line as JSON can hold it: gaps are null, whole numbers stay whole."""
    value: list[float | int | None]
    told = np.isfinite(line.value)
    if line.integers and bool((np.abs(line.value[told]) < _EXACT).all()):
        value = [int(one) if good else None for one, good in zip(line.value.tolist(), told.tolist(), strict=True)]
    elif told.all():
        value = line.value.tolist()
    else:
        value = [one if good else None for one, good in zip(line.value.tolist(), told.tolist(), strict=True)]
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


def lines_data(made: Sequence[Line], last_ns: int | None) -> Mapping[str, object]:
    """Some lines, and how far the record reaches (ms since 1970; null if it is empty)."""
    return {"series": [line_data(line) for line in made], "until": None if last_ns is None else last_ns // _MS}


def key_data(key: SeriesKey) -> list[str]:
    """The identity of a series."""
    return [key.target, key.metric, key.object]


READER = Reader()
"""The one of this process: every question to the server shares what was decoded."""
