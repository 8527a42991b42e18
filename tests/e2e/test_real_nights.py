"""Whole runs made of real series: what is a quiet window, what a night is made of, and which faults are done to it.

The real sets are no part of the project: ``DATA_DIR`` names their folder. Without it a set of two pods is drawn.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.bench.accuracy.night import Night, floats
from tests.bench.accuracy.real_lines import QUIET, Line, lines, window
from tests.bench.accuracy.real_nights import REAL, drawn
from tests.bench.accuracy.runs import Asked, try_healthy, try_sick
from tests.bench.accuracy.sick import grows
from tests.bench.accuracy.sick_sizes import SIZED
from tests.bench.accuracy.sick_traffic import stops
from tests.bench.accuracy.truth import Size, Stated, Truth

POLLS = floats(60.0 * np.arange(10))


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one set: two steady pods, a reading a minute for 80 h, as their publisher writes them."""
    folder = tmp_path_factory.mktemp("sets")
    day = folder / "nezha" / "2022-08-22"
    day.mkdir(parents=True)
    (day / "fault_list.json").write_text(json.dumps({"10": []}))
    rng = np.random.default_rng(5)
    columns = {
        "MemoryUsage(Mi)": 300 * (1 + 0.002 * rng.standard_normal(4800)),
        "CpuUsageRate(%)": 30 + rng.standard_normal(4800),
        "NetworkReceiveBytes": 5e4 * (1 + 0.05 * rng.standard_normal(4800)),
        "NetworkTransmitBytes": 5e4 * (1 + 0.05 * rng.standard_normal(4800)),
        "PodWorkload(Ops)": 200 * (1 + 0.05 * rng.standard_normal(4800)),
        "PodServerLatencyP90(s)": 0.01 * (1 + 0.05 * rng.standard_normal(4800)),
        "PodServerLatencyP99(s)": 0.03 * (1 + 0.05 * rng.standard_normal(4800)),
    }
    for pod in ("a", "b"):
        with gzip.open(day / f"{pod}_metric.csv.gz", "wt", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("TimeStamp", *columns))
            writer.writerows((1_660_000_000 + 60 * i, *(v[i] for v in columns.values())) for i in range(4800))
    return folder


def _line(value: list[float], ill: tuple[tuple[float, float], ...] = ()) -> Line:
    return Line("set", "name", "host", "memory", floats(300.0 * np.arange(len(value))), floats(value), ill)


def test_a_coarse_series_is_held_until_its_next_reading() -> None:
    read = window(_line([1.0, 2.0, 3.0]), 0.0, POLLS)
    assert read is not None
    assert read.tolist() == [1.0] * 5 + [2.0] * 5


def test_a_window_with_a_label_or_outside_of_the_series_is_none() -> None:
    assert window(_line([1.0] * 10, ill=((500.0, 530.0),)), 0.0, POLLS) is None
    assert window(_line([1.0] * 10, ill=((500.0, 530.0),)), 600.0, POLLS) is not None
    assert window(_line([1.0] * 10), 2400.0, POLLS) is None


def test_memory_that_grows_by_a_twentieth_is_not_quiet_and_a_wave_that_returns_is() -> None:
    turn = np.linspace(0, 1, 1440)
    noise = 0.002 * np.random.default_rng(1).standard_normal(turn.size)
    assert QUIET["memory"](floats(1 + noise))
    assert QUIET["memory"](floats(1 + 0.015 * np.sin(2 * np.pi * turn) + noise))
    assert not QUIET["memory"](floats(1 + 0.05 * turn + noise))
    assert not QUIET["cpu"](floats(0.3 + 0.1 * turn))
    assert not QUIET["cpu"](floats(0.3 + 0.65 * (turn == turn[700])))


def test_a_folder_without_the_sets_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none of the real sets"):
        lines(tmp_path, "all")


def _same(one: Night, other: Night) -> bool:
    return one.value.keys() == other.value.keys() and all(
        np.array_equal(value, other.value[key], equal_nan=True) for key, value in one.value.items()
    )


def test_a_night_is_drawn_by_its_seed_and_says_what_it_is_made_of(pods: Path) -> None:
    night = drawn(pods, "all", 3)
    assert _same(night, drawn(pods, "all", 3))
    assert not _same(night, drawn(pods, "all", 4))
    assert f"{REAL}: memory of nezha shop" in night.traits
    assert len(night.objects("process.memory.usage")) >= 2
    assert night.has("system.memory.available")


def test_all_that_a_night_sends_comes_back(pods: Path) -> None:
    nights = [night for seed in range(12) if "packets" in (night := drawn(pods, "all", seed)).traits]
    assert nights
    for night in nights:
        assert np.array_equal(night.of("load.tx.packets"), night.of("load.rx.packets"))


def test_a_real_night_is_judged_as_a_record_and_its_fault_is_named_with_its_size(pods: Path) -> None:
    draw = partial(drawn, pods, "all")
    seed = next(seed for seed in range(20) if draw(seed).hours == 12)
    well = try_healthy(seed, draw=draw)
    assert (well.form, well.verdict) == ("record", "pass")
    ill = try_sick(7, draw=draw, faults_of={"sizes": (grows(0.8),)}, pictured=True)
    assert ill is not None
    assert ill.truth is not None
    assert ill.truth.size == Size("memory of a process", 80.0, "% a day")
    assert (ill.verdict, ill.named) == ("fail", True)


def test_what_was_judged_wrong_is_drawn_with_the_begin_of_its_fault(pods: Path) -> None:
    def unseen(night: Night, stated: Stated) -> Truth | None:
        """A fault that is called large, and of which nothing is to be seen."""
        made = grows(0.001)(night, stated)
        return made and replace(made, small=False)

    row = try_sick(7, draw=partial(drawn, pods, "all"), faults_of={"unseen": (unseen,)}, pictured=True)
    assert row is not None
    assert row.verdict == "pass"
    assert row.picture.startswith("<svg")
    assert "memory +0.1 % a day" in row.picture
    assert 'stroke="#c33"' in row.picture


def test_a_standstill_within_an_announced_failover_is_no_fault(pods: Path) -> None:
    night = next(night for seed in range(12) if "packets" in (night := drawn(pods, "all", seed)).traits)
    night.announce("failover", 0.0, night.length_s, {})
    assert stops(60.0)(deepcopy(night), {}) is None
    assert stops(math.inf)(night, {}) is not None


def test_every_fault_of_a_curve_that_a_night_bears_has_a_size(pods: Path) -> None:
    assert Asked(sizes=True).faults.keys() >= SIZED.keys()
    nights = [night for seed in range(6) if (night := drawn(pods, "all", seed)).hours >= 12]
    grown = {("process.memory.usage", name): 1e4 for night in nights for name in night.objects("process.memory.usage")}
    made = [fault(deepcopy(night), grown) for faults in SIZED.values() for fault in faults for night in nights]
    assert len({truth.kind for truth in made if truth is not None}) > 30
    assert [truth.kind for truth in made if truth is not None and truth.size is None] == []


def test_nights_of_the_real_sets_do_not_fail() -> None:
    folder = os.environ.get("DATA_DIR")
    if not folder:
        pytest.skip("DATA_DIR does not name the folder of the real sets")
    rows = [try_healthy(seed, draw=partial(drawn, Path(folder), "tuning")) for seed in range(300, 304)]
    assert [row.seed for row in rows if row.verdict == "fail"] == []
