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
from soakwatch.report.overview import draw_panel, panels_of
from soakwatch.report.palette import DARK, GROUND
from soakwatch.report.plots import Drawing, javascript

LOAD = SeriesKey("tg", "load.request.rate", "")
ASKED = """
const told = {errors: []};
addEventListener("error", (event) => told.errors.push(event.message));
addEventListener("unhandledrejection", (event) => told.errors.push(String(event.reason)));
const soon = () => new Promise((done) => setTimeout(done, 200));
(async () => {
  await soakwatchPlots.drawAll();
  const figures = Bokeh.documents.map((doc) => doc.roots()[0]);
  const ranges = figures.map((figure) => figure.x_range);
  const at = (begin, end) => ranges.every((range) => range.start === begin && range.end === end);
  const [begin, end] = [ranges[0].start, ranges[0].end];
  told.figures = figures.length;
  told.window = [begin, end];
  ranges[1].setv({start: begin + 1000, end: begin + 5000});
  told.linked = at(begin + 1000, begin + 5000);
  soakwatchPlots.reset();
  told.reset = at(begin, end);
  document.getElementById("link").click();
  told.zoomed = [ranges[0].start, ranges[0].end];
  const plot = document.querySelector(".plot");
  plot.focus();
  told.focused = document.activeElement === plot;
  told.label = plot.getAttribute("aria-label");
  for (const key of ["0", "+", "ArrowRight"]) plot.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  told.keyed = [ranges[0].start, ranges[0].end];
  const pointers = Bokeh.documents.map((doc) => doc.get_model_by_name("pointer"));
  pointers[0].location = begin + 7;
  told.pointed = pointers.every((pointer) => pointer.location === begin + 7);
  const ground = () => [...new Set(figures.map((figure) => figure.background_fill_color))];
  told.light = ground();
  document.documentElement.dataset.theme = "dark";
  await soon();
  told.dark = ground();
  dispatchEvent(new Event("beforeprint"));
  told.printed = ground();
  dispatchEvent(new Event("afterprint"));
  document.documentElement.dataset.theme = "light";
  await soon();
  told.again = ground();
  told.sources = {};
  for (const figure of figures) {
    for (const model of figure.references()) {
      if ((model.name ?? "").startsWith("series:")) {
        told.sources[model.name] = [model.data.time.length, Math.max(...[...model.data.value].filter(Number.isFinite))];
      }
    }
  }
  document.body.replaceChildren();
  const answer = document.createElement("pre");
  answer.id = "told";
  answer.textContent = JSON.stringify(told);
  document.body.append(answer);
})();
"""

Night = tuple[ReportSource, Verdict]


@pytest.fixture(scope="module")
def drawn(night: Night, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], int]:
    """What a page of the night's overview told in Chromium, and how many plots it has."""
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
    said = subprocess.run(
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
        timeout=110,
        check=True,
    )
    found = re.search(r'<pre id="told">(.*?)</pre>', said.stdout, re.DOTALL)
    assert found is not None, said.stderr[-2000:]
    told: dict[str, object] = json.loads(html.unescape(found[1]))
    return told, len(pieces.parts)


def test_plots_apart_are_drawn_and_move_together(drawn: tuple[dict[str, object], int], night: Night) -> None:
    """Every piece is drawn; one axis moves all; a link, keys and the reset do what they say."""
    told, plots = drawn
    begin, end = night[1].window.begin_ns // 10**6, night[1].window.end_ns // 10**6
    assert told["errors"] == []
    assert told["figures"] == plots > 3
    assert told["window"] == [begin, end]
    assert told["linked"] is told["reset"] is told["focused"] is told["pointed"] is True
    assert told["zoomed"] == [begin + 60_000, begin + 90_000]
    quarter = (end - begin) / 4
    assert told["keyed"] == [begin + quarter + 2 * quarter / 5, end - quarter + 2 * quarter / 5]
    assert "Arrow keys" in str(told["label"])


def test_the_page_holds_the_data(drawn: tuple[dict[str, object], int], night: Night) -> None:
    """The sources in the browser are named by their series, and hold what was read."""
    told, _ = drawn
    sources = told["sources"]
    assert isinstance(sources, dict)
    load = curve_of(night[0].series(LOAD), 500)
    length, highest = sources['series:["tg","load.request.rate",""]']
    assert length == load.time_ms.size
    assert highest == pytest.approx(float(np.nanmax(load.value)))
    assert any('"process.memory.usage","process=httpd,instance=0"' in name for name in sources)


def test_plots_follow_the_page_into_the_dark_and_onto_paper(drawn: tuple[dict[str, object], int]) -> None:
    """Dark when the page is, light on paper whatever the page is, and light again."""
    told, _ = drawn
    assert told["light"] == told["again"] == told["printed"] == [GROUND]
    assert told["dark"] == [DARK[GROUND]]
