"""Queries, panels and links shared by several dashboards."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_dashboards.board import DEVICE_UID, RUN_UID, THIS_SOURCE
from soakwatch_dashboards.influx import TIME, Query, one_of, series, total
from soakwatch_dashboards.panels import Column, limit_line, of_load, of_unit, rows, share_strip, strip, timeline
from soakwatch_dashboards.style import ANSWERED, OUTCOMES, PHASES, STATES
from soakwatch_model.metric import CATALOGUE
from soakwatch_model.metric_entry import REFUSED

HERE = one_of("run", "target")
ONE_PROCESS = one_of("run", "target", "process")
ONE_PORT = one_of("run", "target", "interface")
"""Conditions: the chosen run and target, and of it the chosen process or interface."""
_FIELD = "${{__data.fields.{}:percentencode}}"
"""A column of the clicked row, percent-encoded, since Grafana leaves ``+``, ``&`` and ``#`` as they are."""
EXACTLY = "from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}"
"""The window of the clicked row, in milliseconds for Grafana's URLs."""
THIS_RUN = f"{THIS_SOURCE}&var-run=${{run:percentencode}}"
WHOLE = (("The whole run", EXACTLY), ("From its start until now", "from=${__data.fields.begin_ms.numeric}&to=now"))
"""Links to a run's window: for one that has ended, and for one still running."""
LOAD_UNITS = {"requests": "requests/s", "packets": "packets/s", "bits": "bits/s", "users": "users"}
LOAD_LINES = {f"^load of .* \\({what}\\)$": of_load(unit) for what, unit in LOAD_UNITS.items()}


def load() -> list[Query]:
    """The load of each generator, to overlay on any plot; the sink chooses the metric and makes a rate of it."""
    query = (
        f'SELECT mean("value") AS "value" FROM "soakwatch_load" WHERE {one_of("run")} AND {TIME}'
        ' GROUP BY time($__interval), "target", "what" fill(null)'
    )
    return [Query(query, "load of $tag_target ($tag_what)")]


def cpu(where: str) -> list[Query]:
    """CPU of cores, modules and the whole device: most devices report only some of them."""
    return [
        series("system.cpu.core.utilization", where, ("target", "core"), alias="$tag_target core $tag_core"),
        series("system.cpu.module.utilization", where, ("target", "module")),
        series("system.cpu.utilization", where, ("target",), alias="$tag_target, all of it"),
    ]


def memory_of_parts(where: str, processes: str) -> list[Query]:
    """Memory of processes and pools, as shares if a device reports no bytes."""
    return [
        series("process.memory.usage", processes, ("target", "process", "instance")),
        series("system.memory.pool.usage", where, ("target", "pool"), alias="$tag_target pool $tag_pool"),
        series(
            "system.memory.pool.utilization", where, ("target", "pool"), alias="$tag_target pool $tag_pool, share of it"
        ),
    ]


def memory_of_all(where: str) -> list[Query]:
    """Total memory of a device, as a share if it reports no bytes."""
    return [
        series("system.memory.usage", where, ("target",), alias="$tag_target, all of it"),
        series("system.memory.utilization", where, ("target",), alias="$tag_target, share of all of it"),
    ]


LIMITS = {"^limit": limit_line()}
MEMORY_LINES = {", share of": of_unit("percentunit")}
DROP_COUNTERS = tuple(
    (metric.name, ("target", *metric.labels), metric.drops.place)
    for metric in CATALOGUE
    if metric.drops is not None and metric.drops.why != REFUSED and metric.unit == "{packet}"
)
"""Drop counters of devices: metric, labels, and a word for the place."""


def dropped(where: str) -> list[Query]:
    """Packets that the device dropped: a line for each place, summed over its objects."""
    return [total(metric, where, by, f"dropped: {word}") for metric, by, word in DROP_COUNTERS]


def coverage(where: str) -> Panel:
    """The strip of lost polls, by source."""
    query = Query(
        f'SELECT min("ok") AS "ok" FROM "soakwatch_poll" WHERE {where} AND {TIME}'
        ' GROUP BY time($__interval), "target", "source" fill(null)',
        "$tag_target $tag_source",
    )
    return strip(
        "Coverage: polls that were answered, by source",
        query,
        ANSWERED,
        "Red: at least one poll in this interval was not answered. Empty: none was due.",
    )


