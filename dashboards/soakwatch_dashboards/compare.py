"""The dashboard that lays runs over each other: every run begins at the same hour zero."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from collections.abc import Sequence

from soakwatch_dashboards.board import Board, Row, variable
from soakwatch_dashboards.fleet import verdicts
from soakwatch_dashboards.influx import TIME, Query, one_of
from soakwatch_dashboards.panels import lines, of_unit

ZERO, END = "2100-01-01T00:00:00.000Z", "2100-01-04T00:00:00.000Z"
"""Hour zero, as the sink has it, and 72 hours on. It lies ahead of us so that no retention of a bucket drops it."""
ZERO_MS = "4102444800000"
_HERE = one_of("run", "role", "target")


def _aligned(metric: str, by: Sequence[str], ref: str = "A", of: str = "mean", word: str = "") -> Query:
    grouped = ", ".join(f'"{tag}"' for tag in ("run", "target", *by))
    query = (
        f'SELECT {of}("{of}") AS "value" FROM "soakwatch_aligned" WHERE "metric" = \'{metric}\' AND {_HERE} AND {TIME}'
        f" GROUP BY time($__interval), {grouped} fill(null)"
    )
    return Query(
        query, " ".join(part for part in (word, *(f"$tag_{tag}" for tag in ("run", "target", *by))) if part), ref=ref
    )


def board() -> Board:
    """The dashboard *Compare*."""
    run = variable("run", "Runs", 'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "run"', newest_first=True)
    role = variable("role", "Role", 'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "role"')
    target = variable(
        "target",
        "Target",
        f'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "target" WHERE {one_of("run", "role")}',
    )
    cpu = [
        _aligned("system.cpu.utilization", (), of="max"),
        _aligned("system.cpu.module.utilization", ("module",), "B", "max"),
    ]
    drops = [
        _aligned("system.network.packet.dropped", ("interface", "direction"), "A", "max"),
        _aligned("queue.dropped", ("queue",), "B", "max"),
        _aligned("system.forwarding.dropped", ("place", "reason"), "C", "max"),
        _aligned("load.lost.packets", (), "D", "max", "lost, says"),
    ]
    used = [
        _aligned("system.memory.usage", ()),
        _aligned("system.memory.utilization", (), "B", word="share"),
    ]
    depth = _aligned("queue.depth", ("queue",), "E", "max", "depth")
    sent = [
        _aligned("load.request.rate", (), "A", word="requests"),
        _aligned("load.tx.packet.rate", (), "B", word="packets"),
    ]
    return Board(
        "soakwatch-compare",
        "Soakwatch · Compare",
        "Two or more runs, each from its own start: 00:00 of the first day is when a run started (times in UTC).",
        [
            Row(6, [(24, verdicts("Verdicts", one_of("run")))]),
            Row(
                10,
                [
                    (12, lines("CPU", "percentunit", cpu, "The busiest minute.", most=1.0)),
                    (12, lines("Load", "pps", sent, "What the generators sent.", {"^requests ": of_unit("reqps")})),
                ],
            ),
            Row(
                10,
                [
                    (
                        12,
                        lines(
                            "Memory in use",
                            "bytes",
                            used,
                            "Of the target; on the right as a share.",
                            {"^share ": of_unit("percentunit")},
                        ),
                    ),
                    (
                        12,
                        lines(
                            "Memory per process",
                            "bytes",
                            [_aligned("process.memory.usage", ("process", "instance"))],
                            "Resident memory.",
                        ),
                    ),
                ],
            ),
            Row(
                10,
                [
                    (
                        12,
                        lines(
                            "Drops a second and queue depth",
                            "pps",
                            [*drops, depth],
                            "The worst minute; on the right the queues.",
                            {"^depth ": of_unit("short")},
                        ),
                    ),
                    (
                        12,
                        lines(
                            "Latency",
                            "s",
                            [_aligned("load.latency", ("quantile",), of="max")],
                            "What the generators measured.",
                        ),
                    ),
                ],
            ),
        ],
        [run, role, target],
        windows=[(f"First {hours} h", ZERO_MS, str(int(ZERO_MS) + hours * 3_600_000)) for hours in (2, 12, 24, 72)],
        since=ZERO,
        until=END,
        refresh="",
        timezone="utc",
    )
