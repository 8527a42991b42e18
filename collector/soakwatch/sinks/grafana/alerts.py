"""Alert rules as Grafana provisions them from a file; whom they reach is left to the lab.

Grafana's server asks the queries, so that nothing of a dashboard is replaced in them but ``$timeFilter``, and only
numbers come back: texts with gaps break its 9.3. What an alert is about stands in the tags that a query groups by.

InfluxQL joins no two measurements, so Grafana's math does: each series with those whose tags are among its own. Where
both sides are a single series each, it joins them although they are of different runs. So one of two queries always
brings more than one series (the polls of a run are those of its devices *and* of its monitor), or all runs there are.
"""

# ruff: noqa: S608 - InfluxQL of our own names

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sinks.grafana.models import Object, panels_of
from soakwatch.sinks.grafana.report_link import page_url

LAG_S = 60
"""How old the oldest sample that a sink has not written yet may be."""
STALE_MINUTES = 10
"""How long nothing may come of a run that says that it runs."""
_MAX_RUN_S = 30 * 86_400  # of runs that began longer ago nothing is said
_EVER_S = 400 * 86_400  # there is one point a run
_HOUR_S = 3_600
_STALE_S = 7 * 86_400  # a run that was killed longer ago is history, and Fleet shows it as stale
_EXPRESSION = "__expr__"
_OF_SOURCES = '"outcome" !~ /^(missed|overrun|gap)$/'


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a rule: its InfluxQL, and how many seconds back ``$timeFilter`` reaches."""

    query: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: of each query the last value is a number of its name; ``condition`` says of which numbers it alarms.

    ``uid`` is its own, ``board`` and ``panel`` (uid, title) are where its reason is seen; ``wait`` is how long the
    condition must hold. ``summary`` and ``remedy`` are texts of Grafana with ``$labels`` and ``$values``.
    """

    uid: str
    title: str
    severity: str
    queries: Mapping[str, Asked]
    condition: str
    wait: str
    board: str
    panel: str
    summary: str
    remedy: str


_STATE = Asked('SELECT last("severity") FROM "soakwatch_verdict" WHERE $timeFilter GROUP BY "run"', _MAX_RUN_S)
"""How each run stands: -1 is running."""
_WINDOW = {
    "begin": Asked('SELECT last("begin_ms") FROM "soakwatch_verdict" WHERE $timeFilter GROUP BY "run"', _EVER_S),
    "end": Asked(
        'SELECT last("end_ms") * (last("rank") + 1) / (last("rank") + 1) FROM "soakwatch_verdict" WHERE $timeFilter'
        ' GROUP BY "run"',
        _EVER_S,
    ),
}
"""When each run began and ended, which is what a link opens; the end is 0 while a run goes on, since what InfluxQL
divides by 0 is 0.

No condition reads them: Grafana gives the texts of an alert the numbers of all queries whose tags are among its own.
Both bring a row of each run there is, for a rule of which one query brings none has no data, and is silent.
"""
_FROM = '{{ with $values.begin }}{{ printf "%.0f" .Value }}{{ else }}now-24h{{ end }}'
_TO = '{{ with $values.end }}{{ if .Value }}{{ printf "%.0f" .Value }}{{ else }}now{{ end }}{{ else }}now{{ end }}'
_OF_MONITOR = "\"role\" = 'monitor'"
_QUIET = (
    'SELECT sum("term") FROM'
    f' (SELECT last("ok") * 0 + 1 AS "term" FROM "soakwatch_poll" WHERE $timeFilter AND {_OF_MONITOR} GROUP BY "run"),'
    ' (SELECT last("ok") * 0 - 1 AS "term" FROM "soakwatch_poll"'
    f' WHERE time > now() - {STALE_MINUTES}m AND {_OF_MONITOR} GROUP BY "run")'
    ' WHERE $timeFilter GROUP BY "run"'
)
"""1 for a run whose monitor has polled in the range, but not in its last minutes; else 0."""
_MANY = 10**12  # more than any backlog; it cancels out where there is a minimum as well as a maximum
_GROWTH = (
    'SELECT "growth" FROM (SELECT sum("term") AS "growth" FROM'
    f' (SELECT min("value") + {_MANY} AS "term" FROM "monitor.sink.backlog" WHERE time > now() - 5m'
    ' GROUP BY "run", "sink"),'
    f' (SELECT -1 * max("value") - {_MANY} AS "term" FROM "monitor.sink.backlog"'
    ' WHERE $timeFilter AND time <= now() - 10m GROUP BY "run", "sink")'
    f' WHERE $timeFilter GROUP BY "run", "sink") WHERE "growth" > 0 AND "growth" < {_MANY // 2} GROUP BY "run", "sink"'
)
"""By how much the minimum of the last 5 minutes is above the maximum of those 5 that ended 10 minutes ago.

Nothing where it is not, or where there were none. What lies between is not asked for: a sink sends in batches, so that
its backlog goes up and down.
"""
_FINDING = "{{ $labels.rule }}{{ if $labels.target }} on {{ $labels.target }}{{ end }}"

