"""A dashboard from its rows of panels: places, numbers, variables, annotations, links, and its JSON."""

# ruff: noqa: S608, FBT003 - InfluxQL of our own names, what people choose is escaped by Grafana (${name:regex});
# the SDK takes switches by position

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink, QueryVariable
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    GridPos,
    Panel,
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from soakwatch_dashboards.influx import SOURCE, Query, one_of
from soakwatch_dashboards.style import BLUE, GREY, RED

TAG = "soakwatch"
_IN_MENU = ("placement", "inControlsMenu")
DEVICE_UID, RUN_UID = "soakwatch-device", "soakwatch-run"
NAMES = {
    uid: uid.partition("-")[2].title()
    for uid in ("soakwatch-fleet", RUN_UID, DEVICE_UID, "soakwatch-monitor", "soakwatch-compare")
}
"""The dashboards in the order in which they are gone through, and what their links are called."""
OF_A_RUN = (RUN_UID, DEVICE_UID, "soakwatch-monitor")
"""Those that show one run in one window: from one to the other both stay."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels side by side: how high they are, and how wide each is, in units of Grafana's grid."""

    height: int
    panels: Sequence[tuple[int, Panel]]


@dataclass(frozen=True, slots=True)
class Board:
    """All of a dashboard but its looks.

    ``since`` and ``until`` are the time range that it opens with, ``windows`` (name, from, to) others that it offers.
    """

    uid: str
    title: str
    about: str
    rows: Sequence[Row]
    variables: Sequence[QueryVariable] = ()
    annotations: Sequence[AnnotationQuery] = ()
    windows: Sequence[tuple[str, str, str]] = ()
    since: str = "now-6h"
    until: str = "now"
    refresh: str = "10s"
    timezone: str = "browser"

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.uid}.json"


def variable(name: str, label: str, query: str, *, many: bool = True, newest_first: bool = False) -> QueryVariable:
    """A variable of the values of a tag; ``many`` has All, which is chosen at first."""
    made = (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .definition(query)
        .hide(VariableHide.DONT_HIDE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_DESC if newest_first else VariableSort.NATURAL_ASC)
        .multi(many)
        .include_all(many)
    )
    return made.all_value(".*").current(VariableOption(True, ["All"], ["$__all"])) if many else made


RUN = variable("run", "Run", 'SHOW TAG VALUES FROM "soakwatch_verdict" WITH KEY = "run"', many=False, newest_first=True)


def targets(*, many: bool = True) -> QueryVariable:
    """The targets of the chosen run."""
    return variable("target", "Target", _values("target", "soakwatch_poll", "run"), many=many)


PROCESS = variable(
    "process",
    "Process",
    f'SHOW TAG VALUES FROM "process.memory.usage" WITH KEY = "process" WHERE {one_of("run", "target")}',
)
INTERFACE = variable(
    "interface",
    "Interface",
    f'SHOW TAG VALUES FROM "system.network.io" WITH KEY = "interface" WHERE {one_of("run", "target")}',
)


def _values(key: str, measurement: str, *chosen: str) -> str:
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{key}" WHERE {one_of(*chosen)}'


def _annotation(name: str, colour: str, select: str, tags: str, *, enabled: bool = True) -> AnnotationQuery:
    """A shaded region from time to ``end_ms``; a moment is a line."""
    mapping: dict[str, object] = {
        "name": name,
        "textColumn": "text",
        "tagsColumn": tags,
        "timeEndColumn": "end_ms",
        "titleColumn": "title",
        "fromAnnotations": True,
    }
    query = Query(select, ref="Anno", table=True, extra=mapping)
    return AnnotationQuery().name(name).datasource(SOURCE).enable(enabled).icon_color(colour).target(query)


def marks() -> tuple[AnnotationQuery, ...]:
    """Phases, events, and findings that are not good, of the chosen run."""
    # By what touches the view, not by what begins in it: the window of a finding mostly began with its phase.
    here = f'{one_of("run")} AND "begin_ms" <= $__to AND "end_ms" >= $__from'
    # What is in doubt is in the table: as shades it would cover the others.
    bad = f'{here} AND ("severity" = 3 OR "severity" = 1)'
    return (
        _annotation(
            "Phases", GREY, f'SELECT "text", "end_ms", "phase" AS "title" FROM "soakwatch_phase" WHERE {here}', "phase"
        ),
        _annotation(
            "Events",
            BLUE,
            f'SELECT "text", "end_ms", "kind" AS "title", "target", "object" FROM "soakwatch_event" WHERE {here}',
            "target,object",
        ),
        _annotation(
            "Findings",
            RED,
            'SELECT "reason" AS "text", "end_ms", "rule" AS "title", "target", "outcome"'
            f' FROM "soakwatch_finding" WHERE {bad}',
            "target,outcome",
        ),
    )


def to_json(board: Board) -> str:
    """The dashboard's JSON, the same for the same code.

    Grafana's placements of annotations and links in a menu, which the SDK sets by itself, are left out: a switch that
    is not seen from three metres is not used.
    """
    panels: list[Panel] = []
    y = 0
    for row in board.rows:
        x = 0
        for width, panel in row.panels:
            panel.grid_pos = GridPos(h=row.height, w=width, x=x, y=y)
            panel.id_val = len(panels) + 1
            panels.append(panel)
            x += width
        y += row.height
    made = (
        Dashboard(board.title)
        .uid(board.uid)
        .description(board.about)
        .tags([TAG])
        .readonly()
        .timezone(board.timezone)
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time(board.since, board.until)
        .refresh(board.refresh)
        .variables(list(board.variables))
        .annotations(list(board.annotations))
        .links(list(_ways(board)))
        .build()
    )
    made.panels = list(panels)
    plain: object = json.loads(json.dumps(made, cls=JSONEncoder))
    return json.dumps(_without_placement(plain), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _ways(board: Board) -> Iterator[DashboardLink]:
    """The links at the head: other windows, and the other dashboards."""
    for name, begin, end in board.windows:
        url = f"/d/{board.uid}?from={begin}&to={end}"
        yield DashboardLink(name).type(DashboardLinkType.LINK).title(name).icon("clock").url(url).include_vars(True)
    for uid, name in NAMES.items():
        if uid != board.uid:
            stays = {uid, board.uid} <= set(OF_A_RUN)
            yield (
                DashboardLink(name)
                .type(DashboardLinkType.LINK)
                .title(name)
                .icon("dashboard")
                # The run and nothing else: another's "All" targets is no target of the dashboard of one.
                .url(f"/d/{uid}?var-run=${{run:percentencode}}" if stays else f"/d/{uid}")
                .include_vars(False)
                .keep_time(stays)
            )


def _without_placement(part: object) -> object:
    if isinstance(part, dict):
        return {key: _without_placement(value) for key, value in part.items() if (key, value) != _IN_MENU}
    return [_without_placement(value) for value in part] if isinstance(part, list) else part
