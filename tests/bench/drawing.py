"""Bokeh and uPlot side by side: bytes, first paint, all plots drawn, a zoom, memory and axe; prints, asserts nothing.

    python tests/bench/drawing.py             3 million readings: 24 series of 125,000, each in a plot over the load
    python tests/bench/drawing.py --plots 60  as many plots as a report of many devices has

Both pages hold the same points, thinned by ``soakwatch.report.curves`` to 2,000 a line, in one file that opens without
a network, and draw all plots at once, linked in time. They are opened in turn, so that other work on the machine meets
both; the ratio is the one of the medians. "paint" is Chromium's first contentful paint, "drawn" the time from the begin
of the navigation until every plot has been painted, "zoom" from a new range of the shared axis to the next frame behind
it. Bokeh comes with the group ``bench`` of the dependencies; the product does not need it.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.needs import needs_chromium

from soakwatch.report.curves import thinned

READINGS, POINTS, BEGIN_MS = 3_000_000, 2000, 1_795_000_000_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
ZOOM = """async (share) => {
  const begun = performance.now();
  zoom(share);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - begun;
}"""
AXE = "async () => (await axe.run()).violations.filter((one) => /serious|critical/.test(one.impact)).length"
HEAD = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>plots</title>'
SETTLE = "requestAnimationFrame(() => setTimeout(() => { window.drawnMs = performance.now(); }, 0));"


@dataclass(frozen=True)
class Line:
    """A line as both pages hold it: ms since 1970 and values, thinned."""

    time_ms: NDArray[np.float64]
    value: NDArray[np.float32]


def lines_of(plots: int, seed: int = 7) -> tuple[list[Line], Line]:
    """A line for each plot, and the load behind all: noise with steps, spikes and a hole."""
    rng = np.random.default_rng(seed)
    each = READINGS // plots
    time_ns = (BEGIN_MS * 10**6 + np.arange(each) * 10**9).astype(np.int64)
    made = []
    for number in range(plots + 1):
        values = 100 + np.cumsum(rng.normal(0, 0.05, each)) + rng.normal(0, 1, each)
        values[rng.integers(0, each, 20)] *= 2
        gap = np.array([each // 3 + number], dtype=np.int64)
        time_ms, picked = thinned(time_ns, values, gap, POINTS)
        made.append(Line(time_ms, picked.astype(np.float32)))
    return made[:-1], made[-1]


def bokeh_page(lines: Sequence[Line], load: Line) -> str:
    """The lines as Bokeh draws them, with its tools and crosshair."""
    from bokeh.document import Document
    from bokeh.embed.util import standalone_docs_json_and_render_items
    from bokeh.models import ColumnDataSource, CrosshairTool, HoverTool, LinearAxis, Range1d
    from bokeh.plotting import figure
    from bokeh.resources import Resources

    end = float(lines[0].time_ms[-1])
    shared = Range1d(start=BEGIN_MS, end=end, name="time")
    behind = ColumnDataSource({"x": load.time_ms, "y": load.value})
    figures = []
    for line in lines:
        plot = figure(
            x_axis_type="datetime", height=250, sizing_mode="stretch_width", x_range=shared, tools="xpan,xbox_zoom"
        )
        plot.extra_y_ranges = {"load": Range1d(start=0, end=300)}
        plot.add_layout(LinearAxis(y_range_name="load"), "right")
        plot.line("x", "y", source=behind, color="#767676", y_range_name="load")
        plot.line("x", "y", source=ColumnDataSource({"x": line.time_ms, "y": line.value}), color="#0072b2")
        plot.add_tools(HoverTool(tooltips=[("value", "@y")]), CrosshairTool())
        figures.append(plot)
    document = Document()
    for plot in figures:
        document.add_root(plot)
    docs, (item,) = standalone_docs_json_and_render_items(figures)
    places = "".join(f'<div id="{element}" style="height:250px"></div>' for element in item.roots.to_json().values())
    script = "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)
    documents = json.dumps(docs).replace("<", "\\u003c")
    return f"""{HEAD}</head><body><main><h1>Plots</h1>{places}</main><script>{script}</script><script>