ALERTS = (
    Alert(
        "soakwatch-finding-failed",
        "A finding failed",
        "critical",
        {
            "failed": Asked(
                'SELECT count("rank") FROM "soakwatch_finding" WHERE $timeFilter AND "rank" = 3'
                ' GROUP BY "run", "rule", "target"',
                _MAX_RUN_S,
            ),
            "recent": Asked(
                'SELECT count("ok") FROM "soakwatch_poll" WHERE $timeFilter GROUP BY "run", "target"', _HOUR_S
            ),
        },
        "$failed > 0 && $recent > 0",
        "1m",
        "soakwatch-run",
        "Findings",
        f"Run {{{{ $labels.run }}}}: {_FINDING} has {{{{ $values.failed.Value }}}} failed findings; the limit is 0.",
        "Open the run's findings: each names what was measured and its limit. The alert ends an hour after the run.",
    ),
    Alert(
        "soakwatch-source-silent",
        "A source is silent",
        "warning",
        {
            "silent": Asked(
                f'SELECT 1 - last("ok") FROM "soakwatch_poll" WHERE $timeFilter AND {_OF_SOURCES}'
                ' GROUP BY "run", "target", "source"',
                _HOUR_S,
            ),
            "state": _STATE,
        },
        "$silent > 0 && $state == -1",
        "5m",
        "soakwatch-monitor",
        "Coverage: polls that were answered, by source",
        "Run {{ $labels.run }}: the last poll of {{ $labels.source }} on {{ $labels.target }} failed, and none was"
        " answered for more than 5 minutes.",
        "Check that the target is reachable, and the credentials of the source; its gap is part of the verdict.",
    ),
    Alert(
        "soakwatch-sink-lag",
        "The sink is late",
        "warning",
        {
            "lag": Asked(
                'SELECT last("value") FROM "monitor.sink.lag" WHERE $timeFilter GROUP BY "run", "sink"', _HOUR_S
            ),
            "state": _STATE,
        },
        f"$lag > {LAG_S} && $state == -1",
        "2m",
        "soakwatch-monitor",
        "Lag",
        'Run {{ $labels.run }}: the sink {{ $labels.sink }} is {{ printf "%.0f" $values.lag.Value }} s behind;'
        f" the limit is {LAG_S} s.",
        "The dashboards show an old state; nothing is lost, the record has it. Check the load of the database.",
    ),
    Alert(
        "soakwatch-sink-backlog",
        "The backlog of the sink grows",
        "warning",
        {"growth": Asked(_GROWTH, 900)},
        "$growth > 0",
        "5m",
        "soakwatch-monitor",
        "Backlog of the sink",
        "Run {{ $labels.run }}: the backlog of the sink {{ $labels.sink }} grows: its minimum of the last 5 minutes is"
        ' {{ printf "%.0f" $values.growth.Value }} polls above its maximum of 10 to 15 minutes ago; the limit is 0.',
        "The database takes less than the run gives. Check its load and disk, or poll less often.",
    ),
    Alert(
        "soakwatch-run-stale",
        "A run is stale",
        "critical",
        {"quiet": Asked(_QUIET, _STALE_S), "state": _STATE},
        "$quiet > 0 && $state == -1",
        "1m",
        "soakwatch-run",
        "Last poll",
        "Run {{ $labels.run }} says that it runs, and nothing of its monitor has arrived for more than"
        f" {STALE_MINUTES} minutes.",
        "Check whether the collector and its sink still run, and whether they reach the database. After a crash, judge"
        " the record with `soakwatch judge` and send it with `soakwatch sink`.",
    ),
)
"""All rules."""


