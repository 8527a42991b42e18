"""InfluxQL queries for grafana-foundation-sdk: of panels, variables and annotations.

InfluxDB 1.8, 2 and 3 all support InfluxQL. The schema is that of the sink ``influxdb``: measurement = metric name,
field ``value``, tags run, target, role, phase and the labels of the object.
"""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Self

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef

from soakwatch_model.metric import BY_NAME

SOURCE_UID = "soakwatch-influxql"
SOURCE = DataSourceRef(type_val="influxdb", uid="${source}")
"""The variable ``source``: initially the provisioned data source, whose uid is ``SOURCE_UID``."""
TIME = "$timeFilter"


class Query(Dataquery, Builder["Query"]):
    """One InfluxQL query; ``table`` requests rows instead of series; ``extra`` are keys for annotations."""

    def __init__(
        self,
        query: str,
        alias: str = "",
        *,
        ref: str = "A",
        table: bool = False,
        extra: dict[str, object] | None = None,
    ) -> None:
        self.query, self.alias, self.ref, self.table, self.extra = query, alias, ref, table, extra or {}

    def build(self) -> Self:
        """Itself, as the SDK's builder interface requires."""
        return self

    def lettered(self, letter: str) -> Query:
        """The same query with another letter."""
        return Query(self.query, self.alias, ref=letter, table=self.table, extra=self.extra)

    def to_json(self) -> dict[str, object]:
        """The JSON of a text query for Grafana's InfluxDB data source in InfluxQL mode."""
        shown: dict[str, object] = {"alias": self.alias} if self.alias else {}
        return {
            "datasource": SOURCE,
            "refId": self.ref,
            "query": self.query,
            "rawQuery": True,
            "resultFormat": "table" if self.table else "time_series",
            **shown,
            **self.extra,
        }


def one_of(*variables: str) -> str:
    """Condition: for each variable, the tag of the same name has a chosen value.

    >>> one_of("run")
    '"run" =~ /^${run:regex}$/'
    """
    return " AND ".join(tag_is(name, name) for name in variables)


def tag_is(tag: str, variable: str) -> str:
    """Condition: a tag has a chosen value of a variable with another name.

    >>> tag_is("process", "growing")
    '"process" =~ /^${growing:regex}$/'
    """
    return f'"{tag}" =~ /^${{{variable}:regex}}$/'


def quoted(names: Sequence[str]) -> str:
    """Names quoted for an InfluxQL list."""
    return ", ".join(f'"{name}"' for name in names)


def lettered(queries: Sequence[Query]) -> list[Query]:
    """The queries of a panel, lettered A, B, …"""
    return [query.lettered(letter) for query, letter in zip(queries, ascii_uppercase, strict=False)]


def series(metric: str, where: str, by: Sequence[str], *, of: str = "max", alias: str = "", times: str = "") -> Query:
    """A metric over time, one line for each combination of the tags ``by``; counters as rates per second.

    ``of`` aggregates an interval of the screen (``max``: no spike is lost in 72 hours, however narrow); ``times`` is a
    factor (``8``: bytes to bits). A counter's restart is a gap. Raises KeyError for a metric that is not in the
    catalogue, ValueError for a tag that it does not have.
    """
    value = _reading(metric, by, of)
    query = (
        f'SELECT {value}{f" * {times}" if times else ""} AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(null)"
    )
    return Query(query, alias or " ".join(f"$tag_{tag}" for tag in by))


def total(metric: str, where: str, by: Sequence[str], alias: str, *, of: str = "sum") -> Query:
    """One line: the sum (or ``of``) over the objects that ``by`` distinguishes; counters as rates.

    Raises as ``series`` does.
    """
    return Query(
        f'SELECT {of}("each") AS "value" FROM ({_each(metric, where, by)})'
        f" WHERE {TIME} GROUP BY time($__interval) fill(null)",
        alias,
    )


def spread(metric: str, where: str, by: Sequence[str], word: str) -> Query:
    """Three lines for many objects: maximum, median and minimum of each interval. Raises as ``series`` does."""
    return Query(
        'SELECT max("each") AS "highest", median("each") AS "median", min("each") AS "lowest"'
        f" FROM ({_each(metric, where, by)}) WHERE {TIME} GROUP BY time($__interval) fill(null)",
        f"$col {word}",
    )


