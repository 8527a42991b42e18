"""Readings and polls of a run, read from points in order of time, in time windows of bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.bulk import PollFacts
from soakwatch.record.model import OUTCOME_NUMBERS, Ints, Source, Values, source_label
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks.influxdb.read.account import Account
from soakwatch.transfer.sinks.influxdb.read.asking import Cell, Influx, SeriesChunk, quoted, text
from soakwatch.transfer.sinks.lines import LONGEST, key
from soakwatch_model.sample import PollOutcome, object_labels

MAX_READINGS_AT_ONCE = 400_000  # readings held in memory
_MAX_MEASUREMENTS = 40  # measurements in one query
_NOT_OF_SERIES = frozenset({"run", "role", "phase"})
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class Points:
    """The readings of one series in one time window."""

    time_ns: list[Ints] = field(default_factory=list)
    value: list[NDArray[np.float64]] = field(default_factory=list)

    def ordered(self, *, whole: bool) -> tuple[Ints, Values]:
        """In order of time, each time once; as integers if ``whole``."""
        time_ns: Ints = np.concatenate(self.time_ns)
        value: NDArray[np.float64] = np.concatenate(self.value)
        if time_ns.size > 1 and not bool((time_ns[1:] > time_ns[:-1]).all()):
            time_ns, first = np.unique(time_ns, return_index=True)
            value = value[first]
        if not whole:
            return time_ns, value
        if value.size and float(value.max()) >= 2.0**63:
            return time_ns, value.astype(np.uint64)
        return time_ns, value.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PollPoints:
    """The polls of one source in one time window, in the order of their numbers (``seq``)."""

    due_ns: Ints
    facts: PollFacts


def edges_of(influx: Influx, account: Account, run: str) -> list[int]:
    """Times that split the run into windows of about ``MAX_READINGS_AT_ONCE`` readings; the outer windows are open."""
    pieces = -(-(account.readings + account.polls) // MAX_READINGS_AT_ONCE)
    edges: list[int] = []
    for word in ("first", "last"):
        query = f'SELECT {word}("ok") FROM "soakwatch_poll" WHERE "run" = {text(run)}'  # noqa: S608
        edges += [int(row[0]) for chunk in influx.chunks(query) for row in chunk.rows if isinstance(row[0], int)]
    if pieces < 2 or len(edges) < 2 or edges[1] <= edges[0]:
        return []
    steps = np.linspace(edges[0], edges[1], pieces + 1)[1:-1]
    return [int(step) for step in steps]


def windows(edges: Sequence[int]) -> list[str]:
    """The query conditions of the windows, in order of time; together they cover all times."""
    if not edges:
        return [""]
    inner = [f" AND time >= {low} AND time < {high}" for low, high in pairwise(edges)]
    return [f" AND time < {edges[0]}", *inner, f" AND time >= {edges[-1]}"]


class Names:
    """Finds the series or source of a point by the names that the sink wrote."""

    def __init__(self, account: Account, sources: Sequence[Source], where: str) -> None:
        self._where = where
        self.series: dict[str, int] = {}
        for number, (target, metric, name, *_) in enumerate(account.series):
            head = key(metric, {"target": target}, object_labels(name))
            if head in self.series:
                raise DataError(
                    f"{where}: two series of {metric} of {target} have one name in InfluxDB ({name}): "
                    "judge the record itself"
                )
            self.series[head] = number
        self.sources: dict[str, int] = {}
        for source in sources:
            label = source_label(source, sources).removeprefix(f"{source.target}/")
            self.sources[_source_key(source.target, label)] = source.id
        for source in sources:  # while a target had no other source of that name, the sink wrote the name alone
            self.sources.setdefault(_source_key(source.target, source.name), source.id)

    def series_of(self, chunk: SeriesChunk) -> int:
        """The number of a chunk's series. Raises DataError."""
        tags = {name: value for name, value in chunk.tags.items() if name not in _NOT_OF_SERIES}
        number = self.series.get(key(chunk.name, tags, {}))
        if number is None:
            shown = ", ".join(f"{name}={value}" for name, value in tags.items())
            raise DataError(
                f"{self._where}: there are samples of {chunk.name} ({shown[:200]}) that the run does not "
                "have: two runs may have been sent under one name"
            )
        return number

    def source_of(self, chunk: SeriesChunk) -> int:
        """The number of a chunk's source. Raises DataError."""
        target, label = chunk.tags.get("target", ""), chunk.tags.get("source", "")
        number = self.sources.get(_source_key(target, label))
        if number is None:
            raise DataError(
                f"{self._where}: there are polls of {target}/{label} that the run does not have: two runs "
                "may have been sent under one name"
            )
        return number


