"""Puts one glyph into a figure: with the one look that it ever has, so that a page carries no copies of it."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, Text
from bokeh.models.glyph import Glyph
from bokeh.models.renderers import GlyphRenderer

from soakwatch.report.palette import GROUND


def put(
    plot: Any, source: ColumnDataSource, glyph: Glyph, *, axis: str = "default", over: bool = False, name: str = ""
) -> Any:
    """Draw a glyph on the axis of values of this name, ``over`` the others if asked; the renderer, for legends."""
    renderer: Any = GlyphRenderer(
        data_source=source,
        glyph=glyph,
        nonselection_glyph=None,
        muted_glyph=None,
        y_range_name=axis,
        level="overlay" if over else "glyph",
    )
    if name:
        renderer.name = name
    plot.renderers.append(renderer)
    return renderer


def words(
    plot: Any, source: ColumnDataSource, column: str, *, axis: str = "band", on_ground: bool = False, **look: Any
) -> Any:
    """Small words at x and y, over everything else; ``on_ground`` they can be read over lines too."""
    if on_ground:
        look |= {"background_fill_color": GROUND, "background_fill_alpha": 0.7}
    glyph = Text(x="x", y="y", text=column, text_font_size="11px", **look)
    return put(plot, source, glyph, axis=axis, over=True)
