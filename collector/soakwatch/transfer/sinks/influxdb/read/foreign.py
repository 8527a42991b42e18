"""Makes a record of series that others collected (mostly Telegraf): recognised, mapped to the catalogue, and
reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from soakwatch.core.suggest import hint
from soakwatch.record.model import Ints, Values
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.build_series import Imported, ImportedSeries
from soakwatch.transfer.importing.files import ImportedRun
from soakwatch.transfer.importing.gather import MAX_SERIES
from soakwatch.transfer.importing.plausibility import possible
from soakwatch.transfer.importing.write import Due, write_record
from soakwatch.transfer.sinks.influxdb.read.address import Database
from soakwatch.transfer.sinks.influxdb.read.asking import Influx
from soakwatch.transfer.sinks.influxdb.read.mapping import Entry, FieldMap, filled
from soakwatch.transfer.sinks.influxdb.read.reading import NUMBERS, Measurement, Tagged, measurements_of, read
from soakwatch_model.metric import BY_NAME
from soakwatch_model.roles import DUT
from soakwatch_model.sample import object_text

OWN = "soakwatch_"
WHY_LOST = "the database has no sample for this time"
_SHOWN = 12
_FEW = 3

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to import foreign series: with which mapping, under which target and role, for which rules."""

    mapping: FieldMap
    target: str | None = None
    role: str = DUT
    growth: str | None = None
    rules: Sequence[str] = ()


