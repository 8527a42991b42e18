"""InfluxQL as grafana-foundation-sdk wants to have it: one query of a panel, of a variable, of an annotation.

InfluxQL, because InfluxDB 1.8, 2 and 3 all speak it. What is asked for is what the sink ``influxdb`` writes:
measurement = metric name, field ``value``, tags run, target, role, phase and the labels of the object.
"""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef

from soakwatch_agent.metric import BY_NAME

SOURCE_UID = "soakwatch-influxql"
SOURCE = DataSourceRef(type_val="influxdb", uid=SOURCE_UID)
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
    return " AND ".join(f'"{name}" =~ /^${{{name}:regex}}$/' for name in variables)


def quoted(names: Sequence[str]) -> str:
    """Names as InfluxQL has them in lists."""
    return ", ".join(f'"{name}"' for name in names)


def series(
    metric: str, where: str, by: Sequence[str], *, of: str = "max", ref: str = "A", alias: str = "", times: str = ""
) -> Query:
    """A metric over time, one line for each combination of the tags ``by``: a counter as its rate per second.

    ``of`` is what stands for an interval of the screen (``max``: no spike is lost in 72 hours, however narrow);
    ``times`` multiplies (``8``: bytes as bits). A counter's restart is no rate and leaves a hole. Raises KeyError for
    a metric that is not in the catalogue, and ValueError for a tag that it does not have.
    """
    entry = BY_NAME[metric]
    strange = set(by) - {"run", "target", "role", "phase", *entry.labels}
    if strange:
        raise ValueError(f"{metric} has no label {', '.join(sorted(strange))}: the catalogue gives it {entry.labels}")
    value = 'non_negative_derivative(max("value"), 1s)' if entry.kind == "counter" else f'{of}("value")'
    grouped = "".join(f', "{tag}"' for tag in by)
    query = (
        f'SELECT {value}{f" * {times}" if times else ""} AS "value" FROM "{metric}"'
        f" WHERE {where} AND {TIME} GROUP BY time($__interval){grouped} fill(null)"
    )
    return Query(query, alias or " ".join(f"$tag_{tag}" for tag in by), ref=ref)


def by_labels(values: Sequence[str], select: str, labels: Sequence[str], *, ref: str = "A") -> Query:
    """A table with a column for each label: ``select`` is a query that groups by nothing but them.

    They are columns of an outer query and not its tags: Grafana puts the tags of a table into columns in the order of a
    map in Go, which is another in each row.
    """
    columns = quoted([*values, *labels])
    return Query(f"SELECT {columns} FROM ({select} GROUP BY {quoted(labels)})", ref=ref, table=True)


def counted(condition: str, name: str, *, of: str, measurement: str, where: str) -> Query:
    """How many points meet a condition: 0 where there are points and none meets it, nothing where there are none."""
    here = f'FROM "{measurement}" WHERE {where}'
    return Query(
        f'SELECT sum("{name}") AS "{name}" FROM (SELECT count("{of}") AS "{name}" {here} AND {condition}),'
        f' (SELECT count("{of}") * 0 AS "{name}" {here})'
    )
