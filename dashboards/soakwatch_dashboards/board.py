"""Builds a dashboard's JSON from rows of panels, variables, annotations and links."""

# ruff: noqa: S608, FBT003 - InfluxQL of our own names, what people choose is escaped by Grafana (${name:regex});
# the SDK takes switches by position

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    CustomVariable,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    TextBoxVariable,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    GridPos,
    Panel,
    RowPanel,
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from soakwatch_dashboards.influx import SOURCE, SOURCE_UID, Query, one_of
from soakwatch_dashboards.style import BLUE, GREY, RED, YELLOW

TAG = "soakwatch"
_IN_MENU = ("placement", "inControlsMenu")
DEVICE_UID, RUN_UID, COMPARE_UID = "soakwatch-device", "soakwatch-run", "soakwatch-compare"
NAMES = {
    uid: uid.partition("-")[2].title()
    for uid in ("soakwatch-fleet", RUN_UID, DEVICE_UID, "soakwatch-monitor", COMPARE_UID)
}
"""The dashboards in the order in which they are used, with the names of their links."""
THIS_SOURCE = "${source:queryparam}"
"""The chosen database, for links."""
OF_A_RUN = (RUN_UID, DEVICE_UID, "soakwatch-monitor")
"""Dashboards of a single run: links between them keep run and time range."""
STRIP_ENDS = 1
"""In units of Grafana's 24 columns: 54 to 67 pixels on a wall screen, where the load's axis has 64."""
Variable = QueryVariable | CustomVariable | TextBoxVariable | DatasourceVariable


