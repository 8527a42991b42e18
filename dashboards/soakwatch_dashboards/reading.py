"""Reads a dashboard's JSON with types, for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict, cast


class Target(TypedDict):
    """A query of a panel or an annotation."""

    refId: str
    query: str
    datasource: dict[str, str]
    alias: str
    resultFormat: str


class Grid(TypedDict):
    """A panel's position."""

    x: int
    y: int
    w: int
    h: int


class Link(TypedDict):
    """A link of a panel's data or of a dashboard; the latter says what it keeps."""

    url: str
    keepTime: bool
    includeVars: bool


class Words(TypedDict):
    """The words of a special value."""

    match: str
    result: dict[str, object]


class Mapping(TypedDict):
    """Values shown as words; those of type ``special`` have ``Words`` as options."""

    type: str
    options: Words


class Reduced(TypedDict):
    """The fields that a stat shows."""

    fields: str


class Sizes(TypedDict, total=False):
    """Font sizes of a stat, in pixels."""

    valueSize: int
    titleSize: int


class Legend(TypedDict):
    """The legend of a plot."""

    displayMode: str
    placement: str
    sortBy: str
    sortDesc: bool


class Colour(TypedDict):
    """The colours of a heat map."""

    scheme: str


class Options(TypedDict):
    """The options of a stat, plot or heat map."""

    reduceOptions: Reduced
    text: Sizes
    legend: Legend
    color: Colour


class Custom(TypedDict, total=False):
    """How the lines of a plot are drawn."""

    axisWidth: int
    drawStyle: str
    spanNulls: float


class Step(TypedDict):
    """A threshold from which a colour applies."""

    value: float | None
    color: str


class Limits(TypedDict):
    """Colours by value."""

    steps: list[Step]


class Defaults(TypedDict, total=False):
    """Defaults for all fields of a panel."""

    unit: str
    noValue: str
    links: list[Link]
    mappings: list[Mapping]
    custom: Custom
    thresholds: Limits
    color: dict[str, str]


class Property(TypedDict):
    """One property of an override."""

    id: str
    value: object


class Override(TypedDict):
    """Settings for some fields of a panel."""

    matcher: dict[str, object]
    properties: list[Property]


class FieldConfig(TypedDict):
    """How a panel's fields are shown."""

    defaults: Defaults
    overrides: list[Override]


class Panel(TypedDict):
    """A panel; a collapsed heading contains its ``panels``."""

    id: int
    type: str
    title: str
    description: str
    gridPos: Grid
    datasource: dict[str, str]
    targets: list[Target]
    fieldConfig: FieldConfig
    options: Options


class Chosen(TypedDict):
    """The chosen value of a variable."""

    value: list[str] | str


class Variable(TypedDict, total=False):
    """A variable; ``allValue`` and ``current`` if several can be chosen."""

    name: str
    type: str
    multi: bool
    sort: int
    allValue: str
    current: Chosen
    query: str
    datasource: dict[str, str]


class Mark(TypedDict):
    """An annotation."""

    name: str
    datasource: dict[str, str]
    target: Target


class Marks(TypedDict):
    """The annotations."""

    list: list[Mark]


class Templating(TypedDict):
    """The variables."""

    list: list[Variable]


class Heading(TypedDict, total=False):
    """A heading that opens and closes the panels below it, and contains them while closed."""

    id: int
    type: str
    title: str
    collapsed: bool
    gridPos: Grid
    panels: list[Panel]
    repeat: str


class Dashboard(TypedDict):
    """A dashboard."""

    uid: str
    title: str
    schemaVersion: int
    graphTooltip: int
    refresh: str
    timezone: str
    time: dict[str, str]
    editable: bool
    links: list[Link]
    panels: list[Panel | Heading]
    templating: Templating
    annotations: Marks


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and its place: a panel's title and the query's letter, ``$variable``, ``annotation NAME``."""

    board: str
    where: str
    query: str


def parse(text: str) -> Dashboard:
    """Parse a dashboard's file."""
    board: Dashboard = json.loads(text)
    return board


def headings(board: Dashboard) -> Iterator[Heading]:
    """Every heading of a dashboard."""
    return (cast("Heading", panel) for panel in board["panels"] if panel["type"] == "row")


def panels(board: Dashboard) -> Iterator[Panel]:
    """Every panel of a dashboard, also those of collapsed headings; no headings."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from cast("Heading", panel)["panels"]
        else:
            yield cast("Panel", panel)


def asked(board: Dashboard) -> Iterator[Asked]:
    """Every query of a dashboard."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield Asked(board["uid"], f"{panel['title']} {target['refId']}", target["query"])
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield Asked(board["uid"], f"${variable['name']}", variable["query"])
    for mark in board["annotations"]["list"]:
        yield Asked(board["uid"], f"annotation {mark['name']}", mark["target"]["query"])
