"""Plots are serialised and copied by our own shortcuts: the texts are those that Bokeh makes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from bokeh.core.json_encoder import serialize_json
from bokeh.core.serialization import Serializer
from bokeh.models import ColumnDataSource, CrosshairTool, HoverTool, Line, Range1d

from soakwatch.report.bokeh_embed import apart, whole
from soakwatch.report.plot_copy import twin
from soakwatch.report.plot_style import blank, put


def a_plot(*, log: bool = False, small: bool = False) -> Any:
    """With a line, a tooltip and a title of hostile text."""
    plot = blank(Range1d(start=0, end=9), Range1d(start=1, end=2), 260, "By/s", 60.0, log=log, small=small)
    line = put(
        plot, ColumnDataSource({"time": [1.0, 2.0, float("nan")], "value": [1, 2, 3]}), Line(x="time", y="value")
    )
    plot.add_tools(HoverTool(renderers=[line], tooltips=[("a", "@value")]), CrosshairTool())
    plot.title.text = "</script> \u2028"
    return plot


def by_bokeh(plot: Any) -> object:
    """What Bokeh's own serializer makes of it, with models numbered by their first appearance."""
    return numbered(serialize_json(Serializer(deferred=False).encode([plot])))


def numbered(text: str) -> object:
    names: dict[str, str] = {}
    return json.loads(
        re.sub(r'"id":"([a-z]\w*)"', lambda hit: f'"id":"{names.setdefault(hit[1], str(len(names)))}"', text)
    )


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_the_text_of_a_plot_is_the_one_that_bokeh_makes(log: bool, small: bool) -> None:
    plot = a_plot(log=log, small=small)
    (piece,) = apart([(plot, "plot-1")]).parts
    assert "</" not in piece.text
    assert json.loads(piece.text)["roots"] != []
    assert numbered(serialize_json(json.loads(piece.text)["roots"])) == by_bokeh(plot)
    document, items = whole([(plot, "plot-1")])
    assert numbered(serialize_json(json.loads(document)["report"]["roots"])) == by_bokeh(plot)
    assert list(json.loads(items)[0]["roots"].values()) == ["plot-1"]


def test_a_copy_is_alike_and_its_own() -> None:
    first = a_plot()
    before = by_bokeh(first)
    second = twin(first)
    assert by_bokeh(second) == before
    assert not {model.id for model in first.references()} & {model.id for model in second.references()}
    second.title.text = "another"
    second.renderers.append(second.renderers[0])
    second.toolbar.tools = []
    second.xaxis.ticker.desired_num_ticks = 17
    second.extra_y_ranges = {"load": Range1d(start=0, end=1)}
    assert by_bokeh(first) == before
    assert by_bokeh(second) != before


def test_a_copy_can_be_changed_as_what_was_built() -> None:
    """Containers tell their model of a change, and lists of models are those of the copy."""
    copy = twin(a_plot())
    put(copy, ColumnDataSource({"x": [1]}), Line(x="x", y="x"))
    assert len(copy.renderers) == 2
    assert len(copy.xaxis) == len(copy.yaxis) == 1
    assert copy.xaxis[0] in copy.below
    assert copy.xgrid[0].axis is copy.xaxis[0]
