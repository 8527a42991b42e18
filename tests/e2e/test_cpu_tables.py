"""Whole tables of CPU readings on the command line: what saturates is told, what is healthy passes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from soakwatch.cli import soakwatch

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


def of(told: Mapping[str, Any], rule: str) -> list[dict[str, Any]]:
    """The findings of one rule."""
    return [f for f in told["findings"] if f["rule"] == rule]


def noisy(level: float, sd: float, n: int, seed: int = 1) -> Floats:
    """Readings in percent about a level."""
    return np.clip(level + sd * np.random.default_rng(seed).standard_normal(n), 0, 100)


def raised(value: Floats, at: int, to: Sequence[float] | Floats) -> Floats:
    """With other readings from one on."""
    made = value.copy()
    made[at : at + len(to)] = to
    return made


@pytest.mark.parametrize("column", ["cpu (%)", "cpu"])
def test_a_container_that_reads_a_little_over_100_percent_is_saturated(tmp_path: Path, column: str) -> None:
    """Ten minutes at 100.2 % are ten minutes at 100 %: nothing is left out, and the device fails."""
    told = verdict(tmp_path, {column: raised(noisy(30, 4, 3600), 1200, np.full(600, 100.2))}, 1.0)
    assert told["verdict"] == "fail"
    assert "600 readings a little outside of 0 to 100 % (up to 100.20%), taken as the nearest of both" in told["stderr"]
    assert of(told, "cpu_spike")[0]["samples"] == 3600
    assert of(told, "cpu_saturation")[0]["outcome"] == "warn"


def test_a_share_a_little_over_1_is_no_percentage(tmp_path: Path) -> None:
    """A column that reaches 1.012 holds shares: read in percent it would be an idle device."""
    told = verdict(tmp_path, {"cpu": raised(noisy(30, 4, 3600) / 100, 1200, np.full(600, 1.012))}, 1.0)
    assert told["verdict"] == "fail"
    assert "read as a share of 1, for it exceeds that by no more than 0.012" in told["stderr"]


def test_cores_that_idle_a_little_below_0_are_read(tmp_path: Path) -> None:
    """100 less an idle time of 100.02 % is no reason to refuse a table; the poll core beside them stays whole."""
    idle = np.tile([-0.02, 0.01, -0.01], 400)
    told = verdict(tmp_path, {"cpu (%)": idle}, 1.0, "--rule", "cpu_spike")
    assert told["verdict"] == "pass"
    assert of(told, "cpu_spike")[0]["samples"] == 1200


def test_what_is_far_over_100_percent_is_a_fault_by_its_name(tmp_path: Path) -> None:
    """106 % is none: it is left out, and this is told with its line."""
    told = verdict(tmp_path, {"cpu (%)": raised(noisy(30, 4, 1200), 600, [106.0])}, 1.0, "--rule", "cpu_spike")
    assert "1 reading that cannot be: left out (line 602: 1.06)" in told["stderr"]
    assert of(told, "cpu_spike")[0]["samples"] == 1199
