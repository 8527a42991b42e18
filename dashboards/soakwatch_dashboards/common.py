"""Panels and links that several dashboards share."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_dashboards.board import DEVICE_UID, RUN_UID
from soakwatch_dashboards.influx import TIME, Query, one_of, series
from soakwatch_dashboards.panels import Column, of_load, rows, strip
from soakwatch_dashboards.style import ANSWERED, SEVERITIES

_FIELD = "${{__data.fields.{}}}"
EXACTLY = "from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}"
"""The window of the row that was clicked, in milliseconds, as Grafana's addresses have it."""
THIS_RUN = "var-run=${run:percentencode}"
LOADS = (("load.request.rate", "reqps"), ("load.tx.packet.rate", "pps"))
LOAD_LINES = {"^offered by .* \\(requests\\)$": of_load("reqps"), "^offered by .* \\(packets\\)$": of_load("pps")}


def load(refs: str = "XY") -> list[Query]:
    """What the generators offer, on the time axis of whatever they are laid under."""
    named = zip(refs, LOADS, ("requests", "packets"), strict=True)
    return [
        series(metric, one_of("run"), ("target",), of="mean", ref=ref, alias=f"offered by $tag_target ({what})")
        for ref, (metric, _), what in named
    ]


def coverage(where: str) -> Panel:
    """The strip of lost polls."""
    query = Query(
        f'SELECT min("ok") AS "ok" FROM "soakwatch_poll" WHERE {where} AND {TIME}'
        ' GROUP BY time($__interval), "target", "source" fill(none)',
        "$tag_target $tag_source",
    )
    return strip("Coverage: polls that were answered", query, ANSWERED,
                 "Red: at least one poll in this stretch brought no answer. Nothing: none was due.")  # fmt: skip


def findings(where: str, about: str, *, with_run: bool = False) -> Panel:
    """The findings that are not good, worst first, each with the way to its window."""
    run = '"run", ' if with_run else ""
    query = Query(
        f'SELECT "severity", {run}"rule", "target", "metric", "object", "reason", "begin_ms", "end_ms"'
        f' FROM "soakwatch_finding" WHERE {where} AND "severity" > 0',
        table=True,
    )
    columns = {
        "Time": Column(hidden=True),
        "severity": Column("Outcome", named=SEVERITIES, width=150),
        "run": Column("Run", width=230),
        "rule": Column("Rule", width=170),
        "target": Column("Target", width=130),
        "metric": Column("Metric", width=220),
        "object": Column("Object", width=200),
        "reason": Column("Why"),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    chosen = "var-run=${__data.fields.run}" if with_run else THIS_RUN
    links = (
        ("The device in this window", f"/d/{DEVICE_UID}?{chosen}&var-target={_FIELD.format('target')}&{EXACTLY}"),
        ("The run in this window", f"/d/{RUN_UID}?{chosen}&{EXACTLY}"),
    )
    return rows("Findings", [query], columns, about, links, sorted_by="Outcome")


def each(metrics: Sequence[str], where: str, by: Sequence[Sequence[str]], said: Sequence[str]) -> list[Query]:
    """One query a metric, their lines told apart by a word in front."""
    return [
        series(metric, where, tags, ref=chr(ord("A") + i), alias=f"{word} " + " ".join(f"$tag_{tag}" for tag in tags))
        for i, (metric, tags, word) in enumerate(zip(metrics, by, said, strict=True))
    ]
