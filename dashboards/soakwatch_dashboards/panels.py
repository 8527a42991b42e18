"""The kinds of panels that the dashboards are made of."""

# ruff: noqa: FBT003 - the SDK takes switches by position

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import heatmap, stat, statushistory, table, timeseries
from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    TableSortByFieldState,
    VizLegendOptions,
    VizTextDisplayOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import DashboardLink
from grafana_foundation_sdk.builders.heatmap import CellValues, HeatmapColorOptions
from grafana_foundation_sdk.models.common import (
    AxisPlacement,
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DataTransformerConfig, DynamicConfigValue, Panel
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

from soakwatch_dashboards.influx import SOURCE, Query
from soakwatch_dashboards.style import BIG, GREY, LOAD, SIZE, TITLE, fixed, in_colour, steps, unknown, words

GAP_MS = 90_000.0
"""Lines cross gaps up to this long: a source that is polled each minute is still a line, and one lost poll of it is
seen. A shorter gap of a faster source is in the strip of coverage, on the same time axis."""
NOTHING = "no samples in this window, which is not the same as zero"
NONE = "–"
"""What stands for no value: never a number, never green."""
Overrides = Mapping[str, Sequence[DynamicConfigValue]]
SECOND_AXIS = (DynamicConfigValue("custom.axisPlacement", "right"), DynamicConfigValue("custom.fillOpacity", 0))


def of_unit(unit: str) -> tuple[DynamicConfigValue, ...]:
    """What is counted otherwise than the rest of a panel, on an axis of its own at the right."""
    return (DynamicConfigValue("unit", unit), *SECOND_AXIS)


def of_load(unit: str) -> tuple[DynamicConfigValue, ...]:
    """The look of a generator's line under a device's: one colour, dashed, on an axis of its own."""
    dashed = {"dash": [10, 6], "fill": "dash"}
    return (
        in_colour(LOAD),
        DynamicConfigValue("unit", unit),
        DynamicConfigValue("custom.lineStyle", dashed),
        *SECOND_AXIS,
    )


def lines(
    title: str,
    unit: str,
    queries: Sequence[Query],
    about: str,
    overrides: Overrides | None = None,
    most: float | None = None,
    *,
    below_zero: bool = False,
) -> Panel:
    """Lines over time; ``overrides`` by the regular expression of their names; ``most`` is the axis' soft end.

    The axis begins at zero, so that nothing looks worse than it is; ``below_zero``: what is shown may be negative.
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets(list(queries))
        .unit(unit)
        .no_value(NOTHING)
        .line_width(2)
        .fill_opacity(6)
        .show_points(VisibilityMode.AUTO)
        .span_nulls(GAP_MS)
        .axis_placement(AxisPlacement.AUTO)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.RIGHT)
            .calcs(["max", "lastNotNull"])
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    if not below_zero:
        panel.min(0)
    if most is not None:
        panel.axis_soft_max(most)
    for pattern, properties in (overrides or {}).items():
        panel.override_by_regexp(f"/{pattern}/", list(properties))  # without slashes it is the whole name
    return panel.build()


def figure(
    title: str,
    queries: Query | Sequence[Query],
    about: str,
    unit: str = "none",
    named: Mapping[str, tuple[str, str]] | None = None,
    *,
    big: bool = False,
    limits: Sequence[tuple[float | None, str]] = ((None, GREY),),
    overrides: Overrides | None = None,
) -> Panel:
    """One figure a series, or one word, that fills its box with its colour; where there is nothing stands a dash."""
    panel = (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([queries] if isinstance(queries, Query) else list(queries))
        .unit(unit)
        .color_mode(BigValueColorMode.BACKGROUND)
        .graph_mode(BigValueGraphMode.NONE)
        .text(VizTextDisplayOptions().value_size(BIG if big else SIZE).title_size(TITLE))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .mappings(unknown(named))
        .thresholds(steps(*limits))
        .no_value(NONE)
    )
    for pattern, properties in (overrides or {}).items():
        panel.override_by_regexp(f"/{pattern}/", list(properties))
    return panel.build()


def word(
    title: str,
    query: Query,
    column: str,
    about: str,
    named: Mapping[str, tuple[str, str]],
    links: Sequence[tuple[str, str]],
) -> Panel:
    """A column of a query's one row as a word in its colour; a click follows a link, which may name other columns.

    Rows instead of reduced values: only then do links know the other columns.
    """
    return (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .color_mode(BigValueColorMode.BACKGROUND)
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE)
        .text(VizTextDisplayOptions().value_size(BIG).title_size(TITLE))
        .reduce_options(ReduceDataOptions().values(True).limit(1).calcs([]).fields(f"/^{column}$/"))
        .mappings(unknown(named))
        .thresholds(steps((None, GREY)))
        .data_links(list(_links(links)))
        .no_value(NONE)
        .build()
    )


def sentence(title: str, query: Query, column: str, about: str) -> Panel:
    """A text of the database: a column of a query's row, and nothing but it (all columns would show the time too)."""
    return (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .color_mode(BigValueColorMode.NONE)
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE)
        .text(VizTextDisplayOptions().value_size(SIZE))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).fields(f"/^{column}$/").values(False))
        .color_scheme(fixed(GREY))
        .no_value(NONE)
        .build()
    )