def alert_file(source_uid: str, folder: str, models: Sequence[Object], page: str | None = None) -> Object:
    """The provisioning of all rules: they ask the data source of the uid and lie in the folder of the name.

    ``models`` are the dashboards that they lead to; with ``page``, the address of ``soakwatch serve``, they lead to the
    page of the run as well.
    """
    boards = {model.get("uid"): model for model in models}
    rules = [_rule(alert, source_uid, boards[alert.board], page) for alert in ALERTS]
    group: Object = {"orgId": 1, "name": "soakwatch", "folder": folder, "interval": "1m", "rules": rules}
    return {"apiVersion": 1, "groups": [group]}


def _rule(alert: Alert, source_uid: str, board: Object, page: str | None) -> Object:
    data: list[Object] = []
    for name, asked in {**alert.queries, **_WINDOW}.items():
        data += [_query(f"{name}_rows", asked, source_uid), _expression(name, "reduce", f"{name}_rows")]
    data.append(_expression("alarm", "math", alert.condition))
    run = "{{ $labels.run | urlquery }}"
    annotations = {
        "summary": alert.summary,
        "description": alert.remedy,
        "dashboard": (
            f'{{{{ reReplaceAll "/+$" "" externalURL }}}}/d/{alert.board}?var-run={run}&from={_FROM}&to={_TO}'
        ),
    }
    if page is not None:
        annotations["report"] = page_url(page, run)
    seen: Object = {}
    panel = _panel_id(board, alert.panel)
    if panel is not None:  # Grafana takes both or none
        annotations |= {"__dashboardUid__": alert.board, "__panelId__": str(panel)}
        seen = {"dashboardUid": alert.board, "panelId": panel}
    return {
        "uid": alert.uid,
        "title": alert.title,
        "condition": "alarm",
        "data": data,
        **seen,
        "noDataState": "OK",
        "execErrState": "Error",
        "for": alert.wait,
        "annotations": annotations,
        "labels": {"severity": alert.severity},
    }


def _query(name: str, asked: Asked, source_uid: str) -> Object:
    model: Object = {
        "refId": name,
        "datasource": {"type": "influxdb", "uid": source_uid},
        "query": asked.query,
        "rawQuery": True,
        "resultFormat": "time_series",
        "intervalMs": 1000,
        "maxDataPoints": 43200,
    }
    return {
        "refId": name,
        "relativeTimeRange": {"from": asked.seconds, "to": 0},
        "datasourceUid": source_uid,
        "model": model,
    }


def _expression(name: str, kind: str, of: str) -> Object:
    model: Object = {
        "refId": name,
        "datasource": {"type": _EXPRESSION, "uid": _EXPRESSION},
        "type": kind,
        "expression": of,
    }
    if kind == "reduce":
        model["reducer"] = "last"
    return {
        "refId": name,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": _EXPRESSION,
        "model": model,
    }


def _panel_id(board: Object, title: str) -> int | None:
    """The number of the last panel of a title: a plot lies below the figure of the same name."""
    numbers = [panel.get("id") for panel in panels_of(board) if panel.get("title") == title]
    return numbers[-1] if numbers and isinstance(numbers[-1], int) else None