def _source_key(target: str, label: str) -> str:
    return key("soakwatch_poll", {"target": target, "source": label}, {})


def readings_in(
    influx: Influx, account: Account, run: str, names: Names, window: str
) -> dict[int, tuple[Ints, Values]]:
    """The readings in a time window by series number. Raises DataError."""
    points_of: dict[int, Points] = {}
    measurements = list(dict.fromkeys(_measurement(metric) for _, metric, *_ in account.series))
    for low in range(0, len(measurements), _MAX_MEASUREMENTS):
        some = measurements[low : low + _MAX_MEASUREMENTS]
        listed = ", ".join(quoted(name) for name in some)
        query = f'SELECT "value" FROM {listed} WHERE "run" = {text(run)}{window} GROUP BY *'  # noqa: S608
        for chunk in influx.chunks(query):
            points = points_of.setdefault(names.series_of(chunk), Points())
            times, values = zip(*chunk.rows, strict=True)
            points.time_ns.append(np.array(times, dtype=np.int64))
            points.value.append(np.array(values, dtype=np.float64))
    readings = {number: points.ordered(whole=account.series[number][6]) for number, points in points_of.items()}
    for number in readings.keys() & account.left_out.keys():
        time_ns, value = readings[number]
        kept = ~np.isin(time_ns, account.left_out[number])
        readings[number] = time_ns[kept], value[kept]
    return {number: reading for number, reading in readings.items() if reading[0].size}


def _measurement(metric: str) -> str:
    r"""A measurement's name as the server stores it.

    >>> _measurement("imported.a b")
    'imported.a b'
    """
    return key(metric, {}, {}).replace("\\,", ",").replace("\\ ", " ")


def polls_in(influx: Influx, run: str, names: Names, window: str, errors: Mapping[str, str]) -> dict[int, PollPoints]:
    """The polls in a time window by source number; ``errors`` maps error texts as points hold them to the original
    ones."""
    rows_of: dict[int, list[tuple[int, int, int, int, int, str | None]]] = {}
    query = (
        f'SELECT "seq", "late_s", "duration_s", "error" FROM "soakwatch_poll" WHERE "run" = {text(run)}{window}'  # noqa: S608
        ' GROUP BY "target", "source", "outcome"'
    )
    for chunk in influx.chunks(query):
        rows = rows_of.setdefault(names.source_of(chunk), [])
        outcome = OUTCOME_NUMBERS[PollOutcome(chunk.tags["outcome"])]
        columns = [chunk.columns.index(name) for name in ("time", "seq", "late_s", "duration_s", "error")]
        for row in chunk.rows:
            due, seq, late, duration, error = (row[column] for column in columns)
            if seq is None:  # no poll of its own: it says that a lost one was answered later
                continue
            due_ns = int(_number(due))
            reason = None if error is None else errors.get(str(error), str(error))
            rows.append((round(_number(seq)), due_ns, due_ns + _ns(late), _ns(duration), outcome, reason))
    return {source: _poll_points(rows) for source, rows in rows_of.items() if rows}


def as_points_hold_it(original: str) -> str:
    r"""A text as it comes back from a text field.

    >>> as_points_hold_it("a\nb")
    'a b'
    """
    return original[:LONGEST].translate({ord("\n"): " ", ord("\r"): " ", 0: "\u2400"})


def _poll_points(rows: list[tuple[int, int, int, int, int, str | None]]) -> PollPoints:
    once = {row[0]: row for row in rows}  # a poll sent again under another phase counts once
    _, due, start, duration, outcome, error = zip(*(once[seq] for seq in sorted(once)), strict=True)
    columns = [np.array(column, dtype=np.int64) for column in (due, start, duration, outcome)]
    return PollPoints(columns[0], PollFacts(columns[1], columns[2], columns[3], error))


def _number(cell: Cell) -> float:
    return cell if isinstance(cell, int | float) else 0.0


def _ns(cell: Cell) -> int:
    return round(_number(cell) * 1e9)


def position_of(polls: PollPoints | None, time_ns: Ints) -> Ints:
    """The index of the poll that brought each reading: the last one that began before it."""
    if polls is None:
        return _EMPTY
    begun = np.maximum.accumulate(polls.facts.start_ns)
    position: Ints = np.maximum(np.searchsorted(begun, time_ns, side="right") - 1, 0)
    return position
