"""The plots' own scripts in Chromium: what was drawn is the data, axes move together, keys, colours of a dark page."""

from __future__ import annotations

import html
import json
import re
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from tests.needs import needs_chromium

from soakwatch.judge.verdict import Verdict
from soakwatch.record.model import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.report.curves import curve_of
from soakwatch.report.overview import draw_panel
from soakwatch.report.palette import DARK, GROUND
from soakwatch.report.panels import panels_of
from soakwatch.report.plots import Drawing, javascript

LOAD = SeriesKey("tg", "load.request.rate", "")
ASKED = """
const results = {errors: []};
addEventListener("error", (event) => results.errors.push(event.message));
addEventListener("unhandledrejection", (event) => results.errors.push(String(event.reason)));
const soon = () => new Promise((done) => setTimeout(done, 200));
(async () => {
  await soakwatchPlots.drawAll();
  const figures = Bokeh.documents.map((doc) => doc.roots()[0]);
  const ranges = figures.map((figure) => figure.x_range);
  const at = (begin, end) => ranges.every((range) => range.start === begin && range.end === end);
  const [begin, end] = [ranges[0].start, ranges[0].end];
  results.figures = figures.length;
  results.window = [begin, end];
  ranges[1].setv({start: begin + 1000, end: begin + 5000});
  results.linked = at(begin + 1000, begin + 5000);
  soakwatchPlots.reset();
  results.reset = at(begin, end);
  document.getElementById("link").click();
  results.zoomed = [ranges[0].start, ranges[0].end];
  const plot = document.querySelector(".plot");
  plot.focus();
  results.focused = document.activeElement === plot;
  results.label = plot.getAttribute("aria-label");
  for (const key of ["0", "+", "ArrowRight"]) plot.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  results.keyed = [ranges[0].start, ranges[0].end];
  const pointers = Bokeh.documents.map((doc) => doc.get_model_by_name("pointer"));
  pointers[0].location = begin + 7;
  results.pointed = pointers.every((pointer) => pointer.location === begin + 7);
  const ground = () => [...new Set(figures.map((figure) => figure.background_fill_color))];
  results.light = ground();
  document.documentElement.dataset.theme = "dark";
  await soon();
  results.dark = ground();
  dispatchEvent(new Event("beforeprint"));
  results.printed = ground();
  dispatchEvent(new Event("afterprint"));
  document.documentElement.dataset.theme = "light";
  await soon();
  results.again = ground();
  results.sources = {};
  for (const figure of figures) {
    for (const model of figure.references()) {
      if ((model.name ?? "").startsWith("series:")) {
        const values = [...model.data.value].filter(Number.isFinite);
        results.sources[model.name] = [model.data.time.length, Math.max(...values)];
      }
    }
  }
  document.body.replaceChildren();
  const answer = document.createElement("pre");
  answer.id = "results";
  answer.textContent = JSON.stringify(results);
  document.body.append(answer);
})();
"""

Night = tuple[ReportSource, Verdict]


@pytest.fixture(scope="module")
def drawn(night: Night, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], int]:
    """What a page of the night's overview results in Chromium, and how many plots it has."""
    chromium = needs_chromium()
    source, verdict = night
    drawing = Drawing(verdict.window, verdict.phases, (), [curve_of(source.series(LOAD), 500)])
    panels = [panel for panel in panels_of(source) if panel.curves][:5]
    for panel in panels:
        draw_panel(drawing, panel)
    pieces = drawing.pieces()
    elements = [f'<div class="plot" id="{piece.element}" style="height:260px"></div>' for piece in pieces.parts]
    held = [
        f'<script type="application/json" class="plot-piece" data-element="{piece.element}">{piece.text}</script>'
        for piece in pieces.parts
    ]
    begin = verdict.window.begin_ns // 10**6
    scripts = [
        resources.files("soakwatch.report").joinpath(name).read_text("utf-8") for name in ("theme.js", "plots.js")
    ]
    page = "".join(
        [
            '<!DOCTYPE html><html data-theme="light"><meta charset="utf-8"><body><h2>Night</h2>',
            f'<a id="link" href="#plot-2" data-zoom="{begin + 60_000},{begin + 90_000}">window</a>',
            *elements,
            f"<script>{javascript()}</script>",
            f'<script type="application/json" id="plots-shared">{pieces.shared}</script>',
            *held,
            *(f"<script>{script}</script>" for script in (*scripts, ASKED)),
        ]
    )
    folder: Path = tmp_path_factory.mktemp("chromium")
    (folder / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=60000",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            f"file://{folder / 'page.html'}",
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    match = re.search(r'<pre id="results">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    results: dict[str, object] = json.loads(html.unescape(match[1]))
    return results, len(pieces.parts)


def test_plots_apart_are_drawn_and_move_together(drawn: tuple[dict[str, object], int], night: Night) -> None:
    """Every piece is drawn; one axis moves all; a link, keys and the reset do what they say."""
    results, plots = drawn
    begin, end = night[1].window.begin_ns // 10**6, night[1].window.end_ns // 10**6
    assert results["errors"] == []
    assert results["figures"] == plots > 3
    assert results["window"] == [begin, end]
    assert results["linked"] is results["reset"] is results["focused"] is results["pointed"] is True
    assert results["zoomed"] == [begin + 60_000, begin + 90_000]
    quarter = (end - begin) / 4
    assert results["keyed"] == [begin + quarter + 2 * quarter / 5, end - quarter + 2 * quarter / 5]
    assert "Arrow keys" in str(results["label"])


def test_the_page_holds_the_data(drawn: tuple[dict[str, object], int], night: Night) -> None:
    """The sources in the browser are named by their series, and hold what was read."""
    results, _ = drawn
    sources = results["sources"]
    assert isinstance(sources, dict)
    load = curve_of(night[0].series(LOAD), 500)
    length, highest = sources['series:["tg","load.request.rate",""]']
    assert length == load.time_ms.size
    assert highest == pytest.approx(float(np.nanmax(load.value)))
    assert any('"process.memory.usage","process=httpd,instance=0"' in name for name in sources)


def test_plots_follow_the_page_into_the_dark_and_onto_paper(drawn: tuple[dict[str, object], int]) -> None:
    """Dark when the page is, light on paper whatever the page is, and light again."""
    results, _ = drawn
    assert results["light"] == results["again"] == results["printed"] == [GROUND]
    assert results["dark"] == [DARK[GROUND]]
