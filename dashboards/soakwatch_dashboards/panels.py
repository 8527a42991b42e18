"""The kinds of panels."""

# ruff: noqa: FBT003 - the SDK takes switches by position

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import heatmap, stat, statetimeline, statushistory, table, timeseries
from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    ScaleDistributionConfig,
    StackingConfig,
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
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, DataTransformerConfig, DynamicConfigValue, Panel
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.statetimeline import Options as StateTimelineOptions

from soakwatch_dashboards.influx import SOURCE, Query, lettered
from soakwatch_dashboards.style import (
    AXIS,
    GREEN,
    GREY,
    LOAD,
    LOAD_AXIS,
    RED,
    SIZE,
    STRIP_AXIS,
    TITLE,
    by_value,
    fixed,
    in_colour,
    steps,
    text_words,
    unknown,
    words,
)

GAP_MS = 90_000.0
"""Lines bridge gaps up to this length, so a source polled each minute is still a line, and one lost poll of it is
visible. Shorter gaps of a faster source show in the strip of coverage."""
NOTHING = "no samples in this window, which is not the same as zero"
NO_ROWS = "none in this window"
NONE = "–"
"""Shown for no value: never a number, never green."""
Overrides = Mapping[str, Sequence[DynamicConfigValue]]
NO_LEGEND = DynamicConfigValue("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False})
SECOND_AXIS = (
    DynamicConfigValue("custom.axisPlacement", "right"),
    DynamicConfigValue("custom.axisWidth", AXIS),
    DynamicConfigValue("custom.fillOpacity", 0),
)
DASHED = DynamicConfigValue("custom.lineStyle", {"dash": [10, 6], "fill": "dash"})


def of_unit(unit: str) -> tuple[DynamicConfigValue, ...]:
    """Values in another unit than the rest of a panel, on a right axis of their own."""
    return (DynamicConfigValue("unit", unit), *SECOND_AXIS)


def of_load(counted: str) -> tuple[DynamicConfigValue, ...]:
    """A generator's line on a device's plot: one colour, dashed, on a linear right axis with short numbers. The axis
    names what they count and replaces the entry in the legend."""
    return (
        in_colour(LOAD),
        DynamicConfigValue("unit", "short"),
        DASHED,
        DynamicConfigValue("custom.axisPlacement", "right"),
        DynamicConfigValue("custom.axisWidth", LOAD_AXIS),
        DynamicConfigValue("custom.axisLabel", f"load, {counted}"),
        DynamicConfigValue("custom.axisColorMode", "series"),
        DynamicConfigValue("custom.scaleDistribution", {"type": "linear"}),
        DynamicConfigValue("custom.fillOpacity", 0),
        DynamicConfigValue("min", 0),
        NO_LEGEND,
    )


def limit_line() -> tuple[DynamicConfigValue, ...]:
    """A limit on a plot: red and dashed, on the same axis, and not in the legend, which is sorted by size and would
    list limits first."""
    return (in_colour(RED), DASHED, DynamicConfigValue("custom.fillOpacity", 0), NO_LEGEND)


def band(lowest: str) -> tuple[DynamicConfigValue, ...]:
    """The upper edge of a band that reaches down to the line ``lowest``."""
    return (DynamicConfigValue("custom.fillBelowTo", lowest), DynamicConfigValue("custom.fillOpacity", 12))


def lines(
    title: str,
    unit: str,
    queries: Sequence[Query],
    about: str,
    overrides: Overrides | None = None,
    most: float | None = None,
    *,
    below_zero: bool = False,
    small_and_large: bool = False,
    compact: bool = False,
) -> Panel:
    """Lines over time; ``overrides`` by regular expressions of line names; ``most`` is the axis' soft maximum.

    The axis starts at zero, so that nothing looks worse than it is, unless ``below_zero`` (values may be negative).
    ``small_and_large``: a logarithmic axis with a zero, for lines that differ by up to a million times. The legend is
    below, so that the plots of a column align, largest line first; ``compact``: names only, on one line.
    """
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered(queries)])
        .unit(unit)
        .no_value(NOTHING)
        .line_width(1)
        .fill_opacity(0)
        .show_points(VisibilityMode.AUTO)
        .span_nulls(GAP_MS)
        .axis_placement(AxisPlacement.AUTO)
        .axis_width(AXIS)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST if compact else LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs([] if compact else ["max", "lastNotNull"])
            .sort_by("Max")
            .sort_desc(True)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    if not below_zero:
        panel.min(0)
    if most is not None:
        panel.axis_soft_max(most)
    if small_and_large:
        panel.scale_distribution(
            ScaleDistributionConfig().type(ScaleDistribution.SYMLOG).log(10).linear_threshold(0.01)
        )
    for pattern, properties in (overrides or {}).items():
        panel.override_by_regexp(f"/{pattern}/", list(properties))  # without slashes it would be the whole name
    return panel.build()


