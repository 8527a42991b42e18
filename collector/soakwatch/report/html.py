"""The HTML report: one file that opens offline, with the verdict on top and the evidence below."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TypedDict

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from soakwatch.core.formatting import (
    SYMBOLS,
    extent,
    iso,
    isolated,
    number,
    printable,
    quantity,
    share_text,
    span_text,
    subject,
    utc,
    zoom_of,
)
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.blocks import Block, Chapter, Curves, Layout, Table, columns_in
from soakwatch.report.curves import curve_of
from soakwatch.report.page import POINTS, Page, open_page
from soakwatch.report.plot import pieces_of
from soakwatch.report.section import all_sections
from soakwatch_model.finding import Outcome

_COMMENT = re.compile(r"^[ ]*/\*.*?\*/\n", re.DOTALL | re.MULTILINE)
UPLOT = "uplot/uPlot.iife.min.js"
"""uPlot (MIT, its licence is in the file) paints the plots of every page; a report holds it and opens offline."""
_HEIGHT = 250  # pixels of a plot of a section's curves


class _Part(TypedDict):
    """A chapter for the template: its blocks by the name of their kind, with what the template needs beside them."""

    name: str
    title: str
    opened: bool
    drawn: list[tuple[str, Block, object]]


def render_html(source: ReportSource, verdict: Verdict, earlier: ReportSource | None = None) -> str:
    """The report as one HTML document. Equal records and verdicts give equal bytes.

    Nothing is fetched: styles, scripts and data are inside, and the document's own security policy forbids the rest.
    Each plot is a piece of JSON behind the text, so that a browser shows the text at once and draws what is
    scrolled into view. ``earlier`` is a run that this one is compared with.
    """
    return html_of(open_page(source, verdict, earlier))


def html_of(page: Page) -> str:
    """The report of an open page. Its plots are drawn into the page: make the other formats before."""
    verdict = page.verdict
    chapters = [section.chapter(page, "html") for section in all_sections()]
    return html_document(chapters, f"{verdict.words}: {verdict.run}", verdict.outcome, page=page)


def html_document(
    chapters: Sequence[Chapter],
    title: str,
    outcome: Outcome,
    listed: Sequence[tuple[str, str]] | None = None,
    page: Page | None = None,
) -> str:
    """The chapters as one HTML document; ``listed`` are names and titles of those in its list of contents, by default
    all that are opened. Curves need the ``page`` of a run."""
    parts = _drawn_chapters(chapters, page)
    pieces = pieces_of([]) if page is None else page.drawing.pieces()
    drawn = bool(pieces.parts)
    style = asset("style.css") + (plots_style() if drawn else "") + (asset("tables.css") if _has_figures(parts) else "")
    opened = [(part["name"], part["title"]) for part in parts if part["opened"] and part["title"]]
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=title,
            outcome=outcome,
            window=None if page is None else page.verdict.window,
            listed=opened if listed is None else listed,
            parts=parts,
            style=Markup(style),  # noqa: S704 - our own files, and uPlot's
            script=Markup(script_text("shade.js") + script_text("report.js")),  # noqa: S704
            uplot=Markup(asset(UPLOT) if drawn else ""),  # noqa: S704
            theme=Markup(script_text("theme.js") if drawn else ""),  # noqa: S704
            plots=Markup(script_text("figure.js") + script_text("plots.js") if drawn else ""),  # noqa: S704
            shared=Markup(pieces.shared),  # noqa: S704 - JSON without a single "<"
            pieces=[(piece.element, Markup(piece.text)) for piece in pieces.parts],  # noqa: S704
        )
    )


def html_body(chapters: Sequence[Chapter]) -> Markup:
    """The chapters alone, for a page of the server, which has styles of its own and ``tables.css``."""
    parts = _drawn_chapters(chapters, None)
    return Markup(_environment().get_template("parts.html.jinja").render(parts=parts))  # noqa: S704 - autoescaped


def _drawn_chapters(chapters: Sequence[Chapter], page: Page | None) -> list[_Part]:
    """What the template needs of each chapter that says something: all facts are made before any template is filled."""
    parts = []
    for chapter in chapters:
        drawn = [each for block in chapter.blocks if (each := _drawn(block, page))[2] is not None]
        if drawn:
            parts.append(_Part(name=chapter.name, title=chapter.title, opened=chapter.opened, drawn=drawn))
    return parts


def _has_figures(parts: Sequence[_Part]) -> bool:
    tables = [block for part in parts for _, block, _ in part["drawn"] if isinstance(block, Table)]
    return any(column.kind == "figure" for table in tables for column in table.columns)


def _laid(layout: Layout, facts: Mapping[str, object]) -> Markup:
    """A layout, filled with its facts."""
    return Markup(_environment().get_template(f"layouts/{layout.name}.html.jinja").render(facts))  # noqa: S704 - autoescaped


def compile_templates() -> None:
    """Compile all templates now: otherwise the first report of a process does it."""
    for name in ("page", "parts", "blocks"):
        _environment().get_template(f"{name}.html.jinja")
    for layout in resources.files("soakwatch.report").joinpath("layouts").iterdir():
        _environment().get_template(f"layouts/{layout.name}")


def _drawn(block: Block, page: Page | None) -> tuple[str, Block, object]:
    """The kind of a block, the block, and what its template needs beside it: the cells of a table, the element of a
    plot, the facts of a layout (None if it is left out)."""
    parts: object = ()
    if isinstance(block, Layout):
        parts = block.facts()
    elif isinstance(block, Table):
        parts = columns_in(block, "html")
    elif isinstance(block, Curves) and page is not None:
        curves = [curve_of(series, POINTS) for series in block.series]
        alike = [curve_of(series, POINTS, curves[0].scale) for series in block.series]
        element = page.drawing.draw(
            alike, names=block.names, marks=block.marks, window=block.window, height=_HEIGHT, everywhere=True
        )
        parts = (element, _HEIGHT)
    return type(block).__name__, block, parts


def asset(name: str) -> str:
    """A file of this room as text: a template, a style, a script."""
    return resources.files("soakwatch.report").joinpath(name).read_text(encoding="utf-8")


def plots_style() -> str:
    """The style of the plots, uPlot's own before ours."""
    return asset("uplot/uPlot.min.css") + asset("plots.css")


def script_text(name: str) -> str:
    """A script without its comment lines, which only readers of the source need."""
    return _COMMENT.sub("", asset(name))


@cache
def _environment() -> Environment:
    """The environment of all templates: it escapes, and has the filters and signs of reports."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(asset),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: isolated(printable(value, lines=True)) if type(value) is str else value,
    )
    environment.filters |= {
        "utc": utc,
        "span": span_text,
        "iso": iso,
        "number": number,
        "quantity": quantity,
        "extent": extent,
        "share": share_text,
        "bytes": show_bytes,
        "duration": show_seconds,
        "zoom": zoom_of,
    }
    environment.globals |= {"symbols": SYMBOLS, "subject": subject, "laid": _laid}
    return environment