def coverage_share(where: str) -> Panel:
    """The strip of lost polls of all sources, aligned with the plots."""
    each = (
        f'SELECT mean("ok") AS "share" FROM "soakwatch_poll" WHERE {where} AND {TIME}'
        ' GROUP BY time($__interval), "target", "source" fill(none)'
    )
    query = Query(
        f'SELECT min("share") AS "share" FROM ({each}) WHERE {TIME} GROUP BY time($__interval) fill(null)', "polls"
    )
    return share_strip(
        query,
        "Coverage. Green: each poll of each source was answered. Red: at least one was not; the tooltip says which"
        " share the worst source answered. Empty: no poll was due.",
    )


def phases() -> Panel:
    """The strip of phases, with names."""
    query = Query(f'SELECT "state" FROM "soakwatch_timeline" WHERE {one_of("run")} AND "kind" = \'phase\'', "phase")
    return timeline("", query, "The phases of the run by name.", PHASES)


def rule_states(where: str) -> Panel:
    """The strip of rules: when each failed, warned, or was inconclusive."""
    query = Query(
        f'SELECT "state" FROM "soakwatch_timeline" WHERE {where} AND "kind" = \'rule\' GROUP BY "row"', "$tag_row"
    )
    return timeline(
        "Findings by rule",
        query,
        "A row for each rule: the windows in which its findings failed (red), warned (yellow) or were inconclusive"
        " (orange).",
        STATES,
        values=False,
    )


def findings(
    where: str, about: str, *, title: str = "Findings", ranks: str = '"rank" >= 2', with_run: bool = False
) -> Panel:
    """Findings of some ranks, worst first, then newest; each links to its window."""
    run = '"run", ' if with_run else ""
    query = Query(
        f'SELECT "rank", {run}"at_ms", "rule", "target", "metric", "object", "reason", "begin_ms", "end_ms"'
        f' FROM "soakwatch_finding" WHERE {where} AND {ranks}',
        table=True,
    )
    links = _to_window(f"{THIS_SOURCE}&var-run={_FIELD.format('run')}" if with_run else THIS_RUN)
    columns = {
        "Time": Column(hidden=True),
        "rank": Column("Outcome", named=OUTCOMES, width=140),
        "run": Column("Run", width=230),
        "at_ms": Column("When (UTC)", "dateTimeAsIso", width=170),
        "rule": Column("Rule", width=170, links=links),
        "target": Column("Target", width=130),
        "metric": Column("Metric", width=220),
        "object": Column("Object", width=200, text=True),
        "reason": Column("Reason", text=True),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    return rows(title, [query], columns, about, sorted_by=("Outcome", "When (UTC)"))


def _to_window(run: str) -> tuple[tuple[str, str], ...]:
    """Links from a finding to its window; ``run`` is the URL's run."""
    return (
        ("The device in this window", f"/d/{DEVICE_UID}?{run}&var-target={_FIELD.format('target')}&{EXACTLY}"),
        ("The run in this window", f"/d/{RUN_UID}?{run}&{EXACTLY}"),
    )


def newest_findings(where: str) -> Panel:
    """The newest findings in short, for the wall screen."""
    query = Query(
        f'SELECT "at_ms", "rank", "target", "rule", "object", "reason", "begin_ms", "end_ms" FROM "soakwatch_finding"'
        f' WHERE {where} AND "rank" >= 2',
        table=True,
    )
    columns = {
        "Time": Column(hidden=True),
        "at_ms": Column("When (UTC)", "time:MM-DD HH:mm", width=95),
        "rank": Column("Outcome", named=OUTCOMES, width=75),
        "target": Column("Target", width=85),
        "rule": Column("Rule", width=110, links=_to_window(THIS_RUN)),
        "object": Column("Object", text=True),
        "reason": Column("Reason", text=True),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    return rows(
        "Newest failures and warnings",
        [query],
        columns,
        "What failed or warned, the newest first; the name of the rule leads to its window.",
        sorted_by=("When (UTC)",),
    )