@dataclass(slots=True)
class _Collected:
    """The series so far, each with the entry and tags it was made from, and notes to report."""

    series: dict[Key, tuple[Entry, Tagged, ImportedSeries]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def import_series(
    database: Database, folder: Path, name: str, wanted: Wanted, command: Sequence[str], progress: Callable[[str], None]
) -> ImportedRun:
    """Make a record of what is recognised in a bucket. Raises DataError and RecordError."""
    collected = _Collected()
    with Influx(database) as influx:
        influx.check()
        known = measurements_of(influx)
        fields, unknown = _chosen(known, wanted.mapping)
        if not fields:
            raise DataError(_nothing(influx, unknown))
        ones: dict[str, frozenset[str]] = {}
        for measurement, names in fields.items():
            ones |= {
                name: frozenset(entry.one)
                for entry in wanted.mapping.of(measurement)
                if entry.one
                for name, _ in entry.names()
                if name in names
            }
        for tagged in read(influx, fields, known, ones, progress):
            for entry in wanted.mapping.of(tagged.measurement):
                _take(entry, tagged, wanted, collected)
                if len(collected.series) > MAX_SERIES:
                    raise DataError(f"{database.shown} holds more than {MAX_SERIES} series: ask for less with host=")
    if not collected.series:
        raise DataError(
            f"{database.shown} has no sample of {', '.join(list(fields)[:_SHOWN])} that is asked for: "
            "widen from=, to= and host="
        )
    series = _renamed([row for _, _, row in collected.series.values()], wanted.target, database)
    of: dict[str, list[ImportedSeries]] = {}
    for (_, tagged, _), row in zip(collected.series.values(), series, strict=True):
        of.setdefault(tagged.measurement, []).append(row)
    parts = [Imported(measurement, some[0].target, tuple(some), ()) for measurement, some in of.items()]
    last_ns = max(int(row.time_ns[-1]) for row in series)
    due = Due(database.from_ns, last_ns if database.to_ns is None else database.to_ns, WHY_LOST)
    notes = write_record(folder, name, parts, command, progress, wanted.rules, due)
    return ImportedRun(tuple(series), (*_unrecognised(unknown), *dict.fromkeys(collected.notes), *notes))


def _chosen(known: Mapping[str, Measurement], mapping: FieldMap) -> tuple[dict[str, list[str]], list[str]]:
    """The fields to read of each measurement, and the measurements that no entry maps."""
    fields: dict[str, list[str]] = {}
    unknown = []
    for name, measurement in sorted(known.items()):
        if name.startswith(OWN):
            continue
        wanted: dict[str, None] = {}
        for entry in mapping.of(name):
            needed = [field_name for field_name, _ in entry.names()]
            if all(_usable(measurement, field_name, entry) for field_name in needed):
                wanted.update(dict.fromkeys(needed))
        if wanted:
            fields[name] = list(wanted)
        else:
            unknown.append(name)
    return fields, unknown


def _usable(measurement: Measurement, field_name: str, entry: Entry) -> bool:
    types = measurement.types.get(field_name, frozenset())
    return bool(types & NUMBERS) or bool(types and entry.one)


def _take(entry: Entry, tagged: Tagged, wanted: Wanted, collected: _Collected) -> None:
    """Collect the series that an entry makes of a set of tags, if any."""
    if not entry.fits(tagged.tags):
        return
    labels = {label: filled(template, tagged.tags) for label, template in entry.labels.items()}
    target = filled(entry.target, tagged.tags)
    reading = _sum(entry, tagged)
    if reading is None or target is None or any(value is None for value in labels.values()):
        return
    known = BY_NAME.get(entry.metric)
    order = list(labels) if known is None else [label for label in known.labels if label in labels]
    name = object_text(**{label: labels[label] for label in order})
    unit, kind, growth = entry.trait
    more = "" if len(entry.fields) <= _FEW else f"+{len(entry.fields) - 1} more"
    column = f"{tagged.measurement}.{'+'.join(entry.fields[: 1 if more else _FEW])}{more}".replace("+-", "-")
    role = entry.role or wanted.role
    series = ImportedSeries(
        *(target or "host", role, entry.metric, name, unit, kind, growth or (wanted.growth if known is None else None)),
        *(column, *reading),
    )
    kept = _possible(series, collected.notes)
    if kept is not None:
        _add(entry, tagged, kept, collected)


def _sum(entry: Entry, tagged: Tagged) -> tuple[Ints, Values] | None:
    """The sum of an entry's fields, at the times that all of them have."""
    parts = [(*tagged.fields[name], sign) for name, sign in entry.names() if name in tagged.fields]
    if len(parts) < len(entry.fields):
        return None
    time_ns, value, sign = parts[0]
    value = value if sign > 0 else -value
    for times, values, more in parts[1:]:
        if time_ns.size != times.size or not bool((time_ns == times).all()):
            time_ns, here, there = np.intersect1d(time_ns, times, assume_unique=True, return_indices=True)
            value, values = value[here], values[there]  # noqa: PLW2901
        value = value.astype(np.float64) + more * values
    if not time_ns.size:
        return None
    return time_ns, value if entry.factor == 1.0 else value.astype(np.float64) * entry.factor


def _possible(series: ImportedSeries, notes: list[str]) -> ImportedSeries | None:
    """The series without values that its metric cannot have; values that rounding put just beyond a bound are
    clipped."""
    value, good, _ = possible(series.metric, series.value)
    refused = int((~good).sum())
    if not refused:
        return series if value is series.value else replace(series, value=value)
    first = float(series.value[np.flatnonzero(~good)[0]])
    possible_as = f"cannot be {series.metric} in {series.unit} (such as {first:g})"
    what = f"{series.column}: {refused} of {good.size} samples {possible_as}"
    notes.append(f"{what}: {'left out' if 2 * refused <= good.size else 'all of this series are left out'}")
    if 2 * refused > good.size:
        return None
    return replace(series, time_ns=series.time_ns[good], value=value[good], refused=what)


def _add(entry: Entry, tagged: Tagged, series: ImportedSeries, collected: _Collected) -> None:
    """Collect a series. If several sets of tags make one object, they are joined if one follows the other, else their
    names get the tags that differ."""
    key = series.target, series.metric, series.object
    if key not in collected.series:
        collected.series[key] = entry, tagged, series
        return
    first, before, other = collected.series[key]
    if first is not entry or before is tagged:  # an earlier entry has made it already
        return
    if other.time_ns[-1] < series.time_ns[0] or series.time_ns[-1] < other.time_ns[0]:
        early, late = (other, series) if other.time_ns[-1] < series.time_ns[0] else (series, other)
        joined = replace(
            other,
            time_ns=np.concatenate([early.time_ns, late.time_ns]),
            value=np.concatenate([early.value, late.value]),
        )
        collected.series[key] = entry, tagged, joined
        return
    differs = {tag: value for tag, value in tagged.tags.items() if before.tags.get(tag) != value}
    name = ",".join(part for part in (series.object, object_text(**differs)) if part)
    apart = replace(series, object=name)
    collected.series.setdefault((series.target, series.metric, name), (entry, tagged, apart))
    collected.notes.append(
        f"{series.column}: several sets of tags are {series.metric} of {series.object or series.target}: distinguished "
        f"by {', '.join(differs) or 'nothing'}"
    )


def _renamed(series: list[ImportedSeries], target: str | None, database: Database) -> list[ImportedSeries]:
    targets = list(dict.fromkeys(row.target for row in series))
    if target is None:
        return series
    if len(targets) > 1:
        raise DataError(
            f"--target {target}: {database.shown} holds {len(targets)} hosts ({', '.join(targets[:_SHOWN])}): "
            "name one with host="
        )
    return [replace(row, target=target) for row in series]


def _unrecognised(unknown: Sequence[str]) -> Iterator[str]:
    if unknown:
        many = "1 measurement was" if len(unknown) == 1 else f"{len(unknown)} measurements were"
        yield f"{many} not recognised: {_listed(unknown)}; --map FILE.yaml or --map MEASUREMENT.FIELD=METRIC maps them"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def _nothing(influx: Influx, unknown: Sequence[str]) -> str:
    database = influx.database
    runs = influx.names('SHOW TAG VALUES FROM "soakwatch_verdict" WITH KEY = "run"', "value")
    if runs:
        return f"{database.shown} holds runs of Soakwatch: say which with run=NAME{hint('', runs)}"
    if not unknown:
        return f"{database.shown} is empty"
    return (
        f"{database.shown}: none of its {len(unknown)} measurements is recognised ({_listed(unknown)}): map them with "
        "--map FILE.yaml or --map MEASUREMENT.FIELD=METRIC"
    )
