"""The trend of key figures as a page and as JSON: change points, what is missing, questions that make no sense."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from soakwatch.plan.web import WebPlan
from soakwatch.runs.key_figures import FigureSpec
from soakwatch.runs.trend_runs import LeftOut, TrendReader, TrendRun, read_trend_run
from soakwatch.web.access import Token
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch_testing.records import SECOND, T0, judged_run

DAY = 86400 * SECOND
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight runs, of which the last four forward less; one of another plan, whose label attacks."""
    folder = tmp_path_factory.mktemp("trend") / "runs"
    for index in range(8):
        judged_run(
            folder / f"run-{index}",
            packets_per_s=(1000.0 + index % 3) * (0.9 if index >= 4 else 1.0),
            begin_ns=T0 + index * DAY,
            release="7.8" if index < 4 else "7.9",
            verdict="fail" if index == 5 else "pass",
        )
    judged_run(folder / "other", packets_per_s=1.0, plan="short", begin_ns=T0 - DAY, labels={"release": HOSTILE})
    return folder


@pytest.fixture(scope="module")
def visitor(runs: Path) -> Iterator[httpx.Client]:
    """Someone with the token."""
    headers = {"authorization": "Bearer a token for tests"}
    with (
        serve(WebPlan(listen="127.0.0.1:0"), Token("a token for tests"), RunFolder(runs)) as served,
        httpx.Client(base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240) as client,
    ):
        yield client


def test_the_page_shows_the_newest_plan_with_its_change_points(visitor: httpx.Client) -> None:
    """A point a run that leads to it, the change in words and as a line; the runs page leads here."""
    assert 'href="/trend"' in visitor.get("/").text
    page = visitor.get("/trend")
    assert page.status_code == 200
    assert page.text.count('href="/runs/run-4/"') >= 3  # a point, the change point, the list
    assert "10 %, worse" in page.text
    assert '<path class="turn worse"' in page.text
    assert '<path class="fail"' in page.text
    latency = page.text.partition("latency p99")[2].partition("</svg>")[0]
    assert latency.count('<rect class="load"') == 8, "a bar a run: the load, on an axis of its own"
    assert "bars: load, up to 1,002 packets/s" in latency
    assert HOSTILE not in page.text
    other = visitor.get("/trend", params={"plan": "short", "figure": ["load.rx.packets", "load.loss"]}).text
    assert HOSTILE not in other
    assert "&lt;img src=x" in other
    assert "too few runs for change points: 1 of 8" in other
    assert "1 run without it: the run has no load.loss" in other


def test_the_same_as_json(visitor: httpx.Client) -> None:
    """Every plan, by week, of the runs that are asked for."""
    data = visitor.get("/api/trend", params={"figure": "load.rx.packets"}).json()
    assert (data["read"], data["there"], data["by"]) == (9, 9, "release")
    assert [plan["plan"] for plan in data["plans"]] == ["overnight", "short"]
    (figure,) = data["plans"][0]["figures"]
    assert [point["run"] for point in figure["change_points"]] == ["run-4"]
    weeks = visitor.get("/api/trend", params={"plan": "overnight", "by": "week"}).json()
    assert [group["name"] for group in weeks["plans"][0]["groups"]] == ["2023-W46", "2023-W47"]
    assert visitor.get("/api/trend", params={"last": "1h"}).json()["plans"] == []


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"figure": "load.los"}, "unknown metric 'load.los' in 'load.los'; did you mean 'load.loss'?"),
        ({"by": "biuld"}, "no run has the label 'biuld'"),
        ({"label": "testbed"}, "'testbed' is not a label: write NAME=VALUE, such as release=7.2"),
        ({"last": "30"}, "'30' is not a duration"),
        ({"figure": ["load.loss"] * 30}, "30 figures are too many: 24 at most"),
    ],
)
def test_what_makes_no_sense_is_told(visitor: httpx.Client, params: dict[str, str | list[str]], sentence: str) -> None:
    """In one sentence, on the page and to programs."""
    page = visitor.get("/trend", params=params)
    assert page.status_code == 400
    assert sentence.replace("'", "&#39;") in page.text
    answer = visitor.get("/api/trend", params=params)
    assert answer.status_code >= 400
    assert sentence in answer.json()["error"]


def test_a_run_is_read_once_until_its_record_changes(runs: Path) -> None:
    """The newest first, as long as there is time; the rest when it is asked again."""
    asked: list[str] = []
    guard = threading.Lock()

    def read(folder: Path, wanted: Sequence[FigureSpec]) -> TrendRun | LeftOut:
        with guard:
            asked.append(folder.name)
        return read_trend_run(folder, wanted)

    clock = iter(range(1000))
    reader = TrendReader(read, lambda: float(next(clock)))
    folders = [runs / f"run-{index}" for index in range(6)]
    known, unread = reader.runs(folders, (), 2.0)
    assert unread > 0
    assert asked[0] == "run-5"
    assert len(known) + unread == 6
    while unread:
        known, unread = reader.runs(folders, (), 2.0)
    assert sorted(asked) == [folder.name for folder in folders]
    assert [run.folder for run in known] == folders
    (runs / "run-2" / "record.sqlite").touch()
    reader.runs(folders, (), 1e9)
    assert asked[6:] == ["run-2"]


def test_a_page_that_still_reads_says_how_far_it_is(visitor: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time to read, each request reads one run, and the page asks again by itself until all are there."""
    monkeypatch.setattr("soakwatch.web.routes.trend.TRENDS", TrendReader())
    monkeypatch.setattr("soakwatch.web.routes.trend.READ_S", 0.0)
    waiting = visitor.get("/trend")
    assert waiting.headers["refresh"] == "1"
    assert "Reading the runs: 1 so far, 8 to go." in waiting.text
    partly = visitor.get("/api/trend").json()
    assert (partly["read"], partly["there"]) == (2, 9)
    for _ in range(6):
        assert visitor.get("/trend").headers["refresh"] == "1"
    whole = visitor.get("/trend")
    assert "refresh" not in whole.headers
    assert "10 %, worse" in whole.text