def bars(title: str, queries: Sequence[Query], about: str) -> Panel:
    """Counts per interval as stacked bars: rare events are visible, and an interval without any is empty."""
    return (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered(queries)])
        .max_data_points(180)
        .unit("short")
        .decimals(0)
        .no_value(NOTHING)
        .min(0)
        .axis_soft_max(1)
        .draw_style(GraphDrawStyle.BARS)
        .line_width(0)
        .fill_opacity(90)
        .stacking(StackingConfig().mode(StackingMode.NORMAL))
        .axis_width(AXIS)
        .legend(
            VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs(["sum"])
            .sort_by("Total")
            .sort_desc(True)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .build()
    )


def share_strip(query: Query, about: str) -> Panel:
    """A share from 0 to 1 as one row: green if 1, red if less, empty without data.

    Cells rather than bars: a bar is coloured by height, so that the bar of a share of 1 is red up to its last pixel.
    """
    panel = _states("", query, about)
    return _one_row(
        panel.max_data_points(240)
        .unit("percentunit")
        .color_scheme(by_value())
        .thresholds(steps((None, RED), (0.9999, GREEN)))
        .show_value(VisibilityMode.NEVER)
        .build()
    )


def figure(
    title: str,
    queries: Query | Sequence[Query],
    about: str,
    unit: str = "none",
    named: Mapping[str, tuple[str, str]] | None = None,
    *,
    size: int = SIZE,
    limits: Sequence[tuple[float | None, str]] = ((None, GREY),),
    overrides: Overrides | None = None,
    decimals: int | None = None,
) -> Panel:
    """One number or word a series, which fills its box with its colour; a dash if there is none."""
    panel = (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered([queries] if isinstance(queries, Query) else queries)])
        .unit(unit)
        .color_mode(BigValueColorMode.BACKGROUND)
        .graph_mode(BigValueGraphMode.NONE)
        .text(VizTextDisplayOptions().value_size(size).title_size(TITLE))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .mappings(unknown(named))
        .thresholds(steps(*limits))
        .no_value(NONE)
    )
    if decimals is not None:
        panel.decimals(decimals)
    for pattern, properties in (overrides or {}).items():
        panel.override_by_regexp(f"/{pattern}/", list(properties))
    return panel.build()


def word(
    title: str,
    queries: Sequence[Query],
    column: str,
    about: str,
    named: Mapping[str, tuple[str, str]],
    links: Sequence[tuple[str, str]],
) -> Panel:
    """A column of the only row that one of the queries returns, as a coloured word; a click follows a link, which may
    refer to other columns.

    Rows instead of reduced values, as only then links know the other columns.
    """
    return (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered(queries)])
        .color_mode(BigValueColorMode.BACKGROUND)
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE)
        .text(VizTextDisplayOptions().title_size(TITLE))  # a fixed size would cut the longest word
        .reduce_options(ReduceDataOptions().values(True).limit(1).calcs([]).fields(f"/^{column}$/"))
        .mappings(unknown(named))
        .thresholds(steps((None, GREY)))
        .data_links(list(_links(links)))
        .no_value(NONE)
        .build()
    )


def sentence(
    title: str,
    query: Query,
    column: str,
    about: str,
    *,
    size: int = SIZE,
    empty: str = "",
) -> Panel:
    """A text: one column of a query's row (all columns would include the time).

    ``empty`` replaces an empty text.
    """
    panel = (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .color_mode(BigValueColorMode.NONE)
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE)
        .text(VizTextDisplayOptions().value_size(size).title_size(TITLE))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).fields(f"/^{column}$/").values(False))
        .color_scheme(fixed(GREY))
        .no_value(NONE)
    )
    if empty:
        panel.mappings([*text_words({"": (empty, GREY)}), *unknown()])
    return panel.build()


