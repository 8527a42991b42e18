"""A record as a table: a selection of series and phases, their readings one series at a time, and pandas data frames.

Readings are those of ``RecordView.series``: counters as they were read, so that wraps and restarts can be seen, and the
owner's readings if several sources of a target bring one series. What was not read has no row, and is NaN in a wide
frame; never 0. pandas is imported only for a frame (the extra ``export``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.installation import to_add_package
from soakwatch.core.labels import LABELS_KEY, labels_in
from soakwatch.core.suggest import hint
from soakwatch.record.model import Ints, SeriesKey, Values
from soakwatch.record.source import ReportSource
from soakwatch_model.window import Phase

if TYPE_CHECKING:
    import pandas as pd

NO_PHASE = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to read: names or globs of metrics and of targets, names of phases; an empty one means all."""

    metrics: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True, eq=False)
class SeriesTable:
    """The readings of one series: times in UTC ns, values in ``unit`` without the loss of a bit, and the phase of each
    as an index into ``phases``, where 0 is none. All of shape (n,)."""

    key: SeriesKey
    unit: str
    kind: str
    time_ns: Ints
    value: Values
    phase: Ints
    phases: tuple[str, ...]


def chosen_keys(view: ReportSource, wanted: Selection = EVERYTHING) -> tuple[SeriesKey, ...]:
    """The selected series, sorted. Raises RecordError for a name or glob that the run has nothing of."""
    keys = view.keys()
    metrics, targets = {key.metric for key in keys}, {key.target for key in keys}
    for what, asked, known in (("metric", wanted.metrics, metrics), ("target", wanted.targets, targets)):
        for name in asked:
            if not any(fnmatchcase(each, name) for each in known):
                raise RecordError(f"the run has no {what} {name!r}{hint(name, known)}")
    return tuple(key for key in keys if _fits(key.metric, wanted.metrics) and _fits(key.target, wanted.targets))


def _fits(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def phase_names(phases: Sequence[Phase]) -> tuple[str, ...]:
    """The names of phases, each once, after the one that stands for no phase."""
    return (NO_PHASE, *dict.fromkeys(phase.name for phase in phases))


def phases_at(time_ns: Ints, phases: Sequence[Phase]) -> Ints:
    """For each time the index of its phase in ``phase_names``; of phases that overlap the later one."""
    numbers = {name: number for number, name in enumerate(phase_names(phases))}
    result = np.zeros(time_ns.size, dtype=np.int64)
    for phase in phases:
        result[(time_ns >= phase.window.begin_ns) & (time_ns < phase.window.end_ns)] = numbers[phase.name]
    return result


def series_table(
    view: ReportSource,
    key: SeriesKey,
    wanted: Selection = EVERYTHING,
    begin_ns: int | None = None,
    end_ns: int | None = None,
) -> SeriesTable:
    """The readings of one series, begin <= time < end, in the wanted phases."""
    series = view.series(key, begin_ns, end_ns)
    phases = view.phases()
    names = phase_names(phases)
    phase = phases_at(series.time_ns, phases)
    time_ns, value = series.time_ns, series.value
    if wanted.phases:
        numbers = [number for number, name in enumerate(names) if name in wanted.phases and name]
        kept = np.isin(phase, numbers)
        time_ns, value, phase = time_ns[kept], value[kept], phase[kept]
    return SeriesTable(key, series.trait.unit, series.trait.kind, time_ns, value, phase, names)


def run_labels(view: ReportSource) -> dict[str, str]:
    """The labels of a run; empty where it has none."""
    return labels_in(view.meta(LABELS_KEY))


def tables(view: ReportSource, wanted: Selection = EVERYTHING) -> Iterator[SeriesTable]:
    """The wanted series one after another: no more than one is in memory."""
    for key in chosen_keys(view, wanted):
        yield series_table(view, key, wanted)


def to_pandas(view: ReportSource, wanted: Selection = EVERYTHING, *, wide: bool = False) -> pd.DataFrame:
    """The wanted series as a data frame; ``RecordView.to_pandas`` says what is in it."""
    try:
        import pandas as pd
    except ImportError:
        raise SoakwatchError(f"data frames need pandas: {to_add_package('pandas')}") from None
    unknown = sorted(set(wanted.phases) - set(phase_names(view.phases())[1:]))
    if unknown:
        known = phase_names(view.phases())[1:]
        raise RecordError(f"the run has no phase {unknown[0]!r}{hint(unknown[0], known)}")
    found = list(tables(view, wanted))
    if wide:
        index = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *(table.time_ns for table in found)]))
        columns = np.full((index.size, len(found)), np.nan)
        for number, table in enumerate(found):
            columns[np.searchsorted(index, table.time_ns), number] = table.value
        names = pd.MultiIndex.from_tuples(
            [(table.key.target, table.key.metric, table.key.object) for table in found],
            names=["target", "metric", "object"],
        )
        times = pd.DatetimeIndex(index.view("datetime64[ns]"), name="time").tz_localize("UTC")
        return pd.DataFrame(columns, index=times, columns=names)
    sizes = [table.time_ns.size for table in found]
    total = sum(sizes)

    def repeated(texts: Sequence[str]) -> pd.Categorical:
        categories = list(dict.fromkeys(texts))
        places = {text: number for number, text in enumerate(categories)}
        codes = np.repeat(np.array([places[text] for text in texts], dtype=np.int32), sizes)
        return pd.Categorical.from_codes(codes.tolist() if not total else codes, categories=categories)

    empty: Ints = np.empty(0, dtype=np.int64)
    time_ns = np.concatenate([empty, *(table.time_ns for table in found)])
    value = np.concatenate([np.empty(0), *(table.value.astype(np.float64) for table in found)])
    phase = np.concatenate([empty, *(table.phase for table in found)])
    frame = pd.DataFrame(
        {
            "time": pd.DatetimeIndex(time_ns.view("datetime64[ns]")).tz_localize("UTC"),
            "target": repeated([table.key.target for table in found]),
            "metric": repeated([table.key.metric for table in found]),
            "object": repeated([table.key.object for table in found]),
            "value": value,
            "unit": repeated([table.unit for table in found]),
            "phase": pd.Categorical.from_codes(phase.astype(np.int32), categories=list(phase_names(view.phases()))),
        }
    )
    for name, text in run_labels(view).items():
        frame[f"label_{name}"] = pd.Categorical.from_codes(np.zeros(total, dtype=np.int32), categories=[text])
    return frame
