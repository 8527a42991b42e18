"""The dashboard of one device: its summary, findings, crashes, states and disks, and the panels of other topics."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Panel

from soakwatch_dashboards.board import (
    DEVICE_UID,
    INTERFACE,
    PROCESS,
    RUN,
    Board,
    Row,
    Section,
    marks,
    targets,
    variable,
)
from soakwatch_dashboards.common import (
    HERE,
    LIMITS,
    LOAD_LINES,
    ONE_PORT,
    coverage,
    coverage_share,
    findings,
    load,
    phases,
    rule_states,
)
from soakwatch_dashboards.compute import cpu, memory, modes, one_process, pressure, processes
from soakwatch_dashboards.hardware import hardware
from soakwatch_dashboards.influx import TIME, Query, increase, largest, one_of, series, tag_is
from soakwatch_dashboards.network import one_interface, queues, sessions, sockets_and_softirq
from soakwatch_dashboards.panels import Column, bars, figure, lines, of_unit, rows, strip
from soakwatch_dashboards.style import GREEN, ORANGE, PACKETS, RED, UPNESS, WRITABLE

STRIP_ROWS = 12
"""Number of rows in a strip whose names fit."""
WORST_UP = variable(
    "worst_process",
    "Processes that were down most",
    largest(
        STRIP_ROWS,
        "process",
        f'SELECT 1 - mean("value") AS "size" FROM "process.up" WHERE {HERE} AND {TIME} GROUP BY "process", "instance"',
    ),
    hidden=True,
    all_value="",
)
"""The processes in the strip: those that were down longest."""


WORST_PORT = variable(
    "worst_interface",
    "Interfaces that were down most",
    largest(
        STRIP_ROWS,
        "interface",
        f'SELECT 2 * max("value") - mean("value") AS "size" FROM "system.network.up" WHERE {ONE_PORT} AND {TIME}'
        ' GROUP BY "interface"',
        where='"size" > 0',
    ),
    hidden=True,
    all_value="",
)
"""The interfaces in the strip: those that were up at some time and down longest. A port that nobody uses is down all
the time, which is no news."""


def _top() -> Row:
    busy = [
        Query(f'SELECT max("value") AS "busiest" FROM "system.cpu.{part}utilization" WHERE {HERE} AND {TIME}', word)
        for part, word in (("core.", "core"), ("module.", "module"), ("", "total"))
    ]
    used = [
        Query(f'SELECT last("value") AS "{word}" FROM "system.memory.{part}" WHERE {HERE} AND {TIME}', word)
        for part, word in (("usage", "in use"), ("utilization", "share"))
    ]
    since = Query(f'SELECT last("value") AS "uptime" FROM "system.uptime" WHERE {HERE} AND {TIME}')
    answered = Query(f'SELECT mean("ok") AS "answered" FROM "soakwatch_poll" WHERE {HERE} AND {TIME}')
    hot = ((None, GREEN), (0.8, ORANGE), (0.95, RED))
    short = ((None, RED), (0.95, ORANGE), (0.99, GREEN))
    in_bytes = {"^share$": [DynamicConfigValue("unit", "percentunit")]}
    cpu_most = "The busiest poll of the view, of a core, a module, and all of it."
    figures = (
        (8, figure("CPU, at most", busy, cpu_most, "percentunit", limits=hot, decimals=0)),
        (6, figure("Memory in use", used, "The last sample, in bytes or as a share.", "bytes", overrides=in_bytes)),
        (5, figure("Uptime", since, "Since the last boot.", "dtdurations", decimals=1)),
        (5, figure("Polls answered", answered, "Share of the due polls.", "percentunit", limits=short)),
    )
    return Row(4, figures)


def _exhaustion() -> Panel:
    query = Query(
        'SELECT "forecast_after_s", "forecast_low_s", "metric", "object", "forecast_what", "begin_ms", "end_ms"'
        f' FROM "soakwatch_finding" WHERE {HERE} AND "forecast_after_s" >= 0',
        table=True,
    )
    columns = {
        "Time": Column(hidden=True),
        "forecast_after_s": Column("Exhausted in", "dtdurations", width=150, decimals=1),
        "forecast_low_s": Column("At the earliest in", "dtdurations", width=150, decimals=1),
        "metric": Column("Metric", width=180),
        "object": Column("Object"),
        "forecast_what": Column("Limit"),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    return rows(
        "Time to exhaustion", [query], columns, "From the rules of growth, counted from the end of their window."
    )


def _trouble() -> Section:
    happened = bars(
        "OOM kills, kernel alarms, restarts, core files",
        [
            increase("system.memory.oom_kills", HERE, ("target",), "OOM kill"),
            increase("system.kernel.alarms", HERE, ("kind",), "kernel: $tag_kind"),
            increase("system.service.restarts", HERE, ("service",), "restart of $tag_service"),
            increase("system.memory.pool.failures", HERE, ("pool",), "memory refused by pool $tag_pool"),
            increase("system.core.files", HERE, ("folder",), "core file in $tag_folder"),
            increase("system.agent.boots", HERE, ("target",), "restart of the SNMP engine"),
        ],
        "How many in each interval.",
    )
    uptime = lines(
        "Uptime",
        "s",
        [
            series("system.uptime", HERE, ("target",), alias="device"),
            series("system.module.uptime", HERE, ("module",), alias="module $tag_module"),
            series("system.agent.uptime", HERE, ("target",), alias="SNMP agent"),
        ],
        "A fall is a reboot.",
    )
    return Section("Crashes and reboots", [Row(9, [(16, happened), (8, uptime)])], collapsed=False)


def _states() -> tuple[Row, ...]:
    there = Query(
        f'SELECT min("value") AS "up" FROM "process.up" WHERE {HERE} AND {TIME}'
        f" AND {tag_is('process', 'worst_process')}"
        ' GROUP BY time($__interval), "process", "instance" fill(null)',
        "$tag_process $tag_instance",
    )
    interfaces = Query(
        f'SELECT min("value") AS "up" FROM "system.network.up" WHERE {HERE} AND {TIME}'
        f" AND {tag_is('interface', 'worst_interface')}"
        ' GROUP BY time($__interval), "interface" fill(null)',
        "$tag_interface",
    )
    peers = Query(
        f'SELECT min("value") AS "up" FROM "reach.up" WHERE {HERE} AND {TIME}'
        ' GROUP BY time($__interval), "peer", "protocol" fill(null)',
        "$tag_peer $tag_protocol",
    )
    running = f"Red: the watched process was not there. The {STRIP_ROWS} that were down longest."
    ports = f"Red: the interface was down. Of those that were up at some time the {STRIP_ROWS} that were down longest."
    round_trip = lines(
        "Round trip to the peers, and what they did not answer",
        "s",
        [
            series("reach.round_trip", HERE, ("peer", "protocol")),
            series("reach.lost", HERE, ("peer", "protocol"), alias="lost of $tag_peer $tag_protocol"),
        ],
        "Time to an answer; on the right the probes a second that had none.",
        {"^lost of ": of_unit(PACKETS)},
    )
    return (
        Row(
            8,
            [
                (12, strip("Processes that run", there, UPNESS, running)),
                (12, strip("Interfaces that are up", interfaces, UPNESS, ports)),
            ],
        ),
        Row(6, [(12, strip("Peers that answer", peers, UPNESS, "Red: a peer did not answer.")), (12, round_trip)]),
    )


def _disks() -> Section:
    filled = lines(
        "File systems",
        "bytes",
        [
            series("system.filesystem.usage", HERE, ("mountpoint",), alias="$tag_mountpoint"),
            series("system.filesystem.limit", HERE, ("mountpoint",), alias="limit of $tag_mountpoint"),
        ],
        "Space in use; red: the size.",
        LIMITS,
    )
    through = lines(
        "Disks: bytes a second",
        "binBps",
        [series("system.disk.io", HERE, ("device", "direction"))],
        "Read and written.",
    )
    busy = lines(
        "Disks: busy",
        "percentunit",
        [
            series("system.disk.io_time", HERE, ("device",), alias="busy $tag_device"),
            series(
                "system.disk.operations", HERE, ("device", "direction"), alias="operations $tag_device $tag_direction"
            ),
        ],
        "Share of the time; on the right operations a second.",
        {"^operations ": of_unit("cps")},
        1.0,
    )
    inodes = lines(
        "Inodes",
        "short",
        [
            series("system.filesystem.inodes.usage", HERE, ("mountpoint",), alias="$tag_mountpoint"),
            series("system.filesystem.inodes.limit", HERE, ("mountpoint",), alias="limit of $tag_mountpoint"),
        ],
        "Files and folders of each file system; red: how many there may be, whatever space is free. The axis is"
        " logarithmic with a zero.",
        LIMITS,
        small_and_large=True,
    )
    writable = strip(
        "File systems that can be written",
        Query(
            f'SELECT min("value") AS "writable" FROM "system.filesystem.writable" WHERE {HERE} AND {TIME}'
            ' GROUP BY time($__interval), "mountpoint" fill(null)',
            "$tag_mountpoint",
        ),
        WRITABLE,
        "Red: read-only, as the kernel makes it after an error of the disk.",
    )
    return Section(
        "Disks and file systems",
        [Row(9, [(8, filled), (8, inodes), (8, writable)]), Row(9, [(12, through), (12, busy)])],
    )


def board() -> Board:
    """The dashboard *Device*."""
    latency = lines(
        "Latency, with the load",
        "s",
        [series("load.latency", one_of("run"), ("target", "quantile"), alias="$tag_quantile $tag_target"), *load()],
        "Percentiles that the generators measured.",
        LOAD_LINES,
    )
    bad = findings(HERE, "What failed and warned on this device; the name of a rule leads to its window.")
    return Board(
        DEVICE_UID,
        "Soakwatch · Device",
        "One device in depth: cores, memory, processes, interfaces, queues, power, hardware. Sections open by a click.",
        [
            _top(),
            Row(3, [(12, phases()), (12, coverage_share(HERE))]),
            Row(6, [(24, rule_states(HERE))]),
            Row(7, [(24, bad)]),
            cpu(),
            memory(),
            Row(8, [(12, processes()), (12, _exhaustion())]),
            queues(),
            Row(8, [(24, latency)]),
            _trouble(),
            *_states(),
            sessions(),
            hardware(),
            modes(),
            pressure(),
            sockets_and_softirq(),
            _disks(),
            Section("Coverage by source", [Row(8, [(24, coverage(HERE))])]),
            one_process(),
            one_interface(),
        ],
        [RUN, targets(many=False), PROCESS, INTERFACE, WORST_UP, WORST_PORT],
        marks(),
    )
