"""The overview: which panels a record gets, what is left out of crowds, and what a running run is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.core.formatting import scale_of
from soakwatch.judge.rates import Rate
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record, RecordView
from soakwatch.record.model import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.report.curves import curve_of
from soakwatch.report.flags import FindingFlag
from soakwatch.report.heat_cells import MAX_ROWS, HeatMap, binned, bins_of
from soakwatch.report.overview import LiveDocument, draw_panel, flags_of, live_document, numbered_findings
from soakwatch.report.palette import DARK
from soakwatch.report.panels import LINES, OverviewPanel, key_panels, panels_of
from soakwatch.report.plots import Drawing
from soakwatch.report.topics import TOPICS
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_queries import drop_counters
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Phase, Window

BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
HOSTILE = "<script>alert(1)</script>$$\\(x\\)"

Night = tuple[ReportSource, Verdict]


class Wide:
    """A source of the given series and nothing else."""

    def __init__(self, data: list[Series], roles: dict[str, str] | None = None) -> None:
        self.data = {SeriesKey(s.target, s.metric, s.object): s for s in data}
        self.read = 0
        self._roles = roles or {"fw": "dut", "tg": "generator", "monitor": "monitor"}

    def keys(self, metrics: object = None) -> tuple[SeriesKey, ...]:
        return tuple(self.data)

    def roles(self) -> dict[str, str]:
        return self._roles

    def window(self) -> Window:
        ends = [int(s.time_ns[-1]) for s in self.data.values() if len(s)]
        return Window(BEGIN, max(ends, default=BEGIN + SECOND) + 1)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        empty = Series(key.target, key.metric, key.object, Trait("1", "gauge"), np.empty(0, np.int64), np.empty(0))
        values = self.data.get(key, empty).between(begin_ns or 0, end_ns or 2**62)
        self.read += len(values)
        return values

    def phases(self) -> tuple[Phase, ...]:
        return ()

    def events(self) -> tuple[object, ...]:
        return ()


def series_of(target: str, metric: str, obj: str, values: NDArray[np.float64], every: float = 1.0) -> Series:
    """A series of the catalogue, a reading each ``every`` seconds."""
    entry = BY_NAME[metric]
    times = BEGIN + (np.arange(values.size) * every * 1e9).astype(np.int64)
    return Series(target, metric, obj, Trait(entry.unit, entry.kind), times, values, every)  # type: ignore[arg-type]


def titles(source: Wide) -> list[tuple[str, str]]:
    """Target and title of each panel."""
    return [(panel.target, panel.title) for panel in panels_of(source)]  # type: ignore[arg-type]


def test_every_topic_names_metrics_of_the_catalogue() -> None:
    """Each metric of each topic is known, and what stands in one choice together has one unit but for the drops."""
    assert "system.network.packet.dropped" in drop_counters()
    assert "queue.dropped" in drop_counters()
    for topic in TOPICS:
        for choice in topic.choices:
            assert all(name in BY_NAME for name in choice), topic.title
            if choice != drop_counters():
                assert len({(BY_NAME[name].unit, BY_NAME[name].kind) for name in choice}) == 1, choice
        assert not topic.limit or topic.limit in BY_NAME


def test_panels_come_in_the_order_of_the_page() -> None:
    """CPU, memory, drops, queues for the device; latency and throughput of the generator; the monitor last."""
    up = np.arange(100.0)
    source = Wide(
        [
            series_of("monitor", "monitor.memory.usage", "", up),
            series_of("tg", "load.latency", "quantile=p99", up + 1),
            series_of("tg", "load.request.rate", "", up),
            series_of("fw", "queue.depth", "queue=0", up),
            series_of("fw", "system.network.packet.dropped", "interface=e0,direction=receive", up),
            series_of("fw", "system.memory.usage", "", up),
            series_of("fw", "system.cpu.core.utilization", "core=0", up / 100),
            series_of("fw", "process.memory.usage", "process=bgpd,instance=0", up),
        ]
    )
    assert titles(source) == [
        ("fw", "CPU"),
        ("fw", "Memory"),
        ("fw", "Memory per process"),
        ("fw", "Drops and errors"),
        ("fw", "Queue depth"),
        ("tg", "Latency"),
        ("tg", "Throughput"),
        ("monitor", "Memory of the monitor"),
    ]


def test_few_series_are_lines_and_many_a_heat_map() -> None:
    """Twelve cores are lines; thirteen are rows in natural order, with the six that move most as lines below."""
    rng = np.random.default_rng(3)
    cores = [
        series_of("fw", "system.cpu.core.utilization", f"core={n}", rng.random(600) * (n + 1) / 20) for n in range(13)
    ]
    few = panels_of(Wide(cores[:LINES]))[0]  # type: ignore[arg-type]
    assert (len(few.curves), few.heat) == (12, None)
    many = panels_of(Wide(cores))[0]  # type: ignore[arg-type]
    assert many.heat is not None
    assert many.heat.names == tuple(f"core {n}" for n in range(13))
    assert many.names == tuple(f"core {n}" for n in range(7, 13))
    assert "mean" in many.note


@pytest.mark.slow
def test_a_crowd_costs_a_bounded_amount_and_hides_no_failure() -> None:
    """Of ten thousand interfaces the busy one and the one with a failure are shown; it says how many are not."""
    names = [f"interface=e{n},direction=receive" for n in range(10_000)]
    calm = np.full(4320, 5.0)
    data = [series_of("fw", "system.network.io", name, calm, 60.0) for name in names]
    source = Wide(data)
    busy, failing = SeriesKey("fw", "system.network.io", names[7777]), SeriesKey("fw", "system.network.io", names[5])
    source.data[busy] = series_of("fw", "system.network.io", names[7777], np.arange(4320.0) * 1e6, 60.0)
    finding = _finding(failing)
    panel = panels_of(source, findings=[finding])[0]  # type: ignore[arg-type]
    assert panel.heat is not None
    assert len(panel.heat.names) <= MAX_ROWS
    assert "e7777 receive" in panel.heat.names
    assert "e5 receive" in panel.heat.names
    assert "300 of 10000 series shown" in panel.note
    assert "64 of 300 series" in panel.note
    assert source.read < 0.1 * 10_000 * 4320
    drawing = Drawing(source.window(), (), (), ())
    draw_panel(drawing, panel)
    assert len(drawing.pieces().text) < 1_000_000


def test_counters_that_never_counted_are_listed_in_words() -> None:
    """Drops that never were have no plot; of several the one that counted is drawn."""
    still = [series_of("fw", "queue.dropped", f"queue={n}", np.zeros(100)) for n in range(5)]
    panel = panels_of(Wide(still))[0]  # type: ignore[arg-type]
    assert (panel.curves, panel.heat) == ((), None)
    assert panel.note == "all 5 counters stayed at zero"
    assert draw_panel(Drawing(Window(BEGIN, BEGIN + SECOND), (), (), ()), panel) == ()
    counted = panels_of(Wide([*still, series_of("fw", "queue.dropped", "queue=9", np.arange(100.0))]))[0]  # type: ignore[arg-type]
    assert counted.names == ("queue 9",)
    assert "5 of 6 stayed at zero" in counted.note


def test_an_imported_file_has_panels_too() -> None:
    """A target of which the standard topics know nothing shows its first metrics."""
    times = BEGIN + np.arange(50) * SECOND
    data = [Series("csv", name, "", Trait("By", "gauge"), times, np.arange(50.0)) for name in ("heap", "rss")]
    assert titles(Wide(data, {"csv": "dut"})) == [("csv", "heap"), ("csv", "rss")]


def test_what_was_not_read_is_a_gap_and_not_zero() -> None:
    """Bins without a reading are NaN; the others hold the mean, or the highest."""
    series = series_of("fw", "queue.depth", "queue=0", np.array([1.0, 3.0, 5.0, np.nan, 2.0, 8.0]), 1.0)
    gap = replace(series, time_ns=series.time_ns + np.array([0, 0, 0, 0, 4, 4]) * SECOND)
    window = Window(BEGIN, BEGIN + 10 * SECOND)
    np.testing.assert_array_equal(binned(gap, window, 5, "mean"), [2.0, 5.0, np.nan, np.nan, 5.0])
    np.testing.assert_array_equal(binned(gap, window, 5, "highest"), [3.0, 5.0, np.nan, np.nan, 8.0])
    nothing = gap.between(0, 1)
    assert bool(np.isnan(binned(nothing, window, 5, "mean")).all())


@pytest.mark.parametrize(
    ("seconds", "cadence", "bins"), [(3600, 1.0, 480), (60, 1.0, 30), (5, 10.0, 1), (0, 1.0, 1), (60, None, 480)]
)
def test_bins_are_never_finer_than_the_readings(seconds: int, cadence: float | None, bins: int) -> None:
    """A bin holds two readings, so that a late one leaves no gap."""
    assert bins_of(Window(BEGIN, BEGIN + seconds * SECOND), cadence) == bins


def _finding(key: SeriesKey, marks: tuple[Mark, ...] = (), outcome: Outcome = Outcome.FAIL) -> Finding:
    window = Window(BEGIN, BEGIN + 3600 * SECOND)
    return Finding("drops", 1, outcome, key.target, key.metric, key.object, window, "d", "r", 1, marks=marks)


def test_findings_stand_in_the_panels_of_their_metrics() -> None:
    """Each objection has one number, worst first; it is marked where its metric is shown, at its moments."""
    window = Window(BEGIN, BEGIN + 3600 * SECOND)
    key, other = SeriesKey("fw", "queue.dropped", ""), SeriesKey("fw", "system.memory.usage", "")
    spot = Mark(BEGIN + 5 * SECOND, None, "burst")
    numbered = numbered_findings(
        [
            _finding(other, outcome=Outcome.WARN),
            _finding(key, (spot,)),
            _finding(key, outcome=Outcome.PASS),
        ]
    )
    assert [(number, f.outcome) for number, f in numbered] == [(1, Outcome.FAIL), (2, Outcome.WARN)]
    panel = OverviewPanel("fw", "Drops", frozenset({"queue.dropped"}), (), ())
    assert flags_of(panel, numbered, window) == (FindingFlag(1, Outcome.FAIL, "fail drops", BEGIN + 5 * SECOND),)
    memory = replace(panel, metrics=frozenset({"system.memory.usage"}))
    whole = FindingFlag(2, Outcome.WARN, "warn drops", window.begin_ns, window.end_ns, moment=False)
    assert flags_of(memory, numbered, window) == (whole,)
    assert flags_of(replace(panel, target="tg"), numbered, window) == ()


def test_a_page_can_tell_which_series_a_source_holds() -> None:
    """Names are JSON of target, metric and object, whatever these are; tags tell factor, unit and rate."""
    values = np.arange(100.0) * 2**20
    data = [
        series_of("fw", "process.memory.usage", f"process={HOSTILE},instance=0", values),
        series_of("fw", "system.network.io", "interface=e0,direction=receive", values),
    ]
    live = live_document(Wide(data), Window(BEGIN, BEGIN + 100 * SECOND))  # type: ignore[arg-type]
    assert "<" not in live.plots
    plots = json.loads(live.plots)["plots"]
    points = [line["points"] for plot in plots.values() for line in plot["lines"]]
    keys = [json.loads(one["name"].removeprefix("series:")) for one in points]
    assert keys == [[s.target, s.metric, s.object] for s in data]
    assert {plot["time"]["name"] for plot in plots.values()} == {"time"}
    assert [(one["factor"], one["unit"], one.get("rate", False)) for one in points] == [
        (2.0**-20, "MiB", False),
        (2.0**-20, "MiB/s", True),
    ]
    assert [panel.element for panel in live.panels] == ["panel-1", "panel-2"]
    assert all(line["words"] for plot in plots.values() for line in plot["lines"])
    assert not any(plot.get("moments") for plot in plots.values()), "a legend names what there is"


def _panels(*series: Series) -> tuple[OverviewPanel, ...]:
    return panels_of(Wide(list(series)), Window(BEGIN, BEGIN + 100 * SECOND))  # type: ignore[arg-type]


def test_what_matters_most_comes_first() -> None:
    """A failure, then a warning, then what grows, then one of each usual kind from the device that reads highest; what
    stays at zero never."""
    usage, zero = np.linspace(1e6, 2e6, 100), np.zeros(100)
    series = [
        *(series_of(f"fw{n}", "system.cpu.utilization", "", zero + 0.1 * n) for n in (1, 2, 3)),
        *(series_of(f"fw{n}", "system.memory.usage", "", usage * n) for n in (1, 2, 3)),
        series_of("fw1", "system.sessions", "", zero),
        series_of("fw2", "process.memory.usage", "process=x,instance=0", usage),
        series_of("fw1", "queue.depth", "queue=0", usage),
    ]
    panels = _panels(*series)
    assert [panel.title for panel in panels if panel.flat] == ["Sessions"]

    def first(*findings: Finding, rates: tuple[Rate, ...] = ()) -> list[tuple[str, str]]:
        ranks = key_panels(panels, findings, rates)
        return [(panels[place].target, panels[place].title) for place in sorted(ranks, key=lambda place: ranks[place])]

    usual = [("fw2", "Memory per process"), ("fw3", "CPU"), ("fw3", "Memory")]
    assert first()[:3] == usual
    window = Window(BEGIN, BEGIN + 100 * SECOND)
    failed = Finding("drops", 1, Outcome.FAIL, "fw1", "queue.depth", "queue=0", window, "none", "12 lost", 100)
    grows = Rate("fw1", "system.memory.usage", "", "By", BEGIN, 1e6, 1e5, 2e6)
    assert first(failed, rates=(grows,)) == [("fw1", "Queue depth"), ("fw1", "Memory"), *usual[:2]]


def test_a_running_run_with_nothing_yet(tmp_path: Path) -> None:
    """A record with polls and no reading, and one of half an hour without an answer, have a document each."""
    with Record.create(tmp_path / "run") as record:
        record.set_meta("run", "quiet")
        record.target("dut", "dut")
        local = record.source("dut", "local", "local", SECOND, True)
        record.begin_phase("soak", BEGIN)
        lost = Poll(local.id, BEGIN, BEGIN, SECOND, PollOutcome.TIMEOUT, "timed out", Answer((), (), ()))
        record.put([lost])
        with RecordView.open(tmp_path / "run") as view:
            assert live_document(view, view.window()) == LiveDocument('{"shared":[],"plots":{}}', ())
        sample = Sample("system.memory.usage", "", 2**30, BEGIN + SECOND)
        good = Poll(local.id, BEGIN + SECOND, BEGIN + SECOND, 1, PollOutcome.OK, None, Answer((sample,), (), ()))
        late = [replace(lost, due_ns=BEGIN + n * SECOND, start_ns=BEGIN + n * SECOND) for n in range(2, 1800)]
        record.put([good, *late])
        with RecordView.open(tmp_path / "run") as view:
            live = live_document(view, view.window())
            assert [(p.target, p.title, p.element) for p in live.panels] == [("dut", "Memory", "panel-1")]
            later = Window(BEGIN + 600 * SECOND, BEGIN + 1800 * SECOND)
            assert live_document(view, later).panels == ()
        record.finish()


def test_the_overview_of_a_night(page_of_night: str) -> None:
    """The report's overview has the panels and the numbered findings with links to their cards."""
    page = page_of_night
    section = page[page.index('<section id="overview"') :]
    assert re.findall(r"<h4>([^<]+)</h4>", section)[:4] == ["CPU", "Memory per process", "Throughput", "CPU"]
    assert re.search(r'<li value="1">.*fail.*<a href="#\S+">memory_growth</a>', section)
    assert page.index('<section id="findings"') < page.index('<section id="overview"')


