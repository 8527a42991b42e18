"""The looks of a run at its processes under suspicion, each with what it shows beside memory and load of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.diagnose.compare import of_one_life
from soakwatch.diagnose.kept import by_process, looks_of
from soakwatch.diagnose.look import Look
from soakwatch.diagnose.reading import Course, Reading, reading
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch.report.load import TrafficGenerator
from soakwatch_model.series import Series

_MEMORY, _PID = "process.memory.usage", "process.pid"


@dataclass(frozen=True, slots=True)
class ReadProcess:
    """A process with its looks, and what they show."""

    target: str
    process: str
    looks: tuple[Look, ...]
    reading: Reading


def read_looks(source: ReportSource, load: Sequence[TrafficGenerator]) -> tuple[ReadProcess, ...]:
    """The processes at which a run looked, in the order of their first looks."""
    grouped = by_process(looks_of(source.artifact_entries(), source.artifact))
    keys = frozenset(source.keys()) if grouped else frozenset()
    return tuple(
        ReadProcess(target, process, tuple(looks), reading(looks, _course(source, keys, load, looks)))
        for (target, process), looks in grouped.items()
    )


def _course(
    source: ReportSource, keys: frozenset[SeriesKey], load: Sequence[TrafficGenerator], looks: Sequence[Look]
) -> Course | None:
    """The memory of the process in its last life, and the load beside it; None if it was not polled."""
    life = of_one_life(looks)
    if not life or (key := SeriesKey(life[-1].target, _MEMORY, life[-1].process)) not in keys:
        return None
    memory = source.series(key).finite()
    pids = SeriesKey(key.target, _PID, key.object)
    since_ns = _begin_of(source.series(pids).finite(), life[-1].pid) if pids in keys else 0
    kept = memory.time_ns > since_ns
    times = _seconds(memory)[kept]
    if not times.size:
        return None
    rates = [generator.rate.series.finite() for generator in load if generator.rate is not None]
    sent = np.interp(times, _seconds(rates[0]), rates[0].values) if rates and len(rates[0]) else None
    return Course(times, np.asarray(memory.values, dtype=np.float64)[kept], sent)


def _begin_of(pids: Series, pid: int) -> int:
    """When the last other process of the name was seen, UTC ns; 0 if there was none."""
    others = pids.time_ns[np.asarray(pids.values) != pid]
    return int(others[-1]) if len(others) else 0


def _seconds(series: Series) -> NDArray[np.float64]:
    return np.asarray(series.time_ns, dtype=np.float64) * 1e-9