Bokeh.set_log_level("error");
Bokeh.embed.embed_items({documents}, {json.dumps([item.to_json()])}).then(() => {{ {SETTLE} }});
const whole = [{BEGIN_MS}, {end}];
function zoom(share) {{
  const range = Bokeh.documents[0].get_model_by_name("time");
  range.setv({{start: whole[0], end: whole[0] + share * (whole[1] - whole[0])}});
}}
</script></body></html>"""


def uplot_page(lines: Sequence[Line], load: Line) -> str:
    """The same as uPlot draws them, each line with times of its own."""
    files = resources.files("soakwatch.report").joinpath("uplot")
    script, style = (files.joinpath(name).read_text("utf-8") for name in ("uPlot.iife.min.js", "uPlot.min.css"))
    packed = [[_packed(line.time_ms), _packed(line.value.astype(np.float64))] for line in (load, *lines)]
    places = '<div class="plot" style="height:250px"></div>' * len(lines)
    begin = f"{HEAD}<style>{style}</style></head><body><main><h1>Plots</h1>{places}</main><script>{script}</script>"
    return f"""{begin}<script>
const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
const [load, ...lines] = {json.dumps(packed)}.map((pair) => pair.map(numbers)).map(([time, value]) =>
  [time, Array.from(value, (one) => Number.isNaN(one) ? null : one)]);
const whole = [{BEGIN_MS}, {float(lines[0].time_ms[-1])}];
const figures = lines.map((line, index) => {{
  const place = document.querySelectorAll(".plot")[index];
  const value = {{auto: false, facets: [{{scale: "x"}}, {{scale: "y"}}], paths: uPlot.paths.linear()}};
  return new uPlot({{mode: 2, width: place.clientWidth, height: 250, ms: 1, legend: {{show: false}},
    cursor: {{sync: {{key: "time"}}, dataIdx: () => null}},
    scales: {{x: {{time: true, range: () => window.shown ?? whole}},
      y: {{range: [60, 260]}}, load: {{range: [0, 300]}}}},
    axes: [{{}}, {{scale: "y"}}, {{scale: "load", side: 1, grid: {{show: false}}}}],
    series: [{{}}, {{...value, facets: [{{scale: "x"}}, {{scale: "load"}}], stroke: "#767676"}},
      {{...value, stroke: "#0072b2"}}]}},
    [null, load, line], place);
}});
{SETTLE}
function zoom(share) {{
  window.shown = [whole[0], whole[0] + share * (whole[1] - whole[0])];
  for (const figure of figures) figure.setScale("x", {{min: window.shown[0], max: window.shown[1]}});
}}
</script></body></html>"""


def _packed(values: NDArray[np.float64]) -> str:
    return base64.b64encode(values.astype("<f8").tobytes()).decode()


def look(browser: Browser, file: Path) -> dict[str, float]:
    """The figures of one opening."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    tab = context.new_page()
    tab.goto(file.as_uri(), wait_until="commit")
    tab.wait_for_function(f"() => window.drawnMs > 0 && {PAINT.removesuffix('[0].startTime')}.length > 0")
    figures = {"drawn ms": float(tab.evaluate("drawnMs")), "paint ms": float(tab.evaluate(PAINT))}
    zooms = [float(tab.evaluate(ZOOM, 0.9 - 0.08 * number)) for number in range(9)]
    figures["zoom ms"] = statistics.median(zooms)
    figures["heap MB"] = float(tab.evaluate("performance.memory.usedJSHeapSize")) / 1e6
    tab.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = tab.evaluate(
        "async () => (await axe.run()).violations.filter((one) => /serious|critical/.test(one.impact)).length"
    )
    figures["axe serious"] = float(found)
    context.close()
    return figures


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plots", type=int, default=24, help="how many plots; the readings are shared among them")
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened")
    options = parser.parse_args()
    lines, load = lines_of(options.plots)
    pages: dict[str, Callable[[Sequence[Line], Line], str]] = {"Bokeh": bokeh_page, "uPlot": uplot_page}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in pages}
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=needs_chromium(), args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        files = {name: Path(work, f"{name}.html") for name in pages}
        for name, file in files.items():
            file.write_text(pages[name](lines, load), encoding="utf-8")
        for _ in range(options.rounds):
            for name, file in files.items():
                results[name].append(look(browser, file) | {"file MB": file.stat().st_size / 1e6})
        browser.close()
    print(
        f"{READINGS:,} readings in {options.plots} plots, {POINTS} points a line; medians of {options.rounds} (worst)"
    )
    print(f"{'':12} {'Bokeh':>16} {'uPlot':>16}   Bokeh/uPlot")
    for what in results["Bokeh"][0]:
        one, other = ([figures[what] for figures in results[name]] for name in pages)
        first, second = statistics.median(one), statistics.median(other)
        ratio = f"{first / second:8.1f}" if second else "       –"
        print(f"{what:12} {first:8.2f} ({max(one):.2f}) {second:8.2f} ({max(other):.2f})   {ratio}")


if __name__ == "__main__":
    main()
