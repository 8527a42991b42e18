"""Alert rules as Grafana's server evaluates them: queries, reduce and math, against a real InfluxDB."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from typing import Literal, TypedDict

from soakwatch_testing.influxd import Influxd

Labels = frozenset[tuple[str, str]]
Numbers = Mapping[Labels, float]
"""A number for each set of labels; NaN where Grafana would have one."""


class Range(TypedDict):
    """Seconds before now."""

    to: int


class Model(TypedDict, total=False):
    """A query of InfluxDB, or an expression."""

    refId: str
    datasource: dict[str, str]
    query: str
    rawQuery: bool
    resultFormat: str
    type: Literal["reduce", "math"]
    expression: str
    reducer: str


class Step(TypedDict):
    """One part of a rule's data."""

    refId: str
    datasourceUid: str
    relativeTimeRange: dict[str, int]
    model: Model


class Rule(TypedDict):
    """An alert rule of a provisioning file."""

    uid: str
    title: str
    condition: str
    data: list[Step]
    dashboardUid: str
    panelId: int
    noDataState: str
    execErrState: str
    annotations: dict[str, str]
    labels: dict[str, str]


class Group(TypedDict):
    """Rules that are evaluated together."""

    orgId: int
    name: str
    folder: str
    interval: str
    rules: list[Rule]


class AlertFile(TypedDict):
    """A file of provisioning/alerting."""

    apiVersion: int
    groups: list[Group]


class Series(TypedDict, total=False):
    """One series of InfluxDB's answer."""

    tags: dict[str, str]
    columns: list[str]
    values: list[list[float | str | None]]


def alarms(rule: Rule, server: Influxd, bucket: str, now_ms: int) -> set[Labels]:
    """The labels for which a rule would alarm now, were its ``for`` over."""
    return set(values_of_alarms(rule, server, bucket, now_ms))


def values_of_alarms(rule: Rule, server: Influxd, bucket: str, now_ms: int) -> Mapping[Labels, Mapping[str, float]]:
    """The labels for which a rule would alarm now, each with the numbers that its texts may name: those of the
    expressions whose labels are among its own, or the other way round. A query without a row silences all of them."""
    answers: dict[str, list[Series]] = {}
    numbers: dict[str, Numbers] = {}
    for step in rule["data"]:
        model, name = step["model"], step["refId"]
        if step["datasourceUid"] != "__expr__":
            answers[name] = series_of(step, server, bucket, now_ms)
        elif model["type"] == "reduce":
            numbers[name] = reduced(answers[model["expression"]], model["reducer"])
        else:
            numbers[name] = computed(model["expression"], numbers)
    if not all(answers.values()):
        return {}
    alarming = [labels for labels, number in numbers[rule["condition"]].items() if number != 0]  # NaN alarms, too
    return {
        labels: {
            name: number for name, of in numbers.items() for own, number in of.items() if own <= labels or labels <= own
        }
        for labels in alarming
    }


def series_of(step: Step, server: Influxd, bucket: str, now_ms: int) -> list[Series]:
    """What the database answers. Raises AssertionError for what Grafana's server cannot replace or read."""
    begin_ms, end_ms = (now_ms - 1000 * step["relativeTimeRange"][key] for key in ("from", "to"))
    query = step["model"]["query"].replace("$timeFilter", f"time >= {begin_ms}ms and time <= {end_ms}ms")
    assert "$" not in re.sub(r"/\^[^/]*\$/", "", query), query
    answer = server.ask("POST", "/query", params={"db": bucket, "epoch": "ms"}, data={"q": query}).json()
    (result,) = answer["results"]
    assert "error" not in result, (query, result)
    answered: list[Series] = result.get("series", [])
    for series in answered:
        assert len(series["columns"]) == 2, query
        assert all(isinstance(row[1], int | float) for row in series["values"]), (query, series)
    return answered


def reduced(answered: list[Series], reducer: str) -> Numbers:
    """Grafana's reduce: a number for each series."""
    assert reducer == "last", reducer
    numbers: dict[Labels, float] = {}
    for series in answered:
        labels = frozenset(series.get("tags", {}).items())
        assert labels not in numbers, labels
        numbers[labels] = float(series["values"][-1][1] or 0)
    return numbers


def computed(expression: str, numbers: Mapping[str, Numbers]) -> Numbers:
    """Grafana's math, as far as the rules use it: comparisons with a number, joined by ``&&``."""
    first, *others = [compared(part, numbers) for part in expression.split(" && ")]
    for other in others:
        first = joined(first, other)
    return first


def compared(part: str, numbers: Mapping[str, Numbers]) -> Numbers:
    """``$name > number`` or ``$name == number``; no number stays none."""
    match = re.fullmatch(r"\$(\w+) (>|==) (-?\d+)", part)
    assert match, part
    compare = {">": operator.gt, "==": operator.eq}[match[2]]
    return {
        labels: number if math.isnan(number) else float(compare(number, float(match[3])))
        for labels, number in numbers[match[1]].items()
    }


def joined(left: Numbers, right: Numbers) -> Numbers:
    """Both, for each pair of which one's labels contain the other's; one single pair of strangers loses its labels."""
    both: dict[Labels, float] = {}
    for mine, a in left.items():
        for other, b in right.items():
            if mine == other or mine < other or other < mine:
                labels = mine | other
                assert labels not in both, labels
                both[labels] = float(bool(a) and bool(b))
    if not both and len(left) == len(right) == 1:
        (a,), (b,) = left.values(), right.values()
        both[frozenset()] = float(bool(a) and bool(b))
    return both