def growth(metric: str, where: str, by: Sequence[str], alias: str = "") -> Query:
    """The growth of a level since the start of the view, one line for each combination of ``by``. All lines start at
    zero, so that growth is visible whatever the size. Raises as ``series`` does."""
    query = (
        f'SELECT cumulative_sum(difference({_reading(metric, by, "mean")})) AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(none)"
    )
    return Query(query, alias or " ".join(f"$tag_{tag}" for tag in by))


def increase(metric: str, where: str, by: Sequence[str], alias: str) -> Query:
    """The increase of a counter or level per interval, one line for each combination of ``by``, for rare events, which
    have no useful rate. Raises as ``series`` does."""
    _reading(metric, by, "max")
    query = (
        f'SELECT non_negative_difference(max("value")) AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(none)"
    )
    return Query(query, alias)


def edge(metric: str, where: str, by: Sequence[str], alias: str, *, of: str) -> Query:
    """One line: the minimum or maximum (``of``) over objects with the tags ``by``. Raises as ``series`` does."""
    value = _reading(metric, by, of)
    return Query(
        f'SELECT {value} AS "value" FROM "{metric}" WHERE {where} AND {TIME} GROUP BY time($__interval) fill(null)',
        alias,
    )


def largest(count: int, tag: str, select: str, *, where: str = "") -> str:
    """Query of a variable: the ``count`` values of a tag with the largest ``size`` in ``select``, of rows for which
    ``where`` holds."""
    of_those = f" WHERE {where}" if where else ""
    return f'SELECT "{tag}" FROM (SELECT top("size", {count}) AS "size", "{tag}" FROM ({select}){of_those})'


def _each(metric: str, where: str, by: Sequence[str]) -> str:
    """The maximum of each object in each interval, as the column ``each``."""
    return (
        f'SELECT {_reading(metric, by, "max")} AS "each" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(none)"
    )


def _reading(metric: str, by: Sequence[str], of: str) -> str:
    entry = BY_NAME[metric]
    strange = set(by) - {"run", "target", "role", "phase", *entry.labels}
    if strange:
        raise ValueError(f"{metric} has no label {', '.join(sorted(strange))}: the catalogue gives it {entry.labels}")
    return 'non_negative_derivative(max("value"), 1s)' if entry.kind == "counter" else f'{of}("value")'


def _tags(by: Sequence[str]) -> str:
    return "".join(f', "{tag}"' for tag in by)


def by_labels(values: Sequence[str], select: str, labels: Sequence[str]) -> Query:
    """A table with a column for each label; ``select`` is a query without GROUP BY.

    The labels are columns of an outer query and not its tags, because Grafana orders the tags of a table by iterating a
    Go map, which differs from row to row.
    """
    columns = quoted([*values, *labels])
    return Query(f"SELECT {columns} FROM ({select} GROUP BY {quoted(labels)})", table=True)


def counted_in_view(metric: str, where: str, labels: Sequence[str], name: str) -> str:
    """A query for ``by_labels``: what a counter counted in the view, ignoring restarts. Raises as ``series`` does."""
    _reading(metric, labels, "max")
    each = quoted(["target", *BY_NAME[metric].labels])
    return (
        f'SELECT sum("more") AS "{name}" FROM (SELECT non_negative_difference("value") AS "more" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY {each})"
    )


def extreme_in_view(metric: str, where: str, labels: Sequence[str], name: str, *, of: str) -> str:
    """A query for ``by_labels``: the maximum or minimum (``of``) in the view. Raises as ``series`` does."""
    _reading(metric, labels, of)
    return f'SELECT {of}("value") AS "{name}" FROM "{metric}" WHERE {where} AND {TIME}'


def counted(condition: str, name: str, *, of: str, measurement: str, where: str) -> Query:
    """The number of points for which ``condition`` holds: 0 if there are points but none matches, no value if there are
    none."""
    here = f'FROM "{measurement}" WHERE {where}'
    return Query(
        f'SELECT sum("{name}") AS "{name}" FROM (SELECT count("{of}") AS "{name}" {here} AND {condition}),'
        f' (SELECT count("{of}") * 0 AS "{name}" {here})'
    )
