"""InfluxQL as grafana-foundation-sdk wants to have it: one query of a panel, of a variable, of an annotation.

InfluxQL, because InfluxDB 1.8, 2 and 3 all speak it. What is asked for is what the sink ``influxdb`` writes:
measurement = metric name, field ``value``, tags run, target, role, phase and the labels of the object.
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
"""What the variable ``source`` says: at first the provisioned one, whose uid is ``SOURCE_UID``."""
TIME = "$timeFilter"


class Query(Dataquery, Builder["Query"]):
    """One InfluxQL query; ``table`` asks for rows instead of series; ``extra`` are keys that annotations have."""

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
        """Itself: it is complete."""
        return self

    def lettered(self, letter: str) -> Query:
        """The same query under another letter."""
        return Query(self.query, self.alias, ref=letter, table=self.table, extra=self.extra)

    def to_json(self) -> dict[str, object]:
        """What Grafana's InfluxDB data source reads in InfluxQL mode with a query as text."""
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
    """The condition that a tag of the same name as each variable has one of the chosen values.

    >>> one_of("run")
    '"run" =~ /^${run:regex}$/'
    """
    return " AND ".join(tag_is(name, name) for name in variables)


def tag_is(tag: str, variable: str) -> str:
    """The condition that a tag has one of the chosen values of a variable of another name.

    >>> tag_is("process", "growing")
    '"process" =~ /^${growing:regex}$/'
    """
    return f'"{tag}" =~ /^${{{variable}:regex}}$/'


def quoted(names: Sequence[str]) -> str:
    """Names as InfluxQL has them in lists."""
    return ", ".join(f'"{name}"' for name in names)


def lettered(queries: Sequence[Query]) -> list[Query]:
    """The queries of a panel with the letters A, B, … in their order."""
    return [query.lettered(letter) for query, letter in zip(queries, ascii_uppercase, strict=False)]


def series(metric: str, where: str, by: Sequence[str], *, of: str = "max", alias: str = "", times: str = "") -> Query:
    """A metric over time, one line for each combination of the tags ``by``: a counter as its rate per second.

    ``of`` is what stands for an interval of the screen (``max``: no spike is lost in 72 hours, however narrow);
    ``times`` multiplies (``8``: bytes as bits). A counter's restart is no rate and leaves a hole. Raises KeyError for
    a metric that is not in the catalogue, and ValueError for a tag that it does not have.
    """
    value = _reading(metric, by, of)
    query = (
        f'SELECT {value}{f" * {times}" if times else ""} AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(null)"
    )
    return Query(query, alias or " ".join(f"$tag_{tag}" for tag in by))


def total(metric: str, where: str, by: Sequence[str], alias: str, *, of: str = "sum") -> Query:
    """One line: the sum (or the maximum: ``of``) over the objects that ``by`` tells apart, a counter's of its rates.

    Raises as ``series`` does.
    """
    return Query(
        f'SELECT {of}("each") AS "value" FROM ({_each(metric, where, by)})'
        f" WHERE {TIME} GROUP BY time($__interval) fill(null)",
        alias,
    )


def spread(metric: str, where: str, by: Sequence[str], word: str) -> Query:
    """Three lines for many objects: the highest, the median and the lowest of each interval. Raises as ``series``
    does."""
    return Query(
        'SELECT max("each") AS "highest", median("each") AS "median", min("each") AS "lowest"'
        f" FROM ({_each(metric, where, by)}) WHERE {TIME} GROUP BY time($__interval) fill(null)",
        f"$col {word}",
    )


def growth(metric: str, where: str, by: Sequence[str], alias: str = "") -> Query:
    """How much a level has grown since the view began, one line for each combination of ``by``; raises as ``series``
    does. Lines of large and of small objects begin at zero together, so that what grows is what rises."""
    query = (
        f'SELECT cumulative_sum(difference({_reading(metric, by, "mean")})) AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(none)"
    )
    return Query(query, alias or " ".join(f"$tag_{tag}" for tag in by))


def increase(metric: str, where: str, by: Sequence[str], alias: str) -> Query:
    """How much a counter or a level rose from one interval to the next, one line for each combination of ``by``: what
    is rare is counted and has no rate. Raises as ``series`` does."""
    _reading(metric, by, "max")
    query = (
        f'SELECT non_negative_difference(max("value")) AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){_tags(by)} fill(none)"
    )
    return Query(query, alias)


def edge(metric: str, where: str, by: Sequence[str], alias: str, *, of: str) -> Query:
    """One line: the lowest or the highest (``of``: min, max) of the objects, which have the tags ``by``. Raises as
    ``series`` does."""
    value = _reading(metric, by, of)
    return Query(
        f'SELECT {value} AS "value" FROM "{metric}" WHERE {where} AND {TIME} GROUP BY time($__interval) fill(null)',
        alias,
    )


def largest(count: int, tag: str, select: str, *, where: str = "") -> str:
    """A variable's query: the ``count`` values of a tag of which the column ``size`` of ``select`` is largest, of those
    rows that meet the condition ``where``."""
    of_those = f" WHERE {where}" if where else ""
    return f'SELECT "{tag}" FROM (SELECT top("size", {count}) AS "size", "{tag}" FROM ({select}){of_those})'


def _each(metric: str, where: str, by: Sequence[str]) -> str:
    """The highest reading of each object in each interval, as the column ``each``."""
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
    """A table with a column for each label: ``select`` is a query that groups by nothing but them.

    They are columns of an outer query and not its tags: Grafana puts the tags of a table into columns in the order of a
    map in Go, which is another in each row.
    """
    columns = quoted([*values, *labels])
    return Query(f"SELECT {columns} FROM ({select} GROUP BY {quoted(labels)})", table=True)


def counted_in_view(metric: str, where: str, labels: Sequence[str], name: str) -> str:
    """A query for ``by_labels``: how much a counter counted in the view; its restarts add nothing. Raises as ``series``
    does."""
    _reading(metric, labels, "max")
    each = quoted(["target", *BY_NAME[metric].labels])
    return (
        f'SELECT sum("more") AS "{name}" FROM (SELECT non_negative_difference("value") AS "more" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY {each})"
    )


def extreme_in_view(metric: str, where: str, labels: Sequence[str], name: str, *, of: str) -> str:
    """A query for ``by_labels``: the highest or lowest (``of``: max, min) of the view; raises as ``series`` does."""
    _reading(metric, labels, of)
    return f'SELECT {of}("value") AS "{name}" FROM "{metric}" WHERE {where} AND {TIME}'


def counted(condition: str, name: str, *, of: str, measurement: str, where: str) -> Query:
    """How many points meet a condition: 0 where there are points and none meets it, nothing where there are none."""
    here = f'FROM "{measurement}" WHERE {where}'
    return Query(
        f'SELECT sum("{name}") AS "{name}" FROM (SELECT count("{of}") AS "{name}" {here} AND {condition}),'
        f' (SELECT count("{of}") * 0 AS "{name}" {here})'
    )
