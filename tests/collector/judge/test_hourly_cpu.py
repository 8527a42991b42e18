"""What polls of a CPU say, hourly and each minute: from 97 % at the start, 99.9 %, what lies between two polls."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.cli.main import run as command
from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS

Floats = NDArray[np.float64]
HOURLY, EACH_MINUTE = 3600, 60


def calm(step_s: int) -> Floats:
    """A day at 30 % ± 2."""
    return 0.3 + np.random.default_rng(4).normal(0, 0.02, 86400 // step_s)


def judged(folder: Path, step_s: int, busy: Floats) -> tuple[int, dict[str, tuple[str, str]]]:
    """What the command says of a table of nothing but a CPU: exit code; outcome and reason by rule."""
    table, file = folder / "cpu.csv", folder / "verdict.json"
    lines = [f"{1_763_200_000 + index * step_s},{share:.4f}" for index, share in enumerate(busy.tolist())]
    table.write_text("\n".join(["time,system.cpu.utilization", *lines]) + "\n", encoding="utf-8")
    code = command(["judge", str(table), "--json", str(file)])
    findings = json.loads(file.read_text(encoding="utf-8"))["findings"]
    return code, {f["rule"]: (f["outcome"], f["reason"]) for f in findings}


def test_hourly_polls_of_a_cpu_decide_as_far_as_they_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run passes, and says what its polls did not show: neither rule is decided, and a minute between is named."""
    code, findings = judged(tmp_path, HOURLY, calm(HOURLY))
    assert code == EXIT_PASS
    assert "as far as polls so rare show it" in capsys.readouterr().out
    for rule in ("cpu_spike", "cpu_saturation"):
        outcome, reason = findings[rule]
        assert outcome == "inconclusive"
        assert "one of a minute between two polls, 1 h apart, is not seen; none of 24 samples reached 95 %" in reason


def test_with_polls_missing_it_is_not_decided(tmp_path: Path) -> None:
    """A third of the hours without a poll: what was due and did not come is no pass."""
    busy = calm(HOURLY)
    busy[8:16] = np.nan
    assert judged(tmp_path, HOURLY, busy)[0] == EXIT_INCONCLUSIVE


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
@pytest.mark.parametrize("top", [0.97, 0.99, 0.999, 1.0])
def test_99_9_per_cent_is_a_spike_as_100_per_cent_is(tmp_path: Path, step_s: int, top: float) -> None:
    """One poll at the top, from 30 %: a spike, whatever the decimal."""
    busy = calm(step_s)
    busy[busy.size * 3 // 4] = top
    code, findings = judged(tmp_path, step_s, busy)
    assert code == EXIT_FAIL
    assert findings["cpu_spike"][0] == "fail"
    assert f"{100 * top:g} %" in findings["cpu_spike"][1]


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
def test_from_97_per_cent_at_the_start_no_spike_can_rise(tmp_path: Path, step_s: int) -> None:
    """Not decided, and never passed: it is said that nothing can rise from there, and how long it was saturated."""
    code, findings = judged(tmp_path, step_s, np.full(86400 // step_s, 0.97))
    assert code == EXIT_INCONCLUSIVE
    assert "CPU was at 97 % from the start" in findings["cpu_spike"][1]
    assert "no spike can rise from there" in findings["cpu_spike"][1]
    assert findings["cpu_saturation"][0] == "warn"
    assert "saturated for 24 h, from the first sample to the last" in findings["cpu_saturation"][1]
