"""Runs side by side: what the rules said, what of the set-up differs, the figures, and the same series overlaid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import httpx
import pytest
from tests.browser.answer_records import process_record
from tests.collector.runs.compared_runs import SECOND, T0, MakeRun, finding, written_run
from tests.packed_points import points_of

from soakwatch.core.labels import LABELS_KEY, labels_json
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.runs.compare.compared_runs import differences, setup_of
from soakwatch.web.access import Token
from soakwatch.web.comparison import Comparisons, comparison
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome

Json = dict[str, object]
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes runs to compare."""
    return partial(written_run, tmp_path / "runs")


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[httpx.Client]:
    """Someone with the token, at the server of all runs."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    headers = {"authorization": "Bearer a token for tests"}
    with (
        serve(WebPlan(listen="127.0.0.1:0"), Token("a token for tests"), RunFolder(tmp_path / "runs")) as served,
        httpx.Client(base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240) as client,
    ):
        yield client


def test_labels_differ_like_the_rest_of_the_set_up(make_run: MakeRun, visitor: httpx.Client) -> None:
    """Once, as labels: what the plan says of them is not told again."""
    plan = "labels: {{release: '{0}', testbed: rack-3}}\n"
    for run, release in (("old", "7.2"), ("new", "7.4")):
        folder = make_run(run, plan=plan.format(release))
        with Record.open(folder) as record:
            record.set_meta(LABELS_KEY, labels_json({"release": release, "testbed": "<rack>"}))
    with RecordView.open(folder.with_name("old")) as first, RecordView.open(folder) as second:
        (line,) = differences([setup_of(first), setup_of(second)])
    assert (line.of, line.head, line.cells, line.differs) == ("label", "release", ("7.2", "7.4"), True)
    page = visitor.get("/compare?run=new&run=old").text
    assert '<bdi class="name">testbed=&lt;rack&gt;</bdi>' in page
    assert "<dt>release</dt><dd><bdi>7.4</bdi></dd>" in page


def pieces_of(page: str) -> list[Json]:
    """The plots of a page."""
    pieces = re.findall(r'class="plot-piece" data-element="([\w-]+)">(.*?)</script>', page, re.DOTALL)
    assert all(f'id="{element}"' in page for element, _ in pieces)
    return [json.loads(text) for _, text in pieces]


def test_the_page_shows_them_side_by_side_with_their_series_overlaid(make_run: MakeRun, visitor: httpx.Client) -> None:
    """Verdicts, matrix, figures, the command that tells whether they differ, and plots that hold the readings of each
    run from its own begin on, spike included."""
    make_run("old", finding("drops", Outcome.PASS), level=20.0)
    make_run("new", finding("drops", Outcome.FAIL, reason=HOSTILE), begin_s=100_000, level=30.0)
    answer = visitor.get("/compare?run=new&run=old")
    assert answer.status_code == 200
    page = answer.text
    assert page.index('href="/runs/new/"') < page.index('href="/runs/old/"')
    assert "✗ fail" in page
    assert HOSTILE not in page
    assert "&lt;img src=x" in page
    assert "soakwatch judge new --rule run_difference --against old" in page
    plots = pieces_of(page)
    (plot,) = [plot for plot in plots if "system.cpu.utilization" in json.dumps(plot)]
    held = [cast("Json", line["points"]) for line in cast("list[Json]", plot["lines"])]
    series = {str(points["name"]): points for points in held}
    for run, level in (("old", 20.0), ("new", 30.0)):
        time, value = points_of(series[f'compared:["{run}","fw","system.cpu.utilization",""]'])
        assert (time[0], time[-1]) == (0.0, 119.0)
        assert value[0] == pytest.approx(level)
        assert max(value) == pytest.approx(99.0)
    ours = r'<script src="/static/[\w.]+"( defer)?></script>|<script type="application/json".*?</script>'
    assert "<script" not in re.sub(ours, "", page, flags=re.DOTALL)


def test_the_reference_is_chosen_and_targets_of_other_names_are_matched(
    make_run: MakeRun, visitor: httpx.Client
) -> None:
    """The reference comes first; a longer run is drawn as far as the other goes; a target that has a counterpart by
    role has its row, its plot and a field to choose another one."""
    make_run("old", finding("drops", Outcome.PASS), level=20.0)
    make_run("new", finding("drops", Outcome.FAIL, "gw"), begin_s=100_000, level=30.0, seconds=240, target="gw")
    page = visitor.get("/compare?run=new&run=old&against=old&align=start").text
    assert page.index('href="/runs/old/"') < page.index('href="/runs/new/"')
    assert '<option value="new:gw=fw" selected>fw</option>' in page
    assert page.count('<bdi class="name">drops</bdi>') == 1
    assert "+50 %" in page
    assert "+50 to +50" not in page
    (plot,) = pieces_of(page)
    lengths = {
        str(points["name"]): points_of(points)[0][-1]
        for points in (cast("Json", line["points"]) for line in cast("list[Json]", plot["lines"]))
    }
    assert set(lengths.values()) == {119.0}
    alone = visitor.get("/compare?run=new&run=old&against=old&target=new:gw%3Dxx")
    assert (alone.status_code, "&#39;xx&#39; is no target of the run it is compared with" in alone.text) == (400, True)


def test_what_cannot_be_compared_is_explained_in_one_sentence(
    make_run: MakeRun, visitor: httpx.Client, tmp_path: Path
) -> None:
    """Too few, too many, unknown and damaged ones; none at all leads to the list."""
    for number in range(7):
        make_run(f"r{number}", seconds=5)
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "record.sqlite").write_bytes(b"no record")
    every = "&".join(f"run=r{number}" for number in range(7))
    for query, status, sentence in (
        ("run=r0", 400, "Select 2 to 6 runs (1 selected)"),
        ("run=r0&run=r0", 400, "(1 selected)"),
        (every, 400, "(7 selected)"),
        ("run=r0&run=%3Cb%3E", 400, "No run &lt;b&gt; in this folder"),
        ("run=r0&run=../x", 400, "No run ../x in this folder"),
        ("run=r0&run=damaged", 409, "is not a record"),
        ("run=r0&run=r1&against=r2", 400, "No run r2 among those that were selected"),
        ("run=r0&run=r1&target=fw", 400, "write RUN:ITS_TARGET=TARGET"),
        ("run=r0&run=r1&target=r9:fw%3Dfw", 400, "&#39;r9&#39;, which is not compared"),
    ):
        answer = visitor.get(f"/compare?{query}")
        assert (answer.status_code, sentence in answer.text) == (status, True), query
    assert visitor.get("/compare").headers["location"] == "/"


def test_runs_that_have_nothing_in_common_are_shown(make_run: MakeRun, visitor: httpx.Client, tmp_path: Path) -> None:
    """No shared series, no findings: the page says so."""
    make_run("one", seconds=5)
    folder = tmp_path / "runs" / "other"
    with Record.create(folder) as record:
        record.target("tg", "generator")
        source = record.source("tg", "command", "tg/command", SECOND, required=False)
        record.put([Poll(source.id, T0, T0, 1, PollOutcome.FAILED, "no", Answer((), (), ()))])
    page = visitor.get("/compare?run=one&run=other").text
    assert "Every rule has the same outcome" in page
    assert "No key series" in page


def test_a_comparison_is_made_again_only_when_a_record_changed(make_run: MakeRun) -> None:
    """Reloading the page reads no record; an event more does."""
    folders = [make_run("old", seconds=10), make_run("new", seconds=10)]
    kept = Comparisons()
    first = kept.of(folders)
    assert kept.of(folders) is first
    with Record.open(folders[0]) as record:
        record.add_event("", Event("mark", "", "", T0, None), "user")
    assert kept.of(folders) is not first


def test_gone_metrics_and_gaps_do_not_break_a_plot(make_run: MakeRun) -> None:
    """A run of one reading beside one of many, and a series that only one of them has."""
    compared = comparison([make_run("short", seconds=1), make_run("long", seconds=400)])
    assert [plot.key.metric for plot in compared.plots] == ["system.cpu.utilization"]
    assert [line.cells[0] for line in compared.data.figures if line.head == "CPU, mean"] == ["99 %"]


def test_the_load_of_each_run_lies_behind_the_lines(tmp_path: Path, visitor: httpx.Client) -> None:
    """On an axis of its own that ends a quarter above 946 requests/s, whatever the device's lines are; and not
    behind the generator's own."""
    for name, leak in (("one", 0.0), ("two", 52.0)):
        process_record(tmp_path / "runs" / name, leak_mib_h=leak)
    plots = pieces_of(visitor.get("/compare?run=one&run=two").text)
    loaded = [plot for plot in plots if plot.get("load")]
    assert 1 <= len(loaded) < len(plots)
    assert all(len(cast("list[Json]", plot["load"])) == 2 for plot in loaded)
    assert {plot["load_high"] for plot in loaded} == {1182.5}
    assert not any("load.request.rate" in json.dumps(plot) for plot in loaded)