def strip(title: str, query: Query, named: Mapping[str, tuple[str, str]], about: str) -> Panel:
    """A coloured cell for each stretch of time, a row for each line; the worst of a stretch is what is seen."""
    return (
        statushistory.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .max_data_points(180)
        .mappings(words(named))
        .no_value(NOTHING)
        .show_value(VisibilityMode.NEVER)
        .row_height(0.85)
        .legend(
            VizLegendOptions().show_legend(True).display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        )
        .build()
    )


def heat(title: str, queries: Sequence[Query], unit: str, about: str) -> Panel:
    """One row a line, its level from 0 to 1 as colour: dark is idle, bright is busy."""
    colours = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Turbo").steps(64).min(0).max(1)
    return (
        heatmap.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets(list(queries))
        .max_data_points(180)
        .calculate(False)
        .color(colours)
        .cell_values(CellValues().unit(unit))
        .cell_gap(1)
        .no_value(NOTHING)
        .show_value(VisibilityMode.NEVER)
        .build()
    )


def _links(links: Sequence[tuple[str, str]]) -> Iterator[DashboardLink]:
    return (DashboardLink(name).type(DashboardLinkType.LINK).title(name).url(url) for name, url in links)


@dataclass(frozen=True, slots=True)
class Column:
    """How a column of a table is shown: its heading, unit, words, width in pixels; ``hidden`` feeds links only."""

    heading: str = ""
    unit: str = ""
    named: Mapping[str, tuple[str, str]] | None = None
    width: int = 0
    hidden: bool = False

    def properties(self) -> list[DynamicConfigValue]:
        """As Grafana's overrides have it."""
        told = [
            ("displayName", self.heading),
            ("unit", self.unit),
            ("custom.width", self.width),
            ("custom.hidden", self.hidden),
            ("mappings", words(self.named) if self.named else None),
            ("custom.cellOptions", {"type": "color-background"} if self.named else None),
        ]
        return [DynamicConfigValue(key, value) for key, value in told if value]


def rows(
    title: str,
    queries: Sequence[Query],
    columns: Mapping[str, Column],
    about: str,
    links: Sequence[tuple[str, str]] = (),
    sorted_by: str = "",
) -> Panel:
    """A table; ``links`` (title, address) hang at each cell; ``sorted_by`` names a heading, highest first."""
    panel = (
        table.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets(list(queries))
        .show_header(True)
        .no_value(NONE)
    )
    for name, column in columns.items():
        panel.override_by_name(name, column.properties())
    if links:
        panel.data_links(list(_links(links)))
    if len(queries) > 1:  # one row for what has the same tags; the times of aggregates mean nothing
        panel.with_transformation(DataTransformerConfig("filterFieldsByName", options={"exclude": {"names": ["Time"]}}))
        panel.with_transformation(DataTransformerConfig("merge", options={}))
    if sorted_by:
        panel.sort_by([TableSortByFieldState().display_name(sorted_by).desc(True)])
    return panel.build()
