"""The dashboard of Soakwatch's own health: whether the other dashboards are complete and up to date."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from soakwatch_dashboards.board import RUN, Board, Row, targets
from soakwatch_dashboards.common import coverage
from soakwatch_dashboards.influx import TIME, Query, counted, one_of, series
from soakwatch_dashboards.panels import figure, lines
from soakwatch_dashboards.style import GREEN, GREY, ORANGE, RED

_RUN = one_of("run")


def _last(metric: str, by: str = "target", of: str = "last") -> Query:
    """The last reading of each tag value, such as each sink."""
    return Query(
        f'SELECT {of}("value") AS "value" FROM "{metric}" WHERE {_RUN} AND {TIME} GROUP BY "{by}"', f"$tag_{by}"
    )


def board() -> Board:
    """The dashboard *Monitor*."""
    answered = Query(f'SELECT mean("ok") AS "answered" FROM "soakwatch_poll" WHERE {_RUN} AND {TIME}')
    missed = counted(
        '"outcome" =~ /^(missed|overrun|gap)$/ AND "ok" = 0',
        "missed",
        of="ok",
        measurement="soakwatch_poll",
        where=f"{_RUN} AND {TIME}",
    )
    spotless = ((None, GREEN), (1, RED))
    top = Row(
        4,
        [
            (
                4,
                figure(
                    "Polls answered",
                    answered,
                    "Share of the due polls.",
                    "percentunit",
                    limits=((None, RED), (0.95, ORANGE), (0.99, GREEN)),
                ),
            ),
            (4, figure("Missed by the monitor", missed, "Due while the monitor was late or away.", limits=spotless)),
            (
                4,
                figure(
                    "Backlog of the sink",
                    _last("monitor.sink.backlog", "sink"),
                    "Polls that the database does not have yet.",
                    "short",
                    limits=((None, GREEN), (1000, ORANGE), (100_000, RED)),
                ),
            ),
            (
                4,
                figure(
                    "Rejected lines",
                    _last("monitor.sink.rejected", "sink"),
                    "Lines that the database refused for good.",
                    limits=spotless,
                ),
            ),
            (4, figure("Resident memory", _last("monitor.memory.usage"), "Of the collector.", "bytes")),
            (
                4,
                figure(
                    "Room on the disk",
                    _last("monitor.disk.free"),
                    "Where the record lies.",
                    "bytes",
                    limits=((None, RED), (1e9, ORANGE), (1e10, GREY)),
                ),
            ),
        ],
    )
    took = Query(
        f'SELECT max("duration_s") AS "value" FROM "soakwatch_poll" WHERE {one_of("run", "target")} AND {TIME}'
        ' GROUP BY time($__interval), "target", "source" fill(null)',
        "$tag_target $tag_source",
    )
    written = [series("monitor.sink.written", _RUN, ("sink",), alias="$tag_sink")]
    sink = [
        series("monitor.sink.lag", _RUN, ("sink",), alias="lag of $tag_sink"),
        series("monitor.loop.lag", _RUN, ("target",), alias="the monitor's loop"),
    ]
    return Board(
        "soakwatch-monitor",
        "Soakwatch · Monitor",
        "Soakwatch's own health: lag, misses, backlog, memory.",
        [
            top,
            Row(8, [(24, coverage(one_of("run", "target")))]),
            Row(
                9,
                [
                    (12, lines("Lag", "s", sink, "How far the database is behind; how late the monitor's loop ran.")),
                    (12, lines("How long a poll takes", "s", [took], "The slowest of each interval.")),
                ],
            ),
            Row(
                9,
                [
                    (
                        12,
                        lines(
                            "Backlog of the sink",
                            "short",
                            [series("monitor.sink.backlog", _RUN, ("sink",))],
                            "Polls that the database does not have yet.",
                        ),
                    ),
                    (12, lines("Lines a second to the database", "cps", written, "What the sink wrote.")),
                ],
            ),
            Row(
                9,
                [
                    (
                        12,
                        lines(
                            "Polls a second by how they ended",
                            "cps",
                            [series("monitor.polls", _RUN, ("outcome",))],
                            "Everything but ok is a gap.",
                        ),
                    ),
                    (
                        12,
                        lines(
                            "CPU of the collector",
                            "percentunit",
                            [series("monitor.cpu.time", _RUN, ("target",))],
                            "100 % is one core.",
                        ),
                    ),
                ],
            ),
            Row(
                9,
                [
                    (
                        12,
                        lines(
                            "Memory of the collector",
                            "bytes",
                            [series("monitor.memory.usage", _RUN, ("target",))],
                            "Resident memory.",
                        ),
                    ),
                    (
                        12,
                        lines(
                            "Size of the record",
                            "bytes",
                            [series("monitor.record.size", _RUN, ("target",))],
                            "On disk.",
                        ),
                    ),
                ],
            ),
            Row(
                8,
                [
                    (
                        24,
                        lines(
                            "CPU of the devices that the polls take",
                            "percentunit",
                            [
                                series(
                                    "source.device.cpu.time",
                                    _RUN,
                                    ("target", "source"),
                                    alias="$tag_target $tag_source",
                                )
                            ],
                            "As the device counts it: agent, SSH shell, or the collector itself; 100 % is one core.",
                        ),
                    ),
                ],
            ),
            Row(
                8,
                [
                    (
                        12,
                        lines(
                            "Open files and threads",
                            "short",
                            [
                                series("monitor.open_files", _RUN, ("target",), alias="open files"),
                                series("monitor.threads", _RUN, ("target",), alias="threads"),
                            ],
                            "Of the collector.",
                        ),
                    ),
                    (
                        12,
                        lines(
                            "Wall clock less steady clock",
                            "s",
                            [series("monitor.clock.offset", _RUN, ("target",), of="last")],
                            "A step is a jump.",
                            below_zero=True,
                        ),
                    ),
                ],
            ),
        ],
        [RUN, targets()],
    )
