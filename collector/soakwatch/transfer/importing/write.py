"""Writes imported series as a record: targets, sources with their interval, polls with the missing ones, origin."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.units import plan_seconds
from soakwatch.judge.unjudged_columns import account, measures
from soakwatch.record import Record
from soakwatch.record.bulk import PollStretch, Readings
from soakwatch.record.meta import GROWTH_KEY, IMPORTED_KEY, LEFT_OUT, RULES_KEY, UNPOLLED, UNREAD
from soakwatch.record.model import USER_ORIGIN as EVENTS
from soakwatch.transfer.importing.build_series import Imported, ImportedSeries
from soakwatch.transfer.importing.cadence import Polls, interval_of, polls_of
from soakwatch.transfer.importing.timeline import Timeline
from soakwatch.transfer.importing.unanswered import LastReadings, RunReadings
from soakwatch_model.metric import BY_NAME
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_rules.wording.quantities import first_few

SOURCE = "import"
WHY_LOST = "the file has no line for this time"
WHY_UNANSWERED = "no reading of it for this time, while others go on"
_STRETCH_POLLS = 50_000
_STRETCH_SAMPLES = 400_000
_ALIKE = 1.25  # series whose intervals differ by less than this factor share a source


@dataclass(frozen=True, slots=True)
class Due:
    """From when to when readings were due (None: first to last reading), and why some are missing."""

    begin_ns: int | None = None
    end_ns: int | None = None
    why: str = WHY_LOST


def write_record(
    folder: Path,
    name: str,
    imported: Sequence[Imported],
    command: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    rules: Sequence[str] = (),
    due: Due | None = None,
    timeline: Timeline | None = None,
) -> tuple[str, ...]:
    """Writes a new record of imported series in ``folder``, to be judged by ``rules`` (if none, by all that know its
    metrics); returns notes. ``due`` is when readings were due; default: through all phases of the ``timeline``, else to
    the end of the table. A due poll missing for one target while others go on is unanswered; if all stop at once, the
    monitor stopped. Raises DataError and RecordError."""
    series = [item for part in imported for item in part.series]
    begin_ns = min(int(item.time_ns[0]) for item in series)
    end_ns = max(int(item.time_ns[-1]) for item in series)
    phases = () if timeline is None else timeline.phases_in(begin_ns, end_ns)
    if due is None:
        due = Due(phases[0].window.begin_ns, phases[-1].window.end_ns) if phases else Due()
    roles = {item.target: item.role for item in series}
    if DUT not in roles.values() and GENERATOR in roles.values():
        roles = {imported[0].target: DUT, **roles}  # a load alone still measures the device behind it
    events = () if timeline is None else timeline.events_in(begin_ns, end_ns, roles)
    notes: list[str] = []
    with Record.create(folder) as record:
        for target, role in sorted(roles.items()):
            record.target(target, role)
        last_ns = 0
        sources = list(_together(imported))
        others, lasts = _others(sources), _lasts(imported, roles)
        for target, file, part in sources:
            # The polls that the readings imply, answered, lost, or unanswered by the target alone.
            axes = [item.time_ns for item in part]
            own_ns = max(int(axis[-1]) for axis in axes)
            until_ns = lasts.due_until(target, file, own_ns, interval_of(max(axes, key=len))[0])
            polls = polls_of(axes, due.begin_ns, until_ns if due.end_ns is None else due.end_ns)
            unanswered = others.unanswered_by_target(polls)
            label = f"{Path(file).name} every {plan_seconds(polls.interval_ns * 1e-9)}"
            if progress is not None:
                progress(f"{target}: {label}")
            if not polls.regular and polls.time_ns.size > 1:
                notes.append(f"{file}: the lines of {_names(part)} come at irregular times: none counts as missing")
            last_ns = max(last_ns, int(polls.time_ns[-1]))
            # Written in stretches, so that a long table needs little memory.
            name_of = SOURCE if polls.regular else UNPOLLED
            source = record.source(target, name_of, label, polls.interval_ns, required=True)
            for stretch in _stretches(polls, unanswered, part, due.why):
                record.put_columns(source, stretch)
        for phase in phases:
            record.begin_phase(phase.name, phase.window.begin_ns)
            record.end_phase(phase.window.end_ns)
        for event in events:
            record.add_event(event.target, event, EVENTS)
        facts = {
            "run": name,
            "command": " ".join(command),
            "start_ns": str(begin_ns),
            "ended_ns": str(last_ns),
            GROWTH_KEY: json.dumps({item.metric: item.growth for item in series if item.growth and _outside(item)}),
            RULES_KEY: json.dumps(list(rules)),
            IMPORTED_KEY: json.dumps([_origin(part) for part in imported]),
        }
        for key, value in facts.items():
            record.set_meta(key, value)
        record.finish()
    return tuple(notes)


def _origin(part: Imported) -> dict[str, object]:
    """What the record says of one file: its notes, readings by target, columns, and what was not read or left out."""
    unread = (
        (item.column, item.target, item.metric, item.suspected_metric, item.value)
        for item in part.series
        if _outside(item)
    )
    return {
        "file": part.file,
        "notes": list(part.notes),
        "readings": Counter(item.target for item in part.series if measures(item.value)),
        UNREAD: account(unread),
        LEFT_OUT: [
            {"column": item.column, "target": item.target, "why": item.refused, "share": item.refused_share}
            for item in part.series
            if item.refused
        ],
        "columns": {item.column: f"{item.target} {item.metric} {item.object}".strip() for item in part.series},
    }


def _outside(series: ImportedSeries) -> bool:
    return series.metric not in BY_NAME


def _names(part: Sequence[ImportedSeries]) -> str:
    return first_few(list(dict.fromkeys(item.column for item in part)))


def _together(imported: Iterable[Imported]) -> Iterator[tuple[str, str, list[ImportedSeries]]]:
    """Groups each target's series of about the same interval into sources; yields target, file and series."""
    for part in imported:
        ordered = sorted(part.series, key=lambda item: item.target)
        for target, group in groupby(ordered, key=lambda item: item.target):
            paced = sorted(((interval_of(item.time_ns)[0], index, item) for index, item in enumerate(group)))
            some: list[ImportedSeries] = []
            slowest = 0.0
            for interval_ns, _, item in paced:
                if some and interval_ns > slowest:
                    yield target, part.file, some
                    some = []
                if not some:
                    slowest = _ALIKE * interval_ns
                some.append(item)
            yield target, part.file, some