def test_every_colour_of_a_plot_has_a_dark_counterpart(night: Night, make_night: Callable[[int], Night]) -> None:
    """No plot holds a colour that a dark page would leave as it is, but for the scale of a heat map."""
    source, verdict = night
    drawing = Drawing(verdict.window, verdict.phases, [Event("reboot", "leaker", "", BEGIN, BEGIN + SECOND)], [])
    numbered = numbered_findings(verdict.findings)
    crowd, _ = make_night(14)
    heats = [panel for panel in panels_of(crowd) if panel.heat]
    assert heats
    panels = (*panels_of(source)[:3], *heats)
    for panel in panels:
        draw_panel(drawing, panel, flags_of(panel, numbered, verdict.window))
    curve = curve_of(source.series(source.keys()[0]), 100, scale_of("By", 1.0))
    drawing.draw([curve], limit=1.0, judged=Window(BEGIN, BEGIN + SECOND), marks=(Mark(BEGIN, None, "m"),))
    text = drawing.pieces().text
    assert set(re.findall(r'"(#[0-9a-f]{6})"', text)) <= set(DARK)


def test_points_of_several_plots_stand_once(night: Night) -> None:
    """Each piece is one plot; a number stands for the points that pieces share, and nothing ends a script element."""
    source, verdict = night
    load = [curve_of(source.series(SeriesKey("tg", "load.request.rate", "")), 500)]
    drawing = Drawing(verdict.window, verdict.phases, (), load)
    for panel in panels_of(source):
        draw_panel(drawing, panel)
    pieces = drawing.pieces()
    assert [piece.element for piece in pieces.parts] == [f"plot-{n + 1}" for n in range(drawing.plots)]
    shared = json.loads(pieces.shared)
    assert "<" not in pieces.text
    plots = [json.loads(piece.text) for piece in pieces.parts]
    held = [line["points"] for plot in plots for line in (*plot.get("lines", ()), *plot.get("load", ()))]
    used = [number for number in (*held, *(plot.get("phases") for plot in plots)) if isinstance(number, int)]
    assert set(used) == set(range(len(shared)))
    assert all(used.count(place) > 1 for place in used)
    names = [one["name"] for one in shared if isinstance(one, dict)]
    assert names == ['series:["tg","load.request.rate",""]']


def test_a_heat_map_tells_units_names_and_times() -> None:
    """The rows' names are text, shortened on the axis and whole in the tooltip; the source has the panel's name."""
    cells = np.array([[1.0, np.nan], [2.0, 3.0]], dtype=np.float32)
    window = Window(BEGIN, BEGIN + 100 * SECOND)
    drawing = Drawing(window, (), (), ())
    names = (HOSTILE, "x" * 500)
    drawing.draw_heat(HeatMap("fw", '["fw","CPU"]', names, cells, window, "%", "mean", log=False))
    text = drawing.pieces().text
    assert "<" not in text
    assert text.count("x" * 500) == 1
    assert '"heat:[\\"fw\\",\\"CPU\\"]"' in text
    assert drawing.heights["plot-1"] < 300
