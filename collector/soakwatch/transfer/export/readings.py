"""The readings of several runs in one shape: the columns they share, and the readings piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.errors import RecordError
from soakwatch.core.suggest import hint
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.frames import Selection, SeriesTable, chosen_keys, phase_names, phases_at, run_labels
from soakwatch.record.model import Ints
from soakwatch_model.sample import object_labels

WINDOW_READINGS = 1_000_000
"""Maximum readings of a wide table in memory at a time."""
_CELLS = 2_000_000
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Run:
    """A run to export: its name in the data, and its record."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of all runs besides the fixed ones: labels of objects and of runs, by name."""

    objects: tuple[str, ...]
    labels: tuple[str, ...]


def columns_of(runs: Sequence[Run], selection: Selection) -> Columns:
    """The columns that these runs need together.

    Raises RecordError if a run lacks a selected metric, target or phase, or no run has a phase.
    """
    objects: set[str] = set()
    labels: set[str] = set()
    phases: set[str] = set()
    for run in runs:
        with RecordView.open(run.path) as view:
            for text in {key.object for key in chosen_keys(view, selection)}:
                objects |= object_labels(text).keys()
            labels |= run_labels(view).keys()
            phases |= set(phase_names(view.phases())[1:])
    for name in selection.phases:
        if name not in phases:
            raise RecordError(f"no phase is called {name!r}{hint(name, phases)}")
    return Columns(tuple(sorted(objects)), tuple(sorted(labels)))


@dataclass(frozen=True, slots=True, eq=False)
class WidePart:
    """Some rows of a wide table: times (n,), the phase of each, and values (n, k), NaN if not read at that time."""

    time_ns: Ints
    phase: Ints
    phases: tuple[str, ...]
    values: NDArray[np.float64]


def wide_parts(view: RecordView, keys: Sequence[SeriesKey], selection: Selection) -> Iterator[WidePart]:
    """A wide table in order of time, in windows of about a million readings to bound memory."""
    phases = view.phases()
    names = phase_names(phases)
    window = view.window()
    last_ns = window.end_ns + 1
    count = max(1, math.ceil(view.counts().samples / WINDOW_READINGS))
    edges = [window.begin_ns + (last_ns - window.begin_ns) * number // count for number in range(count + 1)]
    rows = max(1, _CELLS // max(1, len(keys)))
    numbers = [number for number, name in enumerate(names) if name and name in selection.phases]
    for index in range(count):
        begin_ns = edges[index] if index else None  # a device may date a reading before the first poll
        end_ns = None if index == count - 1 else edges[index + 1]
        series = [view.series(key, begin_ns, end_ns) for key in keys]
        time_ns = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(each.time_ns for each in series)]))
        phase = phases_at(time_ns, phases)
        if selection.phases:
            kept = np.isin(phase, numbers)
            time_ns, phase = time_ns[kept], phase[kept]
        for low in range(0, time_ns.size, rows):
            some = time_ns[low : low + rows]
            values = np.full((some.size, len(keys)), np.nan)
            for column, each in enumerate(series):
                begin, end = np.searchsorted(each.time_ns, [some[0], some[-1] + 1])
                place = np.searchsorted(some, each.time_ns[begin:end])
                there = some[np.minimum(place, some.size - 1)] == each.time_ns[begin:end]
                values[place[there], column] = each.value[begin:end][there]
            yield WidePart(some, phase[low : low + rows], names, values)


def wide_names(keys: Sequence[SeriesKey]) -> list[str]:
    """Column names of a wide table: metric and labels, with the target in front if there are several.

    >>> wide_names([SeriesKey("a", "system.cpu.utilization", "core=0"), SeriesKey("b", "tcp.up", "")])
    ['a system.cpu.utilization{core=0}', 'b tcp.up']
    """
    several = len({key.target for key in keys}) > 1
    return [f"{key.target} " * several + key.metric + (f"{{{key.object}}}" if key.object else "") for key in keys]


def exact_texts(table: SeriesTable) -> list[str | None] | None:
    """The integers that a float64 cannot hold, as text; None if it can hold all."""
    value = table.value
    if value.dtype.kind == "f" or not value.size or max(abs(int(value.min())), int(value.max())) <= _EXACT:
        return None
    texts = [None if int(float(number)) == number else str(number) for number in value.tolist()]
    return texts if any(texts) else None
