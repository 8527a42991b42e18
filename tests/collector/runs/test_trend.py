"""Key figures over weeks of runs: releases in their order, medians with intervals, change points, what is missing."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.runs.figure_trend import trend_of
from soakwatch.runs.key_figures import FigureValue, parse_figure
from soakwatch.runs.trend_runs import LeftOut, TrendRun, read_trend_run
from soakwatch_testing.records import SECOND, T0, judged_run

DAY = 86400 * SECOND
RX = parse_figure("load.rx.packets")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve runs of three releases on as many days, that differ by 1 %; the third forwards 7 % less."""
    chance = random.Random(7)
    folder = tmp_path_factory.mktemp("trend") / "runs"
    for index in range(12):
        release = ("7.8", "7.9", "7.10")[index // 4]
        level = 1e6 * chance.gauss(1, 0.01) * (0.93 if release == "7.10" else 1.0)
        judged_run(
            folder / f"202311{14 + index}T200000Z-overnight",
            packets_per_s=level,
            begin_ns=T0 + index * DAY,
            release=release,
            labels={"build": f"b{index // 2}", "testbed": "ab"[index % 2]},
            verdict="fail" if index == 9 else "pass",
            seed=index,
        )
    return folder


@pytest.fixture
def beside(releases: Path) -> Command:
    """Runs commands in the folder that holds them."""
    return command_here(releases.parent)


def test_a_slower_release_is_found(beside: Command) -> None:
    """7.10 stands behind 7.9, with its change and the run from which on it is so; nothing else changed."""
    text = beside("trend").stdout
    assert text.startswith("overnight: 12 runs, 2023-11-14 to 2023-11-25\n")
    lines = text.splitlines()
    groups = [line.split()[0] for line in lines[2:6]]
    assert groups == ["release", "7.8", "7.9", "7.10"]
    assert "3 ✓ 1 ✗" in lines[5]
    changed = [line for line in lines if line.startswith("  changes at")]
    assert len(changed) == 1
    assert "changes at 20231122T200000Z-overnight: " in changed[0]
    assert "worse; p = " in changed[0]
    (slower,) = [line for line in lines if line.startswith("  7.10") and "worse" in line]
    assert "needs 6 runs" in slower
    assert "−7" in slower or "−6" in slower
    data = json.loads(beside("trend", "--json").stdout)
    (plan,) = data["plans"]
    rate = next(figure for figure in plan["figures"] if figure["figure"] == "load.rx.packets")
    assert [point["run"] for point in rate["change_points"]] == ["20231122T200000Z-overnight"]
    assert rate["change_points"][0]["worse"] is True
    assert rate["groups"][2]["outcome"] == "worse"
    assert rate["groups"][2]["change"] == pytest.approx(-0.07, abs=0.02)
    assert all(not figure["change_points"] for figure in plan["figures"] if figure is not rate)
    assert data["left_out"] == []


def test_runs_are_grouped_and_chosen_by_labels(beside: Command) -> None:
    """By a label, by the week of their begin, of one testbed, since a time; a label that no run has is told."""
    by_build = json.loads(beside("trend", "--by", "build", "--json").stdout)["plans"][0]
    assert [group["name"] for group in by_build["groups"]] == ["b0", "b1", "b2", "b3", "b4", "b5"]
    weeks = json.loads(beside("trend", "--by", "week", "--json").stdout)["plans"][0]["groups"]
    assert [group["name"] for group in weeks] == ["2023-W46", "2023-W47"]
    one = json.loads(beside("trend", "--label", "testbed=a", "--figure", "load.loss", "--json").stdout)["plans"][0]
    assert len(one["runs"]) == 6
    assert one["figures"][0]["groups"][0]["reason"] == "the run has no load.loss"
    table = list(csv.DictReader(io.StringIO(beside("trend", "--csv", "--figure", "load.rx.packets").stdout)))
    assert [row["change_point"] for row in table].index("1") == 8
    assert (table[0]["group"], table[0]["unit"], table[0]["better"]) == ("7.8", "{packet}/s", "higher")
    assert "no run in runs/ that is over" in beside("trend", "--last", "1h").stdout
    assert beside("trend", "--by", "biuld").stderr == "soakwatch: no run has the label 'biuld'; did you mean 'build'?\n"
    wrong = beside("trend", "--plan", "overnigt")
    assert wrong.stderr == "soakwatch: no run of the plan 'overnigt' was judged here; did you mean 'overnight'?\n"
    assert wrong.returncode == 2
    assert "no runs in empty/" in beside("trend", "--runs", "empty").stderr


def test_what_is_missing_is_said(tmp_path: Path, soakwatch: Command) -> None:
    """A generator that was silent is no zero; a run that is not over, or was not judged, is left out by name."""
    runs = tmp_path / "campaigns" / "sizes" / "runs"
    for index, size in enumerate(("64", "512", "64", "512")):
        judged_run(
            runs / f"r{index}",
            packets_per_s=1000.0,
            begin_ns=T0 + index * DAY,
            labels={"cell": f"size={size}", "size": size},
            silent=index == 2,
        )
    judged_run(runs / "r9", packets_per_s=1.0, verdict="")
    text = soakwatch("trend", "--runs", "campaigns/sizes").stdout
    assert "overnight, size=64: 2 runs" in text
    assert "overnight, size=512: 2 runs" in text
    assert "1 (1 without)" in text
    assert "1 run without it: tg/csv answered 0 of 40 polls in soak: less than half" in text
    assert "too few runs for change points: 2 of 8" in text
    assert "left out: r9: not judged" in text
    assert "no release" in text
    by_size = json.loads(soakwatch("trend", "--runs", "campaigns/sizes", "--by", "size", "--json").stdout)
    assert [group["name"] for group in by_size["plans"][0]["groups"]] == ["64", "512"]


def test_the_figures_of_a_run_are_listed(beside: Command) -> None:
    """The usual ones, or those that are asked for; a figure that the run does not have has its reason."""
    table = beside("figures", "last").stdout
    assert "packets received, mean rate" in table
    assert "load.rx.packets" in table
    asked = beside("figures", "last", "--figure", "p95(load.latency)", "--figure", "load.loss")
    assert "no load.loss: the run has no load.loss" in asked.stdout
    data = json.loads(beside("figures", "last", "--figure", "system.cpu.utilization", "--json").stdout)
    (figure,) = data["figures"]
    assert (figure["value"], figure["better"]) == (pytest.approx(0.4), "lower")
    assert "did you mean 'load.loss'?" in beside("figures", "last", "--figure", "load.los").stderr


def runs_of(values: Sequence[float], releases: Sequence[str]) -> list[TrendRun | LeftOut]:
    """Runs that had these rates."""
    return [
        TrendRun(
            Path(f"r{index:03}"),
            "night",
            T0 + index * DAY,
            "pass",
            {"release": release},
            (RX,),
            {RX.text: FigureValue(value, "{packet}/s", "higher")},
        )
        for index, (value, release) in enumerate(zip(values, releases, strict=True))
    ]


def test_where_nothing_changed_nothing_is_found() -> None:
    """Of 200 histories of 12 runs that differ by 1 to 2 % at most three have a change point; of 200 whose third release
    is 7 % slower, with runs that differ by 1 %, 98 of 100 have it at the right run."""
    chance = random.Random(3)
    names = ["7.8"] * 4 + ["7.9"] * 4 + ["7.10"] * 4
    found = right = 0
    for repetition in range(200):
        spread = 0.01 if repetition % 2 else 0.02
        calm = trend_of(runs_of([chance.gauss(1e6, spread * 1e6) for _ in names], names))
        found += bool(calm.plans[0].figures[0].turns)
        slower = [chance.gauss(1e6, 1e4) * (0.93 if name == "7.10" else 1.0) for name in names]
        turns = trend_of(runs_of(slower, names)).plans[0].figures[0].turns
        right += [turn.run.folder.name for turn in turns] == ["r008"]
    assert found <= 3
    assert right >= 196


def test_an_old_release_that_is_tested_again_stands_beside_its_runs() -> None:
    """Three releases in turn, as a campaign has them: the change is at the first run of the slower one."""
    chance = random.Random(5)
    names = ["7.8", "7.9", "7.10"] * 4
    values = [chance.gauss(1e6, 1e4) * (0.93 if name == "7.10" else 1.0) for name in names]
    (plan,) = trend_of(runs_of(values, names)).plans
    assert [group.name for group in plan.groups] == ["7.8", "7.9", "7.10"]
    assert [turn.run.labels["release"] for turn in plan.figures[0].turns] == ["7.10"]
    assert [turn.run.folder.name for turn in plan.figures[0].turns] == ["r002"]


def test_a_run_that_cannot_be_read_is_left_out_with_the_reason(tmp_path: Path) -> None:
    """Its folder and why."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.sqlite").write_bytes(b"no database")
    read = read_trend_run(tmp_path / "broken")
    assert isinstance(read, LeftOut)
    assert read.reason
