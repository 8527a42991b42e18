"""The charts of a campaign's tables: what is drawn as what, the numbers of the table, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collector.campaign.tables.made import Values, result, rows_of, sheets

from soakwatch.campaign.tables.campaign_report import render_html, render_markdown
from soakwatch.campaign.tables.charts import TableChart, charts_of
from soakwatch.campaign.tables.result import CampaignResult
from soakwatch.report.palette import DARK, LINES

CUBE = {"device": ["cable", "fw-a", "fw-b"], "profile": ["small", "large"], "config": ["bridge", "ips"]}
ASKED = """
figures: [{figure: load.rx.packet.rate, name: received, ceiling: {axis: device, of: cable, within: 2%}}]
tables: [{rows: device, columns: profile, figure: received, rivals: device}]
"""

RATE = "figures: [load.rx.packet.rate]"


def cube() -> CampaignResult:
    """The patch cable has no configuration but one; of small packets the devices differ, large ones are the cable's."""
    rates: dict[tuple[str, ...], list[float]] = {}
    for config, part in (("bridge", 1.0), ("ips", 0.6)):
        for device, share in (("cable", 1.0), ("fw-a", 0.9 * part), ("fw-b", 0.5 * part)):
            if (device, config) != ("cable", "ips"):
                rates[device, "small", config] = [9e6 * share * step for step in (0.99, 1.0, 1.01)]
                rates[device, "large", config] = [8e5 * (1.0 if config == "bridge" else share)]
    return result(CUBE, {"load.rx.packet.rate": rates}, ASKED)


def charts(made: CampaignResult, view: int = 0, table: int = 0) -> tuple[TableChart, ...]:
    """The charts of a view of one of its tables."""
    return charts_of(made.tables[table], made.spec)[view]


def test_words_are_bars_from_zero_on_one_scale() -> None:
    """A group of bars for each profile, a bar for each device; both views have the height of the highest of all."""
    made = cube()
    (bridge,), (ips,) = charts(made, 0), charts(made, 1)
    assert bridge.legend == (
        ("block s0", "1 cable"),
        ("block s1", "2 fw-a"),
        ("block s2", "3 fw-b"),
        ("ceiling", "at the generator's limit"),
    )
    (drawing,) = bridge.panels
    bars = [box for box in drawing.boxes if box.kind.startswith("bar")]
    assert len(bars) == 6
    base = {round(bar.y + bar.height, 1) for bar in bars}
    assert len(base) == 1
    tallest, half = bars[0], bars[4]
    assert half.height / tallest.height == pytest.approx(0.5, abs=0.01)
    assert tallest.title == "cable, device cable, profile small, config bridge: 9,000 k packets/s (8,910 to 9,090)"
    (other,) = ips.panels
    same = next(box for box in other.boxes if "fw-b" in box.title and "small" in box.title)
    assert same.height / tallest.height == pytest.approx(0.3, abs=0.01)
    assert [box.kind for box in drawing.boxes if "large" in box.title] == [
        *("bar s0", "bar s1 ceiling", "bar s2 ceiling"),
    ]
    assert {text.text for text in drawing.labels} >= {"small", "large", "profile", "k packets/s", "9,000", "800"}


def test_best_and_worst_are_of_one_profile() -> None:
    """The axes of the table are device and profile, of which devices compete: no device is worst for large packets."""
    view = sheets(cube())[1]
    marked = {heads: [cell.mark for cell in cells] for heads, cells in rows_of(view)}
    assert marked == {("fw-a",): ["best", "best"], ("fw-b",): ["worst", "worst"]}
    assert any("best, worst device of each profile: " in line for line in view.legend)
    made = result(CUBE, {"load.rx.packet.rate": {}}, ASKED.replace(", rivals: device", ""))
    assert all(not view.rivals for view in made.tables[0])


