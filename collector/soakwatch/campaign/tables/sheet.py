"""A view as a table of a report: every cell as the texts that a format draws, and what the signs mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.campaign.tables.cell_figures import CellData, CellFigure
from soakwatch.campaign.tables.pivot import Entry, Key, View
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, TablesSpec
from soakwatch.core.formatting import Scale, scale_of
from soakwatch.report.blocks import ReportCell, ReportColumn, Table, Tone
from soakwatch_rules.wording.quantities import cut_to

_DIGITS, _MOST_DECIMALS, _MOST_NOTE = 4, 6, 60
_FEW_CELLS = 2
_TONES: Mapping[str, Tone] = {"best": "good", "worst": "caution"}
_MOST_SHOWN = 100_000  # a number that is longer is shown in a larger unit


def sheets_of(
    views: Sequence[View], spec: TablesSpec, address: Callable[[CellData], str] = lambda _: ""
) -> tuple[Table, ...]:
    """The views of one table, each a table of a report. A figure has the same unit and scale in all of them.

    ``address`` is where a cell leads on the page.
    """
    scales = scales_of(views)
    return tuple(_sheet(view, spec, scales, address) for view in views)


def number_text(value: float, decimals: int) -> str:
    """A number with four digits that matter and no more decimals than asked.

    >>> number_text(223.46, 2), number_text(2383.4, 2), number_text(3.0, 2), number_text(0.0, 2), number_text(2e-9, 6)
    ('223.5', '2,383', '3.00', '0', '2e-09')
    """
    if value == 0:
        return "0"
    if abs(value) < 10.0**-_MOST_DECIMALS:
        return f"{value:.2g}"
    return f"{value:,.{min(decimals, _own_decimals(value))}f}"


def _own_decimals(value: float) -> int:
    """Decimals that leave four digits."""
    return max(0, min(_MOST_DECIMALS, _DIGITS - 1 - math.floor(math.log10(abs(value)))))


def _needed(values: Iterable[float]) -> int:
    """How many decimals a table needs to show four digits of each number, without zeros that end all of them."""
    most = 0
    for value in values:
        if value and abs(value) >= 10.0**-_MOST_DECIMALS:
            text = f"{value:.{_own_decimals(value)}f}"
            most = max(most, len(text.rstrip("0").partition(".")[2]))
    return most


@dataclass(frozen=True, slots=True)
class Shown:
    """How the numbers of a figure are shown in a table and its charts."""

    scale: Scale
    decimals: int


def scales_of(views: Sequence[View]) -> dict[str, Shown]:
    """The scale of each figure in the views of a table."""
    by_name: dict[str, list[CellFigure]] = {}
    for view in views:
        for entry in view.entries.values():
            if entry.figure is not None and entry.figure.median is not None:
                by_name.setdefault(entry.name, []).append(entry.figure)
    shown = {}
    for name, cells in by_name.items():
        medians = [cell.median for cell in cells if cell.median is not None]
        scale = _scale(cells[0].unit, medians)
        shown[name] = Shown(scale, _needed(value * scale.factor for value in medians))
    return shown


def _scale(unit: str, values: Sequence[float]) -> Scale:
    """The scale of the largest number, or that of the smallest where its numbers would otherwise begin with 0."""
    sizes = [abs(value) for value in values if value]
    large, small = scale_of(unit, max(sizes, default=0.0)), scale_of(unit, min(sizes, default=0.0))
    fits = sizes and max(sizes) * small.factor < _MOST_SHOWN
    return small if fits and min(sizes) * large.factor < 1 else large


def _sheet(view: View, spec: TablesSpec, scales: Mapping[str, Shown], address: Callable[[CellData], str]) -> Table:
    def heading(name: str) -> str:
        label = scales[name].scale.label if name in scales else ""
        return f"{spec.words(name)} ({label})" if label else spec.words(name)

    def key_words(key: Key, axes: Sequence[str]) -> list[str]:
        return [heading(part) if axis == FIGURES else part for axis, part in zip(axes, key, strict=True)]

    of = ", ".join(f"{axis} {value}" for axis, value in view.of.items())
    subject = heading(view.figure) if view.figure else ""
    every = " × ".join(axis for axis in (*view.row_axes, *view.column_axes) if axis != FIGURES)
    title = ": ".join(part for part in (view.title, subject, of) if part) or f"by {every}"
    rows: list[tuple[ReportCell | str, ...]] = []
    lacking: dict[str, dict[str, None]] = {}
    before: list[str] = []
    for row in view.rows:
        words = key_words(row, view.row_axes)
        same = next((i for i, (a, b) in enumerate(zip(words, before, strict=False)) if a != b), len(words) - 1)
        # what is the same as above is not said again, as long as everything before it is the same
        row_heads = tuple("" if before and i < same else word for i, word in enumerate(words))
        before = words
        cells = [_cell(view.entry(row, column), view, scales, address) for column in view.columns]
        rows.append((*row_heads, *(cell for cell, _ in cells)))
        for column, (cell, why) in zip(view.columns, cells, strict=True):
            if why and (data := view.entry(row, column).data) is not None:
                label = why if cell.text in why or cell.tone != "absent" else f"{cell.text}: {why}"
                lacking.setdefault(label, {})[", ".join(f"{k} {v}" for k, v in data.cell.values.items())] = None
    columns = (
        *(ReportColumn("" if axis == FIGURES else axis, "head") for axis in view.row_axes),
        *(ReportColumn(" · ".join(key_words(column, view.column_axes)), "figure") for column in view.columns),
    )
    shaded = any(entry.shade is not None for entry in view.entries.values())
    return Table(
        title,
        columns,
        rows,
        brief=None,
        note="The bar and the shade go from 0 to the largest number of a figure." if shaded else "",
        across=" · ".join(axis for axis in view.column_axes if axis != FIGURES),
        footnotes=tuple(
            f"{why} ({'; '.join(whose) if len(whose) <= _FEW_CELLS else f'{len(whose)} cells'})"
            for why, whose in lacking.items()
        ),
        legend=_legend(view),
    )


def _cell(
    entry: Entry, view: View, scales: Mapping[str, Shown], address: Callable[[CellData], str]
) -> tuple[ReportCell, str]:
    """A cell, and in full what is missing in it."""
    if entry.absent:
        word = _cut(entry.short)
        return ReportCell(word, "absent"), entry.absent if word != entry.absent else ""
    to = "" if entry.data is None else address(entry.data)
    if entry.verdict is not None:
        words = entry.verdict.words
        return ReportCell(words, outcome=entry.verdict.outcome, links=((words, to),)), ""
    figure = entry.figure
    assert figure is not None
    assert figure.median is not None
    shown = scales[entry.name]

    def text(value: float) -> str:
        return number_text(value * shown.scale.factor, shown.decimals)

    beside = []
    least, most = figure.least, figure.most
    if "interval" in view.shows and figure.low is not None and figure.high is not None:
        beside.append(f"[{text(figure.low)}, {text(figure.high)}]")
    wanted = "range" in view.shows or ("interval" in view.shows and figure.low is None)
    if wanted and figure.n > 1 and least is not None and most is not None:
        beside.append(f"{text(least)}–{text(most)}")
    if "runs" in view.shows:
        beside.append(f"n {figure.n}")
    lacks = _cut(figure.short or figure.reason)  # such as "6 of 7 runs"
    main = text(figure.median)
    cell = ReportCell(
        main,
        _TONES.get(entry.mark.removeprefix("tied "), ""),
        links=((main, to),),
        mark=entry.mark,
        beside=" ".join(beside),
        note="; ".join(part for part in (figure.note, lacks) if part),
        shade=entry.shade,
    )
    return cell, figure.reason if figure.short or len(lacks) < len(figure.reason) else ""


def _cut(note: str) -> str:
    """A note short enough for a table. The whole of it stands below the table, in CSV and in JSON.

    >>> len(_cut("lost: " + 300 * "x"))
    60
    """
    return cut_to(note, _MOST_NOTE)


def _among(view: View) -> str:
    """Who competes with whom, where not all cells of the view do."""
    axes = [axis for axis in (*view.row_axes, *view.column_axes) if axis != FIGURES and axis not in view.rivals]
    several = [
        axis for axis in axes if len({e.data.cell.values.get(axis) for e in view.entries.values() if e.data}) > 1
    ]
    return f" {' and '.join(view.rivals)} of each {', '.join(several)}" if several else ""


def _legend(view: View) -> tuple[str, ...]:
    """What the numbers and signs of the view mean, as far as they occur in it."""
    entries = [entry for entry in view.entries.values() if not entry.absent and entry.figure is not None]
    figures = [entry.figure for entry in entries if entry.figure is not None]
    lines = []
    counts = sorted({figure.n for figure in figures})
    if counts and counts[-1] > 1:
        of = f"{counts[0]} runs" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} runs"
        lines.append(f"median of {of} a cell")
    elif counts:
        lines.append("one run a cell: the spread between runs is unknown")
    if "interval" in view.shows and any(figure.low is not None for figure in figures):
        lines.append("[low, high]: interval of the median, 95 %")
    short = any(figure.low is None and figure.n > 1 and figure.least is not None for figure in figures)
    if "range" in view.shows or ("interval" in view.shows and short):
        lines.append("low–high: lowest and highest run" + ("" if "range" in view.shows else ", fewer than 6"))
    if any(entry.mark for entry in entries):
        far = "more than 1 % from the next value (one run a cell)" if counts == [1] else "the intervals do not overlap"
        lines.append(f"best, worst{_among(view)}: {far}")
    elif not view.rivals:
        if len(entries) > 1 and any(figure.better for figure in figures):
            lines.append("no best and worst: the key rivals of the table names the axes whose values compete")
    elif len(entries) > 1 and any(figure.better for figure in figures) and view.figure != VERDICT:
        why = "of one run each, within 1 % of the next" if counts == [1] else "the intervals overlap"
        lines.append(f"no best and worst: {why}")
    return tuple(lines)
