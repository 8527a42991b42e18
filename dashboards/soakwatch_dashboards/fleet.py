"""The dashboard of all runs: verdict, worst finding, hours."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_dashboards.board import RUN_UID, Board, Row
from soakwatch_dashboards.common import WHOLE, findings
from soakwatch_dashboards.influx import TIME, Query, counted
from soakwatch_dashboards.panels import Column, figure, rows
from soakwatch_dashboards.style import BLUE, GREEN, GREY, ORANGE, RED, SEVERITIES


def verdicts(title: str, where: str) -> Panel:
    """A row a run; each cell leads to the run, from its first minute to its last."""
    query = Query(
        'SELECT "severity", "run", "devices", "hours", "failed", "warned", "doubtful", "worst", "headline", "begin_ms",'
        f' "end_ms" FROM "soakwatch_verdict" WHERE {where}',
        table=True,
    )
    columns = {
        "Time": Column("Began", width=180),
        "severity": Column("Verdict", named=SEVERITIES, width=160),
        "run": Column("Run", width=260),
        "devices": Column("Devices", width=160),
        "hours": Column("Hours", "short", width=90),
        "failed": Column("Failed", width=80),
        "warned": Column("Warned", width=80),
        "doubtful": Column("Inconclusive", width=90),
        "worst": Column("Worst finding", width=260),
        "headline": Column("In one sentence"),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    run = f"/d/{RUN_UID}?var-run=${{__data.fields.run:percentencode}}"
    links = [(name, f"{run}&{window}") for name, window in WHOLE]
    return rows(title, [query], columns, "A row a run; each cell leads to it.", links, sorted_by="Began")


def _count(title: str, severity: int, colour: str) -> tuple[int, Panel]:
    query = counted(f'"severity" = {severity}', "runs", of="severity", measurement="soakwatch_verdict", where=TIME)
    return 5, figure(title, query, "Runs that started in the view.", big=True, limits=((None, GREY), (1, colour)))


def board() -> Board:
    """The dashboard *Fleet*."""
    hours = Query(f'SELECT sum("hours") AS "hours" FROM "soakwatch_verdict" WHERE {TIME}')
    counts = [
        _count("Passed", 0, GREEN),
        _count("Failed", 3, RED),
        _count("Inconclusive", 2, ORANGE),
        _count("Running", -1, BLUE),
    ]
    return Board(
        "soakwatch-fleet",
        "Soakwatch · Fleet",
        "All runs: verdict, worst finding, hours.",
        [
            Row(5, [*counts, (4, figure("Hours soaked", hours, "The sum over the runs of the view.", "short"))]),
            Row(14, [(24, verdicts("Runs", TIME))]),
            Row(12, [(24, findings(TIME, "Of all runs in the view; each cell leads to its window.", with_run=True))]),
        ],
        since="now-90d",
        refresh="1m",
    )