def test_numbers_are_lines_in_their_order_and_a_gap_is_a_gap() -> None:
    """Sizes from small to large whatever the order of the file, a mix apart; what is missing is a dash, and no zero."""
    rates: Values = {
        (size, core): [1e6 * float(core) * number]
        for number, size in enumerate(("imix", "1518", "64", "512"), 1)
        for core in ("1", "2")
        if (size, core) != ("512", "2")
    }
    axes = {"size": ["imix", "1518", "64", "512"], "cores": ["1", "2"]}
    rates = {**rates, ("512", "2"): [None]}
    asked = "tables: [{rows: size, columns: cores, figure: load.rx.packet.rate}]"
    (chart,) = charts(result(axes, {"load.rx.packet.rate": rates}, asked))
    (drawing,) = chart.panels
    names = sorted((text.x, text.text) for text in drawing.labels if text.text in axes["size"])
    assert [name for _, name in names] == ["imix", "64", "512", "1518"]
    curves = [stroke for stroke in drawing.strokes if stroke.kind.startswith("curve")]
    assert [stroke.kind for stroke in curves] == ["curve s0", "curve s0"]  # of two cores 512 is missing between them
    assert len(drawing.dots) == 7
    assert [text.text for text in drawing.labels].count("–") == 1


def test_figures_of_one_unit_are_drawn_together() -> None:
    """Lost and expected loss in one drawing for each kind; packets apart; the verdict is no number."""
    loads = ["20%", "25%", "30%"]
    of = {(kind, load): index for kind in ("L4", "L3") for index, load in enumerate(loads)}
    figures: dict[str, Values] = {
        "load.tx.packet.rate": {key: [1e6 * (1 + index)] for key, index in of.items()},
        "load.rx.packet.rate": {key: [1e6] for key in of},
        "load.loss": {key: [1 - 1 / (1 + index)] for key, index in of.items()},
    }
    made = result(
        {"kind": ["L4", "L3"], "load": loads},
        figures,
        """
figures:
  - {figure: load.tx.packet.rate, name: offered}
  - {figure: load.loss, name: lost}
  - {expected_loss: lost, along: load}
tables: [{rows: [kind, load], columns: figures, figures: [offered, lost, expected loss, verdict]}]
""",
    )
    offered, loss = charts(made)
    assert (offered.title, loss.title) == ("offered", "lost, expected loss")
    assert loss.legend == (("line s0", "1 lost"), ("line s1", "2 expected loss"))
    assert [panel.title for panel in loss.panels] == ["kind L4", "kind L3"]
    assert len(offered.panels) == 1  # the kinds are its lines


def test_the_page_has_the_charts_and_markdown_has_not(tmp_path: Path) -> None:
    """Drawn without a script and without a style of their own; the words of a device cannot leave the drawing."""
    made = cube()
    page = render_html(made, lambda _: "")
    assert page.count('<svg class="proof chart"') == 2
    assert 'class="bar s1 ceiling"' in page
    assert "<svg" not in render_markdown(made)
    evil = result({"a": ["<script>1", "2"]}, {"load.rx.packet.rate": {("<script>1",): [1.0], ("2",): [2.0]}}, RATE)
    assert "<script>1" not in render_html(evil, lambda _: "")


def test_the_colours_are_those_of_the_plots() -> None:
    """On a light and on a dark page."""
    import soakwatch.report

    style = Path(soakwatch.report.__file__).with_name("tables.css").read_text(encoding="utf-8")
    for number, colour in enumerate(LINES):
        assert f".proof .bar.s{number} {{ fill: {colour}; fill: light-dark({colour}, {DARK[colour]}); }}" in style


def test_nothing_to_compare_is_no_chart() -> None:
    """One cell, or zeros alone."""
    one = result({"a": ["1"]}, {"load.rx.packet.rate": {("1",): [5.0]}}, RATE)
    assert charts(one) == ()
    zeros: Values = {("1",): [0.0], ("2",): [0.0]}
    assert charts(result({"a": ["1", "2"]}, {"load.loss": zeros}, "figures: [load.loss]")) == ()
