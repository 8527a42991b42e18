"""The dashboard that overlays runs: each run, or one phase of each, starts at the same hour zero."""

# ruff: noqa: S608, FBT003 - the SDK takes switches by position; InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel, VariableOption

from soakwatch_dashboards.board import COMPARE_UID, Board, Row, newest_first, variable
from soakwatch_dashboards.fleet import ZERO_MS, verdicts
from soakwatch_dashboards.influx import TIME, Query, one_of
from soakwatch_dashboards.panels import lines
from soakwatch_dashboards.style import PACKETS

ZERO, END = "2100-01-01T00:00:00.000Z", "2100-01-02T00:00:00.000Z"
"""Hour zero, as in the sink, and a day later. It is in the future, so that no retention of a bucket drops it."""
_HERE = one_of("run", "role", "target", "since")


def _overlay(title: str, unit: str, metrics: str, about: str, *, most: float | None = None, where: str = "") -> Panel:
    """One line a run: the maximum over the metrics that a regular expression matches, and the run's targets and
    objects.

    Colours are assigned by the order of lines (by name, two of three runs may get the same colour). So each panel must
    have a line for each run in the database's order, also for one without data: otherwise the runs after it would have
    other colours than in the next panel.
    """
    by = 'GROUP BY time($__interval), "run"'
    shown = (
        f'SELECT max("max") AS "value" FROM "soakwatch_aligned" WHERE "metric" =~ /^({metrics})$/ AND {_HERE}{where}'
    )
    there = f'SELECT max("max") AS "there" FROM "soakwatch_aligned" WHERE {one_of("run", "since")}'
    query = (
        f'SELECT max("value") + 0 * max("there") AS "value" FROM ({shown} AND {TIME} {by} fill(none)),'
        f" ({there} AND {TIME} {by} fill(none)) WHERE {TIME} {by} fill(null)"
    )
    return lines(title, unit, [Query(query, "$tag_run")], about, most=most)


def board() -> Board:
    """The dashboard *Compare*."""
    run = variable(
        "run",
        "Runs",
        newest_first('"rank" != -1'),
        as_it_comes=True,
        all_at_first=False,
    )
    since = variable(
        "since",
        "Aligned at the start of",
        f'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "since" WHERE {one_of("run")}',
        many=False,
    ).current(VariableOption(True, "run", "run"))
    role = variable("role", "Role", 'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "role"')
    target = variable(
        "target",
        "Target",
        f'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "target" WHERE {one_of("run", "role")}',
    )
    process = variable(
        "process",
        "Process",
        f'SHOW TAG VALUES FROM "soakwatch_aligned" WITH KEY = "process" WHERE {one_of("run", "target")}',
    )
    of_chosen = f" AND {one_of('process')}"
    cpu = _overlay(
        "CPU", "percentunit", r"system\.cpu\.(module\.)?utilization", "Of the busiest module or device.", most=1
    )
    sent = _overlay("Load", "short", "load", "The generators' load, per second, in what they count.")
    used = _overlay("Memory in use", "bytes", r"system\.memory\.usage", "Of the device.")
    share = _overlay("Memory in use, share", "percentunit", r"system\.memory\.utilization", "Of the device.", most=1)
    of_process = _overlay(
        "Memory of the largest process",
        "bytes",
        r"process\.memory\.usage",
        "Resident memory; choose one process at the head to compare it.",
        where=of_chosen,
    )
    process_cpu = _overlay(
        "CPU of the busiest process", "percentunit", r"process\.cpu\.utilization", "100 % is one core.", where=of_chosen
    )
    drops = _overlay(
        "Drops a second",
        PACKETS,
        r"system\.network\.packet\.dropped|queue\.dropped|system\.(forwarding|ip)\.dropped",
        "Where the device drops most.",
    )
    lost = _overlay(
        "Lost a second, as the generator counts", PACKETS, r"load\.lost\.packets", "Of the worst generator."
    )
    latency = _overlay("Latency, the highest percentile", "s", r"load\.latency", "What the generators measured.")
    depth = _overlay("Queue depth", "short", r"queue\.depth", "Of the fullest queue.")
    sessions = _overlay("Sessions", "short", r"system\.sessions", "Of the fullest table.")
    return Board(
        COMPARE_UID,
        "Soakwatch · Compare",
        "Two or more runs, each from its own start or from the start of one phase: 00:00 of the first day is that start"
        " (times in UTC). One line and one colour a run: the highest of its targets, processes, queues.",
        [
            Row(6, [(24, verdicts("Verdicts", one_of("run")))]),
            Row(10, [(12, cpu), (12, sent)]),
            Row(10, [(12, used), (12, share)]),
            Row(10, [(12, of_process), (12, process_cpu)]),
            Row(10, [(12, drops), (12, lost)]),
            Row(10, [(8, latency), (8, depth), (8, sessions)]),
        ],
        [run, since, role, target, process],
        windows=[(f"First {hours} h", str(ZERO_MS), str(ZERO_MS + hours * 3_600_000)) for hours in (2, 12, 24, 72)],
        since=ZERO,
        until=END,
        refresh="",
    )
