"""Whole tables of CPU readings on the command line: what saturates is reported, what is healthy passes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from soakwatch.cli.main import soakwatch

T0 = 1_767_225_600
Floats = NDArray[np.float64]


def verdict(folder: Path, columns: Mapping[str, Sequence[float] | Floats], apart: float, *more: str) -> dict[str, Any]:
    """What ``soakwatch judge`` says of a table with these columns, with all rules unless told otherwise."""
    length = len(next(iter(columns.values())))
    lines = ["time," + ",".join(columns)]
    lines += [f"{T0 + n * apart:.3f}," + ",".join(f"{c[n]:.4f}" for c in columns.values()) for n in range(length)]
    (folder / "dut.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = CliRunner().invoke(soakwatch, ["judge", str(folder / "dut.csv"), *more, "--json", "-"])
    assert done.exit_code == 0, done.output
    return {**json.loads(done.stdout), "stderr": done.stderr}


def of(verdict: Mapping[str, Any], rule: str) -> list[dict[str, Any]]:
    """The findings of one rule."""
    return [f for f in verdict["findings"] if f["rule"] == rule]


def noisy(level: float, sd: float, n: int, seed: int = 1) -> Floats:
    """Readings in percent about a level."""
    return np.clip(level + sd * np.random.default_rng(seed).standard_normal(n), 0, 100)


def raised(value: Floats, index: int, to: Sequence[float] | Floats) -> Floats:
    """With other readings from one on."""
    changed = value.copy()
    changed[index : index + len(to)] = to
    return changed


@pytest.mark.parametrize("column", ["cpu (%)", "cpu"])
def test_a_container_that_reads_a_little_over_100_percent_is_saturated(tmp_path: Path, column: str) -> None:
    """Ten minutes at 100.2 % are ten minutes at 100 %: nothing is left out, and the device fails."""
    judged = verdict(tmp_path, {column: raised(noisy(30, 4, 3600), 1200, np.full(600, 100.2))}, 1.0)
    assert judged["verdict"] == "fail"
    assert "600 readings slightly outside 0 to 100 % (up to 100.20%), clipped" in judged["stderr"]
    assert of(judged, "cpu_spike")[0]["samples"] == 3600
    assert of(judged, "cpu_saturation")[0]["outcome"] == "warn"


def test_a_share_a_little_over_1_is_no_percentage(tmp_path: Path) -> None:
    """A column that reaches 1.012 holds shares: read in percent it would be an idle device."""
    judged = verdict(tmp_path, {"cpu": raised(noisy(30, 4, 3600) / 100, 1200, np.full(600, 1.012))}, 1.0)
    assert judged["verdict"] == "fail"
    assert "read as a share of 1, because it exceeds 1 by at most 0.012" in judged["stderr"]


def test_cores_that_idle_a_little_below_0_are_read(tmp_path: Path) -> None:
    """100 less an idle time of 100.02 % is no reason to refuse a table; the poll core beside them stays whole."""
    idle = np.tile([-0.02, 0.01, -0.01], 400)
    judged = verdict(tmp_path, {"cpu (%)": idle}, 1.0, "--rule", "cpu_spike")
    assert judged["verdict"] == "pass"
    assert of(judged, "cpu_spike")[0]["samples"] == 1200


def test_what_is_far_over_100_percent_is_a_fault_by_its_name(tmp_path: Path) -> None:
    """106 % is none: it is left out, and this is reported with its line."""
    judged = verdict(tmp_path, {"cpu (%)": raised(noisy(30, 4, 1200), 600, [106.0])}, 1.0, "--rule", "cpu_spike")
    assert "1 reading out of range: dropped (line 602: 1.06)" in judged["stderr"]
    assert of(judged, "cpu_spike")[0]["samples"] == 1199


@pytest.mark.parametrize(("level", "sd", "lasting"), [(35, 14, 24), (22, 18, 30), (12, 4, 24), (50, 10, 40)])
@pytest.mark.parametrize("seed", range(3))
def test_a_plateau_in_a_short_table_fails(tmp_path: Path, level: float, sd: float, lasting: int, seed: int) -> None:
    """Three minutes at a reading a second, a start-up, then 24 to 40 s at 100 %: neither the plateau nor the start-up
    is the level or the scatter that it is held against. Without it the same table passes."""
    calm = noisy(level, sd, 180, seed)
    calm[:20] *= np.linspace(0, 1, 20)
    judged = verdict(tmp_path, {"cpu (%)": raised(calm, 90, np.full(lasting, 100.0))}, 1.0)
    assert judged["verdict"] == "fail"
    assert f"for {lasting} s" in of(judged, "cpu_spike")[0]["reason"]
    assert of(verdict(tmp_path, {"cpu (%)": calm}, 1.0), "cpu_spike")[0]["outcome"] == "pass"


def test_a_device_that_is_busy_all_day_is_not_passed(tmp_path: Path) -> None:
    """97 % from the first reading to the last: a warning of saturation, and no pass without anything to compare."""
    judged = verdict(tmp_path, {"cpu (%)": noisy(97, 1, 1440)}, 60.0)
    assert judged["verdict"] == "inconclusive"
    assert of(judged, "cpu_saturation")[0]["outcome"] == "warn"
    assert "saturated, or a busy-polling (DPDK) core" in of(judged, "cpu_spike")[0]["reason"]


def test_a_device_of_which_two_cores_poll_passes(tmp_path: Path) -> None:
    """Cores 2 and 3 stand at the top from the first reading to the last, also a little over; the total is lower."""
    rng = np.random.default_rng(3)
    cores = [noisy(20, 4, 1440, 1), noisy(20, 4, 1440, 2), 100 - 0.1 * rng.random(1440), 100.06 + rng.random(1440)]
    names = [f"system.cpu.core.utilization{{core={number}}}" for number in range(4)]
    columns = dict(zip(names, (core / 100 for core in cores), strict=True))
    judged = verdict(tmp_path, {"cpu": np.mean(cores, axis=0), **columns}, 60.0)
    assert judged["verdict"] == "pass"
    assert sorted(f["outcome"] for f in of(judged, "cpu_spike")) == [
        "not applicable",
        "not applicable",
        "pass",
        "pass",
        "pass",
    ]
    assert any("in poll mode, not judged: core=2" in caveat for caveat in of(judged, "cpu_saturation")[0]["doubts"])


def test_a_device_that_works_in_bursts_all_night_passes(tmp_path: Path) -> None:
    """100 % for 20 s of each minute for 8 hours is how it works; five minutes at 100 % in it are a spike."""
    second = 5.0 * np.arange(5760)
    bursts = np.where(second % 60 < 20, 100.0, noisy(15, 3, 5760))
    judged = verdict(tmp_path, {"cpu (%)": bursts}, 5.0)
    assert judged["verdict"] == "pass"
    assert "every 1 min, throughout the run: its normal behaviour" in of(judged, "cpu_spike")[0]["reason"]
    sick = verdict(tmp_path, {"cpu (%)": raised(bursts, 3000, np.full(60, 100.0))}, 5.0)
    assert sick["verdict"] == "fail"


def test_a_backup_by_night_does_not_fail(tmp_path: Path) -> None:
    """Ten minutes at 75 % once a night are neither a spike nor a saturation."""
    judged = verdict(tmp_path, {"cpu (%)": raised(noisy(20, 4, 1440), 300, noisy(75, 3, 10))}, 60.0)
    assert judged["verdict"] == "pass"


def test_ten_minutes_at_the_top_of_a_busy_device_are_not_passed(tmp_path: Path) -> None:
    """From 85 % there is no sudden rise by 20 points: what stays at 100 % for ten minutes is reported all the same."""
    judged = verdict(tmp_path, {"cpu (%)": raised(noisy(85, 2, 7200), 3000, np.full(600, 100.0))}, 1.0)
    assert judged["verdict"] == "inconclusive"
    assert "100 % for 10 min" in of(judged, "cpu_spike")[0]["reason"]
