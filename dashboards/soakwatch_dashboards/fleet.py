"""The dashboard of all runs: verdict or state, worst finding, length."""

# ruff: noqa: S608, FBT003 - the SDK takes switches by position; InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import CustomVariable, TextBoxVariable
from grafana_foundation_sdk.models.dashboard import Panel, VariableOption

from soakwatch_dashboards.board import COMPARE_UID, RUN_UID, THIS_SOURCE, Board, Row, variable
from soakwatch_dashboards.common import WHOLE, findings
from soakwatch_dashboards.influx import TIME, Query, counted, tag_is
from soakwatch_dashboards.panels import Column, figure, rows
from soakwatch_dashboards.style import BLUE, GREEN, GREY, ORANGE, OUTCOMES, PURPLE, RED

_STALE = '"rank" = -1 AND "last_ms" + "stale_after_ms" < $__to'
_FRESH = '("rank" != -1 OR "last_ms" + "stale_after_ms" >= $__to)'
ZERO_MS = 4_102_444_800_000
"""Compare's hour zero, in the year 2100: ``aligned.ZERO_NS`` of the sink."""
COUNT = 30
"""Font size in pixels at which hours and minutes of hundreds of runs fit into their tile."""
MINUTES = "time:YYYY-MM-DD HH:mm"
NAMED = r'"run" =~ /^(\d{8}T\d{6}Z-)?${name:regex}$/'
"""Condition: runs of the chosen names, which are preceded by the start time."""
CHOSEN = (
    f"{NAMED} AND "
    '"devices" =~ /(^|, )${device:regex}(, |$)/ AND "verdict" =~ /^${verdict:regex}$/'
    ' AND "label_release" =~ /^${release:regex}$/ AND "label_testbed" =~ /^${testbed:regex}$/'
    ' AND ("run" =~ /${search:regex}/ OR "headline" =~ /${search:regex}/ OR "labels" =~ /${search:regex}/)'
)
"""Condition: runs chosen by the variables."""


def verdicts(title: str, where: str, about: str = "A row a run; the name leads to it.") -> Panel:
    """One row a run; its name links to the run's window, and to its place in Compare."""

    def select(rank: str, condition: str) -> Query:
        return Query(
            f'SELECT {rank} AS "rank", "run", "labels", "devices", ("end_ms" - "begin_ms") / 1000 AS "lasted",'
            ' "failed", "warned", "doubtful", "headline", "last_ms", "begin_ms", "end_ms",'
            f' "end_ms" - "begin_ms" + {ZERO_MS} AS "aligned_end_ms"'
            f' FROM "soakwatch_verdict" WHERE {where} AND {condition}',
            table=True,
        )

    run = f"{THIS_SOURCE}&" + "var-run=${__data.fields.run:percentencode}"
    links = [
        *((name, f"/d/{RUN_UID}?{run}&{window}") for name, window in WHOLE),
        (
            "Compare it with others",
            f"/d/{COMPARE_UID}?{run}&from={ZERO_MS}&to=${{__data.fields.aligned_end_ms.numeric}}",
        ),
    ]
    columns = {
        "Time": Column("Began (UTC)", MINUTES, width=135),
        "rank": Column("Verdict", named=OUTCOMES, width=135),
        "run": Column("Run", width=290, links=links),
        "labels": Column("Labels", width=130, text=True),
        "devices": Column("Devices", width=120, text=True),
        "lasted": Column("Lasted, h:m:s", "dthms", width=110),
        "failed": Column("Failed", width=70),
        "warned": Column("Warned", width=75),
        "doubtful": Column("Inconclusive", width=100),
        "headline": Column("In one sentence", text=True),
        "last_ms": Column("Last reading (UTC)", MINUTES, width=135),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
        "aligned_end_ms": Column(hidden=True),
    }
    queries = [select('"rank" * 1', _FRESH), select('"rank" - 2', _STALE)]
    return rows(title, queries, columns, about, sorted_by=("Began (UTC)",), merged=True)


def _count(title: str, condition: str, colour: str, about: str) -> tuple[int, Panel]:
    query = counted(condition, "runs", of="rank", measurement="soakwatch_verdict", where=f"{TIME} AND {CHOSEN}")
    return 4, figure(title, query, about, size=COUNT, limits=((None, GREY), (1, colour)))


def _verdict() -> CustomVariable:
    words = ("pass", "warn", "inconclusive", "fail", "running", "not judged")
    return (
        CustomVariable("verdict")
        .label("Verdict")
        .values(",".join(words))
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(True, ["All"], ["$__all"]))
    )


def board() -> Board:
    """The dashboard *Fleet*."""
    lasted = Query(
        'SELECT sum("lasted") AS "lasted" FROM (SELECT ("end_ms" - "begin_ms") / 1000 AS "lasted"'
        f' FROM "soakwatch_verdict" WHERE {TIME} AND {CHOSEN})'
    )
    started = "Runs that started in the view, of those chosen at the head."
    counts = [
        _count("Passed", '"rank" = 0', GREEN, started),
        _count("Failed", '"rank" = 3', RED, started),
        _count("Inconclusive", '"rank" = 1', ORANGE, started),
        _count("Running", f'"rank" = -1 AND {_FRESH}', BLUE, started),
        _count(
            "Stale or not judged",
            f'("rank" = -2 OR ({_STALE}))',
            PURPLE,
            f"{started} Stale: says it runs, and its newest reading is too old. Not judged: broke off, or imported.",
        ),
    ]
    device = variable(
        "device", "Device", 'SHOW TAG VALUES FROM "soakwatch_poll" WITH KEY = "target" WHERE "role" = \'dut\''
    )
    # The plan's name, behind the start time.
    name = variable(
        "name",
        "Name",
        'SHOW TAG VALUES FROM "soakwatch_verdict" WITH KEY = "run"',
        regex=r"/^(?:\d{8}T\d{6}Z-)?(.*)$/",
    )
    release, testbed = (
        variable(label, label.title(), f'SHOW TAG VALUES FROM "soakwatch_verdict" WITH KEY = "label_{label}"')
        for label in ("release", "testbed")
    )
    search = TextBoxVariable("search").label("Search run, label, sentence")
    return Board(
        "soakwatch-fleet",
        "Soakwatch · Fleet",
        "All runs: verdict or state, worst finding, length. Times are UTC.",
        [
            Row(
                5,
                [
                    *counts,
                    (
                        4,
                        figure(
                            "Soaked, h:m:s", lasted, "The sum over the chosen runs of the view.", "dthms", size=COUNT
                        ),
                    ),
                ],
            ),
            Row(14, [(24, verdicts("Runs", f"{TIME} AND {CHOSEN}"))]),
            Row(
                12,
                [
                    (
                        24,
                        findings(
                            f"{TIME} AND {NAMED} AND {tag_is('target', 'device')}",
                            "What failed and warned in the chosen runs; the name of a rule leads to its window.",
                            with_run=True,
                        ),
                    )
                ],
            ),
        ],
        [device, name, release, testbed, _verdict(), search],
        since="now-90d",
        refresh="1m",
    )
