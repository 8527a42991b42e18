"""Panels and links that several dashboards share."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_agent.metric import BY_NAME
from soakwatch_dashboards.board import DEVICE_UID, RUN_UID
from soakwatch_dashboards.influx import TIME, Query, one_of, series
from soakwatch_dashboards.panels import SECOND_AXIS, Column, lines, of_load, of_unit, rows, strip
from soakwatch_dashboards.style import ANSWERED, SEVERITIES

_FIELD = "${{__data.fields.{}:percentencode}}"
"""A column of the row that was clicked. By itself Grafana leaves ``+``, ``&`` and ``#`` as they are."""
EXACTLY = "from=${__data.fields.begin_ms.numeric}&to=${__data.fields.end_ms.numeric}"
"""The window of the row that was clicked, in milliseconds, as Grafana's addresses have it."""
THIS_RUN = "var-run=${run:percentencode}"
WHOLE = (("The whole run", EXACTLY), ("From its start until now", "from=${__data.fields.begin_ms.numeric}&to=now"))
"""Two ways to look at a run: one that has ended, and one that still goes on."""
LOADS = (
    ("requests", "reqps", "load.request.rate", ""),
    ("requests counted", "reqps", "load.requests", ""),
    ("packets", "pps", "load.tx.packet.rate", ""),
    ("packets counted", "pps", "load.tx.packets", ""),
    ("bits", "bps", "load.tx.bit.rate", ""),
    ("bits counted", "bps", "load.tx.bytes", "8"),
)
"""What generators tell of, its unit, the metric and its factor. Some tell rates, some (pktgen, an interface) count,
some do both; InfluxQL has no way to take the one or else the other."""
LOAD_LINES = {f"^load of .* \\({what}\\)$": of_load(unit) for what, unit, _, _ in LOADS}


def load() -> list[Query]:
    """What the generators send, on the time axis of whatever they are laid under."""
    return [
        series(
            metric, one_of("run"), ("target",), of="mean", ref=ref, alias=f"load of $tag_target ({what})", times=times
        )
        for ref, (what, _, metric, times) in zip("UVWXYZ", LOADS, strict=True)
    ]


def cpu(where: str) -> list[Query]:
    """The busy share of cores, of modules and of all of it: most devices tell of one of the three only."""
    return [
        series("system.cpu.core.utilization", where, ("target", "core"), alias="$tag_target core $tag_core"),
        series("system.cpu.module.utilization", where, ("target", "module"), ref="B"),
        series("system.cpu.utilization", where, ("target",), ref="C", alias="$tag_target, all of it"),
    ]


def memory(where: str, processes: str) -> list[Query]:
    """Memory of processes and pools, of all of it, and as shares where a device tells no bytes."""
    return [
        series("process.memory.usage", processes, ("target", "process", "instance")),
        series("system.memory.pool.usage", where, ("target", "pool"), ref="B", alias="$tag_target pool $tag_pool"),
        series("system.memory.usage", where, ("target",), ref="C", alias="$tag_target, all of it"),
        series("system.memory.utilization", where, ("target",), ref="D", alias="$tag_target, share of all of it"),
        series(
            "system.memory.pool.utilization",
            where,
            ("target", "pool"),
            ref="E",
            alias="$tag_target pool $tag_pool, share of it",
        ),
    ]


MEMORY_LINES = {", all of it$": SECOND_AXIS, ", share of": of_unit("percentunit")}


def dropped(where: str, refs: str) -> list[Query]:
    """What the device lost: rates of the counters of drops, wherever it counts them."""
    counters = (
        ("system.network.packet.dropped", ("target", "interface", "direction"), "dropped"),
        ("system.softnet.dropped", ("target", "core"), "dropped softnet"),
        ("queue.dropped", ("target", "queue"), "dropped queue"),
        ("system.forwarding.dropped", ("target", "place", "reason"), "dropped"),
        ("system.ip.dropped", ("target", "version", "reason"), "dropped IP"),
    )
    return [
        series(metric, where, by, ref=ref, alias=" ".join([word, *(f"$tag_{tag}" for tag in by)]))
        for ref, (metric, by, word) in zip(refs, counters, strict=True)
    ]


def sessions_and_temperature(where: str) -> tuple[Panel, Panel]:
    """Two that show trouble before anything is lost."""
    sessions = series("system.sessions", where, ("target", *BY_NAME["system.sessions"].labels))
    return (
        lines("Sessions", "short", [sessions], "Connections that a firewall, a NAT or a balancer keeps."),
        lines("Temperature", "celsius", [series("system.temperature", where, ("target", "sensor"))], "Of each sensor."),
    )


def coverage(where: str) -> Panel:
    """The strip of lost polls."""
    query = Query(
        f'SELECT min("ok") AS "ok" FROM "soakwatch_poll" WHERE {where} AND {TIME}'
        ' GROUP BY time($__interval), "target", "source" fill(none)',
        "$tag_target $tag_source",
    )
    return strip(
        "Coverage: polls that were answered",
        query,
        ANSWERED,
        "Red: at least one poll in this interval was not answered. Empty: none was due.",
    )


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
    chosen = f"var-run={_FIELD.format('run')}" if with_run else THIS_RUN
    links = (
        ("The device in this window", f"/d/{DEVICE_UID}?{chosen}&var-target={_FIELD.format('target')}&{EXACTLY}"),
        ("The run in this window", f"/d/{RUN_UID}?{chosen}&{EXACTLY}"),
    )
    return rows("Findings", [query], columns, about, links, sorted_by="Outcome")
