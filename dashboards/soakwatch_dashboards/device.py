"""The dashboard of one target in depth: cores, processes, interfaces, queues."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_dashboards.board import DEVICE_UID, INTERFACE, PROCESS, RUN, Board, Row, marks, targets
from soakwatch_dashboards.common import (
    LOAD_LINES,
    MEMORY_LINES,
    coverage,
    dropped,
    findings,
    load,
    memory,
    sessions_and_temperature,
)
from soakwatch_dashboards.influx import TIME, Query, by_labels, one_of, series
from soakwatch_dashboards.panels import Column, figure, heat, lines, of_unit, rows, strip
from soakwatch_dashboards.style import GREEN, ORANGE, RED, UPNESS

_HERE = one_of("run", "target")
_PROCESS = one_of("run", "target", "process")
_PORT = one_of("run", "target", "interface")


def _processes() -> Panel:
    query = by_labels(
        ("now", "most"),
        'SELECT last("value") AS "now", max("value") AS "most"'
        f' FROM "process.memory.usage" WHERE {_PROCESS} AND {TIME}',
        ("process", "instance"),
    )
    # By itself: in one query with the level it takes six times as long.
    growth = by_labels(
        ("an hour",),
        'SELECT mean("rate") AS "an hour" FROM (SELECT derivative(mean("value"), 1h) AS "rate"'
        f' FROM "process.memory.usage" WHERE {_PROCESS} AND {TIME}'
        ' GROUP BY time($__interval), "process", "instance" fill(none))',
        ("process", "instance"),
        ref="B",
    )
    columns = {
        "Time": Column(hidden=True),
        "process": Column("Process"),
        "instance": Column("Instance", width=90),
        "now": Column("Memory now", "bytes"),
        "most": Column("At most", "bytes"),
        "an hour": Column("Growth per hour", "bytes"),
    }
    return rows(
        "Processes",
        [query, growth],
        columns,
        "Resident memory; growth is the mean of the view.",
        sorted_by="Growth per hour",
    )


def _exhaustion() -> Panel:
    query = Query(
        'SELECT "forecast_after_s", "forecast_low_s", "metric", "object", "forecast_what", "begin_ms", "end_ms"'
        f' FROM "soakwatch_finding" WHERE {_HERE} AND "forecast_after_s" >= 0',
        table=True,
    )
    columns = {
        "Time": Column(hidden=True),
        "forecast_after_s": Column("Time to exhaustion", "dtdurations", width=190),
        "forecast_low_s": Column("At the earliest", "dtdurations", width=190),
        "metric": Column("Metric"),
        "object": Column("Object"),
        "forecast_what": Column("Of what"),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    return rows(
        "Time to exhaustion", [query], columns, "From the rules of growth, counted from the end of their window."
    )


def board() -> Board:
    """The dashboard *Device*."""
    busy = [
        Query(
            f'SELECT max("value") AS "busiest" FROM "system.cpu.{part}utilization" WHERE {_HERE} AND {TIME}',
            said,
            ref=ref,
        )
        for ref, part, said in (("A", "core.", "core"), ("B", "module.", "module"), ("C", "", "total"))
    ]
    used = [
        Query(f'SELECT last("value") AS "{said}" FROM "system.memory.{part}" WHERE {_HERE} AND {TIME}', said, ref=ref)
        for ref, part, said in (("A", "usage", "in use"), ("B", "utilization", "share"))
    ]
    since = Query(f'SELECT last("value") AS "uptime" FROM "system.uptime" WHERE {_HERE} AND {TIME}')
    answered = Query(f'SELECT mean("ok") AS "answered" FROM "soakwatch_poll" WHERE {_HERE} AND {TIME}')
    hot = ((None, GREEN), (0.8, ORANGE), (0.95, RED))
    short = ((None, RED), (0.95, ORANGE), (0.99, GREEN))
    top = Row(
        4,
        [
            (
                6,
                figure(
                    "CPU, at most",
                    busy,
                    "The busiest poll of the view, of a core, a module, and all of it.",
                    "percentunit",
                    limits=hot,
                ),
            ),
            (
                6,
                figure(
                    "Memory in use",
                    used,
                    "The last sample, in bytes or as a share.",
                    "bytes",
                    overrides={"^share$": of_unit("percentunit")[:1]},
                ),
            ),
            (6, figure("Uptime", since, "Since the last boot.", "dtdurations")),
            (6, figure("Polls answered", answered, "Share of the due polls.", "percentunit", limits=short)),
        ],
    )
    # The database sorts names as text, 10 before 2: by their lengths they are in the order of their numbers.
    cores = [
        series(
            "system.cpu.core.utilization", f'{_HERE} AND "core" =~ {length}', ("core",), ref=ref, alias="core $tag_core"
        )
        for ref, length in zip("ABC", ("/^.$/", "/^..$/", "/^...+$/"), strict=True)
    ]
    cores += [
        series("system.cpu.module.utilization", _HERE, ("module",), ref="D", alias="module $tag_module"),
        series("system.cpu.utilization", _HERE, ("target",), ref="E", alias="total"),
    ]
    whole = [series("system.cpu.utilization", _HERE, ("target",), alias="total"), *load()]
    sessions, warm = sessions_and_temperature(_HERE)
    open_files = [
        series("process.open_files", _PROCESS, ("process", "instance"), alias="files $tag_process $tag_instance"),
        series(
            "process.threads", _PROCESS, ("process", "instance"), ref="B", alias="threads $tag_process $tag_instance"
        ),
    ]
    alive = series("process.up", _PROCESS, ("process", "instance"), of="min")
    bits = [series("system.network.io", _PORT, ("interface", "direction"), times="8")]
    lost = [
        series(
            "system.network.packet.dropped",
            _PORT,
            ("interface", "direction"),
            alias="dropped $tag_interface $tag_direction",
        ),
        series(
            "system.network.errors",
            _PORT,
            ("interface", "direction"),
            ref="B",
            alias="errors $tag_interface $tag_direction",
        ),
    ]
    _, softnet, _, forwarding, ip = dropped(_HERE, "ABCDE")
    inside = [softnet, forwarding, ip]
    queues = [
        series("queue.depth", _HERE, ("queue",), alias="depth $tag_queue"),
        series("queue.dropped", _HERE, ("queue",), ref="B", alias="dropped $tag_queue"),
    ]
    cpu = [series("process.cpu.utilization", _PROCESS, ("process", "instance"))]
    return Board(
        DEVICE_UID,
        "Soakwatch · Device",
        "One target in depth: cores, processes, interfaces, queues.",
        [
            top,
            Row(
                9,
                [
                    (
                        12,
                        heat(
                            "Busy share per core", cores, "percentunit", "Dark is idle, bright is busy; a row a core."
                        ),
                    ),
                    (12, lines("CPU, with the load", "percentunit", whole, "All cores.", LOAD_LINES, 1.0)),
                ],
            ),
            Row(8, [(12, _processes()), (12, _exhaustion())]),
            Row(
                9,
                [
                    (
                        12,
                        lines(
                            "Memory per process",
                            "bytes",
                            memory(_HERE, _PROCESS),
                            "Resident memory, and pools; on the right all of it.",
                            MEMORY_LINES,
                        ),
                    ),
                    (12, lines("CPU per process", "percentunit", cpu, "100 % is one core.")),
                ],
            ),
            Row(6, [(24, strip("Processes that run", alive, UPNESS, "Red: the watched process was not there."))]),
            Row(
                9,
                [
                    (12, lines("Open files and threads", "short", open_files, "Of the watched processes.")),
                    (
                        12,
                        lines(
                            "Queues",
                            "short",
                            queues,
                            "Packets waiting; on the right drops a second.",
                            {"^dropped ": of_unit("pps")},
                        ),
                    ),
                ],
            ),
            Row(
                9,
                [
                    (12, lines("Interfaces: traffic", "bps", bits, "From the byte counters.")),
                    (
                        12,
                        lines(
                            "Interfaces: drops and errors a second",
                            "pps",
                            lost,
                            "From the counters.",
                            {"^errors ": of_unit("cps")},
                        ),
                    ),
                ],
            ),
            Row(
                9,
                [
                    (8, lines("Drops inside, a second", "pps", inside, "By place and reason, as the device has it.")),
                    (8, sessions),
                    (8, warm),
                ],
            ),
            Row(6, [(24, coverage(_HERE))]),
            Row(8, [(24, findings(_HERE, "Of this target; each cell leads to the exact window of its finding."))]),
        ],
        [RUN, targets(many=False), PROCESS, INTERFACE],
        marks(),
    )