def strip(title: str, query: Query, named: Mapping[str, tuple[str, str]], about: str) -> Panel:
    """A coloured cell for each interval, a row for each line; the worst of an interval shows."""
    return (
        statushistory.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .max_data_points(180)
        .mappings(words(named))
        # Without a threshold the legend would show Grafana's defaults: "< 80" and "80+".
        .thresholds(steps((None, GREY)))
        .color_scheme(fixed(GREY))
        .no_value(NONE)
        .show_value(VisibilityMode.NEVER)
        .row_height(0.85)
        .legend(
            VizLegendOptions().show_legend(True).display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        )
        .build()
    )


def timeline(
    title: str, query: Query, about: str, named: Mapping[str, tuple[str, str]], *, values: bool = True
) -> Panel:
    """Words over time, a row for each line: each holds until the next. ``values``: write them into the bars."""
    panel = (
        _states(title, query, about)
        .thresholds(steps((None, GREY)))
        .show_value(VisibilityMode.AUTO if values else VisibilityMode.NEVER)
        .mappings(text_words(named))
        .color_scheme(fixed(GREY))
        .build()
    )
    return panel if title else _one_row(panel)


def _states(title: str, query: Query, about: str) -> statetimeline.Panel:
    return (
        statetimeline.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([query])
        .no_value(NONE)
        .merge_values(True)
        .row_height(0.85)
        .axis_width(STRIP_AXIS)
        .fill_opacity(80)
        .line_width(1)
        .legend(VizLegendOptions().show_legend(False).placement(LegendPlacement.BOTTOM))
    )


def _one_row(panel: Panel) -> Panel:
    """Disable pages, whose buttons take the height of the row."""
    assert isinstance(panel.options, StateTimelineOptions)
    panel.options.per_page = None
    return panel


def heat(title: str, queries: Sequence[Query], unit: str, about: str) -> Panel:
    """One row a line, its level from 0 to 1 as colour: more colour is busier, on dark and light pages."""
    colours = HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64).min(0).max(1)
    return (
        heatmap.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered(queries)])
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
    """How a column of a table is shown: heading, unit, words, width in pixels. ``hidden`` columns only feed links;
    ``text`` may be missing in a row and is then a dash.

    ``links`` (title, address) apply to the cells of this column.
    """

    heading: str = ""
    unit: str = ""
    named: Mapping[str, tuple[str, str]] | None = None
    width: int = 0
    hidden: bool = False
    decimals: int | None = None
    links: Sequence[tuple[str, str]] = ()
    text: bool = False

    def properties(self) -> list[DynamicConfigValue]:
        """The column's Grafana overrides."""
        links = [{"title": name, "url": url, "targetBlank": False} for name, url in self.links]
        settings = [
            ("displayName", self.heading),
            ("unit", self.unit),
            ("noValue", NONE if self.text else ""),
            ("custom.width", self.width),
            ("custom.hidden", self.hidden),
            ("mappings", words(self.named) if self.named else None),
            ("custom.cellOptions", {"type": "color-background"} if self.named else None),
            ("custom.displayMode", "color-background" if self.named else None),  # for Grafana 9
            ("links", links),
        ]
        shown = [DynamicConfigValue(key, value) for key, value in settings if value]
        return shown if self.decimals is None else [*shown, DynamicConfigValue("decimals", self.decimals)]


def rows(
    title: str,
    queries: Sequence[Query],
    columns: Mapping[str, Column],
    about: str,
    sorted_by: Sequence[str] = (),
    *,
    merged: bool = False,
) -> Panel:
    """A table; ``sorted_by`` names headings, highest first. Several queries are joined into rows by equal labels;
    ``merged``: they add rows rather than columns, and their times are meaningful."""
    panel = (
        table.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .targets([*lettered(queries)])
        .show_header(True)
        .no_value(NO_ROWS)
    )
    for name, column in columns.items():
        panel.override_by_name(name, column.properties())
    if len(queries) > 1:
        if not merged:  # the times of aggregates are meaningless
            panel.with_transformation(
                DataTransformerConfig("filterFieldsByName", options={"exclude": {"names": ["Time"]}})
            )
        panel.with_transformation(DataTransformerConfig("merge", options={}))
    if sorted_by:
        panel.sort_by([TableSortByFieldState().display_name(heading).desc(True) for heading in sorted_by])
    return panel.build()
