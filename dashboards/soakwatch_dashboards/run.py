"""The dashboard of one run, for the wall: verdict, phase, device under load, what was lost, what was found."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from soakwatch_dashboards.board import RUN, RUN_UID, Board, Row, marks, targets
from soakwatch_dashboards.common import LOAD_LINES, coverage, each, findings, load
from soakwatch_dashboards.influx import Query, one_of, series
from soakwatch_dashboards.panels import SECOND_AXIS, figure, lines, sentence
from soakwatch_dashboards.style import GREEN, GREY, ORANGE, RED, SEVERITIES, YELLOW

_RUN, _HERE = one_of("run"), one_of("run", "target")


def _of_verdict(field: str) -> Query:
    return Query(f'SELECT last("{field}") AS "{field}" FROM "soakwatch_verdict" WHERE {_RUN}')


def board() -> Board:
    """The dashboard *Run*."""
    phase = Query(f'SELECT last("text") AS "phase" FROM "soakwatch_phase" WHERE {_RUN}')
    top = Row(5, [
        (6, figure("Verdict", _of_verdict("severity"), "The verdict of the run; while it runs, that it runs.",
                   named=SEVERITIES, big=True)),
        (4, sentence("Phase", phase, "The phase that began last.")),
        (3, figure("Hours", _of_verdict("hours"), "How long it ran.", "short", limits=((None, GREY),))),
        (3, figure("Failed", _of_verdict("failed"), "Findings that fail.", limits=((None, GREEN), (1, RED)))),
        (3, figure("Warned", _of_verdict("warned"), "Findings that warn.", limits=((None, GREEN), (1, YELLOW)))),
        (5, figure("In doubt", _of_verdict("doubtful"), "Findings that are inconclusive.",
                   limits=((None, GREEN), (1, ORANGE)))),
    ])  # fmt: skip
    said = Row(3, [(24, sentence("In one sentence", _of_verdict("headline"), "The verdict's reason."))])
    cores = series("system.cpu.core.utilization", _HERE, ("target", "core"), alias="$tag_target core $tag_core")
    modules = series("system.cpu.module.utilization", _HERE, ("target", "module"), ref="B")
    cpu = lines("CPU per core, under the offered load", "percentunit", [cores, modules, *load()],
                "The busiest poll of each interval, so that no spike is lost; dashed: what the generators offer.",
                LOAD_LINES, most=1.0)  # fmt: skip
    process = series("process.memory.usage", _HERE, ("target", "process", "instance"))
    whole = series("system.memory.usage", _HERE, ("target",), ref="B", alias="$tag_target, all of it")
    memory = lines("Memory per process", "bytes", [process, whole],
                   "Resident memory of watched processes, and what the whole machine has in use.",
                   {", all of it$": SECOND_AXIS})  # fmt: skip
    names = ("system.network.packet.dropped", "system.softnet.dropped", "queue.dropped", "system.forwarding.dropped",
             "load.lost.packets", "queue.depth")  # fmt: skip
    by = (("target", "interface", "direction"), ("target", "core"), ("target", "queue"), ("target", "place", "reason"),
          ("target",), ("target", "queue"))  # fmt: skip
    words = ("dropped", "dropped softnet", "dropped queue", "dropped", "lost, says", "depth")
    # The generator's losses are not the chosen target's: they belong to the run.
    lost = [
        series(metric, _RUN if metric.startswith("load.") else _HERE, tags, ref=query.ref, alias=query.alias)
        for metric, tags, query in zip(names, by, each(names, _HERE, by, words), strict=True)
    ]
    depth = (*SECOND_AXIS,)
    drops = lines("Drops a second and queue depth, under the offered load", "pps", [*lost, *load()],
                  "Rates of the counters of drops; on the right the queues and, dashed, what the generators offer.",
                  {"^depth": depth, **LOAD_LINES})  # fmt: skip
    latency = lines("Latency", "s", [series("load.latency", _RUN, ("target", "quantile"))],
                    "What the generators measured.")  # fmt: skip
    up = lines("Temperature", "celsius", [series("system.temperature", _HERE, ("target", "sensor"))],
               "Sensors of the target.")  # fmt: skip
    return Board(
        RUN_UID,
        "Soakwatch · Run",
        "One run: verdict, load, device, losses and findings on one time axis.",
        [
            top,
            said,
            Row(11, [(24, cpu)]),
            Row(11, [(24, drops)]),
            Row(10, [(12, memory), (12, latency)]),
            Row(7, [(24, coverage(_HERE))]),
            Row(9, [(24, findings(_RUN, "Each cell leads to the exact window of its finding."))]),
            Row(8, [(24, up)]),
        ],
        [RUN, targets()],
        marks(),
    )
