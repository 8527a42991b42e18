"""Makes a record of what a Prometheus scraped: last night's data, judged without having polled.

Series are read and mapped as the source ``prometheus`` does, so a run that was polled and one that was imported have
the same series. Each host is a target; a time without a sample is a poll that was not answered.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.core.units import show_seconds
from soakwatch.record.model import Values
from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.prometheus import Config, chosen_entries
from soakwatch.sources.pollers.prometheus.column_mapping import ColumnMapper, Floats, Ints, Key
from soakwatch.sources.pollers.prometheus.map_file import MapEntry
from soakwatch.sources.pollers.prometheus.query_api import (
    Group,
    Query,
    QueryApi,
    Scrape,
    ShownSeries,
    TooMuchError,
    by_exporter,
    evaluated,
    scrapes,
)
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.transport.http import shown, web_access
from soakwatch.transfer.importing.build_series import Imported, ImportedSeries, load_apart
from soakwatch.transfer.importing.files import ImportedRun
from soakwatch.transfer.importing.gather import MAX_READINGS, MAX_SERIES
from soakwatch.transfer.importing.timeline import Timeline
from soakwatch.transfer.importing.write import Due, write_record
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.roles import DUT
from soakwatch_model.sample import Fault, object_labels

WHY_LOST = "Prometheus has no sample for this time"
_TARGET = "prometheus"  # of an expression, which belongs to no single host
_FIRST_S, _LEAST_S, _MOST_S = 3600.0, 15.0, 6 * 3600.0  # of one request
_FEW_READINGS = 100_000
_WAIT_S = 120.0
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to import: the source's keys, from when to when (s since 1970), under which targets and roles."""

    config: Config
    from_s: float
    to_s: float
    target: str | None = None
    role: str = DUT
    roles: Mapping[str, str] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)
    rules: Sequence[str] = ()


