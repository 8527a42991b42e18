"""Alert rules in Grafana's provisioning format; the lab decides who is notified.

Grafana's server runs the queries. It replaces only ``$timeFilter`` in them, and they must return numbers only: texts
with gaps break Grafana 9.3. The tags that a query groups by identify what an alert is about.

InfluxQL cannot join two measurements, so Grafana's math does: it joins each series with those whose tags are a subset
of its own. If both sides are a single series it joins them even if they are of different runs. Therefore one of two
queries always returns several series (a run has polls of its devices *and* of its monitor) or all runs.
"""

# ruff: noqa: S608 - InfluxQL of our own names

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.transfer.sinks.grafana.models import Object, panels_of
from soakwatch.transfer.sinks.grafana.report_link import page_url

LAG_S = 60
"""Limit on the age of the oldest sample that a sink has not written yet."""
STALE_MINUTES = 10
"""How long a run that says that it runs may send nothing."""
_MAX_RUN_S = 30 * 86_400  # runs that began longer ago raise no alert
_EVER_S = 400 * 86_400  # there is one point a run
_HOUR_S = 3_600
_STALE_S = 7 * 86_400  # a run killed longer ago is history; Fleet shows it as stale
_EXPRESSION = "__expr__"
_OF_SOURCES = '"outcome" !~ /^(missed|overrun|gap)$/'


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """An InfluxQL query of a rule, and how many seconds back ``$timeFilter`` reaches."""

    query: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule. The last value of each query is a number of its name, which ``condition`` uses to alarm.

    ``board`` and ``panel`` (uid, title) show the reason; ``wait`` is how long the condition must hold. ``summary`` and
    ``remedy`` are Grafana templates with ``$labels`` and ``$values``.
    """

    uid: str
    title: str
    severity: str
    queries: Mapping[str, AlertQuery]
    condition: str
    wait: str
    board: str
    panel: str
    summary: str
    remedy: str


_STATE = AlertQuery('SELECT last("severity") FROM "soakwatch_verdict" WHERE $timeFilter GROUP BY "run"', _MAX_RUN_S)
"""The state of each run: -1 is running."""
_WINDOW = {
    "begin": AlertQuery('SELECT last("begin_ms") FROM "soakwatch_verdict" WHERE $timeFilter GROUP BY "run"', _EVER_S),
    "end": AlertQuery(
        'SELECT last("end_ms") * (last("rank") + 1) / (last("rank") + 1) FROM "soakwatch_verdict" WHERE $timeFilter'
        ' GROUP BY "run"',
        _EVER_S,
    ),
}
"""When each run began and ended, for links; the end is 0 while a run goes on, since InfluxQL's division by 0 gives 0.

No condition uses them: templates of an alert see the numbers of all queries whose tags are a subset of its own. Both
return a row for every run, as a rule with a query without data stays silent.
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
"""1 for a run whose monitor polled in the range but not in the last ``STALE_MINUTES``; else 0."""
_MANY = 10**12  # more than any backlog; cancels out if there is both a minimum and a maximum
_GROWTH = (
    'SELECT "growth" FROM (SELECT sum("term") AS "growth" FROM'
    f' (SELECT min("value") + {_MANY} AS "term" FROM "monitor.sink.backlog" WHERE time > now() - 5m'
    ' GROUP BY "run", "sink"),'
    f' (SELECT -1 * max("value") - {_MANY} AS "term" FROM "monitor.sink.backlog"'
    ' WHERE $timeFilter AND time <= now() - 10m GROUP BY "run", "sink")'
    f' WHERE $timeFilter GROUP BY "run", "sink") WHERE "growth" > 0 AND "growth" < {_MANY // 2} GROUP BY "run", "sink"'
)
"""How far the minimum of the last 5 minutes lies above the maximum of 10 to 15 minutes ago; nothing if it does not.

What lies between is ignored: a sink sends in batches, so its backlog goes up and down.
"""
_FINDING = "{{ $labels.rule }}{{ if $labels.target }} on {{ $labels.target }}{{ end }}"

ALERTS = (
    Alert(
        "soakwatch-finding-failed",
        "A finding failed",
        "critical",
        {
            "failed": AlertQuery(
                'SELECT count("rank") FROM "soakwatch_finding" WHERE $timeFilter AND "rank" = 3'
                ' GROUP BY "run", "rule", "target"',
                _MAX_RUN_S,
            ),
            "recent": AlertQuery(
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
            "silent": AlertQuery(
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
            "lag": AlertQuery(
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
        {"growth": AlertQuery(_GROWTH, 900)},
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
        {"quiet": AlertQuery(_QUIET, _STALE_S), "state": _STATE},
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


def alert_file(source_uid: str, folder: str, models: Sequence[Object], page: str | None = None) -> Object:
    """Provisioning of all rules, which query the data source ``source_uid`` and lie in the folder ``folder``.

    ``models`` are the dashboards that they link to; with ``page``, the address of ``soakwatch serve``, they also link
    to the page of the run.
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


def _query(name: str, asked: AlertQuery, source_uid: str) -> Object:
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
    """The id of the last panel with a title: a plot lies below the number of the same title."""
    numbers = [panel.get("id") for panel in panels_of(board) if panel.get("title") == title]
    return numbers[-1] if numbers and isinstance(numbers[-1], int) else None