def _others(sources: Sequence[tuple[str, str, list[ImportedSeries]]]) -> RunReadings:
    """The readings of all sources of the run."""
    paced = []
    for _, _, part in sources:
        axes = {id(item.time_ns): item.time_ns for item in part}
        together = next(iter(axes.values())) if len(axes) == 1 else np.unique(np.concatenate(list(axes.values())))
        paced.append((together, interval_of(max(axes.values(), key=len))[0]))
    return RunReadings.of(paced)


def _lasts(imported: Sequence[Imported], roles: Mapping[str, str]) -> LastReadings:
    last_ns: dict[tuple[str, str], int] = {}
    for part in imported:
        for item in part.series:
            key = item.target, part.file
            last_ns[key] = max(last_ns.get(key, 0), int(item.time_ns[-1]))
    return LastReadings(last_ns, frozenset(target for target, role in roles.items() if role == GENERATOR))


def _stretches(
    polls: Polls, unanswered: NDArray[np.bool_], series: Sequence[ImportedSeries], why: str
) -> Iterator[PollStretch]:
    """The polls in pieces of bounded size, each with its readings."""
    size = max(1, min(_STRETCH_POLLS, _STRETCH_SAMPLES // len(series)))
    due_ns = polls.time_ns[polls.answered]
    where = np.flatnonzero(polls.answered)
    for begin in range(0, polls.time_ns.size, size):
        end = min(begin + size, polls.time_ns.size)
        low, high = np.searchsorted(where, [begin, end])
        times = due_ns[low:high]
        # A reading belongs to the last answered poll not after it; there is one, since polls are made of readings.
        first_ns = times[0] if times.size else 0
        last_ns = due_ns[high] if high < due_ns.size else np.iinfo(np.int64).max
        readings = []
        for item in series if times.size else ():
            first, last = np.searchsorted(item.time_ns, [first_ns, last_ns])
            if first == last:
                continue
            time_ns = item.time_ns[first:last]
            position = where[low:high][np.searchsorted(times, time_ns, side="right") - 1] - begin
            readings.append(
                Readings(item.metric, item.object, item.unit, item.kind, position, time_ns, item.value[first:last])
            )
        yield PollStretch(
            polls.time_ns[begin:end],
            polls.answered[begin:end],
            why,
            readings,
            unanswered=unanswered[begin:end],
            why_unanswered=WHY_UNANSWERED,
        )