@dataclass(slots=True)
class _Exporter:
    """One exporter: its mapper, and the times and values of each series, in parts."""

    mapper: ColumnMapper
    rows: dict[Key, list[tuple[Ints, Floats]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(slots=True)
class _Read:
    """All that was read."""

    exporters: dict[Group, _Exporter] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    unused: set[str] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    readings: int = 0


def known_names(entries: Iterable[MapEntry]) -> str:
    """The selector of every name that is mapped."""
    names = sorted({name for entry in entries for name in (entry.name, entry.less) if name})
    return f'{{__name__=~"{"|".join(names)}"}}'


async def read_prometheus(
    folder: Path, name: str, wanted: Wanted, command: Sequence[str], progress: Callable[[str], None]
) -> ImportedRun:
    """Makes a record in ``folder``. Raises DataError, PlanError and RecordError."""
    try:
        entries = chosen_entries(wanted.config)
    except PlanError as error:
        raise PlanError(f"--map: {error}") from None
    try:
        read = await _read_all(wanted, entries, progress)
    except SourceError as error:
        raise DataError(str(error)) from None
    where = shown(wanted.config.url)
    if not any(exporter.rows for exporter in read.exporters.values()):
        raise DataError(_nothing(where, wanted, read))
    parts = _targets(read, wanted, {entry.metric: entry.name for entry in reversed(entries)}, where)
    due = Due(round(wanted.from_s * 1e9), round(wanted.to_s * 1e9), WHY_LOST)
    notes = write_record(folder, name, parts, command, progress, wanted.rules, due, wanted.timeline)
    series = tuple(series for part in parts for series in part.series)
    return ImportedRun(series, (*_notes(where, read), *notes))


async def _read_all(wanted: Wanted, entries: Sequence[MapEntry], progress: Callable[[str], None]) -> _Read:
    config, read = wanted.config, _Read()
    queries = [Query(each.expr, each.name) for each in config.query]
    async with AsyncExitStack() as stack:
        api = QueryApi(await web_access(config, "--prometheus", _WAIT_S, stack), config.url)
        await api.now_s()
        kinds = await api.kinds()
        begin_s, width_s = wanted.from_s - 0.001, _FIRST_S  # a sample at that very moment counts
        while begin_s < wanted.to_s:
            end_s = min(begin_s + width_s, wanted.to_s)
            progress(f"{(begin_s - wanted.from_s) / (wanted.to_s - wanted.from_s):.0%}, {read.readings:,} samples")
            try:
                found = [
                    (query, one) for query in queries for one in await api.series(query, begin_s, end_s, config.step_s)
                ]
            except TooMuchError as error:
                width_s /= 2
                if width_s < _LEAST_S:
                    raise DataError(f"{error}: ask for less with --query") from None
                continue
            before = read.readings
            exporters = by_exporter(found, kinds)
            for group in sorted(exporters, key=partial(_first_shown, exporters)):
                if group not in read.exporters:
                    read.exporters[group] = _Exporter(ColumnMapper(entries, config.keep))
                _take(read, read.exporters[group], group, exporters[group])
            if read.readings > MAX_READINGS:
                raise DataError(f"{shown(config.url)} has more than {MAX_READINGS:,} samples of this: ask for less")
            begin_s = end_s
            width_s = min(_MOST_S, 2 * width_s) if read.readings - before < _FEW_READINGS else width_s
    return read


def _first_shown(exporters: Mapping[Group, Sequence[ShownSeries]], group: Group) -> tuple[float, Group]:
    return min(one.time_s[0] for one in exporters[group]), group


def _take(read: _Read, exporter: _Exporter, group: Group, series: Sequence[ShownSeries]) -> None:
    """All pages of an exporter at once; one by one where only these tell what is valid."""
    mapped = exporter.mapper.map_columns(series)
    if mapped is None:
        _take_pages(read, exporter, scrapes({group: series}))
        return
    for key, part in mapped.rows.items():
        exporter.rows[key].append(part)
        read.readings += part[0].size
    read.used |= mapped.used
    read.unused |= mapped.unused
    read.faults.update(_fault_texts(mapped.faults))


def _fault_texts(faults: Iterable[Fault]) -> Iterator[str]:
    return (f"{fault.metric} {fault.object}: {fault.text}" for fault in faults)


def _take_pages(read: _Read, exporter: _Exporter, pages: Iterable[Scrape]) -> None:
    rows: dict[Key, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for scrape in pages:
        mapped = exporter.mapper.map(scrape.page, round(scrape.time_s * 1e9))
        for sample in mapped.samples:
            times, values = rows[sample.metric, sample.object]
            times.append(sample.time_ns)
            values.append(sample.value)
        read.readings += len(mapped.samples)
        read.used |= mapped.used
        read.unused |= mapped.unused
        read.faults.update(_fault_texts(mapped.faults))
    for key, (times, values) in rows.items():
        exporter.rows[key].append((np.array(times, dtype=np.int64), np.array(values, dtype=np.float64)))


def _targets(read: _Read, wanted: Wanted, name_of: Mapping[str, str], where: str) -> list[Imported]:
    """The series of each exporter under the name of its host. Raises DataError where that cannot be."""
    exporters = {group: exporter for group, exporter in read.exporters.items() if exporter.rows}
    if sum(len(exporter.rows) for exporter in exporters.values()) > MAX_SERIES:
        raise DataError(f"{where} has more than {MAX_SERIES:,} series of this: ask for less with --query")
    names = _names(exporters)
    if wanted.target is not None:
        if len(set(names.values())) > 1:
            shown_names = ", ".join(sorted(set(names.values()))[:_SHOWN])
            raise DataError(
                f"--target {wanted.target}: {where} has several targets ({shown_names}): select one with "
                "--query '{instance=\"…\"}'"
            )
        names = dict.fromkeys(names, wanted.target)
    for target in wanted.roles.keys() - set(names.values()):
        raise DataError(
            f"--role {target}={wanted.roles[target]}: there is no target {target!r}{hint(target, names.values())}"
        )
    parts = []
    for group, exporter in exporters.items():
        target = names[group]
        role = wanted.roles.get(target, wanted.role)
        series = [_series(target, role, key, rows, name_of) for key, rows in exporter.rows.items()]
        file = group[1] or group[0] or where
        parts.append(Imported(file, target, tuple(load_apart(series, target)), ()))
    return parts


def _names(exporters: Mapping[Group, _Exporter]) -> dict[Group, str]:
    """The target of each exporter: its host; with the port, and the job, where two of one host have the same series."""
    hosts = {group: _host(group[1]) or group[0] or _TARGET for group in exporters if not evaluated(group)}
    names: dict[Group, str] = {}
    forms: tuple[Callable[[Group], str], ...] = (lambda group: hosts[group], lambda group: group[1])
    for form in forms:
        for group in hosts.keys() - names.keys():
            twins = [other for other in hosts if other != group and form(other) == form(group)]
            if not any(exporters[other].rows.keys() & exporters[group].rows.keys() for other in twins):
                names[group] = form(group)
    names |= {group: f"{group[0]} {group[1]}" for group in hosts.keys() - names.keys()}
    alone = next(iter(names.values())) if len(set(names.values())) == 1 else _TARGET
    return {**names, **{group: alone for group in exporters if evaluated(group)}}


def _host(instance: str) -> str:
    """The host of an instance.

    >>> _host("fw1:9100"), _host("[2001:db8::1]:9100"), _host("https://fw1/probe"), _host("fw1")
    ('fw1', '2001:db8::1', 'https://fw1/probe', 'fw1')
    """
    host, colon, port = instance.rpartition(":")
    return host.strip("[]") if colon and port.isdecimal() else instance


def _series(
    target: str, role: str, key: Key, rows: Sequence[tuple[Ints, Floats]], name_of: Mapping[str, str]
) -> ImportedSeries:
    metric, name = key
    entry = BY_NAME[metric]
    time_ns, value = (np.concatenate(part) for part in zip(*rows, strict=True))
    whole = entry.kind == COUNTER and bool(((np.abs(value) < 2**63) & (value == np.floor(value))).all())
    array: Values = value.astype(np.int64) if whole else value
    column = name_of.get(metric) or object_labels(name).get("name", metric)
    return ImportedSeries(
        *(target, role, metric, name, entry.unit, entry.kind, None, column),
        time_ns,
        array,
    )


def _nothing(where: str, wanted: Wanted, read: _Read) -> str:
    asked = "; ".join(query.expr for query in wanted.config.query)
    if read.unused:
        return (
            f"{where}: none of the {len(read.unused)} names that it has of {asked} is mapped ({_listed(read.unused)}): "
            "map them with --map NAME=METRIC, or keep them with --keep GLOB"
        )
    length = show_seconds(round(wanted.to_s - wanted.from_s))
    return f"{where} has no sample of {asked[:200]} in the {length} asked for: widen --from and --to, or --query"


def _notes(where: str, read: _Read) -> Iterator[str]:
    unused = read.unused - read.used
    if unused:
        yield f"{len(unused)} names of {where} are not imported ({_listed(unused)}): --map NAME=METRIC or --keep GLOB"
    for text, count in read.faults.most_common(_SHOWN):
        yield f"{text} ({count} times)" if count > 1 else text


def _listed(names: Iterable[str]) -> str:
    some = sorted(names)
    return ", ".join(some[:_SHOWN]) + (" …" if len(some) > _SHOWN else "")