@dataclass(frozen=True, slots=True)
class Row:
    """Panels side by side; height and widths are in units of Grafana's grid."""

    height: int
    panels: Sequence[tuple[int, Panel]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns side by side: the width of each, and its panels from top to bottom with their heights.

    A strip has no right axis and is ``STRIP_ENDS`` narrower than its column, so that it ends with the plots below it,
    which have the load's axis.
    """

    columns: Sequence[tuple[int, Sequence[tuple[int, Panel]]]]


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a heading that opens and closes them. ``repeat`` names a variable: one section for each chosen
    value."""

    title: str
    rows: Sequence[Row | Columns]
    repeat: str = ""
    collapsed: bool = True


@dataclass(frozen=True, slots=True)
class Board:
    """The content of a dashboard.

    ``since`` and ``until`` are its initial time range; ``windows`` (name, from, to) are further ones to choose.
    """

    uid: str
    title: str
    about: str
    rows: Sequence[Row | Columns | Section]
    variables: Sequence[Variable] = ()
    annotations: Sequence[AnnotationQuery] = ()
    windows: Sequence[tuple[str, str, str]] = ()
    links: Sequence[DashboardLink] = field(default=())
    since: str = "now-24h"
    until: str = "now"
    refresh: str = "30s"

    @property
    def file(self) -> str:
        return f"{self.uid}.json"


def variable(
    name: str,
    label: str,
    query: str,
    *,
    many: bool = True,
    all_at_first: bool = True,
    as_it_comes: bool = False,
    hidden: bool = False,
    regex: str = "",
    all_value: str = ".*",
) -> QueryVariable:
    """A variable with the values of a tag; ``many`` allows several and All, which is chosen initially, else the first
    one is.

    ``as_it_comes`` keeps the database's order; ``hidden`` is for variables that only queries use; with an empty
    ``all_value`` All means the values that the query returns.
    """
    built = (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .definition(query)
        .regex(regex)
        .hide(VariableHide.HIDE_VARIABLE if hidden else VariableHide.DONT_HIDE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.DISABLED if as_it_comes else VariableSort.NATURAL_ASC)
        .multi(many)
        .include_all(many)
    )
    if not many:
        return built
    built = built.all_value(all_value) if all_value else built
    return built.current(VariableOption(True, ["All"], ["$__all"])) if all_at_first else built


def newest_first(condition: str = "") -> str:
    """Query of a variable: runs by start time, newest first. Names cannot be used for sorting, as they are
    arbitrary."""
    where = f" WHERE {condition}" if condition else ""
    return (
        f'SELECT "run" FROM (SELECT last("rank") AS "rank" FROM "soakwatch_verdict"{where} GROUP BY "run")'
        " ORDER BY time DESC"
    )


RUN = variable("run", "Run", newest_first(), many=False, as_it_comes=True)
SOURCE_VARIABLE = (
    DatasourceVariable("source")
    .label("Database")
    .type("influxdb")
    .current(VariableOption(True, "Soakwatch", SOURCE_UID))
)
"""Which of Grafana's InfluxDB data sources is queried; initially the one that ``soakwatch dashboards`` provisions."""


def targets(*, many: bool = True) -> QueryVariable:
    """The targets of the chosen run; with ``many=False`` only devices under test."""
    query = _values("target", "soakwatch_poll", "run")
    return variable("target", "Target", query if many else f"{query} AND \"role\" = 'dut'", many=many)


PROCESS = variable(
    "process",
    "Process",
    f'SHOW TAG VALUES FROM "process.memory.usage" WITH KEY = "process" WHERE {one_of("run", "target")}',
    all_value="",
)
INTERFACE = variable(
    "interface",
    "Interface",
    f'SHOW TAG VALUES FROM "system.network.io" WITH KEY = "interface" WHERE {one_of("run", "target")}',
    all_value="",
)


def _values(key: str, measurement: str, *chosen: str) -> str:
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{key}" WHERE {one_of(*chosen)}'


def _annotation(
    name: str, colour: str, measurement: str, select: str, tags: Sequence[str], *, region: bool = True
) -> AnnotationQuery:
    """A shaded region from time to ``end_ms``, or a line.

    Columns must be named with their measurement, as Grafana's server names them; otherwise titles and ends are not
    found. Each of ``tags`` is searched *within* column names: a tag that is part of the measurement's name, such as
    ``phase``, would match all of them. A number cannot be split into tags.
    """
    mapping: dict[str, object] = {
        "name": name,
        "textColumn": f"{measurement}.text",
        "tagsColumn": ",".join(f"{measurement}.{tag}" for tag in tags),
        "titleColumn": f"{measurement}.title",
        "fromAnnotations": True,
    }
    if region:
        mapping["timeEndColumn"] = f"{measurement}.end_ms"
    query = Query(select, ref="Anno", table=True, extra=mapping)
    return AnnotationQuery().name(name).datasource(SOURCE).enable(True).icon_color(colour).target(query)


def marks() -> tuple[AnnotationQuery, ...]:
    """Phases and events of the chosen run, and the times of failures and warnings.

    Nothing shades more than an eighth of the view: regions are drawn over the lines, and a hundred findings on the
    whole run would cover each plot. Longer ones are a line at their start; the strips of rules and phases show their
    length.
    """
    run = one_of("run")
    here = f'{run} AND "begin_ms" <= $__to AND "end_ms" >= $__from'
    short = '"end_ms" - "begin_ms" < ($__to - $__from) / 8'
    event = 'SELECT "text", "end_ms", "kind" AS "title", "target", "object" FROM "soakwatch_event"'
    moment = 'SELECT "text", "rule" AS "title", "target", "outcome" FROM "soakwatch_moment"'
    in_view = f'{run} AND "at_ms" <= $__to AND "at_ms" >= $__from'
    phase = f'SELECT "text", "end_ms", "phase" AS "title" FROM "soakwatch_phase" WHERE {here}'
    longer = f'{event} WHERE {here} AND "end_ms" - "begin_ms" >= ($__to - $__from) / 8'
    failed, warned = (f'{moment} WHERE {in_view} AND "rank" = {rank}' for rank in (3, 2))
    of_event, of_moment = ("target", "object"), ("target", "outcome")
    return (
        _annotation("Phases", GREY, "soakwatch_phase", phase, ("title",), region=False),
        _annotation("Events", BLUE, "soakwatch_event", f"{event} WHERE {here} AND {short}", of_event),
        _annotation("Long events", BLUE, "soakwatch_event", longer, of_event, region=False),
        _annotation("Failures", RED, "soakwatch_moment", failed, of_moment, region=False),
        _annotation("Warnings", YELLOW, "soakwatch_moment", warned, of_moment, region=False),
    )


def to_json(board: Board) -> str:
    """The dashboard's JSON, the same for the same code.

    The SDK puts annotations and links into a menu by default; these placements are removed, as nobody uses a switch
    that is hidden.
    """
    built = (
        Dashboard(board.title)
        .uid(board.uid)
        .description(board.about)
        .tags([TAG])
        .readonly()
        .timezone("utc")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time(board.since, board.until)
        .refresh(board.refresh)
        .variables([SOURCE_VARIABLE, *board.variables])
        .annotations(list(board.annotations))
        .links([*_windows(board), *board.links, *_boards(board)])
        .build()
    )
    built.panels = _placed(board.rows)
    plain: object = json.loads(json.dumps(built, cls=JSONEncoder))
    return json.dumps(_without_placement(plain), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _placed(rows: Sequence[Row | Columns | Section]) -> list[Panel | RowPanel]:
    """The panels with positions and numbers; panels of a collapsed section are nested in its heading."""
    placed: list[Panel | RowPanel] = []
    y, number = 0, 0
    for row in rows:
        if not isinstance(row, Section):
            inner, y = _in_grid([row], y, number)
            number += len(inner)
            placed += inner
            continue
        number += 1
        heading = RowPanel(
            row.collapsed, row.title, grid_pos=GridPos(h=1, w=24, x=0, y=y), id_val=number, repeat=row.repeat or None
        )
        inner, end = _in_grid(row.rows, y + 1, number)
        number += len(inner)
        placed.append(heading)
        if row.collapsed:
            heading.panels, y = inner, y + 1
        else:
            placed, y = [*placed, *inner], end
    return placed


def _in_grid(rows: Sequence[Row | Columns], y: int, number: int) -> tuple[list[Panel], int]:
    """The panels of rows from ``y`` on, numbered after ``number``, and the ``y`` behind them."""
    placed: list[Panel] = []
    for row in rows:
        columns = row.columns if isinstance(row, Columns) else [(w, [(row.height, panel)]) for w, panel in row.panels]
        x, lowest = 0, y
        for width, stack in columns:
            top = y
            for height, panel in stack:
                shorter = STRIP_ENDS if is_strip(panel) else 0
                panel.grid_pos = GridPos(h=height, w=width - shorter, x=x, y=top)
                panel.id_val = number + len(placed) + 1
                placed.append(panel)
                top += height
            x, lowest = x + width, max(lowest, top)
        y = lowest
    return placed, y


def is_strip(panel: Panel) -> bool:
    """Whether it is a strip of one row without a title."""
    return panel.type_val == "state-timeline" and not panel.title


def _windows(board: Board) -> Iterator[DashboardLink]:
    """The links to other time windows."""
    for name, begin, end in board.windows:
        url = f"/d/{board.uid}?from={begin}&to={end}"
        yield DashboardLink(name).type(DashboardLinkType.LINK).title(name).icon("clock").url(url).include_vars(True)


def _boards(board: Board) -> Iterator[DashboardLink]:
    """The links to the other dashboards. They keep the chosen run, and the time range except to Compare, which has
    another clock."""
    for uid, name in NAMES.items():
        if uid != board.uid and not (board.uid not in OF_A_RUN and uid in OF_A_RUN):
            keeps_run = board.uid in OF_A_RUN and uid in (*OF_A_RUN, COMPARE_UID)
            yield (
                DashboardLink(name)
                .type(DashboardLinkType.LINK)
                .title(name)
                .icon("dashboard")
                # Only the run is kept: another dashboard's "All" targets is no target of the Device dashboard.
                .url(f"/d/{uid}?{THIS_SOURCE}" + ("&var-run=${run:percentencode}" if keeps_run else ""))
                .include_vars(False)
                .keep_time(keeps_run and uid in OF_A_RUN)
            )


def _without_placement(part: object) -> object:
    if isinstance(part, dict):
        return {key: _without_placement(value) for key, value in part.items() if (key, value) != _IN_MENU}
    return [_without_placement(value) for value in part] if isinstance(part, list) else part
