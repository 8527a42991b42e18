"""The dashboard of one run, for the wall: verdict, phase, device under load, what was lost, what was found."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from soakwatch_dashboards.board import RUN, RUN_UID, Board, Row, marks, targets
from soakwatch_dashboards.common import (
    LOAD_LINES,
    MEMORY_LINES,
    THIS_RUN,
    WHOLE,
    coverage,
    cpu,
    dropped,
    findings,
    load,
    memory,
    sessions_and_temperature,
)
from soakwatch_dashboards.influx import Query, one_of, series
from soakwatch_dashboards.panels import figure, lines, of_unit, sentence, word
from soakwatch_dashboards.style import GREEN, GREY, ORANGE, RED, SEVERITIES, YELLOW

_RUN, _HERE = one_of("run"), one_of("run", "target")


def _of_verdict(field: str) -> Query:
    return Query(
        f'SELECT last("{field}") AS "{field}" FROM "soakwatch_verdict" WHERE {_RUN}', table=field == "headline"
    )


def board() -> Board:
    """The dashboard *Run*."""
    phase = Query(f'SELECT last("text") AS "phase" FROM "soakwatch_phase" WHERE {_RUN}', table=True)
    verdict = Query(
        'SELECT last("severity") AS "severity", last("begin_ms") AS "begin_ms", last("end_ms") AS "end_ms"'
        f' FROM "soakwatch_verdict" WHERE {_RUN}',
        table=True,
    )
    here = [(name, f"/d/{RUN_UID}?{THIS_RUN}&{window}") for name, window in WHOLE]
    top = Row(
        5,
        [
            (
                6,
                word(
                    "Verdict",
                    verdict,
                    "severity",
                    "The verdict, or that the run is still running; a click shows the whole run.",
                    SEVERITIES,
                    here,
                ),
            ),
            (4, sentence("Phase", phase, "phase", "The phase that started last.")),
            (3, figure("Hours", _of_verdict("hours"), "How long it ran.", "short", limits=((None, GREY),))),
            (3, figure("Failed", _of_verdict("failed"), "Findings that fail.", limits=((None, GREEN), (1, RED)))),
            (3, figure("Warned", _of_verdict("warned"), "Findings that warn.", limits=((None, GREEN), (1, YELLOW)))),
            (
                5,
                figure(
                    "Inconclusive",
                    _of_verdict("doubtful"),
                    "Findings that are inconclusive.",
                    limits=((None, GREEN), (1, ORANGE)),
                ),
            ),
        ],
    )
    said = Row(3, [(24, sentence("In one sentence", _of_verdict("headline"), "headline", "The verdict's reason."))])
    busy = lines(
        "CPU, with the load",
        "percentunit",
        [*cpu(_HERE), *load()],
        "Of each core; the busiest poll of each interval, so that no spike is lost; dashed: what is sent.",
        LOAD_LINES,
        most=1.0,
    )
    used = lines(
        "Memory per process",
        "bytes",
        memory(_HERE, _HERE),
        "Resident memory of watched processes, pools; on the right what the whole device has in use.",
        MEMORY_LINES,
    )
    # The generator's losses are not the chosen target's: they belong to the run.
    lost = [
        *dropped(_HERE, "ABCDE"),
        series("load.lost.packets", _RUN, ("target",), ref="F", alias="lost, says $tag_target"),
        series("queue.depth", _HERE, ("target", "queue"), ref="G", alias="depth $tag_target $tag_queue"),
    ]
    drops = lines(
        "Drops a second and queue depth, with the load",
        "pps",
        [*lost, *load()],
        "Rates of the counters of drops; on the right the queues and, dashed, what the generators send.",
        {"^depth ": of_unit("short"), **LOAD_LINES},
    )
    latency = lines(
        "Latency", "s", [series("load.latency", _RUN, ("target", "quantile"))], "What the generators measured."
    )
    sessions, warm = sessions_and_temperature(_HERE)
    return Board(
        RUN_UID,
        "Soakwatch · Run",
        "One run: verdict, load, device, losses and findings on one time axis.",
        [
            # These four rows fill a screen of 1080 lines.
            top,
            said,
            Row(10, [(24, busy)]),
            Row(10, [(24, drops)]),
            Row(10, [(12, used), (12, latency)]),
            Row(7, [(24, coverage(_HERE))]),
            Row(9, [(24, findings(_RUN, "Each cell leads to the exact window of its finding."))]),
            Row(8, [(12, sessions), (12, warm)]),
        ],
        [RUN, targets()],
        marks(),
    )
